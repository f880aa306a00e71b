"""Baselines: where they live, what may be one, and which of several devices' is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_matmul, make_record, make_run

from gpubench.errors import NothingMeasured, UsageError
from gpubench.result import Run
from gpubench.store import baseline, runfile
from gpubench.store.baseline import Baselines
from gpubench.store.folder import Store

H200, H100 = "0123456789abcdef", "fedcba9876543210"


def a_run(number: int = 0, fingerprint: str | None = H200, **fields: Any) -> Run:
    fields = {"records": [make_matmul(256)], **fields}
    return make_run(
        run_id=f"20260712-101500-{number:04x}",
        started_at=f"2026-07-12T10:{number:02}:00Z",
        fingerprint={} if fingerprint is None else {"id": fingerprint},
        **fields,
    )


@pytest.fixture
def kept(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path / baseline.FOLDER)


def files(kept: Baselines) -> list[str]:
    return sorted(str(path.relative_to(kept.folder)) for path in kept.folder.rglob("*") if path.is_file())


def test_a_baseline_is_a_copy_named_by_the_fingerprint(kept: Baselines) -> None:
    run = a_run()
    (path,) = kept.save("main", run)
    assert path == kept.folder / "main" / f"{H200}.json.gz"
    assert baseline.read(path) == run
    assert kept.find("@main").paths == (path,)
    assert kept.find("@main").word == f"@main/{H200}"


def test_the_same_run_gives_the_same_bytes(kept: Baselines, tmp_path: Path) -> None:
    one, other = (path for name in "ab" for path in kept.save(name, a_run()))
    assert one.read_bytes() == other.read_bytes()
    source = tmp_path / "run.json"
    source.write_bytes(runfile.encode(a_run()))
    from gpubench.store.jsonfile import read_bytes

    assert read_bytes(one) == source.read_bytes()


def test_nothing_is_overwritten_unless_asked(kept: Baselines) -> None:
    (path,) = kept.save("main", a_run(0))
    with pytest.raises(UsageError, match=r"'main' has a run of this device already \(--replace, or --add"):
        kept.save("main", a_run(1))
    assert baseline.read(path) == a_run(0)
    kept.save("main", a_run(1), replace=True)
    assert baseline.read(path) == a_run(1)
    assert files(kept) == [f"main/{H200}.json.gz"]


def test_runs_added_are_kept_in_order_and_replaced_together(kept: Baselines) -> None:
    kept.save("main", a_run(0), add=True)
    for number in range(1, 12):
        kept.save("main", a_run(number), add=True)
    found = kept.find("@main")
    assert [baseline.read(path).run_id for path in found.paths] == [a_run(number).run_id for number in range(12)]
    assert found.paths[-1].name == f"{H200}-12.json.gz"
    with pytest.raises(UsageError, match="has 12 runs of this device"):
        kept.save("main", a_run(20))
    kept.save("main", a_run(20), replace=True)
    assert files(kept) == [f"main/{H200}.json.gz"]


def test_several_runs_are_kept_at_once_the_oldest_first(kept: Baselines) -> None:
    paths = kept.save("main", [a_run(number) for number in (3, 1, 2)] + [a_run(4, H100)])
    assert files(kept) == [
        f"main/{H200}-2.json.gz",
        f"main/{H200}-3.json.gz",
        f"main/{H200}.json.gz",
        f"main/{H100}.json.gz",
    ]
    assert [baseline.read(path).run_id[-4:] for path in paths] == ["0001", "0002", "0003", "0004"]
    kept.save("main", [a_run(5), a_run(6)], replace=True)
    assert [baseline.read(path).run_id[-4:] for path in kept.find(f"@main/{H200}").paths] == ["0005", "0006"]
    kept.save("main", [a_run(8), a_run(7)], add=True)
    assert [baseline.read(path).run_id[-4:] for path in kept.find(f"@main/{H200}").paths] == [
        "0005",
        "0006",
        "0007",
        "0008",
    ]
    assert len(kept.find(f"@main/{H100}").paths) == 1


def test_the_oldest_is_the_one_that_began_first_whatever_it_is_called(kept: Baselines) -> None:
    old, late = a_run(2), a_run(1)
    old.started_at, late.started_at = late.started_at, old.started_at
    assert [baseline.read(path) for path in kept.save("main", [late, old])] == [old, late]


def test_a_run_is_added_behind_the_last_one_where_another_was_taken_out(kept: Baselines) -> None:
    *_, middle, last = kept.save("main", [a_run(number) for number in (1, 2, 3)])
    middle.unlink()
    (added,) = kept.save("main", a_run(4), add=True)
    assert added.name == f"{H200}-4.json.gz"
    assert kept.find("@main").paths[-2:] == (last, added)


def test_of_several_runs_none_is_kept_where_one_is_refused(kept: Baselines) -> None:
    kept.save("main", a_run(0))
    before = files(kept)
    for runs, why in (
        ([a_run(1), a_run(2, tags=["quick"])], "tagged quick"),
        ([a_run(1), a_run(1)], "holds run 20260712-101500-0001 already"),
        ([a_run(1), a_run(0)], "holds run 20260712-101500-0000 already"),
    ):
        with pytest.raises(UsageError, match=why):
            kept.save("main", runs, add=True)
        assert files(kept) == before
    with pytest.raises(UsageError, match="holds run"):
        kept.save("other", [a_run(1), a_run(1)])
    assert files(kept) == before


def test_a_run_counts_once(kept: Baselines) -> None:
    kept.save("main", a_run(0))
    kept.save("main", a_run(1), add=True)
    for number in (0, 1):
        with pytest.raises(UsageError, match=f"holds run 20260712-101500-000{number} already"):
            kept.save("main", a_run(number), add=True)


def test_a_run_may_take_its_own_place(kept: Baselines) -> None:
    assert kept.save("main", a_run(0)) == kept.save("main", a_run(0), replace=True)


def test_a_fingerprint_is_never_a_path(kept: Baselines) -> None:
    for text in (f"{H200}/../../x", f"{H200}0", f"../{H200}", H200.upper()):
        assert baseline.fingerprint_of(a_run(0, text)) is None


def test_devices_live_side_by_side_and_the_new_run_says_which(kept: Baselines) -> None:
    kept.save("main", a_run(0, H200))
    kept.save("main", a_run(1, H100))
    assert kept.find("@main", a_run(2, H100)).fingerprint == H100
    assert kept.find("@main", a_run(2, H200)).fingerprint == H200
    assert kept.find(f"@main/{H100}").fingerprint == H100
    assert kept.find(f"@main/{H100}", a_run(2, H200)).fingerprint == H100, "who says which one means it"
    for run in (None, a_run(2, "0" * 16), a_run(2, None)):
        with pytest.raises(UsageError, match=f"runs of 2 devices: .*@main/{H200}, @main/{H100}"):
            kept.find("@main", run)
    with pytest.raises(UsageError, match="no run '@main/0123'; did you mean @main/0123456789abcdef"):
        kept.find("@main/0123")


def test_the_only_one_is_meant_whatever_the_device(kept: Baselines) -> None:
    kept.save("main", a_run(0, H200))
    assert kept.find("@main", a_run(1, H100)).fingerprint == H200


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "interrupted"}, "is interrupted"),
        ({"status": "partial"}, "is partial"),
        ({"tags": ["nightly", "quick"]}, "tagged quick"),
        ({"records": []}, "no row with a number"),
        ({"records": [make_record(status="error", reason="boom")]}, "no row with a number"),
        ({"fingerprint": None}, "no fingerprint"),
        ({"fingerprint": "../../../x"}, "no fingerprint"),
        ({"fingerprint": "0123456789ABCDEF"}, "no fingerprint"),
    ],
    ids=str,
)
def test_what_is_no_baseline(kept: Baselines, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        kept.save("main", a_run(**fields))
    assert not kept.folder.exists()


NO_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a\\b",
    "/etc",
    "-x",
    ".hidden",
    "x.",
    "a b",
    "ä",
    "x" * 65,
    "con",
    "NUL.x",
    "x\n",
]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_is_a_word_and_never_a_path(kept: Baselines, name: str) -> None:
    for attempt in (kept.named, lambda name: kept.save(name, a_run())):
        with pytest.raises(UsageError) as caught:
            attempt(name)
        assert "is no name for a baseline" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not kept.folder.exists()


@pytest.mark.parametrize("name", ["main", "v1.2", "H200_580-driver", "0", "x" * 64])
def test_names(kept: Baselines, name: str) -> None:
    kept.save(name, a_run())
    assert kept.find(f"@{name}").name == name


def test_no_such_baseline_says_what_there_is(kept: Baselines) -> None:
    with pytest.raises(NothingMeasured, match=r"none is kept in .*baseline save main latest"):
        kept.find("@main")
    kept.save("main", a_run())
    with pytest.raises(NothingMeasured, match=r"no baseline 'mian'; did you mean main\? \(there are main\)"):
        kept.find("@mian")


def test_remove(kept: Baselines) -> None:
    kept.save("main", a_run(0, H200))
    kept.save("main", a_run(1, H200), add=True)
    kept.save("main", a_run(2, H100))
    kept.save("other", a_run(3))
    assert kept.remove(f"main/{H100}") == [kept.folder / "main" / f"{H100}.json.gz"]
    assert len(kept.remove("@main")) == 2
    assert files(kept) == [f"other/{H200}.json.gz"]
    assert not (kept.folder / "main").exists()
    with pytest.raises(NothingMeasured):
        kept.remove("main")


def test_files_of_others_are_left_alone(kept: Baselines) -> None:
    kept.save("main", a_run())
    (kept.folder / "main" / "README.md").touch()
    (kept.folder / "main" / f"{H200}-1.json.gz").touch()
    (kept.folder / "notes").touch()
    (kept.folder / "empty").mkdir()
    assert [(one.name, len(one.paths)) for one in kept.all()] == [("main", 1)]
    kept.remove("main")
    assert files(kept) == [f"main/{H200}-1.json.gz", "main/README.md", "notes"]


def test_a_folder_that_is_no_name_holds_no_baseline(kept: Baselines) -> None:
    (path,) = kept.save("main", a_run())
    for name in (".main", "a b"):
        (kept.folder / name).mkdir()
        (kept.folder / name / path.name).write_bytes(path.read_bytes())
    assert [one.name for one in kept.all()] == ["main"]


def test_a_broken_file_is_named(kept: Baselines) -> None:
    (path,) = kept.save("main", a_run())
    path.write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(UsageError, match=rf"{H200}\.json\.gz: damaged gzip"):
        baseline.read(path)


def test_a_baseline_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / baseline.FOLDER).touch()
    with pytest.raises(UsageError, match="cannot write"):
        Baselines(tmp_path / baseline.FOLDER).save("main", a_run())


def test_the_word_of_a_run_everywhere(kept: Baselines, tmp_path: Path) -> None:
    store = Store(tmp_path / "store", kept)
    with pytest.raises(NothingMeasured, match="no baseline 'main'"):
        store.resolve("@main")
    kept.save("main", a_run(0))
    (newest,) = kept.save("main", a_run(1), add=True)
    assert store.resolve("@main") == newest
    assert store.resolve(f"@main/{H200}") == newest
    for word in ("@", "@../x", "@main\n", "@/etc"):
        with pytest.raises(UsageError):
            store.resolve(word)
