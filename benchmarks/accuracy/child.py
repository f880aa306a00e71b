"""The process in which peers run: `python -m accuracy.child DEVICE REPEATS BUDGET_S TOOL:WORK…`, a JSON row a line.

What the peers print goes to stderr. It stops before an item that would begin past its budget. NVBench's tools are named
by their first one, and give all their rows at the end; asked for gpubench's it gives pairs, see `accuracy.pairs`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from accuracy.results import Row
from accuracy.works import NVBENCH, OURS, TOOLS, WORKS
from gpubench.store import jsonfile


def serve(words: Sequence[str], send: Callable[[dict[str, object]], None]) -> None:
    """Measure what the words of the command line name."""
    from accuracy import nvbench
    from accuracy.pairs import pair
    from accuracy.peers import READINGS, Absent, Bench, version_of

    device, repeats, budget, *items = words
    until = time.monotonic() + float(budget)
    asked = [(TOOLS[tool], WORKS[work]) for tool, work in (item.split(":", 1) for item in items)]
    bench = Bench(device)
    if asked and asked[0][0] is OURS[0]:
        for _, work in asked:
            for row in pair(bench, work):
                send({"row": asdict(row)})
        return
    if asked and asked[0][0] in NVBENCH:
        works = [work for _, work in asked]
        try:
            rows = nvbench.rows(bench, works, min(int(repeats), NVBENCH[0].repeats))
            send({"version": ["NVBench", f"cuda-bench {version_of('cuda-bench')}"]})
        except Absent as error:
            rows = [Row(tool.name, work.name, absent=str(error)) for work in works for tool in NVBENCH]
        for row in rows:
            send({"row": asdict(row)})
        return
    for name in dict.fromkeys(tool.name for tool, _ in asked if tool.name in READINGS):
        distribution = READINGS[name][2]
        send({"version": [name, f"{distribution} {version_of(distribution)}"]})
    for tool, work in asked:
        if time.monotonic() >= until:
            return
        send({"row": asdict(bench.row(tool, work, min(int(repeats), tool.repeats)))})


def main() -> None:
    """Keep standard output for the rows."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def send(message: dict[str, object]) -> None:
            out.write(jsonfile.dumps(message) + "\n")
            out.flush()

        serve(sys.argv[1:], send)


if __name__ == "__main__":
    main()
