"""Token embeddings into one vector a sentence: the pooling layer of the paper (section 3)."""

from __future__ import annotations

import torch
from torch import Tensor

MEANS = ("mean", "mean_sqrt_len", "weightedmean")


def pool(tokens: Tensor, mask: Tensor, modes: tuple[str, ...], mean_mask: Tensor | None = None) -> Tensor:
    """(batch, tokens, dim) and a 0/1 mask (batch, tokens) into (batch, dim x modes).

    `mean_mask` is the mask of the means alone, where these leave out tokens that other modes need.
    """
    masks = {mode: mask if mean_mask is None or mode not in MEANS else mean_mask for mode in modes}
    return torch.cat([_POOLERS[mode](tokens, masks[mode]) for mode in modes], dim=-1)


def pooling_mask(attention: Tensor, n_skipped_first: int, n_skipped_last: int) -> Tensor:
    """The mask of the tokens that count; a text with none of them counts whole."""
    if not n_skipped_first and not n_skipped_last:
        return attention
    positions = torch.arange(attention.shape[1], device=attention.device)
    ends = attention.sum(dim=1, keepdim=True) - n_skipped_last
    counted = attention * (positions >= n_skipped_first) * (positions < ends)
    return torch.where(counted.any(dim=1, keepdim=True), counted, attention)


def _cls(tokens: Tensor, mask: Tensor) -> Tensor:
    first = mask.to(torch.int32).argmax(dim=1)
    return tokens[torch.arange(len(tokens), device=tokens.device), first]


def _last(tokens: Tensor, mask: Tensor) -> Tensor:
    last = mask.shape[1] - 1 - mask.flip(1).to(torch.int32).argmax(dim=1)
    return tokens[torch.arange(len(tokens), device=tokens.device), last]


def _max(tokens: Tensor, mask: Tensor) -> Tensor:
    return tokens.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(dim=1)


def _mean(tokens: Tensor, mask: Tensor) -> Tensor:
    return _weighted_sum(tokens, mask) / mask.sum(dim=1, keepdim=True)


def _mean_sqrt_len(tokens: Tensor, mask: Tensor) -> Tensor:
    return _weighted_sum(tokens, mask) / mask.sum(dim=1, keepdim=True).sqrt()


def _weighted_mean(tokens: Tensor, mask: Tensor) -> Tensor:
    """Later tokens weigh more: token i counts i times."""
    weights = mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return _weighted_sum(tokens, weights) / weights.sum(dim=1, keepdim=True)


def _weighted_sum(tokens: Tensor, weights: Tensor) -> Tensor:
    return (tokens * weights.unsqueeze(-1).to(tokens.dtype)).sum(dim=1)


_POOLERS = {
    "cls": _cls,
    "max": _max,
    "mean": _mean,
    "mean_sqrt_len": _mean_sqrt_len,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
