"""What every torch device shares: tensors of random data, poisoned outputs, comparison with a reference."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from gpubench.devices import Comparison
from gpubench.errors import CaseError, OutOfMemory

CHUNK = {"cpu": 1 << 20, "cuda": 1 << 24}
"""Elements compared at a time: few enough on a CPU that the allocator hands the same pages out again."""

NO_MEMORY = ("can't allocate memory", "not enough memory", "CUDA error: out of memory", "STATUS_ALLOC_FAILED")
"""Words of errors without a type of their own: torch's allocator on a CPU, CUDA outside torch's pool, cuBLAS."""

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
"""Names of dtypes on an axis. tf32 is a mode of float32, set by `precision`."""
INTEGERS = {"int32": torch.int32, "int64": torch.int64}
"""What may be asked for unwritten too: counts, places, cycles."""


class TorchTensors:
    """The part of a Device that deals in tensors; subclasses say where they live and how much room there is."""

    torch_device: torch.device

    def __init__(self) -> None:
        self._data = "normal"
        self._seed = 0

    def free_bytes(self) -> int | None:
        """Bytes that can still be allocated, None where that cannot be known."""
        raise NotImplementedError

    def configure(self, data: str, seed: int) -> None:
        """See Device."""
        self._data, self._seed = data, seed

    def random(self, shape: Sequence[int] | int, dtype: str, seed: int = 0) -> torch.Tensor:
        """See Device: normal(0, 1), uniform on [0, 1) or zeros."""
        tensor = self.unwritten(shape, dtype)
        if self._data == "zeros":
            return tensor.zero_()
        generator = torch.Generator(self.torch_device)
        generator.manual_seed((self._seed * 1_000_003 + seed) % 2**63)
        if self._data == "uniform":
            return tensor.uniform_(generator=generator)
        return tensor.normal_(generator=generator)

    def unwritten(self, shape: Sequence[int] | int, dtype: str) -> torch.Tensor:
        """See Device."""
        kind = (DTYPES | INTEGERS)[dtype]
        dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
        asked = math.prod(dimensions) * kind.itemsize
        free = self.free_bytes()
        if free is not None and asked > free:
            raise OutOfMemory(asked, free)
        return torch.empty(dimensions, dtype=kind, device=self.torch_device)

    def poison(self, output: Any) -> None:
        """See Device."""
        for tensor in _tensors(output):
            tensor.fill_(math.nan if tensor.is_floating_point() else torch.iinfo(tensor.dtype).min)

    def compare(self, output: Any, reference: Any) -> Comparison:
        """See Device and Comparison. ValueError where shapes differ."""
        outputs, references = _tensors(output), _tensors(reference)
        if [t.shape for t in outputs] != [t.shape for t in references]:
            raise ValueError(f"output {[*map(_shape, outputs)]} and reference {[*map(_shape, references)]} differ")
        elements, error_sum, reference_sum = 0, 0.0, 0.0
        worst, place = -1.0, (0, 0)
        for number, (out, ref) in enumerate(zip(outputs, references, strict=True)):
            errors, norms, largest, at = _sums(out, ref)
            # Of several tensors each counts by its own size, or a small one could be all wrong beside a large one.
            size = (math.sqrt(norms / ref.numel()) if len(outputs) > 1 and norms else 0.0) or 1.0
            elements += out.numel()
            error_sum += errors / size**2
            reference_sum += norms / size**2
            if largest / size > worst:
                worst, place = largest / size, (number, at)
        tensor, expected = outputs[place[0]], references[place[0]]
        where = _unravel(place[1], tuple(tensor.shape))
        return Comparison(
            elements=elements,
            error_norm=math.sqrt(error_sum),
            reference_norm=math.sqrt(reference_sum),
            worst=max(worst, 0.0),
            where=where if len(outputs) == 1 else (place[0], *where),
            got=float(tensor[where]) if elements else 0.0,
            expected=float(expected[where]) if elements else 0.0,
            eps=max((torch.finfo(t.dtype).eps for t in outputs if t.is_floating_point()), default=0.0),
        )


def _sums(out: torch.Tensor, ref: torch.Tensor) -> tuple[float, float, float, int]:
    """Of one tensor: the sums of squares of its errors and of what is finite in the reference, the largest error (-1 of
    no elements) and its place."""
    error_sum, reference_sum, worst, place = 0.0, 0.0, -1.0, 0
    for start, got, want in _chunks(out, ref):
        error = (got - want).abs_()
        if not math.isfinite(squares := float(error.dot(error))):
            error = torch.where(got == want, 0.0, error).nan_to_num_(nan=math.inf, posinf=math.inf)
            squares = float(error.dot(error))
        error_sum += squares
        if not math.isfinite(norm := float(want.dot(want))):
            finite = torch.where(want.isfinite(), want, 0.0)
            norm = float(finite.dot(finite))
        reference_sum += norm
        largest = float(error.max())
        if largest > worst:
            worst, place = largest, start + int(error.argmax())
    return error_sum, reference_sum, worst, place


def tensor_error(error: BaseException, free: int | None) -> CaseError:
    """An exception of torch as the error of a case: out of memory with the bytes asked, else its own first line."""
    text = str(error)
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or any(words in text for words in NO_MEMORY):
        return OutOfMemory(_asked(text), free)
    return CaseError(first_line(error))


def first_line(error: BaseException) -> str:
    """The kind of an exception and the first line of what it says."""
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _asked(text: str) -> int | None:
    """The bytes in the words of an allocator ("tried to allocate 20.00 GiB", "allocate 400 bytes")."""
    found = re.search(r"allocate\s+([\d.]+)\s*(bytes|[KMGTPE]iB)", text)
    return None if found is None else round(float(found[1]) * (1 << 10 * "bKMGTPE".index(found[2][0])))


def _tensors(output: Any) -> tuple[torch.Tensor, ...]:
    return (output,) if isinstance(output, torch.Tensor) else tuple(output)


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)


def _chunks(out: torch.Tensor, ref: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Both tensors, flat and in double precision, a chunk at a time, with the index of its first element."""
    flat_out, flat_ref = out.reshape(-1), ref.reshape(-1)
    size = CHUNK[out.device.type]
    for start in range(0, flat_out.numel(), size):
        stop = start + size
        yield start, flat_out[start:stop].double(), flat_ref[start:stop].to(flat_out.device).double()


def _unravel(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        index, inside = divmod(index, size) if size else (index, 0)
        place.append(inside)
    return tuple(reversed(place))
