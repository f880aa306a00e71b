"""Dimensions of a network from words on the command line, or from a config.json as Hugging Face writes it.

Names are those of GPT-2 (`n_embd`, `n_head`, `n_inner`, `n_layer`) and those of Llama, which most others have taken
over (`hidden_size`, `num_attention_heads`, `num_key_value_heads`, `intermediate_size`, `num_hidden_layers`). Reading is
strict: a size is a whole number, one that is named in two ways must be the same, and a network whose products are
others than those of `gpubench.model.transformer_shapes` is refused with the key that says so.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError
from gpubench.keys import Whole
from gpubench.model.linear import Layer, Shapes
from gpubench.model.transformer_shapes import Transformer
from gpubench.nearest import did_you_mean
from gpubench.params import parse_params
from gpubench.store import jsonfile

MOST_BYTES = 2**20
"""Of a config.json: those of large networks have some thousands, label names included."""
MOST = 2**24
"""Of any dimension: a vocabulary of 16 million words is a slip."""

MOST_SHAPES = 50
"""Of one command line: each is a dozen products to measure."""
_SHAPE = re.compile(r"([0-9]{1,9})[x×]([0-9]{1,9})[x×]([0-9]{1,9})")

NAMES: Mapping[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head": ("head_dim",),
    "d_ff": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "vocab": ("vocab_size",),
    "blocks": ("num_hidden_layers", "n_layer"),
}
"""The keys of config.json for each dimension."""
GATED = frozenset({
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo", "olmo2", "granite",
    "cohere", "smollm3", "glm",
})  # fmt: skip
"""Values of `model_type` whose MLP has a gate."""
PLAIN = frozenset({"gpt2", "gpt_neox", "starcoder2", "phi", "opt"})
"""Values of `model_type` whose MLP has none."""
TIED = frozenset({"gpt2", "opt", "starcoder2", "gemma", "gemma2", "gemma3_text", "cohere", "smollm3"})
"""Values of `model_type` whose embedding is the output layer's matrix where the file does not say."""
REFUSED: Mapping[str, str] = {
    "num_local_experts": "a mixture of experts", "num_experts": "a mixture of experts",
    "n_routed_experts": "a mixture of experts", "kv_lora_rank": "attention through a narrower layer",
    "is_encoder_decoder": "an encoder and a decoder",
}  # fmt: skip
"""Keys that say, where they have a value, that there are other products."""
FLAGS: Mapping[str, str] = {
    "hidden": "--hidden", "heads": "--heads", "kv_heads": "--kv-heads", "head": "--head-dim", "d_ff": "--d-ff",
    "vocab": "--vocab", "blocks": "--layers",
}  # fmt: skip
"""The flag of each dimension."""
EXAMPLE = "such as --hidden 768 --heads 12 --d-ff 3072 --vocab 50257, --config config.json, or 8192x50257x768"
OF_FOUR = 4
"""Times its width is the MLP of GPT-2 where n_inner is null."""


@dataclass(frozen=True)
class Description:
    """What is said of a network: sizes by the names of NAMES, what of it is not sure in `notes`; `four` where an MLP of
    no given width is OF_FOUR times as wide as the stream."""

    sizes: Mapping[str, int]
    gated: bool = False
    tied: bool = False
    notes: tuple[str, ...] = ()
    four: bool = False


def read(path: Path) -> Description:
    """The description that a config.json holds; UsageError names the file and the key."""
    where = jsonfile.shown(path)
    config = jsonfile.loads(jsonfile.read_bytes(path, MOST_BYTES), where)
    if not isinstance(config, dict):
        raise UsageError(f"{where}: not the object that a config.json is")
    for key, words in REFUSED.items():
        if config.get(key) not in (None, False, 0):
            raise UsageError(
                f"{where}: {key} says {words}, whose products are others", "gpubench advise 8192x50257x768"
            )
    if _switch(config, where, "multi_query") and not _switch(config, where, "new_decoder_architecture"):
        config = {**config, "num_kv_heads": 1}  # whatever number Falcon's files give beside it
    sizes = {name: size for name, keys in NAMES.items() if (size := _size(config, keys, where)) is not None}
    if "hidden" not in sizes:
        raise UsageError(f"{where}: no {' or '.join(NAMES['hidden'])}: not the config.json of a language model")
    if (_size(config, ("word_embed_proj_dim",), where) or sizes["hidden"]) != sizes["hidden"]:
        raise UsageError(f"{where}: word_embed_proj_dim says an output layer of another width than hidden_size",
                         "gpubench advise 8192x50257x768")  # fmt: skip
    kind = config.get("model_type")
    known = isinstance(kind, str) and kind in GATED | PLAIN
    gated = kind in GATED if known else _word(config, where, "hidden_act") == "silu"
    tied = _switch(config, where, "tie_word_embeddings")
    return Description(
        sizes, gated, (isinstance(kind, str) and kind in TIED) if tied is None else tied,
        () if known else (_took(kind, config, gated),), "n_embd" in config,
    )  # fmt: skip


def shapes(words: Iterable[str], params: Iterable[str]) -> Shapes:
    """The layers that words `8192x50257x768` and -p m=, n=, k= mean: tokens × outputs × inputs. A word that is there
    twice is a layer that occurs twice in a step."""
    asked = parse_params(params)
    for name in asked:
        if name not in ("m", "n", "k"):
            raise UsageError(
                f"-p {name} is no size of a layer{did_you_mean(name, 'mnk')}", "-p m=8192 -p n=50257 -p k=768"
            )
    if asked and len(asked) < 3:
        missing = ", ".join(f"-p {name}=" for name in "mnk" if name not in asked)
        raise UsageError(f"a layer needs {missing} too", "-p m=8192 -p n=50257 -p k=768")
    counts: Counter[tuple[int, ...]] = Counter()
    for word in words:
        found = _SHAPE.fullmatch(word)
        if found is None:
            raise UsageError(f"{word[:40]!r} is not TOKENSxOUTPUTSxINPUTS", "such as 8192x50257x768")
        counts[tuple(whole(word, each) for each in found.groups())] += 1
    for sizes in itertools.product(*(asked[name] for name in "mnk")) if asked else []:
        counts.setdefault(tuple(whole("-p", str(size)) for size in sizes), 1)
    if len(counts) > MOST_SHAPES:
        raise UsageError(f"{len(counts)} layers at once are more than {MOST_SHAPES}", "ask for fewer")
    return Shapes(tuple(Layer(f"{m}x{n}x{k}", m, n, k, count) for (m, n, k), count in counts.items()))


def flagged(flags: Mapping[str, str | None], gated: bool, tied: bool, file: Description | None) -> Description:
    """What flags say of a network, by the names of FLAGS, over what a file says."""
    sizes = {name: whole(FLAGS[name], text) for name, text in flags.items() if text is not None}
    base = file or Description({})
    return Description({**base.sizes, **sizes}, gated or base.gated, tied or base.tied, base.notes, base.four)


def whole(origin: str, text: str) -> int:
    """The size that a text means; UsageError names where it is from."""
    try:
        return Whole(1, MOST).read(text)
    except UsageError as error:
        raise UsageError(f"{origin}: {error.message}", error.hint) from None


def transformer(found: Description, tokens: int) -> Transformer:
    """The network of a description; UsageError where a dimension is missing or they do not fit together."""
    sizes = dict(found.sizes)
    if found.four and "hidden" in sizes:
        sizes.setdefault("d_ff", OF_FOUR * sizes["hidden"])
    missing = [FLAGS[name] for name in ("hidden", "heads", "d_ff", "vocab") if name not in sizes]
    if missing:
        raise UsageError(f"a network needs {', '.join(missing)} too", EXAMPLE)
    if "head" not in sizes:
        if sizes["hidden"] % sizes["heads"]:
            raise UsageError(
                f"a width of {sizes['hidden']} is no whole number for each of {sizes['heads']} heads", FLAGS["head"]
            )
        sizes["head"] = sizes["hidden"] // sizes["heads"]
    sizes.setdefault("kv_heads", sizes["heads"])
    sizes.setdefault("blocks", 1)
    try:
        return Transformer(**sizes, tokens=tokens, gated=found.gated, tied=found.tied)
    except ValueError as error:
        raise UsageError(str(error), FLAGS["kv_heads"]) from None


def _size(config: Mapping[str, Any], keys: tuple[str, ...], where: str) -> int | None:
    """The dimension that these keys name, None where none of them has a value."""
    found = {key: config[key] for key in keys if config.get(key) is not None}
    for key, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
            raise UsageError(f"{where}: {key} is not a whole number from 1 to {MOST}")
    if len(set(found.values())) > 1:
        raise UsageError(f"{where}: {' and '.join(found)} differ, and are two names of one size")
    return next(iter(found.values()), None)


def _switch(config: Mapping[str, Any], where: str, key: str) -> bool | None:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{where}: {key} is neither true nor false")
    return value


def _word(config: Mapping[str, Any], where: str, key: str) -> str | None:
    value = config.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{where}: {key} is not a text")
    return value


def _took(kind: object, config: Mapping[str, Any], gated: bool) -> str:
    """What was made of an architecture that is not known."""
    name = f"model_type {kind[:40]!r} is not known" if isinstance(kind, str) else "no model_type"
    taken = ", ".join(f"{key}={config[key]}" for keys in NAMES.values() for key in keys if config.get(key) is not None)
    act = config.get("hidden_act")
    why = f"hidden_act is {act[:40]!r}" if isinstance(act, str) else "there is no hidden_act"
    return f"{name}: took {taken}; an MLP {'with' if gated else 'without'} a gate, as {why}"
