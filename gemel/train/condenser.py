"""coCondenser (Gao and Callan, 2021, 2022): the first token learns to hold what a text is about.

Masked tokens are predicted by a short head that sees the tokens as they were half-way up the encoder, and of
the upper half only the first token's vector: what the upper layers have learnt must pass through it. Besides,
two spans of one document are each other's positives among all spans of the batch. The head goes at the end.
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
from gemel.tokens import Ids
from gemel.train.denoising import heads_of, word_table
from gemel.train.objectives import Objective
from gemel.train.student import LAYERED

REPLACED, RANDOM = 0.8, 0.1  # of the chosen tokens: by the mask, by any other; the rest stay as they are


class SpanContrast(Objective):
    """Each span's other half among all spans of the batch, by inner products: of all processes of a run."""

    kinds: ClassVar[tuple[str, ...]] = ("texts",)
    min_batch = 2  # one document alone has nothing to be told apart from

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """The mean cross-entropy; columns are first and second spans, (documents, hidden) each."""
        vectors = torch.cat(list(columns))
        is_self = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        scores = (vectors @ vectors.T).masked_fill(is_self, -torch.inf)
        others = torch.arange(len(vectors), device=scores.device).roll(len(columns[0]))
        return F.cross_entropy(scores, others)


class CondenserHead(Objective):
    """Two layers over the late first token and the early others, and a prediction of the masked ones."""

    kinds: ClassVar[tuple[str, ...]] = ("texts",)
    min_batch = SpanContrast.min_batch

    def __init__(
        self, hidden: int, width: int, n_layers: int = 2, masked: float = 0.15, contrast: float = 1.0
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise InvalidInput(f"the head has {n_layers} layers; expected at least 1")
        if not 0 < masked < 1 or contrast < 0:
            raise InvalidInput(
                f"masked is {masked} and contrast {contrast}; expected a share of tokens and a weight from 0"
            )
        self.masked, self.contrast = masked, contrast
        layer = nn.TransformerEncoderLayer(
            hidden, heads_of(hidden), 4 * hidden, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(hidden, width), nn.GELU(), nn.LayerNorm(width))
        self.span_contrast = SpanContrast()

    def read(self, early: Tensor, late: Tensor, mask: Tensor) -> Tensor:
        """(batch, tokens, hidden) each into the head's own output of the same shape."""
        joined = torch.cat([late[:, :1], early[:, 1:]], dim=1)
        output: Tensor = self.layers(joined, src_key_padding_mask=mask == 0)
        return output

    def predict(self, tokens: Tensor, table: Tensor) -> Tensor:
        """(tokens, hidden) into scores over the vocabulary."""
        scores: Tensor = self.transform(tokens) @ table.T
        return scores


class CondenserStep(nn.Module):
    """Two spans of each document, masked; the losses: masked tokens by head and by encoder, and the spans."""

    is_float32 = True  # it reads layers of the model, and not what comes out of it

    def __init__(
        self,
        model: SentenceEncoder,
        n_layers: int = 2,
        masked: float = 0.15,
        contrast: float = 1.0,
        span_tokens: int = 128,
    ) -> None:
        super().__init__()
        self.model = model.with_on_truncate("ignore")
        self.n_early = _n_layers(model) // 2
        hidden, width = model.spec.hidden_size, word_table(model).shape[1]
        head: Objective = CondenserHead(hidden, width, n_layers, masked, contrast)
        self.objective = head.to(model.device)
        n_special = len(model.tokenizer.prefix) + len(model.tokenizer.suffix)
        self.room = min(span_tokens, model.spec.max_tokens) - n_special
        if self.room < 1:
            raise InvalidInput(
                f"span_tokens is {span_tokens}; expected more than the {n_special} special ones"
            )
        self._mask_id = _mask_id(model)

    @property
    def head(self) -> CondenserHead:
        """The objective, by what it is."""
        assert isinstance(self.objective, CondenserHead)
        return self.objective

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        (texts,) = examples.columns.values()
        spans = self.spans([texts[row] for row in rows])
        chosen = [self._chosen(ids) for ids in spans]
        masked = [self._masked(ids, which) for ids, which in zip(spans, chosen, strict=True)]
        batch = self.model.batch(masked)
        # The same lengths, so the same order: these lie beside the tokens as the batch has them.
        truth, is_chosen = self.model.batch(spans).blocks_of_ids(), self.model.batch(chosen).blocks_of_ids()
        table, firsts, predicted = word_table(self.model), [], []
        for (early, late, mask), ids, which in zip(
            batch.hidden_blocks(self.model.backbone, self.n_early), truth, is_chosen, strict=True
        ):
            where = (which > 0) & (mask > 0)
            firsts.append(late[:, 0])
            for tokens in (self.head.read(early, late, mask), late):
                predicted.append(
                    F.cross_entropy(self.head.predict(tokens[where], table), ids[where], reduction="sum")
                )
        n_chosen = sum(int(which.sum()) for which in chosen)
        loss = torch.stack(predicted).sum() / max(1, n_chosen)
        vectors = torch.cat(firsts)
        vectors = vectors if batch.restore is None else vectors[batch.restore]
        halves = torch.split(vectors, len(rows))
        return loss + self.head.contrast * self.head.span_contrast(halves, None), sum(map(len, spans))

    def spans(self, documents: Sequence[str]) -> list[Ids]:
        """Two spans of each document that share no token: all first ones, then all second ones."""
        tokenizer = self.model.tokenizer
        halves = [self._halves(content) for content in tokenizer.contents(documents)]
        return tokenizer.wrapped([first for first, _ in halves] + [second for _, second in halves]).ids

    def save(self, target: Path) -> None:
        """Write the encoder; the head has done its work."""
        self.model.save(target, overwrite=True)

    def _halves(self, content: Ids) -> tuple[Ids, Ids]:
        """A document cut in two somewhere in its middle half, and of each part a window at random."""
        cut = len(content) // 4 + _below(max(1, len(content) // 2)) + 1
        return self._window(content[:cut]), self._window(content[cut:] if cut < len(content) else content)

    def _window(self, ids: Ids) -> Ids:
        start = _below(max(1, len(ids) - self.room + 1))
        return ids[start : start + self.room]

    def _chosen(self, ids: Ids) -> Ids:
        """1 for the tokens to be predicted, 0 for others; special ones never are."""
        n_first, n_last = len(self.model.tokenizer.prefix), len(self.model.tokenizer.suffix)
        is_chosen = np.zeros(len(ids), np.int32)
        chance = torch.rand(len(ids) - n_first - n_last).numpy()
        if len(chance):
            inner = chance < self.head.masked
            inner[chance.argmin()] = True  # or a short text would teach nothing
            is_chosen[n_first : n_first + len(chance)] = inner
        return is_chosen

    def _masked(self, ids: Ids, chosen: Ids) -> Ids:
        chance = torch.rand(len(ids)).numpy()
        others = torch.randint(len(word_table(self.model)), (len(ids),)).numpy().astype(np.int32)
        hidden = np.where(chance < REPLACED, self._mask_id, np.where(chance < REPLACED + RANDOM, others, ids))
        result: Ids = np.where(chosen > 0, hidden, ids).astype(np.int32)
        return result


def _below(n: int) -> int:
    """A random number from 0 to n - 1, of torch's, which follow from the step."""
    return int(torch.randint(n, ()))


def _mask_id(model: SentenceEncoder) -> int:
    """The token that stands for a hidden one."""
    from tokenizers import Tokenizer

    said = model.folder.tokenizer_config.get("mask_token") or "[MASK]"
    name = said.get("content") if isinstance(said, dict) else said
    number = Tokenizer.from_str(model.tokenizer.to_json()).token_to_id(str(name))
    if number is None:
        raise InvalidInput(
            f"{model.folder.path} has no mask token, so no token can be hidden and predicted; expected a "
            "model that was pre-trained that way, such as BERT"
        )
    return int(number)


def _n_layers(model: SentenceEncoder) -> int:
    setting = LAYERED.get(str(model.folder.config.get("model_type")))
    n_layers = model.folder.config.get(setting) if setting else None
    if not isinstance(n_layers, int) or n_layers < 2:
        raise InvalidInput(
            f"{model.folder.path} has {n_layers or 'an unknown number of'} layers; expected one of "
            f"{', '.join(LAYERED)} with two or more"
        )
    return n_layers
