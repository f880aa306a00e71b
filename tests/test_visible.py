"""CUDA_VISIBLE_DEVICES, against what a driver did with the same masks on a host of two GPUs (INPUTS O05, O06)."""

from __future__ import annotations

import pytest

from gpubench.devices.visible import Visible, mask_words, visible

A, B = "GPU-eaf6d152-2678-8cf1-1843-df8b51f00cb1", "GPU-25553e39-6d93-bc00-b1da-0b68261a374e"
TWO = (A, B)
M0, M1 = "MIG-89c850dc-3a47-5e3b-b1b7-4ea63d7a1d0d", "MIG-1b2c3d4e-0000-5e3b-b1b7-4ea63d7a1d0d"


@pytest.mark.parametrize(
    ("mask", "entries", "reason"),
    [
        ("0", (0,), None),
        ("1,0", (1, 0), None),
        ("1, 0", (1, 0), None),
        (" 1", (1,), None),
        ("+1", (1,), None),
        ("1gpu", (1,), None),
        ("1;0", (1,), None),
        ("0x1", (0,), None),
        ("0,,1", (0,), "an empty entry ends it"),
        ("0,", (0,), "an empty entry ends it"),
        ("0,-1,1", (0,), "-1 ends it"),
        ("-1", (), "-1 ends it"),
        ("", (), "it is empty"),
        ("  ", (), "it is empty"),
        ("9", (), "there is no GPU 9 (2 GPUs, numbers 0 to 1)"),
        ("0,9,1", (0,), "there is no GPU 9 (2 GPUs, numbers 0 to 1)"),
        ("abc", (), "'abc' is no number"),
        ("0,abc,1", (0,), "'abc' is no number"),
        ("0,0", (), "it names 0 twice"),
        ("0,0,1", (), "it names 0 twice"),
        (B, (B,), None),
        ("GPU-25553e39", (B,), None),
        (f"{B},{A}", (B, A), None),
        (f"{A},{A}", (), f"it names {A} twice"),
        (f"GPU-eaf,{A}", (), f"it names {A} twice"),
        ("GPU-", (), "GPU- fits 2 GPUs"),
        ("GPU-8932f937", (), "no GPU here is GPU-8932f937"),
        (f"{B},0", (B,), "'0' is no UUID that begins with GPU-"),
        (f"{B},", (B,), "an empty entry ends it"),
        (f"0,{B}", (0,), f"{B!r} is no number"),
        (f"gpu-{B[4:]}", (), f"'gpu-{B[4:]}' is no number"),
        ("MIG-89c850dc", (), "no MIG instance here is MIG-89c850dc"),
    ],
)
def test_a_mask_on_a_host_of_two_gpus(mask: str, entries: tuple[int | str, ...], reason: str | None) -> None:
    assert visible(mask, TWO) == Visible(entries, reason)


@pytest.mark.parametrize(
    ("mask", "entries", "reason"),
    [
        ("2", (2,), None),
        ("3,1", (3, 1), None),
        ("0,9,1", (0, 9, 1), None),
        ("GPU-8932f937", ("GPU-8932f937",), None),
        ("MIG-89c850dc", ("MIG-89c850dc",), None),
        ("GPU-89,GPU-89", (), "it names GPU-89 twice"),
        ("-1", (), "-1 ends it"),
    ],
)
def test_a_mask_where_the_gpus_are_not_known(mask: str, entries: tuple[int | str, ...], reason: str | None) -> None:
    assert visible(mask) == Visible(entries, reason)


@pytest.mark.parametrize(
    ("mask", "entries", "reason"),
    [
        (M0, (M0,), None),
        ("MIG-89c", (M0,), None),
        (f"{M1},{M0}", (M1,), "a process can use one MIG instance"),
        ("MIG-GPU-eaf6d152/7/0", ("MIG-GPU-eaf6d152/7/0",), None),
        ("MIG-", (), "MIG- fits 2 MIG instances"),
        ("1", (1,), None),
        ("2", (), "there is no GPU 2 (2 GPUs, numbers 0 to 1)"),
    ],
)
def test_instances_are_named_but_not_numbered(mask: str, entries: tuple[int | str, ...], reason: str | None) -> None:
    assert visible(mask, (A, M0, M1, B)) == Visible(entries, reason)


def test_one_gpu_is_said_in_the_singular() -> None:
    assert visible("1", [A]).reason == "there is no GPU 1 (one GPU, number 0)"


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (None, None),
        ("0,1", None),
        (f"{B},{A}", None),
        ("1", "CUDA_VISIBLE_DEVICES is '1': it shows 1 of 2 GPUs"),
        ("0,,1", "CUDA_VISIBLE_DEVICES is '0,,1': an empty entry ends it"),
        ("", "CUDA_VISIBLE_DEVICES is '': it is empty"),
    ],
)
def test_what_a_mask_hides_in_words(mask: str | None, words: str | None) -> None:
    assert mask_words(mask, TWO) == words
