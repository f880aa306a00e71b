"""Waves: a grid of equal blocks runs in as many turns as it takes to give every block a place.

ceil(blocks / slots) turns, with slots = multiprocessors × blocks a multiprocessor holds (NVIDIA: "Matrix Multiplication
Background User's Guide", "Wave Quantization"). A block more than a whole number of waves costs a wave.
"""

from __future__ import annotations

from math import ceil


def waves(blocks: int, slots: int) -> int:
    """Turns that a grid of `blocks` takes on `slots` places."""
    return ceil(blocks / slots)


def last(blocks: int, slots: int) -> int:
    """Blocks of the last wave: 1 to slots."""
    return (blocks - 1) % slots + 1


def figures(blocks: int, slots: int) -> dict[str, float]:
    """The waves of a grid, and the share of places that is empty: over the whole run, and in the last wave."""
    turns = waves(blocks, slots)
    return {
        "blocks": blocks,
        "slots": slots,
        "waves": turns,
        "idle_share": 1 - blocks / (turns * slots),
        "idle_share_last_wave": 1 - last(blocks, slots) / slots,
    }
