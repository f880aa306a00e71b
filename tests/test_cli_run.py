"""`gpubench run` from outside: what it prints where, what it saves, and what its exit status says."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from command import (
    BRACKETS,
    COMMAND,
    FAKE,
    FAULTS,
    LARGE,
    OK,
    Gates,
    gpubench,
    one_line,
    saved,
    start,
    statuses,
    strict,
    within,
)


def test_the_table_goes_to_stdout_and_the_rest_to_stderr(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, *FAKE)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "ok/double · Fake device · fp32 · cold, burst"
    assert [line.split()[0] for line in lines[3:]] == ["n=1", "n=2", "n=3", "n=4", "n=5"]
    said = done.stderr.splitlines()
    assert said[0] == "[1/5] ok/double[dtype=float32,n=1]  1.00 µs ± <0.1 %  0.00800 GB/s"
    assert [line.split()[0] for line in said[:5]] == [f"[{n}/5]" for n in range(1, 6)]
    assert [line.split()[0] for line in said[5:]] == ["ok", "best", "saved", "next"]
    (run,) = saved(tmp_path)
    assert run["status"] == "complete"
    assert statuses(run) == ["ok"] * 5
    path = said[7].removeprefix("saved ")
    assert (tmp_path / path).is_file()
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("flags", "typed"),
    [
        ([], ""),
        (["-o", "my run.json"], " 'my run.json'"),
        (["-o", "-x.json"], " ./-x.json"),
        (["--results", "other"], " other/"),
    ],
)
def test_what_to_type_next_names_the_file_of_a_run_that_is_not_the_latest(tmp_path: Path, flags: list[str], typed: str):
    done = gpubench(tmp_path, "run", OK, "-p", "n=2", *FAKE, *flags)
    assert done.returncode == 0
    following = done.stderr.splitlines()[-1].removeprefix("next  ")
    place = done.stderr.splitlines()[-2].removeprefix("saved ") if typed == " other/" else ""
    assert following == f"gpubench show{f' {place}' if place else typed} --all"
    again = gpubench(tmp_path, *shlex.split(following)[1:])
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_a_row_of_a_file_that_failed_is_measured_again_by_what_is_said(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=exception", *FAKE)
    assert done.returncode == 4
    following = done.stderr.splitlines()[-1].removeprefix("next  ")
    assert following == f"gpubench run {FAULTS} -p how=exception -p when=run --device fake --debug"
    again = gpubench(tmp_path, *shlex.split(following)[1:])
    assert (again.returncode, again.stdout) == (4, done.stdout)


def test_quiet_says_nothing_beside_the_result(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, "-p", "n=2", *FAKE, "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "n=2" in done.stdout
    assert len(saved(tmp_path)) == 1


def test_verbose_says_where_settings_come_from_and_how_samples_were_taken(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, "-p", "n=2", *FAKE, "-v", "--samples", "12", env={"GPUBENCH_SEED": "7"})
    assert done.returncode == 0
    assert "samples = 12 (--samples)" in done.stderr
    assert "seed = 7 (GPUBENCH_SEED)" in done.stderr
    assert "(12 samples by fake, stopped by samples)" in done.stderr


def test_in_process_measures_without_a_worker(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, *FAKE, "--in-process")
    assert done.returncode == 0
    assert statuses(saved(tmp_path)[0]) == ["ok"] * 5


def test_every_fault_of_a_case_costs_one_row(tmp_path: Path):
    wanted = {
        "exception": ("error", "RuntimeError: planted"),
        "wrong": ("incorrect", "wrong result: at [3] got 5, expected 4; relative error "),
        "nan": ("incorrect", "wrong result: at [0] got nan, expected 1; relative error inf"),
        "skip": ("skipped", "no [/bold] today"),
        "unsupported": ("unsupported", "needs a [dark] moon"),
        "systemexit": ("error", "SystemExit: 3"),
        "lost": ("error", "fake device lost: fell off the bus"),
        "exit": ("error", "the worker ended (exit status 3)"),
        "kill": ("error", "the worker ended (SIGKILL)"),
        "segv": ("error", "the worker ended (SIGSEGV): Fatal Python error: Segmentation fault"),
        "labels": ("error", ""),
        "huge": ("error", ""),
        "none": ("ok", None),
    }
    done = gpubench(tmp_path, "run", FAULTS, "-p", f"how={','.join(wanted)}", "-p", "when=run", *FAKE)
    assert done.returncode == 4
    (run,) = saved(tmp_path)
    assert run["status"] == "complete"
    assert [record["params"]["how"] for record in run["records"]] == list(wanted)
    for record, (status, reason) in zip(run["records"], wanted.values(), strict=True):
        assert record["status"] == status, record
        assert record["reason"] == reason if reason is None else record["reason"].startswith(reason), record
        assert bool(record["samples"]["gpu_ns"]) == bool(record["metrics"]) == (status == "ok"), record
    assert "Traceback" not in done.stdout + done.stderr


def test_a_fault_while_a_case_is_prepared_costs_one_row_too(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=exception,kill,skip,none", "-p", "when=prepare", *FAKE)
    assert done.returncode == 4
    assert statuses(saved(tmp_path)[0]) == ["error", "error", "skipped", "ok"]


def test_a_suite_that_prints_leaves_one_document_on_stdout(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=chatter,none", *FAKE, "--json")
    assert done.returncode == 0
    assert statuses(strict(done.stdout)) == ["ok", "ok"]
    assert "chatter on" not in done.stderr
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=chatter", *FAKE, "--json", "--debug")
    assert statuses(strict(done.stdout)) == ["ok"]
    assert {"chatter on stdout", "chatter on stderr"} <= set(done.stderr.splitlines())


def test_words_of_a_suite_are_never_markup_and_move_no_cursor(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=markup", *FAKE, env={"FORCE_COLOR": "1"})
    assert done.returncode == 4
    for text in (done.stdout, done.stderr):
        assert "RuntimeError: two lines [/bold] and \ufffd[31mred" in text
    done = gpubench(tmp_path, "run", BRACKETS, *FAKE)
    assert done.returncode == 0
    for name in ("[/bold]", "gemm[fp16]", "[link=x]"):
        assert f"how={name} " in done.stdout
        assert f"brackets/brackets[how={name}]  " in done.stderr


def test_a_case_that_does_not_answer_is_given_up(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=hang,none", *FAKE, "--timeout", "500ms")
    assert done.returncode == 4
    hung, fine = saved(tmp_path)[0]["records"]
    assert (hung["status"], hung["reason"]) == ("timeout", "no answer within 0.5 s")
    assert fine["status"] == "ok"


def test_cases_beyond_the_time_of_the_run_are_skipped(tmp_path: Path):
    words = ("-p", "how=hang,none,exit", *FAKE, "--timeout", "200ms", "--max-time", "100ms")
    done = gpubench(tmp_path, "run", FAULTS, *words)
    assert done.returncode == 4
    records = saved(tmp_path)[0]["records"]
    assert [record["status"] for record in records] == ["timeout", "skipped", "skipped"]
    assert {record["reason"] for record in records[1:]} == {"time budget"}


def test_a_process_that_escapes_does_not_hold_the_run_up(tmp_path: Path):
    gates = Gates(tmp_path)
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=orphan,none", *FAKE, env=gates.env)
    gates.go()
    gates.close()
    assert done.returncode == 4
    assert statuses(saved(tmp_path)[0]) == ["error", "ok"]


@pytest.mark.parametrize(("words", "code"), [((), 0), (("-p", "n=4,1000000000"), 4)], ids=["default", "by hand"])
def test_a_size_that_does_not_fit_fails_the_run_only_where_it_was_asked_for(
    tmp_path: Path, words: tuple[str, ...], code: int
):
    done = gpubench(tmp_path, "run", LARGE, *words, *FAKE)
    assert done.returncode == code
    fits, large = saved(tmp_path)[0]["records"]
    assert (fits["status"], large["status"]) == ("ok", "oom")
    assert large["reason"] == "out of memory: needs 4,000,000,000 bytes, free 1,000,000,000 bytes"


def test_a_run_without_a_number_is_no_success(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=skip,unsupported", *FAKE)
    assert done.returncode == 5
    assert statuses(saved(tmp_path)[0]) == ["skipped", "unsupported"]


def test_a_device_lost_in_this_process_ends_the_run_with_the_culprit_named(tmp_path: Path):
    done = gpubench(tmp_path, "run", FAULTS, "-p", "how=none,systemexit,lost,skip", *FAKE, "--in-process")
    assert done.returncode == 4
    (run,) = saved(tmp_path)
    assert run["status"] == "partial"
    assert statuses(run) == ["ok", "error", "error"]
    assert "gpubench: fake device lost: fell off the bus" in done.stderr.splitlines()


def test_dry_run_lists_the_cases_and_runs_nothing(tmp_path: Path):
    done = within(tmp_path, "run", FAULTS, "-p", "how=none,exit", *FAKE, "--dry-run", "--case-time", "2s")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"faults/fault[how={how},when=run]" for how in ("none", "exit")]
    assert done.stderr == "2 cases, at most 4 s of samples; set-up and checks come on top\n"
    assert not (tmp_path / "results").exists()
    sustained = within(tmp_path, "run", OK, "-p", "load=burst,sustained", "-p", "n=1", *FAKE, "--dry-run")
    assert "at least" in sustained.stderr, "nobody knows how long it takes until it is flat"
    done = within(tmp_path, "run", OK, *FAKE, "--dry-run", "--json", "--quick")
    assert strict(done.stdout)["cases"] == [f"ok/double[dtype=float32,n={n}]" for n in (1, 2)]


def test_a_plan_and_repeated_tags_are_kept_in_the_file(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("run: {bandwidth: {}}\nbudget: {max_noise: 2%}\n")
    words = ("mine.yaml", "--dry-run", "-v", *FAKE)
    assert "bandwidth/copy[" in gpubench(tmp_path, "run", *words).stdout
    done = gpubench(tmp_path, "run", OK, "--quick", *FAKE, "--tag", "a [b]", "--tag", "c", "--host-name", "box")
    assert done.returncode == 0
    (run,) = saved(tmp_path)
    assert run["tags"] == ["a [b]", "c", "quick"]
    assert run["host"]["name"] == "box"
    assert run["settings"]["case_time"] == {"value": 0.2, "origin": "quick"}


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "md"])
def test_every_form_is_the_whole_of_stdout(tmp_path: Path, form: str):
    done = gpubench(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, "--format", form)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    if form == "json":
        assert strict(done.stdout) == saved(tmp_path)[0]
    elif form == "jsonl":
        assert [strict(line)["params"]["n"] for line in lines] == [1, 2]
    elif form == "csv":
        assert lines[0].startswith("id,suite,benchmark,p.n,p.dtype,cache,")
        assert len(lines) == 3
    else:
        assert lines[0] == "## ok/double · Fake device · fp32 · cold, burst"


def test_exports_take_the_form_of_their_suffix(tmp_path: Path):
    (tmp_path / "[/bold]").mkdir(parents=True)
    names = ["out.json", "out.jsonl", "out.csv", "[/bold]/out.md"]
    words = [word for name in names for word in ("--export", name)]
    done = gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE, *words)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("exported")] == [
        f"exported {name}" for name in names
    ]
    assert strict((tmp_path / "out.json").read_text()) == saved(tmp_path)[0]
    assert (tmp_path / "[/bold]/out.md").read_text().startswith("## ok/double")


def test_an_export_that_fails_hides_neither_the_result_nor_its_place(tmp_path: Path):
    (tmp_path / "out.md").symlink_to("/dev/full")
    done = gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE, "--export", "out.md")
    assert done.returncode == 2
    assert "n=1" in done.stdout
    assert [line.split()[0] for line in done.stderr.splitlines()[-4:]] == ["best", "saved", "next", "gpubench:"]
    assert done.stderr.splitlines()[-1] == "gpubench: cannot write out.md: No space left on device"


def test_output_replaces_its_file_and_nothing_else_does(tmp_path: Path):
    for n in (1, 2):
        assert gpubench(tmp_path, "run", OK, "-p", f"n={n}", *FAKE, "-o", "mine.json", "-q").returncode == 0
    assert strict((tmp_path / "mine.json").read_text())["records"][0]["params"]["n"] == 2
    assert not saved(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".json", ".journal", ".tmp")) == [
        "mine.json"
    ]


def test_runs_at_the_same_time_lose_nothing(tmp_path: Path):
    runs = [start(tmp_path, "run", OK, "--quick", *FAKE, "-q", "-o", "same.json") for _ in range(8)]
    runs += [start(tmp_path, "run", OK, "--quick", *FAKE, "-q") for _ in range(2)]
    outcomes = [(*run.communicate(timeout=60), run.returncode) for run in runs]
    assert {code for _, _, code in outcomes} == {0}, outcomes
    assert statuses(strict((tmp_path / "same.json").read_text())) == ["ok"] * 2
    assert len({run["run_id"] for run in saved(tmp_path)}) == 2
    assert not [path.name for path in tmp_path.rglob("*") if path.suffix in (".journal", ".tmp")]


def test_a_full_disk_leaves_the_file_of_before(tmp_path: Path):
    assert gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE, "-o", "kept.json", "-q").returncode == 0
    before = (tmp_path / "kept.json").read_bytes()
    small = ["sh", "-c", 'ulimit -f 4; exec "$@"', "sh", *COMMAND]
    run = start(tmp_path, "run", OK, *FAKE, "-o", "kept.json", "-q", command=small)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 2
    assert said.splitlines()[-1].startswith("gpubench: cannot write kept.json")
    assert "Traceback" not in said
    assert (tmp_path / "kept.json").read_bytes() == before


def test_a_module_of_the_users_folder_does_not_stand_in_for_ours(tmp_path: Path):
    for name in ("queue", "torch", "random", "gpubench"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the wrong module')\n")
    done = gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE)
    assert done.returncode == 0, done.stderr


def test_a_suite_named_like_one_of_ours_is_refused(tmp_path: Path):
    shutil.copy(OK, tmp_path / "bandwidth.py")
    done = within(tmp_path, "run", "bandwidth.py", *FAKE)
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert "two suites are named bandwidth" in done.stderr


def test_without_cuda_auto_measures_the_cpu_and_says_so(tmp_path: Path):
    words = ("run", "bandwidth/copy", "-p", "mib=1", "--samples", "2", "--ceilings", "none")
    done = gpubench(tmp_path, *words, env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].startswith("gpubench: no CUDA device (")
    assert done.stderr.splitlines()[0].endswith("); measuring the CPU")
    assert done.stdout.splitlines()[0] == done.stderr.splitlines()[0].removeprefix("gpubench: ")
    (run,) = saved(tmp_path)
    assert run["device"]["kind"] == "cpu"
    assert statuses(run) == ["ok"]


def test_a_cuda_device_that_is_not_there_is_an_error(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, "--device", "cuda:7", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert one_line(done.stderr)
    assert done.stderr.startswith("gpubench: --device cuda:7: no CUDA device (")
    assert "--device cpu" in done.stderr


def test_without_torch_the_fake_device_and_the_files_still_work(tmp_path: Path):
    (tmp_path / "shadow").mkdir()
    (tmp_path / "shadow" / "torch.py").write_text("raise ImportError('no torch here')\n")
    path = os.pathsep.join([str(tmp_path / "shadow"), str(Path(__file__).parents[1])])
    done = gpubench(tmp_path, "run", OK, "--device", "cpu", env={"PYTHONPATH": path})
    assert done.returncode == 2
    assert done.stderr == "gpubench: torch cannot be imported: no torch here (pip install 'torch>=2.9')\n"
    assert gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE, env={"PYTHONPATH": path}).returncode == 0


@pytest.mark.skipif(not Path(sys.executable).with_name("gpubench").exists(), reason="gpubench is not installed here")
def test_the_installed_command_is_the_module(tmp_path: Path):
    command = [str(Path(sys.executable).with_name("gpubench"))]
    run = start(tmp_path, "run", OK, "-p", "n=1", *FAKE, "--json", command=command)
    out, _ = run.communicate(timeout=60)
    assert (run.returncode, statuses(strict(out))) == (0, ["ok"])
    run = start(tmp_path, "show", "latest~1", command=command)
    assert run.communicate(timeout=60)[1].startswith("gpubench: no run latest~1")
    assert run.returncode == 2


DECLARED = """
from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(n=Axis([1, 2]), cache=Axis(["cold", "hot"], quick=["hot"]))
def spend(device, n):
    return Workload(lambda: device.spend(1000 * n), [], lambda: [], "nothing")
"""


def ran(tmp_path: Path, *words: str, **env: str) -> list[str]:
    """The ids of the rows that a command would measure, without suite and benchmark."""
    done = within(tmp_path, "run", *words, *FAKE, "--dry-run", env=env)
    assert done.returncode == 0, done.stderr
    return [line.partition("[")[2].rstrip("]") for line in done.stdout.splitlines()]


def test_who_says_under_which_conditions_a_row_is_measured(tmp_path: Path):
    (tmp_path / "mine.py").write_text(DECLARED)
    one = ("mine.py", "-p", "n=1")
    assert ran(tmp_path, "mine.py") == ["n=1", "cache=hot,n=1", "n=2", "cache=hot,n=2"]
    assert ran(tmp_path, *one, "--quick") == ["cache=hot,n=1"]
    assert ran(tmp_path, *one, GPUBENCH_CACHE="hot") == ["cache=hot,n=1"]
    assert ran(tmp_path, *one, "--cache", "cold", GPUBENCH_CACHE="hot") == ["n=1"]
    assert ran(tmp_path, *one, "-p", "cache=cold", GPUBENCH_CACHE="hot") == ["n=1"]
    assert ran(tmp_path, *one, "-p", "data=zeros,normal", "--cache", "cold") == ["data=zeros,n=1", "n=1"]
    (tmp_path / "gpubench.yaml").write_text("conditions: {load: sustained}\n")
    assert ran(tmp_path, *one) == ["load=sustained,n=1", "cache=hot,load=sustained,n=1"]
    assert ran(tmp_path, *one, GPUBENCH_LOAD="burst") == ["n=1", "cache=hot,n=1"]


def test_a_plan_asks_for_conditions_as_for_any_axis(tmp_path: Path):
    plan = "run: {matmul-sweep: {n: 64, load: [burst, sustained]}}\nconditions: {cache: hot, load: burst}\n"
    (tmp_path / "mine.yaml").write_text(plan)
    square = "dtype=bfloat16,k=64,layout=nn"
    both = [f"cache=hot,{square},m=64,n=64", f"cache=hot,{square},load=sustained,m=64,n=64"]
    assert ran(tmp_path, "mine.yaml") == both
    assert ran(tmp_path, "mine.yaml", GPUBENCH_CACHE="cold", GPUBENCH_LOAD="burst") == both
    assert ran(tmp_path, "mine.yaml", "--load", "sustained") == both[1:]
    assert ran(tmp_path, "mine.yaml", "-p", "cache=cold", "--load", "burst") == [f"{square},m=64,n=64"]


def test_a_condition_is_asked_for_once(tmp_path: Path):
    for name, value in (("cache", "hot"), ("load", "sustained"), ("data", "zeros")):
        done = within(tmp_path, "run", OK, *FAKE, f"--{name}", value, "-p", f"{name}={value}")
        assert done.returncode == 2
        said = f"both --{name} and -p {name} are given (one list: -p {name}=VALUE,VALUE)"
        assert done.stderr == f"gpubench: {said}\n"


def test_rows_under_several_conditions_are_saved_shown_and_told_apart(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, *FAKE, "-p", "n=1,2", "-p", "cache=cold,hot")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "ok/double · Fake device · fp32 · burst"
    assert [line.split()[:2] for line in lines[3:]] == [
        ["n=1", "cold"],
        ["n=1", "hot"],
        ["n=2", "cold"],
        ["n=2", "hot"],
    ]
    assert "· cold and hot, burst · 4 cases" in done.stderr
    (run,) = saved(tmp_path)
    assert [(row["id"], row["conditions"]["cache"]) for row in run["records"]] == [
        ("ok/double[dtype=float32,n=1]", "cold"),
        ("ok/double[cache=hot,dtype=float32,n=1]", "hot"),
        ("ok/double[dtype=float32,n=2]", "cold"),
        ("ok/double[cache=hot,dtype=float32,n=2]", "hot"),
    ]
    assert gpubench(tmp_path, "show").stdout == done.stdout
