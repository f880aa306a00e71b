"""Why one row has its time: what its own record, the roofs of its device and the model of products say, rule by rule.

Each rule looks at one thing and gives a reason in words, and what would change it. What is not known gives none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from gpubench.compare.causes import is_launch_bound, number, power_capped, spread
from gpubench.explain import drops, limits
from gpubench.explain.reason import Case, Reason, Rule
from gpubench.model.kernel_facts import facts, short_name
from gpubench.model.matmul_time import Factor, Product, Time
from gpubench.result import FAILED, Record
from gpubench.stats import percentile, ratio_interval, trusted_median
from gpubench.telemetry import SM_CLOCK, held_mhz
from gpubench.units import format_duration, format_half_width, three_digits

FULL_WARP, WHOLE = 32, 0.97
"""Lanes of a warp, and the share of them from which a warp does not diverge."""
BELOW_CLOCK = 0.985
"""The share of the highest SM clock below which a row was held down: boost steps are 15 MHz of 1980."""
MOST_REGISTERS = 255
"""Registers that a thread can name (CUDA C++ Programming Guide, compute capabilities); a kernel that has them all may
keep more in memory."""
WORTH_A_WORD = 1.08
"""A factor of a product's time from which it is named."""
MISSED = 0.3
"""How far off, as a share of the time, a prediction is called a miss, of which nothing is concluded."""


def of(case: Case) -> list[Reason]:
    """All that is to say of a row, what decides first. A row without a figure has that reason alone; of one that was
    measured in a wrong way, or that is hardly longer than nothing, no limit is named."""
    if case.ns <= 0:
        return list(_no_figure(case))
    wrong, short = [*_trap(case)], [*limits.start(case)]
    rules = _OF_WRONG if wrong else _OF_SHORT if short else _RULES
    return [*(wrong or short), *(reason for rule in rules for reason in rule(case))]


def _no_figure(case: Case) -> Iterator[Reason]:
    record = case.record
    why = record.reason or ", ".join(record.flags) or "the record does not say why"
    rerun = "gpubench run with --debug shows what the worker says" if record.status in FAILED else ""
    yield Reason("no figure", f"{record.status}: {why}", rerun)


def _trap(case: Case) -> Iterator[Reason]:
    if "trap" in case.record.labels:
        right = "the row way=right beside it is timed as it should be"
        yield Reason("trap", f"measured in a wrong way on purpose: {case.record.labels['trap']}", right)


def _product(case: Case) -> Iterator[Reason]:
    time, product = case.time, case.product
    if time is None or product is None:
        return
    held, most = held_mhz(case.record), case.device.get("sm_mhz_max") or 0
    slower = most / held if 0 < held < BELOW_CLOCK * most else 1.0
    off = slower * time.ns / case.ns - 1
    at = f", {format_duration(slower * time.ns)} at the {held:.0f} MHz held" if slower > 1 else ""
    predicted = f"predicted {format_duration(time.ns)}{at} ({round(100 * off):+d} %)"
    if abs(off) > MISSED:
        words = f"{predicted}: the model misses this row, and says nothing of its causes"
        yield Reason("product", words, _pad(product))
        return
    if time.limit == "start":
        yield Reason("product", f"{predicted}, mostly {_LIMITS[time.limit]}", _what_helps(product, time))
        return
    named = {name: value for name, value in time.factors.items() if value >= WORTH_A_WORD}
    longest = sorted(named, key=lambda name: -named[name])
    factors = ", ".join(f"{three_digits(named[name])} by {_FACTORS[name]}" for name in longest)
    words = (
        f"{predicted}, mostly {_LIMITS[time.limit]}; at the full rate its flops take {format_duration(time.ideal_ns)}"
        + (f", times {factors}" if factors else "")
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


def _pad(product: Product) -> str:
    """What helps a product whose threads load less at a time than they could: this its kernel says, and no model."""
    if product.tma or product.alignment >= drops.ALIGNED:
        return ""
    rows = f"({drops.ALIGNED // product.itemsize} elements)"
    return f"pad rows to a multiple of {drops.ALIGNED} B {rows}, so that they may be loaded whole, or by TMA"


def _what_helps(product: Product, time: Time) -> str:
    """What to change about a product, for the factor that costs most beyond what its best kernels have."""
    if pad := _pad(product):
        return pad
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


def _warps(case: Case) -> Iterator[Reason]:
    """Lanes without work: of blocks that are no whole warps, or of branches. Nothing is said of a chase by one lane,
    nor of kernels in which a lane loads for all."""
    kernel = case.longest
    if case.record.metric("latency") is not None or (kernel is not None and limits.by_tiles(kernel)):
        return
    threads = max(prod(kernel.block), 1) if kernel is not None and kernel.block else FULL_WARP
    filled = threads / (-(-threads // FULL_WARP) * FULL_WARP)
    if filled < WHOLE:
        words = f"blocks of {threads} {'thread' if threads == 1 else 'threads'} leave {100 * (1 - filled):.0f} % of the"
        yield Reason("idle lanes", f"{words} lanes of their warps without work", "blocks of whole warps, 32 threads")
    counted = number(case.record.counters.get("threads_per_instruction"))
    lanes = counted if counted is not None else number(case.record.prediction.get("threads_per_instruction"))
    if lanes is not None and 0 < lanes < WHOLE * FULL_WARP * filled:
        how = "counted" if counted is not None else "predicted"
        words = f"{three_digits(lanes)} of {FULL_WARP} lanes take part in an instruction ({how})"
        yield Reason("divergent", words, "branches that whole warps agree on, or work sorted by the branch")


def _waves(case: Case) -> Iterator[Reason]:
    """Of kernels that predict their waves themselves."""
    turns, idle = (number(case.record.prediction.get(key)) for key in ("waves", "idle_share"))
    if turns is not None and idle is not None and idle > limits.IDLE and case.time is None:
        words = f"{turns:.0f} {'wave' if turns == 1 else 'waves'}, {100 * idle:.0f} % of the places and turns idle"
        yield Reason("waves", words, "as many blocks as fill whole waves")


def _registers(case: Case) -> Iterator[Reason]:
    """Kernels that a suite or a compiler made; libraries tune theirs to just fit."""
    for kernel in case.record.kernels:
        if (kernel.registers or 0) >= MOST_REGISTERS and facts(kernel.name, kernel.kind).maker in ("", "Triton"):
            words = f"{short_name(kernel.name)} has all {MOST_REGISTERS} registers a thread can have: it may spill"
            yield Reason("may spill", words, "smaller tiles a thread; make kernels shows spills of suites' kernels")
            return


def _clock(case: Case) -> Iterator[Reason]:
    """A clock below the highest, with what held it down; or that a power cap may have lowered it within the call."""
    unread = case.record.telemetry.get(SM_CLOCK)
    if unread:
        yield Reason("clock", f"the SM clock within the call is not known: {unread}")
        return
    held, most = held_mhz(case.record), case.device.get("sm_mhz_max")
    if not most or not 0 < held < BELOW_CLOCK * most:
        return
    by = case.record.telemetry.get("limited_by")
    why = f", limited by {by}" if by and by != "none" else ", the power cap was on" if power_capped(case.record) else ""
    loss = f"{100 * (1 - held / most):.0f} % below the {most:g} it can have"
    yield Reason("clock", f"SM clock {held:.0f} MHz, {loss}{why}: no fault of the kernel")


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
    if took and eager is not None:
        cached = record.metric("compile_cached")
        others = [row for row in case.siblings if row.params.get("by") == "compiled" and not _twin(eager, row)]
        anew = bool(others) and cached is not None and not cached.value
        words = f"compiled in {format_duration(took)}" + " anew, as for each of its sizes" * anew
        yield Reason("recompiled" if anew else "compiled", f"{words}; {_pays(case, eager, took)}")


def _pays(case: Case, eager: Record, took: int) -> str:
    """After how many calls the time of compiling is saved, where the intervals of both medians leave no doubt of it."""
    medians = trusted_median(eager), trusted_median(case.record)
    saved = eager.summary.median_ns - case.ns if eager.summary is not None else 0.0
    sure = None in medians or ratio_interval(medians[1], medians[0])[0] > 1  # type: ignore[arg-type]
    return f"it pays after {took / saved:,.0f} calls" if saved > 0 and sure else "it does not pay: eager is no slower"


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
        summary = record.summary
        known = summary is not None and summary.low_ns is not None and summary.high_ns is not None
        half = (summary.high_ns - summary.low_ns) / 2 / case.ns if known else None  # type: ignore[union-attr, operator]
        within = f"the median is known to ±{format_half_width(100 * half)}, " if half is not None else ""
        yield Reason("in doubt", f"noisy: {within}samples spread over {100 * spread(record):.0f} % (p10 to p90)")
    if "analogue" in record.flags:
        yield Reason("in doubt", "a CPU's analogue of the kernel, another program than a GPU's")


_OF_WRONG: Sequence[Rule] = (_fall_backs, _doubts)
_OF_SHORT: Sequence[Rule] = (_clock, _compiled, _launches, _fall_backs, _doubts)
_RULES: Sequence[Rule] = (
    _product, limits.latency, limits.resident, limits.roofs, limits.kernels, limits.gaps, limits.more_bytes, _warps,
    limits.sectors, limits.shared, limits.misaligned, _waves, _registers, _clock, _compiled, _launches, _fall_backs,
    _doubts,
)  # fmt: skip
