"""What a later stage would be refused for, and what will fall short: told at the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from gemel.errors import InvalidInput
from gemel.reproduce.recipe import Recipe
from gemel.reproduce.step_builder import check_new_head
from gemel.train import TrainConfig


def check_files(recipe: Recipe, data: Path, first: int = 1) -> None:
    """Miss the files of a stage, and of those after it, before any has taken its hours."""
    for number, stage in enumerate(recipe.stages[first - 1 :], start=first):
        sources = [task.data for task in stage.tasks] + ([stage.validate] if stage.validate else [])
        absent = [path for each in sources for path, found in each.places(data).items() if not found.exists()]
        if absent:
            raise InvalidInput(
                f"stage {number} of the recipe {recipe.name} names {absent[0]}, which is neither here nor in "
                f"{data}; give the folder that its paths begin in with --data or in GEMEL_DATA, or see what "
                "`gemel data` can bring"
            )


def check_heads(labels: Sequence[Sequence[str]]) -> None:
    """Refuse stages of a cross-encoder that would lose what the one before has learnt of their classes."""
    for before, after in pairwise(labels):
        check_new_head(before, after)


def tell_short(n_steps: int, config: TrainConfig) -> str | None:
    """A line where a run ends before the steps that were asked for, for want of examples."""
    if config.max_steps is None or n_steps >= config.max_steps:
        return None
    epochs = "1 epoch" if config.epochs == 1 else f"{config.epochs} epochs"
    return (
        f"max_steps is {config.max_steps:,}, and {epochs} of these examples end after {n_steps:,}: more need "
        "more epochs"
    )
