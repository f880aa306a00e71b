"""Why one row has its time: what its own record, the roofs of its device and the model of products say, rule by rule.

Each rule looks at one thing and gives a reason in words, and what would change it. What is not known gives none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench import drops
from gpubench.causes import is_launch_bound, number, power_capped, spread
from gpubench.model import roofline
from gpubench.model.kernel_facts import facts
from gpubench.model.matmul_time import Factor, Product, Time
from gpubench.result import FAILED, Ceiling, Record
from gpubench.stats import percentile
from gpubench.telemetry import held_mhz
from gpubench.units import format_bytes, format_duration, three_digits

Kind = Literal[
    "no figure", "trap", "start-bound", "launch-bound", "product", "compute-bound", "bandwidth-bound", "L2-resident",
    "neither roof", "more bytes", "divergent", "uncoalesced", "waves", "may spill", "clock", "compiled", "fall-back",
    "in doubt",
]  # fmt: skip

NEAR_ROOF = 0.7
"""The share of its roof from which a row is bound by it; below, something else is the reason."""
PAST = 1.1
"""The share of a roof beyond which a row's bytes or flops are not of that kind."""
STARTS = 3
"""Times the reading of an empty kernel within which a row is mostly start and end."""
MORE_BYTES = 1.1
"""Counted over compulsory bytes from which the difference is worth a word; counters are good to a few per cent."""
FULL_WARP, WHOLE = 32, 0.97
"""Lanes of a warp, and the share of them from which a warp does not diverge."""
BELOW_CLOCK = 0.985
"""The share of the highest SM clock below which a row was held down: boost steps are 15 MHz of 1980."""
MOST_REGISTERS = 255
"""Registers that a thread can name (CUDA C++ Programming Guide, compute capabilities); a kernel that has them all may
keep more in memory."""
WORTH_A_WORD = 1.08
"""A factor of a product's time from which it is named."""
HALF = 0.5
"""The share of a product's flops at the full rate of the device below which something is to be gained."""


@dataclass(frozen=True)
class Reason:
    """One reason: its kind, what is so in words, and what would change it (empty: nothing, or nothing known)."""

    kind: Kind
    words: str
    change: str = ""


@dataclass(frozen=True)
class Case:
    """What a rule may look at: a row, the facts of its device, the roofs over it (of its arithmetic, of DRAM, of the
    memory it uses) and, of a product, how its launch covers it and the time predicted."""

    record: Record
    device: Mapping[str, Any]
    compute: Ceiling | None = None
    memory: Ceiling | None = None
    level: Ceiling | None = None
    product: Product | None = None
    time: Time | None = None
    siblings: Sequence[Record] = ()
    """The other rows of the same benchmark with a figure."""

    @property
    def ns(self) -> float:
        """The row's median."""
        return float(self.record.summary.median_ns) if self.record.summary is not None else 0.0


Rule = Callable[[Case], Iterator[Reason]]


def of(case: Case) -> list[Reason]:
    """All that is to say of a row, what decides first. A row without a figure has that reason alone."""
    if case.ns <= 0:
        return list(_no_figure(case))
    return [reason for rule in _RULES for reason in rule(case)]


def _no_figure(case: Case) -> Iterator[Reason]:
    record = case.record
    why = record.reason or ", ".join(record.flags) or "the record does not say why"
    rerun = "gpubench run with --debug shows what the worker says" if record.status in FAILED else ""
    yield Reason("no figure", f"{record.status}: {why}", rerun)


def _trap(case: Case) -> Iterator[Reason]:
    if "trap" in case.record.labels:
        right = "the row way=right beside it is timed as it should be"
        yield Reason("trap", f"measured in a wrong way on purpose: {case.record.labels['trap']}", right)


def _start(case: Case) -> Iterator[Reason]:
    timer = case.record.timer
    if timer is not None and timer.empty_ns and case.ns < STARTS * timer.empty_ns:
        empty = format_duration(timer.empty_ns)
        yield Reason(
            "start-bound", f"{format_duration(case.ns)} is hardly more than an empty kernel reads ({empty}): the start "
            "and the end of a kernel, not its work", "more work in one launch: a larger size, or several calls fused",
        )  # fmt: skip


def _product(case: Case) -> Iterator[Reason]:
    time, product = case.time, case.product
    if time is None or product is None:
        return
    off = 100 * (time.ns / case.ns - 1)
    named = {name: value for name, value in time.factors.items() if value >= WORTH_A_WORD}
    longest = sorted(named, key=lambda name: -named[name])
    factors = ", ".join(f"{three_digits(named[name])} by {_FACTORS[name]}" for name in longest)
    words = (
        f"predicted {format_duration(time.ns)} ({off:+.0f} %), mostly {_LIMITS[time.limit]}; at the full rate its "
        f"flops take {format_duration(time.ideal_ns)}" + (f", times {factors}" if factors else "")
    )
    yield Reason("product", words, _what_helps(product, time))


_FACTORS: Mapping[Factor, str] = {
    "instructions": "what its instructions reach of the peak", "loads": "narrow loads",
    "sectors": "rows beside sectors", "L2 reuse": "reading from the L2", "tile waste": "work beyond the edges",
    "waves": "idle multiprocessors", "memory": "memory", "split-K": "summing slices of K", "start": "start and edges",
}  # fmt: skip
_LIMITS = {
    "arithmetic": "arithmetic", "L2": "reading tiles from the L2", "loads": "threads that load narrow elements",
    "memory": "memory", "start": "launch and first loads",
}  # fmt: skip


def _what_helps(product: Product, time: Time) -> str:
    """What to change about a product, for the factor that costs most beyond what its best kernels have."""
    rows = f"({drops.ALIGNED // product.itemsize} elements)"
    if not product.tma and product.alignment < drops.ALIGNED:
        return f"pad rows to a multiple of {drops.ALIGNED} B {rows}, so that they may be loaded whole, or by TMA"
    beyond: dict[Factor, float] = {
        name: value for name, value in time.factors.items() if name not in ("instructions", "loads")
    }
    worst = max(beyond, key=lambda name: beyond[name])
    if beyond[worst] < WORTH_A_WORD:
        return ""
    return {
        "sectors": f"pad rows to a multiple of 32 B ({32 // product.itemsize} elements): they then begin on a sector",
        "L2 reuse": "larger tiles or clusters would reuse more: a size that another kernel is taken for",
        "tile waste": f"sizes that are whole tiles of {drops.tile_words(product)}",
        "waves": f"sizes whose tiles fill {product.cover.multiprocessors} multiprocessors in whole waves",
        "memory": "a longer k, or several products at once: more flops for a byte",
        "split-K": "larger m and n: K is cut into slices only where there are few tiles",
        "start": "several products in one call (a batch), or a CUDA graph",
    }.get(worst, "")


def _roofs(case: Case) -> Iterator[Reason]:
    """How near the row is to the roofs, where a product's model does not say more."""
    record, work = case.record, case.record.work
    size = case.device.get("last_level_cache_bytes")
    if work is None or case.time is not None:
        return
    resident = "cache-resident" in record.flags or (
        bool(size) and record.conditions.cache == "hot" and 0 < work.bytes < int(size or 0)
    )
    if resident or work.level == "L2":
        what = "fits the last-level cache" if work.level != "L2" else "is read from the L2 on purpose"
        yield Reason("L2-resident", f"{format_bytes(work.bytes)} {what}: no DRAM bandwidth", "")
        return
    shares = dict(_shares(case))
    name, share = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    alone = work.flops > 0 and case.compute is None  # then how near the other roof is says nothing
    if not share or share > PAST or (alone and share < NEAR_ROOF):
        return
    percent = f"{100 * share:.0f} % of {name}"
    intensity = f" at {three_digits(work.flops / work.bytes)} FLOP/B" if work.flops and work.bytes else ""
    if share < NEAR_ROOF:
        yield Reason("neither roof", f"{percent}{intensity}: latency, a small grid or other instructions set the pace")
    elif case.compute is not None and name == case.compute.name:
        yield Reason("compute-bound", f"{percent}{intensity}", "a format with fewer bits, or fewer flops")
    else:
        yield Reason("bandwidth-bound", f"{percent}{intensity}", "fewer bytes: fusion, fewer bits, no second pass")


def _shares(case: Case) -> Iterator[tuple[str, float]]:
    """The share of each roof that the row reaches."""
    work = case.record.work
    assert work is not None
    memory = case.level if work.level is not None else case.memory if work.flops else None
    if work.flops and case.compute is not None:
        yield case.compute.name, work.flops / case.ns * 1e9 / case.compute.value
    if work.bytes and memory is not None:
        yield memory.name, work.bytes / case.ns * 1e9 / memory.value


def _bytes(case: Case) -> Iterator[Reason]:
    moved, work = dram_bytes(case.record), case.record.work
    if moved is None or work is None or not work.bytes:
        return
    ratio = moved / work.bytes
    if ratio > MORE_BYTES:
        words = f"DRAM moved {format_bytes(moved)} where the algorithm needs {format_bytes(work.bytes)}"
        yield Reason("more bytes", f"{words}: {three_digits(ratio)} times", "tiles or fusion that read each byte once")


def dram_bytes(record: Record) -> float | None:
    """The bytes that DRAM moved in one call, by counter."""
    parts = [number(record.counters.get(name)) for name in ("dram_bytes_read", "dram_bytes_write")]
    return None if None in parts else sum(part for part in parts if part is not None)


def _warps(case: Case) -> Iterator[Reason]:
    counted = number(case.record.counters.get("threads_per_instruction"))
    lanes = counted if counted is not None else number(case.record.prediction.get("threads_per_instruction"))
    if lanes is not None and 0 < lanes < WHOLE * FULL_WARP:
        how = "counted" if counted is not None else "predicted"
        words = f"{three_digits(lanes)} of {FULL_WARP} lanes take part in an instruction ({how})"
        yield Reason("divergent", words, "branches that whole warps agree on, or work sorted by the branch")


def _sectors(case: Case) -> Iterator[Reason]:
    """Rows that predict sectors load a float for each lane: 4 sectors a request where lanes are neighbours."""
    predicted = next(
        (found for key in ("read_sectors_per_request", "sectors_per_request")
         if (found := number(case.record.prediction.get(key))) is not None), None,
    )  # fmt: skip
    if predicted is None:
        return
    counted = number(case.record.counters.get("sectors_per_load_request"))
    sectors = predicted if counted is None else counted
    if sectors > 4 * MORE_BYTES:
        how = "predicted" if counted is None else "counted"
        words = f"a load of a warp touches {three_digits(sectors)} sectors of 32 B ({how}), neighbours touch 4"
        yield Reason("uncoalesced", words, "neighbouring lanes that read neighbouring, aligned addresses")


def _waves(case: Case) -> Iterator[Reason]:
    """Of kernels that predict their waves themselves."""
    turns, idle = (number(case.record.prediction.get(key)) for key in ("waves", "idle_share"))
    if turns is not None and idle is not None and idle > 1 - NEAR_ROOF and case.time is None:
        words = f"{turns:.0f} {'wave' if turns == 1 else 'waves'}, {100 * idle:.0f} % of the places and turns idle"
        yield Reason("waves", words, "as many blocks as fill whole waves")


def _registers(case: Case) -> Iterator[Reason]:
    full = [kernel.name for kernel in case.record.kernels if (kernel.registers or 0) >= MOST_REGISTERS]
    if full:
        words = f"{full[0]} has all {MOST_REGISTERS} registers a thread can have: it may spill to memory"
        yield Reason("may spill", words, "smaller tiles for each thread; make kernels shows spills of suites' kernels")


def _clock(case: Case) -> Iterator[Reason]:
    held, most = held_mhz(case.record), case.device.get("sm_mhz_max")
    if not most or not 0 < held < BELOW_CLOCK * most:
        return
    by = case.record.telemetry.get("limited_by")
    why = f", limited by {by}" if by and by != "none" else ", the power cap was on" if power_capped(case.record) else ""
    loss = f"{100 * (1 - held / most):.0f} % below the {most:g} it can have"
    yield Reason("clock", f"SM clock {held:.0f} MHz, {loss}{why}", "a figure at this clock is no fault of the kernel")


def _compiled(case: Case) -> Iterator[Reason]:
    record = case.record
    if record.params.get("by") != "compiled":
        return
    makers = {facts(kernel.name, kernel.kind).maker for kernel in record.kernels if kernel.kind == "kernel"}
    if makers and makers == {"torch"}:
        words = "compiled, and yet only torch's own kernels ran"
        yield Reason("fall-back", words, "TORCH_LOGS=graph_breaks,recompiles shows where the compiler gave up")
    took = record.compile_ns or 0
    eager = next((row for row in case.siblings if _twin(row, record)), None)
    if took and eager is not None and eager.summary is not None:
        saved = eager.summary.median_ns - case.ns
        pays = f"it pays after {took / saved:,.0f} calls" if saved > 0 else "it does not pay: eager is no slower"
        yield Reason("compiled", f"compiled in {format_duration(took)}; {pays}")


def _twin(row: Record, record: Record) -> bool:
    return row.conditions == record.conditions and row.params == {**record.params, "by": "eager"}


def _launches(case: Case) -> Iterator[Reason]:
    if is_launch_bound(case.record):
        call = format_duration(percentile(sorted(case.record.call_ns), 0.5))
        words = f"a call takes {call} to enqueue and {format_duration(case.ns)} to run: in a loop launches set the pace"
        yield Reason("launch-bound", words, "a CUDA graph, fused operations, or larger ones")


def _fall_backs(case: Case) -> Iterator[Reason]:
    record = case.record
    if "fallback" in record.labels:
        yield Reason("fall-back", f"fall-back: {record.labels['fallback']}")
    elif "fallback" in record.flags:
        timer = record.timer
        why = "" if timer is None else f": {timer.name}" + (f", as {timer.reason}" if timer.reason else "")
        yield Reason("fall-back", f"another timer than the first choice{why}")


def _doubts(case: Case) -> Iterator[Reason]:
    record = case.record
    if "implausible" in record.flags:
        yield Reason("in doubt", f"implausible: {record.prediction.get('implausible', 'above a physical limit')}")
    if "noisy" in record.flags:
        share = f"{100 * spread(record):.0f} % of their median (p10 to p90)"
        yield Reason("in doubt", f"noisy: samples spread over {share}")
    if "analogue" in record.flags:
        yield Reason("in doubt", "a CPU's analogue of the kernel, another program than a GPU's")


_RULES: Sequence[Rule] = (
    _trap, _start, _product, _roofs, _bytes, _warps, _sectors, _waves, _registers, _clock, _compiled, _launches,
    _fall_backs, _doubts,
)  # fmt: skip


def bound(case: Case) -> str | None:
    """Which roof is above the row by its intensity: "memory" or "compute"."""
    work = case.record.work
    if work is None or not work.flops or not work.bytes or case.compute is None or case.memory is None:
        return None
    return roofline.bound(work.flops / work.bytes, case.compute.value, case.memory.value)
