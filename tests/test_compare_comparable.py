from __future__ import annotations

from typing import Any, get_args

import pytest
from comparisons import FLOPS, at, device, only, rate, run, variables

from gpubench.result import KernelSeen, Record, Timer, Work
from gpubench.verdict import Verdict


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"name": "NVIDIA H100", "memory_gib": 80}, "device: NVIDIA H200 against NVIDIA H100"),
        ({"kind": "cpu", "name": "Some CPU"}, "device: NVIDIA H200 against Some CPU"),
        ({"memory_gib": 70}, "memory: 140 GiB against 70 GiB"),
        ({"power_limit_w": 500.0}, "power limit: 700 W against 500 W"),
        ({"power_limit_w": 699.5}, "power limit: 700 W against 699.5 W"),
        ({"power_limit_w": None}, "power limit: 700 W against not known"),
        ({"mig": True}, "MIG: off against on"),
        ({"ecc": False}, "ECC: on against off"),
    ],
)
def test_rows_of_another_device_are_not_comparable(facts: dict[str, Any], reason: str) -> None:
    base, new = run(rate(), **device()), run(rate(200_000), run_id="new", **device(**facts))
    found = only(base, new)
    assert (found.verdict, found.reason, found.changes) == ("not comparable", reason, [])
    assert all(each.host for each in found.mismatches)
    assert only(new, base).verdict == "not comparable"


def test_another_gpu_of_the_same_model_is_compared() -> None:
    other = device()
    other["device"] = {**other["device"], "uuid": "GPU-1"}
    assert only(run(rate(), **device()), run(rate(), run_id="new", **other)).verdict == "same"


def method(number: int | None) -> dict[str, Any]:
    return {"tool": {"name": "gpubench", "version": "0.1.0"} | ({} if number is None else {"method": number})}


def software(**more: Any) -> dict[str, Any]:
    return {"software": {"torch": "2.11", "cublas_reduced_precision": {"float16": True}} | more}


@pytest.mark.parametrize(
    ("base", "new", "reason"),
    [
        (method(1), method(2), "method: 1 against 2"),
        (method(None), method(1), "method: not known against 1"),
        (
            software(),
            software(cublas_reduced_precision={"float16": False}),
            "cublas reduced precision float16: on against off",
        ),
        (variables(), variables(NVIDIA_TF32_OVERRIDE="0"), "NVIDIA_TF32_OVERRIDE: not set against 0"),
        (
            variables(TORCH_ALLOW_TF32_CUBLAS_OVERRIDE="1"),
            variables(),
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE: 1 against not set",
        ),
    ],
)
def test_rows_of_another_method_or_mode_are_not_comparable(
    base: dict[str, Any], new: dict[str, Any], reason: str
) -> None:
    found = only(run(rate(), **base), run(rate(), run_id="new", **new))
    assert (found.verdict, found.reason) == ("not comparable", reason)
    assert not any(each.host for each in found.mismatches)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (rate(timer=Timer("event", 500.0)), "timer: cupti against event"),
        (rate(timer=None), "timer: cupti against not known"),
        (rate(definition="fedcba9876543210"), "definition: 0123456789abcdef against fedcba9876543210"),
        (rate(work=Work(2 * FLOPS, 0)), "work.flops: 1000000000 against 2000000000"),
        (rate(labels={"backend": "math"}), "backend: not known against math"),
        (rate(flags=["analogue"]), "implementation: kernel against CPU analogue"),
        (at(1900.0), "clock: SM at 1980 MHz against 1900 MHz"),
        (at(1960.0), "clock: SM at 1980 MHz against 1960 MHz"),
        (at(2000.0), "clock: SM at 1980 MHz against 2000 MHz"),
    ],
)
def test_rows_that_were_not_had_alike_are_not_comparable(new: Record, reason: str) -> None:
    found = only(rate(), new)
    assert (found.verdict, found.reason) == ("not comparable", reason)


@pytest.mark.parametrize("mhz", [1961.0, 1999.0, 1980.0, None, 0.0])
def test_clocks_within_a_percent_or_unknown_are_compared(mhz: float | None) -> None:
    assert only(rate(), at(mhz)).verdict == "same"


@pytest.mark.parametrize("part", ["device", "software", "fingerprint", "settings", "vcs", "host", "tool"])
@pytest.mark.parametrize("value", [[], "text", 5, None, {"deep": [1]}])
def test_objects_of_a_file_hold_anything(part: str, value: Any) -> None:
    """Their contents are not checked when a file is read."""
    strange = dict.fromkeys(("device", "environment", "seed", "commit", "governor", "method", "torch"), value)
    assert get_args(Verdict).count(only(run(rate(), **{part: strange}), run(rate(), run_id="new")).verdict) == 1
    row = rate(telemetry={"before": value, "after": {"event_ns": value, "temperature_c": value}, "throttles": value})
    assert only(run(row), run(row, run_id="new")).verdict == "same"


def test_what_a_comparison_is_about_is_named_and_compared() -> None:
    base = run(
        rate(kernels=[KernelSeen("old")]),
        software={"driver": "580.1", "torch": "2.11", "mkldnn": True},
        vcs={"commit": "a" * 40, "dirty": False},
        settings={"seed": {"value": 0}},
    )
    new = run(
        rate(kernels=[KernelSeen("new", count=2)]),
        run_id="new",
        software={"torch": "2.12", "mkldnn": True, "driver": "590.2"},
        vcs={"commit": "b" * 40, "dirty": True},
        tool={"name": "gpubench", "version": "0.2.0"},
        settings={"seed": {"value": 7}},
        **variables(CUDA_LAUNCH_BLOCKING="1"),
    )
    found = only(base, new)
    assert found.verdict == "same"
    assert found.subject == [
        "driver: 580.1 → 590.2",
        "torch: 2.11 → 2.12",
        "gpubench: 0.1.0 → 0.2.0",
        "commit: aaaaaaaaaa → bbbbbbbbbb (changed)",
        "seed: 0 → 7",
        "CUDA_LAUNCH_BLOCKING: not set → 1",
        "kernel: old → 2× new",
    ]
    assert found.hints == [], "a row that did not move needs no cause"


def test_firmware_and_governor_are_named_too() -> None:
    known = device()
    base, new = (
        run(
            rate(), **known | {"device": known["device"] | {"vbios": vbios}, "host": {"governor": governor}}, run_id=id_
        )
        for id_, vbios, governor in (("base", "96.00.1", "powersave"), ("new", "96.00.2", "performance"))
    )
    assert only(base, new).subject == ["vbios: 96.00.1 → 96.00.2", "governor: powersave → performance"]


def test_a_mismatch_says_whether_it_is_of_the_device() -> None:
    for base, new, field, host in (
        (run(at(1700.0)), run(at(1500.0), run_id="new"), "clock", True),
        (run(rate(), **device()), run(rate(), run_id="new", **device(power_limit_w=500.0)), "power limit", True),
        (run(rate(), **method(1)), run(rate(), run_id="new", **method(2)), "method", False),
    ):
        assert [(each.field, each.host) for each in only(base, new).mismatches] == [(field, host)]


def test_a_fingerprint_that_lacks_the_device_s_name_does_not_hide_it() -> None:
    one, other = (device(name=name) | {"fingerprint": {"device": {"memory_gib": 140}}} for name in ("one", "other"))
    assert only(run(rate(), **one), run(rate(), run_id="new", **other)).reason == "device: one against other"


def test_another_device_explains_its_timer_its_code_and_its_clock() -> None:
    """So that one line holds for every row, and --host-mismatch is about all of it."""
    new = run(rate(timer=Timer("host", 1.0), flags=["analogue"]), run_id="new", **device(kind="cpu", name="Some CPU"))
    found = only(run(at(1700.0), **device()), new)
    assert found.reason == "device: NVIDIA H200 against Some CPU"
    assert "timer cupti → host" in found.hints
    new.records[0].definition = "another"
    assert "definition: 0123456789abcdef against another" in str(only(run(at(1700.0), **device()), new).reason)
