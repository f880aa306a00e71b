"""Does gpubench's short search find this GPU's ceiling of matrix products? `make bench`, or

    benchmarks/ceilings.py --out FILE.json [--mamf PATH/mamf-finder.py]

Beside it runs a brute force: mamf-finder from your own copy of it (github.com/stas00/ml-engineering), unmodified, on
the grid its documentation begins with; without it a plain grid of shapes through torch.mm. The two winners are then
measured again in turn, rested as gpubench does and back to back. Under 3 minutes on an H200. Exit status 1 where
gpubench's shape is surely below the other by more than 1 %, 2 where nothing can be measured.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent)]

from search.duel import Duel, back_to_back, fight, paced  # noqa: E402
from search.finders import MAMF_ARGUMENTS, Found, mamf, ours, plain_grid, words  # noqa: E402

from gpubench import __version__, environment  # noqa: E402
from gpubench.discovery import Library  # noqa: E402
from gpubench.errors import DeviceUnavailable, GpubenchError, UsageError  # noqa: E402
from gpubench.executor import Bench, WorkerProcess  # noqa: E402
from gpubench.store import jsonfile  # noqa: E402
from gpubench.units import format_rate  # noqa: E402

SCHEMA = "gpubench.ceilings-search/1"
TIMEOUT = 120.0
SHORT = 0.01
"""A ceiling that is this much too low is a wrong ceiling: the report says % of it to the whole number."""


def falls_short(duel: Duel) -> bool:
    """Whether the first shape is surely below the second by more than SHORT."""
    return duel.high < 1 - SHORT


def report(found: Sequence[Found], duels: Sequence[Duel]) -> str:
    """Both searches and both duels, as Markdown."""
    lines = ["| search | best m×n×k | it says | shapes | time |", "| --- | --- | --- | --- | --- |"]
    for one in found:
        rate = format_rate(one.rate, "FLOP/s")
        lines.append(f"| {one.name} | {words(one.shape)} | {rate} | {one.shapes} | {one.seconds:.0f} s |")
    first, second = found
    lines += ["", f"| measured again, in turn | {first.name} / {second.name} | rounds | |", "| --- | --- | --- | --- |"]
    for duel in duels:
        ratio = f"{duel.ratio:.4f} ({duel.low:.4f} to {duel.high:.4f})"
        lines.append(f"| {duel.load} | {ratio} | {len(duel.rounds)} | {'**short**' if falls_short(duel) else 'ok'} |")
    if first.shape == second.shape:
        lines += ["", "Both found the same shape: the ratio shows what measuring twice is worth."]
    return "\n".join(lines)


def options(arguments: Sequence[str] | None = None) -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the results file, .json or .json.gz")
    parser.add_argument("--mamf", type=Path, help="your copy of mamf-finder.py")
    parser.add_argument("--mamf-args", default=shlex.join(MAMF_ARGUMENTS), help="what it searches (%(default)s)")
    parser.add_argument("--dtype", default="bfloat16", help="(bfloat16)")
    parser.add_argument("--rounds", type=int, default=10, help="of each duel, 10 or more (10)")
    parser.add_argument("--device", default="cuda:0", help="cuda:N (cuda:0)")
    return parser.parse_args(arguments)


def measure(asked: Any) -> tuple[dict[str, Any], list[Found], list[Duel]]:
    """Both searches and both duels, one after the other. Whatever is wrong is a GpubenchError."""
    if asked.mamf is not None and not asked.mamf.is_file():
        raise UsageError(f"--mamf {asked.mamf}: no such file")
    suite = Library().suite("peak")
    benchmark = suite.benchmarks["matmul"]
    worker = WorkerProcess(asked.device, Bench({benchmark.path: benchmark}, {suite.name: suite.file}), TIMEOUT)
    try:
        if worker.hello.facts.get("kind") != "cuda":
            raise UsageError(f"--device {asked.device}: the benchmark needs an NVIDIA GPU")
        import torch

        torch.cuda.set_device(int(worker.hello.facts["index"]))
        provenance = {
            "measured_at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "gpubench": __version__,
            "vcs": environment.vcs(BENCHMARKS),
            "device": dict(worker.hello.facts),
            "software": dict(worker.hello.software) | environment.libraries(),
        }
        first = ours(worker, benchmark, asked.dtype)
        print(f"gpubench: {words(first.shape)} in {first.seconds:.0f} s", flush=True)
        if asked.mamf is None:
            second = plain_grid(asked.dtype)
        else:
            second = mamf(asked.mamf, shlex.split(asked.mamf_args), asked.dtype)
        print(f"{second.name}: {words(second.shape)} in {second.seconds:.0f} s", flush=True)
        torch.cuda.empty_cache()
        duels = [fight("rested, cold", paced(worker, asked.dtype), first.shape, second.shape, asked.rounds)]
        duels.append(fight("back to back", back_to_back(asked.dtype), first.shape, second.shape, asked.rounds))
    finally:
        worker.close()
    return provenance, [first, second], duels


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, duel, store, print."""
    asked = options(arguments)
    try:
        provenance, found, duels = measure(asked)
        content = {
            "schema": SCHEMA,
            "provenance": provenance,
            "dtype": asked.dtype,
            "searches": [asdict(one) for one in found],
            "duels": [asdict(one) for one in duels],
        }
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        jsonfile.write_atomic(asked.out, (jsonfile.dumps(content, indent=1) + "\n").encode())
    except DeviceUnavailable as error:
        print(f"ceilings: needs an NVIDIA GPU with torch for CUDA: {error.message}", file=sys.stderr)
        return 2
    except GpubenchError as error:
        print(f"ceilings: {error}", file=sys.stderr)
        return 2
    print(report(found, duels))
    return int(any(map(falls_short, duels)))


if __name__ == "__main__":
    sys.exit(main())
