from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import builders
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.result import (
    SCHEMA,
    Ceiling,
    Check,
    Conditions,
    Flag,
    KernelSeen,
    Metric,
    Record,
    RecordStatus,
    Run,
    Samples,
    Summary,
    Timer,
    Work,
)
from gpubench.store import jsonfile, runfile
from gpubench.suite import record_id

GOLDEN = Path(__file__).parent / "golden" / "run-1.json"
OLDER = GOLDEN.with_name("run-1-without-kernel-times.json")
"""As files were before kernels had times."""


def refusal(data: bytes | dict[str, Any]) -> str:
    """The message of the UsageError that decoding ends in, which must be one line."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    with pytest.raises(UsageError) as caught:
        runfile.decode(text, "run.json")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def golden() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_bytes())
    return content


def test_the_golden_file_is_read_and_written_alike() -> None:
    run = runfile.decode(GOLDEN.read_bytes(), "golden")
    assert {record.status for record in run.records} == set(get_args(RecordStatus))
    assert jsonfile.loads(runfile.encode(run), "again") == golden()
    assert list(runfile.to_json(run).items()) == list(golden().items())
    assert run.records[0].samples.sm_mhz[3] is None
    assert run.records[-1].conditions == Conditions("hot", "sustained", "zeros")


def test_the_golden_file_keeps_to_the_schema() -> None:
    schema = runfile.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(golden())] == []
    for spoil in (wrong_schema, unknown_key, unknown_status, text_for_number, missing_key):
        content = golden()
        spoil(content)
        assert not validator.is_valid(content), spoil.__name__


def wrong_schema(content: dict[str, Any]) -> None:
    content["schema"] = "gpubench.run/2"


def unknown_key(content: dict[str, Any]) -> None:
    content["records"][0]["sample"] = {}


def unknown_status(content: dict[str, Any]) -> None:
    content["records"][0]["status"] = "fine"


def text_for_number(content: dict[str, Any]) -> None:
    content["records"][0]["summary"]["median_ns"] = "1.2"


def missing_key(content: dict[str, Any]) -> None:
    del content["started_at"]


def test_one_line_per_record_and_schema_first() -> None:
    lines = GOLDEN.read_text().splitlines()
    assert lines[0] == f'{{"schema":"{SCHEMA}",'
    assert sum(line.startswith('{"id":') for line in lines) == len(golden()["records"])
    assert runfile.encode(builders.make_run([])).endswith(b'"records":[]}\n')


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "run.json: not a gpubench run file: it holds a list, expected an object with the key schema"),
        (b"null", "not a gpubench run file: it holds null"),
        (b'"x"', "not a gpubench run file: it holds text"),
        (b"true", "not a gpubench run file: it holds true or false"),
        (b"{}", 'not a gpubench run file: it has no key schema (expected "schema": "gpubench.run/1")'),
        (b'{"schema": "pyperf/1"}', 'its schema is "pyperf/1", expected gpubench.run/1'),
        (b'{"schema": "gpubench.run/01"}', "not a gpubench run file"),
        (b'{"schema": "gpubench.run/1\\n"}', "not a gpubench run file"),
        (b'{"schema": 1}', "its schema is 1, expected gpubench.run/1"),
        (b'{"schema": "gpubench.run/2", "new": NaN}', "NaN is not a JSON number"),
        (b'{"schema": "gpubench.run/2", "new": 1}', "written by a newer gpubench: its schema is gpubench.run/2"),
        (b'{"schema": "gpubench.run/2"}', "pip install --upgrade gpubench-suite"),
        (b"", "run.json: is empty"),
        (GOLDEN.read_bytes()[:3000], "ends in the middle"),
        (b'{"schema": "gpubench.run/1"}', "run.json: run_id: is missing"),
        (b'{"schema": "gpubench.run/1", "tool": ' + b'{"a":' * 500 + b"1" + b"}" * 501, "is nested too deeply"),
    ],
)
def test_what_is_no_run_file(data: bytes, words: str) -> None:
    assert words in refusal(data)


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    """Put the last of `path` where the steps before it lead."""

    def spoil(content: dict[str, Any]) -> None:
        place: Any = content
        for step in path[:-2]:
            place = place[step]
        place[path[-2]] = path[-1]

    return spoil


def _repeat(content: dict[str, Any]) -> None:
    content["records"].append(copy.deepcopy(content["records"][0]))


def _number_for_failed(content: dict[str, Any]) -> None:
    content["records"][1]["summary"] = content["records"][0]["summary"]


def _metric_for_failed(content: dict[str, Any]) -> None:
    content["records"][1]["metrics"] = content["records"][0]["metrics"]


def _two_primary(content: dict[str, Any]) -> None:
    for metric in content["records"][0]["metrics"][:2]:
        metric["primary"] = True


def _same_metric(content: dict[str, Any]) -> None:
    content["records"][0]["metrics"][2]["name"] = content["records"][0]["metrics"][0]["name"]


FIRST = ("records", 0)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_set(*FIRST, "summary", "median_ns", "abc"), 'records[0].summary.median_ns: expected an integer, got "abc"'),
        (_set(*FIRST, "summary", "median_ns", "1.2"), 'records[0].summary.median_ns: expected an integer, got "1.2"'),
        (_set(*FIRST, "summary", "median_ns", None), "records[0].summary.median_ns: expected an integer, got null"),
        (_set(*FIRST, "summary", "median_ns", 1.5), "records[0].summary.median_ns: expected an integer, got 1.5"),
        (_set(*FIRST, "summary", "median_ns", 2.0), "records[0].summary.median_ns: expected an integer, got 2.0"),
        (_set(*FIRST, "summary", "median_ns", True), "records[0].summary.median_ns: expected an integer, got true"),
        (_set(*FIRST, "summary", "median_ns", -1), "records[0].summary.median_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "summary", "low_ns", -1), "records[0].summary.low_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "setup_ns", -1), "records[0].setup_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "check_ns", -1), "records[0].check_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "compile_ns", -1), "records[0].compile_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "work", "flops", -1), "records[0].work.flops: expected 0 or more, got -1"),
        (_set(*FIRST, "work", "bytes", -1), "records[0].work.bytes: expected 0 or more, got -1"),
        (_set(*FIRST, "summary", "high_ns", -1), "records[0].summary.high_ns: expected 0 or more, got -1"),
        (_set(*FIRST, "summary", {}), "records[0].summary.n: is missing"),
        (_set(*FIRST, "summary", []), "records[0].summary: expected an object, got []"),
        (_set(*FIRST, "samples", "gpu_ns", 2, -3), "records[0].samples.gpu_ns[2]: expected 0 or more, got -3"),
        (_set(*FIRST, "samples", "launches", 1, 0), "records[0].samples.launches[1]: expected 1 or more, got 0"),
        (_set(*FIRST, "samples", "block", 3, -1), "records[0].samples.block[3]: expected 0 or more, got -1"),
        (_set(*FIRST, "samples", "sm_mhz", 4, -1.5), "records[0].samples.sm_mhz[4]: expected 0 or more, got -1.5"),
        (_set(*FIRST, "samples", "block", []), "records[0].samples: gpu_ns, launches, block and sm_mhz have 11, 11, 0"),
        (_set(*FIRST, "call_ns", [1, -1]), "records[0].call_ns[1]: expected 0 or more, got -1"),
        (_set(*FIRST, "metrics", 0, "value", "5"), 'records[0].metrics[0].value: expected a number, got "5"'),
        (_set(*FIRST, "metrics", 0, "value", True), "records[0].metrics[0].value: expected a number, got true"),
        (_set(*FIRST, "metrics", 0, "primary", 1), "records[0].metrics[0].primary: expected true or false, got 1"),
        (
            _set(*FIRST, "metrics", 0, "direction", "up"),
            "direction: expected one of 'higher', 'lower' or 'none', got \"up\"",
        ),
        (_set(*FIRST, "status", "fine"), "records[0].status: expected one of 'ok', 'skipped'"),
        (_set(*FIRST, "flags", ["slow"]), "records[0].flags[0]: expected one of 'throttled'"),
        (_set(*FIRST, "params", "n", True), "records[0].params.n: expected an integer or a name, got true"),
        (_set(*FIRST, "params", "a\nb", 1.5), 'records[0].params["a\\nb"]: expected an integer or a name, got 1.5'),
        (_set(*FIRST, "params", "n", 64), "records[0].id: expected "),
        (_set(*FIRST, "suite", "x"), 'expected "x/matmul[dtype=bfloat16'),
        (_set(*FIRST, "labels", "int", 5), "records[0].labels.int: expected text, got 5"),
        (_set(*FIRST, "statu", "ok"), "records[0].statu: unknown key; did you mean status?"),
        (_set("tols", {}), "tols: unknown key; did you mean tool?"),
        (_set("records", {}), "records: expected a list, got {}"),
        (_set("records", 3, None), "records[3]: expected an object, got null"),
        (_set("status", "done"), "status: expected one of 'complete', 'interrupted' or 'partial', got \"done\""),
        (_set("argv", ["x" * 500, 1]), "argv[1]: expected text, got 1"),
        (_set("argv", "x" * 500), 'argv: expected a list, got "xxx'),
        (_repeat, "records[8].id: the same row as records[0]"),
        (_number_for_failed, "records[1].summary: a record that is skipped has no number"),
        (_metric_for_failed, "records[1].metrics: a record that is skipped has no number"),
        (_two_primary, "records[0].metrics: 2 are primary, expected one at most"),
        (_same_metric, 'records[0].metrics: "time" is given twice'),
    ],
)
def test_a_wrong_field_is_named(spoil: Callable[[dict[str, Any]], None], words: str) -> None:
    content = golden()
    spoil(content)
    message = refusal(content)
    assert message.startswith("run.json: ")
    assert words in message
    assert len(message) < 300


def test_keys_that_have_a_default_may_be_missing() -> None:
    content = golden()
    for key in ("labels", "call_ns", "setup_ns", "telemetry", "counters", "prediction"):
        del content["records"][0][key]
    assert runfile.decode(json.dumps(content).encode(), "x").records[0].call_ns == []


def test_an_older_file_is_read_without_what_it_lacks() -> None:
    now, older = runfile.decode(GOLDEN.read_bytes(), "now"), runfile.decode(OLDER.read_bytes(), "older")
    assert (now.records[0].kernels[0].ns, older.records[0].kernels[0].ns) == (16582, None)
    now.records[0].kernels[0].ns = None
    assert older == now


def test_the_same_row_under_other_conditions_is_another_row() -> None:
    run = runfile.decode(GOLDEN.read_bytes(), "golden")
    assert run.records[0].id == run.records[-1].id


def test_an_id_has_the_conditions_in_it_or_as_in_older_files_has_not() -> None:
    hot = Conditions(cache="hot")
    run = builders.make_run([builders.make_record(), builders.make_record(conditions=hot)])
    assert [record.id for record in run.records] == ["matmul-sweep/matmul[n=64]", "matmul-sweep/matmul[cache=hot,n=64]"]
    assert runfile.decode(runfile.encode(run), "x") == run
    older = runfile.encode(run).replace(b"cache=hot,n", b"n")
    assert [record.conditions for record in runfile.decode(older, "x").records] == [Conditions(), hot]
    run.records.append(replace(run.records[1], id="matmul-sweep/matmul[n=64]"))
    assert "records[2].id: the same row as records[1]" in refusal(runfile.encode(run))
    other = runfile.encode(run).replace(b"cache=hot,n", b"cache=cold,n")
    wanted = '"matmul-sweep/matmul[cache=hot,n=64]" from suite, benchmark, params and conditions'
    assert f"records[1].id: expected {wanted}" in refusal(other)


def test_a_number_that_is_none_is_never_written() -> None:
    run = builders.make_run([builders.make_record(telemetry={"power_w": float("nan")})])
    with pytest.raises(ValueError, match="not JSON compliant"):
        runfile.encode(run)


def test_one_record_both_ways() -> None:
    record = builders.make_matmul(256)
    value = json.loads(json.dumps(runfile.record_to_json(record)))
    assert runfile.record_from_json(value, "worker") == record
    value["samples"]["gpu_ns"][0] = -5
    with pytest.raises(UsageError, match=r"^worker: samples.gpu_ns\[0\]: expected 0 or more, got -5$"):
        runfile.record_from_json(value, "worker")
    with pytest.raises(UsageError, match=r"^worker: expected an object, got 5$"):
        runfile.record_from_json(5, "worker")


def test_reading_leaves_the_collector_as_it_was() -> None:
    import gc

    runfile.decode(GOLDEN.read_bytes(), "golden")
    refusal(b"{}")
    assert gc.isenabled()


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ns = st.integers(0, 2**63)
finite = st.floats(allow_nan=False, allow_infinity=False)
loose = st.dictionaries(
    words, st.none() | st.booleans() | ns | finite | words | st.lists(words, max_size=2), max_size=2
)
maybe = lambda strategy: st.none() | strategy  # noqa: E731
params = st.dictionaries(words, st.integers(-(2**40), 2**40) | words, max_size=3)
conditions = st.builds(
    Conditions,
    cache=st.sampled_from(["cold", "hot"]),
    load=st.sampled_from(["burst", "sustained"]),
    data=st.sampled_from(["normal", "uniform", "zeros"]),
)
kernels = st.builds(
    KernelSeen,
    name=words,
    kind=words,
    count=ns,
    grid=maybe(st.lists(ns, max_size=3)),
    block=maybe(st.lists(ns, max_size=3)),
    registers=maybe(ns),
    shared_bytes=maybe(ns),
    ns=maybe(ns),
)


@st.composite
def samples(draw: st.DrawFn) -> Samples:
    rows = draw(st.lists(st.tuples(ns, st.integers(1, 2**40), ns, maybe(st.floats(0, 1e5))), max_size=4))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    return Samples(*columns)  # type: ignore[arg-type]


@st.composite
def records(draw: st.DrawFn) -> Record:
    suite, benchmark, chosen = draw(words), draw(words), draw(params)
    status = draw(st.sampled_from(get_args(RecordStatus)))
    metrics = st.builds(
        Metric,
        name=words,
        value=finite,
        unit=words,
        direction=st.sampled_from(["higher", "lower", "none"]),
        primary=st.just(False),
    )
    asked = draw(conditions)
    record = Record(
        id=record_id(suite, benchmark, chosen, asked),
        suite=suite,
        benchmark=benchmark,
        definition=draw(words),
        params=chosen,
        conditions=asked,
        status=status,
        reason=draw(maybe(words)),
        flags=draw(st.lists(st.sampled_from(get_args(Flag)), max_size=2)),
        labels=draw(st.dictionaries(words, words, max_size=2)),
        work=draw(maybe(st.builds(Work, ns, ns))),
        check=draw(maybe(st.builds(Check, finite, finite, finite, finite, ns, words))),
        kernels=draw(st.lists(kernels, max_size=2)),
        samples=draw(samples()),
        timer=draw(maybe(st.builds(Timer, name=words, tick_ns=finite, empty_ns=maybe(finite), reason=maybe(words)))),
        call_ns=draw(st.lists(ns, max_size=3)),
        setup_ns=draw(maybe(ns)),
        stopped_by=draw(maybe(words)),
        telemetry=draw(loose),
        counters=draw(loose),
        prediction=draw(loose),
    )
    if status == "ok":
        record.summary = draw(maybe(st.builds(Summary, ns, ns, ns, ns, ns, maybe(ns), maybe(ns))))
        record.metrics = draw(st.lists(metrics, max_size=2, unique_by=lambda metric: metric.name))
        if record.metrics:
            record.metrics[0].primary = draw(st.booleans())
    return record


ceilings = st.builds(
    Ceiling,
    kind=st.sampled_from(["bandwidth", "compute"]),
    name=words,
    value=finite,
    unit=st.sampled_from(["B/s", "FLOP/s"]),
    record=words,
    measured_at=words,
    source=st.sampled_from(["measured", "stored"]),
    level=maybe(words),
    dtype=maybe(words),
)
runs = st.builds(
    Run,
    run_id=words,
    status=st.sampled_from(["complete", "interrupted", "partial"]),
    started_at=words,
    ended_at=maybe(words),
    tool=loose,
    argv=st.lists(words, max_size=2),
    settings=loose,
    tags=st.lists(words, max_size=2),
    vcs=loose,
    ci=loose,
    host=loose,
    device=loose,
    software=loose,
    fingerprint=loose,
    ceilings=st.lists(ceilings, max_size=2),
    claims=st.lists(loose, max_size=2),
    records=st.lists(records(), max_size=2, unique_by=lambda record: (record.id, record.conditions)),
    schema=st.just(SCHEMA),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(runs)
def test_any_run_is_read_as_it_was_written(run: Run) -> None:
    assert runfile.decode(runfile.encode(run), "x") == run
    assert runfile.from_json(runfile.to_json(run), "x") == run
