"""The commands that read, and what all commands have in common: help, colour, width, encoding."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_run
from command import FAKE, FAULTS, OK, gpubench, saved, statuses, strict, within

from gpubench.store import runfile

COMMANDS = (
    "run", "roofline", "list", "doctor", "info", "show", "claims", "explain",
    "advise", "profile", "report", "compare", "ab", "check", "baseline", "selfcheck", "schema",
)  # fmt: skip
HELPS = [
    (),
    *((name,) for name in COMMANDS),
    *(("baseline", name) for name in ("save", "list", "show", "rm")),
    *(("selfcheck", name) for name in ("aa", "inject")),
]

# The flags of `run` that its users' scripts rely on
RUN_FLAGS = re.findall(
    r"\S+",
    """
    -p --param --dtype -d --device --cache --load --data --seed --timer --samples --max-noise --max-time --case-time
    --timeout --quick --dry-run --ceilings --counters --in-process --tag -o --output --export --format --json --all
    --no-plot --plain -q --quiet -v --verbose --no-color --debug -h --help --results --host-name
    """,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, of which the later has failed rows."""
    found = tmp_path_factory.mktemp("runs")
    assert gpubench(found, "run", OK, *FAKE, "-q").returncode == 0
    assert gpubench(found, "run", FAULTS, "-p", "how=none,wrong,markup", *FAKE, "-q").returncode == 4
    return found


def test_bare_command_prints_five_lines(tmp_path: Path):
    done = gpubench(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 5
    assert lines[1].split()[:2] == ["gpubench", "run"]


def test_version(tmp_path: Path):
    for flag in ("-V", "--version"):
        done = gpubench(tmp_path, flag)
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(r"gpubench \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("words", HELPS, ids=lambda words: " ".join(words) or "gpubench")
def test_every_command_and_every_flag_has_help_within_80_columns(tmp_path: Path, words: tuple[str, ...]):
    done = within(tmp_path, *words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    lines = done.stdout.splitlines()
    assert lines[0].startswith(" ".join(["Usage: gpubench", *words]))
    assert len(lines[2].split()) > 2
    assert max(map(len, lines)) <= 80
    assert within(tmp_path, *words, "-h").stdout == done.stdout
    for number, line in enumerate(lines):
        if re.match(r"  -", line):
            after = lines[number + 1] if number + 1 < len(lines) else ""
            assert re.search(r"\S {2,}\S", line.strip()) or re.match(r" {8,}\S", after), f"no help for {line}"


def test_the_flags_of_run_are_spelled_as_documented(tmp_path: Path):
    text = within(tmp_path, "run", "--help").stdout
    assert set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", text)) >= set(RUN_FLAGS)


def test_every_command_is_in_the_help_under_its_group(tmp_path: Path):
    text = within(tmp_path, "--help").stdout
    places = [text.index(f"\n{group}:\n") for group in ("Start", "Understand", "Decide", "More")]
    assert places == sorted(places)
    assert set(re.findall(r"^  ([a-z]+) ", text, re.MULTILINE)) >= set(COMMANDS)
    assert "..." not in text.split("\nStart:\n")[1], "a line of help is cut short"


def test_show_is_the_latest_run_unless_one_is_named(folder: Path):
    done = within(folder, "show")
    assert done.returncode == 0
    assert done.stdout.startswith("faults/fault · Fake device")
    assert re.fullmatch(r"latest run: results/\d{8}-\d{6}-fake-device-faults-[0-9a-f]{4}\.json\n", done.stderr)
    done = within(folder, "show", "latest~1", "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ok/double · Fake device")
    assert within(folder, "show", "latest~2").returncode == 2


@pytest.mark.parametrize(
    "words", [("show", "--json"), ("show", "--format", "json"), ("roofline", "latest~1", "--json")]
)
def test_json_is_one_strict_document(folder: Path, words: tuple[str, ...]):
    done = within(folder, *words)
    assert done.returncode == 0
    assert isinstance(strict(done.stdout), dict)


def test_list_info_and_schema_give_one_strict_document_each(tmp_path: Path):
    (tmp_path / "gpubench.yaml").write_text("results: here\n")
    found = strict(within(tmp_path, "list", "matmul*", "--json").stdout)
    assert "matmul-sweep" in str(found)
    assert "bandwidth/copy" not in str(found)
    assert strict(within(tmp_path, "info", *FAKE, "--json").stdout)["device"]["name"] == "Fake device"
    paths = strict(within(tmp_path, "info", "--paths", "--json", env={"GPUBENCH_RESULTS": ""}).stdout)
    assert paths["paths"]["results"] == str(tmp_path / "here")
    assert paths["paths"]["baselines"] == str(tmp_path / "gpubench-baselines")
    schema = strict(within(tmp_path, "schema").stdout)
    assert schema["properties"]["schema"]


JSON: list[tuple[str, ...]] = [
    ("run", OK, "-p", "n=1", *FAKE, "--json"),
    ("show", "latest~1", "--json"),
    ("roofline", "latest~1", "--json"),
    ("claims", "latest~1", "--json"),
    ("claims", "latest~1", "C58", "--json"),
    ("explain", "latest~1", "-p", "n=1", "--json"),
    ("advise", "64x65x66", "--gpu", "h200", "--json"),
    ("compare", "latest~1", "latest~1", "--json"),
    ("baseline", "list", "--json"),
    ("list", "--json"),
    ("info", *FAKE, "--json"),
    ("info", "--paths", "--json"),
    ("doctor", *FAKE, "--json"),
]


@pytest.mark.parametrize("words", JSON, ids=" ".join)
def test_a_warning_leaves_one_document_on_stdout(folder: Path, tmp_path: Path, words: tuple[str, ...]):
    """A variable that looks like a setting misspelt is said by every command: a build may go by it."""
    shutil.copytree(folder / "results", tmp_path / "results")
    done = within(tmp_path, *words, env={"GPUBENCH_MARGN": "3%"})
    assert done.returncode == 0, done.stderr
    assert isinstance(strict(done.stdout), dict)
    assert done.stderr.count("gpubench: GPUBENCH_MARGN is not a setting; did you mean GPUBENCH_MARGIN?\n") == 1


def test_a_run_file_in_a_folder_named_like_markup(folder: Path):
    (folder / "[/bold]").mkdir(parents=True, exist_ok=True)
    name = "[/bold]/a [red]run.json"
    shutil.copy(next((folder / "results").glob("*-ok-*.json")), folder / name)
    done = within(folder, "show", name, "--export", "[/bold]/[b].md")
    assert (done.returncode, done.stderr) == (0, "exported [/bold]/[b].md\n")
    assert done.stdout.startswith("ok/double")
    (folder / name).write_text("{")
    done = within(folder, "show", name)
    assert done.stderr.startswith(f"gpubench: {name}: ends in the middle")


def test_a_roofline_is_exported_as_one(folder: Path):
    done = within(folder, "roofline", "latest~1", "--export", "roof.json", "--export", "roof.md", "--no-plot")
    assert done.returncode == 0
    assert done.stderr == "exported roof.json\nexported roof.md\n"
    assert strict((folder / "roof.json").read_text()) == strict(within(folder, "roofline", "latest~1", "--json").stdout)
    assert within(folder, "roofline", "latest~1", "--export", "roof.csv").returncode == 2


def test_a_failed_export_of_show_leaves_the_old_file(folder: Path):
    (folder / "kept.txt").write_text("old")
    done = gpubench(folder, "show", "--export", "kept.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert (folder / "kept.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("words", "env", "coloured"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ((), {"FORCE_COLOR": "1", "TERM": "dumb"}, False),
        (("--no-color",), {"FORCE_COLOR": "1"}, False),
    ],
    ids=str,
)
def test_colour_is_for_terminals_or_where_it_is_forced(
    folder: Path, words: tuple[str, ...], env: dict[str, str], coloured: bool
):
    done = within(folder, "show", *words, env={"TERM": "xterm-256color", **env})
    assert done.returncode == 0
    assert ("\x1b[" in done.stdout) == coloured


def test_forced_colour_makes_no_terminal_of_a_log(tmp_path: Path):
    done = gpubench(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, env={"FORCE_COLOR": "1", "TERM": "xterm"})
    assert done.stderr.splitlines()[0].startswith("[1/2] ok/double[")
    assert "\x1b" not in done.stderr
    assert "\x1b[" in done.stdout


def test_nothing_is_wider_than_80_columns(folder: Path):
    for words in (("list",), ("show", "--all"), ("info", *FAKE), ("roofline", "latest~1")):
        done = within(folder, *words)
        assert done.returncode == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80, words


@pytest.mark.parametrize("columns", ["0", "00", "", "wide"])
def test_a_width_that_is_none_is_80(folder: Path, columns: str):
    for words in (("show", "latest~1"), ("explain", "latest~1", "n=1")):
        env = {"COLUMNS": columns}
        assert within(folder, *words, env=env).stdout == within(folder, *words, env={"COLUMNS": "80"}).stdout


def test_help_shows_arguments_as_they_are_typed(folder: Path):
    for words, usage, argument in (
        (("report",), "gpubench report [OPTIONS] [RUN]...", "RUN..."),
        (("explain",), "gpubench explain [OPTIONS] [RUN] [CASE]...", "CASE..."),
        (("baseline", "save"), "gpubench baseline save [OPTIONS] NAME [RUN]...", "NAME"),
        (("compare",), "gpubench compare [OPTIONS] [BASE]... [NEW]", "[BASE]... [NEW]"),
    ):
        text = within(folder, *words, "--help").stdout
        assert text.splitlines()[0] == f"Usage: {usage}"
        assert re.search(rf"^  {re.escape(argument)} +The ", text, re.MULTILINE)
        assert not re.search(r"<(str|list)", text), "types are Python's words"


def test_list_shows_what_was_named(folder: Path):
    def named(pattern: str) -> set[str]:
        content = strict(within(folder, "list", pattern, "--json").stdout)
        benchmarks = {each["name"] for suite in content["suites"] for each in suite["benchmarks"]}
        return benchmarks | {plan["name"] for plan in content["plans"]} | {claim["id"] for claim in content["claims"]}

    assert named("ci") == {"ci"}, "a name is no part of coalescing"
    assert named("attention/exactness") == {"attention/exactness"}
    assert {"peak/fma", "peak/matmul", "C25"} <= named("peak")
    assert {"peak/matmul", "waves/matmul", "matmul-sweep/matmul", "C01"} <= named("matmul")
    assert not {"peak/fma", "C25"} & named("matmul")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_any_encoding_will_do(folder: Path, encoding: str):
    done = gpubench(folder, "run", OK, *FAKE, "--results", "other", env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    if encoding == "ascii":
        assert done.stdout.startswith("ok/double - Fake device - fp32 - cold, burst\ncase")
        assert "n=1   1.00 us +- <0.1 %" in done.stdout
        assert (done.stdout + done.stderr).isascii()
    document = gpubench(folder, "show", "--json", env={"PYTHONIOENCODING": encoding}).stdout
    assert statuses(strict(document)) == ["ok", "incorrect", "error"]


def test_the_c_locale_will_do(folder: Path):
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in (("show",), ("show", "n\u00f6where.json")):
        done = gpubench(folder, *words, env=env)
        assert done.returncode == (2 if "n\u00f6where.json" in words else 0), done.stderr
        assert done.stdout.isascii()
        assert "internal error" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("show", "cpu.json", "--all"),
        ("show", "cpu.json", "--format", "md"),
        ("roofline", "cpu.json"),
        ("explain", "cpu.json", "-p", "n=257"),
        ("explain", "cpu.json", "-p", "mib=64"),
        ("explain", "cpu.json", "--curve"),
        ("compare", "cpu.json", "slower.json"),
        ("compare", "cpu.json", "slower.json", "--why", "n=257"),
    ],
    ids=" ".join,
)
def test_of_a_cpu_nothing_is_said_that_only_a_gpu_has(tmp_path: Path, words: tuple[str, ...]):
    for number, name in enumerate(("cpu.json", "slower.json")):
        rows = [make_matmul(n, "float32", 4e10 / (1 + number)) for n in (255, 256, 257, 512)]
        streams = [make_bandwidth(rate=1e10, mib=mib) for mib in (64, 128)]
        roofs = make_ceilings("float32", 8e10, 2e10)
        started = f"2026-07-12T10:15:0{number}Z"
        run = make_run([*rows, *streams], device=CPU, ceilings=roofs, run_id=name, started_at=started)
        for record in run.records:
            record.samples.sm_mhz = [None] * len(record.samples.sm_mhz)
        (tmp_path / name).write_bytes(runfile.encode(run))
    done = within(tmp_path, *words)
    assert done.returncode == (6 if words[0] == "compare" else 0), done.stderr
    said = done.stdout + done.stderr
    assert re.findall(r"\bGPUs?\b|\bSMs?\b|HBM|\bwarps?\b|tensor core|NVML|multiprocessor", said) == []


def test_reading_writes_nothing(folder: Path):
    before = saved(folder)
    for words in (("show",), ("roofline", "latest~1")):
        assert within(folder, *words).returncode == 0
    assert saved(folder) == before


def test_reading_needs_no_home(tmp_path: Path):
    env = {"HOME": "/nonexistent", "GPUBENCH_RESULTS": ""}
    assert gpubench(tmp_path, "list", env=env).returncode == 0
    done = gpubench(tmp_path, "show", env=env)
    assert (done.returncode, done.stdout) == (5, "")
