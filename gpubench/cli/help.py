"""Commands whose help is plain text, in groups, and whose values are words: Rich's help would cost every `--help` the
import of Rich, Typer's values every command that of pydantic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

from gpubench.cli.words import keep_words
from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean

Row = tuple[str, str]


class GroupedCommand(TyperCommand):
    """A command whose options are shown under the panel each names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Command."""
        keep_words(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """See click.Command."""
        return ["[OPTIONS]", *(_in_usage(param) for param in self._arguments(ctx))]

    def _arguments(self, ctx: Any) -> list[Any]:
        return [param for param in self.get_params(ctx) if param.param_type_name == "argument"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """See click.Command."""
        others = [param for param in self.get_params(ctx) if param.param_type_name == "option"]
        _sections(formatter, self._arguments(ctx), "Arguments", lambda param: (_written(param), param.help or ""))
        _sections(formatter, others, "Options", lambda param: param.get_help_record(ctx))


class GroupedCommands(TyperGroup):
    """A group whose commands are shown under the panel each names, in the order they were added."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See click.Group."""
        keep_words(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See click.Group. UsageError for a command that is not there."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            near = did_you_mean(name, self.commands)
            raise UsageError(f"no command {name!r}{near}", f"{ctx.command_path} --help")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """See click.Group."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in found if command is not None and not command.hidden]
        room = formatter.width - 6 - max(len(name) for name, _ in shown)

        def row(entry: Any) -> Row:
            return entry[0], entry[1].get_short_help_str(room)

        _sections(formatter, shown, "Commands", row, panel_of=lambda entry: entry[1])


def _written(argument: Any) -> str:
    """How an argument is written, in capitals: NAME, or WORD... of which there may be several. A metavar with dots or
    brackets says so itself; Typer would add the type in Python's words."""
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 or "." in name else f"{name}..."


def _in_usage(argument: Any) -> str:
    """The same in the line of usage: what may be left out is in brackets."""
    name = _written(argument)
    if argument.required or "[" in name:
        return name
    bare = name.removesuffix("...")
    return f"[{bare}]{name.removeprefix(bare)}"


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
