"""The sides of an A/B measurement: what sets one apart from the other, as it is typed, checked and made ready.

    python=PATH       another interpreter, with its torch and libraries; gpubench is ours on both sides
    env:NAME=VALUE    an environment variable of its processes
    kernel=FILE.cu    a text in place of the suite's file of that name (or of its only one); FILE.cpp on a CPU

A side of which nothing is said is as it is. Several may be given, separated by commas or one by one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpubench.environment import safe_argv
from gpubench.errors import UsageError
from gpubench.suite import Suite

FORMS = "python=PATH, env:NAME=VALUE or kernel=FILE.cu"
KERNEL_SUFFIXES = (".cu", ".cpp")

_NEXT = re.compile(r",(?=(?:python=|env:|kernel=))")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Side:
    """What one side is: an interpreter, environment variables of its own, and texts that replace kernels."""

    python: str = sys.executable
    variables: Mapping[str, str] = field(default_factory=dict)
    kernels: tuple[Path, ...] = ()
    said: tuple[str, ...] = ()
    """As it was typed."""

    @property
    def what(self) -> list[str]:
        """What it is, without the folders of its user."""
        return safe_argv(self.said)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its processes."""
        return {**os.environ, **self.variables}


def parse(flag: str, texts: Sequence[str]) -> Side:
    """The side that the texts after --base or --new mean. UsageError names what is none, or is not there."""
    python: str | None = None
    variables, kernels = dict[str, str](), list[Path]()
    words = [word for text in texts for word in _NEXT.split(text)]
    for word in words:
        kind, _, value = word.partition("=")
        if kind == "python" and python is None:
            python = _interpreter(flag, value)
        elif kind == "kernel":
            kernels.append(_kernel(flag, value))
        elif kind.startswith("env:") and "=" in word:
            name = kind.removeprefix("env:")
            if not _VARIABLE.fullmatch(name) or name in variables:
                raise UsageError(f"{flag} {word}: {name!r} is no name of a variable, or is given twice", FORMS)
            variables[name] = value
        else:
            wrong = "a second interpreter" if kind == "python" else "not a side"
            raise UsageError(f"{flag} {word}: {wrong}", FORMS)
    return Side(python or sys.executable, variables, tuple(kernels), tuple(words))


@contextmanager
def package() -> Iterator[Path]:
    """A folder in which another interpreter finds this gpubench and nothing else: where gpubench is installed, this
    interpreter's torch lies beside it and would be taken for the other's."""
    with tempfile.TemporaryDirectory(prefix="gpubench-ab-") as place:
        (Path(place) / "gpubench").symlink_to(Path(__file__).resolve().parents[1])
        yield Path(place)


@contextmanager
def files(side: Side, suites: Sequence[Suite]) -> Iterator[tuple[dict[str, Path], dict[str, str]]]:
    """The file of each suite as this side's processes are to load it, by the suite's name; and the hash of each text
    that replaces one, by the name of the file it replaces.

    A suite with a replaced kernel is found in a folder that is made for it, in which everything beside it is linked but
    for the replaced file; it is gone at the end. UsageError where it is not clear which file a text replaces.
    """
    found = {suite.name: suite.file for suite in suites}
    if not side.kernels:
        yield found, {}
        return
    replaced = {_target(text, suites): text for text in side.kernels}
    with tempfile.TemporaryDirectory(prefix="gpubench-ab-") as place:
        for number, folder in enumerate(sorted({suite.file.parent for suite in suites})):
            texts = {target.name: text for target, text in replaced.items() if target.parent == folder}
            if texts:
                made = _linked(folder, Path(place) / str(number), texts)
                found |= {suite.name: made / suite.file.name for suite in suites if suite.file.parent == folder}
        yield found, {target.name: _digest(text) for target, text in replaced.items()}


def _linked(folder: Path, made: Path, texts: Mapping[str, Path]) -> Path:
    """A folder like another one, with some of its files replaced. They are copied: a later edit must not enter."""
    made.mkdir()
    for entry in folder.iterdir():
        if entry.name not in texts and entry.name != "__pycache__":
            (made / entry.name).symlink_to(entry.absolute())
    for name, text in texts.items():
        shutil.copyfile(text, made / name)
    return made


def _target(text: Path, suites: Sequence[Suite]) -> Path:
    """The file that a text replaces: the kernels' source of its own name, else the only one there is."""
    sources = {
        (suite.file.parent / kernel.source).with_suffix(text.suffix) for suite in suites for kernel in suite.kernels
    }
    known = sorted(path for path in sources if path.is_file())
    named = [path for path in known if path.name == text.name] or known
    if len(named) == 1:
        return named[0]
    if not known:
        names = ", ".join(suite.name for suite in suites)
        raise UsageError(f"kernel={text.name}: {names} has no {text.suffix} file of kernels to replace")
    listed = ", ".join(path.name for path in known)
    raise UsageError(f"kernel={text.name}: which file does it replace? there are {listed}", "name it like that one")


def _interpreter(flag: str, value: str) -> str:
    """The path of an interpreter as it was given: a link to it is what makes an environment of its own."""
    found = shutil.which(value)
    if not value or found is None:
        raise UsageError(f"{flag} python={value}: no such program", "the path of an interpreter: .venv/bin/python")
    return os.path.abspath(found)


def _kernel(flag: str, value: str) -> Path:
    path = Path(value)
    if path.suffix not in KERNEL_SUFFIXES or not path.is_file():
        raise UsageError(f"{flag} kernel={value}: not a file of kernels", "a .cu file; on a CPU a .cpp file")
    return path


def _digest(text: Path) -> str:
    return hashlib.sha256(text.read_bytes()).hexdigest()
