"""The page around a report: one file, nothing fetched, nothing run but our own two scripts, which it names by hash."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gpubench import __version__
from gpubench.report.html.markup import Child, Markup, join, tag
from gpubench.store import embedded, jsonfile

ASSETS = Path(__file__).parent / "assets"
What = Literal["run", "comparison", "measurement"]
"""What a page holds: one run, the runs of a comparison, an A/B measurement."""


@dataclass(frozen=True)
class Section:
    """A part of a page: its `anchor` is unique, and `parts` are the anchors and titles of what it is divided into."""

    anchor: str
    title: str
    content: Markup
    parts: Sequence[tuple[str, str]] = ()

    def markup(self) -> Markup:
        """The section under its heading."""
        heading = tag("h2", self.title, id=f"{self.anchor}-title")
        return tag("section", heading, self.content, id=self.anchor, aria_labelledby=f"{self.anchor}-title")


@dataclass(frozen=True)
class Page:
    """All that a page holds. `drawings` is what `figures.document` gives for its script, `documents` the run files to
    embed and `names` what each is called when it is saved."""

    title: str
    head: Markup
    sections: Sequence[Section]
    drawings: Mapping[str, Any] | None
    documents: Sequence[bytes]
    names: Sequence[str]
    what: What = "run"

    def html(self) -> bytes:
        """The file."""
        style, script = _asset("page.css").decode(), _asset("page.js").decode()
        drawings = [] if self.drawings is None else [
            _packed("packed-vega", _engine()), _packed("packed-charts", jsonfile.dumps(self.drawings).encode())
        ]  # fmt: skip
        head = join(
            [
                tag("meta", charset="utf-8"),
                tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script, bool(drawings))),
                tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
                tag("meta", name="generator", content=f"gpubench {__version__}"),
                tag("meta", name="color-scheme", content="light dark"),
                tag("title", self.title),
                tag("style", Markup(style)),
            ],
            "\n",
        )
        body = [
            tag("a", "Skip to the report", class_="skip", href="#report"),
            tag("header", self.head, self._tools()),
            tag("div", _contents(self.sections), self._main(), class_="frame"),
            self._footer(),
            tag("div", id="tip", role="tooltip", hidden=True),
            *(Markup(embedded.pack(document)) for document in self.documents),
            *drawings,
            tag("script", Markup(script)),
        ]
        whole = tag("html", Markup("\n"), tag("head", head), Markup("\n"), tag("body", join(body, "\n")), lang="en")
        return f"<!doctype html>\n{whole}\n".encode()

    def _main(self) -> Markup:
        without = tag(
            "noscript",
            tag("p", "Charts need JavaScript, which is off here; every figure is in the tables.", class_="no-script"),
        )
        return tag("main", without, *(section.markup() for section in self.sections), id="report", tabindex="-1")

    def _tools(self) -> Markup:
        save = [
            tag("button", f"Save the {self.what}" if len(self.names) == 1 else f"Save run {index + 1}", type="button",
                data_run=str(index), data_name=name)
            for index, name in enumerate(self.names)
        ]  # fmt: skip
        return tag("div", *save, tag("button", "Dark", type="button", id="theme", aria_pressed="false"), class_="tools")

    def _footer(self) -> Markup:
        words: list[Child] = [
            f"Made by gpubench {__version__}. This file fetches nothing and holds the whole {self.what}: ",
            *([tag("code", "gpubench show FILE.html"), " and "] if self.what == "run" else []),
            tag("code", f"gpubench compare{'' if self.what == 'run' else ' FILE.html'}"),
            " read it like a run file." if self.what == "run" else " shows it again.",
            " Charts are drawn by Vega (BSD-3-Clause, University of Washington).",
        ]
        return tag("footer", tag("p", *words))


def _contents(sections: Iterable[Section]) -> Markup:
    items = []
    for section in sections:
        below = [tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in section.parts]
        link = tag("a", section.title, href=f"#{section.anchor}")
        items.append(tag("li", link, tag("ul", *below) if below else None))
    return tag("nav", tag("ul", *items), aria_label="Contents")


def _policy(style: str, script: str, charts: bool) -> str:
    """Nothing but what has these hashes: no script, style, picture, font, frame or connection from anywhere."""
    scripts = [_hash(script.encode()), *([_hash(_engine())] if charts else [])]
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(scripts)}",
            f"style-src {_hash(style.encode())}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def _packed(name: str, content: bytes) -> Markup:
    """Something the script unpacks, in an element that no browser runs."""
    text = base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
    return tag("script", Markup(text), type="application/gzip", id=name)


@cache
def _asset(name: str) -> bytes:
    return (ASSETS / name).read_bytes()


@cache
def _engine() -> bytes:
    """Vega with its interpreter; ValueError where it is not what vega.json says it is."""
    text = gzip.decompress(_asset("vega.js.gz"))
    if hashlib.sha256(text).hexdigest() != json.loads(_asset("vega.json"))["sha256"]:
        raise ValueError("vega.js.gz is not what vega.json says: python scripts/report_assets.py")
    return text
