"""The yaml door: a file as Nodes, each with its line. Nothing is executed, guessed, merged or silently dropped.

Taken: one document of mappings, lists and scalars in UTF-8, with or without a byte order mark, of at most 1 MiB and 16
levels.
Refused, with file and line: duplicate keys, tags, anchors, aliases, merge keys, keys that are not words, a second
document, an empty file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.errors import UsageError
from gpubench.node import Node

if TYPE_CHECKING:
    from yaml.events import Event

MOST_BYTES = 2**20
DEEPEST = 16


def load(path: Path | str) -> Node:
    """The document of a yaml file. UsageError, one line with file and line number, for all that is not taken."""
    text = read_text(Path(path), MOST_BYTES)
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    reader = _Reader(str(path), yaml.parse(text, Loader=loader))
    try:
        return reader.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax(str(path), text, error) from None
    except yaml.YAMLError as error:  # a character that no yaml may hold
        problem = str(error).split("\n", 1)[0]
        raise UsageError(f"{path}: not yaml: {problem}", "remove control characters") from None


def read_text(path: Path, most: int) -> str:
    """The text of a small UTF-8 file, without its byte order mark; UsageError where it is missing, larger or other."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise UsageError(f"{path}: larger than {most:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text", "save it as UTF-8") from None


class _Reader:
    """Builds Nodes from the parser's events, one at a time: what is refused is refused before the rest is read."""

    def __init__(self, file: str, events: Iterator[Event]) -> None:
        from yaml import events as kinds

        self.file = file
        self.events = events
        self.kinds = kinds

    def document(self) -> Node:
        """The one document of the file."""
        next(self.events)  # the stream begins
        event = next(self.events)
        if isinstance(event, self.kinds.StreamEndEvent):
            raise UsageError(f"{self.file}: the file is empty")
        root = self.node(next(self.events), "", None, 0)
        next(self.events)  # the document ends
        event = next(self.events)
        if not isinstance(event, self.kinds.StreamEndEvent):
            raise UsageError(f"{self.file}:{_line(event)}: a second document", "one document a file: remove the ---")
        if root.empty:
            raise UsageError(f"{self.file}: the file is empty")
        return root

    def node(self, event: Event, key: str, line: int | None, depth: int) -> Node:
        """The node that begins with this event. `line` is its key's, so that a message points at the key."""
        line = line or _line(event)
        place = f"{self.file}:{_line(event)}"
        if depth > DEEPEST:
            raise UsageError(f"{place}: more than {DEEPEST} levels deep")
        if getattr(event, "anchor", None):  # of an alias, too
            raise UsageError(f"{place}: {key or 'the file'} uses an anchor or alias (& *)", "write the value out")
        if getattr(event, "tag", None):
            raise UsageError(f"{place}: {key or 'the file'} has a tag (!)", "remove it")
        if isinstance(event, self.kinds.ScalarEvent):
            return Node(self.file, key, line, event.value, quoted=bool(event.style))
        if isinstance(event, self.kinds.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self.events), self.kinds.SequenceEndEvent):
                items.append(self.node(event, key, None, depth + 1))
            return Node(self.file, key, line, tuple(items))
        return Node(self.file, key, line, self.entries(key, depth))

    def entries(self, parent: str, depth: int) -> dict[str, Node]:
        """The entries of a mapping that has begun."""
        entries: dict[str, Node] = {}
        while not isinstance(event := next(self.events), self.kinds.MappingEndEvent):
            name_node = self.node(event, parent, None, depth + 1)
            line, name = name_node.line, name_node.value
            place = f"{self.file}:{line}"
            if not isinstance(name, str) or name_node.empty or not name:
                raise UsageError(f"{place}: a key{_in(parent)} is not a word", "write NAME: VALUE")
            if name == "<<" and not name_node.quoted:
                raise UsageError(f"{place}: a merge key (<<){_in(parent)}", "write the values out")
            if name in entries:
                first = entries[name].line
                raise UsageError(f"{place}: the key {name}{_in(parent)} is already on line {first}", "keep one of them")
            entries[name] = self.node(next(self.events), f"{parent}.{name}" if parent else name, line, depth + 1)
        return entries


def _line(event: Event) -> int:
    mark = event.start_mark
    return int(mark.line) + 1 if mark is not None else 1


def _in(parent: str) -> str:
    return f" in {parent}" if parent else ""


def _syntax(file: str, text: str, error: Exception) -> UsageError:
    """A parser's complaint in one line, at the place it was noticed."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return UsageError(f"{file}: not yaml: {getattr(error, 'problem', error)}")
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    place = f"{file}:{mark.line + 1}"
    if "\t" in line[: len(line) - len(line.lstrip())] or line[mark.column : mark.column + 1] == "\t":
        return UsageError(f"{place}: a tab in the indentation", "indent with spaces")
    return UsageError(f"{place}: not yaml: {getattr(error, 'problem', error)}", "check indents, colons and quotes")
