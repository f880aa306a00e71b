"""What is typed arrives as it was typed, and Typer builds no adapter for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer

from gpubench.cli import options
from gpubench.cli.app import app
from gpubench.cli.help import GroupedCommand
from gpubench.cli.words import KINDS, AsTyped, keep_words


def called(*arguments: str) -> dict[str, Any]:
    """What a command of every kind of parameter is given."""
    given: dict[str, Any] = {}
    small = typer.Typer(add_completion=False)

    @small.command(cls=GroupedCommand)
    @options.reading
    def command(
        flags: options.Flags,
        run: options.RunWord = None,
        param: options.Params = None,
        all_rows: options.All = False,
    ) -> None:
        given.update(run=run, param=param, all_rows=all_rows, flags=flags)

    with typer.main.get_command(small).make_context("x", list(arguments)) as context:
        context.command.invoke(context)
    return given


def test_words_lists_and_switches() -> None:
    nothing = {"results": None, "quiet": False, "no_color": False, "debug": False}
    assert called() == {"run": None, "param": None, "all_rows": False, "flags": nothing}
    found = called("latest", "-p", "n=1", "-p", "d=2", "--all", "--results", "01", "-q")
    assert found == {
        "run": "latest", "param": ["n=1", "d=2"], "all_rows": True, "flags": nothing | {"results": "01", "quiet": True},
    }  # fmt: skip


def test_every_parameter_of_ours_is_of_a_kind_that_is_kept() -> None:
    def kinds(command: Any) -> set[Any]:
        own = {id(each): each.type_descriptor.annotation for each in command.params}
        return {*map(str, own.values())}.union(*(kinds(each) for each in getattr(command, "commands", {}).values()))

    assert kinds(typer.main.get_command(app)) <= {str(kind) for kind in KINDS}


@pytest.mark.parametrize("annotation", [int, float, list[int]])
def test_a_number_is_left_to_typer(annotation: Any) -> None:
    parameter = SimpleNamespace(type_descriptor=SimpleNamespace(annotation=annotation), _runtime_param=None)
    keep_words([parameter, SimpleNamespace()])
    assert parameter._runtime_param is None


def test_several_are_a_list_and_none_are_nothing() -> None:
    many, one = SimpleNamespace(multiple=True, nargs=1), SimpleNamespace(multiple=False, nargs=1)
    assert AsTyped().coerce(("a", "b"), many, None) == ["a", "b"]
    assert AsTyped().coerce(None, many, None) == ()
    assert AsTyped().coerce(None, SimpleNamespace(multiple=False, nargs=-1), None) == ()
    assert AsTyped().coerce(None, one, None) is None


def test_shared_flags_stand_behind_a_commands_own() -> None:
    def command(flags: options.Flags, word: Annotated[str, typer.Option(help="One.")] = "x") -> None:
        """Do it."""

    made = options.reading(command)
    assert list(made.__annotations__) == ["word", "results", "quiet", "no_color", "debug"]
    assert made.__doc__ == "Do it."
