"""Sides: what is typed, what is refused, and the folder in which one side finds another text of its kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.ab import sides
from gpubench.discovery import load_suite
from gpubench.errors import UsageError
from gpubench.executor import with_our_package

TOYS = Path(__file__).parent / "toys"


def test_a_side_of_which_nothing_is_said_is_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THERE", "1")
    side = sides.parse("--base", [])
    assert (side.python, side.kernels, side.what) == (sys.executable, (), [])
    assert side.environment["THERE"] == "1"
    assert sides.parse("--base", ["env:THERE=2"]).environment["THERE"] == "2", "what is said comes first"


def test_several_kinds_are_given_one_by_one_or_with_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "fast.cu"
    kernel.write_text("//")
    for texts in (
        [f"python={sys.executable}", "env:A=1,2", "env:B=", f"kernel={kernel}"],
        [f"python={sys.executable},env:A=1,2,env:B=,kernel={kernel}"],
    ):
        side = sides.parse("--new", texts)
        assert (side.python, side.variables, side.kernels) == (sys.executable, {"A": "1,2", "B": ""}, (kernel,))
        assert side.environment["A"] == "1,2"
        assert side.what[1:] == ["env:A=1,2", "env:B=", "kernel=fast.cu"]  # no folder of the user's


def test_an_interpreter_is_not_followed_to_what_it_links_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "bin" / "python"
    link.parent.mkdir()
    link.symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert sides.parse("--new", ["python=bin/python"]).python == str(link)


def test_another_interpreter_finds_this_gpubench_and_nothing_beside_it() -> None:
    """-S: without the libraries of this one."""
    script = "import gpubench, sys; from gpubench import worker; print(gpubench.__file__)"
    with sides.package() as folder:
        assert [each.name for each in folder.iterdir()] == ["gpubench"]
        env = with_our_package({"PYTHONPATH": "elsewhere"}, folder)
        assert env["PYTHONPATH"] == f"{folder}:elsewhere"
        command = [sys.executable, "-S", "-P", "-c", script]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.stdout == f"{folder}/gpubench/__init__.py\n", done.stderr
    assert not folder.exists()


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["fast.cu"], "--new fast.cu: not a side (python=PATH, env:NAME=VALUE or kernel=FILE.cu)"),
        (["env:A"], "--new env:A: not a side"),
        (["env:1A=2"], "--new env:1A=2: '1A' is no name of a variable, or is given twice"),
        (["env:A-B=2"], "--new env:A-B=2: 'A-B' is no name of a variable"),
        (["env:A=1", "env:A=2"], "'A' is no name of a variable, or is given twice"),
        (["python=no-such-python"], "--new python=no-such-python: no such program"),
        ([f"python={sys.executable}", f"python={sys.executable}"], "a second interpreter"),
        (["kernel=gone.cu"], "--new kernel=gone.cu: not a file of kernels"),
        ([f"kernel={__file__}"], "not a file of kernels (a .cu file; on a CPU a .cpp file)"),
        ([""], "--new : not a side"),
    ],
)
def test_what_is_none_is_said_in_one_line(texts: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        sides.parse("--new", texts)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_text_stands_in_for_the_only_file_of_its_kind(tmp_path: Path) -> None:
    suite = load_suite(TOYS / "kernels" / "scale.py")
    text = written(tmp_path, "mine.cu", "// mine")
    side = sides.parse("--new", [f"kernel={text}"])
    with sides.files(side, [suite]) as (files, digests):
        there = files["scale"]
        assert there.name == "scale.py"
        assert there.with_name("scale.cu").read_text() == "// mine"
        assert there.with_name("scale.cpp").read_text() == (TOYS / "kernels" / "scale.cpp").read_text()
        assert (there.parent / "include" / "grid.cuh").is_file()
        text.write_text("// edited meanwhile")
        assert there.with_name("scale.cu").read_text() == "// mine"
        again = load_suite(there)
        assert again.benchmarks["scale"].file == there  # so that its kernels are looked for beside it
        assert again.benchmarks["scale"].definition == suite.benchmarks["scale"].definition
        assert list(digests) == ["scale.cu"]
    assert not there.parent.exists()


def test_a_text_is_put_beside_the_suite_it_is_for_and_the_suite_s_own_stays(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "other").mkdir()
    suite, other = load_suite(two_sources(tmp_path / "suite")), TOYS / "ok.py"
    apart = load_suite(written(tmp_path / "other", "ok.py", other.read_text()))
    text = written(tmp_path, "two.cu", "// mine")
    with sides.files(sides.parse("--new", [f"kernel={text}"]), [suite, apart]) as (files, _):
        assert files["pair"].with_name("two.cu").read_text() == "// mine"
        assert files["ok"] == apart.file
    assert (tmp_path / "suite" / "two.cu").read_text() == "//"


def test_without_a_kernel_the_suites_are_where_they_are() -> None:
    suite = load_suite(TOYS / "ok.py")
    with sides.files(sides.parse("--base", ["env:A=1"]), [suite]) as found:
        assert found == ({"ok": suite.file}, {})


def two_sources(folder: Path) -> Path:
    for name in ("one.cu", "two.cu"):
        written(folder, name, "//")
    body = "ONE, TWO = suite.kernel('a', source='one.cu'), suite.kernel('b', source='two.cu')"
    call = "@suite.benchmark(n=Axis([1]))\ndef row(device, n):\n    return None\n"
    return written(folder, "pair.py", f"from gpubench import Axis, Suite\nsuite = Suite(__file__)\n{body}\n{call}")


def test_of_several_files_the_one_of_its_name_is_meant(tmp_path: Path) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "mine").mkdir()
    suite = load_suite(two_sources(tmp_path / "suite"))
    named = sides.parse("--new", [f"kernel={written(tmp_path / 'mine', 'two.cu', '// 2')}"])
    with sides.files(named, [suite]) as (files, _):
        assert [files["pair"].with_name(name).read_text() for name in ("one.cu", "two.cu")] == ["//", "// 2"]
    other = sides.parse("--new", [f"kernel={written(tmp_path / 'mine', 'fast.cu', '//')}"])
    with (
        pytest.raises(UsageError, match=r"which file does it replace\? there are one.cu, two.cu"),
        sides.files(other, [suite]),
    ):
        pass
    with (
        pytest.raises(UsageError, match=r"kernel=fast.cu: ok has no .cu file of kernels to replace"),
        sides.files(other, [load_suite(TOYS / "ok.py")]),
    ):
        pass
