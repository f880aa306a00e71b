"""What limits one row: the roofs over it, what the hardware counted, its grid, and the latency that nothing hides.

A row is bound by a limit that it comes near to. Bytes are the compulsory ones, and those that DRAM and the L2 moved
where they were counted; instructions are held against what the schedulers can issue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from gpubench.compare.causes import number, own_stopwatch
from gpubench.explain.reason import Case, Kind, Reason
from gpubench.model import roofline
from gpubench.model.kernel_facts import Family, facts
from gpubench.result import KernelSeen, Record
from gpubench.telemetry import beside_mhz
from gpubench.units import format_bytes, format_duration, three_digits

NEAR_ROOF = 0.7
"""The share of its roof from which a row is bound by it; below, something else is the reason."""
PAST = 1.1
"""The share of a roof beyond which a row's bytes or flops are not of that kind."""
STARTS = 3
"""Times the reading of an empty kernel within which a row is mostly start and end."""
SOON_OVER = 10
"""The same, within which start and end still are a tenth of a row and more."""
MORE_BYTES = 1.1
"""Counted over compulsory bytes from which the difference is worth a word; counters are good to a few per cent."""
WORTH_A_WORD = 0.05
"""The share of a row's time that bytes beyond the compulsory ones take at the least to be named."""
SECTOR = 32
SCHEDULERS = 4
"""Of a multiprocessor since Volta; each issues an instruction of one warp a clock (CUDA C++ Programming Guide, compute
capabilities)."""
VOLTA = 7.0
WARP = 32
FEW_WARPS = 0.25
"""The share of the warps a multiprocessor can hold below which a kernel that loads by its threads hides little."""
MOSTLY = 0.95
"""The share of one family of kernels from which a call is about nothing else."""
IDLE = 0.1
"""The share of the multiprocessors without work from which it is worth a word."""
VECTOR = 16
"""Bytes that fast kernels load at a time."""
SERIAL_NS = 2.0
"""A chain of atomic additions to one address that is longer than this for each of them was not what took the time: the
L2 of an H200 takes one in 0.7 ns."""
GAPS = 0.1
"""The share of a call between its kernels from which it is worth a word."""


@dataclass(frozen=True)
class Share:
    """How much of a limit a row reaches: the kind of row that it bounds, the limit's name, and how that is known."""

    kind: Kind
    name: str
    value: float
    how: str = ""

    @property
    def percent(self) -> str:
        """In words: tiny ones are not none."""
        return f"{100 * self.value:.0f}" if self.value > 0.01 else "less than 1"

    @property
    def words(self) -> str:
        """`94 % of DRAM read by the bytes that DRAM moved`."""
        return f"{self.percent} % of {self.name}{self.how}"


def start(case: Case) -> Iterator[Reason]:
    """A row that is hardly longer than a kernel that does nothing."""
    timer = case.record.timer
    if timer is not None and timer.empty_ns and case.ns < STARTS * timer.empty_ns:
        empty = format_duration(timer.empty_ns)
        yield Reason(
            "start-bound", f"{format_duration(case.ns)} is hardly more than an empty kernel reads ({empty}): the start "
            "and the end of a kernel, not its work", "more work in one launch: a larger size, or several calls fused",
        )  # fmt: skip


def resident(case: Case) -> Iterator[Reason]:
    """Bytes that come from the last-level cache: on purpose, or because the call before left them there."""
    work, size = case.record.work, case.device.get("last_level_cache_bytes")
    if work is None or not work.bytes:
        return
    roof = case.level if work.level == "L2" else case.l2
    share = work.bytes / case.ns * 1e9 / roof.value if roof is not None else 0.0
    reached = f", {100 * share:.0f} % of {roof.name}" if roof is not None and 0.01 < share < PAST else ""
    moved = dram_bytes(case.record)
    beside = f"; DRAM moved {format_bytes(moved)} of it" if moved and moved > WORTH_A_WORD * work.bytes else ""
    if work.level == "L2":
        words = f"{format_bytes(work.bytes)} are read from the L2 on purpose{reached}{beside}: no DRAM bandwidth"
        yield Reason("L2-resident", words)
    elif case.record.conditions.cache == "hot" and size and work.bytes < size:
        words = f"{format_bytes(work.bytes)} fit the last-level cache, which is hot{reached}: no DRAM bandwidth"
        yield Reason("L2-resident", words)


def roofs(case: Case) -> Iterator[Reason]:
    """The limit that a row is near to, where a product's model, a cache or latency does not say more."""
    if case.time is not None or any(resident(case)) or case.record.metric("latency") is not None:
        return
    if own_stopwatch(case.record):
        words = "timed by a stopwatch of the benchmark's own: its figure may be one of many steps of a call"
        yield Reason("own stopwatch", words)
        return
    found = [share for share in shares(case) if share.value <= PAST]
    work, why = case.record.work, _instead(case)
    intensity = f" at {three_digits(work.flops / work.bytes)} FLOP/B" if work and work.flops and work.bytes else ""
    near = next((share for share in found if share.value >= NEAR_ROOF), None)
    if near is not None:
        needed = next((share for share in found if share.name == near.name and share is not near), None)
        beside = f", {needed.percent} % by those that the algorithm needs" if needed is not None else ""
        change = "" if needed is not None else _CHANGES.get(near.kind, "")  # see more_bytes
        yield Reason(near.kind, f"{near.words}{beside}{intensity}{_small(case)}", change)
    elif any(units(case)):
        yield from units(case)
    elif found and not (work and work.flops > work.bytes and case.compute is None and not found[0].how):
        others = [share for share in found[1:] if share.value > WORTH_A_WORD and share.name != found[0].name]
        reached = ", ".join([found[0].words + intensity, *(share.words for share in others)])
        yield Reason("neither roof", f"{reached}{_small(case)}: {why or _at_once(found) or SILENT}")
    elif why and not found:
        yield Reason("neither roof", f"neither flops nor bytes are known of it: {why}")


def _at_once(found: Sequence[Share]) -> str:
    """Arithmetic and memory that both take a good part of the time: what one waits for the other is not hidden."""
    moving = max((share.value for share in found if share.kind == "bandwidth-bound"), default=0.0)
    working = max((share.value for share in found if share.kind != "bandwidth-bound"), default=0.0)
    return "memory and instructions at once, neither hidden behind the other" if moving + working >= 1 else ""


def units(case: Case) -> Iterator[Reason]:
    """Results of a unit a clock beside those predicted for it."""
    reached = case.record.metric("lanes") or case.record.metric("results")
    most = number(case.record.prediction.get("lanes"))
    if reached is not None and most and NEAR_ROOF * most <= reached.value <= PAST * most:
        words = f"{three_digits(reached.value)} results a clock and multiprocessor, {most:.0f} predicted of this unit"
        yield Reason("instruction-bound", words)


SILENT = "latency or other instructions set the pace, the record does not say which"
_CHANGES: dict[Kind, str] = {
    "compute-bound": "a format with fewer bits, or fewer flops",
    "bandwidth-bound": "fewer bytes: fusion, fewer bits, no second pass",
    "instruction-bound": "fewer instructions: wider loads, fewer conversions and addresses, other units",
}


def shares(case: Case) -> list[Share]:
    """The share of each limit that the row reaches: first of its arithmetic and of the memory it uses, by compulsory
    bytes and by those that DRAM moved where these are more, the nearest first; then of the L2, and of what can be
    issued, which a row near to one of the others may be near to as well."""
    record, work, found = case.record, case.record.work, []
    if work is not None and work.flops and case.compute is not None:
        found.append(Share("compute-bound", case.compute.name, work.flops / case.ns * 1e9 / case.compute.value))
    memory = case.level if work is not None and work.level is not None else case.memory
    needed = work.bytes if work is not None else 0
    if needed and memory is not None:
        found.append(Share("bandwidth-bound", memory.name, needed / case.ns * 1e9 / memory.value))
    moved = dram_bytes(record)
    if moved is not None and moved > MORE_BYTES * needed and case.memory is not None:
        share = moved / case.ns * 1e9 / case.memory.value
        found.append(Share("bandwidth-bound", case.memory.name, share, " by the bytes that DRAM moved"))
    found.sort(key=lambda share: -share.value)
    sectors = [number(record.counters.get(name)) for name in ("l2_sectors_read", "l2_sectors_write")]
    if None not in sectors and case.l2 is not None:
        share = SECTOR * sum(each for each in sectors if each is not None) / case.ns * 1e9 / case.l2.value
        found.append(Share("bandwidth-bound", case.l2.name, share, " by the sectors that the L2 served"))
    issued = _issued(case)
    if issued is not None:
        found.append(Share("instruction-bound", "the instructions that its schedulers can issue", issued, " (counted)"))
    return found


def _issued(case: Case) -> float | None:
    """The share of the schedulers' clocks in which an instruction was issued."""
    count, most = case.device.get("multiprocessors"), case.device.get("sm_mhz_max")
    instructions = number(case.record.counters.get("instructions"))
    capability = str(case.device.get("compute_capability") or "0")
    mhz = beside_mhz(case.record) or most
    if not count or not mhz or instructions is None or float(capability) < VOLTA:
        return None
    return float(instructions / (count * SCHEDULERS * mhz * 1e-3 * case.ns))


def _small(case: Case) -> str:
    """Of a cold row with few bytes: the last writes need not have reached DRAM."""
    return "; so few bytes that the cache may keep what is written" if "cache-resident" in case.record.flags else ""


def _instead(case: Case) -> str:
    """What a row without a near limit waits for, as far as its launch and its other reasons tell; empty: unknown."""
    for rule, words in ((misaligned, "narrow loads"), (sectors, "uncoalesced loads"), (shared, "one bank or address")):
        if any(rule(case)):
            return f"{words} set the pace"
    kernel, count = case.longest, case.device.get("multiprocessors")
    timer = case.record.timer
    if timer is not None and timer.empty_ns and case.ns < SOON_OVER * timer.empty_ns:
        empty = format_duration(timer.empty_ns)
        return f"in {format_duration(case.ns)} the start and the end of a kernel weigh, which take an empty one {empty}"
    if kernel is not None and kernel.grid and kernel.block and count:
        blocks = prod(kernel.grid)
        if blocks < (1 - IDLE) * count:
            leave = "block leaves" if blocks == 1 else "blocks leave"
            return f"{blocks} {leave} {count - blocks} of {count} multiprocessors without work"
        warps, most = resident_warps(kernel, case), (case.device.get("threads_per_multiprocessor") or 0) // WARP
        counted = number(case.record.counters.get("tensor_instructions"))
        matrix = case.compute is not None and case.compute.name.endswith("matmul") and counted is None
        products = counted or matrix or by_tiles(kernel)  # few warps are enough for them
        if most and warps < FEW_WARPS * most and not products:
            return f"{warps} of {most} warps on a multiprocessor hide little latency"
    families = _families(case.record)
    return "its kernels have different limits" if len(families) > 1 and max(families.values()) < MOSTLY else ""


def by_tiles(kernel: KernelSeen) -> bool:
    """Whether a kernel works on tiles in few warps, some of which only load: products and attention."""
    return facts(kernel.name, kernel.kind).family in ("matmul", "attention")


def resident_warps(kernel: KernelSeen, case: Case) -> int:
    """Warps of this kernel that a multiprocessor holds at a time: as many blocks as its grid has for each, and as its
    threads, registers and shared memory allow (CUDA C++ Programming Guide, "Multiprocessor Level")."""
    threads, device = max(prod(kernel.block or [1]), 1), case.device
    warps = -(-threads // WARP)
    blocks = -(-prod(kernel.grid or [1]) // int(device["multiprocessors"]))
    for have, need in (
        (device.get("threads_per_multiprocessor"), threads),
        (device.get("registers_per_multiprocessor"), (kernel.registers or 0) * warps * WARP),
        (device.get("shared_memory_per_multiprocessor_bytes"), kernel.shared_bytes or 0),
    ):
        if have and need:
            blocks = min(blocks, max(int(have) // need, 1))
    return blocks * warps


def kernels(case: Case) -> Iterator[Reason]:
    """What a call of several kernels spends its time on."""
    families = _families(case.record)
    count = sum(kernel.count for kernel in case.record.kernels if kernel.kind == "kernel")
    if count > 1 and len(families) > 1 and max(families.values()) < MOSTLY:
        parts = sorted(families.items(), key=lambda part: -part[1])
        words = ", ".join(f"{name} {100 * share:.0f} %" for name, share in parts if share > WORTH_A_WORD)
        yield Reason("kernels", f"{count} kernels in a call, of their time {words}")


def gaps(case: Case) -> Iterator[Reason]:
    """The time between the kernels of a call."""
    families = _families(case.record)
    count = sum(kernel.count for kernel in case.record.kernels if kernel.kind == "kernel")
    spent = sum(kernel.ns or 0 for kernel in case.record.kernels)
    if count > 1 and families and spent < (1 - GAPS) * case.ns:
        share = 100 * (1 - spent / case.ns)
        yield Reason("gaps", f"{share:.0f} % of the time lies between its {count} kernels", "a CUDA graph, or fusion")


def _families(record: Record) -> dict[Family, float]:
    """The share of each family of kernels in the time of all; empty where a kernel has no time, or none has any."""
    spent: Counter[Family] = Counter()
    for kernel in record.kernels:
        if kernel.ns is None:
            return {}
        spent[facts(kernel.name, kernel.kind).family] += kernel.ns
    return {family: ns / spent.total() for family, ns in spent.items()} if spent.total() else {}


def latency(case: Case) -> Iterator[Reason]:
    """Steps that wait for each other, and too few bytes on their way."""
    record = case.record
    step, cycles = record.metric("latency"), record.metric("cycles")
    if step is not None:
        level = record.prediction.get("level")
        where = f", predicted to be in {level}{' memory' * (level == 'shared')}" if isinstance(level, str) else ""
        clocks = f", {three_digits(cycles.value)} cycles" if cycles is not None else ""
        words = f"each step waits for the one before: {three_digits(step.value)} ns{clocks}{where}"
        yield Reason("latency-bound", words)
    flying, knee = (number(record.prediction.get(name)) for name in ("bytes_in_flight", "knee_bytes"))
    if flying is not None and knee is not None and flying < knee:
        words = f"{format_bytes(flying)} on their way to a multiprocessor, where {format_bytes(knee)} hide the latency"
        yield Reason("latency-bound", f"{words} (predicted)", "more loads in flight: more warps, wider or unrolled")


def more_bytes(case: Case) -> Iterator[Reason]:
    """Bytes that DRAM moved beyond the compulsory ones, where moving them takes part of the time."""
    moved, work = dram_bytes(case.record), case.record.work
    if moved is None or work is None or not work.bytes or case.memory is None or moved <= MORE_BYTES * work.bytes:
        return
    spent = (moved - work.bytes) / case.memory.value * 1e9
    if spent < WORTH_A_WORD * case.ns:
        return
    words = f"DRAM moved {format_bytes(moved)} where the algorithm needs {format_bytes(work.bytes)}"
    several = len([kernel for kernel in case.record.kernels if kernel.kind == "kernel"]) > 1
    helps = "fusion: what one kernel writes and the next reads need not leave the chip" if several else (
        "tiles or an order that read each byte once")  # fmt: skip
    most = moved / case.memory.value * 1e9 > NEAR_ROOF * case.ns or several
    change = helps if most and not any(sectors(case)) else ""
    yield Reason("more bytes", f"{words}: {three_digits(moved / work.bytes)} times", change)


def dram_bytes(record: Record) -> float | None:
    """The bytes that DRAM moved in one call, by counter."""
    parts = [number(record.counters.get(name)) for name in ("dram_bytes_read", "dram_bytes_write")]
    return None if None in parts else sum(part for part in parts if part is not None)


def bound(case: Case) -> str | None:
    """Which roof is above the row by its intensity: "memory" or "compute"."""
    work = case.record.work
    if work is None or not work.flops or not work.bytes or case.compute is None or case.memory is None:
        return None
    return roofline.bound(work.flops / work.bytes, case.compute.value, case.memory.value)


def sectors(case: Case) -> Iterator[Reason]:
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


def shared(case: Case) -> Iterator[Reason]:
    """What the lanes of a warp ask of one bank, and what all threads ask of one address: as the suite predicts it."""
    ways, serial = (number(case.record.prediction.get(key)) for key in ("ways", "serial"))
    if ways is not None and ways > 1:
        words = f"a warp asks one bank of shared memory for {ways:.0f} words, one after another (predicted)"
        yield Reason("bank conflicts", words, "a pitch of an odd number of words, or a swizzle")
    if serial is not None and serial > 1 and case.ns < SERIAL_NS * serial:
        words = f"{serial:,.0f} additions to one address, one after another: {three_digits(case.ns / serial)} ns each"
        yield Reason("one address", words, "an address for each warp or block, and their sum at the end")


def misaligned(case: Case) -> Iterator[Reason]:
    """Rows of a product that the model does not cover, by the suite's own figures."""
    which, by = case.record.prediction.get("misaligned"), case.record.prediction.get("alignment_bytes")
    if not isinstance(which, list) or not which or not isinstance(by, Mapping) or case.time is not None:
        return
    rows = ", ".join(f"{name} on multiples of {by.get(name)} B" for name in which)
    said = facts(case.longest.name) if case.longest is not None else None
    loads = f"{said.alignment} element{'s' * (said.alignment > 1)} at a time" if said and said.alignment else ""
    narrow = f"; {said.maker} {said.path} loads {loads}" if said and loads else ""
    words = f"rows begin, of {rows}, where fast kernels load {VECTOR} B at a time{narrow}"
    yield Reason("misaligned", words, f"pad rows to a multiple of {VECTOR} B")
