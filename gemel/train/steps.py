"""What one step of the loop does: rows of examples into a loss, for encoders and cross-encoders alike."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gemel.checkpoint import Head
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import CrossEncoder, Trainable
from gemel.model.backbone import arrays_of
from gemel.tokens import Ids
from gemel.train.dropout import has_dropout
from gemel.train.objectives import FeedForwardRegression, Matryoshka, Objective, Softmax


class Step(Protocol):
    """A model and an objective that the loop can train together."""

    model: Any

    @property
    def objective(self) -> Objective:
        """What is asked of the vectors."""

    def loss(self, examples: Any, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows of the examples it is for, and how many tokens were read for it."""

    def save(self, target: Path) -> None:
        """Write the model, with whatever the objective has learnt for it."""


class SentenceEncoderStep(nn.Module):
    """One forward pass for all columns of a batch, then the objective on their embeddings."""

    cache_chunk: int | None = None  # texts of a batch that are in memory with their activations at once

    def __init__(
        self,
        model: Trainable,
        objective: Objective,
        labels: Sequence[str] = (),
        prompts: Sequence[str] = (),  # of each column; none means the model's own for all
    ) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise InvalidInput(
                f"a {type(model).__name__} was given to be trained, which only encodes; open the model with "
                "load_trainable"
            )
        self.model = model.with_on_truncate("ignore")
        self.objective = objective.to(model.device)
        self.said_labels = self.labels = tuple(labels)  # without, those of the examples
        self.prompts = tuple(prompts)

    def loss(self, examples: Examples, rows: npt.NDArray[np.int64]) -> tuple[Tensor, int]:
        """The loss of these rows, and how many tokens were read for it."""
        columns, n_tokens = embed_columns(self.model, examples, rows, self.cache_chunk, self.prompts)
        loss: Tensor = self.objective(columns, labels_of(examples, rows, self.model.device))
        return loss, n_tokens

    def save(self, target: Path) -> None:
        """Write the encoder, and the head of an objective that has one."""
        self.model.save(target, overwrite=True, head=self.head())

    def head(self) -> Head | None:
        """What the objective has learnt on top of the vectors, if anything."""
        return head_of(self.objective, self.labels)


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
        loss: Tensor = self.objective([logits], labels_of(examples, rows, logits.device))
        return loss, sum(map(len, ids))

    def save(self, target: Path) -> None:
        """Write the cross-encoder."""
        self.model.save(target, overwrite=True)


def embed_columns(
    model: Trainable,
    examples: Examples,
    rows: npt.NDArray[np.int64],
    chunk: int | None = None,
    prompts: Sequence[str] = (),
) -> tuple[Sequence[Tensor], int]:
    """The embeddings (rows, dim) of each column of these rows, and how many tokens they have."""
    seen = _seen(examples)
    before = cycle(prompts or [model.prompt])
    texts = [prompt + column[row] for prompt, column in zip(before, seen, strict=False) for row in rows]
    sequences = model.tokenizer.pieces(texts, "", "ignore").ids
    if chunk is None or chunk >= len(sequences):
        embeddings: Tensor = model(model.batch(sequences))
    else:
        chunks = [sequences[start : start + chunk] for start in range(0, len(sequences), chunk)]
        embeddings = torch.cat([_embed_again_for_gradients(model, sequences) for sequences in chunks])
    by_column = torch.split(embeddings, len(rows))
    if examples.kind == "texts" and model.training and torch.equal(by_column[0], by_column[1]):
        advice = "set dropout = 0.1 in the recipe's train, or train" if has_dropout(model) else "train"
        raise InvalidInput(
            "a text has the same vector twice, for this model has no dropout, and so nothing can be learnt "
            f"from texts alone: {advice} on pairs"
        )
    return by_column, sum(map(len, sequences))


def _seen(examples: Examples) -> list[list[str]]:
    """The columns as the objective sees them: a text alone twice, each time through dropout (SimCSE)."""
    columns = list(examples.columns.values())
    return columns * 2 if examples.kind == "texts" else columns


def _embed_again_for_gradients(model: Trainable, sequences: Sequence[Ids]) -> Tensor:
    """Embeddings whose activations are not kept: the backward pass makes them again, with the same dropout.

    So a batch costs the memory of one chunk and has the gradients of the whole (GradCache, Gao et al., 2021).
    """
    batch = model.batch(sequences)
    # The tensor tells which device's random state is to be kept.
    embeddings: Tensor = checkpoint(
        lambda _: model(batch), torch.empty(0, device=model.device), use_reentrant=False
    )
    return embeddings


def labels_of(examples: Examples, rows: npt.NDArray[np.int64], device: torch.device) -> Tensor | None:
    """Classes or scores (rows,), or else numbers of the texts (rows, columns), the same for the same text."""
    if examples.labels is not None:
        return torch.from_numpy(examples.labels[rows]).to(device)
    numbers = [[_number(column[row]) for column in _seen(examples)] for row in rows]
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def _number(text: str) -> int:
    """The same in every process, unlike Python's own hash."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def head_of(objective: Objective, labels: Sequence[str]) -> Head | None:
    """What an objective has learnt on top of the whole vectors of pairs, if anything."""
    whole = objective.whole if isinstance(objective, Matryoshka) else objective
    if isinstance(whole, Softmax):
        return Head("softmax", whole.concatenation, arrays_of(whole), tuple(labels))
    if isinstance(whole, FeedForwardRegression):
        return Head("regression", whole.concatenation, arrays_of(whole))
    return None


def go_on_with(objective: Objective, head: Head | None, labels: Sequence[str]) -> None:
    """Put a trained head into an objective, if it is one of the same shape for the same classes."""
    own = head_of(objective, labels)
    if head is None or own is None or not is_alike(head, own):
        return
    whole = objective.whole if isinstance(objective, Matryoshka) else objective
    assert whole is not None  # it has a head
    whole.load_state_dict({name: torch.from_numpy(value) for name, value in head.weights.items()})


def is_alike(head: Head, other: Head) -> bool:
    """Whether one can be put in the place of the other."""
    shapes = [{name: value.shape for name, value in each.weights.items()} for each in (head, other)]
    mine, theirs = ((each.kind, each.concatenation, each.labels) for each in (head, other))
    return mine == theirs and shapes[0] == shapes[1]


def set_cache_chunk(step: Step, cache_chunk: int | None) -> None:
    """Let a step keep only so many texts of a batch in memory, if it can."""
    if hasattr(step, "cache_chunk"):
        step.cache_chunk = cache_chunk
    elif cache_chunk is not None:
        raise InvalidInput(
            f"cache_chunk is {cache_chunk} and a {type(step).__name__} cannot do with chunks; leave it out, "
            "or accumulate batches"
        )


def module_of(step: Step) -> nn.Module:
    """The step as torch sees it."""
    assert isinstance(step, nn.Module)
    return step
