"""`gpubench run --counters` and `gpubench profile` from outside, with an ncu that is a script."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import CPU, make_record, make_run
from command import FAKE, FAULTS, LIMIT, OK, Gates, gpubench, one_line, saved, start, statuses, strict
from fakencu import install

from gpubench import discovery, runfile
from gpubench.cli import app
from gpubench.discovery import Library
from gpubench.errors import DeviceUnavailable, UsageError


def counted(folder: Path, *words: str, how: str = "", **env: str) -> Any:
    return gpubench(folder, "run", *words, *FAKE, "--counters", env=install(folder) | {"FAKE_NCU": how} | env)


def test_rows_with_a_number_get_counters_in_the_same_file(tmp_path: Path) -> None:
    done = counted(tmp_path, OK, "-p", "n=1,2")
    assert done.returncode == 0
    assert "counting: 2 rows once more under ncu" in done.stderr.splitlines()
    assert "counters of 2 rows; a copy of 1.00 kB counts as 1.00 kB (+0.00 %)" in done.stderr.splitlines()
    (run,) = saved(tmp_path)
    assert run["status"] == "complete"
    assert run["settings"]["counters"] == {"value": True, "origin": "--counters"}
    for record in run["records"]:
        assert record["status"] == "ok"
        assert record["counters"]["source"] == "ncu 2025.3.1.0"
        assert record["counters"]["dram_bytes_read"] == record["counters"]["kernels"][0]["dram_bytes_read"] == 400
        assert record["counters"]["threads_per_instruction"] == 32
        assert record["samples"]["gpu_ns"]
    assert not list((tmp_path / "results").glob("*.journal"))


def test_rows_without_a_number_are_not_counted(tmp_path: Path) -> None:
    done = counted(tmp_path, FAULTS, "-p", "how=wrong,none", "-p", "when=run", FAKE_NCU_TOLD="1")
    assert done.returncode == 4
    wrong, fine = saved(tmp_path)[0]["records"]
    assert wrong["counters"] == {}
    assert fine["counters"]["dram_bytes_write"] == 600


@pytest.mark.parametrize(("how", "words"), [("denied", "ERR_NVGPUCTRPERM"), ("other", "other kernels were counted")])
def test_without_counters_the_run_is_as_it_would_have_been(tmp_path: Path, how: str, words: str) -> None:
    done = counted(tmp_path, OK, "-p", "n=1", how=how, FAKE_NCU_TOLD="1")
    assert done.returncode == 0
    assert "n=1" in done.stdout
    assert sum(line.startswith("gpubench: ") for line in done.stderr.splitlines()) == 1
    assert words in done.stderr
    (run,) = saved(tmp_path)
    assert (run["status"], statuses(run)) == ("complete", ["ok"])
    assert words in run["records"][0]["counters"]["unavailable"]["counters"]


def test_a_few_rows_without_counters_are_said(tmp_path: Path) -> None:
    done = counted(tmp_path, OK, "-p", "n=1,2", how="missing", FAKE_NCU_TOLD="1")
    assert "gpubench: 1 row without counters, such as: ncu counted no kernel of this case" in done.stderr
    assert "counters of 1 row; " in done.stderr


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[Gates]:
    found = Gates(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_while_counting_leaves_a_complete_run(
    tmp_path: Path, gates: Gates, number: int, code: int
) -> None:
    env = install(tmp_path) | gates.env | {"FAKE_NCU": "held"}
    run = start(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, "--counters", env=env)
    gates.told()
    run.send_signal(number)
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == code
    assert "gpubench: interrupted while counting: the run is complete, without counters" in said.splitlines()
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("complete", ["ok", "ok"])
    assert [record["counters"] for record in kept["records"]] == [{}, {}]


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
        ([], "no CASE is 2 rows"),
        (["n=1", "--set", "most"], "--set 'most' is not one of"),
        (["n=1", "-o", "no/where.json"], "no/where.json: there is no folder"),
    ],
)
def test_what_cannot_be_profiled(base: Path, words: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        app.call(["profile", str(base), *words])
    assert said in str(caught.value)
    assert not Path("ncu.said").exists()


def test_without_permission_a_profile_is_refused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_NCU", "denied")
    with pytest.raises(DeviceUnavailable, match="ERR_NVGPUCTRPERM"):
        app.call(["profile", str(base), "n=1"])
    assert not Path("results/profiles").exists()


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
    said = "gpubench: the CPU has no hardware counters here; gpubench profile needs a CUDA device\n"
    assert done.stderr == said
    with pytest.raises(UsageError, match="is oom: nothing to profile"):
        app.call(["profile", str(tmp_path / "gpu.json"), "n=2"])
