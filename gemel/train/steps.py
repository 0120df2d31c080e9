"""What one step of the loop does: rows of examples into a loss, for encoders and cross-encoders alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gemel.checkpoint import Head
from gemel.data.examples import Examples
from gemel.model import CrossEncoder, Trainable
from gemel.model.backbone import arrays_of
from gemel.train.objectives import FeedForwardRegression, Objective, Softmax


class Step(Protocol):
    """A model and an objective that the loop can train together."""

    model: Any
    objective: Objective

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""

    def save(self, target: Path) -> None:
        """Write the model, with whatever the objective has learnt for it."""


class SentenceEncoderStep(nn.Module):
    """One forward pass for all columns of a batch, then the objective on their embeddings."""

    def __init__(self, model: Trainable, objective: Objective, labels: Sequence[str] = ()) -> None:
        super().__init__()
        self.model = model.with_on_truncate("ignore")
        self.objective = objective.to(model.device)
        self.labels = tuple(labels)

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        columns = list(examples.columns.values())
        texts = [column[row] for column in columns for row in rows]
        sequences = self.model.tokenizer.pieces(texts, self.model.prompt, "ignore").ids
        embeddings: Tensor = self.model(self.model.batch(sequences))
        by_column = torch.split(embeddings, len(rows))
        loss: Tensor = self.objective(by_column, _labels(examples, rows, embeddings.device))
        return loss, sum(map(len, sequences))

    def save(self, target: Path) -> None:
        """Write the encoder, and the head of an objective that has one."""
        self.model.save(target, overwrite=True, head=self.head())

    def head(self) -> Head | None:
        """What the objective has learnt on top of the vectors, if anything."""
        if isinstance(self.objective, Softmax):
            return Head("softmax", self.objective.concatenation, arrays_of(self.objective), self.labels)
        if isinstance(self.objective, FeedForwardRegression):
            return Head("regression", self.objective.concatenation, arrays_of(self.objective))
        return None


class CrossEncoderStep(nn.Module):
    """Both texts of a pair are read at once; the objective sees the scores."""

    def __init__(self, model: CrossEncoder, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective.to(model.device)

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        first, second = examples.columns.values()
        ids, types, _ = self.model.tokenizer.pieces([(first[row], second[row]) for row in rows])
        logits: Tensor = self.model(**self.model.batch(ids, types))
        loss: Tensor = self.objective([logits], _labels(examples, rows, logits.device))
        return loss, sum(map(len, ids))

    def save(self, target: Path) -> None:
        """Write the cross-encoder."""
        self.model.save(target, overwrite=True)


def _labels(examples: Examples, rows: npt.NDArray[np.int64], device: torch.device) -> Tensor | None:
    return None if examples.labels is None else torch.from_numpy(examples.labels[rows]).to(device)
