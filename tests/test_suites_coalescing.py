"""The suite coalescing without a GPU: its kernels in the emulator, its analogues on the CPU, by brute force."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import emulator
import numpy as np
import pytest
from machine import FOLDER, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, WrongResult
from gpubench.workload import Kernel, Workload

TILE = 2048
SMALL = [
    *(("strided-read", {"stride": stride}) for stride in (1, 2, 8, 32, 64)),
    *(("strided-write", {"stride": stride}) for stride in (1, 8, 64)),
    *(("offset-copy", {"offset": offset}) for offset in (0, 1, 8, 31)),
    *(("permuted-copy", {"order": order}) for order in ("straight", "reversed", "shuffled", "broadcast")),
    *(("walk", {"along": along}) for along in ("row", "column")),
    *(("gather", {"window": window}) for window in ("identity", "32B", "128B", "4096B", "whole")),
    *(("tiles", {"width": width, "skew": skew}) for width in (8, 16, 32) for skew in (0, 1)),
]
PARAMS = [pytest.param(name, params, id=f"{name}-{'-'.join(map(str, params.values()))}") for name, params in SMALL]
ON_CPU = [point for point in PARAMS if point.values[0] in ("strided-read", "strided-write", "walk", "gather")]


WORDS = 2**17
"""Floats of a buffer here: the least of which a pass of stride 64 is whole tiles."""


@pytest.fixture(autouse=True)
def half_a_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals_of("coalescing/gather"), "WORDS", WORDS)


def small(cpu: Any, name: str, facts: dict[str, Any] | None = None, **params: Any) -> Workload:
    size = {"n": 320} if name == "walk" else {"mib": 1}
    return build(cpu, f"coalescing/{name}", facts, **params, **size)


def by_loops(name: str, params: dict[str, Any], workload: Workload) -> list[float]:
    """What the output should be, from the words of the docstring."""
    kernel = workload.run
    assert isinstance(kernel, Kernel)
    if name == "strided-write":
        return [3.0] * WORDS
    source = doubles(kernel.args[0])
    if name == "strided-read":
        stride = params["stride"]
        passes = [offset for phase in range(16) for offset in range(phase, stride, 16)]
        elements = np.concatenate([source[offset::stride] for offset in passes])
        assert len(set(passes)) == stride
        return [elements[first : first + TILE].sum() for first in range(0, WORDS, TILE)]
    if name == "offset-copy":
        return source[params["offset"] :].tolist()
    if name == "permuted-copy":
        lanes = {"straight": lambda i: i, "reversed": lambda i: 31 - i, "broadcast": lambda i: 0}.get(params["order"])
        assert lanes or sorted((13 * lane + 7) % 32 for lane in range(32)) == list(range(32))
        lanes = lanes or (lambda i: (13 * i + 7) % 32)
        return [source[i - i % 32 + lanes(i % 32)] for i in range(WORDS)]
    if name == "walk":
        rows = source if params["along"] == "row" else source.T
        return [rows[row, first : first + 64].sum() for first in range(0, 320, 64) for row in range(320)]
    if name == "gather":
        return source[np.asarray(kernel.args[1])].tolist()
    return [x for row in source for x in row[: params["width"]]]


@pytest.mark.parametrize(("name", "params"), PARAMS)
def test_a_kernel_and_its_reference_by_loops(cpu: Any, name: str, params: dict[str, Any]) -> None:
    workload = small(cpu, name, **params)
    wanted = np.array(by_loops(name, params, workload))
    np.testing.assert_allclose(doubles(workload.reference()).flatten(), wanted, rtol=1e-12, atol=1e-12)
    cpu.poison(workload.output)
    emulated(f"coalescing/{name}", workload)
    judged(cpu, workload)
    workload.output.view(-1)[-1] += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize(("name", "params"), ON_CPU)
def test_an_analogue_does_the_same(cpu: Any, name: str, params: dict[str, Any]) -> None:
    workload = small(cpu, name, cpu.facts(), **params)
    cpu.poison(workload.output)
    on_cpu(cpu, f"coalescing/{name}", workload)
    judged(cpu, workload)


@pytest.mark.parametrize("name", ["offset-copy", "permuted-copy", "tiles"])
def test_what_a_cpu_has_no_counterpart_of(cpu: Any, name: str) -> None:
    params = next(params for known, params in SMALL if known == name)
    with pytest.raises(Skip, match="no CPU counterpart"):
        on_cpu(cpu, f"coalescing/{name}", small(cpu, name, **params))


def test_every_row_of_a_table_has_the_same_useful_bytes(cpu: Any) -> None:
    seen: dict[str, set[int]] = {}
    for name, params in SMALL:
        if params.get("order") != "broadcast":
            seen.setdefault(name, set()).add(small(cpu, name, **params).bytes)
    assert all(len(found) == 1 for found in seen.values()), seen
    assert seen["strided-write"] == {4 * WORDS}
    assert seen["offset-copy"] == seen["permuted-copy"] == seen["tiles"] == {8 * WORDS}
    assert seen["gather"] == {12 * WORDS}


@pytest.mark.parametrize(
    ("name", "params", "read", "share", "control"),
    [
        ("strided-read", {"stride": 1}, 4, 1, True),
        ("strided-read", {"stride": 2}, 8, 1 / 2, False),
        ("strided-read", {"stride": 8}, 32, 1 / 8, False),
        ("strided-read", {"stride": 64}, 32, 1 / 8, False),
        ("offset-copy", {"offset": 0}, 4, 1, True),
        ("offset-copy", {"offset": 1}, 5, 8 / 9, False),
        ("offset-copy", {"offset": 8}, 4, 1, True),
        ("offset-copy", {"offset": 31}, 5, 8 / 9, False),
        ("permuted-copy", {"order": "straight"}, 4, 1, False),
        ("permuted-copy", {"order": "shuffled"}, 4, 1, True),
        ("permuted-copy", {"order": "broadcast"}, 1, 33 / 40, False),
        ("walk", {"along": "row"}, 32, 1 / 8, False),
        ("walk", {"along": "column"}, 4, 1, True),
        ("gather", {"window": "32B"}, 4, 1, True),
        ("tiles", {"width": 8, "skew": 0}, 4, 1, True),
        ("tiles", {"width": 8, "skew": 1}, 7.5, 8 / 11.5, False),
        ("tiles", {"width": 32, "skew": 1}, 4.875, 8 / 8.875, False),
    ],
)
def test_predictions_and_controls(
    cpu: Any, name: str, params: dict[str, Any], read: float, share: float, control: bool
) -> None:
    workload = small(cpu, name, **params)
    key = "gather_sectors_per_request" if name == "gather" else "read_sectors_per_request"
    assert workload.prediction[key] == read
    assert workload.prediction["useful_share"] == pytest.approx(share)
    assert bool(workload.labels) is control


def test_a_cpu_predicts_by_lines_and_walks_the_other_way(cpu: Any) -> None:
    on = cpu.facts()
    assert small(cpu, "strided-read", on, stride=8).prediction == {"useful_share": 1 / 8}
    assert small(cpu, "strided-read", on, stride=64).prediction == {"useful_share": 1 / 16}
    assert small(cpu, "walk", on, along="row").labels == {"control": "neighbours"}
    assert small(cpu, "walk", on, along="column").labels == {}


@pytest.mark.parametrize(
    ("name", "params", "why"),
    [
        ("strided-read", {"stride": 3}, "a stride is a power of two, not 3"),
        ("strided-read", {"stride": 1024}, "a pass of stride 1024 over 1 MiB is not whole tiles"),
        ("tiles", {"width": 24, "skew": 0}, "a row is 8, 16 or 32 floats, not 24"),
    ],
)
def test_sizes_that_do_not_fit_are_skipped(cpu: Any, name: str, params: dict[str, Any], why: str) -> None:
    with pytest.raises(Skip, match=why):
        small(cpu, name, **params)


@pytest.mark.parametrize("window", [8, 32, 1024, WORDS])
def test_a_gather_stays_in_its_windows_and_takes_every_element(cpu: Any, window: int) -> None:
    name = {8: "32B", 32: "128B", 1024: "4096B", WORDS: "whole"}[window]
    workload = small(cpu, "gather", window=name)
    assert isinstance(workload.run, Kernel)
    places = np.asarray(workload.run.args[1])
    assert (places // window == np.arange(WORDS) // window).all()
    assert (np.sort(places) == np.arange(WORDS)).all()
    assert (places != np.arange(WORDS)).mean() > 0.5


def test_a_copy_whose_tail_is_cut_is_found(cpu: Any, tmp_path: Path) -> None:
    text = (FOLDER / "coalescing.cu").read_text()
    broken = text.replace("if (i < n) y[i] = v[u];", "if (i + 32 < n) y[i] = v[u];")
    assert broken != text
    (tmp_path / "include").symlink_to(FOLDER / "include")
    (tmp_path / "coalescing.cu").write_text(broken)
    workload = small(cpu, "offset-copy", offset=1)
    cpu.poison(workload.output)
    emulator.emulate(workload.run, tmp_path, ("offset_copy",))
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_the_constants_of_the_kernels_are_those_of_the_suite() -> None:
    known = globals_of("coalescing/gather")
    assert re.search(r"^#define UNROLL (\d+)$", (FOLDER / "coalescing.cu").read_text(), re.M)[1] == str(known["UNROLL"])
    assert known["TILE"] == TILE
