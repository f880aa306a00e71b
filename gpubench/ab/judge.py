"""What an A/B measurement says of every row: verdicts, failures, causes. Pure, from the file.

The figures are those of `gpubench.ab.pairs`; here is what else the two sides tell, in the rows of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from gpubench.ab.paired import LEAST_BLOCKS, PairedVerdict
from gpubench.ab.pairs import (
    UNLIKE,
    PairedRow,
    geometric_mean,
    hot_words,
    looks,
    paired_rows,
    time_of,
    used_blocks,
    verdicts,
)
from gpubench.compare import causes, comparable, judge
from gpubench.compare.runs import without_figure
from gpubench.result import Record, Run, Samples
from gpubench.stats import CONFIDENCE, per_call, summarize, t_quantile
from gpubench.store.abfile import BASE, NEW, SIDES, AbRun, SideFacts, SideName, SideRecord
from gpubench.telemetry import held_mhz
from gpubench.units import three_digits
from gpubench.verdict import Change, Judged, Mismatch, Row

AS_IS = "as it is"
TURN = 0.005
"""A difference of a block's second process from its first that is worth a word: it costs as much as noise of 0.5 %."""


def judged(found: AbRun, margin: float | None = None, margins: Mapping[str, float] | None = None) -> Judged:
    """Every case once, with its verdict and what the sides suggest as the cause; by the margins given, else by those
    that were asked for when it was measured."""
    sides = {name: _side_run(found, name) for name in SIDES}
    facts = comparable.run_mismatches(sides[BASE], sides[NEW])
    unlike = [each for each in facts if each.field == comparable.DEVICE]
    subject = [*comparable.subject(sides[BASE], sides[NEW]), *_kernel_texts(found)]
    subject += [str(each) for each in facts if each not in unlike]  # threads, modes: what a side does to its device
    known = {each.id: each for each in verdicts(found, margin, margins)}
    by_case = paired_rows(found)
    rows = [_row(id, by_case[id], known.get(id), unlike, subject) for id in by_case]
    told: dict[str, Any] = {
        name: {
            "what": list(side.what),
            "run_id": found.run_id,
            "started_at": found.started_at,
            "status": found.status,
            "device": str(side.device.get("name") or side.device.get("kind") or ""),
        }
        for name, side in found.sides.items()
    }
    return Judged(
        base_name=name_of_side(found.sides[BASE]),
        new_name=name_of_side(found.sides[NEW]),
        margin=found.margin if margin is None else margin,
        rows=rows,
        notes=_notes(found, len(by_case)),
        details={
            **told,
            "blocks": len(used_blocks(found)),
            "planned": found.planned,
            "looks": [count for count in looks(found.planned) if count <= len(used_blocks(found))],
            "order_seed": found.order_seed,
            "ending": found.ending,
            "margins": dict(found.margins if margins is None else margins),
            "quick": found.is_quick,
            "subject": subject,
        },
    )


def name_of_side(side: SideFacts) -> str:
    """What a side is, in words."""
    return ", ".join(side.what) or AS_IS


def _row(
    id: str, rows: PairedRow, verdict: PairedVerdict | None, unlike: Sequence[Mismatch], subject: Sequence[str]
) -> Row:
    base, new = _side(rows, BASE), _side(rows, NEW)
    row = Row(id, base.conditions.by_name, "inconclusive", None, base, new, subject=list(subject))
    if rows.failed:
        row.verdict, why = without_figure(base, new)
        row.reason = f"{why} ({_where(rows)})"
        return row
    apart = [] if rows.pairs or rows.apart is None else [rows.apart]
    row.mismatches = [*unlike, *apart]
    row.subject += _differences(base, new)
    if row.mismatches:
        row.verdict, row.reason = "not comparable", "; ".join(map(str, row.mismatches))
        return row
    if not rows.pairs:
        row.reason = "no block was finished"
        return row
    assert verdict is not None
    row.verdict, row.reason, row.paired = verdict.verdict, _reason(rows, verdict), _evidence(rows, verdict)
    if (doubt := next(filter(None, (judge.invalid(pair.base, pair.new) for pair in rows.pairs)), None)) is not None:
        row.verdict, row.reason = "invalid", doubt
    if row.verdict != "invalid":
        row.changes = _changes(rows, verdict)
    if row.verdict != "equivalent":
        row.hints = _hints(rows, base, new)
    return row


def _side(rows: PairedRow, side: str) -> Record:
    """One record of a side: the first that gave no figure, else all blocks together."""
    records = rows.base if side == BASE else rows.new
    failed = next((each for each in records if each.status != "ok"), None)
    if failed is not None:
        return failed
    counted = [pair.base if side == BASE else pair.new for pair in rows.pairs]
    return _pooled(counted or list(records))


def _pooled(records: Sequence[SideRecord]) -> Record:
    """The record whose median is the middle one, with the samples of all, the flags of any."""
    middle = sorted(records, key=time_of)[len(records) // 2]
    samples = Samples()
    for each in records:
        first = max(samples.block, default=-1) + 1
        samples.gpu_ns += each.samples.gpu_ns
        samples.launches += each.samples.launches
        samples.sm_mhz += each.samples.sm_mhz
        samples.block += [first + block for block in each.samples.block]
    flags = list(dict.fromkeys(flag for each in records for flag in each.flags))
    own = Record(**{each.name: getattr(middle, each.name) for each in fields(Record)})
    return replace(own, samples=samples, summary=summarize(per_call(samples)), flags=flags)


def _where(rows: PairedRow) -> str:
    """In which blocks a row failed, in words."""
    sides = {
        side: [each.block + 1 for each in records if each.status != "ok"]
        for side, records in ((BASE, rows.base), (NEW, rows.new))
    }
    return "; ".join(f"{side}: block {', '.join(map(str, blocks))}" for side, blocks in sides.items() if blocks)


def _differences(base: Record, new: Record) -> list[str]:
    """What the sides did otherwise: kernels, and labels that were read back."""
    ran = causes.kernels(base, new)
    read_back = [
        str(each)
        for each in comparable.row_mismatches(base, new)
        if each.field not in {*UNLIKE, comparable.CLOCK, "definition"} and not each.field.startswith("work.")
    ]
    return [*([] if ran is None else [f"kernel: {ran}"]), *read_back]


def _changes(rows: PairedRow, verdict: PairedVerdict) -> list[Change]:
    """The time of a call in the blocks that the verdict rests on and, where the row's headline is a rate, that rate:
    work over the same time."""
    base, new = (geometric_mean(times[: verdict.blocks]) for times in rows.times())
    loss, low, high = math.log(new / base), verdict.low, verdict.high
    _, one, other = rows.pairs[0]
    headline = one.primary
    rated = headline is not None and headline.unit in judge.RATES
    changes = [Change("time", "ns", "lower", base, new, new / base, low, high, loss, not rated)]
    if headline is not None and rated and other.primary is not None:
        works = [headline.value * time_of(one), other.primary.value * time_of(other)]
        was, now = works[0] / base, works[1] / new
        least, most = (None, None) if low is None or high is None else (1 / high, 1 / low)
        change = Change(headline.name, headline.unit, "higher", was, now, now / was, least, most, loss, True)
        changes.insert(0, change)
    return changes


def _evidence(rows: PairedRow, verdict: PairedVerdict) -> dict[str, Any]:
    """What the verdict rests on, as JSON: the medians of every block in ns, and the figures of `gpubench.ab.paired`."""
    blocks = [
        {"block": block.number + 1, "first": block.first, "base_ns": time_of(base), "new_ns": time_of(new)}
        for block, base, new in rows.pairs
    ]
    names = ("margin", "blocks", "level", "surely_low", "surely_high", "half_width", "detectable", "needed")
    return {"medians": blocks, **{name: getattr(verdict, name) for name in names}}


def _reason(rows: PairedRow, verdict: PairedVerdict) -> str:
    words = [verdict.reason]
    if verdict.verdict == "inconclusive":
        if verdict.detectable is not None:
            words.append(f"{three_digits(100 * verdict.detectable)} % would have been found")
        if verdict.needed is not None:
            words.append(f"{verdict.needed} blocks would decide")
    if rows.left_out:
        words.append(f"{rows.left_out} block{'s' * (rows.left_out > 1)} left out: {rows.apart}")
    return "; ".join(words)


def _hints(rows: PairedRow, base: Record, new: Record) -> list[str]:
    """What the sides suggest as the cause: a clock that differs in the same way in every block first; what widens the
    interval last."""
    said = causes.hints(base, new)
    if (shift := _clock_shift(rows)) is not None:
        said = [shift, *(line for line in said if not line.startswith("SM clock"))]
    return [*said, *filter(None, [_turn(rows)])]


def _turn(rows: PairedRow) -> str | None:
    """A difference of the second process of a block from the first, whichever side it is of: each side is second as
    often as the other, so that it favours none, but the interval is as wide as it. Half the difference of the mean
    ratios, where new came second and where it came first, by the t interval of two means."""
    if len(rows.pairs) < LEAST_BLOCKS or min(map(min, rows.times())) <= 0:
        return None
    ratios: dict[str, list[float]] = {BASE: [], NEW: []}
    for (block, _, _), base, new in zip(rows.pairs, *rows.times(), strict=True):
        ratios[block.first].append(math.log(new / base))
    if not all(ratios.values()):
        return None
    means = {first: math.fsum(values) / len(values) for first, values in ratios.items()}
    squares = math.fsum((value - means[first]) ** 2 for first, values in ratios.items() for value in values)
    degrees = len(rows.pairs) - 2
    error = math.sqrt(squares / degrees * math.fsum(1 / len(values) for values in ratios.values())) / 2
    slower = (means[BASE] - means[NEW]) / 2
    if abs(slower) - t_quantile(degrees, (1 + CONFIDENCE) / 2) * error <= TURN:
        return None
    return f"the second process of a block took {100 * math.expm1(slower):+.1f} %, whichever side it was"


def _clock_shift(rows: PairedRow) -> str | None:
    """A difference of the SM clock that is not chance: 0 is outside the t interval of its logarithm over the blocks."""
    clocks = [(held_mhz(base), held_mhz(new)) for _, base, new in rows.pairs]
    if len(clocks) < LEAST_BLOCKS or min(map(min, clocks)) <= 0:
        return None
    shifts = [math.log(new / base) for base, new in clocks]
    mean = math.fsum(shifts) / len(shifts)
    error = math.sqrt(math.fsum((each - mean) ** 2 for each in shifts) / (len(shifts) - 1) / len(shifts))
    half = t_quantile(len(shifts) - 1, (1 + CONFIDENCE) / 2) * error
    if abs(mean) - half <= causes.CLOCK_SHIFT:
        return None
    base, new = (geometric_mean([each[side] for each in clocks]) for side in (0, 1))
    return f"power: the SM clock differs, {base:.0f} → {new:.0f} MHz ({100 * math.expm1(mean):+.1f} %)"


def _kernel_texts(found: AbRun) -> list[str]:
    """The kernels' texts that were replaced, by side."""
    return [
        f"text of {name}: {side} {digest[:8]}"
        for side, facts in found.sides.items()
        for name, digest in facts.kernels.items()
    ]


def _side_run(found: AbRun, name: SideName) -> Run:
    """One side as a run without rows."""
    side = found.sides[name]
    head = {each.name: getattr(found, each.name) for each in fields(Run)}
    own = {"device": side.device, "software": side.software, "fingerprint": side.fingerprint, "records": []}
    return Run(**(head | own))


def _notes(found: AbRun, seen: int) -> list[str]:
    """What a reader must know of the measurement."""
    used, repeated = len(used_blocks(found)), [block for block in found.blocks if block.unused]
    blocks = f"{used} of {found.planned} blocks, each a fresh process of either side"
    notes = [f"{blocks}; decided at the first look" if found.ending == "decided" else blocks]
    if found.status != "complete":
        notes.append(f"the measurement is {found.status}")
    if found.ending in ("time budget", "environment", "nothing to compare"):
        why = hot_words(found) if found.ending == "environment" else "no row gave a figure on both sides"
        notes.append(f"{found.ending}: {why}" if found.ending != "time budget" else "stopped by the time budget")
    if repeated and found.ending != "environment":
        notes.append(f"{len(repeated)} not used: {'; '.join(dict.fromkeys(str(block.unused) for block in repeated))}")
    if len(found.cases) > seen:
        notes.append(f"{len(found.cases) - seen} of {len(found.cases)} rows were not reached on both sides")
    if found.is_quick:
        notes.append("a quick measurement, which never decides a build")
    return notes
