"""Advice on sizes as text and as JSON values: the layers of a network, what padding was tried, what to do.

What is advised follows in `gpubench.advise`; here it gets words.
"""

from __future__ import annotations

import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpubench.advise import DOUBTFUL, LEAST_GAIN, Advice, Dimension, Times, Together, measured, of_record, spent
from gpubench.finding import Estimate
from gpubench.model import matmul
from gpubench.model.linear import PASSES
from gpubench.model.precision import BITS
from gpubench.report.words import SEPARATOR, conditions_words, device_name, plain, short_dtype
from gpubench.result import Run
from gpubench.units import format_duration, three_digits

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDEST = 90
"""Columns of a sentence: longer lines are hard to read."""
NO_INTERVAL = "too few samples for an interval"
"""Of a row that was measured, of which nothing is known but its median."""


@dataclass(frozen=True)
class Source:
    """Where the times are from. `how` is the conditions they were measured under or, of predicted ones, by what they
    are predicted; `run_id` is None for those. `failed` are rows without a time, each with its reason."""

    device: str
    dtype: str
    itemsize: int
    how: str
    predicted: bool = False
    run_id: str | None = None
    failed: tuple[str, ...] = ()


def source(run: Run, dtype: str) -> Source:
    """What is said of the times of a run that measured products in this dtype."""
    failed, known = [], measured(run)
    for record in run.records:
        if (product := of_record(record)) is not None and product not in known:
            why = record.reason or ", ".join(sorted(DOUBTFUL & set(record.flags)))
            why = why or (NO_INTERVAL if record.status == "ok" else record.status)
            failed.append(f"{product.m}x{product.n}x{product.k} {product.layout}: {why}")
    how = conditions_words(*(record.conditions for record in run.records))
    return Source(device_name(run), dtype, BITS[dtype] // 8, how, run_id=run.run_id, failed=tuple(failed))


def table(advice: Advice, times: Times, source: Source, width: int) -> RenderableType:
    """A heading, the layers with their times, the sizes tried with their gains, and what to do in sentences."""
    from rich.console import Group as Renderables
    from rich.text import Text

    tokens = advice.network.layers[0].tokens
    same = all(layer.tokens == tokens for layer in advice.network.layers)
    title = [
        "advise", plain(source.device), short_dtype(source.dtype), *([f"{tokens} tokens"] if same else []),
        *(["predicted, not measured"] if source.predicted else [source.how]),
    ]  # fmt: skip
    parts: list[RenderableType] = [Text(SEPARATOR.join(title), style="bold"), _layers(advice, times, source), Text("")]
    if any(dimension.tried for dimension in advice.dimensions):
        parts += [_tried(advice), Text("")]
    parts += [Text(_wrapped(line, width)) for line in lines(advice, source)]
    return Renderables(*parts)


def lines(advice: Advice, source: Source) -> list[str]:
    """What to do: a sentence for each dimension, one for all together, and remarks."""
    said = [_sentence(dimension, advice, source) for dimension in advice.dimensions]
    if advice.together is not None:
        said.append(_all(advice.together, advice))
    elif len(advice.padded) > 1:
        said.append("together they were not measured: ask once more for the padded sizes")
    if all(_needs_nothing(dimension, source.itemsize) for dimension in advice.dimensions):
        said.append("nothing to gain by padding")
    if source.predicted:
        said.append(f"predicted, not measured: {source.how}")
    return said + [f"no time: {plain(line)}" for line in source.failed]


def _sentence(found: Dimension, advice: Advice, source: Source) -> str:
    itemsize = source.itemsize
    rows = _aligned(found.size, itemsize)
    if found.pad_to is not None:
        to = found.pad_to
        step = "" if to.step == to.both else f", all of a step {_gain(to.step)}"
        return (
            f"pad {found.name} {found.size} → {to.size}, rows aligned to {rows} B → {_aligned(to.size, itemsize)} B: "
            f"the products of {' and '.join(found.layers)} are {_gain(to.both)} as fast{step}; "
            f"{_cost(to.parameters, advice.network.parameters)}"
        )
    begun = f"keep {found.name} {found.size}, rows aligned to {rows} B:"
    if found.verdict == "aligned":
        nothing = "nothing to gain, and " if _needs_nothing(found, itemsize) else ""
        return f"{begun} {nothing}no better aligned size is close"
    if found.verdict == "not measured" or found.best is None:
        return f"{begun} undecided, a product that it takes has no time"
    tried = f"with {found.best.size} a step is {_gain(found.best.step)} as fast"
    if found.verdict == "uncertain":
        better = "it must be measured there" if source.predicted else "--case-time 2s knows better"
        return f"{begun} undecided, {tried}; {better}"
    just = "just " if three_digits(found.best.step.value) == three_digits(LEAST_GAIN) else ""
    less = f"{just}less than {LEAST_GAIN:g}×" if found.best.step.value < LEAST_GAIN else "too little to be predicted"
    return f"{begun} nothing to gain, {tried}, {less}"


def _needs_nothing(found: Dimension, itemsize: int) -> bool:
    """Whether it is known that padding a dimension gains nothing, by its times or as its rows are aligned."""
    known = found.verdict == "aligned" and _aligned(found.size, itemsize) >= matmul.VECTOR
    return known or found.verdict == "nothing to gain"


def _aligned(size: int, itemsize: int) -> int:
    """The bytes that rows of so many elements are aligned to."""
    return min(matmul.ALIGNMENT_CAP, (size & -size) * itemsize)


def _all(found: Together, advice: Advice) -> str:
    sizes = ", ".join(f"{name} {size}" for name, size in found.sizes.items())
    cost = _cost(found.parameters, advice.network.parameters)
    return f"together ({sizes}): the products of a step are {_gain(found.step)} as fast; {cost}"


def _gain(found: Estimate) -> str:
    """`6.31× [6.27, 6.32]`, without limits where there are none."""
    if found.low == found.high:
        return f"{three_digits(found.value)}×"
    return f"{three_digits(found.value)}× [{three_digits(found.low)}, {three_digits(found.high)}]"


def _cost(parameters: int, of: int) -> str:
    return f"{parameters:,} more parameters ({_share(parameters, of)})"


def _share(parameters: int, of: int) -> str:
    share = f"{100 * parameters / of:.2f}"
    return "<0.01 %" if share == "0.00" else f"+{share} %"


def _layers(advice: Advice, times: Times, source: Source) -> RenderableType:
    from gpubench.report.grid import Column, Grid

    grid = Grid([
        Column("layer", fold=True), Column("tokens × outputs × inputs", right=True), Column("count", right=True),
        Column("rows", right=True), Column("forward", right=True), Column("backward", right=True),
    ])  # fmt: skip
    for layer in advice.network.layers:
        aligned = min(product.alignment(source.itemsize) for product in layer.products.values())
        grid.add(
            plain(layer.name), f"{layer.tokens} × {layer.outputs} × {layer.inputs}", str(layer.count), f"{aligned} B",
            *(_time(spent([layer], times, passes)) for passes in (PASSES[:1], PASSES[1:])),
        )  # fmt: skip
    grid.add("a step", "", "", "", *(
        _time(spent(advice.network.layers, times, passes)) for passes in (PASSES[:1], PASSES[1:])
    ))  # fmt: skip
    return grid


def _time(found: Estimate | None) -> str:
    return "–" if found is None else format_duration(found.value)


def _tried(advice: Advice) -> RenderableType:
    from gpubench.report.grid import Column, Grid

    grid = Grid([
        Column("padding", fold=True), Column("parameters", right=True), Column("forward", right=True),
        Column("backward", right=True), Column("both", right=True), Column("a step", right=True), Column(""),
    ])  # fmt: skip
    for found in advice.dimensions:
        for each in found.tried:
            gains = (each.forward, each.backward, each.both, each.step)
            grid.add(
                f"{found.name} {found.size} → {each.size}", _share(each.parameters, advice.network.parameters),
                *(f"{three_digits(gain.value)}×" for gain in gains), "←" if each is found.pad_to else "",
            )  # fmt: skip
    return grid


def to_json(advice: Advice, times: Times, source: Source) -> dict[str, Any]:
    """The same as JSON values: times in ns, gains with the limits of their intervals."""
    return {
        "measured": not source.predicted,
        "run_id": source.run_id,
        "device": source.device,
        "dtype": source.dtype,
        "how": source.how,
        "parameters": advice.network.parameters,
        "step_ns": None if advice.step is None else asdict(advice.step),
        "layers": [
            {
                "name": layer.name, "tokens": layer.tokens, "outputs": layer.outputs, "inputs": layer.inputs,
                "count": layer.count,
                "products": {
                    name: {**product._asdict(), "ns": asdict(times[product]) if product in times else None}
                    for name, product in layer.products.items()
                },
            }
            for layer in advice.network.layers
        ],
        "dimensions": [_dimension_json(found) for found in advice.dimensions],
        "padded": advice.padded,
        "together": None if advice.together is None else asdict(advice.together),
        "failed": list(source.failed),
    }  # fmt: skip


def _dimension_json(found: Dimension) -> dict[str, Any]:
    return {
        "name": found.name, "size": found.size, "layers": list(found.layers), "verdict": found.verdict,
        "pad_to": None if found.pad_to is None else found.pad_to.size,
        "tried": [asdict(each) for each in found.tried],
    }  # fmt: skip


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, min(width, WIDEST), subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip
