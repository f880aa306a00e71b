"""What a kernel's name says of it: the tile of C, how deep and how many stages, cluster, layout, alignment, arithmetic.

The grammar of nvjet names (cuBLAS since 12.3) is not documented; it is read here as
`nvjet_sm90_<types>_<tile>_<depth>x<stages>_<cluster>_<raster>_bz[_coopA|_coopB][_splitK]_<layout>`, and the grids of
the reference runs agree with it (tests/test_model_launches.py). xmma, cutlass and the older `ampere_…` names say the
same in other orders (CUTLASS: "Profiler", names of operations). A name that no pattern knows has a family at most, and
nothing is guessed of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from gpubench.model import kernel_names

Family = Literal[kernel_names.Family, "sort"]
"""Those of `kernel_names`; and "sort", which also finds the largest of a row, and makes running sums for it."""
Path = Literal["tcgen05", "wgmma", "mma.sync", "wmma", "CUDA cores"]
"""By which instructions a product is computed: tensor cores of Blackwell, of Hopper, of Volta and later by warp, the
same through the WMMA interface, or multiply-adds of the CUDA cores."""
Role = Literal["product", "split-K sum", "vector", ""]
"""A tiled product, the sum of its slices of K, a product with a vector or few columns, or something else."""

_MORE: tuple[tuple[Family, str], ...] = (
    ("attention", r"cudnn::fusion::(compute_dot_do_o|convert_dq)"),
    ("matmul", r"cusparse::"),
    ("sort", r"topk|bitonicsort|radix|::(scan|scan_by_key|sort|merge_sort|unique_by_key)::|mergesort|searchsorted"),
    (
        "reduction",
        r"reduce_cuda_kernel|devicereduce|nll_loss|::reduce::|partials?_(per_)?segment|compute_grad_weight|sum_and_scatter",
    ),
    ("pointwise", r"multi_tensor_apply|gather_kernel"),
)
"""Families of names that `kernel_names` does not know. Its own table is part of what `transformer-block` measures: to
add to it would change that definition, and no kept row of it could be compared."""
_BESIDES = tuple((found, re.compile(pattern, re.IGNORECASE)) for found, pattern in _MORE)

GENERATIONS = {"maxwell": 50, "pascal": 60, "volta": 70, "turing": 75, "ampere": 80, "ada": 89, "hopper": 90}
"""Ten times the compute capability that a name in words stands for."""
SHORT = 80
LONGEST = 4096
"""Characters of a name that are read; templates of torch may be longer, and say the same again at their end."""


@dataclass(frozen=True)
class Facts:
    """What is known of a kernel by its name. None or empty: the name does not say.

    `tile` is (first, second) as the name has it; which of them lies along the rows of C depends on who wrote the
    kernel, see `gpubench.model.launches`. `depth` is in elements of K, `alignment` in elements that one load takes.
    `generation` is ten times a compute capability. `operations` are those that a kernel fuses, or its functor.
    """

    name: str
    family: Family
    maker: str = ""
    role: Role = ""
    tile: tuple[int, int] | None = None
    depth: int | None = None
    stages: int | None = None
    cluster: tuple[int, int] = (1, 1)
    raster: str | None = None
    split_k: bool = False
    stream_k: bool = False
    layout: str | None = None
    generation: int | None = None
    alignment: int | None = None
    path: Path | None = None
    operations: str | None = None
    own: bool = False
    """Whether a suite declares this kernel."""

    @property
    def known(self) -> bool:
        """Whether the name is one of those there are patterns for: a product needs a tile besides its family."""
        if self.role == "product":
            return self.tile is not None
        return self.own or self.family != "unknown"


def facts(name: str, kind: str = "kernel", own: Collection[str] = ()) -> Facts:
    """What a kernel's name says; `kind` is that of its activity. `own` are the names of the suites' own kernels, which
    are nobody else's whatever they look like."""
    found = Facts(name, "unknown", "a suite", own=True) if name in own else Facts(name, _family(name, kind))
    if found.own:
        return found
    if kind != "kernel":
        return replace(found, maker="CUDA")
    short = name[:LONGEST]
    for reader in _READERS:
        read = reader(short, found)
        if read is not None:
            return read
    return replace(found, role="product") if found.family == "matmul" else found


def _family(name: str, kind: str) -> Family:
    known = kernel_names.family(name, kind)
    if known != "unknown":
        return known
    return next((found for found, pattern in _BESIDES if pattern.search(name[:LONGEST])), "unknown")


# One reader for each kind of name: the facts, or None where it is another kind. Names hold others' names (a flash
# kernel is a template of cutlass's types), so the most particular come first.

_NVJET = re.compile(
    r"nvjet_(?:sm(?P<sm>\d{2,3})_)?(?P<types>[a-z]{2,8})_(?:mma_)?"
    r"(?:(?P<t1>\d{1,4})x(?P<t2>\d{1,4})_(?P<depth>\d{1,4})x(?P<stages>\d{1,2})_(?P<c1>\d{1,2})x(?P<c2>\d{1,2})"
    r"|(?P<u1>\d{1,4})x(?P<u2>\d{1,4})x(?P<udepth>\d{1,4})_(?P<ustages>\d{1,2}))(?P<rest>\w*)"
)


def _nvjet(name: str, found: Facts) -> Facts | None:
    seen = _NVJET.search(name)
    if seen is None:
        return None
    words = seen["rest"].split("_")
    generation = int(seen["sm"] or 90)
    path: Path = "wgmma" if generation == 90 else "tcgen05" if 100 <= generation < 120 else "mma.sync"
    old_form = seen["t1"] is None
    first, second = (seen["u1"], seen["u2"]) if old_form else (seen["t1"], seen["t2"])
    return replace(
        found, maker="cuBLAS", role="product", tile=(int(first), int(second)),
        depth=int(seen["udepth" if old_form else "depth"]), stages=int(seen["ustages" if old_form else "stages"]),
        cluster=(1, 1) if old_form else (int(seen["c1"]), int(seen["c2"])),
        raster=next((word for word in words if word in ("h", "v")), None),
        split_k="splitK" in words, stream_k="streamK" in words, generation=generation, path=path,
        layout=next((word for word in words if re.fullmatch(r"[NT]{3,4}", word)), None),
    )  # fmt: skip


_XMMA = re.compile(r"sm(\d{2,3})_xmma_(sparse_)?gemm_")
_XMMA_TILE = re.compile(r"tilesize(\d{1,4})x(\d{1,4})x(\d{1,4})")
_XMMA_CLUSTER = re.compile(r"cgasize(\d{1,2})x(\d{1,2})")


def _xmma(name: str, found: Facts) -> Facts | None:
    seen = _XMMA.search(name)
    if seen is None:
        return None
    maker = "cuSPARSELt" if seen[2] else "cuBLAS"
    if "execute_split_k_kernel" in name:  # it has the tile's name, and adds up what the product left
        return replace(found, maker=maker, role="split-K sum", split_k=True, generation=int(seen[1]))
    tile, cluster = _XMMA_TILE.search(name), _XMMA_CLUSTER.search(name)
    path: Path = "CUDA cores" if "ffma" in name else "wgmma" if "warpgroupsize" in name else "mma.sync"
    return replace(
        found, maker=maker, role="product", generation=int(seen[1]), path=path,
        tile=None if tile is None else (int(tile[1]), int(tile[2])), depth=None if tile is None else int(tile[3]),
        stages=_number(r"_stage(\d{1,2})", name), layout=_word(r"_([nt]{2})_[nt]_tilesize", name),
        cluster=(1, 1) if cluster is None else (int(cluster[1]), int(cluster[2])),
        split_k="split_k" in name, stream_k="segment_k_on" in name or "stream_k" in name,
    )  # fmt: skip


_CUTLASS = re.compile(r"cutlass(?:3x_sm)?_?(\d{2,3})_(wmma_)?(tensorop|simt)_(\w*gemm\w*)")
_SHAPES = re.compile(r"_(\d{1,4})x(\d{1,4})(?:x(\d{1,4})_(\d{1,2})x(\d{1,2})x1|_(\d{1,4})x(\d{1,2}))?(?=_|$)")


def _cutlass(name: str, found: Facts) -> Facts | None:
    """Names of the CUTLASS library, with which cuBLAS too ships kernels."""
    seen = _CUTLASS.search(name)
    if seen is None:
        return None
    path: Path = "wmma" if seen[2] else "CUDA cores" if seen[3] == "simt" else "mma.sync"
    if path == "mma.sync" and int(seen[1]) == 90:
        path = "wgmma"
    shape = _SHAPES.search(seen[4])
    found = replace(
        found, maker="CUTLASS", role="product", generation=int(seen[1]), path=path,
        layout=_word(r"_([nt]{2,3})_align", name), alignment=_number(r"_align(\d{1,2})(?!\d)", name),
        split_k="splitk" in name.lower(), stream_k="stream_k" in name or "streamk" in name.lower(),
    )  # fmt: skip
    if shape is None:
        return found
    first, second, deep, c1, c2, depth, stages = shape.groups()
    return replace(
        found, tile=(int(first), int(second)), cluster=(int(c1 or 1), int(c2 or 1)),
        depth=int(deep or depth) if deep or depth else None, stages=int(stages) if stages else None,
    )  # fmt: skip


_NAMED = re.compile(r"(maxwell|pascal|volta|turing|ampere|ada|hopper)_(\w*gemm\w*)")


def _named_generation(name: str, found: Facts) -> Facts | None:
    """`ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn`, `volta_sgemm_128x64_nn`."""
    seen = _NAMED.search(name)
    if seen is None:
        return None
    shape, steps = _SHAPES.search(seen[2]), re.search(r"_stages_(\d{1,4})x(\d{1,2})", seen[2])
    tensor = re.search(r"\d{3,5}gemm", seen[2]) is not None  # s16816gemm has an instruction's shape, sgemm has none
    return replace(
        found, maker="cuBLAS", role="product", generation=GENERATIONS[seen[1]],
        path="mma.sync" if tensor else "CUDA cores", tile=None if shape is None else (int(shape[1]), int(shape[2])),
        depth=None if steps is None else int(steps[1]), stages=None if steps is None else int(steps[2]),
        alignment=_number(r"_ldg(\d{1,2})(?!\d)", seen[2]), layout=_word(r"_([nt]{2})(?:_|$)", seen[2]),
        split_k="splitk" in seen[2].lower() or "sliced1x" in seen[2],
    )  # fmt: skip


def _helpers(name: str, found: Facts) -> Facts | None:
    """What runs beside a product or instead of one: the sum of its slices of K, products with a vector."""
    low = name.lower()
    if "splitkreduce" in low:
        return replace(found, maker="cuBLAS", role="split-K sum", split_k=True)
    if "gemv" in low or "gemmsn" in low or "gemmk1" in low:
        return replace(found, maker="cuBLAS", role="vector", path="CUDA cores")
    if "cusparse::" in low:  # a product of a sparse matrix and a vector, and what prepares it
        return replace(found, maker="cuSPARSE", role="vector", path="CUDA cores")
    return None


_ATTENTION = (("cudnn", "cuDNN"), ("fmha_cutlass", "torch, memory-efficient"), ("flash", "FlashAttention"))
_ATTENTION_TILE = re.compile(
    r"_knob_\d{1,3}_(\d{1,4})x(\d{1,4})x|_traits<\d{1,4}, ?(\d{1,4}), ?(\d{1,4})"
    r"|fmha_cutlass\w{1,30}_(\d{1,4})x(\d{1,4})_"
)
"""Queries and keys of a tile: of cuDNN, of FlashAttention (after the width of a head), of the memory-efficient one."""


def _attention(name: str, found: Facts) -> Facts | None:
    if found.family != "attention":
        return None
    maker = next((maker for word, maker in _ATTENTION if word in name), "torch")
    seen = _ATTENTION_TILE.search(name)
    return replace(
        found, maker=maker, tile=None if seen is None else _pair(seen),
        path="wgmma" if "wgmma" in name else None, generation=_number(r"(?<![a-z])sm_?(\d{2,3})(?!\d)", name),
    )  # fmt: skip


def _triton(name: str, found: Facts) -> Facts | None:
    """Kernels that inductor wrote: `triton_poi_fused_add_mul_0` names the operations it fuses."""
    seen = re.match(r"triton_([a-z]{2,8})_(?:fused_)?(\w{0,400})", name)
    if seen is None:
        return None
    operations = re.sub(r"_\d{1,4}$", "", seen[2])
    template = seen[1] in ("tem", "mm")
    return replace(found, maker="Triton", role="product" if template else "", operations=operations or None)


def _torch(name: str, found: Facts) -> Facts | None:
    if "at::" not in name and "at_cuda" not in name and "c10::" not in name:
        return None
    functors = re.findall(r"(\w{1,60})(?:Functor|_kernel_cuda|_kernel_impl|Ops?)\b|(?:Functor)_(\w{1,60})", name[:1024])
    named = [first or second for first, second in functors]
    return replace(
        found, maker="torch", operations=named[-1] if named else None,
        alignment=_number(r"vectorized_elementwise_kernel<(\d{1,2})", name),
    )  # fmt: skip


_READERS: tuple[Callable[[str, Facts], Facts | None], ...] = (
    _attention, _nvjet, _xmma, _helpers, _cutlass, _named_generation, _triton, _torch
)  # fmt: skip


_CUTLASS_KERNEL = re.compile(r"cutlass::Kernel2<(\w{1,200})>")


def short_name(name: str) -> str:
    """A kernel's name without its types and arguments, which may be longer than a page; at most SHORT characters."""
    inner = _CUTLASS_KERNEL.search(name[:LONGEST])
    plain = inner[1] if inner else name.removeprefix("void ").replace("(anonymous namespace)::", "")
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip() or name
    return head if len(head) <= SHORT else head[: SHORT - 1] + "…"


def _number(pattern: str, name: str) -> int | None:
    seen = re.search(pattern, name)
    return None if seen is None else int(seen[1])


def _pair(seen: re.Match[str]) -> tuple[int, int]:
    first, second = (int(group) for group in seen.groups() if group is not None)
    return first, second


def _word(pattern: str, name: str) -> str | None:
    seen = re.search(pattern, name)
    return None if seen is None else seen[1]
