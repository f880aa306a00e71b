"""Every row of every reference run is explained, and what is said of it is so by the record alone, worked out again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gpubench.discovery import Library
from gpubench.explain import limits
from gpubench.explain.fitted import Fitted
from gpubench.explain.rows import Explanation
from gpubench.report import explain as report
from gpubench.result import Record, Run
from gpubench.store.folder import read_run

ROOT = Path(__file__).parents[1]
RUNS = sorted((ROOT / "results" / "reference" / "h200").glob("*.json.gz"))
LIMITS = {
    "no figure", "trap", "start-bound", "product", "compute-bound", "bandwidth-bound", "L2-resident",
    "instruction-bound", "neither roof", "own stopwatch",
}  # fmt: skip
"""Reasons of which a row has one; latency-bound may stand beside the roofs that it keeps a row from."""


@cache
def explained(path: Path) -> tuple[Run, list[tuple[Record, Explanation]]]:
    run = read_run(path)
    library, fitted = Library(ROOT / "suites"), Fitted(run)
    own = {kernel.name for suite in library.suites().values() for kernel in suite.kernels}
    return run, [(record, report.explanation(run, record, own, fitted)) for record in run.records]


def reasons(found: Explanation) -> dict[str, str]:
    return {reason.kind: reason.words for reason in found.reasons}


each_run = pytest.mark.parametrize("path", RUNS, ids=[path.name.partition(".")[0] for path in RUNS])


@each_run
def test_every_row_has_one_limit_and_few_have_none(path: Path) -> None:
    _, rows = explained(path)
    silent = []
    for record, found in rows:
        named = [reason.kind for reason in found.reasons if reason.kind in LIMITS]
        assert len(named) <= 1, (record.id, named)
        if not named and "latency-bound" not in reasons(found):
            silent.append(record.id)
    assert len(silent) <= max(1, len(rows) // 100), silent


@each_run
def test_the_words_are_sentences_with_figures_in_them(path: Path) -> None:
    for record, found in explained(path)[1]:
        for text in [reason.words for reason in found.reasons] + list(found.changes):
            assert text, record.id
            assert text == text.strip(), text
            if record.summary is not None:
                assert not re.search(r"nan|inf\b|None|[{}]| 0\.0 %|-0 |(?<![\d.])0 ns|  ", text), (record.id, text)
        percents = [int(share) for share in re.findall(r"(\d+) % of", report.paragraph(found))]
        assert max(percents, default=0) <= 110, (record.id, report.paragraph(found))


@each_run
def test_counters_are_named_only_where_there_are_some(path: Path) -> None:
    for record, found in explained(path)[1]:
        text = report.paragraph(found)
        if not record.counters.get("instructions"):
            assert not re.search(r"\(counted\)|DRAM moved|sectors that the L2", text), (record.id, text)


def median(record: Record) -> float:
    assert record.summary is not None
    return record.summary.median_ns


def moved(record: Record) -> float:
    return float(record.counters["dram_bytes_read"] + record.counters["dram_bytes_write"])


def clock(record: Record) -> float:
    known = sorted(mhz for mhz in record.samples.sm_mhz if mhz)
    return known[len(known) // 2]


def lanes(record: Record) -> float:
    return float(record.counters.get("threads_per_instruction") or record.prediction["threads_per_instruction"])


SO: dict[str, Callable[[Record, Run], bool]] = {
    "start-bound": lambda row, _: median(row) < 3 * (row.timer.empty_ns or 0) if row.timer else False,
    "launch-bound": lambda row, _: sorted(row.call_ns)[len(row.call_ns) // 2] > 0.99 * median(row),
    "trap": lambda row, _: row.params["way"] == "wrong",
    "no figure": lambda row, _: row.summary is None or row.status != "ok",
    "more bytes": lambda row, _: row.work is not None and moved(row) > 1.1 * row.work.bytes > 0,
    "divergent": lambda row, _: lanes(row) < 31.1,
    "idle lanes": lambda row, _: any(kernel.block and kernel.block[0] % 32 for kernel in row.kernels),
    "clock": lambda row, run: "sm_clock" in row.telemetry or clock(row) < run.device["sm_mhz_max"] - 15,
    "may spill": lambda row, _: any(kernel.registers == 255 for kernel in row.kernels),
    "L2-resident": lambda row, _: row.conditions.cache == "hot" or (row.work is not None and row.work.level == "L2"),
    "compiled": lambda row, _: row.params["by"] == "compiled" and bool(row.compile_ns),
    "recompiled": lambda row, _: row.params["by"] == "compiled" and bool(row.compile_ns),
    "kernels": lambda row, _: sum(kernel.count for kernel in row.kernels if kernel.kind == "kernel") > 1,
    "gaps": lambda row, _: sum(kernel.ns or 0 for kernel in row.kernels) < 0.9 * median(row),
    "uncoalesced": lambda row, _: float(row.counters.get("sectors_per_load_request") or 99) > 4.4,
    "bank conflicts": lambda row, _: row.suite == "bank-conflicts" and row.prediction["ways"] > 1,
    "one address": lambda row, _: row.suite == "atomics" and row.prediction["serial"] > 10_000,
    "latency-bound": lambda row, _: bool(row.metric("latency")) or "knee_bytes" in row.prediction,
    "misaligned": lambda row, _: row.labels["misaligned"] != "none",
    "waves": lambda row, _: row.prediction["idle_share"] > 0.1,
    "own stopwatch": lambda row, _: row.timer is not None and row.timer.name == "own",
    "in doubt": lambda row, _: bool({"noisy", "implausible", "analogue"} & {*row.flags}),
}  # fmt: skip
"""What a record must show for a reason of that kind, worked out anew."""


@each_run
def test_what_is_said_is_so(path: Path) -> None:
    run, rows = explained(path)
    for record, found in rows:
        for kind, words in reasons(found).items():
            assert kind not in SO or SO[kind](record, run), (record.id, kind, words)


@each_run
def test_what_is_so_is_said(path: Path) -> None:
    """The other way round, of what needs no judgement."""
    for record, found in explained(path)[1]:
        if record.summary is None or record.params.get("way") == "wrong":
            continue
        kinds = {reason.kind for reason in found.reasons}
        if record.timer is not None and record.timer.name != "own":
            slow = sorted(record.call_ns)[len(record.call_ns) // 2] > 1.01 * median(record)
            assert ("launch-bound" in kinds) >= slow, record.id
        assert ("in doubt" in kinds) >= ("noisy" in record.flags), record.id
        assert ("clock" in kinds) >= ("sm_clock" in record.telemetry), record.id
        if "start-bound" not in kinds and record.suite in ("divergence", "bank-conflicts", "coalescing"):
            predicted = record.prediction
            assert ("bank conflicts" in kinds) == (predicted.get("ways", 1) > 1), record.id
            branches = predicted.get("threads_per_instruction", 32) < 31
            assert ("divergent" in kinds) >= (branches and record.benchmark != "memory-bound"), record.id
            assert ("uncoalesced" in kinds) >= (predicted.get("read_sectors_per_request", 4) > 4.5), record.id


@each_run
def test_a_share_of_a_roof_is_that_of_the_row(path: Path) -> None:
    run, rows = explained(path)
    roofs = {ceiling.name: ceiling for ceiling in run.ceilings}
    seen = 0
    for record, found in rows:
        for kind, words in reasons(found).items():
            said = re.match(r"(\d+) % of ([^,:;]+?)( by the bytes that DRAM moved)?(?= at |[,:;]|$)", words)
            if kind not in ("compute-bound", "bandwidth-bound") or said is None or said[2] not in roofs:
                continue
            roof, work = roofs[said[2]], record.work
            assert work is not None
            amount = work.flops if roof.kind == "compute" else moved(record) if said[3] else work.bytes
            assert round(100 * amount / median(record) * 1e9 / roof.value) == int(said[1]), (record.id, words)
            assert int(said[1]) >= 70
            seen += 1
    assert seen or not roofs or path.name.startswith("matmul-sweep")


@each_run
def test_a_neighbour_is_better_and_measured_alike(path: Path) -> None:
    for record, found in explained(path)[1]:
        other = found.neighbour
        if other is None:
            continue
        assert other.record.conditions == record.conditions
        assert (other.record.suite, other.record.benchmark) == (record.suite, record.benchmark)
        mine, best = record.primary, other.record.primary
        assert mine is not None
        assert best is not None
        ratio = best.value / mine.value if mine.direction == "higher" else mine.value / best.value
        assert ratio == pytest.approx(other.times)
        assert ratio >= 1.03
        assert record.params.get("way") != "wrong"


def test_the_page_counts_what_is_not_explained() -> None:
    said = [report.paragraph(found) for path in RUNS for _, found in explained(path)[1]]
    silent, missed = (sum(words in text for text in said) for words in (limits.SILENT, "the model misses this row"))
    nothing = sum("says more than its figures" in text for text in said)
    page = " ".join((ROOT / "docs/explain.md").read_text(encoding="utf-8").split())
    counted = f"Of the {len(said)} rows of the reference runs {silent} are near no roof"
    assert counted in page
    assert f"and {nothing} has nothing to say; of {missed} products, most of a few microseconds" in page


def test_nearly_every_kind_of_reason_is_met_with() -> None:
    met = Counter(kind for path in RUNS for _, found in explained(path)[1] for kind in reasons(found))
    assert SO.keys() | LIMITS <= met.keys(), (SO.keys() | LIMITS) - met.keys()
