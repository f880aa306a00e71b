"""Attention in torch by every way, against float64 and against autograd; and what is said of what ran."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

from gpubench.errors import Unsupported
from gpubench.model import attention
from gpubench.model import attention_torch as ways


def drawn(kv_heads: int = 4, n: int = 10, dtype: Any = torch.float64, seed: int = 1) -> tuple[Any, ...]:
    """Q, K, V and the gradient that arrives at O."""
    generator = torch.Generator().manual_seed(seed)
    sizes = 4, kv_heads, kv_heads, 4
    q, k, v, upstream = (torch.randn(2, heads, n, 8, dtype=torch.float64, generator=generator) for heads in sizes)
    return (*(x.to(dtype).requires_grad_() for x in (q, k, v)), upstream.to(dtype))


@pytest.mark.parametrize("chunk", [1, 45, 10**6])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_the_reference_and_its_gradient(
    kv_heads: int, causal: bool, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of any size, against torch's own and its autograd; and without a mask against the other reference."""
    monkeypatch.setattr(ways, "CHUNK", chunk)
    q, k, v, upstream = drawn(kv_heads)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    wanted = (out.detach(), *torch.autograd.grad(out, (q, k, v), upstream))
    for got, right in zip(ways.exact(torch, q, k, v, causal, upstream), wanted, strict=True):
        torch.testing.assert_close(got, right, rtol=1e-10, atol=1e-12)
    alone = ways.exact(torch, q, k, v, causal)
    torch.testing.assert_close(alone, wanted[0], rtol=1e-10, atol=1e-12)
    if kv_heads == 4 and not causal:
        torch.testing.assert_close(alone, attention.reference(*(x.detach() for x in (q, k, v))))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("way", ["naive", "naive-separate", "naive-masked", "flash", "math"])
def test_every_way_and_its_gradient(way: str, kv_heads: int, causal: bool) -> None:
    q, k, v, upstream = drawn(kv_heads)
    attend, ran = ways.chosen(torch, way, q, k, v, causal)
    assert ran == {"flash": "flash for CPU", "math": "math"}.get(way, "eager steps")
    out = attend(q, k, v)
    found = (out.detach(), *torch.autograd.grad(out, (q, k, v), upstream))
    for got, right in zip(found, ways.exact(torch, q, k, v, causal, upstream), strict=True):
        assert ways.error(got, right) < 1e-12


@pytest.mark.parametrize("way", ["cudnn", "efficient"])
def test_a_backend_that_refuses_is_unsupported(way: str) -> None:
    with pytest.raises(Unsupported, match=f"^{way}: No viable backend"):
        ways.chosen(torch, way, *drawn()[:3], False)


def test_a_fallback_is_never_called_flash(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = ways.pinned
    monkeypatch.setattr(ways, "pinned", lambda torch, way, causal: pinned(torch, "math", causal))
    with pytest.raises(Unsupported, match="asked for flash, torch ran math"):
        ways.chosen(torch, "flash", *drawn()[:3], False)


def test_the_reasons_of_a_backend_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    def refusing(torch: Any, way: str, causal: bool) -> Any:
        def attend(q: Any, k: Any, v: Any) -> Any:
            warnings.warn(
                "Memory Efficient attention has been runtime disabled. (Triggered internally …)", stacklevel=1
            )
            warnings.warn("Flash attention kernel not used because: (Triggered internally …)", stacklevel=1)
            warnings.warn("Expected query to be of dtype Half. (Triggered internally …)", stacklevel=1)
            raise RuntimeError("No available kernel. Aborting execution.")

        return attend

    monkeypatch.setattr(ways, "pinned", refusing)
    with pytest.raises(Unsupported) as refused:
        ways.chosen(torch, "flash", *drawn()[:3], False)
    assert str(refused.value) == "flash: Expected query to be of dtype Half."


def test_an_error_that_is_no_refusal_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(torch: Any, way: str, causal: bool) -> Any:
        def attend(q: Any, k: Any, v: Any) -> Any:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        return attend

    monkeypatch.setattr(ways, "pinned", broken)
    with pytest.raises(RuntimeError, match="illegal"):
        ways.chosen(torch, "flash", *drawn()[:3], False)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        ("flash", "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>"),
        ("flash", "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>"),
        ("cudnn", "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64"),
        ("efficient", "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<...>::Params)"),
    ],
)
def test_a_way_is_known_by_its_kernels(way: str, name: str) -> None:
    assert [each for each in ways.NAMES if ways.named(each, name)] == [way]


def test_by_tiles_it_is_exact_and_without_rescaling_it_is_not() -> None:
    q, k, v, _ = drawn(n=200, dtype=torch.float32)
    q, k, v = (x.detach() for x in (q, k, v))
    for last in (False, True):
        if last:
            q, k = q + ways.RAISED, k.clone()
            k[:, :, -1] += ways.RAISED
        right = ways.exact(torch, q, k, v, False)
        assert ways.error(ways.tiled(torch)(q, k, v), right) < 1e-6
        assert ways.error(ways.tiled(torch, rescale=False)(q, k, v), right) > 0.1


def test_what_is_kept_is_neither_twice_counted_nor_an_operand() -> None:
    q, k, v, _ = drawn(n=32, dtype=torch.float32)
    scores, operand, each = 2 * 4 * 32 * 32 * 4, 2 * 4 * 32 * 8 * 4, 2 * 4 * 32 * 4
    kept = {}
    for way in ("naive", "naive-separate", "flash"):
        attend, _ = ways.chosen(torch, way, q, k, v, False)
        kept[way] = ways.kept_bytes(torch, lambda attend=attend: attend(q, k, v), (q, k, v))
    assert kept == {"naive": scores + operand, "naive-separate": scores, "flash": operand + each}


@pytest.mark.parametrize("way", ["naive", "flash"])
def test_what_was_counted_is_given_back(way: str) -> None:
    """An operand that a pass refers to goes with it."""

    def counted() -> weakref.ref[Any]:
        q, k, v, _ = drawn(n=32, dtype=torch.float32)
        attend, _ = ways.chosen(torch, way, q, k, v, False)
        ways.kept_bytes(torch, lambda: attend(q, k, v), (q, k, v))
        return weakref.ref(q)

    assert counted()() is None
