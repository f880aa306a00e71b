"""Branches in a warp: the paths that its lanes take are executed one after the other, with the other lanes disabled.

CUDA C++ Programming Guide, "SIMT Architecture": "If threads of a warp diverge via a data-dependent conditional branch,
the warp executes each branch path taken, disabling threads that are not on that path." The cost is therefore the sum of
the lengths of the paths taken, however few lanes take one of them; full efficiency is one path.
"""

from __future__ import annotations

from collections.abc import Sequence


def warp(paths: Sequence[int], lengths: Sequence[int]) -> dict[str, float]:
    """What one warp executes whose lane i takes path `paths[i]`, of `lengths[paths[i]]` instructions.

    `instructions` are those issued by the warp; `threads_per_instruction` the lanes active in one, on average, of
    len(paths); `relative_time` the instructions over those of the longest path taken, had every lane taken it.
    ValueError where no instruction is left.
    """
    taken = set(paths)
    issued = sum(lengths[path] for path in taken)
    if not issued:
        raise ValueError("a warp that executes nothing takes no time")
    return {
        "instructions": issued,
        "threads_per_instruction": sum(lengths[path] for path in paths) / issued,
        "relative_time": issued / max(lengths[path] for path in taken),
    }
