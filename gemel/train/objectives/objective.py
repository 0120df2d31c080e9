"""What every objective is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from gemel.data.examples import Examples
from gemel.errors import InvalidInput

ROUNDING = 1e-5  # of scores that were computed in float32


class Objective(nn.Module):
    """Embeddings of each column (batch, dim) and labels into one loss.

    Labels are classes or scores (batch,). Examples without either give the numbers of their texts
    (batch, columns), which are the same where the texts are; None says that all texts differ.
    """

    name: ClassVar[str] = ""  # by which recipes and flags ask for it, if they can
    kinds: ClassVar[tuple[str, ...]] = ()  # of examples that it eats; none means any
    needs: ClassVar[tuple[str, ...]] = ()  # of `dim`, `n_labels` and `label_names`, what it must be told
    min_batch: int = 1
    n_alike: int = 1  # how many examples of a class should stand together in a batch
    score_range: ClassVar[tuple[float, float] | None] = None  # that its scores can have, if it has limits

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """What a guess costs: log n where one of n is to be picked, as MUPPET scales losses; else 1."""
        return 1.0

    def losses(self) -> tuple[str, ...]:
        """The names of what it is made of, for a model card."""
        return (type(self).__name__,)

    def describe(self) -> str:
        """A few words for a person."""
        return self.name or type(self).__name__

    def truncations(self) -> tuple[int, ...]:
        """How many of the first numbers of a vector were trained to stand alone, if any."""
        return ()

    def asking(self) -> Objective:
        """Whose demands on the examples hold: its own, or those of the objective inside of it."""
        return self

    def n_classes(self) -> int | None:
        """How many classes it tells apart, if it was told so."""
        return None


def check_eaten(examples: Examples, objective: Objective) -> None:
    """Refuse examples that an objective would learn nonsense from."""
    asking, labels = objective.asking(), examples.labels
    eaten, limits, n_classes = asking.kinds, asking.score_range, asking.n_classes()
    if eaten and examples.kind not in eaten:
        raise InvalidInput(
            f"the objective {objective.describe()} eats {' or '.join(eaten)} and was given {examples.kind}; "
            "give it such examples, or take another objective"
        )
    if labels is None or not len(labels):
        return
    lowest, highest = labels.min().item(), labels.max().item()
    if limits is not None and not limits[0] - ROUNDING <= lowest <= highest <= limits[1] + ROUNDING:
        raise InvalidInput(
            f"the scores run from {lowest:g} to {highest:g}, and the objective {objective.describe()} meets "
            f"those of {limits[0]:g} to {limits[1]:g}; scale them, as read_examples does by score_range"
        )
    if n_classes is not None and highest >= n_classes:
        raise InvalidInput(
            f"the objective {objective.describe()} tells {n_classes} classes apart, and the examples have "
            f"{max(highest + 1, len(examples.label_names))}; build it with as many"
        )


def check_positive(name: str, value: float) -> float:
    """The value, or a sentence that refuses what is not above 0."""
    if not value > 0:
        raise InvalidInput(f"{name} is {value}; expected more than 0")
    return value
