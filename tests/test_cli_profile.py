"""`gpubench profile` from outside: counters, sections and lines by an ncu that is a script, and traces without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import CPU, make_record, make_run
from command import FAKE, OK, gpubench, one_line, strict
from fakencu import install
from perfetto import check

from gpubench import discovery
from gpubench.cli import app
from gpubench.discovery import Library
from gpubench.errors import CaseError, DeviceUnavailable, UsageError
from gpubench.profiling import child, counting, trace
from gpubench.result import Conditions
from gpubench.store import runfile


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run of the toy suite."""
    folder = tmp_path_factory.mktemp("measured")
    done = gpubench(folder, "run", OK, "-p", "n=1,2", *FAKE, "--seed", "7", "-o", "base.json")
    assert done.returncode == 0
    return (folder / "base.json").read_bytes()


@pytest.fixture
def base(tmp_path: Path, measured: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That run, whose suite the commands in this process know as one of ours."""

    class WithToy(Library):
        def __init__(self) -> None:
            super().__init__()
            self.add_file(Path(OK))

    (tmp_path / "base.json").write_bytes(measured)
    monkeypatch.chdir(tmp_path)
    for name, value in install(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GPUBENCH_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("FAKE_NCU_TOLD", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(discovery, "Library", WithToy)
    return tmp_path / "base.json"


def test_a_profile_is_a_file_of_its_own(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = base.read_bytes()
    app.call(["profile", "base.json", "-p", "n=2", "--metrics", "dram_bytes_read,dram_bytes_write,waves"])
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "ok/double[dtype=float32,n=2] · Fake device · cold, burst"
    assert "dram_bytes_read   400 B" in said.out
    assert "DRAM moved 1.00 kB; the algorithm needs 16 B (62.5 times)" in said.out
    assert "a copy of 1.00 kB counts +0.00 % by ncu 2025.3.1.0" in said.out
    assert "counted on" not in said.out, "it is the run's own device"
    (path,) = (tmp_path / "results/profiles").glob("*.json")
    assert said.err.splitlines()[-1] == f"saved results/profiles/{path.name}"
    run, source = runfile.decode(path.read_bytes(), "new"), runfile.decode(before, "base")
    assert base.read_bytes() == before
    assert run.tool["derived_from"] == {"run_id": source.run_id, "record": "ok/double[dtype=float32,n=2]"}
    assert (run.status, run.run_id == source.run_id) == ("complete", False)
    (record,) = run.records
    assert record.samples == source.records[1].samples
    assert (record.counters["dram_bytes_read"], record.counters["waves"]) == (400, 300)
    request = (tmp_path / "ncu.said").read_text()
    assert "launch__waves_per_multiprocessor" in request


def test_another_gpu_counts_where_it_is_named_and_the_file_says_so(
    base: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(base.read_text())
    content["device"]["kind"], content["device"]["uuid"] = "cuda", "GPU-0000"
    base.write_text(json.dumps(content))

    def absent(*asked: object) -> None:
        raise child.Failed("--device GPU-0000: found cuda:0 NVIDIA H200")

    with monkeypatch.context() as away:
        away.setattr(counting, "_run", absent)
        with pytest.raises(DeviceUnavailable, match="no counters: --device GPU-0000: found cuda:0") as refused:
            app.call(["profile", "base.json", "n=1"])
    assert refused.value.hint == "--device cuda:0 counts on that one"
    monkeypatch.setenv("FAKE_NCU_UUID", "GPU-1111")
    capsys.readouterr()
    app.call(["profile", "base.json", "n=1", "--device", "fake", "-o", "mine.json"])
    mine = runfile.decode(Path("mine.json").read_bytes(), "mine")
    assert mine.tool["derived_from"]["device"] == "fake"
    assert mine.records[0].counters["device"] == {"kind": "fake", "name": "Fake device", "uuid": "GPU-1111"}
    said = " ".join(capsys.readouterr().out.split())
    times = "the record's times are of Fake device GPU-0000"
    assert f"counted on Fake device GPU-1111, which is not the run's; {times}" in said
    app.call(["profile", "base.json", "n=1", "--device", "fake", "--trace", "t.json"])
    assert f"traced on Fake device FAKE-0, which is not the run's; {times}" in " ".join(capsys.readouterr().out.split())
    for word in ("auto", "cpu"):
        with pytest.raises(UsageError, match=f"--device {word}: the run's own GPU is meant, or name another"):
            app.call(["profile", "base.json", "n=1", "--device", word])


def test_a_profile_goes_where_it_is_sent_and_comes_as_json(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.call(["profile", str(base), "n=1", "-o", "mine.json", "--json", "-q"])
    said = capsys.readouterr()
    assert strict(said.out)["counters"]["threads_per_instruction"] == 32
    assert said.err == ""
    assert runfile.decode(Path("mine.json").read_bytes(), "mine").records[0].counters
    assert "derived_from" in Path("mine.json").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["n=3"], "n=3: no such row"),
        (["double"], "double is 2 rows: ok/double[dtype=float32,n=1], ok/double[dtype=float32,n=2]"),
        ([], "which of 2 rows? ok/double[dtype=float32,n=1], ok/double[dtype=float32,n=2] (such as 'ok/"),
        (["n=1", "--set", "most"], "--set 'most' is not one of"),
        (["n=1", "-o", "no/where.json"], "no/where.json: there is no folder"),
        (["n=1", "--section", "Speed Of Light"], "--section 'Speed Of Light' is not the name of a section"),
        (["n=1", "--calls", "2"], "--calls is about a trace"),
        (["n=1", "--trace", "t.json", "--source"], "--trace and --source: a trace counts nothing"),
        (["n=1", "--trace", "t.json", "--set", "all"], "--trace and --set"),
        (["n=1", "--trace", "t.json", "-o", "x.json"], "--trace and -o"),
        (["n=1", "--trace", "t.txt"], "--trace 't.txt' is no .json file"),
        (["n=1", "--trace", "no/t.json"], "--trace no/t.json: there is no folder"),
        *(
            (["n=1", "--trace", "t.json", "--calls", word], "is not a whole number from 1 to 1000")
            for word in ("0", "1001", "two", "1.5", "-1", "9" * 5000, "\u00b2", "")
        ),
    ],
)
def test_what_cannot_be_profiled(base: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        app.call(["profile", str(base), *words])
    assert said in str(caught.value)
    assert not Path("ncu.said").exists()


def test_where_the_profile_cannot_be_saved_nothing_is_counted(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("taken").write_text("a file")
    with pytest.raises(UsageError, match=r"cannot write in .*/taken: it is no folder") as refused:
        app.call(["profile", str(base), "n=1", "--results", "taken"])
    assert refused.value.hint == "another place: --results DIR, or -o FILE"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(UsageError, match=r"cannot write in .*: no permission"):
        app.call(["profile", str(base), "n=1", "--results", "not/yet"])
    assert not Path("ncu.said").exists()


def test_without_permission_a_profile_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NCU", "denied")
    with pytest.raises(DeviceUnavailable, match="ERR_NVGPUCTRPERM") as caught:
        app.call(["profile", str(base), "n=1", "--section", "Occupancy", "--source"])
    assert one_line(f"{caught.value}\n")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(caught.value)
    assert "--trace FILE.json needs no counters" in str(caught.value)
    assert not Path("results/profiles").exists()


def test_without_ncu_a_profile_says_where_it_comes_from(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting.surroundings, "find_ncu", lambda environ: None)
    with pytest.raises(DeviceUnavailable, match="no counters: ncu is not installed") as caught:
        app.call(["profile", str(base), "n=1", "--source"])
    assert one_line(f"{caught.value}\n")
    assert "--trace FILE.json" in str(caught.value)


def test_a_benchmark_that_has_changed_is_refused(base: Path) -> None:
    content = json.loads(base.read_text())
    content["records"][0]["definition"] = "0" * 16
    base.write_text(json.dumps(content))
    with pytest.raises(UsageError, match="ok/double has changed since that run"):
        app.call(["profile", str(base), "n=1"])


def test_rows_that_have_no_counters_at_all(tmp_path: Path) -> None:
    records = [make_record(params={"n": 1}), make_record(params={"n": 2}, status="oom")]
    (tmp_path / "cpu.json").write_bytes(runfile.encode(make_run(records, device=CPU)))
    (tmp_path / "gpu.json").write_bytes(runfile.encode(make_run(records)))
    done = gpubench(tmp_path, "profile", "cpu.json", "n=1")
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert done.stderr.startswith("gpubench: the CPU has no hardware counters here; of a CPU's row there is a timeline")
    assert "--trace FILE.json" in done.stderr
    with pytest.raises(UsageError, match="is oom: nothing to profile"):
        app.call(["profile", str(tmp_path / "gpu.json"), "n=2"])


def test_sections_and_lines_are_shown_below_the_counters(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app.call(["profile", "base.json", "n=2", "--section", "SpeedOfLight", "--source", "--metrics", "dram_bytes_read"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    begun = lines.index("Speed Of Light                          value")
    assert [line.split() for line in lines[begun + 2 : begun + 4]] == [
        ["Throughput", "1.50", "%"], ["Function", "Cache", "Configuration", "CachePreferNone"],
    ]  # fmt: skip
    begun = next(number for number, line in enumerate(lines) if line.startswith("#1 hottest lines"))
    assert lines[begun].split() == ["#1", "hottest", "lines", "stalls", "executed", "text"]
    assert lines[begun + 2].split(maxsplit=4) == ["double.cu:2", "75.0", "%", "1,000", "out[i] = 2 * x[i];"]
    (path,) = (tmp_path / "results/profiles").glob("*.json")
    (kernel,) = runfile.decode(path.read_bytes(), "new").records[0].counters["kernels"]
    assert kernel["source"][0]["file"] == "double.cu"
    assert str(tmp_path) not in path.read_text()
    assert "host.example" not in path.read_text()


def test_a_trace_is_a_file_for_a_viewer(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = base.read_bytes()
    app.call(["profile", "base.json", "n=2", "--trace", "trace.json", "--calls", "2"])
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "ok/double[dtype=float32,n=2] · Fake device · cold, burst · 2 calls traced"
    assert said.out.splitlines()[3].split() == ["fake_kernel(float*)", "kernel", "2", "4.00", "µs", "100", "%"]
    assert "2.00 µs a call with a profiler at work; the record has 2.00 µs (1.00 times)" in said.out
    assert said.err.splitlines()[-1] == "wrote trace.json: 8 events; open it in https://ui.perfetto.dev"
    text = Path("trace.json").read_text()
    found = strict(text)
    names = [event["name"] for event in check(found)]
    assert sorted(names[:4]) == ["call 1", "call 1", "cudaLaunchKernel", "fake_kernel(float*)"], "on host and GPU"
    assert sorted(names[4:]) == ["call 2", "call 2", "cudaLaunchKernel", "fake_kernel(float*)"]
    assert sum(event["ph"] == "s" for event in found["traceEvents"]) == 2
    assert found["otherData"]["record"] == "ok/double[dtype=float32,n=2]"
    assert not any(word in text for word in ("fake-host", "/tmp", "4711", str(tmp_path)))
    assert base.read_bytes() == before
    assert not Path("results/profiles").exists()
    assert not Path("ncu.said").exists(), "a trace needs no ncu"


def test_a_trace_as_json_and_compressed(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.call(["profile", "base.json", "n=1", "--trace", "t.json.gz", "--json", "-q"])
    said = capsys.readouterr()
    assert strict(said.out) == {
        "record": "ok/double[dtype=float32,n=1]",
        "trace": "t.json.gz",
        "calls": 1,
        "device": {"kind": "fake", "name": "Fake device", "uuid": "FAKE-0", "driver": None},
        "events": 4,
        "left_out": 0,
        "names": 1,
        "ns": 1000,
        "spent": [{"name": "fake_kernel(float*)", "kind": "kernel", "count": 1, "ns": 1000}],
    }
    assert said.err == ""
    assert Path("t.json.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_a_trace_that_fails_leaves_the_old_file(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trace.json").write_text("old")
    content = json.loads(base.read_text())
    content["device"]["kind"], content["device"]["uuid"] = "cuda", "GPU-0000"
    base.write_text(json.dumps(content))
    with pytest.raises(CaseError, match=r"no trace: --device GPU-0000: "):
        app.call(["profile", "base.json", "n=1", "--trace", "trace.json"])
    monkeypatch.setattr(trace.child, "python", lambda module, request: ["false"])
    with pytest.raises(CaseError, match="no trace: the tracing process ended before it was done"):
        app.call(["profile", "base.json", "n=1", "--trace", "trace.json"])
    assert Path("trace.json").read_text() == "old"
    assert not list(Path().glob(".gpubench-*"))


def test_a_row_of_a_cpu_is_traced(tmp_path: Path) -> None:
    definition = Library().suite("fusion").benchmarks["sin2-cos2"].definition
    hot, params = Conditions("hot"), {"by": "eager", "n": 4096}
    row = make_record("fusion", "sin2-cos2", params=params, conditions=hot, definition=definition)
    (tmp_path / "cpu.json").write_bytes(runfile.encode(make_run([row], device=CPU)))
    done = gpubench(tmp_path, "profile", "cpu.json", "fusion", "--trace", "t.json", "--calls", "2")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "t.json").read_text()
    names = [event["name"] for event in check(strict(text))]
    assert (names[0], names.count("call 2"), names.count("aten::sin"), names.count("aten::cos")) == ("call 1", 1, 2, 2)
    assert "aten::sin" in done.stdout
    assert str(tmp_path) not in text
