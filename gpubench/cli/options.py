"""The flags that several commands share, each written once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer

RUN_FORMS = "a file, latest, latest~N, @BASELINE or ref:NAME"
RUN_WORDS = f"{RUN_FORMS}; the latest run if left out"
CONDITIONS, EFFORT, OUTPUT = "What and how", "How hard", "Output"

RunWord = Annotated[str | None, typer.Argument(metavar="RUN", help=f"The run: {RUN_WORDS}.")]
CaseWord = Annotated[
    str | None, typer.Argument(metavar="CASE", help="The row: its id, or words such as n=1024; or use -p.")
]
Results = Annotated[str | None, typer.Option("--results", metavar="DIR", help="The folder of run files.")]
Form = Annotated[str | None, typer.Option("--format", metavar="FORM", help="table, json, jsonl, csv or md.")]
Json = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
EXPORT_HELP = "Also to a file, in the form of its suffix: .md .csv .json .svg ..."
Export = Annotated[list[str] | None, typer.Option("--export", metavar="FILE", help=EXPORT_HELP)]
JsonOnly = Annotated[bool, typer.Option("--json", help="One JSON document.")]
All = Annotated[bool, typer.Option("--all", help="Every row, not the 24 that say most.")]
NoPlot = Annotated[bool, typer.Option("--no-plot", help="No plot under the table.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colour.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Results and errors only.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Settings, and a line per case with its timer.")]
Debug = Annotated[bool, typer.Option("--debug", help="Tracebacks, and everything the worker says.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=1,2 | a:b:step | a:b:*2", help="Values of an axis; repeatable."),
]
Device = Annotated[
    str | None, typer.Option("--device", "-d", metavar="DEVICE", help="auto, cuda:N, a GPU's UUID, or cpu.")
]

Flags = Mapping[str, object]
READING: Mapping[str, tuple[Any, object]] = {
    "results": (Results, None), "quiet": (Quiet, False), "no_color": (NoColor, False), "debug": (Debug, False),
}  # fmt: skip
"""The flags of every command on run files, each with its default."""
T = TypeVar("T")


def reading(command: Callable[..., T]) -> Callable[..., T]:
    """The command with the flags of READING behind its own. It is given their values as `flags`, for stored.begin."""
    own = inspect.signature(command, eval_str=True)
    parameters = [parameter for name, parameter in own.parameters.items() if name != "flags"]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=option, default=default)
        for name, (option, default) in READING.items()
    ]

    @functools.wraps(command)
    def called(**values: Any) -> T:
        return command({name: values.pop(name) for name in READING}, **values)

    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called
