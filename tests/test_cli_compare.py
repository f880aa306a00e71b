"""compare and baseline as their user meets them: words, exit codes, documents, what a build is told."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import CPU, GPU, make_bandwidth, make_matmul, make_record, make_run
from command import FAKE, OK, gpubench, strict, within

from gpubench.exits import Exit
from gpubench.result import Conditions, Metric, Record, Run
from gpubench.store import runfile

PEAK = 800e12
SIZES = range(256, 1792, 128)
FINGERPRINT = {"id": "0123456789abcdef", "device": {"kind": "cuda", "name": "NVIDIA H200", "power_limit_w": 700.0}}
OTHER = {"id": "fedcba9876543210", "device": {"kind": "cuda", "name": "NVIDIA H100 PCIe", "power_limit_w": 350.0}}


def rows(slow: float = 1.0, noise: float = 0.0, **fields: Any) -> list[Record]:
    """A sweep that takes `slow` times as long, every other row a little more or less."""
    return [make_matmul(n, peak=PEAK / slow * (1 + noise * (-1) ** n), **fields) for n in SIZES]


def sweep(number: int = 0, records: list[Record] | None = None, **fields: Any) -> Run:
    """A run; those of a higher number started later."""
    return make_run(
        rows() if records is None else records,
        run_id=f"20260712-1015{number:02}-7f3a",
        started_at=f"2026-07-12T10:15:{number:02}Z",
        **({"fingerprint": FINGERPRINT} | fields),
    )


def save(path: Path, run: Run) -> str:
    """Write a run file; its name below the current folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(runfile.encode(run))
    return path.name


def edited(path: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """A run file changed by hand, in its JSON."""
    content = json.loads(runfile.encode(sweep(1)))
    change(content)
    path.write_text(json.dumps(content))
    return path.name


@dataclasses.dataclass
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


class Shell:
    """The command within this process, in a folder of its own: arguments in, both streams and an exit code out."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        for name in [name for name in os.environ if name.startswith(("GITHUB_", "GPUBENCH_", "CI"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("GPUBENCH_RESULTS", str(folder / "results"))
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.chdir(folder)

    def __call__(self, *words: str) -> Done:
        done = within(self.folder, *words, env=os.environ)
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def save(self, name: str, run: Run) -> str:
        """A run file in the folder, or below it."""
        save(self.folder / name, run)
        return name


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


# Every exit code, by the command itself


def zero(folder: Path) -> tuple[str, ...]:
    return save(folder / "a.json", sweep()), "a.json"


def usage_margin(folder: Path) -> tuple[str, ...]:
    return *zero(folder), "--margin", "10"


def usage_newer(folder: Path) -> tuple[str, ...]:
    return *zero(folder)[:1], edited(folder / "b.json", lambda content: content.update(schema="gpubench.run/2"))


def regression(folder: Path) -> tuple[str, ...]:
    bases = [save(folder / f"{n}.json", sweep(n, rows(noise=0.001 * (n % 3)))) for n in range(5)]
    return *bases, save(folder / "new.json", sweep(9, rows(1.1)))


def regressions_256(folder: Path) -> tuple[str, ...]:
    sizes = range(256, 512)
    assert len(sizes) == 256
    for n in range(5):
        save(folder / f"{n}.json", sweep(n, [make_record(params={"n": m}, time_ns=100_000 + 10 * n) for m in sizes]))
    save(folder / "new.json", sweep(9, [make_record(params={"n": m}, time_ns=110_000) for m in sizes]))
    return *(f"{n}.json" for n in range(5)), "new.json"


def failed(folder: Path) -> tuple[str, ...]:
    new = rows()
    new[3] = make_record(params=new[3].params, status="error", reason="illegal address")
    return save(folder / "a.json", sweep()), save(folder / "b.json", sweep(1, new))


def missing(folder: Path) -> tuple[str, ...]:
    return save(folder / "a.json", sweep()), save(folder / "b.json", sweep(1, rows()[:-1]))


def no_baseline(folder: Path) -> tuple[str, ...]:
    return "@main", save(folder / "b.json", sweep())


def first_run(folder: Path) -> tuple[str, ...]:
    return "base.json", save(folder / "b.json", sweep())


def only_new(folder: Path) -> tuple[str, ...]:
    return save(folder / "a.json", sweep(0, [])), save(folder / "b.json", sweep(1))


def suspect(folder: Path) -> tuple[str, ...]:
    return save(folder / "a.json", sweep()), save(folder / "b.json", sweep(1, rows(1.1)))


def other_device(folder: Path) -> tuple[str, ...]:
    other = sweep(1, rows(1.1), fingerprint=OTHER, device=GPU | {"name": "NVIDIA H100 PCIe"})
    return save(folder / "a.json", sweep()), save(folder / "b.json", other)


@pytest.mark.parametrize(
    ("prepare", "code", "words"),
    [
        (zero, 0, "12 same"),
        (usage_margin, 2, "10% if that is meant"),
        (usage_newer, 2, "written by a newer gpubench"),
        (regression, 3, "12 regression"),
        (regressions_256, 3, "256 regression"),
        (failed, 4, "1 failed"),
        (missing, 4, "1 missing"),
        (no_baseline, 5, "no baseline 'main'"),
        (first_run, 5, "no baseline: no run file base.json"),
        (only_new, 5, "12 new"),
        (suspect, 6, "12 suspect"),
        (other_device, 7, "12 not comparable"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_exit_codes(tmp_path: Path, prepare: Callable[[Path], tuple[str, ...]], code: int, words: str) -> None:
    done = gpubench(tmp_path, "compare", *prepare(tmp_path))
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if code:
        assert done.stderr.startswith("gpubench: ")


# O07: sets that do not overlap


def test_an_empty_new_run_never_passes(shell: Shell) -> None:
    shell.save("a.json", sweep())
    shell.save("b.json", sweep(1, []))
    assert shell("compare", "a.json", "b.json").code == 4
    done = shell("compare", "a.json", "b.json", "--fail-on", "none")
    assert done.code == 5
    assert "nothing to judge (exit 5): 0 matched · 12 missing; no row has a figure on both sides" in done.err
    shell.save("a.json", sweep(0, []))
    assert shell("compare", "a.json", "b.json").code == 5


def test_renamed_rows_never_pass(shell: Shell) -> None:
    shell.save("a.json", sweep())
    renamed = [dataclasses.replace(row, benchmark="mm", id=row.id.replace("/matmul", "/mm")) for row in rows()]
    shell.save("b.json", sweep(1, renamed))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "0 matched · 12 missing · 12 new" in done.out) == (4, True)
    assert shell("compare", "a.json", "b.json", "--fail-on", "regression,suspect").code == 5


def test_missing_fails_unless_allowed_and_new_passes(shell: Shell) -> None:
    shell.save("all.json", sweep())
    shell.save("fewer.json", sweep(1, rows()[:-1]))
    assert shell("compare", "all.json", "fewer.json").code == 4
    assert shell("compare", "all.json", "fewer.json", "--fail-on", "regression,suspect,failed").code == 0
    done = shell("compare", "fewer.json", "all.json")
    assert (done.code, "11 matched · 1 new · 11 same" in done.out) == (0, True)


# O08, O10, O14, O15: figures that are none


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_figure_of_zero_or_less_is_invalid_and_the_others_are_judged(
    shell: Shell, value: float, swapped: bool
) -> None:
    shell.save("a.json", sweep())
    broken = rows()
    broken[0].metrics[1].value = value
    shell.save("b.json", sweep(1, broken))
    done = shell("compare", *(("b.json", "a.json") if swapped else ("a.json", "b.json")))
    assert done.code == 4
    assert "12 matched · 1 invalid · 11 same" in done.out
    assert shell("compare", "b.json", "b.json").code == 4


def value_of(value: object) -> Callable[[dict[str, Any]], object]:
    def change(content: dict[str, Any]) -> None:
        content["records"][2]["metrics"][0]["value"] = value

    return change


@pytest.mark.parametrize("value", [None, "1.2", float("nan"), float("inf"), float("-inf"), [1.0], {}, True], ids=repr)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_file_with_no_number_is_refused_by_name_and_field(shell: Shell, value: object, swapped: bool) -> None:
    shell.save("a.json", sweep())
    edited(shell.folder / "b.json", value_of(value))
    done = shell("compare", *(("b.json", "a.json") if swapped else ("a.json", "b.json")))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("gpubench: b.json: ")


TEXTS = {
    "empty": b"",
    "list": b"[]",
    "cut": b'{"schema": "gpubench.run/1", ',
    "bom": b"\xef\xbb\xbf{}",
    "twice": b'{"schema": "gpubench.run/1", "schema": "gpubench.run/1"}',
    "huge": b'{"schema": 1e999}',
    "long": b'{"schema": ' + b"9" * 5000 + b"}",
    "deep": b"[" * 100_000,
    "bytes": b"\xff\xfe\x00",
    "gzip": b"\x1f\x8b\x08\x00nonsense",
    "foreign": b'{"benchmarks": []}',
    "other": b'{"schema": "gpubench.comparison/1"}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_file_that_is_no_run_is_one_line_and_2(shell: Shell, text: bytes) -> None:
    shell.save("a.json", sweep())
    (shell.folder / "b.json").write_bytes(text)
    for words in (("a.json", "b.json"), ("b.json", "a.json"), ("a.json", "b.json", "--json")):
        done = shell("compare", *words)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert done.err.startswith("gpubench: b.json: ")


def test_the_same_row_twice_is_refused(shell: Shell) -> None:
    shell.save("a.json", sweep())
    edited(shell.folder / "b.json", lambda content: content["records"].append(content["records"][0]))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "records[12].id: the same row as records[0]" in done.err) == (2, True)


def test_a_time_edited_by_hand_is_not_believed(shell: Shell) -> None:
    shell.save("a.json", sweep())
    faster = rows()
    faster[0].metrics[0].value /= 2
    shell.save("b.json", sweep(1, faster))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "not the median of the row's own samples" in done.out.replace("\n", " ")) == (4, True)


@pytest.mark.parametrize("unit", ["s", "foo", "GiB/s", ""])
def test_other_units_are_invalid_and_never_compared_as_numbers(shell: Shell, unit: str) -> None:
    shell.save("a.json", sweep())
    others = rows()
    others[0].metrics[1].unit = unit
    shell.save("b.json", sweep(1, others))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "1 invalid · 11 same" in done.out) == (4, True)


# O09: direction


def test_directions(shell: Shell) -> None:
    def rate(value: float) -> Run:
        row = make_record(params={"n": 1})
        row.samples.gpu_ns, row.samples.launches, row.samples.block, row.samples.sm_mhz = [], [], [], []
        row.metrics = [Metric("flops", value, "FLOP/s", "higher", True)]
        return sweep(int(value / 1e14), [row])

    shell.save("500.json", rate(5e14))
    shell.save("400.json", rate(4e14))
    assert shell("compare", "500.json", "400.json").code == 6
    done = shell("compare", "400.json", "500.json")
    assert (done.code, "1 better" in done.out, "flops: higher is better" in done.out) == (0, True, True)
    shell.save("1.json", sweep(0, [make_record(time_ns=100_000)]))
    shell.save("1.3.json", sweep(1, [make_record(time_ns=130_000)]))
    done = shell("compare", "1.json", "1.3.json")
    assert (done.code, "time: lower is better" in done.out, "+30.0 %" in done.out) == (6, True, True)


# O11: failures


def test_failed_points_and_fixed_ones(shell: Shell) -> None:
    broken = rows()
    leftover = make_record(params=broken[0].params, status="incorrect", reason="wrong", metrics=broken[0].metrics)
    shell.save("a.json", sweep())
    shell.save("b.json", sweep(1, [leftover, *broken[1:]]))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "records[0].metrics" in done.err) == (2, True)
    broken[0] = dataclasses.replace(leftover, metrics=[])
    shell.save("b.json", sweep(1, broken))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "1 failed" in done.out, "newly incorrect" in done.out) == (4, True, True)
    assert re.search(r"^n=256 +[\d.]+ TFLOP/s +incorrect +failed$", done.out, re.MULTILINE)
    done = shell("compare", "b.json", "a.json")
    assert (done.code, "1 fixed" in done.out) == (0, True)
    done = shell("compare", "b.json", "b.json")
    assert "1 still failing" in done.out
    shell.save("c.json", sweep(1, [make_record(params=row.params, status="error", reason="x") for row in rows()]))
    assert shell("compare", "a.json", "c.json").code == 4


# O12: other hardware, other settings


def test_another_device_is_shown_on_demand_and_never_judged(shell: Shell) -> None:
    words = other_device(shell.folder)
    done = shell("compare", *words)
    assert done.code == 7
    assert "device: NVIDIA H200 against NVIDIA H100 PCIe" in done.out
    done = shell("compare", *words, "--host-mismatch", "warn")
    assert (done.code, "12 not comparable" in done.out, "-9." in done.out) == (0, True, True)
    cpu = sweep(1, fingerprint={"id": "0" * 16, "device": {"kind": "cpu", "name": "Example"}}, device=CPU)
    assert shell("compare", words[0], shell.save("cpu.json", cpu)).code == 7


def test_another_driver_is_compared_and_named(shell: Shell) -> None:
    shell.save("a.json", sweep(software={"driver": "580.1"}))
    shell.save("b.json", sweep(1, software={"driver": "590.2"}))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "differs  driver: 580.1 → 590.2" in done.out) == (0, True)


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": Conditions(load="sustained")},
        {"conditions": Conditions(cache="hot")},
        {"definition": "f" * 16},
    ],
    ids=str,
)
def test_other_conditions_and_an_edited_definition_are_not_comparable(shell: Shell, fields: dict[str, Any]) -> None:
    shell.save("a.json", sweep())
    shell.save("b.json", sweep(1, rows(**fields)))
    assert shell("compare", "a.json", "b.json").code == 7
    some = [*rows()[:-1], make_matmul(SIZES[-1], **fields)]
    shell.save("c.json", sweep(1, some))
    done = shell("compare", "a.json", "c.json")
    assert (done.code, "11 same" in done.out) == (4, True)


def test_a_reason_is_told_of_all_rows_where_it_is_that_of_all(shell: Shell) -> None:
    changed = rows(definition="f" * 16)
    words = ("compare", shell.save("a.json", sweep()), shell.save("b.json", sweep(1, changed)))
    assert re.search(
        r"\(exit 7\): 12 matched · 12 not comparable; definition: \w+ against f+$", shell(*words).err, re.M
    )
    shell.save("b.json", sweep(1, [*changed[:-1], dataclasses.replace(changed[-1], definition="e" * 16)]))
    assert re.search(r"\(exit 7\): 12 matched · 12 not comparable$", shell(*words).err, re.M)


# O13: one sample


def test_one_sample_a_side(shell: Shell) -> None:
    def one(number: int, time_ns: int) -> Run:
        row = make_record(time_ns=time_ns, half=None)
        row.samples.gpu_ns, row.samples.launches = [time_ns], [1]
        row.samples.block, row.samples.sm_mhz = [0], [None]
        assert row.summary is not None
        row.summary.n = 1
        return sweep(number, [row])

    shell.save("a.json", one(0, 100_000))
    shell.save("b.json", one(1, 103_100))
    shell.save("c.json", one(2, 102_900))
    done = shell("compare", "a.json", "b.json", "--json")
    change = strict(done.out)["rows"][0]["changes"][0]
    assert (done.code, change["low"], change["high"]) == (6, None, None)
    done = shell("compare", "a.json", "c.json")
    assert (done.code, "+2.9 %  same" in done.out) == (0, True)


# Margins and other flags


@pytest.mark.parametrize("margin", ["10", "-5", "-5%", "nan", "inf", "100%", "1e9%", "", "%", "3 percent", "0x1", "٣%"])
def test_margin_nonsense(shell: Shell, margin: str) -> None:
    words = zero(shell.folder)
    done = shell("compare", *words, f"--margin={margin}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "--margin" in done.err


@pytest.mark.parametrize(("margin", "code"), [("0.12", 0), ("12%", 0), ("12 %", 0), ("0.05", 6), ("0%", 6)])
def test_margins(shell: Shell, margin: str, code: int) -> None:
    assert shell("compare", *suspect(shell.folder), "--margin", margin).code == code


def test_settings_of_the_project(shell: Shell) -> None:
    words = suspect(shell.folder)
    (shell.folder / "gpubench.yaml").write_text("margin: 12%\n")
    assert shell("compare", *words).code == 0
    (shell.folder / "gpubench.yaml").write_text("margins: {matmul-sweep/*: 12%}\n")
    assert shell("compare", *words).code == 0
    (shell.folder / "gpubench.yaml").write_text("fail_on: regression\n")
    assert shell("compare", *words).code == 0
    assert shell("compare", *words, "--fail-on", "suspect").code == 6
    (shell.folder / "gpubench.yaml").write_text("fail_on: regresion\n")
    done = shell("compare", *words)
    assert done.err.startswith("gpubench: gpubench.yaml: fail_on: no verdict 'regresion'; did you mean regression? (")
    shell.monkeypatch.setenv("GPUBENCH_FAIL_ON", "slow")
    assert shell("compare", *words).err.startswith("gpubench: GPUBENCH_FAIL_ON: no verdict 'slow' (")
    shell.monkeypatch.delenv("GPUBENCH_FAIL_ON")
    assert shell("compare", *words, "--fail-on", "slow").err.startswith("gpubench: --fail-on: no verdict 'slow' (")
    (shell.folder / "gpubench.yaml").write_text("margins: {matmul-sweep: 12}\n")
    done = shell("compare", *words)
    assert (done.code, "gpubench.yaml:1: margins.matmul-sweep" in done.err) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        ("--fail-on", "regresion"),
        ("--fail-on", ""),
        ("--host-mismatch", "ignore"),
        ("--annotate", "gitlab"),
        ("--format", "jsonl"),
        ("--json", "--format", "md"),
        ("--why", "n=257"),
        ("--why", "n=256", "--json"),
        ("--export", "x.svg"),
        ("--export", "none/x.md"),
        ("--summary", "none/x.md"),
        ("--frobnicate",),
    ],
    ids=" ".join,
)
def test_wrong_flags(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell("compare", *zero(shell.folder), *words)
    assert (done.code, done.err.count("\n")) == (2, 1)


# Which runs


def test_what_is_left_out_is_the_latest_and_said(shell: Shell) -> None:
    shell.save("results/20260712-101500-h200-sweep-0000.json", sweep(0))
    done = shell("compare")
    assert (done.code, done.out) == (5, "")
    assert "a single run is stored" in done.err
    shell.save("results/20260713-101500-h200-sweep-0001.json", sweep(1))
    done = shell("compare")
    assert done.code == 0
    assert "latest run: results/20260713-101500-h200-sweep-0001.json\n" in done.err
    assert "base: results/20260712-101500-h200-sweep-0000.json\n" in done.err
    done = shell("compare", "latest~1")
    assert (done.code, "latest run: results/20260713" in done.err) == (0, True)
    assert shell("compare", "latest~1", "-q").err == ""


def test_no_run_at_all(shell: Shell) -> None:
    assert shell("compare").code == 5
    assert shell("compare", "a.json", "b.json").code == 2
    assert shell("compare", "latest~x", shell.save("a.json", sweep())).code == 2
    (shell.folder / "folder").mkdir()
    assert shell("compare", "folder", "a.json").code == 2


def test_a_run_against_itself_is_said(shell: Shell) -> None:
    done = shell("compare", *zero(shell.folder))
    assert (done.code, "base and new are the same run" in done.out) == (0, True)


def test_an_interrupted_run_is_said(shell: Shell) -> None:
    shell.save("a.json", sweep())
    shell.save("b.json", sweep(1, rows()[:4], status="interrupted"))
    done = shell("compare", "a.json", "b.json")
    assert (done.code, "the new run is interrupted" in done.out) == (4, True)
    done = shell("compare", "a.json", "b.json", "--json")
    assert "gpubench: the new run is interrupted" in done.err
    assert strict(done.out)["new"]["status"] == "interrupted"


def test_a_quick_run_never_gates(shell: Shell) -> None:
    shell.save("a.json", sweep())
    shell.save("b.json", sweep(1, rows(1.5), tags=["quick"]))
    done = shell("compare", "a.json", "b.json", "--export", "c.xml")
    assert (done.code, "12 suspect" in done.out, "quick" in done.out) == (0, True, True)
    assert ElementTree.parse(shell.folder / "c.xml").getroot().attrib["failures"] == "0"


def test_the_reference_with_the_most_rows_of_the_new_run_is_taken(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shell.folder / "reference"
    save(folder / "h200" / "bandwidth.json", sweep(0, [make_bandwidth()]))
    save(folder / "h200" / "matmul.json", sweep(0))
    monkeypatch.setattr("gpubench.cli.sides.reference_folder", lambda: folder)
    shell.save("a.json", sweep(1))
    done = shell("compare", "ref:h200", "a.json")
    assert (done.code, "base     ref:h200/matmul · " in done.out) == (0, True)
    done = shell("compare", "ref:h200/bandwidth", "a.json")
    assert (done.code, done.out, "ref:h200/bandwidth has no row of the new run" in done.err) == (5, "", True)
    assert shell("compare", "ref:h100", "a.json").code == 2


def test_rows_of_a_reference_are_not_missed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    save(shell.folder / "reference" / "h200" / "matmul.json", sweep(0))
    monkeypatch.setattr("gpubench.cli.sides.reference_folder", lambda: shell.folder / "reference")
    shell.save("a.json", sweep(1, rows()[:3]))
    done = shell("compare", "ref:h200", "a.json")
    assert (done.code, "3 matched · 3 same" in done.out) == (0, True)
    assert "9 rows of ref:h200/matmul are not in the new run: left out" in done.out
    shell.save("b.json", sweep(1, rows(conditions=Conditions(cache="hot"))[:3]))
    assert shell("compare", "ref:h200", "b.json").code == 7


def test_is_my_number_normal(tmp_path: Path) -> None:
    """The command of the README, on the reference run of this checkout."""
    done = gpubench(tmp_path, "compare", "ref:h200", "ref:h200/matmul-sweep")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\n(\d+) matched · \1 same\n$", done.stdout)


# Baselines


def test_a_baseline_from_saving_to_deleting(shell: Shell) -> None:
    shell.save("a.json", sweep(0))
    shell.save("b.json", sweep(1, rows(1.1)))
    done = shell("baseline", "save", "main", "a.json")
    assert (done.code, done.out) == (0, "")
    assert "saved gpubench-baselines/main/0123456789abcdef.json.gz\n" in done.err
    assert shell("baseline", "save", "main", "b.json").code == 2
    done = shell("compare", "@main", "b.json")
    assert (done.code, "base     @main/0123456789abcdef · NVIDIA H200" in done.out) == (6, True)
    assert shell("show", "@main", "-q").code == 0
    done = shell("baseline", "list")
    assert "@main/0123456789abcdef" in done.out
    document = strict(shell("baseline", "show", "main", "--json").out)
    assert [one["run_id"] for one in document["baselines"]] == [sweep(0).run_id]
    assert shell("baseline", "save", "main", "b.json", "--replace").code == 0
    assert shell("compare", "@main", "b.json").code == 0
    done = shell("baseline", "rm", "main")
    assert (done.code, "deleted gpubench-baselines/main/0123456789abcdef.json.gz" in done.err) == (0, True)
    assert shell("compare", "@main", "b.json").code == 5
    assert shell("baseline", "show", "main").code == 5
    assert shell("baseline", "rm", "main").code == 5
    assert "no baseline: gpubench baseline save" in shell("baseline", "list").out
    assert strict(shell("baseline", "list", "--json").out) == {"baselines": []}


def test_five_runs_of_a_baseline_tell_a_regression(shell: Shell) -> None:
    for number in range(5):
        shell.save("a.json", sweep(number, rows(noise=0.001 * (number % 3))))
        assert shell("baseline", "save", "main", "a.json", "--add").code == 0
    shell.save("new.json", sweep(9, rows(1.1)))
    done = shell("compare", "@main", "new.json")
    assert (done.code, "12 regression" in done.out) == (3, True)
    assert "@main/0123456789abcdef, 5 runs" in done.out
    shown = json.loads(shell("compare", "@main", "new.json", "--json").out)["base"]
    assert shown["run_id"] == sweep(4).run_id, "the newest"


def test_the_project_s_baseline_is_compared_with_where_nothing_is_said(shell: Shell) -> None:
    (shell.folder / "gpubench.yaml").write_text("baseline: main\n")
    shell.save("results/20260713-101500-h200-sweep-0001.json", sweep(1))
    (shell.folder / "below").mkdir()
    shell.monkeypatch.chdir(shell.folder / "below")
    assert shell("compare").code == 5
    assert shell("baseline", "save", "main", "latest").code == 0
    assert (shell.folder / "gpubench-baselines" / "main").is_dir()
    done = shell("compare")
    assert (done.code, "base: @main/0123456789abcdef" in done.err) == (0, True)


def test_the_baseline_of_the_new_run_s_device(shell: Shell) -> None:
    h100 = sweep(1, rows(1.5), fingerprint=OTHER, device=GPU | {"name": "NVIDIA H100 PCIe"})
    for name, run in (("a.json", sweep(0)), ("b.json", h100)):
        shell.save(name, run)
        assert shell("baseline", "save", "main", name).code == 0
        assert shell("compare", "@main", name).code == 0
    done = shell("show", "@main")
    assert (done.code, "has runs of 2 devices: name one" in done.err) == (2, True)
    assert shell("show", "@main/fedcba9876543210").code == 0


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/b", "", ".", "-x", "x" * 65, "[/bold]"])
def test_names_that_are_none(shell: Shell, name: str) -> None:
    shell.save("a.json", sweep())
    done = shell("baseline", "save", "--", name, "a.json")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert not (shell.folder / "gpubench-baselines").exists()


def test_a_quick_or_interrupted_run_is_no_baseline(shell: Shell) -> None:
    for fields in ({"tags": ["quick"]}, {"status": "interrupted"}):
        shell.save("a.json", sweep(**fields))
        assert shell("baseline", "save", "main", "a.json").code == 2
    assert shell("baseline", "save", "main", "a.json", "--add", "--replace").code == 2
    assert shell("baseline", "save", "main", "none.json").code == 2
    assert shell("baseline").code == 2


def test_a_broken_baseline_is_listed_and_refused(shell: Shell) -> None:
    shell.save("a.json", sweep())
    assert shell("baseline", "save", "main", "a.json").code == 0
    (shell.folder / "gpubench-baselines/main/0123456789abcdef.json.gz").write_bytes(b"{")
    done = shell("baseline", "list")
    assert (done.code, "ends in the middle" in re.sub(r"\s+", " ", done.out)) == (0, True)
    assert shell("compare", "@main", "a.json").code == 2


# O34: machine output


@pytest.mark.parametrize("form", ["json", "csv", "md", "xml"])
def test_stdout_is_one_document(shell: Shell, form: str) -> None:
    words = failed(shell.folder)
    shell.monkeypatch.setenv("GPUBENCH_MARGN", "3%")
    shell.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = shell("compare", *words, "--format", form)
    assert done.code == 4
    if form == "json":
        document = strict(done.out)
        assert (document["details"]["exit_code"], document["counts"]["failed"]) == (4, 1)
        assert document["details"]["fail_on"] == [
            "failed",
            "inconclusive",
            "invalid",
            "missing",
            "not comparable",
            "regression",
            "suspect",
        ]
    elif form == "xml":
        assert ElementTree.fromstring(done.out.encode()).tag == "testsuites"
    assert "::error" not in done.out
    assert "::error title=gpubench failed::" in done.err


def test_exports_and_the_old_file_where_one_fails(shell: Shell) -> None:
    words = suspect(shell.folder)
    done = shell(
        "compare", *words, *(part for end in ("json", "md", "csv", "xml") for part in ("--export", f"c.{end}"))
    )
    assert (done.code, done.err.count("exported c.")) == (6, 4)
    assert strict((shell.folder / "c.json").read_text())["schema"] == "gpubench.comparison/1"
    assert (shell.folder / "c.md").read_text().count("suspect |") == 12


def test_what_a_build_on_github_is_told(shell: Shell) -> None:
    words = suspect(shell.folder)
    assert "::" not in shell("compare", *words).err
    assert "::error" in shell("compare", *words, "--annotate", "github").err
    shell.monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert "::" not in shell("compare", *words).err
    shell.monkeypatch.setenv("GITHUB_ACTIONS", "true")
    shell.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shell.folder / "step.md"))
    done = shell("compare", *words)
    assert done.err.count("::error title=gpubench suspect::") == 10
    assert "::notice title=gpubench::2 more rows" in done.err
    assert (shell.folder / "step.md").read_text().startswith("### 12 matched · 12 suspect")
    assert "::" not in shell("compare", *words, "--annotate", "none").err
    assert shell("compare", *words, "--summary", "mine.md").code == 6
    assert (shell.folder / "mine.md").exists()
    shell.monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(shell.folder / "none" / "step.md"))
    done = shell("compare", *words)
    assert (done.code, "gpubench: no step summary: cannot write" in done.err) == (6, True)


def test_why_one_row(shell: Shell) -> None:
    done = shell("compare", *suspect(shell.folder))
    typed = re.search(r"^next  the same with --why '(.*)'$", done.err, re.MULTILINE)
    assert typed
    done = shell("compare", "a.json", "b.json", "--why", typed[1])
    assert done.code == 6
    assert done.out.startswith(f"matmul-sweep/matmul[dtype=bfloat16,k={typed[1][2:]},")
    assert "verdict      suspect: beyond the margin" in done.out
    assert "case " not in done.out
    assert "--why" not in done.err, "nobody is sent where he is"


def test_only_changed_and_all(shell: Shell) -> None:
    shell.save("a.json", sweep(0, [make_matmul(n) for n in range(256, 296)]))
    shell.save("b.json", sweep(1, [make_matmul(n, peak=PEAK / (2 if n == 260 else 1)) for n in range(256, 296)]))

    def sizes(*words: str) -> int:
        return len(re.findall(r"^n=", shell("compare", "a.json", "b.json", *words).out, re.MULTILINE))

    assert (sizes(), sizes("--all"), sizes("--only-changed")) == (24, 40, 1)


# O35: user text


def test_markup_in_names_folders_and_devices(shell: Shell) -> None:
    row = make_record("s", "gemm[fp16]", params={"n": 1, "mode": "[/red]"})
    bad = dataclasses.replace(row, status="error", reason="ptxas [/bold] [x", metrics=[], summary=None)
    shell.save("[/bold]/a [red].json", sweep(0, [row, make_matmul(256)], device=GPU | {"name": "X [/red]"}))
    shell.save("[/bold]/b.json", sweep(1, [bad, make_matmul(256)], device=GPU | {"name": "X [/red]"}))
    done = shell("compare", "[/bold]/a [red].json", "[/bold]/b.json", "--export", "[/bold]/[b].md")
    assert done.code == 4
    for words in ("[/bold]/a [red].json", "X [/red]", "ptxas [/bold] [x", "gemm[fp16]", "mode=[/red]"):
        assert words in done.out
    assert "exported [/bold]/[b].md\n" in done.err
    done = shell("compare", "[/bold]/c.json", "[/bold]/b.json")
    assert (done.code, "[/bold]/c.json" in done.err) == (5, True)


def test_ascii_terminals(tmp_path: Path) -> None:
    words = suspect(tmp_path)
    done = gpubench(tmp_path, "compare", *words, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 6
    assert (done.stdout + done.stderr).isascii()


def test_the_codes_of_the_command_are_in_the_table() -> None:
    from gpubench.cli.outcome import OUTCOME

    assert set(OUTCOME) == {Exit.REGRESSION, Exit.FAILED, Exit.NOTHING, Exit.UNDECIDED, Exit.NOT_COMPARABLE}


# Conditions


def test_a_sustained_run_is_not_comparable_with_a_burst_one(tmp_path: Path) -> None:
    for load in ("burst", "sustained"):
        done = gpubench(tmp_path, "run", OK, *FAKE, "--load", load, "-o", f"{load}.json", "-q")
        assert done.returncode == 0, done.stderr
    said = "load: burst against sustained"
    done = within(tmp_path, "compare", "burst.json", "sustained.json")
    assert done.returncode == 7
    assert "ok/double · fp32 · cold, burst and sustained\n" in done.stdout
    assert f"not comparable: n=1 and 4 more rows: {said}\n" in done.stdout
    assert "5 matched · 5 not comparable\n" in done.stdout
    assert f"gpubench: not comparable (exit 7): 5 matched · 5 not comparable; {said}\n" in done.stderr
    assert within(tmp_path, "compare", "sustained.json", "burst.json", "--fail-on", "none").returncode == 7
    row = within(tmp_path, "compare", "burst.json", "sustained.json", "--why", "n=3", "-q")
    assert (row.returncode, "ok/double[dtype=float32,n=3] (cold, burst and sustained)" in row.stdout) == (7, True)
    both = ("run", OK, *FAKE, "-p", "load=burst,sustained", "-p", "cache=hot,cold", "-q")
    assert gpubench(tmp_path, *both, "-o", "all.json").returncode == 0
    done = within(tmp_path, "compare", "burst.json", "all.json", "--json")
    counts = strict(done.stdout)["counts"]
    assert (done.returncode, counts) == (0, {"new": 15, "same": 5})
    assert within(tmp_path, "compare", "all.json", "all.json", "-q").returncode == 0


def test_rows_of_an_older_file_under_other_conditions_have_no_conditions_in_their_ids(shell: Shell) -> None:
    hot = sweep(0, rows(conditions=Conditions(cache="hot")))
    shell.save("new.json", hot)
    older = [dataclasses.replace(row, id=make_matmul(n).id) for n, row in zip(SIZES, hot.records, strict=True)]
    assert older[0].id != hot.records[0].id
    shell.save("old.json", sweep(0, older))
    for words in (("old.json", "new.json"), ("new.json", "old.json")):
        done = shell("compare", *words)
        assert (done.code, "12 matched · 12 same" in done.out) == (0, True)
    assert shell("compare", "old.json", "new.json", "--why", older[0].id).code == 0
    for command in ("show", "roofline"):
        assert shell(command, "old.json").code == 0
    shell.save("cold.json", sweep(1))
    done = shell("compare", "old.json", "cold.json")
    assert (done.code, "cache: hot against cold" in done.err) == (7, True)
