"""The file of an A/B measurement: written and read alike, strict, and kept by the same journal as a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ab_parts import CASES, EFFORT, begun, follow, keep, two_sides

from gpubench.ab import judge as abjudge
from gpubench.ab import measure as ab
from gpubench.errors import UsageError
from gpubench.store import abfile, journal, runfile
from gpubench.store.abfile import AbRun, SideRecord
from gpubench.store.folder import RunWriter, Store, holds_ab, read_measured, read_run

GOLDEN = Path(__file__).parent / "golden" / "ab-1.json"


def golden() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(GOLDEN.read_text())
    return content


def test_the_golden_file_is_read_and_written_alike_and_judged_as_it_was() -> None:
    found = abfile.decode(GOLDEN.read_bytes(), "golden")
    assert isinstance(found, AbRun)
    assert json.loads(runfile.encode(found)) == golden()
    judged = abjudge.judged(found)
    (row,) = judged.rows
    assert (row.verdict, judged.base_name, judged.new_name) == ("regression", "as it is", "env:TOY_TIMES=1.05")
    assert row.change is not None
    assert row.change.ratio == pytest.approx(0.95316, abs=5e-6)
    assert judged.details["subject"] == ["torch: 2.10.0 → 2.11.0"]
    assert judged.notes == [
        "8 of 8 blocks, each a fresh process of either side",
        "1 not used: thermal slowdown (new)",
    ]


def test_a_run_file_is_told_from_it() -> None:
    run = GOLDEN.with_name("run-1.json")
    assert not isinstance(abfile.decode(run.read_bytes(), "run"), AbRun)
    assert (holds_ab(GOLDEN), holds_ab(run), holds_ab(run.with_name("gone.json"))) == (True, False, False)
    with pytest.raises(UsageError, match=r"ab-1.json: an A/B measurement, not a run \(gpubench compare .*ab-1.json\)"):
        read_run(GOLDEN)
    with pytest.raises(UsageError, match="gpubench compare FILE shows an A/B measurement"):
        runfile.decode(GOLDEN.read_bytes(), "x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda content: content.update(schema="gpubench.ab/2"),
            "written by a newer gpubench: its schema is gpubench.ab/2",
        ),
        (lambda content: content.update(planed=3), "planed: unknown key"),
        (lambda content: content.update(planned=0), "planned or margin: expected blocks"),
        (lambda content: content.update(margin=1.0), "planned or margin: expected blocks"),
        (lambda content: content["blocks"][2].update(number=7), "blocks[2]: number 7, slot 2"),
        (lambda content: content["blocks"][2].update(slot=8), "blocks[2]: number 2, slot 8"),
        (lambda content: content["blocks"][2].update(slot=-1), "blocks[2]: number 2, slot -1"),
        (lambda content: content["blocks"][0].update(first="old"), "blocks[0].first: expected one of"),
        (lambda content: content["records"][3].update(block=70), "records[3].block: there is no block 70"),
        (lambda content: content["records"][3].update(block=9), "records[3].block: there is no block 9"),
        (lambda content: content["records"][3].update(block=-1), "records[3].block: there is no block -1"),
        (lambda content: content["records"][3].update(side="both"), "records[3].side: expected one of"),
        (lambda content: content["records"][1].update(side=content["records"][0]["side"]), "is in block 0 of"),
        (lambda content: content["records"][0]["samples"]["block"].pop(), "records[0].samples: gpu_ns, launches"),
        (lambda content: content["base"].update(was=[]), "base.was: unknown key"),
    ],
)
def test_what_is_wrong_in_it_is_named(change: Callable[[dict[str, Any]], object], words: str) -> None:
    content = golden()
    change(content)
    with pytest.raises(UsageError) as caught:
        abfile.decode(json.dumps(content, separators=(",", ":")).encode(), "x.json")
    assert str(caught.value).startswith("x.json: ")
    assert words in str(caught.value)


def test_one_measured_for_any_difference_at_all_is_read_and_a_row_under_other_conditions_is_another() -> None:
    content = golden()
    content["margin"] = 0.0
    record = json.loads(json.dumps(content["records"][0]))
    record["conditions"]["cache"] = "hot"
    content["records"].append(record)
    found = abfile.decode(json.dumps(content, separators=(",", ":")).encode(), "x.json")
    assert isinstance(found, AbRun)
    assert (found.margin, len(found.records)) == (0.0, len(golden()["records"]) + 1)


def test_a_block_is_measured_in_its_order() -> None:
    assert abfile.Block(0, 0, "base").order == ("base", "new")
    assert abfile.Block(0, 0, "new").order == ("new", "base")


def test_what_a_killed_measurement_left_is_read_from_its_journal(tmp_path: Path) -> None:
    store = Store(tmp_path)
    found = begun(10)
    path = store.new_path(found, "ok")
    writer = RunWriter(path, found, clock=lambda: 0.0)
    blocks: list[abfile.Block] = []
    events = ab.run(found, CASES, EFFORT, two_sides(1.2))
    for event in events:
        if isinstance(event, SideRecord):
            writer.add(event)
        elif isinstance(event, ab.BlockBegun):
            writer.update(blocks=[*blocks, event.block])
        elif isinstance(event, ab.BlockEnded):
            blocks.append(event.block)
            writer.update(blocks=list(blocks))
        if len(found.records) == 15:
            break
    path.unlink(missing_ok=True)
    assert holds_ab(path)
    left = read_measured(path)
    assert isinstance(left, AbRun)
    assert (left.status, len(left.records), len(left.blocks)) == ("partial", 15, 3)
    assert left.blocks[-1].unused == abfile.UNFINISHED
    writer._drop_journal = lambda: None  # type: ignore[method-assign] # as if it had been killed
    assert writer._descriptor is not None
    os.close(writer._descriptor)
    (orphan,) = store.orphans()
    assert store.recover(orphan) == path
    recovered = read_measured(path)
    assert isinstance(recovered, AbRun)
    assert len(recovered.records) == 15
    assert journal.journals(tmp_path) == []


def test_saved_and_read_again_it_is_judged_alike(tmp_path: Path) -> None:
    found = follow(begun(8), two_sides(1.05))
    path = tmp_path / "x.json.gz"
    writer = RunWriter(path, begun(8))
    for event in ab.run(begun(8), CASES, EFFORT, two_sides(1.05)):
        if isinstance(event, SideRecord):
            writer.add(event)
        else:
            keep(writer.run, event)  # type: ignore[arg-type]
    writer.update(ending="all blocks")
    assert writer.close("complete") == path
    again = read_measured(path)
    assert isinstance(again, AbRun)
    assert holds_ab(path)
    before, after = abjudge.judged(found), abjudge.judged(again)
    assert [(row.id, row.verdict, row.changes, row.paired) for row in before.rows] == [
        (row.id, row.verdict, row.changes, row.paired) for row in after.rows
    ]
