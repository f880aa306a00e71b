"""The page: what a results file says, as Markdown. A pure function of the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from accuracy.judge import bias_ns, deviation, pairs, referee, variation, verdicts
from accuracy.results import PARTS, Results, Row
from accuracy.works import DURATIONS, OPERATIONS, OURS, REFEREES, RIVALS, TOOLS
from gpubench.units import format_duration

WORDS = {True: "kept", False: "**broken**", None: "not decided"}
ABSENT = "–"


def page(results: Results, source: str) -> str:
    """The whole page. `source` is the file it is drawn from, as the reader finds it."""
    known = results.provenance
    device, software = known.get("device", {}), known.get("software", {})
    lines = [
        f"# How well gpubench times: {device.get('name', 'unknown device')}",
        "",
        f"Drawn from `{source}` by `make pictures`; `make bench` measures it anew on your GPU.",
        "",
        f"Measured {known.get('measured_at', 'at an unknown time')} with gpubench {known.get('gpubench', '?')}"
        f"{_commit(known.get('vcs', {}))}, driver {software.get('driver', '?')}, CUDA {software.get('cuda', '?')},"
        f" torch {software.get('torch', '?')}.",
        "",
        "## Promises",
        "",
        *_grid(
            ["promise", "", "figures"],
            [[one.promise, WORDS[one.kept], one.words] for one in verdicts(results)],
        ),
        "",
        "## Kernels of known duration",
        "",
        "One thread spins for so many cycles and counts them; the clock is measured on the GPU in the same state: that"
        " is what the kernel takes. A tool's bias is its reading, less its own reading of a kernel that does nothing,"
        " less that. µs, and % above 20 µs; the raw reading in µs in brackets.",
        "",
        *_grid(["tool", *(work.name.removeprefix("spin ") for work in DURATIONS)], _durations(results)),
        "",
        "## Operations",
        "",
        "Median reading; in brackets its coefficient of variation over the repeats.",
        "",
        *_grid(["tool", *(work.name for work in OPERATIONS)], _operations(results)),
        "",
        "Deviation from the referee (ncu where it ran, else stamps of the global timer) in the same state of the cache,"
        " both less their own reading of nothing. In brackets what counts: the most favourable of that and the raw"
        " readings, each in time and in cycles of the SM clock they ran at; a tool that calls back to back hides its"
        " launches and may run the GPU into its power limit, which is not an error of its timer. Operations under"
        " 50 µs have no referee: the durations above are theirs.",
        "",
        *_grid(["tool", *_refereed(results)], _deviations(results)),
        "",
        "## Cost",
        "",
        "Median wall time of one measurement in s, at the tool's own settings; of gpubench all of a case but its data,"
        " compiling and checking.",
        "",
        *_grid(["tool", *(work.name for work in OPERATIONS)], _costs(results)),
        "",
        "## Fresh processes",
        "",
        "gpubench cold, one measurement in each of several processes: coefficient of variation of what they say. In as"
        " many other processes stamps of the global timer read the same call on the same data just before gpubench did:"
        " where the two go together, a correlation near 1, the process itself is slower. The stamps are kernels too, so"
        " that what lies between two kernels is in them once or twice more than in what gpubench reads.",
        "",
        *_grid(
            ["operation", "median", "CV", "processes", "in pairs: gpubench", "stamps", "correlation"], _fresh(results)
        ),
        "",
        "## Tools",
        "",
        *_grid(["tool", "how it is called, what is read", "L2", "calls", "repeats", "version"], _tools(results)),
        "",
    ]
    absent = _absences(results)
    if absent:
        lines += ["Not there:", "", *(f"- {line}" for line in absent), ""]
    return "\n".join(lines)


def _commit(vcs: dict[str, object]) -> str:
    commit = vcs.get("commit")
    return f" ({str(commit)[:10]}{', with changes' if vcs.get('dirty') else ''})" if commit else ""


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    body = [f"| {' | '.join(cell or ABSENT for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *body]


def _present(results: Results) -> list[str]:
    """Every tool with a reading of a duration or an operation, ours first, then peers, then referees."""
    there = {row.tool for part in ("durations", "operations", "ncu") for row in results.rows(part) if row.readings_ns}
    return [tool.name for tool in (*OURS, *RIVALS, *REFEREES) if tool.name in there]


def _durations(results: Results) -> list[list[str]]:
    return [
        [tool, *(_bias_cell(results, tool, work.name, work.us) for work in DURATIONS)] for tool in _present(results)
    ]


def _bias_cell(results: Results, tool: str, work: str, us: int | None) -> str:
    row = results.row(tool, work)
    if row is None or row.reading_ns is None:
        return ""
    raw = f"({row.reading_ns / 1e3:.2f})"
    bias = bias_ns(results, tool, work)
    if not us or bias is None or row.truth_ns is None:
        return raw
    return f"{bias / 1e3:+z.2f} {raw}" if us <= 20 else f"{bias / row.truth_ns:+z.2%} {raw}"


def _operations(results: Results) -> list[list[str]]:
    return [[tool, *(_reading_cell(results.row(tool, work.name)) for work in OPERATIONS)] for tool in _present(results)]


def _reading_cell(row: Row | None) -> str:
    if row is None or row.reading_ns is None:
        return ""
    cv = variation(row.readings_ns)
    return format_duration(row.reading_ns) + ("" if cv is None else f" ({cv:.2%})")


def _refereed(results: Results) -> list[str]:
    return [
        work.name for work in OPERATIONS if referee(results, work.name, "cold") or referee(results, work.name, "hot")
    ]


def _deviations(results: Results) -> list[list[str]]:
    works = _refereed(results)
    return [[tool, *(_deviation_cell(results, tool, work) for work in works)] for tool in _present(results)]


def _deviation_cell(results: Results, tool: str, work: str) -> str:
    judge = referee(results, work, TOOLS[tool].cache)
    if judge is not None and judge.tool == tool:
        return "referee"
    found = deviation(results, tool, work)
    if found is None:
        return ""
    return f"{found.share:+z.2%} ({found.counted:+z.2%})"


def _costs(results: Results) -> list[list[str]]:
    rows = []
    for tool in _present(results):
        found = [results.row(tool, work.name) for work in OPERATIONS]
        if any(row is not None and row.costs_s for row in found):
            rows.append([tool, *(_cost_cell(row) for row in found)])
    return rows


def _cost_cell(row: Row | None) -> str:
    return "" if row is None or not row.costs_s else f"{sorted(row.costs_s)[len(row.costs_s) // 2]:.3f}"


def _fresh(results: Results) -> list[list[str]]:
    rows = []
    for row in results.rows("fresh"):
        cv = variation(row.readings_ns)
        if row.reading_ns is not None and cv is not None:
            both = pairs(results, row.work)
            beside = [ABSENT] * 3
            if both is not None:
                together = ABSENT if both.correlation is None else f"{both.correlation:.2f}"
                beside = [f"{both.own:.2%}", f"{both.stamps:.2%}", together]
            rows.append([row.work, format_duration(row.reading_ns), f"{cv:.2%}", str(len(row.readings_ns)), *beside])
    return rows


def _tools(results: Results) -> list[list[str]]:
    versions = results.versions
    rows = []
    for name in _present(results):
        tool = TOOLS[name]
        version = versions.get(name, versions.get(name.split()[0], ""))
        repeats = max(len(row.readings_ns) for part in PARTS for row in results.rows(part) if row.tool == name)
        calls = "paced" if tool.paced else "back to back"
        rows.append([name, tool.setting, tool.cache, calls, str(repeats), version])
    return rows


def _absences(results: Results) -> list[str]:
    """Tools without a row and why, each reason once."""
    found: dict[str, list[str]] = {}
    for part in PARTS:
        for row in results.rows(part):
            if row.absent:
                found.setdefault(f"{row.tool}: {row.absent}", []).append(row.work)
    return [f"{line} ({len(works)} of its rows)" for line, works in found.items()]
