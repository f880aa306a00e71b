"""The benchmark of ceilings: the searches beside each other, and the duel of their winners."""

from __future__ import annotations

import importlib.util
import math
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.insert(0, str(ROOT / "benchmarks"))

from search import duel, finders  # noqa: E402

from gpubench.discovery import Library  # noqa: E402
from gpubench.errors import UsageError  # noqa: E402
from gpubench.result import Conditions, Metric, Record  # noqa: E402

NEWER = """Tried 80 shapes => the best outcomes were:
MAMF (max achievable,  boost burst): 812 TFLOPS @ 2048x4096x4096 (MxNxK)  690W 1980MHz 45C
MSMF (max sustainable, saturated):   640 TFLOPS @ 8192x4096x4096 (MxNxK)
"""
OLDER = """Tried 79 shapes => the best outcomes were:
mean:   700.1 TFLOPS @ 4096x4096x4096 (MxNxK)
median: 712.5 TFLOPS @ 5120x4096x4096 (MxNxK)
max:    790.0 TFLOPS @ 256x4096x4096 (MxNxK)
"""


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("ceilings_benchmark", ROOT / "benchmarks/ceilings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "rate", "shape", "shapes"),
    [(NEWER, 812e12, (2048, 4096, 4096), 80), (OLDER, 712.5e12, (5120, 4096, 4096), 79)],
)
def test_what_mamf_finder_prints_is_understood(text: str, rate: float, shape: finders.Shape, shapes: int):
    assert finders.outcome(text) == (rate, shape, shapes)


def test_a_text_without_a_result_is_refused():
    with pytest.raises(UsageError, match="no result that is understood"):
        finders.outcome("MAMF (max achievable,  boost burst): n/a\n")


def test_the_users_finder_is_run_as_it_is_with_its_own_arguments(tmp_path: Path):
    own = tmp_path / "mamf-finder.py"
    own.write_text("import sys\nprint(f'max: 5 TFLOPS @ {len(sys.argv)}x2x3 (MxNxK)')\nassert '--dtype' in sys.argv\n")
    own.chmod(own.stat().st_mode | stat.S_IXUSR)
    found = finders.mamf(own, ["--m", "1"], "bfloat16")
    assert (found.name, found.shape) == ("mamf-finder", (7, 2, 3))
    own.write_text("raise SystemExit('no GPU')")
    with pytest.raises(UsageError, match=r"mamf-finder\.py ended with status 1: no GPU"):
        finders.mamf(own, [], "bfloat16")


def test_the_plain_grid_holds_every_shape_that_fits():
    everything = list(finders.grid(2, 2**40))
    assert len(everything) == len(finders.SIDES) ** 2 * len(finders.DEPTHS)
    some = list(finders.grid(2, 2**27))
    assert 0 < len(some) < len(everything)
    assert max(2 * (m * k + k * n + m * n) for m, n, k in some) <= 2**26


def rated(rates: dict[str, float | None]):
    """An executor that measures what the shape says, or fails."""

    def answer(case, effort):
        rate = rates.get(case.params["shape"])
        record = Record(case.id, case.suite, case.benchmark, "d", dict(case.params), Conditions(), "ok")
        if rate is None:
            record.status, record.reason = "oom", "no room"
        else:
            record.metrics = [Metric("flops", rate, "FLOP/s", "higher", primary=True)]
        yield record

    return SimpleNamespace(measure=answer)


def test_our_search_is_the_best_row_of_the_suite_and_failures_do_not_end_it():
    benchmark = Library().suite("peak").benchmarks["matmul"]
    found = finders.ours(rated({"4096x4096x12288": 8e14, "8192x4096x8192": 7e14}), benchmark, "bfloat16")
    assert (found.shape, found.rate) == ((4096, 4096, 12288), 8e14)
    with pytest.raises(UsageError, match="gave no rate"):
        finders.ours(rated({}), benchmark, "bfloat16")


def test_a_duel_takes_turns_and_its_ratio_is_of_the_first_over_the_second():
    order = []

    def turn(shape: finders.Shape) -> float:
        order.append(shape)
        return {1: 990.0, 2: 1000.0}[shape[0]] * (1 + 0.001 * len(order))

    fought = duel.fight("rested", turn, (1, 1, 1), (2, 2, 2), rounds=10)
    assert [shape[0] for shape in order[:8]] == [1, 2, 2, 1, 1, 2, 2, 1]
    assert fought.low < fought.ratio < fought.high
    assert fought.ratio == pytest.approx(0.99, abs=1e-4)  # the drift cancels
    assert all(first < second for first, second in fought.rounds)


def test_the_interval_is_students_on_logarithms():
    low, middle, high = duel.interval([0.98, 1.0, 1.02])
    logs = [math.log(value) for value in (0.98, 1.0, 1.02)]
    mean = sum(logs) / 3
    half = 4.302653 * math.sqrt(sum((x - mean) ** 2 for x in logs) / 2 / 3)  # t of 2 degrees, 97.5 %
    assert (low, middle, high) == pytest.approx((math.exp(mean - half), math.exp(mean), math.exp(mean + half)))
    with pytest.raises(ValueError, match="two rounds"):
        duel.interval([1.0])


def test_a_paced_turn_is_a_case_of_the_suite_and_says_what_failed():
    turn = duel.paced(rated({"1x2x3": 5.0}), "bfloat16")
    assert turn((1, 2, 3)) == 5.0
    with pytest.raises(UsageError, match="3x2x1: no room"):
        turn((3, 2, 1))


@pytest.mark.parametrize(("ratio", "short"), [(0.97, True), (0.995, False), (1.01, False)])
def test_a_ceiling_that_is_surely_too_low_is_said(script, ratio: float, short: bool):
    fought = duel.Duel("rested, cold", [(1.0, 1.0)] * 10, ratio - 0.005, ratio, ratio + 0.005)
    assert script.falls_short(fought) is short
    found = [finders.Found("a", (1, 2, 3), 8e14, 4, 1.0), finders.Found("b", (1, 2, 3), 8e14, 1280, 20.0)]
    text = script.report(found, [fought])
    assert ("**short**" in text) is short
    assert "| a | 1x2x3 | 800 TFLOP/s | 4 | 1 s |" in text
    assert "the same shape" in text


def test_without_such_a_gpu_it_says_so_in_one_line(script, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert script.main(["--out", str(tmp_path / "c.json"), "--device", "cuda:99"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("ceilings: needs an NVIDIA GPU")


def test_a_finder_that_is_not_there_is_said_before_anything_is_measured(script, capsys, tmp_path: Path):
    assert script.main(["--out", str(tmp_path / "c.json"), "--mamf", str(tmp_path / "mamf-finder.py")]) == 2
    assert "no such file" in capsys.readouterr().err
