"""How well gpubench times, beside its peers, on this GPU: `make bench`, or

    benchmarks/timer_accuracy.py --out FILE.json [--part durations] [--budget SECONDS]

Each row is written as soon as it is measured, and what is in the file already is not measured again: a run that was
stopped goes on where it was. Peers run as published, with default settings; one that is not installed is a row that is
absent, with its reason, and stays so in that file. On an H200 all parts take about 9 minutes, none more than 5. At the
end the promises are judged from the file: exit status 1 where one is broken, 2 where nothing can be measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent)]

from accuracy import ncu, ours  # noqa: E402
from accuracy.judge import verdicts  # noqa: E402
from accuracy.results import PARTS, Results, Row, load, save  # noqa: E402
from accuracy.table import page  # noqa: E402
from accuracy.works import (  # noqa: E402
    COLD_STAMPS,
    DURATIONS,
    NCU,
    NVBENCH,
    OPERATIONS,
    OURS,
    PAIR,
    PEERS,
    REFEREED,
    STAMPS,
    WORKS,
    Tool,
    Work,
)

from gpubench import __version__, environment  # noqa: E402
from gpubench.errors import DeviceUnavailable, GpubenchError, UsageError  # noqa: E402
from gpubench.store import jsonfile  # noqa: E402
from gpubench.units import format_duration  # noqa: E402

TIMED = {"durations": tuple(work.name for work in DURATIONS), "operations": tuple(work.name for work in OPERATIONS)}
CHILD = (*PEERS, STAMPS, COLD_STAMPS)
"""What runs in the process of the peers."""
Item = tuple[str, str]
"""A tool and a work by their names."""


class Spent(Exception):
    """The budget is spent; what was measured is in the file."""


class Benchmark:
    """One file being filled. `repeats` bounds those of every tool, `processes` how many fresh ones there are."""

    def __init__(self, path: Path, device: str, repeats: int, processes: int, budget: float | None) -> None:
        self.path = path
        self.device = device
        self.repeats = repeats
        self.processes = processes
        self.until = time.monotonic() + budget if budget is not None else float("inf")
        self.results = load(path) if path.exists() else Results({})
        self.last_words = ""
        """How a child ended, where it did not as it should."""

    def missing(self, part: str) -> list[Item]:
        """What the file lacks of a part."""
        if part in ("fresh", "pairs"):
            have = {(row.tool, row.work): len(row.readings_ns) for row in self.results.rows(part)}
            items = [(tool, name) for tool in (PAIR if part == "pairs" else PAIR[:1]) for name in TIMED["operations"]]
            return [item for item in items if have.get(item, 0) < self.processes]
        if part == "ncu":
            wanted = [(tool.name, name) for tool in NCU for name in REFEREED]
        else:
            tools = (*OURS, *CHILD, *NVBENCH)
            wanted = [(tool.name, name) for tool in tools for name in TIMED[part]]
        return [item for item in wanted if not self.results.has(part, *item)]

    def run(self, part: str) -> None:
        """Measure what is missing of a part. Spent where the budget ends first."""
        missing = self.missing(part)
        if not missing:
            return
        self._open()
        print(f"{part}: {len(missing)} rows to go", flush=True)
        if part in ("fresh", "pairs"):
            self._fresh(part)
        elif part == "ncu":
            self._ncu(missing)
        else:
            self._ours(part, missing)
            self._children(part, missing, CHILD)
            self._children(part, missing, NVBENCH)

    def keep(self, part: str, row: Row) -> None:
        """Put a row into the file and say so."""
        self.results.add(part, row)
        save(self.results, self.path)
        words = row.absent if row.reading_ns is None else format_duration(row.reading_ns)
        print(f"  {row.tool:<18}{row.work:<22}{words}", flush=True)

    def _check(self) -> None:
        if time.monotonic() >= self.until:
            raise Spent

    def _open(self) -> None:
        """See that the device is there and that the file is of such a device; a new file gets its provenance."""
        worker = ours.open_worker(self.device)
        facts, software = dict(worker.hello.facts), dict(worker.hello.software)
        worker.close()
        if facts.get("kind") != "cuda":
            raise UsageError(f"--device {self.device}: the benchmark needs an NVIDIA GPU")
        known = self.results.provenance.get("device", facts)
        if known.get("name") != facts.get("name"):
            raise UsageError(f"{jsonfile.shown(self.path)}: is of {known.get('name')}", "another --out")
        if not self.results.provenance:
            self.results.provenance = {
                "measured_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "gpubench": __version__,
                "vcs": environment.vcs(BENCHMARKS),
                "host": environment.host(),
                "device": facts,
                "software": software | environment.libraries(),
            }
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def _ours(self, part: str, missing: Iterable[Item]) -> None:
        pending = {tool.name: [WORKS[name] for one, name in missing if one == tool.name] for tool in OURS}
        if not any(pending.values()):
            return
        worker = ours.open_worker(self.device)
        self.results.versions["gpubench"] = __version__
        try:
            for tool in OURS:
                for row in ours.measured(worker, tool, pending[tool.name], min(self.repeats, tool.repeats)):
                    self.keep(part, row)
                    self._check()
        finally:
            worker.close()

    def _children(self, part: str, missing: Iterable[Item], tools: Sequence[Tool]) -> None:
        """Rows of a process of peers; one that dies costs the row it was at, and the rest get another."""
        names = [tool.name for tool in tools]
        pending = [item for item in missing if item[0] in names]
        together = tools is NVBENCH
        idle = 0
        while pending:
            self._check()
            before = len(pending)
            asked = dict.fromkeys((NVBENCH[0].name, work) for _, work in pending) if together else pending
            for row in self._child([f"{tool}:{work}" for tool, work in asked]):
                self.keep(part, row)
                pending = [item for item in pending if item != (row.tool, row.work)]
            if pending and not self.last_words:
                raise Spent
            idle = idle + 1 if len(pending) == before else 0
            lost = pending if together or idle == 2 else pending[:1]  # two that gave nothing: nor will a third
            for tool, work in lost:
                self.keep(part, Row(tool, work, absent=f"its process ended: {self.last_words}"))
            pending = pending[len(lost) :]

    def _child(self, items: Sequence[str]) -> Iterator[Row]:
        """The rows a child gives; `last_words` is empty where it ended as it should."""
        left = min(self.until - time.monotonic(), 1e6)
        words = [sys.executable, "-m", "accuracy.child", self.device, str(self.repeats), f"{left:.0f}", *items]
        with subprocess.Popen(
            words, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd=BENCHMARKS
        ) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    message = jsonfile.loads(line, where="what a peer's process sent")
                    if "version" in message:
                        name, version = message["version"]
                        self.results.versions[name] = version
                    else:
                        yield Row(**message["row"])
            finally:
                if process.poll() is None and not _ended(process):
                    process.kill()
        self.last_words = f"status {process.returncode}" if process.returncode else ""

    def _fresh(self, part: str) -> None:
        """Fill a part whose rows hold one reading of each of several processes."""
        rows = {(row.tool, row.work): row for row in self.results.rows(part)}
        works = [WORKS[name] for name in TIMED["operations"]]
        first = (OURS[0].name, works[0].name)
        for number in range(len(rows[first].readings_ns) if first in rows else 0, self.processes):
            self._check()
            for row in list(self._of_one_process(part, works)):
                if row.absent is not None:
                    raise UsageError(f"{part}: {row.work} failed: {row.absent}")
                before = rows.setdefault((row.tool, row.work), Row(row.tool, row.work))
                before.readings_ns += row.readings_ns
                before.costs_s += row.costs_s
                before.sm_mhz += row.sm_mhz
                before.tick_ns, before.note = row.tick_ns, row.note
            for row in rows.values():
                self.results.add(part, row)
            save(self.results, self.path)
            print(f"  {part}: process {number + 1} of {self.processes}", flush=True)

    def _of_one_process(self, part: str, works: Sequence[Work]) -> Iterator[Row]:
        if part == "fresh":
            yield from ours.fresh(self.device, OURS[0], works)
            return
        yield from self._child([f"{OURS[0].name}:{work.name}" for work in works])
        if self.last_words:
            raise UsageError(f"{part}: a process ended: {self.last_words}")

    def _ncu(self, missing: Iterable[Item]) -> None:
        missing = list(missing)
        for tool in NCU:
            works = [name for one, name in missing if one == tool.name]
            if works:
                self._check()
                for row in ncu.refereed(tool, self.device, works, _environment()):
                    self.keep("ncu", row)


def _ended(process: subprocess.Popen[str]) -> bool:
    """Whether a process whose output has ended, or is no longer wanted, ends by itself in a moment."""
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return False
    return True


def _environment() -> dict[str, str]:
    """The environment of a child: it finds the benchmarks and gpubench as this process does."""
    paths = [str(BENCHMARKS), str(BENCHMARKS.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def options(arguments: Sequence[str] | None = None) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the results file, .json or .json.gz; it is resumed")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be repeated")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="stop between two rows once so long has passed")
    parser.add_argument("--device", default="cuda:0", help="cuda:N or a UUID (cuda:0)")
    parser.add_argument("--repeats", type=int, default=10, help="at most so many repeats of each row (10)")
    parser.add_argument("--processes", type=int, default=10, help="fresh processes (10)")
    parser.add_argument("--show", action="store_true", help="measure nothing, print the page of the file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the page, judge."""
    asked = options(arguments)
    try:
        benchmark = Benchmark(asked.out, asked.device, asked.repeats, asked.processes, asked.budget)
        if not asked.show:
            for part in asked.part or PARTS:
                benchmark.run(part)
    except Spent:
        print(f"the budget is spent; the same command goes on from {asked.out}", file=sys.stderr)
        return 0
    except DeviceUnavailable as error:
        print(f"timer_accuracy: needs an NVIDIA GPU with torch for CUDA: {error.message}", file=sys.stderr)
        return 2
    except GpubenchError as error:
        print(f"timer_accuracy: {error}", file=sys.stderr)
        return 2
    print(page(benchmark.results, asked.out.name))
    return int(any(one.kept is False for one in verdicts(benchmark.results)))


if __name__ == "__main__":
    sys.exit(main())
