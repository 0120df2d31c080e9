"""The sequences of a batch laid end to end, so that no linear layer computes padding.

transformers lets a model's attention be replaced by name. Ours takes spans of neighbouring sequences of
similar length and pads inside the attention only, where at these lengths a few per cent of the work is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from gemel.tokens import Ids

ATTENTION = "gemel_packed"
PACKABLE = ("bert", "electra", "distilbert", "roberta", "xlm-roberta", "camembert")
LENGTH_RATIO = 2.0  # a span's longest sequence is at most about twice its shortest


@dataclass(frozen=True)
class Span:
    """Neighbouring sequences that attend together; `slots` says where each token stands when padded."""

    start: int
    end: int
    n_sequences: int
    longest: int
    slots: Tensor | None  # (tokens,), None where all sequences are of one length
    attention_mask: Tensor  # (sequences, longest)

    def padded(self, tokens: Tensor) -> Tensor:
        """This span's part of the packed tokens (all, ...) as (sequences, longest, ...)."""
        own = tokens[self.start : self.end]
        if self.slots is not None:
            room = own.new_zeros((self.n_sequences * self.longest, *own.shape[1:]))
            own = room.index_copy(0, self.slots, own)
        return own.reshape(self.n_sequences, self.longest, *own.shape[1:])

    def packed(self, padded: Tensor) -> Tensor:
        """The way back: (sequences, longest, ...) as (tokens, ...)."""
        flat = padded.reshape(self.n_sequences * self.longest, *padded.shape[2:])
        return flat if self.slots is None else flat.index_select(0, self.slots)


@dataclass(frozen=True)
class PackedBatch:
    """Token ids of several sequences, the shortest first, and the way back to the order given."""

    input_ids: Tensor  # (1, tokens)
    position_ids: Tensor  # (1, tokens)
    spans: tuple[Span, ...]
    restore: Tensor  # (sequences,)

    def blocks(self, model: torch.nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
        """The model's token embeddings (sequences, tokens, dim), span by span, and their masks."""
        output = model(input_ids=self.input_ids, position_ids=self.position_ids, spans=self.spans)
        for span in self.spans:
            yield span.padded(output.last_hidden_state[0]), span.attention_mask

    def hidden_blocks(self, model: torch.nn.Module, layer: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """What the tokens are after so many layers and after all, span by span, and their masks."""
        output = model(
            input_ids=self.input_ids,
            position_ids=self.position_ids,
            spans=self.spans,
            output_hidden_states=True,
        )
        early, late = output.hidden_states[layer][0], output.last_hidden_state[0]
        for span in self.spans:
            yield span.padded(early), span.padded(late), span.attention_mask

    def blocks_of_ids(self) -> Iterator[Tensor]:
        """The token ids (sequences, tokens), span by span, filled up with 0."""
        for span in self.spans:
            yield span.padded(self.input_ids[0])


def pack(sequences: Sequence[Ids], first_position: int, device: torch.device) -> PackedBatch:
    """Lay sequences end to end, sorted by length and cut into spans."""
    lengths = np.array([len(sequence) for sequence in sequences])
    order = np.argsort(lengths, kind="stable")
    ids = np.concatenate([sequences[row] for row in order]).astype(np.int64)
    positions = np.concatenate([np.arange(lengths[row]) for row in order]) + first_position
    restore = np.empty(len(order), np.int64)
    restore[order] = np.arange(len(order))
    return PackedBatch(
        input_ids=torch.from_numpy(ids)[None].to(device),
        position_ids=torch.from_numpy(positions)[None].to(device),
        spans=tuple(_spans(lengths[order], device)),
        restore=torch.from_numpy(restore).to(device),
    )


def _spans(lengths: np.ndarray[Any, Any], device: torch.device) -> list[Span]:
    spans = []
    first = token = 0
    while first < len(lengths):
        last = int(np.searchsorted(lengths, LENGTH_RATIO * lengths[first], side="right"))
        own, longest = lengths[first:last], int(lengths[last - 1])
        mask = np.arange(longest) < own[:, None]
        slots = None if own[0] == longest else torch.from_numpy(np.flatnonzero(mask)).to(device)
        end = token + int(own.sum())
        spans.append(
            Span(token, end, len(own), longest, slots, torch.from_numpy(mask.astype(np.int64)).to(device))
        )
        first, token = last, end
    return spans


def _packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    spans: tuple[Span, ...],
    dropout: float = 0.0,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """(1, heads, tokens, width) each; gives (1, tokens, heads, width)."""
    rows = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]  # (tokens, heads, width)
    outputs = []
    for span in spans:
        q, k, v = (span.padded(tensor).transpose(1, 2) for tensor in rows)
        mask = None if span.slots is None else span.attention_mask[:, None, None, :] > 0
        attended = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, dropout_p=dropout, scale=scaling
        )
        outputs.append(span.packed(attended.transpose(1, 2)))
    return torch.cat(outputs)[None], None


def _no_mask(*_: Any, **__: Any) -> None:
    """transformers must not build a mask of all tokens with all tokens: the spans are the mask."""


AttentionInterface.register(ATTENTION, _packed_attention)
AttentionMaskInterface.register(ATTENTION, _no_mask)
