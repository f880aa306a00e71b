from __future__ import annotations

import dataclasses
import gzip
import os
from pathlib import Path

import pytest
from builders import make_ceilings, make_matmul, make_run

from gpubench.errors import NothingMeasured, UsageError
from gpubench.result import Run
from gpubench.store import embedded, jsonfile, runfile
from gpubench.store.baseline import Baselines
from gpubench.store.folder import RunWriter, Store, default_folder, holds_ab, read_run

GOLDEN = Path(__file__).parent / "golden" / "run-1.json"


def refusal(store: Store, word: str, reference: Path | None = None) -> str:
    """The message of the UsageError that resolving a word ends in, which must be one line."""
    with pytest.raises(UsageError) as caught:
        store.resolve(word, reference)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def save(path: Path, run: Run | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(runfile.encode(run or make_run([make_matmul(256)])))
    return path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    folder = tmp_path / "reference"
    for name in ("h200/matmul-sweep.json.gz", "h200/bandwidth.json.gz", "xeon/matmul-sweep.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    (folder / "README.md").touch()
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize(
    ("device", "what", "name"),
    [
        ({"name": "NVIDIA H200"}, "matmul-sweep", "20260712-101500-h200-matmul-sweep-"),
        ({"name": "NVIDIA GeForce RTX 4090"}, "quick", "20260712-101500-rtx-4090-quick-"),
        ({"name": "Intel(R) Xeon(R) CPU @ 2.20GHz"}, "bandwidth/copy", "20260712-101500-xeon-2-20ghz-bandwidth-copy-"),
        ({"name": "../../etc/passwd"}, "../../x\0\n$(id)", "20260712-101500-etc-passwd-x-id-"),
        ({"name": None, "kind": "cpu"}, "", "20260712-101500-device-run-"),
        ({}, "日本", "20260712-101500-device-run-"),
        ({"name": "x" * 500}, "y" * 500, f"20260712-101500-{'x' * 24}-{'y' * 48}-"),
        ({"name": "Größe"}, "a.json/b", "20260712-101500-groe-a-json-b-"),
    ],
)
def test_a_new_name_says_when_where_and_what(store: Store, device: dict[str, str], what: str, name: str) -> None:
    path = store.new_path(make_run([], device=device), what)
    assert path.parent == store.folder
    assert path.name[:-9] == name
    assert path.suffix == ".json"
    int(path.name[-9:-5], 16)


def test_a_new_name_is_in_utc(store: Store) -> None:
    run = make_run([], started_at="2026-07-12T00:30:00+02:00")
    assert store.new_path(run).name.startswith("20260711-223000-")


def test_names_of_the_same_second_differ(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = iter(["0000", "0000", "0000", "1111", "0000", "1111", "2222"])
    monkeypatch.setattr("secrets.token_hex", lambda size: next(tokens) if size == 2 else "00c0ffee")
    run = make_run([])
    save(store.new_path(run))
    RunWriter(store.new_path(run), run)  # of which there is only a journal
    assert store.new_path(run).name.endswith("-2222.json")


def test_no_run_is_stored(store: Store) -> None:
    assert store.runs() == []
    assert store.orphans() == []
    for word in ("latest", "latest~1"):
        with pytest.raises(NothingMeasured, match=r"no run is stored in .*store \(gpubench run\)"):
            store.resolve(word)


def test_runs_are_listed_newest_first(store: Store) -> None:
    names = ["20260101-000000-a-b-0000.json", "20260102-000000-a-b-0000.json.gz", "20251231-235959-z-z-ffff.json"]
    for name in names:
        save(store.folder / name)
    by_hand = save(store.folder / "by-hand.json")
    os.utime(by_hand, (1767268800, 1767268800))  # 2026-01-01 12:00:00 UTC
    for name in ("export.json", "notes.txt", ".hidden.json", "reference/20270101-000000-a-b-0000.json"):
        (store.folder / name).parent.mkdir(exist_ok=True)
        (store.folder / name).write_text("{}")
    order = [names[1], "by-hand.json", names[0], names[2]]
    assert [path.name for path in store.runs()] == order
    assert [store.resolve(word).name for word in ("latest", "latest~0", "latest~1", "latest~3")] == [
        order[0],
        order[0],
        order[1],
        order[3],
    ]


def test_runs_of_the_same_second_are_in_the_order_they_were_written(store: Store) -> None:
    for index, token in enumerate(["ffff", "0000", "8888"]):
        path = save(store.folder / f"20260101-000000-a-b-{token}.json")
        os.utime(path, (1767268800 + index, 1767268800 + index))
    assert [path.name[-9:-5] for path in store.runs()] == ["8888", "0000", "ffff"]


def test_latest_beyond_the_first_run(store: Store) -> None:
    save(store.folder / "20260101-000000-a-b-0000.json")
    assert "no run latest~99: 1 run is stored in" in refusal(store, "latest~99")
    save(store.folder / "20260101-000000-a-b-0001.json")
    assert "2 runs are stored" in refusal(store, "latest~2")
    assert "oldest: latest~1" in refusal(store, "latest~2")
    for word in ("latest~", "latest~-1", "latest~x", "latest~1.5", "latest~²", "latest~" + "9" * 5000, "latest~1\n"):
        assert "N of latest~N is a whole number" in refusal(store, word)


def test_a_file_is_meant_by_its_path(store: Store, tmp_path: Path) -> None:
    path = save(tmp_path / "a.json")
    assert store.resolve(str(path)) == path
    assert store.read(str(path)) == make_run([make_matmul(256)])


def test_a_word_that_means_nothing(store: Store, tmp_path: Path, reference: Path) -> None:
    save(store.folder / "20260101-000000-a-b-0000.json")
    save(tmp_path / "before.json")
    assert "did you mean latest?" in refusal(store, "latset")
    assert f"did you mean {tmp_path / 'before.json'}?" in refusal(store, str(tmp_path / "befor.json"))
    assert "did you mean ref:h200?" in refusal(store, "red:h200", reference)
    assert "(a run is a file, latest, latest~N, @BASELINE or ref:NAME)" in refusal(store, "zzz")
    assert "is a folder" in refusal(store, str(tmp_path))
    for word in ("", "a\0b", "x" * 5000, "[/bold]\n.json", "@baseline"):
        refusal(store, word)


def test_reference_runs(store: Store, reference: Path) -> None:
    assert store.resolve("ref:xeon", reference) == reference / "xeon" / "matmul-sweep.json"
    assert store.resolve("ref:h200/bandwidth", reference) == reference / "h200" / "bandwidth.json.gz"
    message = refusal(store, "ref:h200", reference)
    assert message == "ref:h200 has 2 runs: name one (ref:h200/bandwidth, ref:h200/matmul-sweep)"
    assert "did you mean ref:h200?" in refusal(store, "ref:h20", reference)
    assert "there are ref:h200, ref:xeon" in refusal(store, "ref:", reference)
    assert "did you mean ref:h200/bandwidth?" in refusal(store, "ref:h200/bandwith", reference)
    for word in ("ref:empty", "ref:../reference/xeon", "ref:xeon/../h200/bandwidth", "ref:.", f"ref:{reference}/xeon"):
        assert "no reference" in refusal(store, word, reference)
    for nowhere in (None, reference / "no"):
        assert "no reference runs here" in refusal(store, "ref:h200", nowhere)


def test_a_stored_file_that_is_no_run(store: Store) -> None:
    for data, words in ((GOLDEN.read_bytes()[:5000], "ends in the middle"), (b"[]", "not a gpubench run file")):
        (store.folder).mkdir(exist_ok=True)
        path = store.folder / "20260101-000000-a-b-0000.json"
        path.write_bytes(data)
        with pytest.raises(UsageError, match=words):
            store.read("latest")


# What a run that was broken off left


def left(path: Path, run: Run, mark: str = "00c0ffee") -> None:
    """A journal of the run beside its file."""
    lines = [{"run": runfile.head(run)}, *({"record": runfile.plain(record)} for record in run.records)]
    text = "".join(f"{jsonfile.dumps(line)}\n" for line in lines)
    path.with_name(f"{path.name}.{mark}.journal").write_text(text)


def broken_off(count: int, run_id: str = "mine", day: int = 1) -> Run:
    rows = [make_matmul(2**each) for each in range(4, 4 + count)]
    return make_run(rows, run_id=run_id, started_at=f"2026-07-{day:02}T00:00:00Z", status="partial", ended_at=None)


@pytest.mark.parametrize("marks", [("00000001", "00000002"), ("00000002", "00000001")])
def test_of_two_journals_without_a_file_the_newest_run_is_read(tmp_path: Path, marks: tuple[str, str]) -> None:
    for day, mark in enumerate(marks, 1):
        left(tmp_path / "a.json", broken_off(1, f"of day {day}", day), mark)
    assert read_run(tmp_path / "a.json").run_id == "of day 2"


@pytest.mark.parametrize(("run_id", "count", "rows"), [("mine", 3, 3), ("mine", 1, 2), ("another", 3, 2)])
def test_a_broken_off_file_is_read_with_the_further_rows_of_its_own_journal(
    tmp_path: Path, run_id: str, count: int, rows: int
) -> None:
    path = save(tmp_path / "a.json", broken_off(2))
    left(path, broken_off(count, run_id))
    found = read_run(path)
    assert (found.run_id, len(found.records)) == ("mine", rows)


def test_a_journal_is_of_a_run_that_was_broken_off_whatever_its_head_says(tmp_path: Path) -> None:
    left(tmp_path / "a.json", dataclasses.replace(broken_off(1), status="complete"))
    assert read_run(tmp_path / "a.json").status == "partial"


@pytest.mark.parametrize(("count", "rows", "words"), [(1, 2, ["theirs"]), (2, 2, ["journal"]), (3, 3, ["journal"])])
def test_what_is_recovered_takes_no_row_from_the_file(
    store: Store, tmp_path: Path, count: int, rows: int, words: list[str]
) -> None:
    """A journal of as many rows may have counters that the file has not."""
    path = save(tmp_path / "a.json", dataclasses.replace(broken_off(2), argv=["theirs"]))
    left(path, dataclasses.replace(broken_off(count), argv=["journal"]))
    (journal,) = tmp_path.glob("*.journal")
    assert store.recover(journal) == path
    found = read_run(path)
    assert (len(found.records), found.argv, journal.exists()) == (rows, words, False)


def test_a_journal_without_rows_and_a_hidden_file_are_no_runs(store: Store) -> None:
    path = save(store.folder / "20260712-101500-a.json")
    save(store.folder / ".20260712-101500-b.json")
    left(store.folder / "20260713-101500-c.json", broken_off(0))
    (cut_short,) = store.folder.glob("*.journal")
    cut_short.write_text(cut_short.read_text() + '{"record":{"suite"')
    assert store.runs() == [path]
    left(store.folder / "20260714-101500-d.json", broken_off(1))
    assert store.runs() == [store.folder / "20260714-101500-d.json", path]


def test_a_report_of_two_runs_is_not_one(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    texts = [embedded.pack(runfile.encode(broken_off(1, run_id))) for run_id in ("a", "b")]
    page.write_text("<!doctype html>" + "".join(texts))
    with pytest.raises(UsageError, match="a comparison of 2 runs, not one"):
        read_run(page)
    page.write_text("<!doctype html>" + texts[1])
    assert read_run(page).run_id == "b"


def test_an_ab_measurement_is_told_by_how_its_file_begins(tmp_path: Path) -> None:
    begins = b'{"schema":"gpubench.ab/1",\n"run_id":"x"'
    for name, data, expected in (
        ("a.json", begins, True),
        ("b.json.gz", gzip.compress(begins), True),
        ("c.json", runfile.encode(broken_off(1)), False),
        ("d.json.gz", gzip.compress(runfile.encode(broken_off(1))), False),
        ("e.json.gz", b"\x1f\x8b", False),
    ):
        (tmp_path / name).write_bytes(data)
        assert holds_ab(tmp_path / name) is expected, name
    assert not holds_ab(tmp_path / "none.json")


def test_a_baseline_is_meant_by_its_newest_run(tmp_path: Path) -> None:
    baselines = Baselines(tmp_path / "baselines")
    known = {"fingerprint": {"id": "0123456789abcdef", "device": {"kind": "cuda"}}, "status": "complete"}
    runs = [dataclasses.replace(broken_off(1, f"run-{day}", day), **known) for day in (1, 2)]
    baselines.save("main", runs)
    assert Store(tmp_path / "store", baselines).read("@main").run_id == "run-2"


def test_the_golden_file_is_a_run() -> None:
    assert read_run(GOLDEN).status == "complete"


def test_ceilings_are_kept_by_device(store: Store) -> None:
    assert store.ceilings("GPU-1|700 W|580.1|2.13") == ([], None)
    kept = make_ceilings()
    store.keep_ceilings("GPU-1|700 W|580.1|2.13", kept)
    store.keep_ceilings("GPU-1|600 W|580.1|2.13", kept[:1])
    found, reason = store.ceilings("GPU-1|700 W|580.1|2.13")
    assert reason is None
    assert found == [dataclasses.replace(one, source="stored") for one in kept]
    assert len(store.ceilings("GPU-1|600 W|580.1|2.13")[0]) == 1
    assert store.runs() == []


def test_new_ceilings_replace_those_of_the_same_name(store: Store) -> None:
    kept = make_ceilings()
    store.keep_ceilings("key", kept)
    store.keep_ceilings(
        "key", [dataclasses.replace(kept[2], value=1e12), dataclasses.replace(kept[2], dtype="float16")]
    )
    found, _ = store.ceilings("key")
    assert [(one.name, one.dtype, one.value) for one in found] == [
        ("DRAM copy", None, kept[0].value),
        ("DRAM write", None, kept[1].value),
        (kept[2].name, "bfloat16", 1e12),
        (kept[2].name, "float16", kept[2].value),
    ]


def test_ceilings_of_another_level_or_kind_are_others(store: Store) -> None:
    first = make_ceilings()[0]
    others = [first, dataclasses.replace(first, level="L2"), dataclasses.replace(first, kind="compute")]
    store.keep_ceilings("key", others[:1])
    store.keep_ceilings("key", others[1:])
    assert [(one.level, one.kind) for one in store.ceilings("key")[0]] == [(one.level, one.kind) for one in others]


def test_keys_that_are_written_alike_are_apart(store: Store) -> None:
    for key, value in (("GPU-1|2.13", 1e12), ("GPU 1/2-13", 2e12)):
        store.keep_ceilings(key, [dataclasses.replace(make_ceilings()[0], value=value)])
    assert [store.ceilings(key)[0][0].value for key in ("GPU-1|2.13", "GPU 1/2-13")] == [1e12, 2e12]


@pytest.mark.parametrize("key", ["../../../up", "a/b", "a\0b\n", "x" * 5000, "", "日本"])
def test_a_key_never_becomes_a_path(store: Store, key: str) -> None:
    store.keep_ceilings(key, make_ceilings())
    assert len(store.ceilings(key)[0]) == 3
    assert os.listdir(store.folder) == ["ceilings"]
    assert len(os.listdir(store.folder / "ceilings")) == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"key": "key"', '"key": "other"', "not the ceilings of this device"),
        ("gpubench.ceilings/1", "gpubench.ceilings/2", "not ceilings kept by this gpubench"),
        ('"unit": "B/s"', '"unit": "GB/s"', "[0].unit: expected one of 'B/s' or 'FLOP/s', got \"GB/s\""),
        ('"level": "DRAM"', '"level": NaN', "NaN is not a JSON number"),
        ("]\n}\n", "", "ends in the middle"),
        ('"ceilings": [', '"ceilings": 1, "x": [', "not the ceilings of this device"),
    ],
)
def test_broken_ceilings_are_ignored_with_a_reason(store: Store, old: str, new: str, words: str) -> None:
    store.keep_ceilings("key", make_ceilings())
    (path,) = (store.folder / "ceilings").iterdir()
    path.write_text(path.read_text().replace(old, new))
    found, reason = store.ceilings("key")
    assert found == []
    assert reason is not None
    assert words in reason
    assert "\n" not in reason
    store.keep_ceilings("key", make_ceilings())
    assert len(store.ceilings("key")[0]) == 3


def test_ceilings_that_cannot_be_kept_are_one_line(store: Store) -> None:
    store.folder.write_text("a file")
    with pytest.raises(UsageError, match="cannot write"):
        store.keep_ceilings("key", make_ceilings())


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "gpubench" / "results"
