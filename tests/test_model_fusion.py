"""What a chain moves unfused and fused: passes counted by hand, bytes, and the least times that facts allow."""

from __future__ import annotations

import pytest

from gpubench.model import fusion

H200 = {
    "compute_capability": "9.0", "multiprocessors": 132, "sm_mhz_max": 1980.0,
    "memory_mhz_max": 3201.0, "memory_bus_bits": 6016,
}  # fmt: skip


@pytest.mark.parametrize(
    ("reads", "passes"),
    [((1,), 2), (fusion.chain(6), 12), (fusion.SIN2_COS2, 11), (fusion.GELU, 22), (fusion.DROPPED, 7), ((), 0)],
)
def test_an_operation_reads_its_inputs_and_writes_its_result(reads: tuple[int, ...], passes: int) -> None:
    assert fusion.passes(reads) == passes


def test_the_lectures_example_is_44_bytes_an_element_unfused_and_8_fused() -> None:
    unfused = fusion.figures(1, 4, fusion.SIN2_COS2, {})
    fused = fusion.figures(1, 4, fusion.SIN2_COS2, {}, inputs=1)
    assert unfused == {"kernels": 5, "passes": 11, "moved_bytes": 44}
    assert fused == {"kernels": 1, "passes": 2, "moved_bytes": 8}


def test_the_least_times_are_those_of_the_pins_and_of_the_lanes() -> None:
    found = fusion.figures(2**26, 4, fusion.chain(4), H200, inputs=1, instructions=fusion.trigonometric(2))
    assert found["memory_ns"] == pytest.approx(8 * 2**26 / 4815e9 * 1e9, rel=1e-3)
    assert found["issue_ns"] == pytest.approx([2**26 * n / (132 * 128 * 1.98e9) * 1e9 for n in (40, 60)])


def test_results_of_a_number_a_row_are_no_passes() -> None:
    unfused = fusion.figures(1, 2, fusion.LAYER_NORM, {}, short=fusion.LAYER_NORM_SHORT)
    assert unfused == {"kernels": 9, "passes": 12, "moved_bytes": 24}
    fused = fusion.figures(1, 2, fusion.LAYER_NORM, {}, inputs=1, short=fusion.LAYER_NORM_SHORT)
    assert fused["passes"] == 2


def test_random_numbers_and_not_the_memory_are_what_fused_dropout_waits_for() -> None:
    found = fusion.figures(2**26, 2, fusion.DROPPED, H200, inputs=2, instructions=fusion.PHILOX, unit="int32")
    least, most = found["issue_ns"]
    assert found["memory_ns"] == pytest.approx(83.6e3, rel=0.01)
    assert least < 217.5e3 < most, "what an H200 took"
    assert least == pytest.approx(2**26 * 40 / (132 * 64 * 1.98e9) * 1e9)


def test_what_is_not_known_of_a_device_is_left_out() -> None:
    found = fusion.figures(8, 4, (1,), {"compute_capability": "99.0", "multiprocessors": None}, instructions=(1, 1))
    assert found.keys() == {"kernels", "passes", "moved_bytes"}


def test_compiling_pays_after_so_many_calls_or_never() -> None:
    assert fusion.break_even(3.0, 700e3, 100e3) == pytest.approx(5000)
    assert fusion.break_even(3.0, 100.0, 100.0) is None
    assert fusion.break_even(3.0, 100.0, 101.0) is None
