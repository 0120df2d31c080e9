"""A step that learns from a teacher: what it said of the rows takes the place of their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.objectives import Objective

Targets = npt.NDArray[np.float32]


class DistillationStep(nn.Module):
    """One forward pass for all columns of a batch, then the objective against the teacher's rows."""

    def __init__(self, model: SentenceEncoder, objective: Objective, targets: Targets) -> None:
        super().__init__()
        self.model = model.with_on_truncate("ignore")
        self.objective = objective.to(model.device)
        self.targets = targets  # (examples, ...), in memory or mapped from a file

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        if len(self.targets) != len(examples):
            raise InvalidInput(
                f"the teacher spoke of {len(self.targets):,} examples and there are {len(examples):,}; "
                "let it read the same ones"
            )
        texts = [column[row] for column in examples.columns.values() for row in rows]
        sequences = self.model.tokenizer.pieces(texts, self.model.prompt, "ignore").ids
        embeddings: Tensor = self.model(self.model.batch(sequences))
        targets = torch.from_numpy(np.array(self.targets[rows], np.float32)).to(embeddings.device)
        loss: Tensor = self.objective(torch.split(embeddings, len(rows)), targets)
        return loss, sum(map(len, sequences))

    def save(self, target: Path) -> None:
        """Write the student."""
        self.model.save(target, overwrite=True)
