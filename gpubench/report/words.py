"""The words reports share: names of devices, dtypes and conditions, and user text made safe for one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpubench.result import CONDITIONS, Conditions, Run

SEPARATOR = " · "

SHORT_DTYPE: Mapping[str, str] = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
}

ASCII: Mapping[str, str] = {
    "·": "-", "±": "+-", "×": "x", "µ": "u", "→": "->", "←": "<-", "…": "...", "–": "-", "—": "-", "‖": "|", "─": "-",
    "│": "|", "≤": "<=", "≥": ">=", "°": " deg ", "²": "^2",
}  # fmt: skip
"""What is written in place of our own signs where an encoding lacks them; of other characters a question mark."""

_FOLDERS = re.compile(r"(?<!\S)(?:~|[A-Za-z]:)?[/\\]\S*[/\\]")
_BUT_ONE = re.compile(r"(?<!\S)(?:~|[A-Za-z]:)?[/\\]\S*[/\\](?=[^/\\\s]+[/\\])")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")
_DEVICE_WORD = {"cuda": "GPU", "cpu": "CPU"}


def plain(text: object) -> str:
    """The text on one line, without control or formatting characters: a name read from a file moves no cursor."""
    words = str(text)
    if words.isprintable():
        return words
    return "".join(char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in words)


def short_dtype(dtype: str) -> str:
    """bfloat16 → bf16; a dtype without a customary short name stays as it is."""
    return SHORT_DTYPE.get(dtype, dtype)


def device_word(run: Run) -> str:
    """What to call this run's device in a sentence: GPU, CPU, or device."""
    return _DEVICE_WORD.get(str(run.device.get("kind")), "device")


def device_name(run: Run) -> str:
    """The device's own name, or what kind of device it is where it has none."""
    return plain(run.device.get("name") or f"unnamed {device_word(run)}")


def conditions_words(*asked: Conditions) -> str:
    """The conditions of rows, every one there is among them: cold, burst; cold and hot, burst. The data distribution is
    named where it is not always the usual one."""
    return ", ".join(conditions_by_name(asked).values())


def conditions_by_name(asked: Iterable[Conditions]) -> dict[str, str]:
    """The same by the name of the condition."""
    chosen = [each.by_name for each in dict.fromkeys(asked)]
    words = {name: " and ".join(dict.fromkeys(each[name] for each in chosen)) for name in CONDITIONS}
    if words["data"] == CONDITIONS["data"][0]:
        del words["data"]
    return {name: word for name, word in words.items() if word}


def counted(count: int, noun: str) -> str:
    """1 case, 2 cases."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def typed(command: str, *words: str) -> str:
    """A command of ours as it is typed, on one line; empty words are left out."""
    return plain(" ".join(filter(None, ("gpubench", command, *words))))


def unplaced(base: str, new: str) -> tuple[str, str]:
    """The names of two sides without the folders of absolute paths, which are no reader's business; with the last of
    them where the sides would have the same name."""
    alone = _FOLDERS.sub("", base), _FOLDERS.sub("", new)
    return alone if alone[0] != alone[1] else (_BUT_ONE.sub("", base), _BUT_ONE.sub("", new))


def markdown_row(cells: Iterable[str]) -> str:
    """A row of a GitHub table; what Markdown would read as its own is escaped."""
    return "| " + " | ".join(_MARKDOWN.sub(r"\\\1", plain(cell)) for cell in cells) + " |"
