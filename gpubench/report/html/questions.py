"""What a suite asks, in its own words: the first line of its file's docstring, `Name: question?`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.store.jsonfile import read_bytes


@dataclass(frozen=True)
class Question:
    """A suite's title, what it asks, and what its docstring says beyond that."""

    title: str
    question: str
    more: tuple[str, ...] = ()


def read(name: str, file: Path | None) -> Question:
    """The question of a suite's file, which is not run; a suite that is not here any more has its name alone."""
    doc = _docstring(file) if file is not None else ""
    first, *more = [" ".join(part.split()) for part in doc.split("\n\n")] or [""]
    title, colon, question = first.partition(": ")
    if not first:
        return Question(name, "")
    if not colon:
        return Question(name, first, tuple(more))
    return Question(title, f"{question[:1].upper()}{question[1:]}", tuple(more))


def _docstring(file: Path) -> str:
    try:
        return ast.get_docstring(ast.parse(read_bytes(file))) or ""
    except (SyntaxError, ValueError, UsageError):
        return ""
