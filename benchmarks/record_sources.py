"""Which source of activity records is better here: torch.profiler, or CUPTI through the package cupti-python?

Each runs in a fresh process, alone and after the other, and reads the same kernels: the cost of a session by its number
of records, how often records are missing, the tick, and the reading of a tiny kernel. What `gpubench run` chooses is in
its run file, under device.calibration.timers.cupti.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import Any

ORDERS = (
    ("torch.profiler",),
    ("cupti-python",),
    ("torch.profiler", "cupti-python"),
    ("cupti-python", "torch.profiler"),
)
"""Sources that take turns in one process, in this order."""
RECORDS = (1, 20, 100, 1000)
"""Kernels in one session; a batch of 20 cold calls makes about 100."""


def measure(names: list[str], sessions: int) -> dict[str, Any]:
    """So many sessions of each size by each source in turn; a source that fails has the reason in place of figures."""
    import torch

    from gpubench.devices.activities import ROUNDING_NS, tick
    from gpubench.devices.cupti import CuptiPython
    from gpubench.devices.records import Source, TorchProfiler
    from gpubench.errors import TimerFailed

    tiny = torch.zeros(1, device="cuda")

    def fill(times: int) -> None:
        for _ in range(times):
            tiny.fill_(1.0)

    makers = {"torch.profiler": TorchProfiler, "cupti-python": CuptiPython}
    found: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for name in names:
        try:
            sources[name] = makers[name]()
            begun = time.perf_counter()
            sources[name].session(partial(fill, 1))
            found[name] = {"first_session_ms": (time.perf_counter() - begun) * 1e3, "sizes": {}}
        except (TimerFailed, RuntimeError) as error:
            found[name] = {"failed": str(error).splitlines()[0]}
    for records in RECORDS:
        for details in (True, False):
            for name, source in sources.items():
                if "failed" in found[name]:
                    continue
                took, short, durations = [], 0, []
                for _ in range(sessions):
                    begun = time.perf_counter()
                    try:
                        activities = source.session(partial(fill, records), details)
                    except (TimerFailed, RuntimeError) as error:
                        found[name] = {"failed": str(error).splitlines()[0]}
                        break
                    took.append((time.perf_counter() - begun) * 1e3)
                    short += len(activities) != records
                    durations += [a.end_ns - a.start_ns for a in activities]
                else:
                    found[name]["sizes"][f"{records} records, {'details' if details else 'times'}"] = {
                        "session_ms": statistics.median(took),
                        "short": short,
                        "tick_ns": tick(durations, ROUNDING_NS),
                        "tiny_ns": statistics.median(durations) if durations else None,
                    }
    return found


def main() -> None:
    """One process for each order, and a table of what they found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--sessions", type=int, default=20, help="sessions of each size (20)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options.sessions)))
        return
    for order in ORDERS:
        child = [sys.executable, __file__, "--sessions", str(options.sessions), "--child", *order]
        done = subprocess.run(child, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(f"\n{' and '.join(order)} in one process")
        if done.returncode:
            print(f"  ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
            continue
        for name, told in json.loads(done.stdout.splitlines()[-1]).items():
            if "failed" in told:
                print(f"  {name}: {told['failed']}")
                continue
            print(f"  {name}: first session {told['first_session_ms']:.0f} ms")
            for size, figures in told["sizes"].items():
                print(
                    f"    {size:24} {figures['session_ms']:8.2f} ms a session, {figures['short']} short,"
                    f" tick {figures['tick_ns']:g} ns, a tiny kernel {figures['tiny_ns']} ns"
                )


if __name__ == "__main__":
    main()
