"""What is wrong with a command is one line that says what, where and what to type; and one exit status for its kind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command import COMMAND, FAKE, LARGE, OK, gpubench, one_line, saved, start, within

TRUNCATED = '{"schema":"gpubench.run/1","run_id":"x","records":['

# words, and what the one line must hold
WRONG: list[tuple[list[str], str]] = [
    (["rnu"], "no command 'rnu'; did you mean run? (gpubench --help)"),
    (["baseline", "svae"], "no command 'svae'; did you mean save? (gpubench baseline --help)"),
    (["--device", "cpu"], "no such option: --device (gpubench --help)"),
    (["show", "one", "two"], "got unexpected extra argument(s) (two) (gpubench show --help)"),
    (["run", "--devcie", "cpu"], "no such option: --devcie; did you mean --device? (gpubench run --help)"),
    (["run", "-p"], "option '-p' requires an argument (gpubench run --help)"),
    (["run", "matmull"], "no suite 'matmull'; did you mean matmul-sweep? (gpubench list)"),
    (["run", ""], "no suite ''"),
    (["run", OK, "n=2"], "no suite 'n=2' (-p n=2 if an axis is meant)"),
    (["run", OK, "--dry-run", "--format", "csv"], "--format 'csv' is not one of table, json"),
    (["run", "matmul-sweep/nothing"], "no benchmark 'matmul-sweep/nothing'"),
    (["run", "nowhere/ok.py"], "nowhere/ok.py: no such file"),
    (["run", "broken.yaml"], "broken.yaml:1: not yaml"),
    (["run", "broken.py"], "broken.py:2: ZeroDivisionError: division by zero"),
    (["run", "typo.yaml"], "did you mean matmul-sweep"),
    (["run", OK, "-p", "q=1"], "no axis 'q' in ok (axes: n, dtype, cache, load, data)"),
    (["run", OK, "-p", "n=0"], "axis n: 0 is below 1"),
    (["run", OK, "-p", "n=-5"], "axis n: -5 is below 1"),
    (["run", OK, "-p", "n=abc"], "axis n: 'abc' is not a plain decimal integer"),
    (["run", OK, "-p", "n=1e9"], "axis n: '1e9' is neither a plain decimal integer nor a name"),
    (["run", OK, "-p", "n"], "-p 'n' is not NAME=VALUES"),
    (["run", OK, "--dtype", ""], "axis dtype: no value"),
    (["run", OK, "--device", "banana"], "--device: 'banana' is not auto, cpu, cuda:N or a GPU's UUID"),
    (["run", OK, *FAKE, "--timer", "cupti"], "no timer 'cupti' on the fake device (--timer auto)"),
    (["run", OK, "--timeout", "5"], "--timeout: the duration '5' has no unit"),
    (["run", OK, *FAKE, "-o", "x.txt"], "cannot save a run as x.txt: its name must end in .json or .json.gz"),
    (["run", OK, *FAKE, "-o", ""], "cannot save a run as .: its name must end in .json or .json.gz (-o run.json)"),
    (["run", OK, *FAKE, "-o", "broken.py/x.json"], "cannot write in broken.py: it is no folder (another place"),
    (["run", OK, *FAKE, "-o", "folder.json"], "cannot save a run as folder.json: it is a folder"),
    (["run", OK, *FAKE, "--results", "broken.py"], "broken.py: it is no folder (another place: --results DIR, or"),
    (["show", "--results", "broken.py"], "broken.py: it is no folder (--results DIR)"),
    (["run", OK, "--export", "x.pdf"], "x.pdf: no export of that form (a name ending in .json,"),
    (["run", OK, "--export", "nowhere/x.md"], "--export nowhere/x.md: there is no folder"),
    (["run", OK, "--export", "folder.json"], "--export folder.json: cannot be written"),
    (["run", OK, "--format", "pdf"], "--format 'pdf' is not one of table, json, jsonl, csv, md"),
    (["run", OK, "--format", "csv", "--json"], "--json and --format csv ask for two forms"),
    (["roofline", "--format", "csv"], "--format 'csv' is not one of table, json, md"),
    (["show", "nowhere.json"], "no run file nowhere.json"),
    (["show", "[/bold]/nowhere[0].json"], "no run file [/bold]/nowhere[0].json ("),
    (["show", "truncated.json"], "truncated.json: ends in the middle of the JSON document"),
    (["show", "foreign.json"], "foreign.json: not a gpubench run file"),
    (["show", "nan.json"], "nan.json: NaN is not a JSON number"),
    (["show", "folder.json"], "folder.json: is a folder, not a run file"),
    (["show", "latest~x"], "no run 'latest~x'"),
    (["explain", "nowhere.json", "n=1"], "no run file nowhere.json"),
    (["report"], "a report needs a file (gpubench report latest -o report.html)"),
    (["list", "zzz"], "nothing is called 'zzz' (gpubench list)"),
    (["list", "bandwith"], "nothing is called 'bandwith'; did you mean bandwidth? (gpubench list)"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files with something wrong in each."""
    found = tmp_path_factory.mktemp("wrong")
    (found / "broken.yaml").write_text("run: {ok: {n: [1}\n")
    (found / "typo.yaml").write_text("run: {matmul-swep: {}}\n")
    (found / "broken.py").write_text("from gpubench import Suite\n1 / 0\n")
    (found / "truncated.json").write_text(TRUNCATED)
    (found / "foreign.json").write_text('{"benchmarks": []}')
    (found / "nan.json").write_text('{"schema": "gpubench.run/1", "run_id": NaN}')
    (found / "folder.json").mkdir()
    return found


def refused(folder: Path, done: subprocess.CompletedProcess[str], part: str) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert one_line(done.stderr), done.stderr
    assert done.stderr.startswith("gpubench: ")
    assert part in done.stderr
    assert not saved(folder)


@pytest.mark.parametrize(("words", "part"), WRONG, ids=[" ".join(words)[-40:] for words, _ in WRONG])
def test_what_is_wrong_is_one_line(folder: Path, words: list[str], part: str):
    refused(folder, within(folder, *words), part)


@pytest.mark.parametrize(
    ("words", "part"), [*WRONG[:2], (["run", b"\xff[/b]\n\x1b[31m"], "no suite "), (["show", "nan.json"], "NaN is not")]
)
def test_so_it_is_by_the_command_itself(folder: Path, words: list[str | bytes], part: str):
    refused(folder, gpubench(folder, *words), part)


def test_a_setting_of_the_environment_or_of_a_file_is_named_where_it_is_wrong(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, env={"GPUBENCH_SAMPLES": "many"})
    assert (done.returncode, one_line(done.stderr)) == (2, True)
    assert "GPUBENCH_SAMPLES: 'many' is not an integer" in done.stderr
    (tmp_path / "gpubench.yaml").write_text("budget:\n  sampels: 3\n")
    done = gpubench(tmp_path, "show")
    assert (done.returncode, one_line(done.stderr)) == (2, True)
    assert "gpubench.yaml:2" in done.stderr
    assert "did you mean samples?" in done.stderr


def test_nothing_stored_has_a_status_of_its_own(tmp_path: Path):
    done = gpubench(tmp_path, "show")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == f"gpubench: no run is stored in {tmp_path / 'results'} (gpubench run)\n"


@pytest.mark.parametrize(("words", "code"), [(("show", "x.json"), 2), (("show",), 5)])
def test_debug_adds_the_traceback_and_changes_nothing_else(tmp_path: Path, words: tuple[str, ...], code: int):
    plain = gpubench(tmp_path, *words)
    done = (
        gpubench(tmp_path, *words, "--debug") if code == 2 else gpubench(tmp_path, *words, env={"GPUBENCH_DEBUG": "1"})
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith(f"\n{plain.stderr}")


def test_a_bug_of_ours_is_one_line_too_and_keeps_the_rows(tmp_path: Path):
    (tmp_path / "plant").mkdir()
    (tmp_path / "plant" / "sitecustomize.py").write_text(
        "import sys\n"
        "if sys.argv[0] == '-m' and 'gpubench.worker' not in sys.orig_argv:\n"
        "    from gpubench.cli import live\n"
        "    def broken(record):\n"
        "        if record.params['n'] == 3:\n"
        "            raise KeyError('planted\\nbug')\n"
        "        return ''\n"
        "    live.outcome = broken\n"
    )
    path = os.pathsep.join([str(tmp_path / "plant"), str(Path(__file__).parents[1])])
    done = gpubench(tmp_path, "run", OK, *FAKE, env={"PYTHONPATH": path})
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("gpubench: internal error: KeyError: ")
    assert "--debug" in done.stderr.splitlines()[-1]
    (run,) = saved(tmp_path)
    assert (run["status"], len(run["records"])) == ("partial", 3)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_link_to_nothing_is_not_said_to_be_meant(tmp_path: Path):
    (tmp_path / "dangling.json").symlink_to("nowhere-at-all.json")
    done = within(tmp_path, "show", "dangling.json")
    assert (done.returncode, one_line(done.stderr)) == (2, True)
    assert "no run file dangling.json (a run is" in done.stderr


def test_words_of_a_row_are_of_the_latest_run(tmp_path: Path):
    done = within(tmp_path, "explain", "n=1")
    assert done.returncode == 5
    assert "no run is stored in" in done.stderr


@pytest.mark.parametrize("words", [["list"], ["schema"], ["--help"], [], ["run", LARGE, *FAKE, "-q", "--json"]])
def test_a_full_stdout_is_one_line(tmp_path: Path, words: list[str]):
    with open("/dev/full", "w") as full:
        done = gpubench(tmp_path, *words, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "gpubench: cannot write to standard output: No space left on device\n"
    assert not words or words[0] != "run" or len(saved(tmp_path)) == 1


@pytest.mark.parametrize("words", [["list"], ["schema"], ["run", "--help"], [], ["list", "--json"]])
def test_a_reader_that_has_gone_is_no_news(tmp_path: Path, words: list[str]):
    reader, writer = os.pipe()
    os.close(reader)
    done = gpubench(tmp_path, *words, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_reader_that_goes_while_a_run_is_measured_takes_no_row(tmp_path: Path):
    reader, writer = os.pipe()
    os.close(reader)
    done = gpubench(tmp_path, "run", OK, *FAKE, stdout=writer)
    assert done.returncode == 141
    assert all(line.startswith("[") for line in done.stderr.splitlines())
    assert [run["status"] for run in saved(tmp_path)] == ["complete"]
    done = gpubench(tmp_path, "run", OK, *FAKE, stdout=writer, stderr=writer)
    os.close(writer)
    assert done.returncode == 141
    assert [run["status"] for run in saved(tmp_path)] == ["complete", "partial"]
    assert len(saved(tmp_path)[1]["records"]) == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_bug(tmp_path: Path, closed: str):
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND]
    run = start(tmp_path, "run", OK, "-p", "n=1", *FAKE, command=shell)
    out, said = run.communicate(timeout=60)
    assert run.returncode == 0, said
    assert (out == "") == (closed != "2>&-")
    assert (said == "") == (closed != ">&-")
    assert len(saved(tmp_path)) == 1
