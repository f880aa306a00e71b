"""Worlds of the suite attention."""

from __future__ import annotations

from typing import Any

from gpubench.result import Check, KernelSeen
from worlds.made import Row, World

SCORES, OPERAND = 2**31, 2**27
"""Bytes of a pass over the scores, and over an operand, of the lecture's example."""
COPY = {"known_copy": {"error": 0.001}}
NVJET, SOFTMAX = "nvjet_hsh_128x128", "void softmax_warp_forward<float16>(…)"
SCALE = "void at::native::vectorized_elementwise_kernel<4, MulFunctor>"
FLASH = "void pytorch_flash::flash_fwd_kernel<traits>"
LENGTHS = (512, 1024, 2048, 4096)


def error(by: str, greatest: str, dtype: str, found: float) -> Row:
    """The error of a way; that by tiles also tells what it is without rescaling."""
    more = {"error_without_rescaling": 0.6} if by == "tiled" else {}
    check = Check(found, 1.0, found, 10.0, 4, "float64")
    return Row(f"exactness by={by} greatest={greatest} dtype={dtype}", 20, more, fields={"check": check})


def errors(tiled: float = 2e-3, single: float = 3e-7) -> list[Row]:
    """Of eager steps, and of two ways that store no scores."""
    return [
        error(by, greatest, dtype, (3e-3 if by == "naive" else tiled) if dtype == "bfloat16" else single)
        for greatest in ("anywhere", "last")
        for dtype in ("bfloat16", "float32")
        for by in ("naive", "tiled", "flash")
    ]


def bad(greatest: str) -> dict[str, Any]:
    """Both ways that store no scores, wrong."""
    return {
        row.words: row
        for row in errors(1e-2, 1e-3)
        if f"greatest={greatest}" in row.words and "naive" not in row.words
    }  # fmt: skip


def lengths(counted: bool, power: dict[str, int]) -> list[Row]:
    """Forward rows, whose bytes of all heads grow with this power of the length."""
    return [
        Row(f"forward by={by} n={n}", 10 * n, counters={"dram_bytes_read": n**up, "dram_bytes_write": n**up, **COPY})
        if counted else Row(f"forward by={by} n={n}", 10 * n)
        for by, up in power.items()
        for n in LENGTHS
    ]  # fmt: skip


RESCALED = "exactness by=tiled greatest=last dtype=bfloat16"
RIGHT = {"error_without_rescaling": 1e-4}


def kernels(*names: str) -> dict[str, Any]:
    return {"kernels": [KernelSeen(name) for name in names]}


def example(by: str, passes: str, us: float, **more: Any) -> Row:
    return Row(f"gpt2-medium by={by} passes={passes}", us, **more)


ONCE = example("naive", "forward", 3000, fields=kernels(SCALE, NVJET, SOFTMAX, NVJET))
BOTH = example("naive", "both", 9000, fields=kernels(*[NVJET] * 6, SOFTMAX))


def counters(nbytes: float, *steps: tuple[str, float]) -> dict[str, Any]:
    """Of a row that moves so many bytes, and of its kernels."""
    made = [
        {"name": name, "grid": [8, 8, 1024], "dram_bytes_read": each, "dram_bytes_write": 0,
         "l2_sectors_read": 2**27, "l2_sectors_write": 2**26}
        for name, each in steps
    ]  # fmt: skip
    return {"counters": {"dram_bytes_read": nbytes, "dram_bytes_write": 0, "kernels": made, **COPY}}


GAP = [Row("one-tile by=naive-separate", 1200), Row("one-tile by=flash", 1000)]
TIMED = [
    example("naive-separate", "both", 11170),
    example("flash", "both", 4040),
    example("cudnn", "both", 2540),
    *GAP,
]
PRODUCT = SCORES + 2 * OPERAND
COUNTED = [
    example(
        "naive-separate", "both", 11170,
        **counters(40.3e9, (NVJET, 1.5 * PRODUCT), (SCALE, 2 * SCORES), (SOFTMAX, 2 * SCORES), ("another", 1)),
    ),
    example("flash", "both", 4040, **counters(3.3e9)),
    *GAP,
]  # fmt: skip


def held(by: str, passes: float, *names: str) -> Row:
    """A forward row that holds so many passes beside its operands."""
    peak = {"telemetry": {"peak_bytes": 4 * OPERAND + round(passes * SCORES)}}
    return example(by, "forward", 900, fields={**kernels(*names), **peak, "nbytes": 4 * OPERAND})


FUSED = [held("flash", 0.002, FLASH), held("naive", 2, SCALE, NVJET, SOFTMAX, NVJET)]


def kept(by: str, n: int, power: int) -> Row:
    """Both passes over a length, by a way that keeps so much between them, for all heads."""
    return Row(
        f"forward-backward by={by} n={n}", n, {"kept_bytes": n**power}, fields={"telemetry": {"peak_bytes": n**power}}
    )


MEMORY = [kept(by, n, power) for by, power in (("flash", 0), ("naive", 1)) for n in LENGTHS]

WORLDS = [
    World(
        "C61",
        [ONCE, BOTH],
        {ONCE.words: example("naive", "forward", 3000, fields=kernels(NVJET, NVJET, NVJET)),
         BOTH.words: example("naive", "both", 9000, fields=kernels(*[NVJET] * 7))},
        {BOTH.words: example("naive", "both", 9000, fields=kernels(*[NVJET] * 7))},
        proof="A",
    ),
    World("C63", errors() + lengths(False, {"naive": 1, "flash": 0}), bad("anywhere"), {RESCALED: RIGHT}, proof="A",
          cpu=True),
    World(
        "C63",
        errors() + lengths(True, {"naive": 1, "flash": 0}),
        bad("anywhere") | {row.words: row for row in lengths(True, {"flash": 1})},
        {"forward by=flash n=4096": {"known_copy": {"error": -0.2}}},
        absent="PARTLY",
        proof="A",
        cpu=True,
    ),
    World("C64", TIMED, {TIMED[0].words: 4000}, {GAP[0].words: 3000}),
    World(
        "C64",
        COUNTED,
        {COUNTED[0].words: example("naive-separate", "both", 4000, **counters(6e9)),
         COUNTED[1].words: example("flash", "both", 4040, **counters(6e9))},
        {GAP[0].words: 3000},
        proof="A",
    ),
    World("C68", errors(), bad("last"), {RESCALED: RIGHT}, proof="A", cpu=True),
    World(
        "C69",
        FUSED,
        {FUSED[0].words: held("flash", 2, SCALE, NVJET, SOFTMAX, NVJET)},
        {FUSED[1].words: held("naive", 0, NVJET)},
        proof="A",
    ),
    World(
        "C70",
        MEMORY,
        {f"forward-backward by=flash n={n}": kept("flash", n, 1) for n in LENGTHS},
        {f"forward-backward by=naive n={n}": {"kept_bytes": 1000} for n in LENGTHS},
        proof="A",
        cpu=True,
    ),
]  # fmt: skip
