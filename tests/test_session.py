"""What a session says and decides, apart from the measuring."""

from __future__ import annotations

import pytest
from builders import make_record

from gpubench import surroundings
from gpubench.cli import session
from gpubench.cli.screen import Screen
from gpubench.exits import Exit
from gpubench.result import Conditions
from gpubench.suite import Case


@pytest.mark.parametrize(
    ("kind", "load", "warned"),
    [("cpu", 2.1, True), ("cpu", 0.5, True), ("cpu", 0.1, False), ("cpu", None, False), ("fake", 9.0, False)],
)
def test_a_busy_cpu_is_named_before_it_is_measured(
    kind: str, load: float | None, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(surroundings, "load", lambda: load)
    monkeypatch.setattr(session.os, "cpu_count", lambda: 2)
    session.warn_if_busy(kind, Screen())
    said = capsys.readouterr()
    assert said.out == ""
    assert ("this machine is busy (load average" in said.err) is warned


@pytest.mark.parametrize(
    ("statuses", "codes"),
    [
        (["ok"], []),
        (["ok", "skipped", "unsupported"], []),
        (["ok", "error"], [Exit.FAILED]),
        (["incorrect"], [Exit.FAILED, Exit.NOTHING]),
        (["skipped"], [Exit.NOTHING]),
        (["ok", "oom"], []),
        ([], [Exit.NOTHING]),
    ],
)
def test_what_the_rows_say_of_the_run(statuses: list[str], codes: list[Exit]) -> None:
    records = [make_record(params={"n": n}, status=status) for n, status in enumerate(statuses, 1)]
    assert session.outcome(records, []) == codes


def test_a_size_asked_for_by_hand_must_fit() -> None:
    record = make_record(params={"n": 400_000}, status="oom")
    case = Case(record.suite, record.benchmark, record.params, Conditions(), by_hand=True)
    assert session.outcome([record, make_record(params={"n": 1})], [case]) == [Exit.FAILED]
