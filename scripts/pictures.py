"""Draws the pictures of README and docs from run files, so that none shows anything else than it says.

Each picture begins with a comment: the run file it was drawn from, the digest of its description and the digest of the
drawing. Without arguments the pictures are drawn; with --check nothing is written, and the exit status is 1 where one
was drawn from other data or by other code, or was edited. (Not drawn again and compared: letters are as wide as the
fonts of a machine make them.)
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
H200 = "results/reference/h200"
PICTURES = {
    "docs/images/h200-matmul-curve.svg": ("curve", f"{H200}/matmul-sweep.json.gz"),
    "docs/images/h200-roofline.svg": ("roofline", f"{H200}/lecture.json.gz"),
    "docs/images/h200-claims.svg": ("claims", f"{H200}/lecture.json.gz"),
    "docs/images/h200-latency.svg": ("latency-ladder", f"{H200}/lecture.json.gz"),
    "docs/images/h200-attention.svg": ("attention-traffic", f"{H200}/lecture-attention.json.gz"),
    "docs/images/h200-sustained.svg": ("sustained-in-time-1", f"{H200}/sustained.json.gz"),
}
"""Of each picture the id of the chart and the run file."""
COMMENT = re.compile(r"<!-- (?P<file>\S+) description (?P<description>\w+) drawing (?P<drawing>\w+) -->\n")


def chart(id: str, file: str) -> Any:
    """The picture of that id of a run file."""
    from gpubench.report import charts

    return charts.draw(run_of(file), id)


@cache
def run_of(file: str) -> Any:
    """A run file, read once."""
    from gpubench.store.folder import read_run

    return read_run(ROOT / file)


def comment(file: str, description: dict[str, Any], drawing: str) -> str:
    """The comment a picture begins with. The version of the language it is described in does not count."""
    described = {key: value for key, value in description.items() if key != "$schema"}
    text = json.dumps(described, sort_keys=True)
    return f"<!-- {file} description {_digest(text)} drawing {_digest(drawing)} -->\n"


def draw(path: Path, id: str, file: str) -> None:
    """Write one picture."""
    from gpubench.report import charts

    drawn = chart(id, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    charts.save(drawn, path)
    drawing = path.read_text(encoding="utf-8")
    path.write_text(comment(file, drawn.whole(), drawing) + drawing, encoding="utf-8")


def fault(text: str, id: str, file: str) -> str | None:
    """What is wrong with a picture, or None."""
    found = COMMENT.match(text)
    if found is None:
        return "does not say where it is from"
    now = COMMENT.match(comment(file, chart(id, file).whole(), text[found.end() :]))
    assert now is not None
    if found["drawing"] != now["drawing"]:
        return "was edited after it was drawn"
    return None if found[0] == now[0] else f"is not what {file} gives now"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main(arguments: list[str]) -> int:
    """Draw all pictures, or check them."""
    sys.path.insert(0, str(ROOT))
    if "--check" not in arguments:
        for name, (id, file) in PICTURES.items():
            draw(ROOT / name, id, file)
        return 0
    faults = {name: fault((ROOT / name).read_text(encoding="utf-8"), *source) for name, source in PICTURES.items()}
    wrong = [f"{name} {problem}" for name, problem in faults.items() if problem]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
