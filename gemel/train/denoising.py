"""TSDAE (Wang et al., 2021): most tokens of a text are deleted, and a decoder writes it from its vector.

Whatever the vector does not hold cannot be written, so that plain texts teach an encoder of their kind. The
decoder is small and goes when the encoder is saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.model.batches import padded
from gemel.tokens import Ids
from gemel.train.objectives import Objective

HEADS = (12, 8, 6, 4, 3, 2, 1)
LEAST_WIDTH = 32  # of a head


class Reconstruction(Objective):
    """A decoder that reads one vector and the tokens before each token, and says which comes next."""

    kinds: ClassVar[tuple[str, ...]] = ("texts",)

    def __init__(
        self, dim: int, width: int, max_tokens: int, n_layers: int = 1, deletion: float = 0.6
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise InvalidInput(f"the decoder has {n_layers} layers; expected at least 1")
        if not 0 <= deletion < 1:
            raise InvalidInput(f"deletion is {deletion}; expected a share of the tokens, 0 to 1")
        self.deletion = deletion
        self.positions = nn.Parameter(torch.randn(max_tokens, width) * 0.02)
        # Attention to one vector gives every token the same, whatever it asks: so that vector is just added.
        self.memories = nn.ModuleList(nn.Linear(dim, width) for _ in range(n_layers))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads_of(width), 4 * width, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(width)

    def reconstruct(self, vectors: Tensor, ids: Tensor, mask: Tensor, table: Tensor) -> Tensor:
        """The cross-entropy a token; vectors (batch, dim), ids and mask (batch, tokens).

        The table (vocabulary, width) is the encoder's: its rows are read, and what is written is one of them.
        """
        given, wanted = ids[:, :-1], ids[:, 1:]
        n_tokens = given.shape[1]
        future = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=ids.device).triu(1)
        states = F.embedding(given, table) + self.positions[:n_tokens]
        for memory, layer in zip(self.memories, self.layers, strict=True):
            states = layer(states + memory(vectors)[:, None], src_mask=future, is_causal=True)
        written = self.norm(states)
        is_real = mask[:, 1:] > 0
        # Real tokens only: the product with the whole vocabulary is most of the work.
        return F.cross_entropy(written[is_real] @ table.T, wanted[is_real])


class DenoisingStep(nn.Module):
    """Texts with holes through the encoder, its vectors through the decoder; embeddings are shared."""

    def __init__(self, model: SentenceEncoder, n_layers: int = 1, deletion: float = 0.6) -> None:
        super().__init__()
        self.model = model.with_on_truncate("ignore")
        width = word_table(model).shape[1]
        decoder: Objective = Reconstruction(model.dim, width, model.spec.max_tokens, n_layers, deletion)
        self.objective = decoder.to(model.device)

    @property
    def decoder(self) -> Reconstruction:
        """The objective, by what it is."""
        assert isinstance(self.objective, Reconstruction)
        return self.objective

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        (texts,) = examples.columns.values()
        whole = self.model.tokenizer.pieces([texts[row] for row in rows], self.model.prompt, "ignore").ids
        holed = self.with_holes(whole)
        vectors = self.model(self.model.batch(holed))
        ids, mask = padded(whole, 0, self.model.device)
        loss = self.decoder.reconstruct(vectors, ids, mask, word_table(self.model))
        return loss, sum(map(len, holed)) + sum(map(len, whole))

    def with_holes(self, sequences: Sequence[Ids]) -> list[Ids]:
        """The sequences without a share of their tokens; the special ones and a prompt's stay, and of the
        others at least one."""
        tokenizer, prompt = self.model.tokenizer, self.model.prompt
        n_first, n_last = len(tokenizer.prefix), len(tokenizer.suffix)
        if prompt:
            n_first += tokenizer.prompt_tokens(prompt)
        kept = []
        for ids in sequences:
            stays = np.ones(len(ids), bool)
            # Torch's own numbers, which follow from the step.
            chance = torch.rand(max(0, len(ids) - n_first - n_last)).numpy()
            if len(chance):
                stays[n_first : n_first + len(chance)] = chance >= self.decoder.deletion
                stays[n_first + chance.argmax()] = True
            kept.append(ids[stays])
        return kept

    def save(self, target: Path) -> None:
        """Write the encoder; the decoder has done its work."""
        self.model.save(target, overwrite=True)


def word_table(model: SentenceEncoder) -> Tensor:
    """The encoder's rows for its tokens (vocabulary, width), shared with whatever predicts them."""
    weight: Tensor = model.backbone.get_input_embeddings().weight  # type: ignore[operator]
    return weight


def heads_of(width: int) -> int:
    """As many heads of attention as divide the width and leave each enough of it."""
    return next((heads for heads in HEADS if width % heads == 0 and width // heads >= LEAST_WIDTH), 1)
