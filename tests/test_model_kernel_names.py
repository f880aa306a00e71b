"""Families of kernels by names as CUPTI gave them: of the reference runs, of torch's sources, of inductor's kernels."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.model.kernel_names import family, time_shares

REFERENCE = Path(__file__).parents[1] / "results" / "reference" / "h200"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "matmul"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_i16832gemm_s8_128x256_128x3_tn_align16>(…)", "matmul"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_execute_kernel__5x_cublas", "matmul"),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, 128, 16>", "matmul"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float>", "matmul"),
        ("triton_tem_fused_mm_0", "matmul"),
        ("void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, cutlass::half_t>>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64", "attention"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>", "normalization"),
        ("void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float>", "normalization"),
        ("triton_red_fused_add_native_layer_norm_3", "normalization"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, false>", "softmax"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, func_wrapper_t<…>>", "reduction"),
        ("triton_per_fused_sum_1", "reduction"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "pointwise"),
        ("void at::native::elementwise_kernel<128, 4, …direct_copy_kernel_cuda(at::TensorIteratorBase&)…>", "copy"),
        ("void at::native::distribution_elementwise_grid_stride_kernel<unsigned long, 2, …random…>", "pointwise"),
        ("triton_poi_fused_add_gelu_2", "pointwise"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_clone_1", "pointwise"),
        ("triton_per_fused__softmax_4", "softmax"),
        ("triton_tem_fused_flex_attention_0", "attention"),
        ("void at::native::(anonymous namespace)::cuComputePartGradGammaBeta<float>", "normalization"),
        ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<…>", "attention"),
        ("Memcpy DtoD (Device -> Device)", "copy"),
        ("fma_chains", "unknown"),
        ("", "unknown"),
    ],
)  # fmt: skip
def test_the_family_of_a_name(name: str, expected: str) -> None:
    assert family(name) == expected


def test_copies_need_no_name() -> None:
    assert family("Memset", "memset") == family("gemm", "memcpy") == "copy"


def test_every_kernel_of_the_matmul_sweep_is_a_product() -> None:
    run = json.loads(gzip.decompress((REFERENCE / "matmul-sweep.json.gz").read_bytes()))
    found = {family(each["name"], each["kind"]) for record in run["records"] for each in record["kernels"]}
    assert found == {"matmul", "copy"}, "cuBLAS clears its workspace by a memset"


def test_shares_of_time() -> None:
    kernels = [
        ("nvjet_a", "kernel", 60), ("vectorized_elementwise_kernel", "kernel", 30), ("nvjet_b", "kernel", 10)
    ]  # fmt: skip
    assert time_shares(kernels) == {"matmul": 0.7, "pointwise": 0.3}
    assert time_shares([*kernels, ("gemm", "kernel", None)]) is None
    assert time_shares([]) is time_shares([("gemm", "kernel", 0)]) is None


@given(st.text())
def test_no_name_raises(name: str) -> None:
    assert family(name)
