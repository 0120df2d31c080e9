"""What a finished stage leaves beside its model: a card, curves, and the result in numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gemel.data.examples import Examples
from gemel.reproduce.overlap import NOT_LOOKED_FOR
from gemel.reproduce.recipe import Recipe, Stage
from gemel.train import MixedExamples, TrainConfig, TrainResult
from gemel.train.card import CardFacts, base_name, write_card
from gemel.train.prompts import prompt_of_first
from gemel.train.run_card import facts_of_run
from gemel.train.steps import Step

RESULT = "result.json"


@dataclass(frozen=True)
class Outcome:
    """A stage that has been run, with all that there is to tell of it."""

    recipe: Recipe
    number: int  # of the stage, from 1
    step: Step
    examples: Examples | MixedExamples
    config: TrainConfig
    result: TrainResult
    overlaps: Mapping[int, str]  # with test sets, by the numbers of this stage and those before

    @property
    def stage(self) -> Stage:
        """As the recipe has it."""
        return self.recipe.stages[self.number - 1]

    def write(self, place: Path) -> None:
        """The card, the curves and the result of a stage."""
        write_card(self.result.model, self._facts())
        if find_spec("matplotlib"):  # the extra "plot"; a run is whole without its picture
            self.result.draw_curves(f"{self.recipe.name}, seed {self.config.seed}")
        values = {**vars(self.result), "model": "model", "overlap": self.overlaps[self.number]}
        write_json(place / RESULT, values)

    def _facts(self) -> CardFacts:
        """What the run knows, and what the recipe knows better."""
        overlap = self.overlaps[self.number]
        return replace(
            facts_of_run(self.step, self.examples, self.config, self.result),
            name=self.recipe.name,
            base_model=self.recipe.model,
            objective=told_objective(self.stage, self.step),
            data=_told_data(self.stage),
            stages_before=[self._told_of(before) for before in range(1, self.number)],
            overlap="" if overlap == NOT_LOOKED_FOR else overlap,
            scores=self._scores(),
        )

    def _told_of(self, number: int) -> str:
        """An earlier stage in a line of the card: a model has learnt from all of them."""
        told, overlap = _told_data(self.recipe.stages[number - 1]), self.overlaps[number]
        return f"stage {number}: {told}" + ("" if overlap == NOT_LOOKED_FOR else f"; {overlap}")

    def _scores(self) -> dict[str, float]:
        if self.result.best_score is None or self.stage.validate is None:
            return {}
        kind = "" if isinstance(self.examples, MixedExamples) else self.examples.kind
        measure = "Spearman correlation of cosines"
        if self.recipe.kind == "cross-encoder":
            measure = "accuracy" if kind == "classified pairs" else "Spearman correlation of scores"
        prompt = prompt_of_first(self.stage.prompts)
        after = f", each text after {prompt!r}" if prompt else ""
        return {f"{measure}, {self.stage.validate.told}{after}": self.result.best_score}


def told_objective(stage: Stage, step: Step) -> str:
    """The objective with what the recipe has set for it, and who taught it."""
    plain = [
        f"{task.name} {name}".strip() + f" = {value}"
        for task in stage.tasks
        for name, value in task.objective_settings.items()
        if name != "matryoshka"
    ]
    told = f"{step.objective.describe()} ({', '.join(plain)})" if plain else step.objective.describe()
    return told if stage.teacher is None else f"{told}, taught by `{base_name(stage.teacher.model)}`"


def _told_data(stage: Stage) -> str:
    return ", ".join(task.data.told for task in stage.tasks)


def write_json(file: Path, values: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    draft = file.with_name(f"{file.name}.draft")
    draft.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    draft.replace(file)


def read_result(place: Path) -> dict[str, Any] | None:
    """What a stage has come to, if it has ended and its model is there."""
    file = place / RESULT
    if not file.is_file() or not (place / "model").is_dir():
        return None
    values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return values
