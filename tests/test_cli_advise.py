"""`gpubench advise` from outside: on a fake device whose rate falls where rows are misaligned, and predicted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from command import FAKE, ROOT, TOYS, one_line, saved, strict, within

from gpubench import discovery
from gpubench.cli import session
from gpubench.errors import DeviceUnavailable
from gpubench.exits import Exit

GPT2 = ("--hidden", "768", "--heads", "12", "--d-ff", "3072", "--vocab", "50257", "--layers", "12", "--tied")
LLAMA = {
    "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "num_hidden_layers": 32, "vocab_size": 128256,
}  # fmt: skip


def advise(folder: Path, *words: str, **env: str) -> CompletedProcess[str]:
    """The command on the fake device, without a worker."""
    return within(folder, "advise", *words, *FAKE, env={"GPUBENCH_IN_PROCESS": "1", **env})


@pytest.fixture(autouse=True)
def products(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our suites, with products for the fake device in place of torch's."""
    folder = tmp_path_factory.mktemp("suites")
    for path in (ROOT / "suites").iterdir():
        real = TOYS / "products" / path.name
        (folder / path.name).symlink_to(real if real.exists() else path)
    monkeypatch.setattr(discovery, "built_in", lambda: folder)


def test_gpt2_measured(tmp_path: Path) -> None:
    done = advise(tmp_path, *GPT2, "--tag", "mine")
    assert done.returncode == 0, done.stderr
    lines, text = done.stdout.splitlines(), " ".join(done.stdout.split())
    assert lines[0] == "advise · Fake device · bf16 · 8192 tokens · cold, burst"
    assert any(line.startswith("vocab 50257 → 50304") and line.endswith("←") for line in lines)
    assert "pad vocab 50257 → 50304, rows aligned to 2 B → 256 B" in text
    assert "36,096 more parameters (+0.03 %)" in text
    assert "keep d_ff 3072, rows aligned to 256 B: nothing to gain, with 3200 a step is" in text
    assert "keep hidden 768, rows aligned to 256 B: nothing to gain, and no better aligned" in text
    assert all(len(line) <= 80 for line in lines)
    said = done.stderr.splitlines()
    assert said[-1].startswith("saved ")
    (run,) = saved(tmp_path)
    assert run["status"] == "complete"
    assert run["tags"] == ["mine"]
    assert len(run["records"]) == 3 * (5 + 3 + 2)
    assert "advise" in said[-1]
    assert run["records"][0]["params"] == {"n": 2304, "m": 8192, "k": 768, "dtype": "bfloat16", "layout": "nt"}


def test_a_config_file_measured_as_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    done = advise(tmp_path, "--config", "config.json", "--json", "-q")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = strict(done.stdout)
    assert found["measured"] is True
    assert found["run_id"] == saved(tmp_path)[0]["run_id"]
    assert found["padded"] == {}
    assert {each["name"]: each["verdict"] for each in found["dimensions"]} == {
        "vocab": "nothing to gain", "d_ff": "nothing to gain", "hidden": "aligned"
    }  # fmt: skip
    assert [layer["count"] for layer in found["layers"]] == [32, 32, 64, 32, 1]
    forward = found["layers"][0]["products"]["forward"]
    assert (forward["m"], forward["n"], forward["k"], forward["layout"]) == (8192, 6144, 4096, "nt")
    assert forward["ns"]["value"] == 2 * 8192 * 6144 * 4096 // 700


def test_flags_stand_over_the_file_and_an_unknown_architecture_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA | {"model_type": "mine"}))
    done = advise(tmp_path, "--config", "config.json", "--vocab", "128257", "--json")
    assert "model_type 'mine' is not known: took hidden_size=4096" in done.stderr
    assert strict(done.stdout)["padded"] == {"vocab": 128384}


def test_layers_of_ones_own(tmp_path: Path) -> None:
    done = advise(tmp_path, "64x4001x512", "--json", "-q")
    same = advise(tmp_path, "-p", "m=64", "-p", "n=4001", "-p", "k=512", "--json", "-q")
    found, again = strict(done.stdout), strict(same.stdout)
    assert found["padded"] == again["padded"] == {"n": 4008}
    assert found["dimensions"] == again["dimensions"]


def test_a_row_that_fails_is_named_and_costs_its_size_alone(tmp_path: Path) -> None:
    done = advise(tmp_path, "64x4001x512", TOY_FAILS="4008")
    assert done.returncode == 4
    assert "pad n 4001 → 4016" in done.stdout
    assert "no time: 64x4008x512 nt: " in done.stdout
    assert advise(tmp_path, "64x4001x512", TOY_FAILS="4001").stdout.count("a product that it takes has no time") == 1


def test_a_dry_run_lists_the_products(tmp_path: Path) -> None:
    done = advise(tmp_path, "64x4001x512", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "matmul-sweep/matmul[dtype=bfloat16,k=512,layout=nt,m=64,n=4001]"
    assert saved(tmp_path) == []


def test_predicted_without_a_gpu(tmp_path: Path) -> None:
    done = within(tmp_path, "advise", *GPT2, "--gpu", "h200")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "advise · NVIDIA H200 · bf16 · 8192 tokens · predicted, not measured"
    assert "pad vocab 50257 → 50304" in done.stdout
    assert done.stdout.splitlines()[-2].startswith("predicted, not measured: by the model of explain")
    assert saved(tmp_path) == []
    found = strict(within(tmp_path, "advise", *GPT2, "--gpu", "h200", "--json").stdout)
    assert found["measured"] is False
    assert found["run_id"] is None
    assert found["padded"] == {"vocab": 50304}


def test_the_page_shows_what_the_command_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    (found,) = re.finditer(r"<!-- gpubench (?P<words>.*) -->\n```text\n(?P<body>.*?)```\n", page, re.DOTALL)
    assert within(tmp_path, *found["words"].split()).stdout == found["body"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "a network needs --hidden, --heads, --d-ff, --vocab too"),
        (("64x64x64", "--hidden", "768"), "both a layer and --hidden are given"),
        (("64x64x64", "--tokens", "768"), "both a layer and --tokens are given"),
        (("64x64x64", "--config", "x"), "both a layer and --config are given"),
        (("64x64x64", "--tied"), "both a layer and --tied are given"),
        (("64x64",), "is not TOKENSxOUTPUTSxINPUTS"),
        (("--config", "none.json"), "none.json: no such file"),
        (("64x64x64", "--dtype", "bf16"), "axis dtype: no value 'bf16'"),
        (("64x64x64", "--gpu", "h201"), "no GPU 'h201' in the catalogue; did you mean h200?"),
        (("64x64x64", "--gpu", "h200", "--dry-run"), "--gpu predicts, --dry-run is about measuring"),
        (("64x64x64", "--gpu", "h200", "-d", "cpu"), "--gpu predicts, --device is about measuring"),
        ((*GPT2, "--kv-heads", "5"), "no whole number for each of 5"),
        (("--hidden", "7k"), "--hidden: '7k' is not an integer"),
    ],
)
def test_a_wrong_question_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = within(tmp_path, "advise", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert one_line(done.stderr)
    assert done.stdout == ""


def test_the_network_as_it_is_are_sizes_that_the_user_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[session.Request] = []
    monkeypatch.setattr(session, "measure", lambda request: asked.append(request) or Exit.DONE)
    assert advise(tmp_path, "64x4001x512").returncode == 0
    (request,) = asked
    assert request.chosen is not None
    assert [4001 in each.asked["n"] + each.asked["k"] + each.asked["m"] for each in request.chosen] == [
        each.by_hand for each in request.chosen
    ]
    assert sum(each.by_hand for each in request.chosen) == 3
    assert request.flags["ceilings"] == "none"


@pytest.mark.parametrize(("words", "hint"), [((), True), (("-d", "auto"), True), (("-d", "cuda:7"), False)])
def test_without_a_gpu_nothing_is_measured_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], hint: bool
) -> None:
    def measure(request: session.Request) -> Exit:
        assert not request.falls_back
        raise DeviceUnavailable("no CUDA device (none)", "gpubench info")

    monkeypatch.setattr(session, "measure", measure)
    done = within(tmp_path, "advise", "64x64x64", *words)
    assert done.returncode == 2
    wanted = "--gpu h200 predicts, --device cpu measures the CPU" if hint else "gpubench info"
    assert done.stderr == f"gpubench: no CUDA device (none) ({wanted})\n"
