"""Commands whose help is plain text, in groups, and whose values are words: Rich's help would cost every `--help` the
import of Rich, Typer's values every command that of pydantic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gpubench.cli.words import keep_words

Row = tuple[str, str]


class GroupedCommand(TyperCommand):
    """A command whose options are shown under the panel each names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Command."""
        keep_words(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """See click.Command."""
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        others = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        _sections(formatter, arguments, "Arguments", lambda param: param.get_help_record(ctx))
        _sections(formatter, others, "Options", lambda param: param.get_help_record(ctx))


class GroupedCommands(TyperGroup):
    """A group whose commands are shown under the panel each names, in the order they were added."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Group."""
        keep_words(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See click.Group."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in found if command is not None and not command.hidden]
        room = formatter.width - 6 - max(len(name) for name, _ in shown)

        def row(entry: Any) -> Row:
            return entry[0], entry[1].get_short_help_str(room)

        _sections(formatter, shown, "Commands", row, panel_of=lambda entry: entry[1])


def _sections(
    formatter: Any,
    items: Iterable[Any],
    default: str,
    row: Callable[[Any], Row | None],
    panel_of: Callable[[Any], Any] = lambda item: item,
) -> None:
    """Write each panel's rows under its name; items without a panel go under `default`."""
    panels: dict[str, list[Row]] = {}
    for item in items:
        panel = getattr(panel_of(item), "rich_help_panel", None)
        record = row(item)
        if record is not None:
            panels.setdefault(panel if isinstance(panel, str) else default, []).append(record)
    for name, rows in panels.items():
        with formatter.section(name):
            formatter.write_dl(rows)
