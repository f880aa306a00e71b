"""The claims in words, the lecture's and what an expert would add: `claims.yaml` beside the suites, read strictly.

What a claim says, whether that is right, where it stands, how it is tested and by which suite. How a run is judged is
code, the rules in the suites; but for a summary, which names the claims that it is drawn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from gpubench import yamlfile
from gpubench.errors import UsageError
from gpubench.node import Node

Right = Literal["true", "partly", "false"]

SHORT = 44
"""Most characters of a claim's short form: what a table of 80 columns shows without much folding."""
TEXTS = ("section", "short", "claim", "source", "experiment", "rule", "control")
"""Keys that hold a sentence or a name; the last three only of a claim that is tested."""


@dataclass(frozen=True)
class Statement:
    """One claim. `corrected` is what holds instead, where the lecture errs.

    `suite` and `benchmarks` measure it, and `run` are the words of the command that does; or it holds where of each of
    its `families` one claim holds at least; or `untested` says why nothing can settle it.
    """

    id: str
    section: str
    short: str
    claim: str
    right: Right
    source: str
    corrected: str | None = None
    experiment: str = ""
    rule: str = ""
    control: str = ""
    suite: str | None = None
    benchmarks: tuple[str, ...] = ()
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    run: str = ""
    untested: str | None = None

    @property
    def of_lecture(self) -> bool:
        """Whether the lecture makes it: C01, …; an expert would add the others: X01, …"""
        return self.id.startswith("C")

    @property
    def command(self) -> str:
        """What to type for the rows that its rule needs."""
        return f"gpubench run {self.run or self.suite}"


def load(path: Path) -> dict[str, Statement]:
    """The claims of a file by id, in its order. UsageError, with file and line, for anything that does not fit."""
    entries = yamlfile.load(path).mapping("a mapping of claims, such as C01: {…}")
    found = {name: _statement(name, node) for name, node in entries.items()}
    for name, node in entries.items():
        for drawn_from in (each for ids in found[name].families.values() for each in ids):
            if drawn_from not in found or found[drawn_from].suite is None:
                raise UsageError(f"{node.where}: from names {drawn_from}, which no suite settles")
    return found


_KNOWN = (*TEXTS, "right", "corrected", "suite", "benchmarks", "from", "run", "none")


def _statement(name: str, node: Node) -> Statement:
    keys = node.mapping("a mapping of claim, right, source, …", _KNOWN)
    right = _right(node, keys)
    untested = keys["none"].text("why it cannot be tested") if "none" in keys else None
    if len({"suite", "from", "none"} & keys.keys()) != 1:
        hint = "suite: NAME; or from: {family: [claims]}; or none: why it is not testable"
        raise UsageError(f"{node.where}: expected either suite, from or none", hint)
    needed = TEXTS if untested is None else TEXTS[:4]
    texts = {key: _text(node, keys, key) for key in TEXTS if key in needed or key in keys}
    if len(texts["short"]) > SHORT:
        raise UsageError(f"{keys['short'].where} has {len(texts['short'])} characters; at most {SHORT}")
    if (right == "true") == ("corrected" in keys):
        raise UsageError(f"{node.where}: corrected goes with right: partly or false, and with nothing else")
    return Statement(
        id=name,
        right=right,
        corrected=_text(node, keys, "corrected") if "corrected" in keys else None,
        suite=keys["suite"].text("a suite") if "suite" in keys else None,
        benchmarks=tuple(each.text("a benchmark") for each in keys["benchmarks"].items())
        if "benchmarks" in keys
        else (),
        families=_families(keys["from"]) if "from" in keys else {},
        run=_text(node, keys, "run") if "run" in keys or "from" in keys else "",
        untested=untested,
        **texts,
    )


def _right(node: Node, keys: Mapping[str, Node]) -> Right:
    if "right" not in keys:
        raise UsageError(f"{node.where} has no right", "right: true, partly or false")
    found = keys["right"].scalar("true, partly or false")
    for word in get_args(Right):
        if found == word:
            return word  # type: ignore[no-any-return]
    raise keys["right"].error("true, partly or false")


def _families(node: Node) -> dict[str, tuple[str, ...]]:
    """Of each family the claims that stand for it, one at least."""
    expected = "a mapping of families to claims, such as {tiles: [C50, C51]}"
    found = {
        name: tuple(each.text("a claim, such as C50") for each in ids.items())
        for name, ids in node.mapping(expected).items()
    }
    if not found or not all(found.values()):
        raise node.error(f"{expected}, and a claim in each")
    return found


def _text(node: Node, keys: Mapping[str, Node], key: str) -> str:
    if key not in keys:
        raise UsageError(f"{node.where} has no {key}", f"{key}: a sentence")
    return keys[key].text("a sentence")
