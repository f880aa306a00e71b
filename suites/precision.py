"""Precision: what do narrower numbers buy, in matrix products, in memory, and by the instructions made for them?"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, NotTestable, RowsMissing, Suite, Workload, exactly
from gpubench.model import execution, precision, products

suite = Suite(__file__)

DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3", "int8"]
SHAPES = [
    "8x64x64", "16x16x16", "17x17x17", "100x100x100", "1000x1000x1000", "1x4096x4096", "8352x4096x1536",
]  # fmt: skip
"""Products that some formats refuse: few rows, sizes that are odd, or no multiple of 8 or 16."""
CACHE = Axis(["cold"], cpu=["hot"])
"""On a CPU a cold row has copies without number of operands this small, each of them tried."""
NEGLIGIBLE = 1024
"""Elements of a stream of 4 KiB in float32, which takes no longer than its launch."""

CHAINS, LINKS, ROUNDS = 8, 128, 100
"""As in peak.cu."""
MMA_SUMS, MMA_LINKS, MMA_THREADS = 8, 1024, 512
"""As in execution_tensor.cu: sums of a warp, instructions of each, threads of the one block of a multiprocessor."""
FMA = {"fp32": 0, "fp16x2": 2, "bf16x2": 3, "dp4a": 5}
"""Units that are not for matrices and the TYPE each is in peak.cu."""
MMA = {
    "mma-fp16": (0, 16, 0x3C003C00), "mma-bf16": (1, 16, 0x3F803F80), "mma-tf32": (2, 8, 0x3F800000),
    "mma-int8": (3, 32, 0x01010101),
}  # fmt: skip
"""Products of a warp: the TYPE in execution_tensor.cu, the terms an instruction adds to a sum, and 32 bits of ones."""
UNITS = {
    "fp32": "float32", "fp16x2": "float16", "bf16x2": "bfloat16", "dp4a": "int8", "mma-fp16": "float16",
    "mma-bf16": "bfloat16", "mma-tf32": "tf32", "mma-int8": "int8",
}  # fmt: skip
"""The format each unit multiplies in."""
FMA_CHAINS = suite.kernel("fma_chains", defines={"TYPE": list(FMA.values())}, source="peak.cu")
MMA_CHAINS = suite.kernel("mma_chains", defines={"TYPE": [0, 1, 2, 3]}, source="execution_tensor.cu")
RELU_BYTES = suite.kernel("relu_bytes")

# Matrix products.


def product(
    device: Any, m: int, k: int, n: int, dtype: str, fast: bool = True, seconds: float = 0.0, **labels: str
) -> Workload:
    """The library's product of m × k and k × n in a format, once tried."""
    import torch

    of = products.Products(torch, device)
    fields = of.product(m, k, n, dtype, fast)
    fields["labels"] |= labels
    return Workload(**fields, primary="flops", least_s=seconds, prediction=precision.rate(dtype, device.facts()))


@suite.benchmark(
    n=Axis([4096, 8192], cpu=[256], quick=[4096]),
    dtype=Axis(DTYPES, quick=["float32", "tf32", "bfloat16", "float8_e4m3"]),
    cache=CACHE,
)
def matmul(device: Any, n: int, dtype: str) -> Workload:
    """The library's product of two n × n matrices in each format, by the best path that torch offers."""
    return product(device, n, n, n, dtype)


@suite.benchmark(
    n=Axis([8192], cpu=[256]),
    dtype=Axis(["bfloat16", "float8_e4m3"], cpu=["float32"], choices=DTYPES),
    seconds=Axis([3], cpu=[1]),
    cache=Axis(["hot"]),
    load=Axis(["burst", "sustained"], cpu=["burst"], quick=["burst"]),
)
def matmul_sustained(device: Any, n: int, dtype: str, seconds: int) -> Workload:
    """The same with rests and without: under the power limit fewer bits may gain more, or less, than twice."""
    return product(device, n, n, n, dtype, seconds=seconds)


@suite.benchmark(n=Axis([8192], cpu=[256], quick=[4096]), sums=Axis(["fast", "precise"]), cache=CACHE)
def float8_sums(device: Any, n: int, sums: str) -> Workload:
    """The float8 product with sums that the matrix units keep short, and with sums moved to float32 now and then."""
    return product(device, n, n, n, "float8_e4m3", fast=sums == "fast", sums=sums)


@suite.benchmark(
    shape=Axis(SHAPES, cpu=SHAPES[:4], quick=SHAPES[1:4], quick_cpu=SHAPES[1:4]),
    dtype=Axis(DTYPES[1:], quick=["float8_e4m3", "int8"]),
    cache=CACHE,
)
def shapes(device: Any, shape: str, dtype: str) -> Workload:
    """Products m×k×n that are small or crooked: which format takes which; what is refused is a row with the rule."""
    return product(device, *map(int, shape.split("x")), dtype)


# 2:4 sparsity.


@suite.benchmark(
    shape=Axis(
        ["4096x4096x4096", "8192x8192x8192", "3072x10240x16", "3072x10240x3072"],
        cpu=["256x256x256"],
        quick=["4096x4096x4096"],
    ),
    dtype=Axis(["bfloat16", "float8_e4m3", "int8"], cpu=["int8"], quick=["bfloat16"], choices=[*DTYPES[3:]]),
    weights=Axis(["unpruned", "dense", *products.SPARSE]),
    cache=CACHE,
)
def sparse(device: Any, shape: str, dtype: str, weights: str) -> Workload:
    """Weights m × k of which half are zero, times k × n: as a dense product, and compressed to 2:4 beforehand.

    The flops are those of the terms that are multiplied. `unpruned` are dense weights without zeros.
    """
    import torch

    m, k, n = map(int, shape.split("x"))
    fields = products.Products(torch, device).weighted(m, k, n, dtype, weights)
    gain = precision.sparse_gain(m, k, n, dtype, 32 if dtype == "int8" else 16, device.facts())
    return Workload(**fields, primary="time", prediction=gain if weights in products.SPARSE else {})


# Memory, and units.


@suite.benchmark(
    n=Axis([NEGLIGIBLE, 1 << 29], cpu=[NEGLIGIBLE, 1 << 25], quick=[1 << 29]),
    dtype=Axis(["float32", "float16", "bfloat16", "float8_e4m3", "int8"], quick=["float32", "bfloat16"]),
)
def relu(device: Any, n: int, dtype: str) -> Workload:
    """max(x, 0) of n numbers: one read, one write and one FLOP each, so that only their size matters.

    torch's own kernel, but for numbers of one byte: those it has not in every format. `n` = 1024 is the control.
    """
    import numpy as np
    import torch

    x = products.Products(torch, device).drawn(1, n, dtype, 0).view(n)
    y = torch.empty_like(x)
    each = x.element_size()
    run: Any
    if each == 1:
        plain = (tensor.view(torch.int8) for tensor in (x, y))
        run = RELU_BYTES(*plain, np.int64(n), grid=-(-n // (16 * 256)), block=256)
    else:
        run = lambda: torch.clamp_min(x, 0, out=y)  # noqa: E731  # what torch.relu is, which takes no output
    return Workload(
        run=run,
        output=y,
        reference=lambda: (wide := x.float() if each == 1 else x).mul(wide > 0),
        reference_name="x times whether it is above 0",
        flops=n,
        bytes=2 * each * n,
        accumulate="exact",
        dtype=dtype,
        level="DRAM",
        primary="bytes",
        labels={"control": "as long as a launch"} if n <= NEGLIGIBLE else {},
        prediction={"bytes_per_element": 2 * each, "flop_per_byte": 1 / (2 * each)},
    )


@suite.benchmark(unit=Axis(list(UNITS), cpu=["fp32"], quick=["fp32", "fp16x2", "mma-fp16"]))
def units(device: Any, unit: str) -> Workload:
    """One format by different instructions: a multiply-add a lane, packed halves, dot products of four, mma.sync.

    Chains of ones in registers, on every multiprocessor; what they write is there to be checked.
    """
    import numpy as np

    facts, dtype = device.facts(), UNITS[unit]
    multiprocessors = facts.get("multiprocessors") or 8
    grid = multiprocessors if unit in MMA else 4 * multiprocessors
    counts = device.unwritten(grid * MMA_THREADS, "float32")
    n = np.int64(counts.numel())
    if unit in MMA:
        kind, depth, ones = MMA[unit]
        clocks = device.unwritten((grid, 2), "int64")
        arguments = counts, clocks, np.uint32(ones), np.int32(MMA_LINKS), n
        run = MMA_CHAINS(*arguments, grid=grid, block=MMA_THREADS, TYPE=kind)
        counted = 4 * MMA_SUMS * depth * MMA_LINKS
        flops = grid * MMA_THREADS * 2 * counted
        rate = execution.matrix("mma.sync", dtype, facts)
    else:
        lanes = {"fp16x2": 2, "bf16x2": 2}.get(unit, 1)
        run = FMA_CHAINS(counts, np.float32(1), np.int32(ROUNDS), n, grid=grid, block=MMA_THREADS, TYPE=FMA[unit])
        counted = lanes * ROUNDS * (CHAINS * LINKS + sum(range(CHAINS)))
        flops = grid * MMA_THREADS * 2 * (4 if unit == "dp4a" else lanes) * CHAINS * LINKS * ROUNDS
        rate = {} if unit == "dp4a" else precision.rate(dtype, facts, matrix=False)
    return Workload(
        run=run,
        output=counts,
        reference=lambda: counts.new_full(counts.shape, counted),
        reference_name="the number of links",
        flops=flops,
        accumulate="exact",
        dtype=dtype,
        roof=f"{unit} FMA" if rate and unit in FMA else None,
        primary="flops",
        labels={"units": "matrix" if unit in MMA else "ordinary"},
        prediction=rate,
    )


# The lecture's claims.

LADDER_GAIN, FORMAT_GAIN, INSTRUCTION_GAIN = 20, 1.5, 3
"""The whole ladder is 24 to 64 times; half the bits give twice the rate, power permitting; products of one instruction
give 4 to 7 times what packed halves do."""
SPARSE_GAIN = 1.7
"""Half the terms give at most twice the rate; compressing and unpacking may take a part of it."""
SPARSE_JUDGED = "bfloat16", "float8_e4m3"
"""Formats whose dense product comes near its peak, so that what is gained over it is the sparsity's. torch's dense int8
product reaches 43 % of it on an H200, and 2:4 sparse int8 "gains" 2.8 times over that."""
HALVED = 1.8, 2.2
"""Half the bytes take half the time where the memory is the limit."""
AS_MUCH = 0.95, 1.05
"""DRAM moves what the operation must move; dirty lines that stay in the L2 are 3 % of such a stream at most."""
SAME_BANDWIDTH = 0.9, 1.1
"""A byte takes as long in any format."""
NOTHING = 0.8, 1.25
"""Kernels that are over as soon as they have begun differ by ticks."""
ALIKE = 0.9, 1.1
"""As many bits, the same rate."""
ORDINARY = 0.5, 1.2
"""Where the library's product runs on the ordinary units too, it has their rate at most."""
ZEROS = 0.85, 1.15
"""Zeros among the weights are multiplied like other numbers, but switch fewer transistors."""
VECTORS = 1.4, 3
"""On a CPU's vector units float32 has twice the lanes of float64."""
NO_UNITS = "a CPU has no units for matrices (amx_bf16) here, and its others are not the lecture's"


def product_over(view: Any, dtype: str, other: Any) -> Any:
    """The rate of the best product in a format over that of another row."""
    return view.ratio(other, view.fastest("matmul", dtype=dtype), per="flops")


def ordinary(view: Any) -> Effect:
    """The control: a product in float32, which the matrix units do not do, gains nothing over chains of FMAs."""
    gain = product_over(view, "float32", view.one("units", unit="fp32"))
    return Effect("rate of a float32 product over fp32 FMA", gain, "1", *ORDINARY)


def eight_bits(view: Any) -> str:
    """The format of one byte that this device multiplies: float8, or int8 where it has none."""
    return "int8" if view.maybe("matmul", dtype="float8_e4m3") is None else "float8_e4m3"


@suite.claim("C06")
def the_ladder(view: Any) -> Finding:
    """From fp32 FMA to the narrowest product: the part of the thousandfold that one chip shows."""
    view.needs_gpu(NO_UNITS)
    plain, narrow = view.one("units", unit="fp32"), eight_bits(view)
    steps = [(name, product_over(view, name, plain)) for name in ("tf32", "bfloat16", narrow)]
    shown = [Effect(f"rate of {name} products over fp32 FMA", gain, TIMES) for name, gain in steps[:-1]]
    shown.append(Effect("share of the thousandfold", steps[-1][1].times(1e-3)))
    gains = [pair for pair in sparse_gains(view) if pair[1].params["dtype"] == narrow]
    if gains:
        shown.append(Effect(f"and of 2:4 sparse over dense {narrow}", max(gains, key=by_gain)[0], TIMES))
    return Finding(
        effects=(Effect(f"rate of {narrow} products over fp32 FMA", steps[-1][1], TIMES, LADDER_GAIN), *shown),
        controls=(ordinary(view),),
        note="" if gains else "without structured sparsity",
    )


@suite.claim("C07")
def fewer_bits(view: Any) -> Finding:
    """On the matrix units each halving of the bits nearly doubles the rate."""
    if view.on_cpu:
        return fewer_bits_on_a_cpu(view)
    steps = (("tf32", "bfloat16"), ("bfloat16", eight_bits(view)))
    gains = [product_over(view, narrow, view.fastest("matmul", dtype=wide)) for wide, narrow in steps]
    alike = product_over(view, "float16", view.fastest("matmul", dtype="bfloat16"))
    return Finding(
        effects=tuple(
            Effect(f"rate of {narrow} over {wide}", gain, TIMES, FORMAT_GAIN)
            for (wide, narrow), gain in zip(steps, gains, strict=True)
        ),
        controls=(Effect("rate of fp16 over bf16, as many bits", alike, "1", *ALIKE),),
        prediction={"over_tf32": {row.params["dtype"]: row.prediction.get("over_tf32") for row in view.rows("matmul")}},
    )


def fewer_bits_on_a_cpu(view: Any) -> Finding:
    """The same of a CPU's units for matrices, where it has them, against its vector units."""
    if "amx_bf16" not in (view.facts.get("isa") or ()):
        raise NotTestable(NO_UNITS)
    single = view.fastest("matmul", dtype="float32")
    vectors = product_over(view, "float32", view.fastest("matmul", dtype="float64"))
    return Finding(
        effects=(Effect("rate of bf16 over float32", product_over(view, "bfloat16", single), TIMES, FORMAT_GAIN),),
        controls=(Effect("rate of float32 over float64 on vector units", vectors, "1", *VECTORS),),
        note="a CPU's units for matrices (AMX) against its vector units",
    )


@suite.claim("C08")
def complex_instructions(view: Any) -> Finding:
    """One instruction for a whole product does several times what packed halves do, in the same format."""
    view.needs_gpu(NO_UNITS)
    halves = view.one("units", unit="fp16x2")
    gain = view.ratio(halves, view.one("units", unit="mma-fp16"), per="flops")
    shown = [Effect("rate of fp16 products over fp16x2 FMA", product_over(view, "float16", halves), TIMES)]
    for unit, other in (("mma-tf32", "fp32"), ("dp4a", "fp32"), ("mma-int8", "dp4a")):
        pair = view.maybe("units", unit=other), view.maybe("units", unit=unit)
        if None not in pair:
            shown.append(Effect(f"rate of {unit} over {other}", view.ratio(*pair, per="flops"), TIMES))
    return Finding(
        effects=(Effect("rate of fp16 by mma.sync over fp16x2 FMA", gain, TIMES, INSTRUCTION_GAIN), *shown),
        controls=(ordinary(view),),
    )


def sparse_gains(view: Any) -> list[tuple[Any, Any]]:
    """How many times as fast the faster library is as the dense product, by row of the dense one."""
    gains = []
    for row in view.rows("sparse", weights="dense") if view.maybe("sparse", weights="dense") else ():
        where = {name: row.params[name] for name in ("shape", "dtype")}
        found = [view.maybe("sparse", weights=weights, **where) for weights in products.SPARSE]
        ratios = [view.ratio(row, other) for other in found if other is not None]
        if ratios:
            gains.append((max(ratios, key=lambda ratio: ratio.value), row))
    return gains


def by_gain(pair: tuple[Any, Any]) -> float:
    """What pairs of `sparse_gains` are ordered by."""
    return float(pair[0].value)


@suite.claim("C10")
def structured_sparsity(view: Any) -> Finding:
    """2:4 sparse weights against the same weights dense: the best and the worst shape."""
    view.needs_gpu("torch has products of 2:4 sparse weights for CUDA devices only")
    measured = sparse_gains(view)
    gains = [pair for pair in measured if pair[1].params["dtype"] in SPARSE_JUDGED]
    if not gains:
        view.rows("sparse", weights="cusparselt")  # which says why there is none
        raise RowsMissing("no row of dense weights beside a 2:4 sparse one")
    (best, row), (worst, other) = max(gains, key=by_gain), min(gains, key=by_gain)
    unpruned = view.one("sparse", weights="unpruned", shape=row.params["shape"], dtype=row.params["dtype"])
    return Finding(
        effects=(
            Effect(f"best gain, {row.params['dtype']} {row.params['shape']}", best, TIMES, SPARSE_GAIN),
            Effect(f"worst gain, {other.params['dtype']} {other.params['shape']}", worst, TIMES),
            *(
                Effect(f"gain, {row.params['dtype']} {row.params['shape']}, over a slow dense product", gain, TIMES)
                for gain, row in measured
                if row.params["dtype"] not in SPARSE_JUDGED
            ),
        ),
        controls=(Effect("time without zeros over with them, both dense", view.ratio(unpruned, row), "1", *ZEROS),),
        prediction={"most": 2},
    )


def stream(view: Any, dtype: str) -> Any:
    """The longest stream of a format; RowsMissing where the control is all there is."""
    row = max(view.rows("relu", dtype=dtype), key=lambda row: row.params["n"])
    if row.params["n"] <= NEGLIGIBLE:
        raise RowsMissing(f"no long stream in {dtype}")
    return row


def as_long_as_a_launch(view: Any) -> Effect:
    """The control: at 4 KiB no format takes longer than another."""
    wide, half = (view.one("relu", dtype=dtype, n=NEGLIGIBLE) for dtype in ("float32", "float16"))
    return Effect("time of 4 KiB in float32 over float16", view.ratio(wide, half), "1", *NOTHING)


@suite.claim("C34")
def bytes_of_relu(view: Any) -> Finding:
    """ReLU moves one read and one write of each element: counted, or by a byte taking as long in every format."""
    rows = {dtype: stream(view, dtype) for dtype in ("float32", "float16", "bfloat16")}
    effects = []
    for dtype, row in rows.items():
        moved = view.dram_bytes(row)
        if moved is not None:
            share = exactly(moved.value / row.work.bytes)
            effects.append(Effect(f"DRAM bytes over those of {dtype} elements", share, "1", *AS_MUCH))
        elif dtype != "float32":
            ratio = view.ratio(row, rows["float32"], per="bytes")
            effects.append(Effect(f"time of a byte, {dtype} over float32", ratio, "1", *SAME_BANDWIDTH))
    counted = len(effects) == len(rows)
    return Finding(
        effects=tuple(effects),
        controls=(as_long_as_a_launch(view),),
        prediction={dtype: row.prediction.get("flop_per_byte") for dtype, row in rows.items()},
        proof="A" if counted else "B",
        note="" if counted else "no counters: inferred from time",
    )


@suite.claim("C35")
def half_the_bytes(view: Any) -> Finding:
    """Half the bytes take half the time, where the memory is what is waited for."""
    wide = stream(view, "float32")
    ratios = {dtype: view.ratio(wide, stream(view, dtype)) for dtype in ("float16", "bfloat16")}
    bytes_ = view.maybe("relu", dtype="float8_e4m3", n=wide.params["n"])
    shown = [] if bytes_ is None else [Effect("time in float32 over float8", view.ratio(wide, bytes_), TIMES)]
    return Finding(
        effects=(
            *(Effect(f"time in float32 over {dtype}", ratio, TIMES, *HALVED) for dtype, ratio in ratios.items()),
            *shown,
        ),
        controls=(as_long_as_a_launch(view),),
        prediction={"time": 2},
    )
