"""How a training run goes; the defaults are the paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gemel.errors import InvalidInput
from gemel.train.lora import Lora
from gemel.train.settings import is_above, is_whole, one_or_more
from gemel.train.values import NUMBER, TEXT, TEXT_OR_TEXTS, check_keys, check_types, is_number

MAX_SEED = 2**40  # every step has a seed of its own, made from it
BF16_CHOICES = ("auto", "on", "off")
_NUMBERS = ("learning_rate", "warmup", "weight_decay", "clip_norm", "max_minutes")
_TYPES = {"freeze": TEXT_OR_TEXTS, "tensorboard": TEXT, "bf16": TEXT, **dict.fromkeys(_NUMBERS, NUMBER)}


@dataclass(frozen=True)
class TrainConfig:
    """One epoch of batches of 16 with Adam at 2e-5, warmed up over 10% of the steps (section 3.1)."""

    epochs: int = 1
    batch_size: int = 16
    learning_rate: float = 2e-5
    warmup: float = 0.1  # of all steps
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    accumulate: int = 1  # batches before each step of the optimiser
    cache_chunk: int | None = None  # texts in memory at once, where a batch is too large (GradCache)
    max_steps: int | None = None
    max_minutes: float | None = None
    evaluate_every: int | None = None  # steps
    checkpoint_every: int | None = None  # steps
    patience: int | None = None  # evaluations without a better one before the run ends
    dropout: float | None = None  # share of the activations; unless named, the model's own
    average_last: float | None = None  # share of the steps, the mean of whose weights becomes the model
    bf16: str = "off"  # forward passes in bfloat16: "on", "off", or "auto" where it is right and faster
    freeze: tuple[str, ...] = ()  # names of parts that stay as they are, such as "backbone.embeddings"
    lora: Lora | None = None  # train adapters, and leave the pretrained weights as they are
    seed: int = 42
    tensorboard: str | None = None  # a folder for event files

    def __post_init__(self) -> None:
        named = {name: value for name, value in vars(self).items() if value is not None}
        check_types(named, _TYPES, "the settings of a training")
        object.__setattr__(self, "freeze", one_or_more(self.freeze))
        for name in ("epochs", "batch_size", "accumulate"):
            self._check(name, is_whole(getattr(self, name), 1), "a whole number, at least 1")
        for name in ("cache_chunk", "max_steps", "evaluate_every", "checkpoint_every", "patience"):
            value = getattr(self, name)
            self._check(name, value is None or is_whole(value, 1), "a whole number, at least 1")
        is_seed = is_whole(self.seed, 0) and self.seed <= MAX_SEED
        self._check("seed", is_seed, f"a whole number, 0 to {MAX_SEED:,}")
        if self.patience is not None and self.evaluate_every is None:
            raise InvalidInput("patience counts evaluations, and there are none: set evaluate_every too")
        self._check("weight_decay", self.weight_decay >= 0, "0 or more")
        is_lora = self.lora is None or isinstance(self.lora, Lora)
        self._check("lora", is_lora, "a table, such as { rank = 8 }")
        self._check("learning_rate", is_above(self.learning_rate, 0), "more than 0")
        self._check("warmup", 0 <= self.warmup < 1, "a share of the steps, 0 to 1")
        is_share = self.average_last is None or (is_above(self.average_last, 0) and self.average_last <= 1)
        self._check("average_last", is_share, "a share of the steps, above 0 and up to 1")
        is_share = self.dropout is None or (is_number(self.dropout) and 0 <= self.dropout < 1)
        self._check("dropout", is_share, "a share of the activations, 0 to 1")
        self._check("clip_norm", is_above(self.clip_norm, 0), "more than 0")
        self._check("bf16", self.bf16 in BF16_CHOICES, f"one of {', '.join(BF16_CHOICES)}")
        self._check("max_minutes", self.max_minutes is None or self.max_minutes > 0, "more than 0")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Settings out of a recipe; an unknown one is an error that lists the known ones."""
        check_keys(values, tuple(field.name for field in fields(cls)), "train")
        values = dict(values)
        if isinstance(values.get("lora"), Mapping):
            values["lora"] = Lora.from_dict(values["lora"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def steps_in_all(self, n_batches: int) -> int:
        """How many steps of the optimiser the run has, for that many batches an epoch."""
        steps = math.ceil(n_batches * self.epochs / self.accumulate)
        return steps if self.max_steps is None else min(steps, self.max_steps)

    def batches_of(self, step: int, n_batches: int) -> range:
        """The numbers of the batches of a step, which counts from 0; the last step takes what is left."""
        first = step * self.accumulate
        return range(first, min(first + self.accumulate, n_batches * self.epochs))

    def plain_steps(self, n_steps: int) -> int:
        """How many steps of so many are made before the weights are averaged."""
        return n_steps if self.average_last is None else n_steps - max(1, round(self.average_last * n_steps))

    def learning_rate_at(self, step: int, n_steps: int) -> float:
        """Linear warm-up, then linear decay to 0; step counts from 0."""
        n_warmup = math.ceil(self.warmup * n_steps)
        if step < n_warmup:
            return self.learning_rate * (step + 1) / n_warmup
        return self.learning_rate * (n_steps - step) / max(1, n_steps - n_warmup)

    def _check(self, name: str, is_right: bool, expected: str) -> None:
        if not is_right:
            raise InvalidInput(f"{name} is {getattr(self, name)!r}; expected {expected}")
