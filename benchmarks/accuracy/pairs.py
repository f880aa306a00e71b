"""What differs between processes: the timer, or what it times? Both ways to read it, on the same data.

Data lies elsewhere in memory in each process, and small or cached work takes another time there. A process that reads
the same call on the same data by gpubench and by stamps of the global timer tells the two apart: where the stamps vary
as much and their ratio does not, it is the work.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from accuracy.peers import Bench
from accuracy.results import Row
from accuracy.works import COLD_STAMPS, PAIR, Work
from gpubench.result import Conditions
from gpubench.sampling import Sampled, Stopping, sample
from gpubench.stats import per_call


def pair(bench: Bench, work: Work) -> tuple[Row, Row]:
    """One reading by gpubench's default timer and sampling and one by the stamps after a flush: the rows of PAIR. The
    stamps come first; the stream is held for them, so that a profiler that was started for the work before, and makes
    launches slower, is not in what they read."""
    call, workload = bench.workload(work)
    ns, mhz = bench.stamps(call, cold=True)
    stamped = Row(COLD_STAMPS.name, work.name, [ns], sm_mhz=[mhz], tick_ns=bench.clock.tick_ns)
    timer = bench.device.timers("auto")[0]
    sampler = bench.device.sampler([replace(workload, run=call)], Conditions(), timer)
    *_, taken = sample(sampler, Stopping())
    assert isinstance(taken, Sampled)
    own = Row(PAIR[0], work.name, [median(per_call(taken.samples))], tick_ns=sampler.timer.tick_ns, note=timer)
    return own, stamped
