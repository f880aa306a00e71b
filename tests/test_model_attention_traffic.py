"""Flops, bytes and memory of attention: by hand, and by what torch's operations are seen to read and write."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpubench.model import attention, attention_torch
from gpubench.model import attention_traffic as traffic
from gpubench.model.attention_traffic import Shape

LECTURE = Shape(64, 16, 16, 1024, 64)
MOVING = {"bmm", "mul", "_softmax", "_softmax_backward_data", "masked_fill"}
"""Operations that are a kernel each; the others are views."""


class Moved(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Bytes that operations read and write, of tensors with a dimension that are no mask, by operation."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int]] = []

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = operator(*args, **(kwargs or {}))
        name = str(operator).split(".")[1]
        if name in MOVING:
            tensors = [x for x in (*args, out) if isinstance(x, torch.Tensor) and x.dim() and x.dtype != torch.bool]
            self.seen.append((name, sum(x.numel() * x.element_size() for x in tensors)))
        return out


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("way", traffic.NAIVE)
def test_every_step_moves_what_torch_is_seen_to_move(way: str, kv_heads: int, causal: bool) -> None:
    shape = Shape(2, 4, kv_heads, 6, 3, causal)
    q = torch.randn(2, 4, 6, 3, requires_grad=True)
    k, v = (torch.randn(2, kv_heads, 6, 3, requires_grad=True) for _ in range(2))
    attend = attention_torch.by_steps(torch, way, q, causal)
    upstream = torch.randn_like(q)
    for backward in (False, True):
        with Moved() as moved:
            out = attend(q, k, v)
            if backward:
                torch.autograd.grad(out, (q, k, v), upstream)
        family = {"bmm": "matmul", "_softmax": "softmax", "_softmax_backward_data": "softmax"}
        seen = [(family.get(name, "pointwise"), nbytes) for name, nbytes in moved.seen]
        # dP ∘ P is within the operation that is the softmax's gradient, and only on a GPU.
        steps = [step for step in traffic.steps(way, shape, backward) if step.name != traffic.PRODUCT]
        assert [(step.family, step.bytes(shape, 4)) for step in steps] == seen
        moved_by = traffic.moved(way, shape, 4, backward)
        assert moved_by["bytes_by_definition" if backward else "bytes"] == sum(nbytes for _, nbytes in seen)


def test_the_example_of_the_lecture() -> None:
    """15 passes of 2.147 GB and 12 operands of 0.134 GB are 33.8 GB, and with three more of torch's 40.27, of which an
    H200 counts 40.34; by tiles it is 12 operands."""
    passes = {way: traffic.moved(way, LECTURE, 2, True)["passes"] for way in traffic.NAIVE}
    assert passes == {"naive": 14, "naive-separate": 18, "naive-masked": 22}
    separate = traffic.moved("naive-separate", LECTURE, 2, True)
    assert separate["bytes_by_definition"] == 15 * 2**31 + 12 * 2**27
    assert separate["bytes"] == 18 * 2**31 + 12 * 2**27 == pytest.approx(40.34e9, rel=0.005)
    assert traffic.moved("flash", LECTURE, 2, True) == {"bytes": 12 * 2**27}
    assert traffic.moved("math", LECTURE, 2, True) == {}
    assert traffic.needed("naive", LECTURE, 2, True) == 4 * 2**31 + 8 * 2**27
    assert traffic.needed("flash", LECTURE, 2, True) == 12 * 2**27
    assert traffic.needed("flash", LECTURE, 2) == 4 * 2**27
    assert traffic.needed("math", LECTURE, 2) > traffic.needed("naive", LECTURE, 4)


def test_flops_by_the_stated_convention() -> None:
    assert traffic.forward_flops(1, 1, 1024, 1024, 64) == 268_435_456
    assert traffic.forward_flops(1, 1, 1024, 1024, 64, causal=True) == 134_217_728
    assert traffic.forward_flops(1, 1, 512, 1024, 64) == 134_217_728
    assert (
        traffic.flops(Shape(2, 8, 2, 64, 16)) == traffic.flops(Shape(2, 8, 8, 64, 16)) == attention.flops(2, 8, 64, 16)
    )
    assert traffic.flops(LECTURE, backward=True) == 3.5 * traffic.flops(LECTURE) == 962_072_674_304


def test_compulsory_bytes_are_those_of_the_tensors() -> None:
    shape = Shape(2, 8, 2, 64, 16)
    assert traffic.compulsory_bytes(shape, 2) == 2 * (2 * 2 * 8 * 64 * 16 + 2 * 2 * 2 * 64 * 16)
    assert traffic.compulsory_bytes(Shape(2, 8, 8, 64, 16), 4) == attention.bytes(2, 8, 64, 16, 4)
    assert traffic.compulsory_bytes(shape, 2, backward=True) == 3 * traffic.compulsory_bytes(shape, 2)


def test_kernels_beside_their_steps() -> None:
    steps = traffic.steps("naive-separate", LECTURE)
    product, scale = 2**31 + 2**28, 2**32

    def kernel(name: str, read: float | None) -> dict[str, Any]:
        return {"name": name, "dram_bytes_read": read, "dram_bytes_write": 0}

    found = traffic.beside_steps(
        [kernel("nvjet_hsh", 2 * product), kernel("fill_kernel", 1), kernel("vectorized_elementwise_kernel", scale),
         kernel("softmax_warp_forward", None), kernel("nvjet_hsh", product), kernel("nvjet_hsh", product)],
        steps, LECTURE, 2,
    )  # fmt: skip
    assert [(step, ratio) for step, _, ratio in found] == [
        ("Q·Kᵀ", 2.0), ("unknown", None), ("scale", 1.0), ("softmax", None), ("P·V", 1.0), ("matmul", None),
    ]  # fmt: skip


def test_a_slope_is_that_of_the_logarithms() -> None:
    assert traffic.slope([(n, 3.0 * n**2) for n in (1, 2, 4, 9)]) == pytest.approx(2)
    assert traffic.slope([(1, 1.0), (2, 2.0), (2, 2.0)]) is None
    assert traffic.slope([(1, 1.0), (2, 2.0), (3, 0.0)]) is None
