"""What every objective is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from gemel.errors import InvalidInput


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

    def loss_of_guessing(self, columns: Sequence[Tensor]) -> float:
        """What a guess costs: log n where one of n is to be picked, as MUPPET scales losses; else 1."""
        return 1.0

    def losses(self) -> tuple[str, ...]:
        """The names of what it is made of, for a model card."""
        return (type(self).__name__,)

    def describe(self) -> str:
        """A few words for a person."""
        return self.name or type(self).__name__

    def eats(self) -> tuple[str, ...]:
        """The kinds of examples that it can learn from; none means any."""
        return self.kinds

    def truncations(self) -> tuple[int, ...]:
        """How many of the first numbers of a vector were trained to stand alone, if any."""
        return ()


def check_eaten(kind: str, objective: Objective) -> None:
    """Refuse examples that an objective would learn nonsense from."""
    eaten = objective.eats()
    if eaten and kind not in eaten:
        raise InvalidInput(
            f"the objective {objective.describe()} eats {' or '.join(eaten)} and was given {kind}; give it "
            "such examples, or take another objective"
        )


def check_positive(name: str, value: float) -> float:
    """The value, or a sentence that refuses what is not above 0."""
    if not value > 0:
        raise InvalidInput(f"{name} is {value}; expected more than 0")
    return value
