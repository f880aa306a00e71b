"""Values as they were typed, without pydantic.

Typer builds a pydantic adapter for every option and argument, those that nobody gave included, and the import of
pydantic is a quarter of the time of `gpubench list`. All of ours are words, lists of words and switches, of which an
adapter makes what they are. `gpubench.settings` and the commands say what a word may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

KINDS = (str, bool, list[str])


class AsTyped:
    """In place of Typer's conversion of one parameter's value."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value; a list where it is several, and nothing where nobody gave one."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        return list(value) if isinstance(value, tuple) else value


def keep_words(parameters: Iterable[Any]) -> None:
    """Have Typer take the values of these parameters as typed. It caches its conversion in an attribute of its own: a
    version that has another one builds its adapters, and is slower."""
    for parameter in parameters:
        if getattr(getattr(parameter, "type_descriptor", None), "annotation", None) in KINDS:
            parameter._runtime_param = AsTyped()
