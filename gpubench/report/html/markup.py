"""HTML as text that cannot be broken out of: every piece is made by `tag`, which escapes whatever is not made by it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

from gpubench.report.words import plain


class Markup(str):
    """HTML that needs no escaping any more. Only `tag` and `join` make it of text that is not ours."""

    __slots__ = ()


Child = Markup | str | None
"""What an element holds: HTML, text that is escaped, or nothing."""

VOID = frozenset({"br", "hr", "img", "meta"})
"""Elements without an end."""


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """An element. An attribute's name is given with _ for -, and with a trailing _ where Python has the word; one that
    is True stands alone, one that is None or False is left out."""
    words = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(plain(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    inner = join(children)
    return Markup(f"<{name}{words}>" if name in VOID else f"<{name}{words}>{inner}</{name}>")


def join(children: Iterable[Child], between: str = "") -> Markup:
    """Pieces one after the other, `between` each two of them."""
    return Markup(escape(between).join(_safe(child) for child in children if child is not None))


def _safe(child: Markup | str) -> str:
    return child if isinstance(child, Markup) else escape(plain(child), quote=False)


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[Child]], right: Collection[str] = frozenset()
) -> Markup:
    """A table whose first cell of a row names it. `right` are the columns of numbers. It scrolls for itself where it is
    wider than the page, and can be reached by keyboard for that."""
    kinds = ["number" if name in right else None for name in columns]
    head = tag("tr", *(tag("th", name, scope="col", class_=kind) for name, kind in zip(columns, kinds, strict=True)))
    body = [
        tag("tr", tag("th", row[0], scope="row") if row[0] else tag("td"), *map(_cell, row[1:], kinds[1:]))
        for row in rows
    ]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", tabindex="0", role="group", aria_label=caption)


def _cell(content: Child, kind: str | None) -> Markup:
    return tag("td", content, class_=kind)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Names and what they stand for; a pair that stands for nothing is left out."""
    shown = [(name, value) for name, value in pairs if value]
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in shown), class_="facts")


def folded(summary: Child, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """What is shown when it is asked for."""
    return tag("details", tag("summary", summary), *children, **attributes)


def lines(texts: Iterable[Child], /, **attributes: str | bool | None) -> Markup | None:
    """A list, or nothing where there is nothing to list."""
    items = [tag("li", text) for text in texts]
    return tag("ul", *items, **attributes) if items else None
