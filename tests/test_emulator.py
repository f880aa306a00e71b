"""What the emulator builds is kept by all that it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulator
import pytest

pytestmark = pytest.mark.skipif(emulator.COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that the compiler is given from here on."""
    seen: list[Path] = []
    compile_ = emulator._compile
    emulator._header()

    def counted(text: Path, made: Path, *options: str) -> None:
        seen.append(text)
        compile_(text, made, *options)

    monkeypatch.setattr(emulator, "_compile", counted)
    monkeypatch.setattr(emulator, "KEPT", tmp_path)
    return seen


def project(folder: Path, kernel: str, shared: str) -> Path:
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "shared.cuh").write_text(shared)
    source = folder / "kept.cu"
    source.write_text(f'#include "shared.cuh"\nextern "C" __global__ void kept(long long* out) {{ {kernel} }}\n')
    return source


def test_a_build_is_kept_for_the_same_text_alone(tmp_path: Path, builds: list[Path]) -> None:
    kernel, shared = "*out = SHARED + MORE;", "#define SHARED 1\n"
    first = project(tmp_path / "first", kernel, shared)
    changed: list[tuple[Path, dict[str, Any], bool]] = [
        (first, {"MORE": 1}, True),
        (project(tmp_path / "copied", kernel, shared), {"MORE": 1}, False),
        (first, {"MORE": 2}, True),
        (project(tmp_path / "kernel", f"{kernel} ++*out;", shared), {"MORE": 1}, True),
        (project(tmp_path / "included", kernel, shared.replace("1", "3", 1)), {"MORE": 1}, True),
    ]
    for source, defines, built in changed:
        before = len(builds)
        emulator._library(source, tuple(defines.items()), ("kept",))
        assert len(builds) - before == built, (source, defines)
