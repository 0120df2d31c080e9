"""Running a recipe: each stage starts from the model of the one before; seeds repeat the last one.

The paper fine-tunes one NLI model several times (section 4.2): so earlier stages are run once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gemel.data.examples import Examples, yes_as_score
from gemel.data.places import data_folder
from gemel.errors import InvalidInput
from gemel.reproduce.beginning import begun_with, keep_to_beginning
from gemel.reproduce.cut_texts import tell_cut
from gemel.reproduce.foresight import check_files, check_heads, tell_short
from gemel.reproduce.outcome import Outcome, read_result, told_objective, write_json
from gemel.reproduce.overlap import tell_overlap
from gemel.reproduce.recipe import Recipe, Stage
from gemel.reproduce.sources import DataSource
from gemel.reproduce.step_builder import StepBuilder, tell_new_head
from gemel.reproduce.teaching import Lesson, cut_student, listen
from gemel.reproduce.validation import build_validator, tell_chosen_by_tests
from gemel.train import MixedExamples, TrainConfig, TrainResult, join_team, train
from gemel.train.alone import alone_in
from gemel.train.batches import Batches, EpochBatches
from gemel.train.lora import settle_adapters
from gemel.train.mixing import plan_batches
from gemel.train.state import KEPT, recover_run
from gemel.train.steps import Step, set_cache_chunk
from gemel.train.trained import trained_parts

TIMED_STEPS = 3
TIMED_ROWS = 32  # of each: nobody waits minutes for an estimate
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
    chosen_by_tests: str | None  # where it is validated on one of them
    new_head: str | None  # where a cross-encoder had one for other labels
    cut: str | None  # of the texts, where the model reads less
    short: str | None  # of steps, where the examples make fewer than were asked for
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
        with alone_in(Path(output)) if self.team.is_leader else nullcontext():
            return self._run(Path(output), resume, on_stage)

    def _run(self, output: Path, resume: bool, on_stage: Callable[[str], None]) -> list[StageRun]:
        runs: list[StageRun] = []
        self.team.from_leader(lambda: self._check_output(output))
        if resume:
            self.team.from_leader(lambda: self._recover(output))
        self._check_stages(self._first_unfinished(output) if resume else 1)
        start = self.team.leader_first(lambda: self._first_start(output))
        for number in range(1, len(self.recipe.stages) + 1):
            for seed in self._seeds_of(number):
                place = self._place(output, seed, number)
                on_stage(f"{place}: seed {seed}, stage {number} of {len(self.recipe.stages)}")
                self._keep_to_beginning(number, place, seed, start, resume)
                finished = self._finished(number, place, output, on_stage) if resume else None
                shared = self._shared_place(output, number)
                result = finished or self._run_stage(number, start, place, shared, seed, resume, on_stage)
                runs.append(StageRun(number, seed, result))
            start = runs[-1].result.model
            if not self.team.is_leader and not start.exists():
                # On another machine: what was trained comes from the leader, the architecture is the same.
                start = self.recipe.model
        if len(self.recipe.seeds) > 1 and self.team.is_leader:
            _write_summary(output, [run for run in runs if run.stage == len(self.recipe.stages)])
        return runs

    def _seeds_of(self, number: int) -> tuple[int, ...]:
        """The recipe's seeds repeat its last stage; without any, each stage has its own."""
        is_last = number == len(self.recipe.stages)
        return self.recipe.seeds[: None if is_last else 1] or (self.recipe.stages[number - 1].train.seed,)

    def preview(self) -> Iterator[Preview]:
        """Each stage's data, objective, steps and estimated time; nothing is written."""
        self._check_stages()
        with tempfile.TemporaryDirectory(prefix="gemel-preview-") as place:
            start = self._first_start(Path(place))
            for number in range(1, len(self.recipe.stages) + 1):
                stage_place = Path(place) / f"stage-{number}"
                preview, step = self._preview(number, start, stage_place)
                yield preview
                if number < len(self.recipe.stages):  # which opens what this one makes, trained or not
                    settle_adapters(step.model)
                    step.save(stage_place / "model")
                    start = stage_place / "model"

    def _preview(self, number: int, start: str | Path, place: Path) -> tuple[Preview, Step]:
        stage = self.recipe.stages[number - 1]
        examples, config = self._examples(stage), stage.train
        some = examples
        if stage.teacher is not None and isinstance(examples, Examples):
            some = examples[: TIMED_STEPS * config.batch_size]  # it need not speak of all of them yet
        lesson = self._lesson(stage, some, place)
        step = self._steps.build(stage, start, lesson, place)
        timed = plan_batches(lesson.examples, step.objective, config.batch_size, config.seed)
        whole = timed  # what a teacher has not spoken of yet is no food for the objective, but counts
        if isinstance(examples, Examples):
            whole = EpochBatches(examples, step.objective, config.batch_size, config.seed)
        n_steps = config.steps_in_all(whole.n_batches)
        trained_parts(step, config)  # what cannot be frozen is told here as well
        build_validator(self.recipe, stage, examples, self.data)  # what cannot be validated on, too
        parts = examples.parts.values() if isinstance(examples, MixedExamples) else [examples]
        n_shown = 3 if len(parts) == 1 else 1
        seconds = _seconds_a_step(step, lesson.examples, timed, config) * n_steps
        preview = Preview(
            examples=examples,
            objective=told_objective(stage, step),
            n_steps=n_steps,
            seconds=seconds if config.max_minutes is None else min(seconds, 60 * config.max_minutes),
            first=[_shown(part, row) for part in parts for row in range(min(n_shown, len(part)))],
            overlap=tell_overlap(examples, self.data),
            chosen_by_tests=tell_chosen_by_tests(stage, self.data),
            new_head=tell_new_head(start, step),
            cut=tell_cut(examples, step),
            short=tell_short(n_steps, config),
            train=config,
            validated_on=None if stage.validate is None else stage.validate.told,
            n_seeds=len(self._seeds_of(number)),
        )
        return preview, step

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

    def _finished(
        self, number: int, place: Path, output: Path, tell: Callable[[str], None]
    ) -> TrainResult | None:
        """The result of a stage that an earlier run has finished; one that ran out of time goes on, unless
        the next has begun from it."""
        values = self.team.from_leader(lambda: read_result(place))
        if values is None:
            return None
        self._overlaps[number] = values.pop("overlap", NOT_NOTED)
        result = TrainResult(**{**values, "model": place / "model"})  # the run may have been moved
        if result.is_complete:
            return result
        if not self.team.from_leader(lambda: self._has_begun(output, number + 1)):
            return None
        tell(f"{place} stays as it is, at step {result.steps:,}: the next stage has begun from it")
        return result

    def _has_begun(self, output: Path, number: int) -> bool:
        """Whether a stage has left anything to go on from, for any seed."""
        if number > len(self.recipe.stages):
            return False
        return any((place / name).exists() for place in self._places(output, number) for name in KEPT)

    def _recover(self, output: Path) -> None:
        """Put back what a kill has left half replaced, everywhere: what a stage does depends on the next."""
        for number in range(1, len(self.recipe.stages) + 1):
            for place in self._places(output, number):
                recover_run(place)

    def _check_output(self, output: Path) -> None:
        """A folder holds one run, or those of several seeds: else one would tell what is the other's."""
        seeds = sorted(
            place.name for place in output.glob("seed-*") if place.name.removeprefix("seed-").isdecimal()
        )
        if seeds and len(self.recipe.seeds) < 2:
            raise InvalidInput(
                f"{output} holds the runs of several seeds ({', '.join(seeds)}), and this one has a single "
                "seed; name another output"
            )
        if len(self.recipe.seeds) > 1 and any((output / name).exists() for name in KEPT):
            raise InvalidInput(
                f"{output} holds a run of one seed, and the recipe has {len(self.recipe.seeds)}; name "
                "another output"
            )

    def _keep_to_beginning(
        self, number: int, place: Path, seed: int, start: str | Path, resume: bool
    ) -> None:
        stage = self.recipe.stages[number - 1]
        config = replace(stage.train, seed=seed)
        self.team.from_leader(
            lambda: keep_to_beginning(
                place, begun_with(self.recipe, stage, config, self.data, start), resume=resume
            )
        )

    def _first_unfinished(self, output: Path) -> int:
        """The number of the first stage that has no result; the data of those before may be gone."""
        for number in range(1, len(self.recipe.stages) + 1):
            if any(read_result(place) is None for place in self._places(output, number)):
                return number
        return len(self.recipe.stages) + 1

    def _check_stages(self, first: int = 1) -> None:
        """What a later stage would be refused for is told before an earlier one has taken its hours."""
        stages = self.recipe.stages[first - 1 :]
        check_files(self.recipe, self.data, first)
        is_taught = any(stage.teacher for stage in stages)
        if self.recipe.kind == "cross-encoder" and len(stages) > 1 and not is_taught:
            examples = [self._examples(stage) for stage in stages]
            labels = [each.label_names for each in examples if isinstance(each, Examples)]
            check_heads([names or ("score",) for names in labels])

    def _places(self, output: Path, number: int) -> list[Path]:
        """A stage's, one for each seed."""
        return [self._place(output, seed, number) for seed in self._seeds_of(number)]

    def _place(self, output: Path, seed: int, number: int) -> Path:
        if len(self.recipe.seeds) > 1 and number == len(self.recipe.stages):
            output = output / f"seed-{seed}"
        return self._shared_place(output, number)

    def _shared_place(self, output: Path, number: int) -> Path:
        """Where a stage keeps what is the same for all seeds: what a teacher says takes hours."""
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
        shared: Path,
        seed: int,
        resume: bool,
        tell: Callable[[str], None],
    ) -> TrainResult:
        stage = self.recipe.stages[number - 1]
        check_files(self.recipe, self.data, number)
        if resume and not (place / "last").exists():
            tell(f"{place} holds no checkpoint to go on from: the stage begins anew")
        lesson = self.team.leader_first(lambda: self._lesson(stage, self._examples(stage), shared))
        examples = lesson.examples
        tell(examples.describe())
        validate = build_validator(self.recipe, stage, examples, self.data)
        overlap = self.team.from_leader(lambda: tell_overlap(examples, self.data))
        self._overlaps[number] = overlap
        tell(overlap)
        chosen = self.team.from_leader(lambda: tell_chosen_by_tests(stage, self.data))
        if chosen is not None:
            tell(chosen)
        config = replace(stage.train, seed=seed, tensorboard=self._events(seed, number))
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)  # a new head starts from the seed as well
            step = self.team.leader_first(lambda: self._steps.build(stage, start, lesson, shared))
        batches = plan_batches(examples, step.objective, config.batch_size, seed)
        short = tell_short(config.steps_in_all(batches.n_batches), config)
        for line in (tell_new_head(start, step), tell_cut(examples, step), short):
            if line is not None:
                tell(line)
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


def spread(values: list[float]) -> tuple[float, float]:
    """The mean over seeds and the standard deviation of a sample."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _seconds_a_step(
    step: Step, examples: Examples | MixedExamples, batches: Batches, config: TrainConfig
) -> float:
    """Forward and backward of a few batches, or of parts of large ones; the weights stay as they are."""
    set_cache_chunk(step, config.cache_chunk)
    taken = []
    for number in range(TIMED_STEPS):
        rows = batches.rows(number)
        some = rows[: max(TIMED_ROWS, step.objective.min_batch)]
        began = time.perf_counter()
        torch.autograd.backward(step.loss(examples, some)[0])
        taken.append((time.perf_counter() - began) * len(rows) / len(some))
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
