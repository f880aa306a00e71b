"""Which dimension of a network to pad, to what size, at what cost and for what gain: from the times of its products.

Times are measured or predicted; which of them is for the caller to say. Each dimension is judged with those others
padded whose rows are misaligned: of two that are odd, padding one alone gains nothing, as one spoils a product.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from gpubench.finding import Estimate
from gpubench.model.linear import MULTIPLES, PASSES, Layer, Network, Pass, Product
from gpubench.result import Record, Run
from gpubench.stats import ratio_interval, trusted_median

LEAST_GAIN = 1.03
"""The gain from which padding is advised, its whole interval above: on the layers it changes, and on all products of a
step. Two runs of the same code differ by up to 3 % (the margin of `compare`), and a model is not changed for less."""
PREDICTED_GAIN = 1.25
"""The same on the layers it changes where times are predicted: the model misses one product in ten by more than 15 %,
and a gain is the ratio of two."""
ALIKE = 1.01
"""Sizes whose products differ by less take the same time: medians of two processes differ by as much."""
CHEAP = 0.001
"""Of sizes that take the same time the best aligned is advised, if it costs no more than this share of the parameters
beyond the cheapest: its parts are aligned too where several GPUs share it out, and in formats of fewer bits."""

SUITE, BENCHMARK = "matmul-sweep", "matmul"
"""What measures the products: the library's, of any shape and layout."""
DOUBTFUL = frozenset({"implausible", "below-resolution", "throttled", "fallback"})
"""Flags of rows that no advice is built on."""

Times = Mapping[Product, Estimate]
"""The time of each product in ns."""
Verdict = Literal["pad", "nothing to gain", "uncertain", "not measured", "aligned"]


@dataclass(frozen=True)
class Tried:
    """A larger size of a dimension. `parameters` are what it adds; the gains are times before over times after: of the
    forward and of the backward passes of the layers it changes, of both, and of all products of a step."""

    size: int
    parameters: int
    forward: Estimate
    backward: Estimate
    both: Estimate
    step: Estimate


@dataclass(frozen=True)
class Dimension:
    """A dimension, the sizes tried in order, and what to do. `pad_to` is one of them for the verdict "pad"; "aligned":
    there is no size to try; `layers` are those it changes."""

    name: str
    size: int
    layers: tuple[str, ...]
    tried: tuple[Tried, ...]
    verdict: Verdict
    pad_to: Tried | None = None

    @property
    def best(self) -> Tried | None:
        """The size with the largest gain on a step, None where none was measured."""
        return max(self.tried, key=lambda each: each.step.value, default=None)


@dataclass(frozen=True)
class Together:
    """All dimensions padded at once: their sizes, the parameters they add, and the gain on a step's products."""

    sizes: Mapping[str, int]
    parameters: int
    step: Estimate


@dataclass(frozen=True)
class Advice:
    """What to do. `step` is the time of all products of a step as it is, in ns, None where one was not measured;
    `together` is None where at most one dimension is to be padded. Where the advised sizes were not measured together,
    it is of others that were."""

    network: Network
    dimensions: tuple[Dimension, ...]
    step: Estimate | None
    together: Together | None

    @property
    def padded(self) -> dict[str, int]:
        """The advised sizes by dimension."""
        return {each.name: each.pad_to.size for each in self.dimensions if each.pad_to is not None}


# What to measure


def ready(network: Network) -> dict[str, int]:
    """The best aligned candidate of each dimension that is no multiple of the first of MULTIPLES."""
    return {
        name: candidates[-1]
        for name, size in network.dimensions.items()
        if size % MULTIPLES[0] and (candidates := network.candidates(name))
    }


def products(network: Network) -> list[Product]:
    """Every product that advice on a network asks for, each once: of the network as it is, of the one that is ready,
    and of that with each size of one dimension."""
    padding = ready(network)
    variants = [network, network.padded(padding)]
    for name, size in network.dimensions.items():
        variants += [network.padded({**padding, name: each}) for each in (size, *network.candidates(name))]
    layers = chain.from_iterable(variant.layers for variant in variants)
    return list(dict.fromkeys(product for layer in layers for product in layer.products.values()))


def measured(run: Run) -> dict[Product, Estimate]:
    """The times of the products of a run. A row that failed, or that is in doubt, has none."""
    return {
        product: Estimate(middle, low, high)
        for record in run.records
        if (product := of_record(record)) is not None
        and record.status == "ok"
        and not DOUBTFUL & set(record.flags)
        and (known := trusted_median(record)) is not None
        for low, middle, high in [known]
    }


def of_record(record: Record) -> Product | None:
    """The product that a row is, None for one of another benchmark."""
    if (record.suite, record.benchmark) != (SUITE, BENCHMARK):
        return None
    m, n, k = (int(record.params[name]) for name in "mnk")
    return Product(m, n, k, str(record.params["layout"]))


# What follows from the times


def advice(network: Network, times: Times, least: float = LEAST_GAIN, doubt: float = 1.0) -> Advice:
    """What to pad, given the times of the products; `least` is the gain on the layers that change from which on it is
    believed, `doubt` the factor by which times of misaligned rows may be off: within it they may gain."""
    padding = ready(network)
    found = tuple(_judged(network, name, padding, times, least, doubt) for name in network.dimensions)
    chosen = {each.name: each.pad_to.size for each in found if each.pad_to is not None}
    together = None
    if len(chosen) > 1:
        measured = {name: padding.get(name, size) for name, size in chosen.items()}
        together = _together(network, chosen, times) or _together(network, measured, times)
    return Advice(network, found, spent(network.layers, times), together)


def spent(layers: Iterable[Layer], times: Times, passes: Sequence[Pass] = PASSES) -> Estimate | None:
    """The time that these layers' products take together, None where one of them is not known.

    The distances to the limits are combined as the square root of the sum of their squares (MOVER: Zou and Donner,
    Statistics in Medicine 27, 2008): rows are independent of each other; a product that occurs often is one row.
    """
    weights: Counter[Product] = Counter()
    for layer in layers:
        for each in passes:
            weights[layer.products[each]] += layer.count
    if not weights or any(product not in times for product in weights):
        return None
    known = [times[product].times(count) for product, count in weights.items()]
    middle = math.fsum(each.value for each in known)
    down = math.hypot(*(each.value - each.low for each in known))
    up = math.hypot(*(each.high - each.value for each in known))
    return Estimate(middle, middle - down, middle + up)


def _gain(before: Estimate | None, after: Estimate | None) -> Estimate | None:
    if before is None or after is None:
        return None
    low, ratio, high = ratio_interval((after.low, after.value, after.high), (before.low, before.value, before.high))
    return Estimate(ratio, low, high)


def _judged(
    network: Network, name: str, padding: Mapping[str, int], times: Times, least: float, doubt: float
) -> Dimension:
    size, candidates = network.dimensions[name], network.candidates(name)
    before = network.padded({**padding, name: size})
    tried = []
    touched: tuple[str, ...] = ()
    for each in candidates:
        after = network.padded({**padding, name: each})
        pairs = [pair for pair in zip(before.layers, after.layers, strict=True) if pair[0] != pair[1]]
        touched = tuple(old.name for old, _ in pairs)
        sides = [[pair[side] for pair in pairs] for side in (0, 1)]
        forward, backward, both = (
            _gain(*(spent(side, times, passes) for side in sides)) for passes in (PASSES[:1], PASSES[1:], PASSES)
        )
        step = _gain(spent(before.layers, times), spent(after.layers, times))
        if forward is not None and backward is not None and both is not None and step is not None:
            parameters = network.padded({name: each}).parameters - network.parameters
            tried.append(Tried(each, parameters, forward, backward, both, step))
    found = Dimension(name, size, touched, tuple(tried), "aligned" if not candidates else "not measured")
    if found.best is None:
        return found
    off = doubt if size % MULTIPLES[0] else 1.0
    return _decided(found, network.parameters, least, off, missing=len(tried) < len(candidates))


def _decided(found: Dimension, parameters: int, least: float, off: float, *, missing: bool) -> Dimension:
    """The dimension with its verdict, and the size to pad to. Where a size is `missing` it might have gained, and gains
    may be so many times as large where times are `off`."""
    worth = [each for each in found.tried if each.both.low >= least and each.step.low >= LEAST_GAIN]
    if not worth and missing:
        return replace(found, verdict="not measured")
    if not worth:
        maybe = any(off * each.both.high >= least and off * each.step.high >= LEAST_GAIN for each in found.tried)
        return replace(found, verdict="uncertain" if maybe else "nothing to gain")
    fastest = max(each.both.value for each in worth)
    alike = [each for each in worth if each.both.value * ALIKE >= fastest]
    cheapest = alike[0]
    cheap = [each for each in alike if each.parameters - cheapest.parameters <= CHEAP * parameters]
    return replace(found, verdict="pad", pad_to=cheap[-1])  # candidates are the better aligned the later they come


def _together(network: Network, sizes: Mapping[str, int], times: Times) -> Together | None:
    after = network.padded(sizes)
    step = _gain(spent(network.layers, times), spent(after.layers, times))
    return None if step is None else Together(dict(sizes), after.parameters - network.parameters, step)
