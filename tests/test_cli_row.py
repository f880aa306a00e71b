"""Which row of a run is meant, and what is said where none or several are."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from builders import make_record, make_run

from gpubench.cli.row import row_of, without_run
from gpubench.errors import UsageError
from gpubench.result import Conditions

RUN = make_run(
    [
        make_record("waves", "blocks", params={"n": 64, "layout": "nn"}),
        make_record("waves", "blocks", params={"n": 64, "layout": "nn"}, conditions=Conditions("hot")),
        make_record("waves", "blocks", params={"n": 128, "layout": "nn"}),
        make_record("waves", "rows", params={"tile": 8}),
    ]
)


def test_a_row_is_named_by_its_id_by_words_or_by_values() -> None:
    for row in RUN.records:
        assert row_of(RUN, [row.id], []) is row
    first, hot, large, rows = RUN.records
    assert row_of(RUN, ["n=64", "hot"], []) is hot
    assert row_of(RUN, ["n=64 hot"], []) is hot, "in quotes too"
    assert row_of(RUN, ["cold"], ["n=64"]) is first
    assert row_of(RUN, [], ["n=128,256"]) is large
    assert row_of(RUN, ["waves/rows"], []) is rows
    assert row_of(make_run([rows]), [], []) is rows, "a run of one row needs no words"


@pytest.mark.parametrize(
    ("case", "params", "said"),
    [
        ([], [], "which of 4 rows? waves/blocks[layout=nn,n=64], "),
        (["n=64"], [], "n=64 is 2 rows: waves/blocks[layout=nn,n=64], waves/blocks[cache=hot,layout=nn,n=64] (such as"),
        (["n=64x"], [], "n=64x: no such row; did you mean n=64? (CASE is a record's id"),
        (["n=100"], [], "n=100: no such row; the nearest are n=64 and n=128 ("),
        ([], ["n=1000"], "-p n=1000: no such row; the nearest is n=128 ("),
        ([], ["n=1"], "-p n=1: no such row; the nearest is n=64 ("),
        (["nn=64"], [], "nn=64: no such row; no parameter nn; did you mean n? ("),
        ([], ["q=64"], "-p q=64: no such row; no parameter q, but n, layout, cache, load, data, tile ("),
        ([], ["layout=tn"], "-p layout=tn: no such row; layout is nn here ("),
        (["layout=mn"], ["n=64"], "layout=mn -p n=64: no such row; layout is nn here ("),
        (["hto"], [], "hto: no such row; did you mean hot? ("),
        (["wave/rows"], [], "wave/rows: no such row; did you mean waves/rows? ("),
        (["waves/rows[tile=9]"], [], "did you mean waves/rows[tile=8]? ("),
        (["n=128", "hot"], [], "n=128 hot: no such row (CASE is"),
    ],
)
def test_what_is_said_of_others(case: list[str], params: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        row_of(RUN, case, params)
    assert said in str(refused.value)


def test_few_of_many_rows_are_listed() -> None:
    run = make_run([make_record(params={"n": n}) for n in range(1, 9)])
    with pytest.raises(UsageError, match=r"which of 8 rows\? .*n=5\] and 3 more \(such as '.*n=1\]',"):
        row_of(run, [], [])


def test_the_row_a_message_gives_as_an_example_is_one() -> None:
    with pytest.raises(UsageError) as refused:
        row_of(RUN, ["n=64"], [])
    assert refused.value.hint is not None
    example = shlex.split(refused.value.hint)[2].removesuffix(",")
    assert row_of(RUN, [example], []) is RUN.records[0]


def test_a_row_s_words_are_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_run("n=64", ["hot"]) == (None, ["n=64", "hot"])
    assert without_run("latest", ["n=64"]) == ("latest", ["n=64"])
    assert without_run(None, []) == (None, [])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n=64").touch()
    assert without_run("n=64", []) == ("n=64", [])
