"""A picture: layers in a frame with the words that go with them; as a description of Vega-Lite, as a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from gpubench.errors import UsageError
from gpubench.report.charts.frame import HEIGHT, WIDTH
from gpubench.report.charts.marks import Layer, silent
from gpubench.report.charts.theme import Mode, config, on
from gpubench.report.figures.shapes import Heading
from gpubench.report.placing import wrapped
from gpubench.report.words import SEPARATOR, plain
from gpubench.store.jsonfile import write_atomic

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
PNG_SCALE = 2
"""Pixels of a PNG to a CSS pixel."""


def check_installed() -> None:
    """UsageError, with the command that installs it, where the library that draws is missing."""
    if find_spec("vl_convert") is None:
        raise UsageError("pictures need vl_convert, not installed here", "pip install vl-convert-python")


@dataclass(frozen=True)
class Picture:
    """What is drawn and how it is called: `heading` has the id, the title, the question it answers and the facts that
    go with it, `alt` is the picture in words; `device` is what it was measured on; `height`
    and `width` are those of the frame, the width where no page gives one."""

    heading: Heading
    alt: str
    device: str
    layers: Sequence[Layer] = field(repr=False)
    height: int = HEIGHT
    width: int = WIDTH

    def spec(self) -> dict[str, Any]:
        """The description for a page: as wide as its container, without title and colours. Draw it with `config`."""
        return self._described(self.layers, "container") | {"autosize": {"type": "fit-x", "contains": "padding"}}

    def whole(self, mode: Mode = "light") -> dict[str, Any]:
        """The description of a picture that stands alone: title, question and facts above, on a ground of its own, and
        nothing that is only said where a reader points."""
        lines = [self.heading.question, *self.heading.facts]
        title = {
            "text": wrapped(SEPARATOR.join([self.heading.title, self.device]), WIDTH + 40, 16, 1)[0],
            "subtitle": [part for line in lines if line for part in wrapped(line, WIDTH + 40, 13, 2)],
        }
        described: dict[str, Any] = on(mode, self._described(map(silent, self.layers), self.width) | {"title": title})
        return described | {"config": config(mode)}

    def _described(self, layers: Iterable[Layer], width: int | str) -> dict[str, Any]:
        """With each set of rows once, by name."""
        sets: dict[str, str] = {}
        datasets, named = {}, []
        for layer in layers:
            rows = layer["data"]["values"]
            name = sets.setdefault(json.dumps(rows), f"rows{len(sets)}")
            datasets[name] = rows
            named.append(layer | {"data": {"name": name}})
        about = {"$schema": SCHEMA, "description": self.alt, "width": width, "height": self.height}
        found: dict[str, Any] = _printable(about | {"datasets": datasets, "layer": named})
        return found


def _printable(value: Any) -> Any:
    """A description in which no text of a run file has control characters left: one of them would abort the whole
    process when it is drawn."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(name): _printable(each) for name, each in value.items()}
    return [_printable(each) for each in value] if isinstance(value, list) else value


def save(picture: Picture, path: Path, mode: Mode = "light") -> None:
    """Write a picture as SVG or, where the name ends in .png, as PNG with two pixels to a CSS pixel."""
    check_installed()
    import vl_convert

    spec = picture.whole(mode)
    if path.suffix.lower() == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=PNG_SCALE)
    else:
        content = _with_words(vl_convert.vegalite_to_svg(spec), picture).encode()
    write_atomic(path, content)


def _with_words(svg: str, picture: Picture) -> str:
    """The drawing with its title and its description in words, which a screen reader says."""
    root, rest = svg.split(">", 1)
    title, about = (escape(plain(words)) for words in (picture.heading.title, picture.alt))
    return f'{root} role="img"><title>{title}</title><desc>{about}</desc>{rest}'
