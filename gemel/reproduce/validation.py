"""How a stage is validated: what its model is asked while it trains, and whether that may be asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gemel.contracts import QUERY_PROMPTS
from gemel.data.examples import Examples, yes_as_score
from gemel.errors import InvalidInput
from gemel.evaluate.contamination import find_overlap
from gemel.evaluate.correlation import spearman
from gemel.evaluate.held_out import find_held_out
from gemel.evaluate.sts import validate_on_sts
from gemel.model import CrossEncoder
from gemel.reproduce.recipe import Recipe, Stage
from gemel.train import MixedExamples
from gemel.train.prompts import prompt_of_first

Validate = Callable[[Any], float]


def build_validator(
    recipe: Recipe, stage: Stage, trained: Examples | MixedExamples, data: Path
) -> Validate | None:
    """What the trainer calls with the model, if the stage validates on anything."""
    if stage.validate is None:
        return None
    if recipe.kind == "encoder":
        return _on_sts(stage.validate.read(data), prompt_of_first(stage.prompts))
    assert isinstance(trained, Examples), "cross-encoders learn one task at a time"
    examples = stage.validate.read(data, trained.label_names or None)
    if trained.kind == "scored pairs":
        examples = yes_as_score(examples)
    if examples.kind != trained.kind or examples.labels is None:
        raise InvalidInput(
            f"{stage.validate.path} holds {examples.kind} to validate on, and the cross-encoder learns from "
            f"{trained.kind}; expected the same"
        )
    return _on_pairs(examples)


def _on_sts(pairs: Examples, prompt: str) -> Validate:
    """STS by cosines; a model that is trained with prompts has the first column's before both texts."""
    score = validate_on_sts(pairs)
    return score if not prompt else lambda model: score(model.with_prompt(QUERY_PROMPTS[0]))


def _on_pairs(examples: Examples) -> Validate:
    """Scores by their correlation, classes by accuracy."""
    pairs, labels = list(zip(*examples.columns.values(), strict=True)), examples.labels
    assert labels is not None
    if examples.kind == "classified pairs":
        return lambda model: float((model.score(pairs, show_progress=False).argmax(axis=1) == labels).mean())
    if labels.min() == labels.max():
        raise InvalidInput(
            f"all {len(labels):,} pairs of {examples.origin} to validate on have one score; expected pairs "
            "that people judged differently: nothing else has a correlation"
        )

    def validate(model: CrossEncoder) -> float:
        scores = model.score(pairs, show_progress=False)
        return 0.0 if scores.min() == scores.max() else spearman(scores, labels)

    return validate


def tell_chosen_by_tests(stage: Stage, data: Path) -> str | None:
    """A line for who validates on what models are measured on, whose figures there would flatter."""
    if stage.validate is None:
        return None
    found = find_overlap(find_held_out(data), [stage.validate.read(data)])
    # A development set may share some pairs with others; what holds most of a test set is that set.
    named = [each.name for each in found if each.share_of_pairs > 0.5]
    if not named:
        return None
    return (
        f"it is validated on most pairs of {', '.join(named)}: figures there will be of a model that was "
        "chosen by them"
    )
