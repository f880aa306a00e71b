"""The weight matrices of a transformer that decodes: their sizes, and the dimensions of it that may be padded.

The queries, keys and values of a block are one product, as in GPT-2; the two of a gated MLP, which are of one size,
count as two. The vocabulary and the width of the MLP can be padded with zeros, and the
network stays the same function; another width of the stream is another network, with more heads or wider ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpubench.model.linear import FARTHEST, MULTIPLES, Layer, near

HEAD = 8
"""What the width of a head must be a multiple of: kernels of attention read rows by 16 bytes."""


@dataclass(frozen=True)
class Transformer:
    """Dimensions as config.json has them: `hidden` is the width of the stream, `head` that of one head, `d_ff` that of
    the MLP. `gated`: an MLP with a second product beside the first. `tied`: the embedding is the output layer's matrix
    too. ValueError where the heads do not divide."""

    hidden: int
    heads: int
    kv_heads: int
    head: int
    d_ff: int
    vocab: int
    blocks: int
    tokens: int
    gated: bool = False
    tied: bool = False

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads of queries are no whole number for each of {self.kv_heads} of keys")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The weight matrices of all blocks, and that of the output layer."""
        inner = self.heads * self.head
        wide = "gate, up" if self.gated else "up"
        return (
            Layer("qkv", self.tokens, inner + 2 * self.kv_heads * self.head, self.hidden, self.blocks),
            Layer("attention out", self.tokens, self.hidden, inner, self.blocks),
            Layer(wide, self.tokens, self.d_ff, self.hidden, self.blocks * (2 if self.gated else 1)),
            Layer("down", self.tokens, self.hidden, self.d_ff, self.blocks),
            Layer("output", self.tokens, self.vocab, self.hidden),
        )

    @property
    def parameters(self) -> int:
        """Elements of all matrices, the embedding's included where it is not the output layer's."""
        return sum(layer.parameters for layer in self.layers) + (0 if self.tied else self.vocab * self.hidden)

    @property
    def dimensions(self) -> dict[str, int]:
        """What may be padded, the harmless first."""
        return {"vocab": self.vocab, "d_ff": self.d_ff, "hidden": self.hidden}

    def candidates(self, name: str) -> tuple[int, ...]:
        """The multiples close above; of the width of the stream those that are a whole number of heads, and none where
        it is a multiple already: every product would grow, of another network."""
        if name != "hidden":
            return near(self.dimensions[name])
        if self.hidden % MULTIPLES[-1] == 0:
            return ()
        return tuple(dict.fromkeys(self._widths())) if self._joined else near(self.hidden)

    def padded(self, sizes: Mapping[str, int]) -> Transformer:
        """The same with other sizes. A wider stream has more heads of the same width or, where that is no whole number
        of them, the same heads, each wider."""
        hidden = sizes.get("hidden", self.hidden)
        heads = self._heads(hidden) if self._joined else (self.heads, self.kv_heads, self.head)
        if heads is None:
            raise ValueError(f"a width of {hidden} is no whole number of heads")
        return replace(
            self, hidden=hidden, heads=heads[0], kv_heads=heads[1], head=heads[2],
            d_ff=sizes.get("d_ff", self.d_ff), vocab=sizes.get("vocab", self.vocab),
        )  # fmt: skip

    @property
    def _joined(self) -> bool:
        """Whether the heads share out the width of the stream; in some networks they have a width of their own."""
        return self.hidden == self.heads * self.head

    def _heads(self, hidden: int) -> tuple[int, int, int] | None:
        """Heads, those of keys, and their width for another width of the stream."""
        if hidden == self.hidden:
            return self.heads, self.kv_heads, self.head
        own_keys = self.kv_heads == self.heads
        if self.head % HEAD == 0 and hidden % self.head == 0:
            more = hidden // self.head
            if own_keys or more % self.kv_heads == 0:
                return more, more if own_keys else self.kv_heads, self.head
        if hidden % (self.heads * HEAD) == 0:
            return self.heads, self.kv_heads, hidden // self.heads
        return None

    def _widths(self) -> Iterator[int]:
        """Wider streams in the order of MULTIPLES, see `near`."""
        for multiple in MULTIPLES:
            if self.hidden % multiple == 0:
                continue
            most = 2.0 if multiple == MULTIPLES[0] else 1 + FARTHEST
            first = (self.hidden // multiple + 1) * multiple
            fitting = range(first, int(self.hidden * most) + 1, multiple)
            found = next((width for width in fitting if self._heads(width) is not None), None)
            if found is not None:
                yield found
