"""`gpubench advise`: a network's own sizes: which to pad, to what, and what it buys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.options import CONDITIONS
from gpubench.exits import Exit

if TYPE_CHECKING:
    from gpubench.advise import Advice, Times
    from gpubench.cli.screen import Screen
    from gpubench.model.linear import Network
    from gpubench.plan import Selected
    from gpubench.report.advise import Source
    from gpubench.result import Run

NETWORK = "The network"
DTYPE, CPU_DTYPE = "bfloat16", "float32"
"""What is computed in if nobody says: what networks are trained in, and what a CPU has units for."""
TOKENS = 8192
"""Of a step, if nobody says: 8 texts of 1024."""
WORD = "advise"
"""What a run is called."""

Shapes = Annotated[
    list[str] | None, typer.Argument(metavar="TOKENSxOUTPUTSxINPUTS", help="A layer of your own; several make a step.")
]
ShapeParams = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="m|n|k=1,2", help="The same: -p m=8192 -p n=50257 -p k=768."),
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="Take them from a config.json.", rich_help_panel=NETWORK)
]
Hidden = Annotated[
    str | None, typer.Option("--hidden", metavar="N", help="The width of the stream.", rich_help_panel=NETWORK)
]
Heads = Annotated[str | None, typer.Option("--heads", metavar="N", help="Heads of attention.", rich_help_panel=NETWORK)]
KvHeads = Annotated[
    str | None,
    typer.Option("--kv-heads", metavar="N", help="Heads of keys and values (as many).", rich_help_panel=NETWORK),
]
HeadDim = Annotated[
    str | None,
    typer.Option("--head-dim", metavar="N", help="Width of a head (hidden / heads).", rich_help_panel=NETWORK),
]
Dff = Annotated[str | None, typer.Option("--d-ff", metavar="N", help="Width of the MLP.", rich_help_panel=NETWORK)]
Vocab = Annotated[
    str | None, typer.Option("--vocab", metavar="N", help="Words of the vocabulary.", rich_help_panel=NETWORK)
]
Layers = Annotated[str | None, typer.Option("--layers", metavar="N", help="Blocks (1).", rich_help_panel=NETWORK)]
Tokens = Annotated[
    str | None, typer.Option("--tokens", metavar="N", help="Tokens of a step (8192).", rich_help_panel=NETWORK)
]
Gated = Annotated[bool, typer.Option("--gated", help="The MLP has a gate.", rich_help_panel=NETWORK)]
Tied = Annotated[bool, typer.Option("--tied", help="The embedding is the output layer.", rich_help_panel=NETWORK)]
Dtype = Annotated[
    str | None,
    typer.Option("--dtype", metavar="NAME", help="bfloat16, float16, float32 ...", rich_help_panel=CONDITIONS),
]
Gpu = Annotated[str | None, typer.Option("--gpu", metavar="NAME", help="Predict for this GPU, without measuring.")]


@options.reading
def advise(
    flags: options.Flags,
    shapes: Shapes = None,
    param: ShapeParams = None,
    config: Config = None,
    hidden: Hidden = None,
    heads: Heads = None,
    kv_heads: KvHeads = None,
    head: HeadDim = None,
    d_ff: Dff = None,
    vocab: Vocab = None,
    blocks: Layers = None,
    gated: Gated = False,
    tied: Tied = False,
    tokens: Tokens = None,
    gpu: Gpu = None,
    dtype: Dtype = None,
    device: options.Device = None,
    cache: options.Cache = None,
    load: options.Load = None,
    samples: options.Samples = None,
    max_noise: options.MaxNoise = None,
    max_time: options.MaxTime = None,
    case_time: options.CaseTime = None,
    timeout: options.Timeout = None,
    dry_run: options.DryRun = False,
    tag: options.Tags = None,
    output: options.Output = None,
    json: options.JsonOnly = False,
    plain: options.Plain = False,
    verbose: options.Verbose = False,
) -> Exit:
    """Which sizes of a network to pad, and what it buys.

    The products of its layers are measured, forward and backward, and those of better aligned sizes close by.
    """
    from gpubench.cli.stored import begin
    from gpubench.errors import DeviceUnavailable, UsageError

    measuring: dict[str, Any] = {
        "device": device, "cache": cache, "load": load, "samples": samples, "max_noise": max_noise,
        "max_time": max_time, "case_time": case_time, "timeout": timeout, "tag": tag, "output": output,
        "dry_run": dry_run,
    }  # fmt: skip
    sizes = {
        "hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head": head, "d_ff": d_ff, "vocab": vocab,
        "blocks": blocks,
    }  # fmt: skip
    looks = {**flags, "plain": plain, "verbose": verbose}
    settings, screen = begin(**looks, device=device)
    if shapes or param:
        others = {**sizes, "--config": config, "--tokens": tokens, "--gated": gated, "--tied": tied}
        network = _own(shapes or [], param or [], others)
    else:
        network = _described(sizes, gated, tied, config, tokens, screen)
    if gpu is not None:
        for name, value in measuring.items():
            if value:
                raise UsageError(f"--gpu predicts, --{name.replace('_', '-')} is about measuring", "one of them")
        _predict(network, gpu, dtype or DTYPE, json, screen)
        return Exit.DONE
    asked = dtype or (CPU_DTYPE if settings.device == "cpu" else DTYPE)
    try:
        return _measure(network, asked, measuring | looks, json, screen)
    except DeviceUnavailable as error:
        if settings.device != "auto":
            raise
        raise DeviceUnavailable(error.message, "--gpu h200 predicts, --device cpu measures the CPU") from None


def _own(words: list[str], params: list[str], others: Mapping[str, object]) -> Network:
    """Layers of the user's own, which no network is described beside."""
    from gpubench import modelconfig
    from gpubench.errors import UsageError

    for name, value in others.items():
        if value:
            raise UsageError(f"both a layer and {modelconfig.FLAGS.get(name, name)} are given", "layers or a network")
    return modelconfig.shapes(words, params)


def _described(
    sizes: Mapping[str, str | None], gated: bool, tied: bool, config: str | None, tokens: str | None, screen: Screen
) -> Network:
    """The network that flags and a config.json describe."""
    from gpubench import modelconfig

    file = None if config is None else modelconfig.read(Path(config))
    for note in () if file is None else file.notes:
        screen.warn(f"gpubench: {note}")
    found = modelconfig.flagged(sizes, gated, tied, file)
    return modelconfig.transformer(found, TOKENS if tokens is None else modelconfig.whole("--tokens", tokens))


def _predict(network: Network, gpu: str, dtype: str, json: bool, screen: Screen) -> None:
    """Advice from predicted times."""
    from gpubench.advise import PREDICTED_GAIN, advice, products
    from gpubench.explain.predict import predictor
    from gpubench.report.advise import Source
    from gpubench.store.folder import reference_folder

    chosen = predictor(gpu, dtype, reference_folder())
    times = chosen.times(products(network))
    source = Source(chosen.device, dtype, chosen.itemsize, chosen.how, predicted=True)
    _show(advice(network, times, PREDICTED_GAIN, chosen.doubt), times, source, json, screen)


@dataclass
class _Begun:
    """The run under way, once there is one."""

    run: Run | None = None
    path: Path | None = None

    def keep(self, run: Run, path: Path) -> None:
        """What `session.measure` calls."""
        self.run, self.path = run, path


def _measure(network: Network, dtype: str, flags: dict[str, Any], json: bool, screen: Screen) -> Exit:
    """Advice from times measured now; `auto` means a GPU here."""
    from gpubench.advise import advice, measured
    from gpubench.cli import session
    from gpubench.cli.output import from_here
    from gpubench.report.advise import source

    dry_run, output, tags = flags.pop("dry_run"), flags.pop("output"), flags.pop("tag")
    begun = _Begun()
    request = session.Request(
        [WORD], [], {**flags, "tags": tags, "ceilings": "none"}, dry_run=dry_run, output=output,
        form="json" if json else "table", silent=True, falls_back=False, begun=begun.keep,
        chosen=_selected(network, dtype),
    )  # fmt: skip
    code = session.measure(request)
    if begun.run is None or begun.path is None or not begun.run.records:
        return code
    times = measured(begun.run)
    _show(advice(network, times), times, source(begun.run, dtype), json, screen)
    screen.say(f"saved {from_here(begun.path)}")
    return code


def _selected(network: Network, dtype: str) -> list[Selected]:
    """A row for each product; those of the network as it is are sizes that the user named."""
    from gpubench.advise import BENCHMARK, SUITE, products
    from gpubench.discovery import Library
    from gpubench.plan import Selected

    benchmark = Library().suite(SUITE).benchmarks[BENCHMARK]
    benchmark.axes["dtype"].accept("dtype", dtype)
    named = {product for layer in network.layers for product in layer.products.values()}
    return [
        Selected(
            benchmark,
            {**{name: [value] for name, value in product._asdict().items()}, "dtype": [dtype]},
            by_hand=product in named,
        )
        for product in products(network)
    ]


def _show(found: Advice, times: Times, source: Source, json: bool, screen: Screen) -> None:
    from gpubench.report import advise as report
    from gpubench.store.jsonfile import dumps

    if json:
        screen.document(dumps(report.to_json(found, times, source), indent=1))
    else:
        screen.show(report.table(found, times, source, screen.width))
