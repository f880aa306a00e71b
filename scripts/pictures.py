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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
H200 = "results/reference/h200/matmul-sweep.json.gz"
PICTURES = {
    "docs/images/h200-matmul-curve.svg": ("curve", H200),
    "docs/images/h200-roofline.svg": ("roofline", H200),
}
"""Of each picture the kind of chart and the run file."""
COMMENT = re.compile(r"<!-- (?P<file>\S+) description (?P<description>\w+) drawing (?P<drawing>\w+) -->\n")


def chart(kind: str, file: str) -> Any:
    """The chart of a run file."""
    from gpubench.report import charts
    from gpubench.store import read_run

    return getattr(charts, kind)(read_run(ROOT / file))


def comment(file: str, description: dict[str, Any], drawing: str) -> str:
    """The comment a picture begins with. The version of the language it is described in does not count."""
    described = {key: value for key, value in description.items() if key != "$schema"}
    text = json.dumps(described, sort_keys=True)
    return f"<!-- {file} description {_digest(text)} drawing {_digest(drawing)} -->\n"


def draw(path: Path, kind: str, file: str) -> None:
    """Write one picture."""
    from gpubench.report import charts

    drawn = chart(kind, file)
    path.parent.mkdir(parents=True, exist_ok=True)
    charts.save(drawn, path)
    drawing = path.read_text(encoding="utf-8")
    path.write_text(comment(file, drawn.to_dict(), drawing) + drawing, encoding="utf-8")


def fault(text: str, kind: str, file: str) -> str | None:
    """What is wrong with a picture, or None."""
    found = COMMENT.match(text)
    if found is None:
        return "does not say where it is from"
    now = COMMENT.match(comment(file, chart(kind, file).to_dict(), text[found.end() :]))
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
        for name, (kind, file) in PICTURES.items():
            draw(ROOT / name, kind, file)
        return 0
    faults = {name: fault((ROOT / name).read_text(encoding="utf-8"), *source) for name, source in PICTURES.items()}
    wrong = [f"{name} {problem}" for name, problem in faults.items() if problem]
    print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
