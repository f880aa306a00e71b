"""The matrices of a transformer by hand and by the other formula there is, and what of it may be padded."""

from __future__ import annotations

import pytest

from gpubench.model.transformer import MODELS
from gpubench.model.transformer_shapes import Transformer

GPT2 = Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192, tied=True)
LLAMA = Transformer(4096, 32, 8, 128, 14336, 128256, 32, 8192, gated=True)
XL = Transformer(1600, 25, 25, 64, 6400, 50257, 48, 8192, tied=True)


def test_parameters_are_those_that_are_published() -> None:
    """Of GPT-2, with 1024 positions, 9 widths of biases a block, scales and shifts; of Llama-3-8B, with scales."""
    assert GPT2.parameters + 768 * (1024 + 12 * (9 + 4) + 2) == 124_439_808
    assert LLAMA.parameters + 65 * 4096 == 8_030_261_248


@pytest.mark.parametrize("name", MODELS)
def test_the_matrices_are_those_of_the_block(name: str) -> None:
    shape = MODELS[name]
    gated = shape.style == "llama"
    made = Transformer(shape.width, shape.heads, shape.kv_heads, shape.head, shape.hidden, 100, 1, 16, gated=gated)
    assert sum(layer.parameters for layer in made.layers[:-1]) == sum(r * c for r, c in shape.matrices().values())
    assert {(layer.outputs, layer.inputs) for layer in made.layers[:-1]} == set(shape.matrices().values())


def test_each_matrix_counts_for_every_block() -> None:
    assert [layer.count for layer in LLAMA.layers] == [32, 32, 64, 32, 1]
    assert all(layer.tokens == 8192 for layer in LLAMA.layers)


def test_the_embedding_counts_where_it_is_another_matrix() -> None:
    untied = Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192)
    assert untied.parameters - GPT2.parameters == 50257 * 768
    extra = untied.padded({"vocab": 50304}).parameters - untied.parameters
    assert extra == 2 * 47 * 768


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (GPT2, ()),  # 768 is a multiple of 128: a wider stream is another network, and dearer
        (XL, (1664,)),  # 26 heads of 64
        (Transformer(1000, 10, 10, 100, 4000, 99, 1, 8), (1040,)),  # 10 heads of 104, a multiple of 16 too
        (Transformer(4160, 65, 13, 64, 99, 99, 1, 8), ()),  # 13 heads of keys: the next are 78 heads, a fifth more
        (Transformer(100, 10, 5, 10, 99, 99, 1, 8), (160,)),  # to the first multiple whatever it costs
        (Transformer(1000, 8, 8, 128, 99, 99, 1, 8), (1008, 1024)),  # heads of a width of their own
    ],
)
def test_wider_streams_are_whole_numbers_of_heads(network: Transformer, expected: tuple[int, ...]) -> None:
    assert network.candidates("hidden") == expected
    for width in expected:
        wider = network.padded({"hidden": width})
        assert wider.hidden == width
        assert wider.heads % wider.kv_heads == 0
        if network.hidden == network.heads * network.head:
            assert wider.heads * wider.head == width
        else:
            assert (wider.heads, wider.head) == (network.heads, network.head)
        assert wider.parameters > network.parameters


def test_padding_changes_what_it_names_alone() -> None:
    padded = XL.padded({"vocab": 50304, "d_ff": 6528})
    assert padded == Transformer(1600, 25, 25, 64, 6528, 50304, 48, 8192, tied=True)
    assert XL.padded({}) == XL


@pytest.mark.parametrize("wrong", [{"hidden": 1601}, {"hidden": 1608}])
def test_a_width_that_holds_no_whole_heads_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no whole number of heads"):
        XL.padded(wrong)


def test_heads_of_queries_are_shared_out() -> None:
    with pytest.raises(ValueError, match="no whole number for each of 5"):
        Transformer(768, 12, 5, 64, 3072, 50257, 12, 8192)
