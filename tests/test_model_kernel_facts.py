"""What kernels' names say: grammar by grammar, names of nobody, and how many of the reference runs are recognised."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from builders import make_record, make_run
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds.matmul import DEVICE

from gpubench.discovery import Library
from gpubench.explain.fitted import recognised
from gpubench.model import kernel_names
from gpubench.model.kernel_facts import SHORT, facts, short_name
from gpubench.model.launches import cover, is_persistent
from gpubench.report import explain as report
from gpubench.result import KernelSeen
from gpubench.store.folder import read_run

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results" / "reference" / "h200"
RECOGNISED = 0.95


def of(name: str) -> dict[str, object]:
    """What is known beyond the name, without what is not."""
    plain = {"name", "known"}
    usual = {"maker": "", "role": "", "cluster": (1, 1), "split_k": False, "stream_k": False, "own": False}
    return {
        key: value for key, value in vars(facts(name)).items()
        if key not in plain and value is not None and value != usual.get(key)
    }  # fmt: skip


PRODUCT = {"family": "matmul", "role": "product"}
NAMES: list[tuple[str, dict[str, object]]] = [
    (
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        {"maker": "cuBLAS", "tile": (256, 128), "depth": 64, "stages": 4, "cluster": (1, 2), "raster": "h",
         "layout": "NNT", "generation": 90, "path": "wgmma", **PRODUCT},
    ),
    (
        "nvjet_hsh_64x8_64x16_4x1_v_bz_splitK_TNN",
        {"maker": "cuBLAS", "tile": (64, 8), "depth": 64, "stages": 16, "cluster": (4, 1), "raster": "v",
         "layout": "TNN", "generation": 90, "path": "wgmma", "split_k": True, **PRODUCT},
    ),
    (
        "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNN",
        {"maker": "cuBLAS", "tile": (64, 32), "depth": 64, "stages": 16, "cluster": (2, 1), "raster": "v",
         "layout": "TNN", "generation": 100, "path": "tcgen05", **PRODUCT},
    ),
    (
        "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN",
        {"maker": "cuBLAS", "tile": (64, 64), "depth": 128, "stages": 3, "layout": "TNNN", "generation": 120,
         "path": "mma.sync", **PRODUCT},
    ),
    (
        "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>(…::Params)",
        {"maker": "CUTLASS", "tile": (256, 128), "layout": "nn", "generation": 75, "alignment": 1, "path": "mma.sync",
         **PRODUCT},
    ),
    (
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x1_nn_align2>(…)",
        {"maker": "CUTLASS", "tile": (32, 32), "depth": 128, "stages": 1, "layout": "nn", "generation": 80,
         "alignment": 2, "path": "wmma", **PRODUCT},
    ),
    (
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(…)",
        {"maker": "CUTLASS", "tile": (256, 128), "depth": 8, "stages": 4, "layout": "nn", "generation": 80,
         "alignment": 1, "path": "CUDA cores", **PRODUCT},
    ),
    (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized",
        {"maker": "CUTLASS", "tile": (128, 128), "depth": 64, "cluster": (2, 1), "layout": "tnn", "generation": 90,
         "alignment": 8, "path": "wgmma", **PRODUCT},
    ),
    (
        "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel",
        {"maker": "cuBLAS", "tile": (128, 256), "depth": 32, "layout": "nn", "generation": 90, "path": "wgmma",
         **PRODUCT},
    ),
    (
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma_aligna4_alignc4_execute",
        {"maker": "cuBLAS", "tile": (256, 128), "depth": 8, "stages": 3, "layout": "tn", "generation": 80,
         "path": "CUDA cores", **PRODUCT},
    ),
    (
        "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn",
        {"maker": "cuBLAS", "tile": (256, 128), "depth": 64, "stages": 3, "layout": "nn", "generation": 80,
         "alignment": 8, "path": "mma.sync", **PRODUCT},
    ),
    (
        "volta_sgemm_128x64_nn",
        {"maker": "cuBLAS", "tile": (128, 64), "layout": "nn", "generation": 70, "path": "CUDA cores", **PRODUCT},
    ),
    (
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>(…)",
        {"family": "matmul", "maker": "cuBLAS", "role": "split-K sum", "split_k": True},
    ),
    (
        "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128>",
        {"family": "matmul", "maker": "cuBLAS", "role": "vector", "path": "CUDA cores"},
    ),
    ("triton_tem_fused_mm_0", {"maker": "Triton", "operations": "mm", **PRODUCT}),
    ("triton_poi_fused_add_gelu_2", {"family": "pointwise", "maker": "Triton", "operations": "add_gelu"}),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        {"family": "pointwise", "maker": "torch", "operations": "add", "alignment": 4},
    ),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0",
        {"family": "attention", "maker": "cuDNN", "tile": (64, 128), "generation": 90, "path": "wgmma"},
    ),
    (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4, false, false, cutlass::half_t>>",
        {"family": "attention", "maker": "FlashAttention", "tile": (128, 64)},
    ),
    (
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
        {"family": "attention", "maker": "torch, memory-efficient", "tile": (64, 64), "generation": 80},
    ),
    (
        "sm90_xmma_sparse_gemm_bf16bf16_bf16f32_f32_tn_t_tilesize128x256x64_cgasize2x1x1_warpgroupsize2x1x1_execute",
        {"maker": "cuSPARSELt", "tile": (128, 256), "depth": 64, "cluster": (2, 1), "layout": "tn", "generation": 90,
         "path": "wgmma", **PRODUCT},
    ),
    (
        "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, false>, int, int, float, float, float, float>",
        {"family": "matmul", "maker": "cuSPARSE", "role": "vector", "path": "CUDA cores"},
    ),
    (
        "void cudnn::fusion::compute_dot_do_o_specialized<false, 64>(void const*)",
        {"family": "attention", "maker": "cuDNN"},
    ),
    (
        "void at::native::mbtopk::gatherTopK<float, unsigned int, 2>(at::cuda::detail::TensorInfo<float const>)",
        {"family": "sort", "maker": "torch"},
    ),
    ("my_kernel", {"family": "unknown"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), NAMES, ids=[name[:40] for name, _ in NAMES])
def test_what_a_name_says(name: str, expected: dict[str, object]) -> None:
    assert of(name) == expected


def test_a_product_without_a_tile_is_not_known() -> None:
    assert not facts("triton_tem_fused_mm_0").known
    assert not facts("void some::gemm_of_nobody<float>").known
    assert facts("triton_poi_fused_add_0").known


def test_a_suites_kernel_is_known_as_such_whatever_it_is_called() -> None:
    assert not facts("naive_gemm").known
    own = facts("naive_gemm", own={"naive_gemm"})
    assert own.known
    assert (own.maker, own.role) == ("a suite", "")


def test_copies_need_no_name() -> None:
    assert facts("Memset (Device)", "memset").known


PARTS = """
nvjet sm90 tst 256x128 64x4 1x2 h v bz coopA splitK NNT cutlass 80 wmma tensorop gemm s16816gemm align2 _ __ x 0 triton
poi fused flash fmha traits<64, 128, 64> xmma tilesize 9999x9999x9999 ampere ldg8 stages 32x6 at:: < > ٣x٣ knob_7_
vectorized_elementwise_kernel<4 Functor splitKreduce gemv cgasize2x1
"""
WORDS = st.sampled_from(PARTS.split())
ANY_NAME = st.one_of(st.text(), st.lists(WORDS, max_size=14).map("_".join), st.lists(WORDS, max_size=14).map("".join))


@settings(max_examples=200, deadline=None)
@given(ANY_NAME, st.lists(st.integers(-2, 2**31), max_size=4), st.integers(-1, 5000), st.integers(-1, 200))
def test_no_name_and_no_grid_raises(name: str, grid: list[int], size: int, multiprocessors: int) -> None:
    found = facts(name)
    assert found.name == name
    assert len(short_name(name)) <= SHORT
    covered = cover(found, size, size, grid, multiprocessors)
    assert covered is None or covered.work >= covered.tiles > 0
    assert isinstance(is_persistent(found, grid, multiprocessors), bool)


@settings(max_examples=100, deadline=None)
@given(ANY_NAME, st.lists(st.integers(-2, 2**31), max_size=4), st.integers(0, 200), st.integers(0, 300))
def test_no_row_with_such_a_kernel_raises(name: str, grid: list[int], multiprocessors: int, registers: int) -> None:
    seen = KernelSeen(name, grid=grid, block=grid[:3], registers=registers, ns=registers)
    record = make_record(params={"n": 300, "dtype": "bfloat16"}, flops=2 * 300**3, nbytes=99, kernels=[seen])
    run = make_run([record], device=DEVICE | {"multiprocessors": multiprocessors, "threads_per_multiprocessor": 2048})
    assert report.paragraph(report.explanation(run, record))
    assert len(recognised([run])) == 1


def test_a_very_long_name_is_read_quickly() -> None:
    for part in ("flash_", "x1", "_64x64", "nvjet_tst_", "triton_poi_fused_a", "cutlass_80_tensorop_gemm", "9" * 50):
        facts(part * 2_000)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("void at::native::bitonicSortKVInPlace<2, -1, 16, 16, float, long, at::native::GTOp<float, true>>", "sort"),
        ("void at_cuda_detail::cub::detail::scan_by_key::DeviceScanByKeyInitKernel<…>", "sort"),
        ("void at::native::radixSortKVInPlace<2, -1, 32, 4, float, long>", "sort"),
        ("void cudnn::fusion::convert_dq_to_16bits<false>(void const*)", "attention"),
        ("void cusparse::(anonymous namespace)::csr_partition_kernel<int, int>(int const*)", "matmul"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<…FusedAdamMathFunctor…>", "pointwise"),
        ("void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>", "reduction"),
    ],
)  # fmt: skip
def test_families_that_are_known_besides(name: str, family: str) -> None:
    assert kernel_names.family(name) == "unknown", "its table is as the kept runs of transformer-block have it"
    assert facts(name).family == family


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)", "at::native::reduce_kernel"),
        ("void (anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax_warp_forward"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_nn_align1>(…::Params)", "cutlass_80_simt_sgemm_nn_align1"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
        ("<", "<"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_name_without_its_types(name: str, short: str) -> None:
    assert short_name(name) == short


def test_a_sum_of_slices_has_the_tiles_name_and_is_no_product() -> None:
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_execute_split_k_kernel__5x_cublas"
    assert facts(name).role == "split-K sum"
    assert facts(name.replace("execute_split_k_kernel", "execute_kernel")).role == "product"


def test_the_names_of_the_reference_runs_are_recognised_and_the_page_counts_them() -> None:
    own = {kernel.name for suite in Library(ROOT / "suites").suites().values() for kernel in suite.kernels}
    found = recognised(map(read_run, sorted(REFERENCE.glob("*.json.gz"))), own)
    count = Counter(found.values())
    assert count["unknown"] <= (1 - RECOGNISED) * len(found), [name for name in found if found[name] == "unknown"]
    assert count["grid"] + count["family"] >= RECOGNISED * len(found), "strictly: a grid for every product"
    page = " ".join((ROOT / "docs/explain.md").read_text(encoding="utf-8").split())
    for words in (
        f"Of the {len(found)} names in the reference runs {count['grid']} are products",
        f"; {count['tile']} are products of sizes that no record names",
        f"; {count['family']} are of a known family or declared by a suite; {count['unknown']} are unknown",
    ):
        assert words in page
