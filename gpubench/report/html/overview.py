"""The first screen of a run's report: the verdict, the figures that matter; then the machine, and what to beware of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from gpubench import doctor
from gpubench.model import catalog
from gpubench.report import claims, info
from gpubench.report.closing import WORTH_SAYING, took
from gpubench.report.html.markup import Child, Markup, facts, folded, join, lines, table, tag
from gpubench.report.rows import Group, groups, number, percent_of_ceiling, ranked, statuses
from gpubench.report.sweep import largest_drop, main, sweeps
from gpubench.report.words import SEPARATOR, conditions_words, counted, device_name, device_word, plain
from gpubench.result import FAILED, Flag, Record, Run
from gpubench.units import format_bytes, format_rate

Tone = Literal["good", "warn", "bad", ""]
MARKS: Mapping[Tone, str] = {"good": "✓", "warn": "△", "bad": "✕", "": "·"}
"""What a tone is told by beside its colour."""
TONES: Mapping[doctor.Level, Tone] = {"bad": "bad", "warn": "warn", "note": "", "ok": "good"}

MEANING: Mapping[Flag, tuple[Tone, str]] = {
    "implausible": ("bad", "faster than physics allows: not to be believed, and nobody's best"),
    "throttled": ("warn", "the clock was held down by heat or power while they were measured"),
    "noisy": ("warn", "the median is not known as well as was asked for; its interval says how well"),
    "below-resolution": ("warn", "too short for the timer: nobody's best"),
    "fallback": ("warn", "another timer than the first choice took the samples; the row says why"),
    "profiled": ("", "other work lay between the kernels of a call"),
    "cache-resident": ("", "the data fits into a cache: the rate is not that of DRAM"),
    "analogue": ("", "a CPU's counterpart of the kernel, not the kernel"),
}
"""What a flag of rows means, and how grave it is."""


def verdict(run: Run) -> tuple[Tone, str]:
    """One sentence: is this run whole and right, and what do the claims come to."""
    failed = sum(record.status in FAILED for record in run.records)
    measured = sum(record.status == "ok" for record in run.records)
    others = len(run.records) - failed - measured
    tone: Tone = "good"
    parts = [f"{counted(measured, 'row')} measured" + (", every output right" if _all_right(run) else "")]
    if failed:
        tone, words = "bad", SEPARATOR.join(f"{n} {status}" for status, n in statuses(run.records).items())
        parts = [f"{failed:,} of {counted(len(run.records), 'row')} failed: {words}"]
    elif not measured:
        tone, parts = "bad", ["Nothing was measured"]
    elif others:
        parts.append(f"{others:,} do not apply here")
    if run.status != "complete":
        tone = "bad" if tone == "bad" else "warn"
        parts.insert(0, f"This run is {run.status}: rows are missing")
    if tone == "good" and (grave := sum(each == "bad" for each, _ in warnings(run))):
        tone = "warn"
        parts.append(f"{counted(grave, 'thing')} to beware of below")
    if any(claim.get("verdict") != "NOT RUN" for claim in run.claims):
        found = claims.counts(run.claims)
        parts.append(f"claims: {', '.join(found)}")
        if tone == "good" and any(claim.get("verdict") in ("ABSENT", "INVALID") for claim in run.claims):
            tone = "warn"
    return tone, f"{'; '.join(parts)}."


def _all_right(run: Run) -> bool:
    rows = [record for record in run.records if record.status == "ok"]
    return bool(rows) and all(record.check is not None for record in rows)


def head(run: Run) -> Markup:
    """Title, verdict and tiles."""
    begun = f"{run.started_at[:10]} {run.started_at[11:16]} UTC"
    length = took(run)
    version = plain(run.tool.get("version") or "")
    said = [begun, f"took {length}" if length else "", f"gpubench {version}" if version else ""]
    return join(
        [
            tag("p", "GPU benchmark report", class_="eyebrow"),
            tag("h1", device_name(run)),
            tag("p", SEPARATOR.join(filter(None, said)), tag("br"), tag("code", " ".join(run.argv)), class_="soft"),
            verdict_line(*verdict(run)),
            tiles(run),
        ]
    )


def verdict_line(tone: Tone, words: str) -> Markup:
    """The verdict, told by a sign and words, and coloured."""
    mark = tag("span", MARKS[tone], class_="mark", aria_hidden="true")
    return tag("p", mark, tag("span", words), class_=f"verdict {tone}")


def tiles(run: Run) -> Markup | None:
    """The few figures everybody asks for: best rate of arithmetic, of memory, the largest drop, the claims."""
    shown = [*_best(run), *_drop(run), *_holding(run)]
    cells = [tag("div", tag("dt", name), tag("dd", value, tag("small", note))) for name, value, note in shown]
    return tag("dl", *cells, class_="tiles") if cells else None


def _best(run: Run) -> Iterator[tuple[str, str, str]]:
    found = {id(record): group for group in groups(run) for record in group.records}
    for unit, name in (("FLOP/s", "best rate"), ("B/s", "best bandwidth")):
        rows = [row for row in run.records if (metric := number(row)) is not None and metric.unit == unit]
        order = ranked(row for row in rows if unit == "FLOP/s" or _of_dram(row))
        if order:
            metric = number(order[0])
            assert metric is not None
            yield name, format_rate(metric.value, unit), _where(run, found[id(order[0])], order[0])


def _of_dram(record: Record) -> bool:
    """Whether a row's bytes are those of DRAM: rates of caches are no bandwidth to boast of."""
    level = record.work.level if record.work is not None else None
    return level == "DRAM" and "cache-resident" not in record.flags


def _where(run: Run, group: Group, record: Record) -> str:
    percent = percent_of_ceiling(run, record)
    share = "" if percent is None else f", {percent:.0f} % of this {device_word(run)}'s ceiling"
    return f"{plain(group.path)} {group.case(record)}{share}"


def _drop(run: Run) -> Iterator[tuple[str, str, str]]:
    falls = [(drop, sweep) for sweep in main(sweeps(run))[:1] if (drop := largest_drop(sweep))]
    falls = [(drop, sweep) for drop, sweep in falls if drop[2] >= WORTH_SAYING]
    for (before, after, ratio), sweep in falls:
        yield "largest drop", f"{ratio:.1f}×", f"{plain(sweep.group.path)}, {sweep.axis} from {before} to {after}"


def _holding(run: Run) -> Iterator[tuple[str, str, str]]:
    judged = [claim for claim in run.claims if claim.get("verdict") not in ("INFO", "NOT RUN", "NOT TESTABLE HERE")]
    if judged:
        hold = sum(claim["verdict"] == "HOLDS" for claim in judged)
        yield "claims that hold", f"{hold} of {len(judged)}", "of those that this run could judge"


def machine(run: Run) -> Markup:
    """What it was measured on and under which conditions, and what a reader must beware of."""
    device, software, host = run.device, run.software, run.host
    conditions = conditions_words(*(record.conditions for record in run.records))
    timers = Counter(record.timer.name for record in run.records if record.timer is not None)
    shown: list[tuple[str, Child]] = [
        ("device", device_name(run)),
        ("memory", _sized(device.get("memory_bytes"))),
        ("multiprocessors", _text(device.get("multiprocessors"))),
        ("highest SM clock", _text(device.get("sm_mhz_max"), " MHz")),
        ("power limit", _text(device.get("power_limit_w"), " W")),
        ("driver", _text(device.get("driver"))),
        ("torch, CUDA", ", ".join(filter(None, (_text(software.get("torch")), _text(software.get("cuda")))))),
        ("processor", _text(host.get("cpu"))),
        ("system", _text(host.get("distribution") or host.get("os"))),
        ("conditions", conditions),
        ("timer", ", ".join(f"{plain(name)} ({counted(count, 'row')})" for name, count in timers.items())),
        ("commit", _commit(run.vcs)),
    ]
    sections = {"device": device, "software": software, "host": host}
    rows = [(part, *line) for part, values in sections.items() for line in info.lines(values)]
    return join(
        [
            facts(shown),
            lines([], class_="notes") if not (found := warnings(run)) else _noted(found),
            folded("All that is known of the machine", table("Facts of the run file", ["part", "fact", "value"], rows)),
        ]
    )


def _noted(found: Sequence[tuple[Tone, str]]) -> Markup:
    items = [tag("li", f"{MARKS[tone]} {words}", class_=tone or None) for tone, words in found]
    return join([tag("h3", "To beware of"), tag("ul", *items, class_="notes")])


def warnings(run: Run) -> list[tuple[Tone, str]]:
    """What may have spoiled the run, the worst first: of the machine, of the file, of its rows."""
    found: list[tuple[Tone, str]] = []
    if absence := catalog.absence(run.device):
        found.append(("", f"no share of a datasheet: {plain(absence)}"))
    for finding in _diagnosed(run):
        if finding.level != "ok":
            said = ": ".join(filter(None, (finding.what, finding.why)))
            found.append((TONES[finding.level], plain(said)))
    flags = Counter(flag for record in run.records for flag in record.flags)
    for flag, (tone, words) in MEANING.items():
        if flags[flag]:
            found.append((tone, f"{counted(flags[flag], 'row')} {flag}: {words}"))
    if run.is_quick:
        found.append(("warn", "a quick run: few sizes, little time for each"))
    for status, count in statuses(run.records).items():
        found.append(
            ("bad" if status in FAILED else "", f"{counted(count, 'row')} {status}; each says why in its table")
        )
    order = list(MARKS)
    return sorted(found, key=lambda each: (order.index("bad") - order.index(each[0])) % len(order))


def _diagnosed(run: Run) -> list[doctor.Finding]:
    """What `gpubench doctor` would have said of the machine, from the facts of the file."""
    environment = run.fingerprint.get("environment")
    variables = environment.get("variables") if isinstance(environment, Mapping) else None
    patient = doctor.Patient(
        device=run.device,
        software=run.software,
        notice=run.device.get("notice"),
        calibration=run.device.get("calibration") or {},
        host=run.host,
        surroundings={"ncu": True},  # what is installed has no part in a measurement that was made
        variables=variables or {},
    )
    try:
        return doctor.diagnose(patient)
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a file's facts may have any type
        return [doctor.Finding("note", "facts", f"facts of the machine cannot be read: {type(error).__name__}")]


def _sized(value: Any) -> str:
    return format_bytes(value) if isinstance(value, int | float) else ""


def _text(value: Any, unit: str = "") -> str:
    if value is None:
        return ""
    return f"{value:g}{unit}" if isinstance(value, float) else f"{plain(value)}{unit}"


def _commit(vcs: Mapping[str, Any]) -> str:
    commit = _text(vcs.get("commit"))[:12]
    return f"{commit}, with changes" if commit and vcs.get("dirty") else commit
