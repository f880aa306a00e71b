"""A trace of calls of one row, for ui.perfetto.dev: made in a process of its own, written as a whole file or not at
all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpubench import __version__
from gpubench.errors import CaseError, UsageError
from gpubench.profiling import child
from gpubench.profiling.child import Failed, Tell, Watch
from gpubench.profiling.counting import Job, request_of
from gpubench.store import jsonfile

MOST_CALLS = 1000
"""Of one trace: more of the same says no more."""
SUFFIXES = (".json", ".json.gz")


def check(path: str, calls: str | None) -> int:
    """How many calls are meant, one unless it is said. UsageError for a file or a number that cannot be meant."""
    if not path.endswith(SUFFIXES):
        raise UsageError(f"--trace {path!r} is no .json file", "such as --trace trace.json")
    if calls is None:
        return 1
    if not (calls.isascii() and calls.isdecimal()) or not 1 <= int(calls[:9]) <= MOST_CALLS:
        raise UsageError(f"--calls {calls!r} is not a whole number from 1 to {MOST_CALLS}")
    return int(calls)


def write(
    path: Path,
    job: Job,
    *,
    calls: int,
    device: str,
    seed: int,
    timeout: float,
    environ: Mapping[str, str] = os.environ,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Trace so many calls of a job's case on the device of that word, and write them to a file. What is in it: `calls`,
    the `device` that made them, `events`, how many more were `left_out`, the `names` of what took time and its
    `ns` in all, and of those names the first, `spent`: name, kind, count and ns, most first.

    `timeout` is what all of it may take once the device is open, in seconds. CaseError says why there is no trace.
    """
    with tempfile.TemporaryDirectory(prefix="gpubench-") as name:
        folder = Path(name)
        asked, told, said, made = (folder / part for part in ("request.json", "told.jsonl", "said.txt", "trace.json"))
        facts = {"gpubench": __version__, "record": job.case.id, "cache": job.case.conditions.cache, "calls": calls}
        request: dict[str, Any] = {
            "device": device, "seed": seed, "case": request_of(job), "calls": calls, "timeout": timeout,
            "told": str(told), "trace": str(made), "facts": facts,
        }  # fmt: skip
        asked.write_text(jsonfile.dumps(request))
        told.touch()
        try:
            words = child.python("gpubench.profiling.traced", asked)
            child.wait("the tracing process", words, said, told, Watch(timeout), environ)
        except Failed as failed:
            raise CaseError(f"no trace: {failed}") from None
        finally:
            child.pass_on(child.text(said), tell)
        answers = child.messages(child.text(told))
        state = answers.get("0", answers.get("failed", "the tracing process ended before it was done"))
        if state != "ok":
            raise CaseError(f"no trace: {state}", "gpubench profile --debug")
        jsonfile.write_atomic(path, made.read_bytes())
    return {"calls": calls, **answers["trace"]}
