"""Kernels that a profiler saw beside those that the timer saw: by name and grid, with their number."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpubench.profiling.rawpage import Counted
from gpubench.result import KernelSeen

Identity = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Match:
    """The two side by side. `recorded` has for each kernel that was counted the one of the record that it is, None
    where the record lacks it; `counted` and `timed` are the numbers of each, empty where nobody saw what was timed."""

    recorded: list[KernelSeen | None] = field(default_factory=list)
    counted: Tally[Identity] = field(default_factory=Tally)
    timed: Tally[Identity] = field(default_factory=Tally)

    @property
    def known(self) -> bool:
        """Whether the record says which kernels a call has."""
        return bool(self.timed)

    @property
    def first_difference(self) -> str | None:
        """The first kernel of which one side has more, in words; None where they agree, or cannot be told to differ."""
        if not self.known or self.counted == self.timed:
            return None
        more = self.counted - self.timed
        other = next(iter(more or (self.timed - self.counted)))
        return f"{other[0]} with grid {list(other[1])} was only {'counted' if other in more else 'timed'}"

    @property
    def strangers(self) -> bool:
        """Whether no kernel of one side is among the other's."""
        return self.known and not self.counted & self.timed

    def differences(self) -> Iterator[str]:
        """A line for each kernel of which one side has more."""
        for kernel in self.counted | self.timed if self.known else ():
            here, there = self.counted[kernel], self.timed[kernel]
            if here != there:
                yield f"{_words(kernel)}: {_times(here)} a call here, {_times(there)} in the record"


def match(counted: Sequence[Counted], seen: Sequence[KernelSeen]) -> Match:
    """Hold the kernels that were counted against a record's, of which copies and sets are none."""
    timed = [kernel for kernel in seen if kernel.kind == "kernel"]
    if not timed:
        return Match([None] * len(counted))
    by_identity: dict[Identity, KernelSeen] = {}
    expected: Tally[Identity] = Tally()
    for kernel in timed:  # several whose names differ in template arguments only are one here
        identity = base_name(kernel.name), _tuple(kernel.grid)
        by_identity.setdefault(identity, kernel)
        expected[identity] += kernel.count
    found = [(base_name(kernel.name), _tuple(kernel.grid)) for kernel in counted]
    return Match([by_identity.get(identity) for identity in found], Tally(found), expected)


def base_name(name: str) -> str:
    """A kernel's own name, without return type, namespaces, template arguments and parameters.

    Two tools that demangle one symbol do not write it alike; this part they do.
    """
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", name)
    words = re.split(r"[<(]", plain, maxsplit=1)[0].split()
    return words[-1].split("::")[-1] if words else name


def _tuple(grid: Sequence[int] | None) -> tuple[int, ...]:
    return tuple(grid or ())


def _words(kernel: Identity) -> str:
    name, grid = kernel
    return f"{name} ({'×'.join(map(str, grid))})" if grid else name


def _times(count: int) -> str:
    return f"{count} time" if count == 1 else f"{count} times"
