"""CUDA_VISIBLE_DEVICES as CUDA reads it. Pure: which GPUs a mask lets through, in which order, and why no more.

As seen of drivers: numbers are read as C's strtoul does (" 1", "+1" and "1;0" are 1, "0x1" is 0), the list ends without
a word at the first entry that names nothing, and one that names a GPU twice lets none through.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

NAME = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Visible:
    """What a mask lets through, in CUDA's order: numbers of GPUs, or UUIDs in full where they are known.

    A number is CUDA's own and no index of NVML's. `reason` says why the list ends early, or why it is empty.
    """

    entries: tuple[int | str, ...]
    reason: str | None = None


def visible(mask: str, uuids: Sequence[str] = ()) -> Visible:
    """Read a mask. `uuids` are those of all GPUs and MIG instances here, as far as they are known: without them no
    number is too high, and a UUID is taken as it is written."""
    if not mask.strip():
        return Visible((), "it is empty")
    kind = next((prefix for prefix in ("GPU-", "MIG-") if mask.startswith(prefix)), "")
    entries: list[int | str] = []
    for text in mask.split(","):
        found = _uuid(text.strip(), kind, uuids) if kind else _number(text, uuids)
        if isinstance(found, _Refusal):
            return Visible(tuple(entries), found.words)
        if found in entries:
            return Visible((), f"it names {text.strip()} twice")
        entries.append(found)
    if kind == "MIG-" and len(entries) > 1:
        return Visible(tuple(entries[:1]), "a process can use one MIG instance")
    return Visible(tuple(entries))


@dataclass(frozen=True)
class _Refusal:
    words: str


def _number(text: str, uuids: Sequence[str]) -> int | _Refusal:
    read = re.match(r"\s*([+-]?\d+)", text)
    if read is None:
        return _Refusal(f"{text.strip()!r} is no number" if text.strip() else "an empty entry ends it")
    number, gpus = int(read[1]), [uuid for uuid in uuids if not uuid.startswith("MIG-")]
    if number < 0:
        return _Refusal(f"{number} ends it")
    if gpus and number >= len(gpus):
        there = "one GPU, number 0" if len(gpus) == 1 else f"{len(gpus)} GPUs, numbers 0 to {len(gpus) - 1}"
        return _Refusal(f"there is no GPU {number} ({there})")
    return number


def _uuid(text: str, kind: str, uuids: Sequence[str]) -> str | _Refusal:
    if not text.startswith(kind):
        return _Refusal(f"{text!r} is no UUID that begins with {kind}" if text else "an empty entry ends it")
    if not uuids or text.startswith("MIG-GPU-"):  # the older name of an instance: GPU, GPU instance, compute instance
        return text
    fitting = [uuid for uuid in uuids if uuid.startswith(text)]
    if len(fitting) != 1:
        what = "MIG instance" if kind == "MIG-" else "GPU"
        return _Refusal(f"{text} fits {len(fitting)} {what}s" if fitting else f"no {what} here is {text}")
    return fitting[0]


def mask_words(mask: str | None, uuids: Sequence[str]) -> str | None:
    """One line where a mask hides something; None where there is no mask or it shows every GPU."""
    if mask is None:
        return None
    seen, gpus = visible(mask, uuids), [uuid for uuid in uuids if uuid.startswith("GPU-")]
    if seen.reason is not None:
        return f"{NAME} is {mask!r}: {seen.reason}"
    if len(seen.entries) < len(gpus):
        return f"{NAME} is {mask!r}: it shows {len(seen.entries)} of {len(gpus)} GPUs"
    return None
