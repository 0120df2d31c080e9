"""Several tasks, one encoder: each with its own examples, objective and head, mixed batch by batch."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from gemel.checkpoint import Head
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.batches import Batches, EpochBatches, Rows
from gemel.train.objectives import Objective, check_eaten
from gemel.train.settings import is_above
from gemel.train.steps import embed_columns, head_of, labels_of

MIXINGS = ("proportional", "round-robin")
_OF_ALL = "all of "  # what a digest begins with; an older program's is of the texts and labels alone


@dataclass(frozen=True, eq=False)
class MixedExamples:
    """The examples of all tasks, numbered through them; every batch is of one task.

    `proportional` gives each task as many batches an epoch as its examples make, in a random order;
    `round-robin` gives them turns, and an epoch ends when the longest has ended: the others begin again.
    """

    parts: Mapping[str, Examples]
    mixing: str = "proportional"

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise InvalidInput(f"{len(self.parts)} tasks were given to be mixed; expected 2 or more")
        for name in self.parts:
            # It names a folder and weights: torch has some words for itself, such as "train".
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name) or hasattr(nn.ModuleDict(), name):
                raise InvalidInput(
                    f"a task is named {name!r}; expected letters, digits, - and _ only, and no word of "
                    "torch's such as train or items"
                )
        if self.mixing not in MIXINGS:
            raise InvalidInput(f"mixing is {self.mixing!r}; expected {' or '.join(MIXINGS)}")

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def starts(self) -> dict[str, int]:
        """The number of the first example of each task."""
        lengths = [len(part) for part in self.parts.values()]
        return dict(zip(self.parts, np.cumsum([0, *lengths[:-1]]).tolist(), strict=True))

    def locate(self, rows: Rows) -> tuple[str, Rows]:
        """The task that a batch is of, and its rows in that task's own examples."""
        name, start = [(name, start) for name, start in self.starts().items() if start <= rows[0]][-1]
        return name, rows - start

    def describe(self) -> str:
        """One line for a person."""
        return "; ".join(f"{name}: {part.describe()}" for name, part in self.parts.items())


def digest_of(examples: Examples | MixedExamples) -> str:
    """The same for the same texts, labels and tasks in the same order."""
    if isinstance(examples, Examples):
        parts, mixing = {"": examples}, ""
    else:
        parts, mixing = dict(examples.parts), examples.mixing
    digest = hashlib.sha256(mixing.encode())
    for task, part in parts.items():
        digest.update(json.dumps([task, part.kind, part.label_names, list(part.columns), len(part)]).encode())
        for texts in part.columns.values():
            for text in texts:
                digest.update(b"%d " % len(text) + text.encode())
        if part.labels is not None:
            digest.update(part.labels.tobytes())
    return f"{_OF_ALL}{digest.hexdigest()}"


def are_others(saved: str, digest: str) -> bool:
    """Whether a run was begun with other examples, as far as its digest can tell."""
    return saved.startswith(_OF_ALL) and saved != digest


class MixedObjective(Objective):
    """The objective of the task that a batch is of, weighted.

    A loss is divided by what guessing costs, log n for n classes: otherwise a task of many classes drowns out
    one of few (MUPPET, Aghajanyan et al., 2021).
    """

    def __init__(
        self,
        objectives: Mapping[str, Objective],
        weights: Mapping[str, float] | None = None,
        scale_by_guessing: bool = True,
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(objectives)
        self.weights = dict.fromkeys(objectives, 1.0) | dict(weights or {})
        self.scale_by_guessing = scale_by_guessing
        wrong = [
            name for name, weight in self.weights.items() if name not in self.parts or not is_above(weight, 0)
        ]
        if wrong:
            raise InvalidInput(
                f"the task {wrong[0]!r} has the weight {self.weights[wrong[0]]!r}; expected more than 0, "
                f"and one of the tasks {', '.join(objectives)}"
            )

    def forward(self, columns: Sequence[Tensor], labels: Tensor | None, task: str | None = None) -> Tensor:
        """The loss of a batch of that task."""
        assert task is not None
        part = self.part(task)
        scale = part.loss_of_guessing(columns) if self.scale_by_guessing else 1.0
        loss: Tensor = part(columns, labels)
        return loss * (self.weights[task] / scale)

    def losses(self) -> tuple[str, ...]:
        """Those of all tasks, each once."""
        return tuple(dict.fromkeys(loss for name in self.parts for loss in self.part(name).losses()))

    def describe(self) -> str:
        """The objective of each task."""
        return "; ".join(f"{name}: {self.part(name).describe()}" for name in self.parts)

    def truncations(self) -> tuple[int, ...]:
        """Those that all tasks have in common."""
        first, *others = [self.part(name).truncations() for name in self.parts]
        return tuple(one for one in first if all(one in other for other in others))

    def part(self, task: str) -> Objective:
        """The objective of a task."""
        part = self.parts[task]
        assert isinstance(part, Objective)
        return part


class MultiTaskStep(nn.Module):
    """One forward pass for all columns of a batch, then the objective of its task on their embeddings."""

    cache_chunk: int | None = None
    task: str = ""  # of the latest batch

    def __init__(
        self,
        model: SentenceEncoder,
        objective: MixedObjective,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__()
        self.model = model.with_on_truncate("ignore")
        self.objective = objective.to(model.device)
        self.said_labels = {name: tuple(names) for name, names in (labels or {}).items()}
        self.labels = self.said_labels  # of the tasks without, those of the examples

    def loss(self, examples: MixedExamples, rows: Rows) -> tuple[Tensor, int]:
        """The loss of these rows, which are of one task, and how many tokens were read for it."""
        self.task, own = examples.locate(rows)
        part = examples.parts[self.task]
        columns, n_tokens = embed_columns(self.model, part, own, self.cache_chunk)
        loss: Tensor = self.objective(columns, labels_of(part, own, self.model.device), self.task)
        return loss, n_tokens

    def save(self, target: Path) -> None:
        """Write the encoder, and the heads of the objectives that have one."""
        self.model.save(target, overwrite=True, head=self.head())

    def head(self) -> Head | None:
        """What the objectives have learnt on top of the vectors, by task; the first classifier before all."""
        objectives = {name: self.objective.part(name) for name in self.objective.parts}
        found = {name: head_of(each, self.labels.get(name, ())) for name, each in objectives.items()}
        heads = {name: head for name, head in found.items() if head is not None}
        ordered = sorted(heads.values(), key=lambda head: head.kind != "softmax")
        return replace(ordered[0], by_task=heads) if ordered else None


class MixedBatches:
    """Batches of all tasks in turn, or as many of each as it has."""

    def __init__(
        self, examples: MixedExamples, objective: MixedObjective, batch_size: int, seed: int
    ) -> None:
        self._starts = list(examples.starts().values())
        self._parts = [
            EpochBatches(part, objective.part(name), batch_size, seed)
            for name, part in examples.parts.items()
        ]
        self._counts = [part.n_batches for part in self._parts]
        self._in_turn = examples.mixing == "round-robin"
        self.n_batches = len(self._parts) * max(self._counts) if self._in_turn else sum(self._counts)
        self._seed = seed

    def rows(self, number: int) -> Rows:
        """The examples of a batch, numbered through all tasks."""
        if self._in_turn:
            own_number, task = divmod(number, len(self._parts))
        else:
            epoch, place = divmod(number, self.n_batches)
            tasks = np.repeat(np.arange(len(self._parts)), self._counts)
            schedule = np.random.default_rng([self._seed, epoch, len(self._parts)]).permutation(tasks)
            task = int(schedule[place])
            own_number = epoch * self._counts[task] + int((schedule[:place] == task).sum())
        return self._parts[task].rows(own_number) + self._starts[task]


def plan_batches(
    examples: Examples | MixedExamples, objective: Objective, batch_size: int, seed: int
) -> Batches:
    """Which examples each batch of a run has; those that the objective cannot eat are refused."""
    if isinstance(examples, Examples):
        check_eaten(examples, objective)
        return EpochBatches(examples, objective, batch_size, seed)
    if not isinstance(objective, MixedObjective) or list(objective.parts) != list(examples.parts):
        raise InvalidInput(
            f"tasks {', '.join(examples.parts)} were given to the objective {objective.describe()}; "
            "expected a MixedObjective with one objective for each"
        )
    for name, part in examples.parts.items():
        check_eaten(part, objective.part(name))
    return MixedBatches(examples, objective, batch_size, seed)
