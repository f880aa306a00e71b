"""torch.compile behind its door: one program a case, no silent way back, and every failure in words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from gpubench.devices import compiled as compiled_module
from gpubench.devices.compiled import HINT, LEFT_ALONE, MISSING, Compiler
from gpubench.errors import CaseError, Skip, Unsupported


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiler]:
    """A compiler whose inductor is a stand-in: the graph that dynamo found, run as it is."""
    import torch._inductor.compile_fx as inductor

    monkeypatch.setattr(inductor, "compile_fx", lambda graph, inputs, config_patches: graph.forward)
    made = Compiler()
    yield made
    made.reset()


def scaled(by: int) -> Callable[[Any], Any]:
    return lambda x: x * by


def summed(named: dict[str, Any]) -> Any:
    return named["a"] + named["b"]


def test_it_compiles_on_its_first_call_and_tells_of_it(compiler: Compiler) -> None:
    function = compiler.compile(scaled(3))
    assert (function.graphs, function.compile_ns) == (0, 0)
    assert function(torch.ones(4)).tolist() == [3.0] * 4
    assert function.graphs == 1
    assert function.compile_ns > 0
    named = {metric.name: metric.value for metric in function.metrics()}
    assert {metric.direction for metric in function.metrics() if metric.name.startswith("compile_")} == {"none"}
    assert named == {"compile_time": function.compile_ns / 1e9, "compile_cached": 0.0, "kernels_written": 0.0}


def test_twelve_shapes_and_two_dtypes_are_all_compiled(compiler: Compiler) -> None:
    for n in range(1, 13):
        for dtype in (torch.float32, torch.bfloat16):
            function = compiler.compile(scaled(2))
            function(torch.ones(n, dtype=dtype))
            assert function.graphs == 1
    assert len(compiler._programs) == 24


def test_copies_of_a_workload_share_one_program(compiler: Compiler) -> None:
    for value in (1.0, 2.0, 3.0):
        assert compiler.compile(scaled(2))(torch.full((4,), value)).tolist() == [2 * value] * 4
    assert len(compiler._programs) == 1
    assert compiler.compile(scaled(5))(torch.ones(4)).tolist() == [5.0] * 4
    kept = torch.full((4,), 7.0)
    assert compiler.compile(lambda x: x + kept)(torch.ones(4)).tolist() == [8.0] * 4
    assert len(compiler._programs) == 3
    for value in (1.0, 2.0):
        named = {"a": torch.full((4,), value), "b": torch.ones(4)}
        assert compiler.compile(summed)(named).tolist() == [value + 1] * 4
    assert len(compiler._programs) == 4, "the weights of a model, by name"
    compiler.reset()
    assert len(compiler._programs) == 0


def test_a_second_shape_is_an_error_and_not_a_second_program(compiler: Compiler) -> None:
    function = compiler.compile(scaled(2))
    function(torch.ones(4))
    with pytest.raises(CaseError, match="would compile again"):
        function(torch.ones(5))
    assert function(torch.ones(4)).tolist() == [2.0] * 4


def test_a_graph_break_is_an_error_that_says_so(compiler: Compiler) -> None:
    def broken(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(CaseError, match="cannot make one graph of it"):
        compiler.compile(broken)(torch.ones(4))


def test_a_function_that_is_left_alone_is_an_error(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    with pytest.raises(CaseError) as caught:
        compiler.compile(scaled(2))(torch.ones(4))
    assert str(caught.value) == LEFT_ALONE


def test_a_failure_that_dynamo_may_suppress_is_an_error(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo.config as config
    import torch._inductor.compile_fx as inductor

    def failing(*_: Any, **__: Any) -> Any:
        raise subprocess.CalledProcessError(3, ["/somewhere/gcc", "-c", "x.c"])

    monkeypatch.setattr(inductor, "compile_fx", failing)
    with config.patch(suppress_errors=True), pytest.raises(CaseError) as caught:
        compiler.compile(scaled(2))(torch.ones(4))
    assert str(caught.value) == f"torch.compile failed: gcc ended with 3 ({HINT})"


def test_what_the_function_itself_lacks_memory_for_stays_what_it_is(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._inductor.compile_fx as inductor

    def failing(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("tried to allocate 20.00 GiB")

    monkeypatch.setattr(inductor, "compile_fx", failing)
    with pytest.raises(torch.OutOfMemoryError):
        compiler.compile(scaled(2))(torch.ones(4))


def of_kind(name: str, words: str = "words\nmore", **fields: Any) -> Exception:
    error = type(name, (RuntimeError,), fields)(words)
    outer = RuntimeError("backend='x' raised")
    outer.inner_exception = error  # type: ignore[attr-defined]
    return outer


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (of_kind("InvalidCxxCompiler"), Skip, MISSING["InvalidCxxCompiler"]),
        (of_kind("TritonMissing"), Skip, MISSING["TritonMissing"]),
        (of_kind("GPUTooOldForTriton"), Unsupported, "torch.compile: words"),
        (
            of_kind("CppCompileError", output="/tmp/a/b.cpp:3:4: error: no such thing\n"),
            CaseError,
            f"torch.compile failed: b.cpp:3: no such thing ({HINT})",
        ),
        (
            NotADirectoryError(20, "Not a directory", "/home/somebody/cache"),
            CaseError,
            f"torch.compile failed: Not a directory: cache ({HINT})",
        ),
        (of_kind("LoweringException"), CaseError, f"torch.compile failed: LoweringException: words ({HINT})"),
    ],
)
def test_a_failure_in_words(error: Exception, kind: type, words: str) -> None:
    found = compiled_module._error_of_case(error)
    assert type(found) is kind
    assert (found.reason if isinstance(found, Skip) else str(found)) == words
