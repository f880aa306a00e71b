"""What must be the same on both sides of a comparison, and what may differ and is named: comparability and subject.

Comparability is about how a figure was had: the device, the timer, the precision mode, the method, the definition of
the benchmark, the clock held. Subject is what a comparison is about: driver, torch, commit, kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpubench.result import Record, Run
from gpubench.telemetry import held_mhz
from gpubench.verdict import Mismatch

DEVICE, CLOCK = "device", "clock"
CLOCK_MARGIN = 0.01
"""Share by which the SM clocks held may differ."""
PRECISION_VARIABLES = ("NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
"""Environment variables that set a precision mode."""
LIBRARIES = ("driver", "cuda", "torch", "cupy", "python", "triton")
"""Entries of `Run.software` in the order they are named; the others follow."""
UNKNOWN, UNSET = "not known", "not set"
ANALOGUE = "analogue"

_WORDS = {
    "kind": DEVICE,
    "name": DEVICE,
    "memory_gib": "memory",
    "power_limit_w": "power limit",
    "mig": "MIG",
    "ecc": "ECC",
    "physical_cores": "cores",
    "isa": "ISA",
}
_UNITS = {"memory_gib": "GiB", "power_limit_w": "W"}


def run_mismatches(base: Run, new: Run) -> list[Mismatch]:
    """What forbids to compare any row of the two runs."""
    found = [
        _mismatch(_WORDS.get(key, key), *values, unit=_UNITS.get(key, ""), host=True)
        for key, values in _differing(_device(base), _device(new)).items()
    ]
    other = [each for each in found if each.field == DEVICE]
    if other:  # which explains its memory, its limits, its modes
        found = other[-1:]
    else:
        found += [_mismatch(key, *values) for key, values in _differing(_modes(base), _modes(new)).items()]
        variables = [_variables(run, precision=True) for run in (base, new)]
        found += [_mismatch(key, *values, absent=UNSET) for key, values in _differing(*variables).items()]
    if base.tool.get("method") != new.tool.get("method"):
        found.append(_mismatch("method", base.tool.get("method"), new.tool.get("method")))
    return found


def asked_mismatches(base: Record, new: Record) -> list[Mismatch]:
    """Conditions asked for that differ: rows of one name whose keys are not the same."""
    differing = _differing(base.conditions.by_name, new.conditions.by_name)
    return [_mismatch(key, *values) for key, values in differing.items()]


def row_mismatches(base: Record, new: Record, of_runs: Sequence[Mismatch] = ()) -> list[Mismatch]:
    """What forbids to compare two rows, beyond their runs: timer, definition, formulas, kind of code, clock. Where the
    devices are not the same (`of_runs`), that explains their timers, their kinds of code and their clocks."""
    found = _definitions(base, new)
    if not any(each.field == DEVICE for each in of_runs):
        found += _ways(base, new)
    return found


def _ways(base: Record, new: Record) -> list[Mismatch]:
    """How two rows were had: timer, kind of code, clock."""
    found = []
    timers = [None if record.timer is None else record.timer.name for record in (base, new)]
    if timers[0] != timers[1]:
        found.append(_mismatch("timer", timers[0], timers[1]))
    if base.labels != new.labels:
        found += [_mismatch(key, *values) for key, values in _differing(base.labels, new.labels).items()]
    if (ANALOGUE in base.flags) != (ANALOGUE in new.flags):
        kinds = ["CPU analogue" if ANALOGUE in record.flags else "kernel" for record in (base, new)]
        found.append(_mismatch("implementation", kinds[0], kinds[1]))
    clocks = held_mhz(base), held_mhz(new)
    if 0 < min(clocks) * (1 + CLOCK_MARGIN) < max(clocks):
        found.append(Mismatch(CLOCK, f"SM at {clocks[0]:.0f} MHz", f"{clocks[1]:.0f} MHz", host=True))
    return found


def _definitions(base: Record, new: Record) -> list[Mismatch]:
    """What two rows do."""
    if base.definition != new.definition:
        return [Mismatch("definition", base.definition, new.definition)]
    if base.work == new.work:
        return []
    works = [{} if record.work is None else asdict(record.work) for record in (base, new)]
    return [_mismatch(f"work.{key}", *values) for key, values in _differing(*works).items()]  # edited by hand


def subject(base: Run, new: Run) -> list[str]:
    """What differs between two runs and may: software, gpubench itself, the commit, the seed, variables."""
    facts = _differing(_subject(base), _subject(new))
    variables = _differing(_variables(base, precision=False), _variables(new, precision=False))
    return [f"{key}: {_words(old)} → {_words(now)}" for key, (old, now) in facts.items()] + [
        f"{key}: {_words(old, absent=UNSET)} → {_words(now, absent=UNSET)}" for key, (old, now) in variables.items()
    ]


def _subject(run: Run) -> dict[str, Any]:
    software = {key: value for key, value in run.software.items() if not isinstance(value, Mapping)}
    named = {key: software.pop(key) for key in LIBRARIES if key in software}
    commit = run.vcs.get("commit")
    return {
        **named,
        **software,
        "gpubench": run.tool.get("version"),
        "commit": None if commit is None else f"{str(commit)[:10]}{' (changed)' if run.vcs.get('dirty') else ''}",
        "vbios": run.device.get("vbios"),
        "governor": run.host.get("governor"),
        "seed": inside(run.settings, "seed", "value"),
    }


def _device(run: Run) -> dict[str, Any]:
    """The facts of the device that must match; of a run without a fingerprint, what is known at all."""
    facts = inside(run.fingerprint, "device")
    named = {"kind": run.device.get("kind"), "name": run.device.get("name")}
    return named | dict(facts) if isinstance(facts, Mapping) else named


def _modes(run: Run) -> dict[str, Any]:
    """Modes of arithmetic that were read back, by dtype."""
    return {
        f"{name.replace('_', ' ')} {dtype}": on
        for name, each in run.software.items()
        if isinstance(each, Mapping)
        for dtype, on in each.items()
    }


def _variables(run: Run, precision: bool) -> dict[str, Any]:
    """Environment variables that were set: those of a precision mode, or the others."""
    found = inside(run.fingerprint, "environment", "variables")
    variables = found if isinstance(found, Mapping) else {}
    return {key: value for key, value in variables.items() if (key in PRECISION_VARIABLES) == precision}


def _mismatch(field: str, base: Any, new: Any, unit: str = "", host: bool = False, absent: str = UNKNOWN) -> Mismatch:
    return Mismatch(field, _words(base, unit, absent), _words(new, unit, absent), host)


def _differing(base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys whose values differ, with both; a missing one is None."""
    if base == new:
        return {}
    pairs = {key: (base.get(key), new.get(key)) for key in (*base, *(key for key in new if key not in base))}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def inside(value: Any, *path: str) -> Any:
    """A value inside objects of a file, None where there is none: what they hold is not checked when read."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _words(value: Any, unit: str = "", absent: str = UNKNOWN) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "on" if value else "off"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}".rstrip()
