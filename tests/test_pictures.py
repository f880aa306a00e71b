"""The pictures of README and docs are what their run files give, and one that is not is found."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CURVE = "docs/images/h200-matmul-curve.svg"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("pictures_script", ROOT / "scripts" / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_what_its_run_file_gives(script):
    faults = {name: script.fault((ROOT / name).read_text(), *source) for name, source in script.PICTURES.items()}
    assert faults == dict.fromkeys(script.PICTURES), "make pictures"


def test_every_picture_is_shown_and_every_one_shown_is_drawn(script):
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    assert set(re.findall(r"\]\((?:docs/)?(images/[^)]+)\)", pages)) == {
        name.removeprefix("docs/") for name in script.PICTURES
    }
    assert {f"docs/images/{path.name}" for path in (ROOT / "docs/images").iterdir()} == set(script.PICTURES)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (">800</text>", ">900</text>", "was edited after it was drawn"),
        ("<!-- results", "<!-- elsewhere", "is not what results/reference/h200/matmul-sweep.json.gz gives now"),
        (r"description \w+", "description 0123456789abcdef", "is not what results/reference"),
        (r"^<!--.*?-->\n", "", "does not say where it is from"),
    ],
)
def test_a_picture_that_is_not_is_found(script, old: str, new: str, fault: str):
    text = (ROOT / CURVE).read_text()
    touched = re.sub(old, new, text, count=1)
    assert touched != text
    assert script.fault(touched, *script.PICTURES[CURVE]).startswith(fault)


def test_a_picture_drawn_again_is_in_order(script, tmp_path: Path):
    kind, file = script.PICTURES[CURVE]
    script.draw(tmp_path / "new/curve.svg", kind, file)
    assert script.fault((tmp_path / "new/curve.svg").read_text(), kind, file) is None


def test_a_picture_is_small_and_says_in_words_what_it_shows(script):
    for name in script.PICTURES:
        text = (ROOT / name).read_text()
        assert len(text.encode()) <= 150_000, name
        about = re.search(r"<title>(.+?)</title><desc>(.+?)</desc>", text)
        assert about is not None, name
        assert len(about[2]) > 60, name
