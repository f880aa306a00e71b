"""The runs kept as baselines, as a table or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.report.grid import Column, Grid
from gpubench.report.words import device_name, plain
from gpubench.result import Run


@dataclass(frozen=True)
class Kept:
    """One file: the run in it, or why it cannot be read."""

    name: str
    fingerprint: str
    file: str
    run: Run | str


def table(kept: Sequence[Kept]) -> RenderableType:
    """A row per run: how to call it, of which device, when, how many rows, of which suites."""
    if not kept:
        return Text("no baseline: gpubench baseline save NAME RUN keeps one")
    grid = Grid(
        [
            Column("baseline", fold=True),
            Column("device", fold=True),
            Column("measured"),
            Column("rows", right=True),
            Column("suites", fold=True),
        ]
    )
    for one in kept:
        word = f"@{one.name}/{one.fingerprint}"
        if isinstance(one.run, str):
            grid.add(word, plain(one.run), "", "", "", style="red")
        else:
            grid.add(
                word,
                device_name(one.run),
                plain(f"{one.run.started_at[:10]} {one.run.started_at[11:16]}"),
                f"{len(one.run.records):,}",
                ", ".join(_suites(one.run)),
            )
    return grid


def to_json(kept: Sequence[Kept]) -> dict[str, Any]:
    """The same in JSON values; `error` says why a file cannot be read, and the other facts are null then."""
    return {"baselines": [_json(one) for one in kept]}


def _json(one: Kept) -> dict[str, Any]:
    run = None if isinstance(one.run, str) else one.run
    return {
        "name": one.name,
        "fingerprint": one.fingerprint,
        "file": one.file,
        "run_id": run and run.run_id,
        "device": run and device_name(run),
        "started_at": run and run.started_at,
        "rows": run and len(run.records),
        "suites": run and _suites(run),
        "tags": run and run.tags,
        "commit": run and run.vcs.get("commit"),
        "error": one.run if isinstance(one.run, str) else None,
    }


def _suites(run: Run) -> list[str]:
    return list(dict.fromkeys(plain(record.suite) for record in run.records))
