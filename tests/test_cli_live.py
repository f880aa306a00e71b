"""What the line of a running case says."""

from __future__ import annotations

import io

import pytest
from builders import make_record

from gpubench.cli.live import Live, state
from gpubench.cli.screen import Screen
from gpubench.result import Conditions
from gpubench.runner import Progress, Started
from gpubench.suite import Case


def test_a_case_that_samples_says_how_well_it_knows_its_median() -> None:
    assert state(Progress("a/b", 40, 172_000.0, 516.0, 1980.0)) == "172 µs ± 0.3 %  n=40"


def test_a_half_width_of_several_times_the_median_is_readable() -> None:
    assert state(Progress("a/b", 3, 1000.0, 4200.0, 1980.0)) == "1.00 µs ± 420 %  n=3"


def test_a_load_that_warms_up_says_for_how_long_it_has() -> None:
    assert state(Progress("a/b", 0, 172_000.0, None, 1470.0, 3.96)) == "172 µs  warming up, 4 s"


@pytest.mark.parametrize("name", ["[/bold]", "gemm[fp16]", "[link=x]"])
def test_names_are_no_markup_in_the_live_view(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()
    monkeypatch.setattr("sys.stderr", seen)
    screen = Screen(environ={"TERM": "xterm-256color", "COLUMNS": "80"})
    live = Live(screen, 2, clock=lambda: 0.0)
    live.event(Started(Case(f"s{name}", f"b{name}", {"n": 1}, Conditions()), 1, 2))
    screen.err.print(live.render())
    bar, case, _ = (line.rstrip() for line in seen.getvalue().splitlines())
    assert bar.startswith(f"s{name} ")
    assert case == f"s{name}/b{name}[n=1]"
    live.event(make_record(f"s{name}", f"b{name}", status="error", reason=f"ptxas {name}"))
    assert f"[1/2] s{name}/b{name}[n=64]  error: ptxas {name}" in seen.getvalue().splitlines()
