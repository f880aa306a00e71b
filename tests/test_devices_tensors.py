"""Tensors of a torch device, on the CPU: seeded data, poison, and comparison against numpy by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from gpubench.devices import Comparison, tensors
from gpubench.devices.tensors import DTYPES, TorchTensors, first_line, tensor_error
from gpubench.errors import OutOfMemory


class Device(TorchTensors):
    """A torch device with as much room as the test says."""

    def __init__(self, free: int | None = None) -> None:
        super().__init__()
        self.torch_device = torch.device("cpu")
        self.free = free

    def free_bytes(self) -> int | None:
        return self.free


@pytest.fixture
def device() -> Device:
    return Device()


# Data


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("data", ["normal", "uniform", "zeros"])
def test_the_same_seed_gives_the_same_values(device: Device, dtype: str, data: str) -> None:
    device.configure(data, 7)
    first = device.random((33, 5), dtype, seed=1)
    torch.rand(10)  # the global generator has no say
    assert torch.equal(Device.random(device, (33, 5), dtype, seed=1), first)
    assert (tuple(first.shape), first.dtype) == ((33, 5), DTYPES[dtype])
    other = device.random((33, 5), dtype, seed=2)
    device.configure(data, 8)
    another = device.random((33, 5), dtype, seed=1)
    assert (torch.equal(other, first), torch.equal(another, first)) == (data == "zeros", data == "zeros")


def test_the_seeds_of_copies_and_inputs_do_not_meet(device: Device) -> None:
    """Input 1 of copy 0 must not be input 0 of copy 1: a sweep would then find its data in the cache."""
    seen = set()
    for seed in range(20):
        device.configure("normal", seed)
        for number in range(20):
            seen.add(float(device.random(1, "float64", seed=number)[0]))
    assert len(seen) == 400


@pytest.mark.parametrize("dtype", DTYPES)
def test_normal_data_is_normal(device: Device, dtype: str) -> None:
    device.configure("normal", 0)
    values = device.random(100_000, dtype).double().numpy()
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02
    assert abs((np.abs(values) < 1).mean() - math.erf(1 / math.sqrt(2))) < 0.01


@pytest.mark.parametrize("dtype", DTYPES)
def test_uniform_data_is_uniform(device: Device, dtype: str) -> None:
    device.configure("uniform", 0)
    values = device.random(100_000, dtype).double().numpy()
    assert 0 <= values.min() <= values.max() <= 1
    counts, _ = np.histogram(values, bins=10, range=(0, 1))
    assert counts.min() > 9_000
    assert counts.max() < 11_000


def test_zeros_are_zeros(device: Device) -> None:
    device.configure("zeros", 0)
    assert not device.random((3, 4), "float16").any()


# Room


@pytest.mark.parametrize(
    ("shape", "dtype", "asked"),
    [
        (100, "float32", 400),
        ((10, 10), "float64", 800),
        ((400_000, 400_000), "bfloat16", 320_000_000_000),
        ((10**12, 10**12), "float32", 4 * 10**24),  # more than torch can count
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_allocated(shape: Any, dtype: str, asked: int) -> None:
    for make in ("unwritten", "random"):
        with pytest.raises(OutOfMemory) as caught:
            getattr(Device(free=399), make)(shape, dtype)
        assert (caught.value.asked, caught.value.free) == (asked, 399)
        assert caught.value.message == f"out of memory: needs {asked:,} bytes, free 399 bytes"


def test_what_just_fits_is_given() -> None:
    assert Device(free=400).unwritten(100, "float32").numel() == 100
    assert Device(free=None).unwritten((2, 3), "float64").shape == (2, 3)


# Poison


@pytest.mark.parametrize("dtype", sorted(set(DTYPES.values()), key=str))
def test_floats_are_poisoned_with_nan(device: Device, dtype: torch.dtype) -> None:
    output = torch.zeros((3, 4), dtype=dtype)
    device.poison(output)
    assert output.isnan().all()


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_are_poisoned_with_the_least(device: Device, dtype: torch.dtype) -> None:
    output = torch.zeros(5, dtype=dtype)
    device.poison(output)
    assert (output == torch.iinfo(dtype).min).all()


def test_every_output_is_poisoned_and_nothing_beside_it(device: Device) -> None:
    whole = torch.zeros(4, 4)
    one, two = torch.zeros(3), whole[:, 1]
    device.poison((one, two))
    assert one.isnan().all()
    assert whole[:, 1].isnan().all()
    assert not whole[:, [0, 2, 3]].isnan().any()


# Comparison


def brute(out: torch.Tensor, ref: torch.Tensor) -> tuple[float, float, float, tuple[int, ...]]:
    got, want = out.double().numpy(), ref.double().numpy()
    error = np.abs(got - want)
    worst = np.unravel_index(int(error.argmax()), error.shape)
    return (
        float(np.sqrt((error**2).sum())),
        float(np.sqrt((want**2).sum())),
        float(error.max()),
        tuple(int(index) for index in worst),
    )


@pytest.mark.parametrize("shape", [(1,), (6,), (7,), (8,), (3, 5), (7, 7), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_comparison_by_brute_force(
    device: Device, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: torch.dtype, chunk: int
) -> None:
    monkeypatch.setitem(tensors.CHUNK, "cpu", chunk)
    source = torch.Generator().manual_seed(math.prod(shape))
    ref = torch.randn(shape, dtype=torch.float64, generator=source)
    out = (ref + 0.1 * torch.randn(shape, dtype=torch.float64, generator=source)).to(dtype)
    found = device.compare(out, ref)
    norm, reference_norm, worst, where = brute(out, ref)
    assert found.error_norm == pytest.approx(norm, rel=1e-12)
    assert found.reference_norm == pytest.approx(reference_norm, rel=1e-12)
    assert (found.worst, found.where, found.elements) == (worst, where, math.prod(shape))
    assert (found.got, found.expected) == (float(out[where]), float(ref[where]))
    assert found.eps == torch.finfo(dtype).eps


@pytest.mark.parametrize("place", [0, 6, 7, 13, 14, 20])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 50.0])
def test_one_wrong_element_is_found_at_the_borders_of_chunks(
    device: Device, monkeypatch: pytest.MonkeyPatch, place: int, value: float
) -> None:
    monkeypatch.setitem(tensors.CHUNK, "cpu", 7)
    ref = torch.linspace(-1, 1, 21, dtype=torch.float64).reshape(3, 7)
    out = ref.clone()
    out.view(-1)[place] = value
    found = device.compare(out, ref)
    assert found.where == (place // 7, place % 7)
    assert str(found.got) == str(value)
    assert found.worst == (abs(value - float(ref.view(-1)[place])) if value == 50 else math.inf)
    assert (found.error_norm == math.inf) is (value != 50)
    assert found.reference_norm == pytest.approx(float(ref.norm()))


def test_outputs_stored_in_another_order_are_compared_by_index(device: Device) -> None:
    ref = torch.arange(12.0).reshape(3, 4)
    out = ref.t().contiguous().t()
    assert not out.is_contiguous()
    assert device.compare(out, ref).worst == 0
    out[1, 2] += 5
    assert device.compare(out, ref).where == (1, 2)


def test_a_tuple_of_outputs_is_one_comparison(device: Device) -> None:
    refs = (torch.ones(3), torch.ones(2, 2, dtype=torch.float64))
    outs = (torch.ones(3, dtype=torch.bfloat16), torch.ones(2, 2, dtype=torch.float16))
    outs[1][1, 0] = 3
    found = device.compare(outs, refs)
    assert found == Comparison(7, 2.0, math.sqrt(7), 2.0, (1, 1, 0), 3.0, 1.0, 2.0**-7)


def test_each_tensor_of_a_tuple_counts_by_its_own_size(device: Device) -> None:
    large, small, nothing = torch.full((4,), 1e6), torch.full((4,), -0.5), torch.zeros(2)
    found = device.compare((large, torch.zeros(4), nothing), (large, small, nothing))
    assert found == Comparison(10, 2.0, math.sqrt(8), 1.0, (1, 0), 0.0, -0.5, 2.0**-23)


@pytest.mark.parametrize(
    ("out", "ref"),
    [
        (torch.ones(3), torch.ones(4)),
        (torch.ones(4), torch.ones(2, 2)),
        (torch.ones(1), torch.ones(4)),  # which would broadcast
        ((torch.ones(3),), (torch.ones(3), torch.ones(3))),
        ((torch.ones(3), torch.ones(3)), torch.ones(3)),
    ],
)
def test_shapes_must_agree(device: Device, out: Any, ref: Any) -> None:
    with pytest.raises(ValueError, match=r"output \[.*\] and reference \[.*\] differ"):
        device.compare(out, ref)


def test_a_reference_may_be_infinite_where_the_output_is(device: Device) -> None:
    ref = torch.tensor([math.inf, -math.inf, 3.0, 4.0])
    found = device.compare(ref.clone(), ref)
    assert (found.error_norm, found.worst, found.reference_norm) == (0.0, 0.0, 5.0)
    assert device.compare(-ref, ref).worst == math.inf


def test_nan_is_never_right(device: Device) -> None:
    """An unwritten output is NaN: a reference of NaN must not call it right."""
    nan = torch.tensor([1.0, math.nan])
    found = device.compare(nan.clone(), nan)
    assert (found.worst, found.where, found.reference_norm) == (math.inf, (1,), 1.0)


def test_scalars_and_nothing_can_be_compared(device: Device) -> None:
    found = device.compare(torch.tensor(3.0), torch.tensor(1.0))
    assert (found.elements, found.worst, found.where) == (1, 2.0, ())
    assert device.compare(torch.empty(0, 4), torch.empty(0, 4)).elements == 0


def test_integers_have_no_eps(device: Device) -> None:
    found = device.compare(torch.tensor([1, 5]), torch.tensor([1, 2]))
    assert (found.worst, found.where, found.eps) == (3.0, (1,), 0.0)


# Errors


def raised(call: Any) -> BaseException:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_what_torch_and_numpy_say_today() -> None:
    """Their real words on this machine; nobody here has 4 PB."""
    error = tensor_error(raised(lambda: torch.empty(10**15)), 123)
    assert isinstance(error, OutOfMemory)
    assert (error.asked, error.free) == (4 * 10**15, 123)
    error = tensor_error(raised(lambda: np.empty(10**15)), None)
    assert isinstance(error, OutOfMemory)
    assert error.asked is not None
    assert abs(error.asked - 8 * 10**15) < 0.005 * 8 * 10**15  # numpy rounds to 7.11 PiB


CUDA = (
    "CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of 139.81 GiB of which 2.06 GiB is free. "
    "Process 1 has 137.74 GiB memory in use. Of the allocated memory 130.00 GiB is allocated by PyTorch"
)


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (torch.OutOfMemoryError(CUDA.format("596.05 GiB")), round(596.05 * 2**30)),
        (torch.OutOfMemoryError(CUDA.format("20.00 MiB")), 20 << 20),
        (torch.OutOfMemoryError(CUDA.format("512 bytes")), 512),
        (torch.OutOfMemoryError("CUDA out of memory."), None),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
                "you tried to allocate 640000000000 bytes. Error code 12 (Cannot allocate memory)"
            ),
            640_000_000_000,
        ),
        (
            RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 640000000000 bytes."),
            640_000_000_000,
        ),
        (MemoryError("Unable to allocate 7.28 TiB for an array with shape (1000000, 1000000)"), round(7.28 * 2**40)),
        (MemoryError(), None),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"), None),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), None),
    ],
)
def test_out_of_memory_in_all_its_words(error: BaseException, asked: int | None) -> None:
    found = tensor_error(error, 5)
    assert isinstance(found, OutOfMemory)
    assert (found.asked, found.free, found.status) == (asked, 5, "oom")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), None),
        (RuntimeError("\"addmm_impl_cpu_\" not implemented for 'Half'"), None),
        (RuntimeError("\n  first words\nsecond line"), "RuntimeError: first words"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), None),
        (ValueError(), "ValueError"),
        (ValueError("  \n "), "ValueError"),
    ],
)
def test_other_errors_are_one_line(error: BaseException, said: str | None) -> None:
    found = tensor_error(error, 5)
    assert not isinstance(found, OutOfMemory)
    assert found.status == "error"
    assert str(found) == first_line(error) == (said or f"RuntimeError: {error}")


def test_the_real_error_of_a_real_mistake() -> None:
    error = tensor_error(raised(lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3))), None)
    assert str(error) == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
