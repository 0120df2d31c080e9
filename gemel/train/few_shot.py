"""Tuning for a few-shot classifier: texts of one class are drawn together, those of others pushed apart.

The examples are walked through in rounds: each stands once a round beside another of its class, drawn at
random, and a batch of such pairs is one supervised contrastive task (Khosla et al., 2020). Pairs of different
classes need not be listed: every text of a batch is told apart from all others. So the work is what is asked
for, and does not grow with the square of the examples.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import ModelFolder, read_encoder_folder
from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.config import TrainConfig
from gemel.train.objectives import SupervisedContrastive
from gemel.train.parallel import refuse_team
from gemel.train.state import KEPT
from gemel.train.steps import SentenceEncoderStep
from gemel.train.trainer import train

Classes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ContrastiveTuner:
    """What `FewShotClassifier(tune=...)` takes: an encoder and examples into an encoder tuned on them."""

    max_pairs: int = 4_096  # to train on, however many could be made
    n_rounds: int = 16  # through all examples, if that makes fewer pairs
    batch_size: int = 32
    learning_rate: float = 5e-5
    temperature: float = 0.1
    max_minutes: float | None = None
    seed: int = 42
    output: Path | None = None  # where the run is kept; without, it goes when the encoder goes
    open_folder: Callable[[Path], Encoder] | None = None  # such as load_encoder; without, torch serves it

    def __post_init__(self) -> None:
        if self.max_pairs < SupervisedContrastive.min_batch or self.n_rounds < 1:
            raise InvalidInput(
                f"max_pairs is {self.max_pairs} and n_rounds {self.n_rounds}; expected at least 2 pairs and "
                "a round"
            )
        # What these refuse is refused now, and not after the data is read.
        _PairsOfAClass(self.temperature)
        self._config()

    def __call__(self, encoder: Encoder, texts: list[str], classes: Classes) -> Encoder:
        """An encoder with the same settings whose vectors tell the classes apart better."""
        refuse_team("tuning on a few examples")
        _check_partners(texts, classes)
        self._check_output()
        n_pairs = min(self.max_pairs, self.n_rounds * len(texts))
        first, second = sample_pairs(classes, n_pairs, self.seed)
        examples = Examples(
            "classified pairs",
            {"first": [texts[row] for row in first], "second": [texts[row] for row in second]},
            classes[first],
            tuple(str(number) for number in range(int(classes.max()) + 1)),
        )
        step = SentenceEncoderStep(_trainable(encoder), _PairsOfAClass(self.temperature))
        place = self.output or Path(tempfile.mkdtemp(prefix="gemel-tuned-"))
        try:
            folder = train(step, examples, place, self._config()).model
            tuned: Encoder = _used_like(encoder, (self.open_folder or _open_with_torch)(folder))
        except BaseException:
            if self.output is None:
                shutil.rmtree(place, ignore_errors=True)
            raise
        if self.output is None:
            weakref.finalize(tuned, shutil.rmtree, place, ignore_errors=True)
        return tuned

    def _check_output(self) -> None:
        if self.output is not None and any((Path(self.output) / name).exists() for name in KEPT):
            raise InvalidInput(
                f"{self.output} holds a run already; expected a place for this tuning alone: name another"
            )

    def _config(self) -> TrainConfig:
        return TrainConfig(
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            max_minutes=self.max_minutes,
            seed=self.seed,
        )


class _PairsOfAClass(SupervisedContrastive):
    """The same of pairs, both texts of which have the class that is their label."""

    kinds = ("classified pairs",)

    def losses(self) -> tuple[str, ...]:
        """The name of what it is."""
        return (SupervisedContrastive.__name__,)

    def describe(self) -> str:
        """The name of what it is."""
        return SupervisedContrastive.name


def sample_pairs(classes: Classes, n_pairs: int, seed: int) -> tuple[Classes, Classes]:
    """The rows of pairs of one class: each row once a round, in a new order, beside another at random."""
    counts = np.bincount(classes)
    assert 1 not in counts, "a class of one has no pairs"
    generator = np.random.default_rng(seed)
    n_rounds = -(-n_pairs // len(classes))
    first = np.concatenate([generator.permutation(len(classes)) for _ in range(n_rounds)])[:n_pairs]
    members = np.argsort(classes, kind="stable")  # the rows class by class
    starts = np.cumsum(counts) - counts
    place = np.empty_like(classes)
    place[members] = np.arange(len(classes)) - starts[classes[members]]
    # One of the others: a step of 1 to n - 1 around the circle of the class's n rows.
    sizes = counts[classes[first]]
    steps = generator.integers(1, sizes)
    second = members[starts[classes[first]] + (place[first] + steps) % sizes]
    return first, second


def _check_partners(texts: Sequence[str], classes: Classes) -> None:
    counts = np.bincount(classes)
    lonely = np.flatnonzero(counts[classes] == 1)
    if len(lonely):
        raise InvalidInput(
            f"{len(lonely)} of {np.count_nonzero(counts)} classes have a single example, such as "
            f"{texts[lonely[0]][:60]!r}; expected two or more of each to tune on: add some, or leave the "
            "tuning out"
        )


def _trainable(encoder: Encoder) -> SentenceEncoder:
    """A copy of the encoder whose weights torch can move."""
    if isinstance(encoder, SentenceEncoder):
        return copy.deepcopy(encoder)
    folder = getattr(encoder, "folder", None)
    if not isinstance(folder, ModelFolder):
        raise InvalidInput(
            f"a {type(encoder).__name__} has no transformer to tune; expected an encoder of a model folder, "
            "or no tuning"
        )
    trainable: SentenceEncoder = _used_like(encoder, SentenceEncoder(folder))
    return trainable


def _open_with_torch(folder: Path) -> Encoder:
    return SentenceEncoder(read_encoder_folder(folder))


def _used_like(given: Any, tuned: Any) -> Any:
    """The tuned encoder with the prompt and the way with long texts that the given one has."""
    if getattr(given, "prompt_name", None) is not None:
        tuned = tuned.with_prompt(given.prompt_name)
    return tuned.with_on_truncate(given.on_truncate)
