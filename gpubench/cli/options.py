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
JUDGING, BUILD = "What counts", "For a build"

RunWord = Annotated[str | None, typer.Argument(metavar="RUN", help=f"The run: {RUN_WORDS}.")]
CaseWords = Annotated[
    list[str] | None, typer.Argument(metavar="CASE", help="The row: its id, or words such as n=1024 hot; or use -p.")
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
RowParams = Annotated[
    list[str] | None, typer.Option("--param", "-p", metavar="NAME=VALUE", help="What the row has; repeatable.")
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=1,2 | a:b:step | a:b:*2", help="Values of an axis; repeatable."),
]
Device = Annotated[
    str | None, typer.Option("--device", "-d", metavar="DEVICE", help="auto, cuda:N, a GPU's UUID, or cpu.")
]

Dtype = Annotated[str | None, typer.Option("--dtype", metavar="NAME", help="The same as -p dtype=NAME.")]
Cache = Annotated[
    str | None,
    typer.Option("--cache", metavar="cold|hot", help="The caches before each call.", rich_help_panel=CONDITIONS),
]
Load = Annotated[
    str | None,
    typer.Option(
        "--load", metavar="burst|sustained", help="With rests between samples, or not.", rich_help_panel=CONDITIONS
    ),
]
Data = Annotated[
    str | None,
    typer.Option("--data", metavar="normal|uniform|zeros", help="What the inputs hold.", rich_help_panel=CONDITIONS),
]
Seed = Annotated[
    str | None, typer.Option("--seed", metavar="N", help="The seed of the inputs.", rich_help_panel=CONDITIONS)
]
Timer = Annotated[
    str | None,
    typer.Option(
        "--timer",
        metavar="auto|cupti|graph|event|host",
        help="What takes the samples.",
        rich_help_panel=CONDITIONS,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Each axis's quick values, 0.2 s a case.", rich_help_panel=EFFORT)]
Samples = Annotated[
    str | None, typer.Option("--samples", metavar="N", help="Exactly N a case.", rich_help_panel=EFFORT)
]
MaxNoise = Annotated[
    str | None,
    typer.Option("--max-noise", metavar="PCT", help="Stop at this noise (0.5%).", rich_help_panel=EFFORT),
]
MaxTime = Annotated[
    str | None,
    typer.Option("--max-time", metavar="TIME", help="For the run; the rest is skipped.", rich_help_panel=EFFORT),
]
CaseTime = Annotated[
    str | None,
    typer.Option("--case-time", metavar="TIME", help="For one case's samples (500ms).", rich_help_panel=EFFORT),
]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="Give a case up after this (120s).", rich_help_panel=EFFORT),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TEXT", help="Kept with the run; repeatable.", rich_help_panel=OUTPUT),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Save here, replacing it.", rich_help_panel=OUTPUT),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="The cases and the time they may take; run nothing.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines, no live view.", rich_help_panel=OUTPUT)]

Margin = Annotated[
    str | None,
    typer.Option("--margin", metavar="PCT", help="A loss that does not matter, 3%.", rich_help_panel=JUDGING),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="VERDICTS",
        help="What fails: regression,suspect,failed,missing ...; none.",
        rich_help_panel=JUDGING,
    ),
]
HostMismatch = Annotated[
    str | None,
    typer.Option(
        "--host-mismatch",
        metavar="error|warn",
        help="warn: differences between unlike devices, without a verdict.",
        rich_help_panel=JUDGING,
    ),
]
OnlyChanged = Annotated[bool, typer.Option("--only-changed", help="No row that is what it was.")]
ComparisonForm = Annotated[str | None, typer.Option("--format", metavar="FORM", help="table, json, md, csv or xml.")]
ComparisonExport = Annotated[
    list[str] | None,
    typer.Option("--export", metavar="FILE", help="Also to a file: .json .md .csv, .xml for JUnit."),
]
Annotate = Annotated[
    str | None,
    typer.Option(
        "--annotate", metavar="github|none|auto", help="Remarks on the page of a build.", rich_help_panel=BUILD
    ),
]
Summary = Annotated[
    str | None,
    typer.Option(
        "--summary",
        metavar="FILE",
        help="Append what changed, as Markdown; GITHUB_STEP_SUMMARY if left out.",
        rich_help_panel=BUILD,
    ),
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
