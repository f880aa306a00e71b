"""Kernel and DeclaredKernel: what is refused before anything is compiled or launched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpubench import Kernel, Suite, Workload
from gpubench.definition import definition_of
from gpubench.errors import KernelError


class Tensor:
    """Stands for a tensor: whatever is no bare Python number is left for the device to judge."""


def kernel(*args: Any, grid: Any = 1, block: Any = 32, **more: Any) -> Kernel:
    return Kernel("scale", args or (Tensor(),), grid, block, **more)


@pytest.mark.parametrize("bare", [2.0, 3, True, 1j, "3", b"3", None])
def test_a_bare_scalar_is_refused_by_its_place(bare: Any) -> None:
    with pytest.raises(TypeError, match=r"kernel scale: args\[1\] is .*NumPy scalar"):
        kernel(Tensor(), bare)


@pytest.mark.parametrize(
    "scalar", [np.float64(2.0), np.float32(2), np.int64(3), np.bool_(True), np.float16(1), np.uint8(1)]
)
def test_numpy_scalars_are_taken_even_where_they_are_python_floats(scalar: Any) -> None:
    assert kernel(Tensor(), scalar).args[1] is scalar


@pytest.mark.parametrize("given", [7, (7,), (7, 1), (7, 1, 1)])
def test_a_grid_and_a_block_have_three_sizes(given: Any) -> None:
    made = kernel(grid=given, block=given)
    assert made.grid == made.block == (7, 1, 1)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"grid": 0}, "grid x is 0; it takes 1 to 2147483647"),
        ({"grid": 2**31}, "grid x is 2147483648; it takes 1 to 2147483647"),
        ({"grid": (1, 65536)}, "grid y is 65536; it takes 1 to 65535"),
        ({"grid": (1, 1, 65536)}, "grid z is 65536; it takes 1 to 65535"),
        ({"block": 1025}, "block x is 1025; it takes 1 to 1024"),
        ({"block": (64, 32)}, "a block of 2048 threads; the limit is 1024"),
        ({"block": (1, 1, 65)}, "block z is 65; it takes 1 to 64"),
        ({"block": -1}, "block x is -1; it takes 1 to 1024"),
        ({"shared_bytes": -1}, "shared_bytes is -1"),
    ],
)
def test_a_launch_beyond_cudas_limits_is_refused_with_the_limit(sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(KernelError) as error:
        kernel(**sizes)
    assert str(error.value) == f"kernel scale: {words}"


@pytest.mark.parametrize("sizes", [{"grid": (2**31 - 1, 65535, 65535)}, {"block": (1024, 1, 1)}, {"block": (4, 4, 64)}])
def test_cudas_limits_themselves_are_taken(sizes: dict[str, Any]) -> None:
    kernel(**sizes)


@pytest.mark.parametrize("given", [1.5, "1", True, (), (1, 1, 1, 1), (1, 2.0), [1]])
def test_a_grid_is_integers(given: Any) -> None:
    with pytest.raises(TypeError, match="grid is"):
        kernel(grid=given)


def test_a_kernel_is_called_by_a_device_only() -> None:
    made = Workload(run=kernel(), output=None, reference=lambda: None, reference_name="none")
    with pytest.raises(TypeError, match="launched by a device"):
        _ = made.call
    assert not callable(made.run)


@pytest.fixture
def suite() -> Suite:
    return Suite("/somewhere/memory_hierarchy.py")


def test_a_declared_kernel_makes_launches(suite: Suite) -> None:
    read = suite.kernel("read", defines={"REAL": ["float", "double"], "UNROLL": (1, 4), "ROWS": 16}, arch="sm_90a")
    assert suite.kernels == [read]
    made = read(Tensor(), np.int64(3), grid=(2, 3), block=64, shared_bytes=8, UNROLL=4, REAL="double")
    assert (made.name, made.source, made.arch, made.shared_bytes) == ("read", "memory_hierarchy.cu", "sm_90a", 8)
    assert (made.grid, made.block) == ((2, 3, 1), (64, 1, 1))
    assert dict(made.defines) == {"REAL": "double", "UNROLL": 4, "ROWS": 16}
    assert made.args[1] == 3


def test_every_variant_is_known_without_a_device(suite: Suite) -> None:
    read = suite.kernel("read", defines={"REAL": ["float", "double"], "UNROLL": [1, 4]})
    assert [tuple(variant.values()) for variant in read.variants()] == [
        ("float", 1),
        ("float", 4),
        ("double", 1),
        ("double", 4),
    ]
    assert list(suite.kernel("plain").variants()) == [{}]
    assert list(suite.kernel("plain", defines={"REAL": "float"}).variants()) == [{"REAL": "float"}]
    assert Suite("memory_hierarchy.py").kernel("plain").source == "memory_hierarchy.cu"


@pytest.mark.parametrize(
    ("defines", "words"),
    [
        ({}, "needs UNROLL, one of 1, 4"),
        ({"UNROLL": 2}, "UNROLL=2 is not declared; it takes 1, 4"),
        ({"UNROLL": 1, "VECTOR": 4}, "declares no define VECTOR; it has UNROLL"),
    ],
)
def test_a_variant_that_was_not_declared_is_refused(suite: Suite, defines: dict[str, Any], words: str) -> None:
    read = suite.kernel("read", defines={"UNROLL": [1, 4]})
    with pytest.raises(TypeError, match=words):
        read(Tensor(), grid=1, block=1, **defines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"defines": {"T": ["float"]}}, "define 'T'; its name is three capital letters or more"),
        ({"defines": {"unroll": [1]}}, "define 'unroll'"),
        ({"defines": {"UNROLL": []}}, "UNROLL takes a list of integers or names"),
        ({"defines": {"SCALE": [0.5]}}, "SCALE takes a list of integers or names"),
        ({"arch": "hopper"}, "arch is 'hopper'; it looks like 'sm_90a'"),
        ({"arch": "90a"}, "arch is '90a'"),
    ],
)
def test_a_declaration_that_cannot_compile_is_refused(suite: Suite, options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        suite.kernel("read", **options)
    assert suite.kernels == []


TEXT = """
from gpubench import Suite, Workload
suite = Suite(__file__)
VALUES = [1, 4]
READ = suite.kernel("read", defines={"UNROLL": VALUES})

def read(device):
    return READ
"""


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (("VALUES = [1, 4]", "VALUES = [1, 4, 8]"), True),
        (('{"UNROLL": VALUES}', '{"UNROLL": [1, 2]}'), True),
        (('kernel("read"', 'kernel("read_fast"'), False),
    ],
)
def test_more_variants_to_choose_from_leave_the_definition(tmp_path: Path, change: tuple[str, str], same: bool) -> None:
    hashes = []
    for number, text in enumerate((TEXT, TEXT.replace(*change))):
        file = tmp_path / f"toy_{number}.py"
        file.write_text(text)
        names: dict[str, Any] = {"__file__": str(file)}
        exec(compile(text, str(file), "exec"), names)
        hashes.append(definition_of(names["read"]))
    assert (hashes[0] == hashes[1]) is same
