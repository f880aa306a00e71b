from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_ceilings, make_matmul, make_record, make_run

from gpubench.errors import UsageError
from gpubench.result import Run
from gpubench.store import journal, jsonfile, runfile
from gpubench.store.folder import Store, read_run
from gpubench.store.journal import RunWriter

HERE = Path(__file__).parent

CHILD = f"""
import pathlib, sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
from builders import make_matmul, make_run
from gpubench.errors import UsageError
from gpubench.store.journal import RunWriter
"""


def child(code: str, *arguments: str, file_limit: int | None = None) -> subprocess.Popen[bytes]:
    """Another process that can make and write runs."""

    def limit() -> None:
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    command = [sys.executable, "-c", CHILD + code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=limit)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def new_run(run_id: str = "20260712-101500-7f3a") -> Run:
    return make_run([], run_id=run_id, status="partial", ended_at=None, ceilings=[])


def decoded(path: Path) -> Run:
    """The run of the file alone, whatever stands beside it."""
    return runfile.decode(jsonfile.read_bytes(path), str(path))


def abandon(writer: RunWriter) -> Path:
    """What a killed process leaves: the journal, no longer locked."""
    left = writer.path.with_name(writer.path.name + ".00c0ffee.journal")
    shutil.copy(writer.journal, left)
    writer.journal.unlink()
    return left


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "deep/er/a.json"])
def test_a_run_is_saved(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    writer = RunWriter(path, new_run())
    for n in (256, 257):
        writer.add(make_matmul(n))
    writer.update(ceilings=make_ceilings(), tags=["mine"])
    assert writer.close("complete", "2026-07-12T10:16:00Z") == path
    expected = make_run(
        [make_matmul(256), make_matmul(257)], ended_at="2026-07-12T10:16:00Z", ceilings=make_ceilings(), tags=["mine"]
    )
    assert read_run(path) == decoded(path) == expected
    assert os.listdir(path.parent) == [path.name]
    assert writer.close("interrupted") == path  # nothing more
    assert decoded(path) == expected
    with pytest.raises(ValueError, match="closed"):
        writer.add(make_matmul(258))


def test_a_run_without_rows_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_bytes(b"old")
    writer = RunWriter(tmp_path / "old.json", new_run(), replace=True)
    writer.update(ceilings=make_ceilings())
    assert writer.close("interrupted") is None
    assert (tmp_path / "old.json").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old.json"]


def test_every_row_is_in_the_journal_and_the_file_follows_once_a_second(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run(), clock=clock)
    seen = []
    for n, now in enumerate([0.0, 0.5, 0.99, 1.0, 1.5, 2.0]):
        clock.now = now
        writer.add(make_matmul(256 + n))
        seen.append(len(decoded(path).records))
        assert len(journal.read(writer.journal).records) == len(read_run(path).records) == n + 1
        assert decoded(path).status == read_run(path).status == "partial"
    assert seen == [1, 1, 1, 4, 4, 6]
    writer.close("complete")


def test_a_row_is_on_the_disk_before_the_next_case_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure takes what was written and not synchronised."""
    synced: dict[int, bytes] = {}
    fsync = os.fsync

    def seen(descriptor: int) -> None:
        fsync(descriptor)
        status = os.fstat(descriptor)
        if status.st_ino == os.stat(writer.journal).st_ino:
            synced[len(writer.run.records)] = writer.journal.read_bytes()

    writer = RunWriter(tmp_path / "a.json", new_run(), clock=Clock())
    monkeypatch.setattr(os, "fsync", seen)
    for n in (256, 257):
        writer.add(make_matmul(n))
    for rows, data in synced.items():
        assert data.count(b'"status":"ok"') == rows
    assert list(synced) == [1, 2]
    writer.close("complete")


def test_rewriting_takes_a_twentieth_of_the_time_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, writes = Clock(), []

    def slow(path: Path, data: bytes, replace: bool) -> None:
        writes.append(clock.now)
        clock.now += 0.5
        path.write_bytes(data)

    monkeypatch.setattr(jsonfile, "write_atomic", slow)
    writer = RunWriter(tmp_path / "a.json", new_run(), clock=clock)
    for n in range(256, 290):
        writer.add(make_matmul(n))
        clock.now += 1
    assert writes == [0.0, 10.5, 21.0, 31.5]


def test_a_value_that_is_no_number_costs_its_row_alone(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run())
    writer.add(make_matmul(256))
    with pytest.raises(ValueError, match="not JSON compliant"):
        writer.add(make_record(telemetry={"power_w": float("nan")}))
    writer.add(make_matmul(257))
    writer.close("complete")
    assert [record.params["n"] for record in decoded(tmp_path / "a.json").records] == [256, 257]


@pytest.mark.parametrize("field", ["records", "status", "run_id", "schema", "nonsense"])
def test_some_fields_are_not_updated(tmp_path: Path, field: str) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run())
    with pytest.raises(TypeError, match=field):
        writer.update(**{field: "x"})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.csv", "its name must end in .json or .json.gz"),
        ("a", "its name must end in .json or .json.gz"),
        ("folder.json", "it is a folder"),
        ("there.json", "exists already and is not replaced"),
        ("pipe.json", "it is not a regular file"),
        ("there.json/a.json", "cannot write"),
        ("n" * 250 + ".json", "File name too long"),
        ("a\0.json", "cannot write"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "there.json").write_bytes(b"old")
    os.mkfifo(tmp_path / "pipe.json")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UsageError) as caught:
        RunWriter(tmp_path / name, new_run())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "there.json").read_bytes() == b"old"


def test_a_folder_without_permission_is_refused_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(
        UsageError, match=r"^cannot write .*a\.json: Permission denied \(another place: --results DIR, or -o FILE\)$"
    ):
        RunWriter(tmp_path / "a.json", new_run())


def test_a_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", disk_full)
    with pytest.raises(UsageError, match="No space left on device"):
        RunWriter(tmp_path / "a.json", new_run())
    assert os.listdir(tmp_path) == []


def disk_full(*_: object) -> int:
    raise OSError(28, "No space left on device")


def half_then_full() -> object:
    """os.write on a disk that fills up in the middle of a line."""
    write, calls = os.write, iter([True])

    def once(descriptor: int, data: memoryview) -> int:
        if next(calls, False):
            return write(descriptor, data[: len(data) // 2])
        return disk_full()

    return once


def test_a_disk_that_fills_up_keeps_the_rows_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run(), clock=clock)
    for n in (256, 257):
        writer.add(make_matmul(n))
    with monkeypatch.context() as full:
        full.setattr(os, "write", half_then_full())
        with pytest.raises(UsageError, match="No space left on device"):
            writer.add(make_matmul(258))
        with pytest.raises(UsageError, match="No space left on device"):
            writer.close("partial")
    assert len(journal.read(writer.journal).records) == len(read_run(path).records) == 2
    assert len(decoded(path).records) == 1
    writer.add(make_matmul(259))  # there is room again
    assert len(journal.read(writer.journal).records) == 3
    writer.close("partial")
    assert [record.params["n"] for record in decoded(path).records] == [256, 257, 258, 259]
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    code = """
writer = RunWriter(pathlib.Path(sys.argv[1]), make_run([], status="partial"))
added = 0
try:
    for n in range(256, 300):
        writer.add(make_matmul(n)); added += 1
except UsageError as error:
    print(added, error)
"""
    path = tmp_path / "a.json"
    process = child(code, str(path), file_limit=8192)
    added, message = process.communicate()[0].decode().split(" ", 1)
    assert "File too large" in message
    assert 0 < int(added) < 44
    assert len(read_run(path).records) == int(added)
    assert decoded(path).status == "partial"


def test_rows_survive_sigkill(tmp_path: Path) -> None:
    code = """
path = pathlib.Path(sys.argv[1])
writer = RunWriter(path, make_run([], status="partial", ended_at=None), clock=lambda: 0.0)
for n in (256, 257, 258):
    writer.add(make_matmul(n))
print("third row", flush=True)
sys.stdin.read()
"""
    path = tmp_path / "a.json"
    process = child(code, str(path))
    assert process.stdout is not None
    assert process.stdout.readline() == b"third row\n"
    store = Store(tmp_path)
    assert store.orphans() == []  # it is being written
    (left,) = journal.beside(path)
    with pytest.raises(UsageError, match="still writing"):
        store.recover(left)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert store.runs() == [path]
    run = store.read("latest")
    assert [record.params["n"] for record in run.records] == [256, 257, 258]
    assert run.status == "partial"
    assert store.orphans() == [left]
    assert store.recover(left) == path
    assert decoded(path) == run
    assert os.listdir(tmp_path) == ["a.json"]
    assert store.recover(left) is None


def test_eight_runs_with_the_same_name_leave_one_whole_file(tmp_path: Path) -> None:
    code = """
name = sys.argv[2]
run = make_run([], run_id=name, status="partial", tags=[name])
ticks = iter(range(10_000))
sys.stdin.read(1)
writer = RunWriter(pathlib.Path(sys.argv[1]), run, replace=True, clock=lambda: next(ticks))
for n in range(256, 266):
    writer.add(make_matmul(n, telemetry={"run": name}))
writer.close("complete")
"""
    path = tmp_path / "a.json"
    processes = [child(code, str(path), f"run-{index}") for index in range(8)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.close()
    for process in processes:
        assert process.wait() == 0
        assert process.stdout is not None
        process.stdout.close()
    run = decoded(path)
    assert run.status == "complete"
    assert [record.telemetry["run"] for record in run.records] == run.tags * 10 == [run.run_id] * 10
    assert os.listdir(tmp_path) == ["a.json"]


def test_the_file_of_another_run_stays_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    first, second = RunWriter(path, new_run("first")), RunWriter(path, new_run("second"), replace=True)
    first.add(make_matmul(256))
    for n in (300, 301):
        second.add(make_matmul(n))
    assert decoded(path).run_id == read_run(path).run_id == "first"
    first.close("complete")
    second.add(make_matmul(302))
    assert decoded(path).run_id == "first"
    second.close("complete")
    assert decoded(path).run_id == "second"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_name_taken_while_measuring_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run())
    path.write_bytes(b"mine")
    writer.add(make_matmul(256))
    with pytest.raises(UsageError, match="exists already"):
        writer.close("complete")
    assert path.read_bytes() == b"mine"
    assert len(journal.read(writer.journal).records) == 1


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_another_run_put_in_the_place_of_ours_is_not_overwritten(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run())
    writer.add(make_matmul(256))
    assert decoded(path).run_id == writer.run.run_id
    if in_place:
        path.write_bytes(runfile.encode(new_run("theirs")))
        os.utime(path, ns=(0, 0))
    else:
        jsonfile.write_atomic(path, runfile.encode(new_run("theirs")))
    with pytest.raises(UsageError, match="exists already"):
        writer.close("complete")
    assert decoded(path).run_id == "theirs"


def test_a_last_line_cut_short_is_no_row(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run())
    for n in (256, 257):
        writer.add(make_matmul(n))
    whole = writer.journal.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in (last, last + 1, len(whole) - 1):
        writer.journal.write_bytes(whole[:end])
        assert [record.params["n"] for record in journal.read(writer.journal).records] == [256]
    writer.journal.write_bytes(whole[:last] + b"\0" * 100)
    assert len(journal.read(writer.journal).records) == 1


@pytest.mark.parametrize(
    ("line", "text", "words"),
    [
        (0, '{"record":{}}', "line 1: not a line of a gpubench journal"),
        (0, '{"run":{"schema":"gpubench.run/2"}}', "written by a newer gpubench: its schema is gpubench.run/2"),
        (0, '{"run":{"schema":"other"}}', "not a gpubench run file"),
        (0, '{"run":[]}', "not a gpubench run file"),
        (1, '{"record":', "line 2: ends in the middle"),
        (1, '{"record":{"id":NaN}}', "line 2: NaN is not a JSON number"),
        (1, '{"record":{}}', "records[0].id: is missing"),
        (1, "[]", "line 2: not a line of a gpubench journal"),
        (1, '{"run":{}}', "line 2: not a line of a gpubench journal"),
        (1, '{"update":[]}', "line 2: not a line of a gpubench journal"),
        (1, '{"update":{"records":[]}}', "line 2: not a line of a gpubench journal"),
        (1, '{"update":{"tags":[1]}}', "tags[0]: expected text, got 1"),
        (1, "", "line 2: is empty"),
    ],
)
def test_a_damaged_journal_is_reported(tmp_path: Path, line: int, text: str, words: str) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run())
    writer.add(make_matmul(256))
    lines = writer.journal.read_text().splitlines()
    lines[line] = text
    left = abandon(writer)
    left.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError) as caught:
        journal.recover(left)
    assert f"{left}" in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left.exists()


def test_updates_are_in_the_journal(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run(), clock=lambda: -1.0)
    writer.update(ceilings=make_ceilings(), device={"name": "X"})
    writer.update(tags=["a"])
    writer.add(make_matmul(256))
    run = journal.read(writer.journal)
    assert run == writer.run
    assert run.ceilings == make_ceilings()


def test_a_journal_without_run_file_is_read_and_recovered(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run(), clock=lambda: 0.0)
    for n in (256, 257):
        writer.add(make_matmul(n))
    left = abandon(writer)
    path.unlink()
    assert len(read_run(path).records) == len(read_run(left).records) == 2
    assert Store(tmp_path).runs() == [path]
    assert Store(tmp_path).resolve(str(path)) == path
    assert journal.recover(left) == path
    assert len(decoded(path).records) == 2


def test_recovery_leaves_the_file_of_another_run(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    writer = RunWriter(path, new_run("killed"))
    writer.add(make_matmul(256))
    left = abandon(writer)
    path.unlink()
    other = RunWriter(path, new_run("other"))
    other.add(make_matmul(300))
    other.close("complete")
    assert read_run(path).run_id == "other"
    recovered = journal.recover(left)
    assert recovered is not None
    assert recovered.name.startswith("a-recovered-")
    assert decoded(recovered).run_id == "killed"
    assert decoded(path).run_id == "other"
    assert len(os.listdir(tmp_path)) == 2


def test_a_finished_file_never_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    writer = RunWriter(path, new_run())
    for n in (256, 257):
        writer.add(make_matmul(n))
    copy = writer.journal.read_bytes()
    writer.close("interrupted")
    before = path.read_bytes()
    left = tmp_path / "a.json.journal"
    left.write_bytes(copy)
    assert read_run(path).status == "interrupted"
    assert journal.orphans(tmp_path) == [left]
    assert journal.recover(left) == path
    assert path.read_bytes() == before
    assert not left.exists()


def test_a_journal_without_rows_or_without_head(tmp_path: Path) -> None:
    left = abandon(RunWriter(tmp_path / "a.json", new_run()))
    (tmp_path / "b.json.00000000.journal").touch()  # its process has not written the head yet, or never will
    store = Store(tmp_path)
    assert store.runs() == []
    assert store.orphans() == [left]
    assert store.recover(left) is None
    assert os.listdir(tmp_path) == ["b.json.00000000.journal"]
    with pytest.raises(UsageError, match="no such file"):
        read_run(tmp_path / "b.json")
    with pytest.raises(UsageError, match="holds nothing"):
        journal.read(tmp_path / "b.json.00000000.journal")


def test_journals_of_other_files_are_not_beside(tmp_path: Path) -> None:
    for name in ("a.json.journal", "a.json.00c0ffee.journal", "xa.json.journal", "a.json.gz.journal", "a.journal"):
        (tmp_path / name).touch()
    assert [path.name for path in journal.beside(tmp_path / "a.json")] == ["a.json.00c0ffee.journal", "a.json.journal"]
    with pytest.raises(UsageError, match="not the name of a journal"):
        journal.target(tmp_path / "a.journal")


def test_the_journal_is_lines_of_json(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "a.json", new_run())
    writer.add(make_matmul(256))
    lines = [json.loads(line) for line in writer.journal.read_text().splitlines()]
    assert [list(line) for line in lines] == [["run"], ["record"]]
    assert str(tmp_path) not in writer.journal.read_text()


def test_counters_that_a_later_pass_brings_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    writer = RunWriter(path, make_run([]))
    for n in (1, 2, 3):
        writer.add(make_record(params={"n": n}))
    writer.add_counters(1, {"dram_bytes_read": 7})
    left = journal.read(writer.journal)
    assert [record.counters for record in left.records] == [{}, {"dram_bytes_read": 7}, {}]
    writer.close("complete")
    run = runfile.decode(path.read_bytes(), "run")
    assert [record.counters for record in run.records] == [{}, {"dram_bytes_read": 7}, {}]
    assert run.records == writer.run.records


def test_a_run_that_is_settled_is_whole_and_may_yet_be_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"another run's")
    writer = RunWriter(path, new_run(), replace=True)
    writer.add(make_matmul(256))
    assert path.read_bytes() == b"another run's"
    writer.settle("complete", "2026-07-12T10:16:00Z")
    whole = path.read_bytes()
    assert decoded(path) == read_run(path) == make_run([make_matmul(256)], ended_at="2026-07-12T10:16:00Z")
    assert journal.recover(abandon(writer)) == path
    assert path.read_bytes() == whole
    writer.add_counters(0, {"dram_bytes_read": 7})
    writer.close("complete", "2026-07-12T10:17:00Z")
    last = decoded(path)
    assert (last.ended_at, last.records[0].counters) == ("2026-07-12T10:17:00Z", {"dram_bytes_read": 7})
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize(
    "value",
    ['{"row":1,"values":{}}', '{"row":-1,"values":{}}', '{"values":{}}', "[]", '{"row":0}', '{"row":0,"values":1}'],
)
def test_counters_of_no_row_are_refused(tmp_path: Path, value: str) -> None:
    writer = RunWriter(tmp_path / "run.json", make_run([]))
    writer.add(make_record())
    with open(writer.journal, "a") as file:
        file.write(f'{{"counters":{value}}}\n')
    with pytest.raises(UsageError, match="not a line of a gpubench journal"):
        journal.read(writer.journal)
