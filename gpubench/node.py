"""One value of a configuration file: its text exactly as written, the key it belongs to and the line it stands on.

No value is guessed at. `1e-3`, `off`, `010` and `1:30` stay text until whoever knows what the key holds reads them, so
the file format's own ideas of numbers, dates and truth never come between a user and a setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean

_TRUTH = re.compile(r"true|false|yes|no|on|off", re.IGNORECASE)
_NULL = re.compile(r"|~|null", re.IGNORECASE)

Value = str | tuple["Node", ...] | Mapping[str, "Node"]


@dataclass(frozen=True)
class Node:
    """A scalar (text), a list or a mapping. `key` is dotted, from the top of the file; `line` is None where unknown.

    `quoted` tells `"off"` from `off`.
    """

    file: str
    key: str
    line: int | None
    value: Value
    quoted: bool = False

    @property
    def where(self) -> str:
        """`plan.yaml:3: budget.max_time`: what a message about it begins with."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}" if self.key else place

    @property
    def empty(self) -> bool:
        """Whether nothing was written: an empty place, `~` or `null`."""
        return isinstance(self.value, str) and not self.quoted and bool(_NULL.fullmatch(self.value))

    def error(self, expected: str, hint: str = "") -> UsageError:
        """The error that says what was expected here and what stands here."""
        if self.empty:
            found = "is empty"
        elif isinstance(self.value, str):
            shown = self.value if len(self.value) <= 40 else self.value[:37] + "..."
            found = f"is {shown!r}"
        else:
            found = "is a list" if isinstance(self.value, tuple) else "is a mapping"
        return UsageError(f"{self.where} {found}; expected {expected}", hint)

    def mapping(self, expected: str, known: Iterable[str] | None = None) -> Mapping[str, Node]:
        """Its keys and their values; with `known`, any other key is an error with the nearest name."""
        if not isinstance(self.value, Mapping):
            raise self.error(expected)
        if known is not None:
            known = list(known)
            for name, node in self.value.items():
                if name not in known:
                    near = did_you_mean(name, known)
                    raise UsageError(f"{node.where} is not a known key{near}", f"known here: {', '.join(known)}")
        return self.value

    def items(self) -> tuple[Node, ...]:
        """Its values: those of a list, or itself where it is a single one."""
        if isinstance(self.value, tuple):
            return self.value
        return (self,)

    def scalar(self, expected: str) -> str:
        """Its text; an empty value, a list and a mapping are errors."""
        if not isinstance(self.value, str) or self.empty:
            raise self.error(expected)
        return self.value

    def text(self, expected: str) -> str:
        """Its text where a word is wanted: one that YAML reads as true or false must be quoted to be meant."""
        text = self.scalar(expected)
        if not self.quoted and _TRUTH.fullmatch(text):
            raise self.error(expected, f'YAML reads it as true or false; if the word is meant, quote it: "{text}"')
        return text
