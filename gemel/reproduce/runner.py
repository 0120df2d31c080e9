"""Running a recipe: each stage starts from the model of the one before; seeds repeat the last one.

The paper fine-tunes one NLI model several times (section 4.2): so earlier stages are run once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gemel.data.examples import Examples, yes_as_score
from gemel.data.places import data_folder
from gemel.errors import InvalidInput
from gemel.evaluate.correlation import spearman
from gemel.evaluate.sts import validate_on_sts
from gemel.model import CrossEncoder
from gemel.reproduce.beginning import begun_with, keep_to_beginning
from gemel.reproduce.cut_texts import tell_cut
from gemel.reproduce.outcome import Outcome, read_result, told_objective, write_json
from gemel.reproduce.overlap import tell_overlap
from gemel.reproduce.recipe import Recipe, Stage
from gemel.reproduce.sources import DataSource
from gemel.reproduce.step_builder import StepBuilder
from gemel.reproduce.teaching import Lesson, cut_student, listen
from gemel.train import MixedExamples, TrainConfig, TrainResult, join_team, train
from gemel.train.batches import Batches
from gemel.train.mixing import plan_batches
from gemel.train.state import recover_run
from gemel.train.steps import Step, set_cache_chunk
from gemel.train.trained import trained_parts

TIMED_STEPS = 3
NOT_NOTED = "whether test sets stand in its data was not noted"  # by an older program


@dataclass(frozen=True)
class StageRun:
    """One finished stage of one seed."""

    stage: int
    seed: int
    result: TrainResult


@dataclass(frozen=True)
class Preview:
    """What a stage would do, for a person to check before hours are spent."""

    examples: Examples | MixedExamples
    objective: str
    n_steps: int
    seconds: float
    first: list[dict[str, Any]]
    overlap: str  # with the sets that models are measured on
    cut: str | None  # of the texts, where the model reads less
    train: TrainConfig
    validated_on: str | None
    n_seeds: int  # for each of which the stage is run


class RecipeRunner:
    """Opens what a recipe names and runs it."""

    def __init__(
        self,
        recipe: Recipe,
        *,
        data: str | Path | None = None,
        device: str | None = None,
        tensorboard: str | Path | None = None,
    ) -> None:
        self.recipe = recipe
        self.tensorboard = tensorboard  # a folder: each stage and seed has its own in it
        self.team = join_team()  # before a model is opened: each process has a device of its own
        self.data = data_folder(data)
        self.device = device
        self._steps = StepBuilder(recipe, device)
        self._overlaps: dict[int, str] = {}  # with test sets, of the stages that are done, by their numbers

    def run(
        self,
        output: str | Path,
        *,
        resume: bool = False,
        on_stage: Callable[[str], None] = lambda message: None,
    ) -> list[StageRun]:
        """Train every stage, the last one for every seed; its `model` folder is the outcome."""
        runs: list[StageRun] = []
        start = self.team.leader_first(lambda: self._first_start(Path(output)))
        for number in range(1, len(self.recipe.stages) + 1):
            for seed in self._seeds_of(number):
                place = self._place(Path(output), seed, number)
                on_stage(f"{place}: seed {seed}, stage {number} of {len(self.recipe.stages)}")
                if resume:
                    self.team.from_leader(partial(recover_run, place))
                self._keep_to_beginning(number, place, seed, resume)
                finished = self._finished(number, place) if resume else None
                result = finished or self._run_stage(number, start, place, seed, resume, on_stage)
                runs.append(StageRun(number, seed, result))
            start = runs[-1].result.model
            if not self.team.is_leader and not start.exists():
                # On another machine: what was trained comes from the leader, the architecture is the same.
                start = self.recipe.model
        if len(self.recipe.seeds) > 1 and self.team.is_leader:
            _write_summary(Path(output), [run for run in runs if run.stage == len(self.recipe.stages)])
        return runs

    def _seeds_of(self, number: int) -> tuple[int, ...]:
        """The recipe's seeds repeat its last stage; without any, each stage has its own."""
        is_last = number == len(self.recipe.stages)
        return self.recipe.seeds[: None if is_last else 1] or (self.recipe.stages[number - 1].train.seed,)

    def preview(self) -> Iterator[Preview]:
        """Each stage's data, objective, steps and estimated time; nothing is written."""
        with tempfile.TemporaryDirectory(prefix="gemel-preview-") as place:
            start = self._first_start(Path(place))
            for number in range(1, len(self.recipe.stages) + 1):
                yield self._preview(number, start, Path(place) / f"stage-{number}")

    def _preview(self, number: int, start: str | Path, place: Path) -> Preview:
        stage = self.recipe.stages[number - 1]
        examples, config = self._examples(stage), stage.train
        some = examples
        if stage.teacher is not None and isinstance(examples, Examples):
            some = examples[: TIMED_STEPS * config.batch_size]  # it need not speak of all of them yet
        lesson = self._lesson(stage, some, place)
        step = self._steps.build(stage, start, lesson, place)
        timed, whole = (
            plan_batches(each, step.objective, config.batch_size, config.seed)
            for each in (lesson.examples, examples)
        )
        n_steps = config.steps_in_all(whole.n_batches)
        trained_parts(step, config)  # what cannot be frozen is told here as well
        if stage.validate is not None:
            self._validator(stage.validate, examples)
        parts = examples.parts.values() if isinstance(examples, MixedExamples) else [examples]
        n_shown = 3 if len(parts) == 1 else 1
        return Preview(
            examples=examples,
            objective=told_objective(stage, step),
            n_steps=n_steps,
            seconds=_seconds_a_step(step, lesson.examples, timed, config) * n_steps,
            first=[_shown(part, row) for part in parts for row in range(min(n_shown, len(part)))],
            overlap=tell_overlap(examples, self.data),
            cut=tell_cut(examples, step),
            train=config,
            validated_on=None if stage.validate is None else stage.validate.told,
            n_seeds=len(self._seeds_of(number)),
        )

    def read(self, source: DataSource) -> Examples:
        """The examples of a source: a path as it stands, or within the data folder."""
        return source.read(self.data)

    def _examples(self, stage: Stage) -> Examples | MixedExamples:
        if len(stage.tasks) == 1:
            (task,) = stage.tasks
            examples = self.read(task.data)
            is_free = "kind" not in task.data.options and task.objective in (None, "pair-regression")
            return yes_as_score(examples) if self.recipe.kind == "cross-encoder" and is_free else examples
        return MixedExamples({task.name: self.read(task.data) for task in stage.tasks}, stage.mixing)

    def _finished(self, number: int, place: Path) -> TrainResult | None:
        """The result of a stage that an earlier run has finished; one that ran out of time goes on."""
        values = self.team.from_leader(lambda: read_result(place))
        if values is None:
            return None
        self._overlaps[number] = values.pop("overlap", NOT_NOTED)
        result = TrainResult(**{**values, "model": place / "model"})  # the run may have been moved
        return result if result.is_complete else None

    def _keep_to_beginning(self, number: int, place: Path, seed: int, resume: bool) -> None:
        stage = self.recipe.stages[number - 1]
        values = begun_with(self.recipe, stage, replace(stage.train, seed=seed), self.data)
        self.team.from_leader(lambda: keep_to_beginning(place, values, resume=resume))

    def _check_files(self, first: int) -> None:
        """What a later stage wants is missed before an earlier one has taken its hours."""
        for number, stage in enumerate(self.recipe.stages[first - 1 :], start=first):
            sources = [task.data for task in stage.tasks] + ([stage.validate] if stage.validate else [])
            absent = [path for source in sources for path in source.places(self.data) if not path.exists()]
            if absent:
                raise InvalidInput(
                    f"stage {number} of the recipe {self.recipe.name} names {absent[0]}, which is not there; "
                    "give the folder that its paths begin in with --data or in GEMEL_DATA, or see what "
                    "`gemel data` can bring"
                )

    def _place(self, output: Path, seed: int, number: int) -> Path:
        if len(self.recipe.seeds) > 1 and number == len(self.recipe.stages):
            output = output / f"seed-{seed}"
        return output / f"stage-{number}" if len(self.recipe.stages) > 1 else output

    def _events(self, seed: int, number: int) -> str | None:
        """The folder of a stage's own for TensorBoard, if there is to be any."""
        folder = self.tensorboard or self.recipe.stages[number - 1].train.tensorboard
        if folder is None:
            return None
        return str(Path(folder) / self.recipe.name / self._place(Path(), seed, number))

    def _run_stage(
        self,
        number: int,
        start: str | Path,
        place: Path,
        seed: int,
        resume: bool,
        tell: Callable[[str], None],
    ) -> TrainResult:
        stage = self.recipe.stages[number - 1]
        self._check_files(number)
        if resume and not (place / "last").exists():
            tell(f"{place} holds no checkpoint to go on from: the stage begins anew")
        lesson = self.team.leader_first(lambda: self._lesson(stage, self._examples(stage), place))
        examples = lesson.examples
        tell(examples.describe())
        validate = None if stage.validate is None else self._validator(stage.validate, examples)
        overlap = self.team.from_leader(lambda: tell_overlap(examples, self.data))
        self._overlaps[number] = overlap
        tell(overlap)
        config = replace(stage.train, seed=seed, tensorboard=self._events(seed, number))
        torch.manual_seed(seed)  # a new head starts from the seed as well
        step = self.team.leader_first(lambda: self._steps.build(stage, start, lesson, place))
        cut = tell_cut(examples, step)
        if cut is not None:
            tell(cut)
        result = train(step, examples, place, config, validate=validate, resume=resume, tell=tell)
        if self.team.is_leader:
            Outcome(self.recipe, number, step, examples, config, result, self._overlaps).write(place)
        return result

    def _first_start(self, output: Path) -> str | Path:
        """The recipe's model, or a folder with some of its layers."""
        if self.recipe.layers is None:
            return self.recipe.model
        return cut_student(self.recipe.model, self.recipe.layers, output)

    def _lesson(self, stage: Stage, examples: Examples | MixedExamples, place: Path) -> Lesson:
        """The examples, and what the stage's teacher says of them if it has one."""
        if stage.teacher is None or isinstance(examples, MixedExamples):
            return Lesson(examples)
        return listen(stage.teacher, examples, place, self.device)

    def _validator(self, source: DataSource, trained: Examples | MixedExamples) -> Callable[[Any], float]:
        if self.recipe.kind == "encoder":
            return validate_on_sts(self.read(source))
        assert isinstance(trained, Examples), "cross-encoders learn one task at a time"
        examples = source.read(self.data, trained.label_names or None)
        if trained.kind == "scored pairs":
            examples = yes_as_score(examples)
        if examples.kind != trained.kind or examples.labels is None:
            raise InvalidInput(
                f"{source.path} holds {examples.kind} to validate on, and the cross-encoder learns from "
                f"{trained.kind}; expected the same"
            )
        pairs, labels = list(zip(*examples.columns.values(), strict=True)), examples.labels

        def validate(model: CrossEncoder) -> float:
            scores = model.score(pairs, show_progress=False)
            if examples.kind == "classified pairs":
                return float((scores.argmax(axis=1) == labels).mean())
            return 0.0 if scores.min() == scores.max() else spearman(scores, labels)

        return validate


def spread(values: list[float]) -> tuple[float, float]:
    """The mean over seeds and the standard deviation of a sample."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _seconds_a_step(
    step: Step, examples: Examples | MixedExamples, batches: Batches, config: TrainConfig
) -> float:
    """Forward and backward of a few batches; the weights stay as they are."""
    set_cache_chunk(step, config.cache_chunk)
    taken = []
    for number in range(TIMED_STEPS):
        began = time.perf_counter()
        torch.autograd.backward(step.loss(examples, batches.rows(number))[0])
        taken.append(time.perf_counter() - began)
    assert isinstance(step, torch.nn.Module)
    step.zero_grad(set_to_none=True)
    return float(np.median(taken)) * config.accumulate


def _shown(examples: Examples, row: int) -> dict[str, Any]:
    shown: dict[str, Any] = {name: texts[row] for name, texts in examples.columns.items()}
    if examples.labels is not None:
        label = examples.labels[row].item()
        if examples.label_names:
            shown["label"] = examples.label_names[int(label)]
        else:
            shown["score"] = round(label, 4)
    return shown


def _write_summary(output: Path, runs: list[StageRun]) -> None:
    """What the seeds came to together."""
    scores = {run.seed: run.result.best_score for run in runs}
    told = [score for score in scores.values() if score is not None]
    mean, deviation = spread(told) if told else (None, None)
    write_json(output / "result.json", {"scores": scores, "mean": mean, "deviation": deviation})
