"""Draws docs/accuracy.md from the reference run of benchmarks/timer_accuracy.py, so that no figure is typed by hand.

Without arguments the page is drawn, where there is such a run; with --check nothing is written, and the exit status is
1 where the page differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"docs/accuracy.md": "benchmarks/results/h200/timer-accuracy.json.gz"}
"""Of each page the file it is drawn from."""


def drawn(source: str) -> str:
    """The page of a results file, named from the root of the repository."""
    sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "benchmarks")) if path not in sys.path]
    from accuracy.results import load
    from accuracy.table import page

    return page(load(ROOT / source), source)


def main(arguments: list[str]) -> int:
    """Draw the pages whose run is there, or check them."""
    wrong = 0
    for name, source in PAGES.items():
        if not (ROOT / source).is_file():
            continue
        path, text = ROOT / name, drawn(source)
        if "--check" in arguments:
            wrong += not path.is_file() or path.read_text(encoding="utf-8") != text
        else:
            path.write_text(text, encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
