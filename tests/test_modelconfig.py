"""Sizes from words and from config.json: those of GPT-2 and Llama as published, and files that are wrong or hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpubench.errors import UsageError
from gpubench.model.linear import Layer
from gpubench.model.transformer_shapes import Transformer
from gpubench.modelconfig import FLAGS, MOST, MOST_BYTES, Description, flagged, read, shapes, transformer

GPT2 = {
    "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
    "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "resid_pdrop": 0.1, "vocab_size": 50257,
}  # fmt: skip
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "attention_bias": False, "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "max_position_embeddings": 8192, "model_type": "llama", "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "rope_scaling": None, "rope_theta": 500000.0,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": 128256,
}  # fmt: skip


def file(folder: Path, content: Any) -> Path:
    path = folder / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def network(folder: Path, content: Any) -> Transformer:
    return transformer(read(file(folder, content)), 8192)


def test_gpt2(tmp_path: Path) -> None:
    assert network(tmp_path, GPT2) == Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192, tied=True)
    assert network(tmp_path, GPT2 | {"n_inner": 3000}).d_ff == 3000
    assert network(tmp_path, GPT2 | {"n_inner": None}).d_ff == 3072
    wider = flagged({"hidden": "1536"}, gated=False, tied=False, file=read(file(tmp_path, GPT2)))
    assert transformer(wider, 1).d_ff == 6144, "of a width that flags give"
    assert read(file(tmp_path, GPT2)).notes == ()


def test_llama(tmp_path: Path) -> None:
    expected = Transformer(4096, 32, 8, 128, 14336, 128256, 32, 8192, gated=True)
    assert network(tmp_path, LLAMA) == expected
    assert network(tmp_path, LLAMA | {"num_key_value_heads": None}).kv_heads == 32
    assert network(tmp_path, LLAMA | {"head_dim": 64}).head == 64
    assert network(tmp_path, LLAMA | {"tie_word_embeddings": True}).tied


def test_an_unknown_architecture_says_what_was_taken(tmp_path: Path) -> None:
    found = read(file(tmp_path, LLAMA | {"model_type": "new\x1b[31m"}))
    assert found.gated
    (note,) = found.notes
    assert "is not known: took hidden_size=4096, num_attention_heads=32" in note
    assert note.endswith("an MLP with a gate, as hidden_act is 'silu'")
    assert note.isprintable()
    plain = {name: value for name, value in LLAMA.items() if name not in ("model_type", "hidden_act")}
    other = read(file(tmp_path, plain))
    assert not other.gated
    assert other.notes[0].startswith("no model_type: took")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("{", "cut short"),
        ("[1]", "not the object"),
        ("null", "not the object"),
        ('{"n_embd": 1, "n_embd": 2}', "given twice"),
        ('{"hidden_size": NaN}', "not a JSON number"),
        ('{"hidden_size": 1e400}', "too large"),
        ("[" * 100_000, "nested too deeply"),
        ({}, "no hidden_size or n_embd"),
        ({"text_config": LLAMA}, "no hidden_size or n_embd"),
        (LLAMA | {"hidden_size": 4096.0}, "hidden_size is not a whole number"),
        (LLAMA | {"hidden_size": "4096"}, "hidden_size is not a whole number"),
        (LLAMA | {"hidden_size": True}, "hidden_size is not a whole number"),
        (LLAMA | {"hidden_size": 0}, "hidden_size is not a whole number"),
        (LLAMA | {"hidden_size": [4096]}, "hidden_size is not a whole number"),
        (LLAMA | {"vocab_size": -1}, "vocab_size is not a whole number"),
        (LLAMA | {"vocab_size": MOST + 1}, "vocab_size is not a whole number"),
        (LLAMA | {"n_embd": 768}, "hidden_size and n_embd differ"),
        (LLAMA | {"hidden_act": 5}, None),
        (LLAMA | {"model_type": "other", "hidden_act": 5}, "hidden_act is not a text"),
        (LLAMA | {"tie_word_embeddings": "no"}, "tie_word_embeddings is neither true nor false"),
        (LLAMA | {"num_local_experts": 8}, "num_local_experts says a mixture of experts"),
        (LLAMA | {"num_local_experts": None}, None),
        (LLAMA | {"kv_lora_rank": 512}, "kv_lora_rank says"),
        (LLAMA | {"is_encoder_decoder": True}, "is_encoder_decoder says"),
        (LLAMA | {"num_attention_heads": 33}, "no whole number for each of 33 heads"),
        (LLAMA | {"num_key_value_heads": 5}, "no whole number for each of 5"),
        ({name: value for name, value in LLAMA.items() if name != "vocab_size"}, "--vocab"),
        ({name: value for name, value in LLAMA.items() if name != "intermediate_size"}, "--d-ff"),
    ],
)
def test_what_a_file_may_hold(tmp_path: Path, content: Any, words: str | None) -> None:
    if words is None:
        network(tmp_path, content)
        return
    with pytest.raises(UsageError) as refused:
        network(tmp_path, content)
    assert words in str(refused.value)
    assert str(refused.value).isprintable()


def test_one_head_of_keys_for_all(tmp_path: Path) -> None:
    falcon = {
        "model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "num_kv_heads": 71, "vocab_size": 65024,
        "ffn_hidden_size": 18176, "num_hidden_layers": 32, "multi_query": True, "new_decoder_architecture": False,
    }  # fmt: skip
    assert network(tmp_path, falcon).layers[0] == Layer("qkv", 8192, 4544 + 2 * 64, 4544, 32)
    assert network(tmp_path, falcon).d_ff == 18176
    assert "num_kv_heads=1," in read(file(tmp_path, falcon)).notes[0]
    later = falcon | {
        "hidden_size": 8192,
        "num_attention_heads": 128,
        "num_kv_heads": 8,
        "new_decoder_architecture": True,
    }
    assert network(tmp_path, later).kv_heads == 8
    starcoder = GPT2 | {"model_type": "gpt_bigcode", "multi_query": True}
    assert network(tmp_path, starcoder).layers[0].outputs == 768 + 2 * 64
    assert network(tmp_path, starcoder | {"multi_query": False}).kv_heads == 12


def test_an_output_layer_of_another_width_is_refused(tmp_path: Path) -> None:
    opt = {
        "model_type": "opt", "hidden_size": 1024, "num_attention_heads": 16, "ffn_dim": 4096, "vocab_size": 50272,
        "num_hidden_layers": 24, "word_embed_proj_dim": 1024,
    }  # fmt: skip
    assert network(tmp_path, opt).d_ff == 4096
    with pytest.raises(UsageError, match="word_embed_proj_dim says an output layer of another width"):
        read(file(tmp_path, opt | {"word_embed_proj_dim": 512}))


def test_a_file_is_read_to_a_limit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than"):
        read(file(tmp_path, " " * (MOST_BYTES + 1)))
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "none.json")
    with pytest.raises(UsageError, match="is a folder"):
        read(tmp_path)


def test_flags_stand_over_the_file(tmp_path: Path) -> None:
    file_ = read(file(tmp_path, GPT2))
    found = flagged(dict.fromkeys(FLAGS) | {"vocab": "50304", "blocks": "1"}, gated=False, tied=False, file=file_)
    assert found.sizes["vocab"] == 50304
    assert found.sizes["hidden"] == 768
    assert found.tied
    assert flagged({"hidden": "64"}, gated=True, tied=True, file=None) == Description({"hidden": 64}, True, True)


@pytest.mark.parametrize("text", ["0", "-1", "1e3", "4k", "010", "", "9" * 30, str(MOST + 1)])
def test_a_wrong_size_names_its_flag(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--d-ff: "):
        flagged({"d_ff": text}, gated=False, tied=False, file=None)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(UsageError, match="needs --heads, --d-ff, --vocab too"):
        transformer(Description({"hidden": 64}), 1)


def test_layers_by_words_and_by_params() -> None:
    assert shapes(["8192x50257x768"], []).layers == (Layer("8192x50257x768", 8192, 50257, 768),)
    assert shapes(["8x7x6", "5x4x3", "8x7x6"], []).layers == (Layer("8x7x6", 8, 7, 6, 2), Layer("5x4x3", 5, 4, 3))
    assert shapes(["1×2×3"], ["m=1", "n=2,4", "k=3"]).layers == (Layer("1x2x3", 1, 2, 3), Layer("1x4x3", 1, 4, 3))


@pytest.mark.parametrize(
    ("words", "params", "said"),
    [
        (["8192x50257"], [], "is not TOKENSxOUTPUTSxINPUTS"),
        (["8192x50257x768x2"], [], "is not TOKENSxOUTPUTSxINPUTS"),
        (["-1x2x3"], [], "is not TOKENSxOUTPUTSxINPUTS"),
        (["\u0661x2x3"], [], "is not TOKENSxOUTPUTSxINPUTS"),
        (["0x2x3"], [], "'0' is not an integer from 1"),
        (["01x2x3"], [], "'01' is not an integer from 1"),
        ([f"{'9' * 5000}x2x3"], [], "999' is not TOKENSxOUTPUTSxINPUTS"),
        (["999999999x2x3"], [], "is not an integer from 1"),
        ([], ["m=1", "n=2"], "needs -p k= too"),
        ([], ["m=1", "n=2", "k=0"], "'0' is not an integer"),
        ([], ["m=a", "n=2", "k=1"], "'a' is not an integer"),
        ([], ["x=1"], "-p x is no size of a layer"),
        ([], ["mn=1"], "-p mn is no size of a layer"),
        ([], ["m=1:60:1", "n=2", "k=1"], "60 layers at once"),
    ],
)
def test_wrong_layers(words: list[str], params: list[str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        shapes(words, params)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 200
