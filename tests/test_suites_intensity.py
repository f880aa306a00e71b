"""The suite intensity: its kernels in the emulator and as counterparts on a CPU, and its two products."""

from __future__ import annotations

from typing import Any

import pytest
from machine import GPU, LIBRARY, SUITES, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench import check
from gpubench.errors import Skip, WrongResult
from gpubench.selfcheck import measure as selfcheck

H200 = GPU | {"name": "NVIDIA H200", "multiprocessors": 132}


@pytest.mark.parametrize("links", [1, 5, 8, 27])
@pytest.mark.parametrize("n", [4, 4 * 300])
def test_links_of_a_stream(cpu: Any, links: int, n: int) -> None:
    path = "intensity/repeated"
    workload = build(cpu, path, links=links, n=n)
    cpu.poison(workload.output)
    did = emulated(path, workload)
    judged(cpu, workload)
    assert 2 * did.fused == workload.flops
    assert workload.bytes == 2 * workload.output.nbytes
    as_emulated = doubles(workload.output)
    cpu.poison(workload.output)
    on_cpu(cpu, path, workload)
    judged(cpu, workload)
    assert (doubles(workload.output) == as_emulated).all()
    workload.output[-1] += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_a_link_too_few_is_found(cpu: Any) -> None:
    """Among the most links of all rows, by the check of that row."""
    workload = build(cpu, "intensity/repeated", links=1024, n=64)
    workload.output.copy_(workload.run.args[0].double() + 1023)
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("links", [3, 8, 17])
def test_links_in_registers(cpu: Any, monkeypatch: pytest.MonkeyPatch, links: int) -> None:
    path = "intensity/registers"
    monkeypatch.setitem(globals_of(path), "ROUNDS", 3)
    workload = build(cpu, path, links=links, blocks=1)
    cpu.poison(workload.output)
    did = emulated(path, workload)
    judged(cpu, workload)
    assert 2 * did.fused == workload.flops
    cpu.poison(workload.output)
    on_cpu(cpu, path, workload)
    judged(cpu, workload)


def test_the_sums_in_registers_are_exact(cpu: Any) -> None:
    checked = selfcheck.planned(selfcheck.bench(LIBRARY), "cuda").cases
    links = [case["links"] for case in SUITES["intensity"].benchmarks["registers"].cases("cuda")]
    most = max(*links, *(int(case.params["links"]) for case in checked if case.benchmark == "registers"))
    assert most == 840
    assert float(build(cpu, "intensity/registers", links=most, blocks=1).reference().max()) < 2**24


@pytest.mark.parametrize(("kind", "intensity"), [("dense", 64 / 6), ("sparse", 0.2)])
def test_products_on_either_side(cpu: Any, kind: str, intensity: float) -> None:
    workload = build(cpu, "intensity/product", kind=kind, n=64, rows=640, per_row=6)
    returned = workload.call()
    output = returned if workload.output is None else workload.output
    check.judge(cpu.compare(output, workload.reference()), workload)
    assert workload.flops / workload.bytes == pytest.approx(intensity, rel=0.01)
    output[-1] += 5
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(output, workload.reference()), workload)


def test_what_the_datasheet_says_of_an_intensity(cpu: Any) -> None:
    found = {k: build(cpu, "intensity/repeated", H200, links=k, n=4).prediction for k in (1, 1024)}
    assert [each["datasheet_bound"] for each in found.values()] == ["memory", "compute"]
    assert found[1]["datasheet_ridge"] == pytest.approx(67e12 / 4.8e12, rel=0.02)
    assert found[1]["intensity"] == 0.25
    assert build(cpu, "intensity/repeated", links=1, n=4).prediction == {"intensity": 0.25}
    with pytest.raises(Skip, match="no multiple of 4"):
        build(cpu, "intensity/repeated", links=1, n=6)


def test_default_rows() -> None:
    for kind, count in (("cuda", 17), ("cpu", 16)):
        assert sum(len(list(bench.cases(kind))) for bench in SUITES["intensity"].benchmarks.values()) == count
