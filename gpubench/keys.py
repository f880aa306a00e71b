"""The one table of settings: name, what it takes, default, help. Flags, environment, files and messages all read it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from gpubench.errors import UsageError
from gpubench.node import Node
from gpubench.result import CONDITIONS
from gpubench.store.baseline import NAME
from gpubench.units import parse_duration, parse_percent

PREFIX = "GPUBENCH_"
"""What the name of every setting begins with in the environment."""
LONGEST = 30 * 24 * 3600.0
"""Seconds: a time limit beyond 30 days is a slip, and some clocks cannot count it."""


class Kind(Protocol):
    """What a setting takes. `read` gives the value a text means, or a UsageError that begins with the text."""

    @property
    def expected(self) -> str:
        """What it takes, in words."""

    def read(self, text: str) -> object:
        """The value."""


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """In words."""
        return f"one of {', '.join(self.words)}"

    def read(self, text: str) -> str:
        """The word itself."""
        if text not in self.words:
            raise UsageError(f"{text!r} is not {self.expected}")
        return text


@dataclass(frozen=True)
class Whole:
    """A plain decimal integer within bounds."""

    least: int
    most: int

    @property
    def expected(self) -> str:
        """In words."""
        return f"an integer from {self.least} to {self.most}"

    def read(self, text: str) -> int:
        """The integer; `1e2`, `010`, `1_000` and `true` are none."""
        if not re.fullmatch(r"0|[1-9][0-9]{0,18}", text) or not self.least <= int(text) <= self.most:
            raise UsageError(f"{text!r} is not {self.expected}")
        return int(text)


@dataclass(frozen=True)
class Switch:
    """On or off, in any of the usual spellings."""

    expected = "true or false"

    def read(self, text: str) -> bool:
        """True or False."""
        word = text.lower()
        if word in ("true", "yes", "on", "1"):
            return True
        if word in ("false", "no", "off", "0"):
            return False
        raise UsageError(f"{text!r} is not {self.expected}")


@dataclass(frozen=True)
class Seconds:
    """A duration above zero, with its unit."""

    expected = "a duration such as 60s or 200ms"

    def read(self, text: str) -> float:
        """Seconds."""
        seconds = parse_duration(text)
        if not 0 < seconds <= LONGEST:
            raise UsageError(f"{text!r} is not a duration above 0 and up to 30 days", "such as 60s")
        return seconds


@dataclass(frozen=True)
class Fraction:
    """A percentage below 100 %."""

    expected = "a percentage such as 0.5%"

    def read(self, text: str) -> float:
        """The fraction."""
        fraction = parse_percent(text)
        if fraction >= 1:
            raise UsageError(f"{text!r} is not a percentage below 100%", "such as 0.5%")
        return fraction


@dataclass(frozen=True)
class Fractions:
    """A percentage below 100 % for each of several names, which a file alone can say."""

    expected = "a mapping of suite, suite/benchmark or a glob to a percentage, such as {bandwidth/*: 1%}"

    def read(self, text: str) -> object:
        """Never: UsageError."""
        raise UsageError(f"{text!r} is not {self.expected}")


@dataclass(frozen=True)
class Text:
    """A line of text; `pattern` says which, where not every line will do."""

    expected: str
    pattern: str = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}"

    def read(self, text: str) -> str:
        """The text itself."""
        if not re.fullmatch(self.pattern, text):
            raise UsageError(f"{text!r} is not {self.expected}")
        return text


@dataclass(frozen=True)
class Folder:
    """A path; `~` is the home folder."""

    expected = "the path of a folder"

    def read(self, text: str) -> Path:
        """The path, not yet made absolute."""
        path = os.path.expanduser(text)
        if not text.strip() or "\0" in text or (text.startswith("~") and path == text):
            raise UsageError(f"{text!r} is not {self.expected}")
        return Path(path)


@dataclass(frozen=True)
class Key:
    """One setting. `section` is the mapping of a plan it stands in; a `project` key belongs to gpubench.yaml alone. A
    `judging` one bears on how runs are compared, not on how one is measured: no run file holds it."""

    name: str
    kind: Kind
    default: object
    help: str
    section: str = ""
    many: bool = False
    long_flag: str = ""
    project: bool = False
    judging: bool = False

    @property
    def flag(self) -> str:
        """Its name on the command line: --max-noise."""
        return "--" + (self.long_flag or self.name).replace("_", "-")

    @property
    def variable(self) -> str:
        """Its name in the environment: GPUBENCH_MAX_NOISE."""
        return PREFIX + (self.long_flag or self.name).upper()

    def from_text(self, text: str, origin: str) -> object:
        """The value of one text that came from a flag or a variable; UsageError names the origin."""
        try:
            return self.kind.read(text)
        except UsageError as error:
            raise UsageError(f"{origin}: {error.message}", error.hint) from None

    def from_node(self, node: Node) -> object:
        """The value of a node of a file; UsageError names file, line, key and what was expected."""
        if isinstance(self.kind, Fractions):
            one = replace(self, kind=Fraction())
            return {name: one.from_node(each) for name, each in node.mapping(self.kind.expected).items()}
        if self.many:
            return [self._one(item) for item in node.items()]
        return self._one(node)

    def _one(self, node: Node) -> object:
        expected = self.kind.expected
        words = isinstance(self.kind, Text | Folder)
        text = node.text(expected) if words else node.scalar(expected)
        try:
            return self.kind.read(text)
        except UsageError as error:
            raise UsageError(f"{node.where}: {error.message}", error.hint) from None


_TAG = Text("a line of at most 200 characters")
_DEVICE = Text("auto, cpu, cuda:N or a GPU's UUID", r"auto|cpu|fake|cuda(:[0-9]{1,3})?|(GPU|MIG)-[0-9A-Za-z/-]{1,80}")

_BASELINE = Text("the name of a baseline", NAME)
_SIDE = Text("what the base is, such as python=PATH or env:NAME=VALUE", r"[^\x00-\x1f\x7f]{1,1000}")
_VERDICTS = Text("verdicts, such as regression,suspect")


def _judging(name: str, kind: Kind, default: object, words: str) -> Key:
    """A setting of comparing runs."""
    return Key(name, kind, default, words, project=True, judging=True)


_TABLE = (
    Key("device", _DEVICE, "auto", "auto, cuda:N, a GPU's UUID, or cpu"),
    Key("cache", Choice(CONDITIONS["cache"]), "cold", "state of the caches before each call", "conditions"),
    Key("load", Choice(CONDITIONS["load"]), "burst", "whether the device rests between samples", "conditions"),
    Key("data", Choice(CONDITIONS["data"]), "normal", "distribution of the inputs", "conditions"),
    Key("seed", Whole(0, 2**63 - 1), 0, "seed of the inputs", "conditions"),
    Key("samples", Whole(1, 10**6), None, "samples of each case, instead of stopping when steady", "budget"),
    Key("max_noise", Fraction(), 0.005, "stop when the median is known this well", "budget"),
    Key("max_time", Seconds(), None, "time for the run; the rest is skipped", "budget"),
    Key("case_time", Seconds(), 0.5, "time for the samples of one case", "budget"),
    Key("timeout", Seconds(), 120.0, "time after which a case is given up", "budget"),
    Key("timer", Choice(("auto", "cupti", "graph", "event", "host")), "auto", "the timer that takes the samples"),
    Key("quick", Switch(), False, "each axis's quick values, 0.2 s a case"),
    Key("ceilings", Choice(("stored", "measure", "none")), "stored", "where the roofs of this device come from"),
    Key("counters", Switch(), False, "count bytes, requests and instructions in a further pass, under ncu"),
    Key("energy", Switch(), False, "measure energy and the units' activity too, of calls back to back"),
    Key("in_process", Switch(), False, "measure in this process, without a worker"),
    Key("tags", _TAG, (), "a word kept with the run", many=True, long_flag="tag"),
    Key("results", Folder(), None, "the folder of run files", project=True),
    _judging("baseline", _BASELINE, None, "the baseline that runs are compared with"),
    _judging("margin", Fraction(), 0.03, "a change for the worse that does not matter"),
    _judging("margins", Fractions(), None, "the same for some suites or benchmarks"),
    _judging("fail_on", _VERDICTS, "regression,suspect,failed,missing", "the verdicts that fail a build"),
    _judging("host_mismatch", Choice(("error", "warn")), "error", "warn: compare rows of unlike devices too"),
    Key("base", _SIDE, (), "the base as it can be run now, as for ab", many=True, project=True, judging=True),
    _judging("confirm", Choice(("auto", "none")), "auto", "whether a check measures again what looks slower"),
    _judging("annotate", Choice(("github", "none", "auto")), "auto", "remarks beside the code on GitHub"),
    Key("plain", Switch(), False, "plain lines instead of the live view"),
    Key("no_plot", Switch(), False, "no plot under the table"),
    Key("quiet", Switch(), False, "results and errors only"),
    Key("verbose", Switch(), False, "more about what is done"),
    Key("no_color", Switch(), False, "no colour"),
    Key("debug", Switch(), False, "tracebacks and compiler logs"),
)

KEYS: Mapping[str, Key] = {key.name: key for key in _TABLE}
QUICK_CASE_TIME = 0.2
"""Seconds a case takes under --quick, unless somebody said otherwise."""
