"""Objectives of order: what is scored higher should be more similar."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gemel.train.objectives.objective import Objective, check_positive


class CoSent(Objective):
    """log(1 + sum of exp((cos_j - cos_i) / temperature)) over all i that are scored above j.

    Only the order of the scores counts, as for Spearman's correlation; their values are never met.
    """

    name = "cosent"
    kinds = ("scored pairs",)
    min_batch = 2

    def __init__(self, temperature: float = 0.05) -> None:
        super().__init__()
        self.temperature = check_positive("temperature", temperature)

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """One loss for all pairs of pairs of the batch; 0 where all scores are the same."""
        assert labels is not None
        cosines = F.cosine_similarity(columns[0], columns[1]) / self.temperature
        wrong = cosines[None, :] - cosines[:, None]
        ordered = wrong[labels[:, None] > labels[None, :]]
        return torch.logsumexp(torch.cat([ordered, ordered.new_zeros(1)]), dim=0)
