"""How long the installed command takes to start, against the budgets it promises.

Each command runs in N fresh processes after one that warms the disk cache. The median is judged: it is what a user
waits; the minimum beside it says how much of that is this machine's noise. Exits with 1 where a median is over.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from gpubench.store.folder import read_run

COMMAND = str(Path(sys.executable).with_name("gpubench"))
BUDGETS_S = {("--help",): 0.25, ("--version",): 0.25, ("list",): 0.5}


def seconds(arguments: tuple[str, ...], runs: int) -> list[float]:
    """Wall time of `runs` fresh processes of the command, each of which must succeed."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        done = subprocess.run([COMMAND, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        times.append(time.perf_counter() - start)
        if done.returncode:
            sys.exit(f"gpubench {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return times[1:]


def main() -> None:
    """Time every budgeted command and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--runs", type=int, default=15, help="fresh processes per command (15)")
    parser.add_argument("--run-file", type=Path, help="also time `show` of this run file, and `compare` with itself")
    options = parser.parse_args()
    budgets = dict(BUDGETS_S)
    if options.run_file:
        file = str(options.run_file)
        budgets["show", file] = 0.5
        budgets["compare", file, file] = 1 + 0.2 * len(read_run(options.run_file).records) / 1000
    over = 0
    for arguments, budget in budgets.items():
        times = seconds(arguments, options.runs)
        median = statistics.median(times)
        verdict = "ok" if median <= budget else "OVER"
        over += median > budget
        print(
            f"gpubench {arguments[0]:<10} median {median:.3f} s  min {min(times):.3f} s  budget {budget:g} s  {verdict}"
        )
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
