"""Running a recipe: each stage starts from the model of the one before; seeds repeat the last one.

The paper fine-tunes one NLI model several times (section 4.2): so earlier stages are run once.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gemel.checkpoint import EncoderSpec, ModelFolder, Pooling, read_encoder_folder, read_reranker_folder
from gemel.data.examples import Examples, read_examples
from gemel.errors import InvalidModel
from gemel.evaluate.correlation import spearman
from gemel.evaluate.sts import validate_on_sts
from gemel.loading import resolve
from gemel.model import CrossEncoder, SentenceEncoder
from gemel.reproduce.recipe import DataSource, Recipe, Stage
from gemel.train import (
    CrossEncoderStep,
    SentenceEncoderStep,
    TrainResult,
    build_objective,
    join_team,
    train,
)
from gemel.train.card import CardFacts, write_card
from gemel.train.curves import draw_curves
from gemel.train.metrics import MetricsFile
from gemel.train.steps import Step

TIMED_STEPS = 3


@dataclass(frozen=True)
class StageRun:
    """One finished stage of one seed."""

    stage: int
    seed: int
    result: TrainResult


@dataclass(frozen=True)
class Preview:
    """What a stage would do, for a person to check before hours are spent."""

    examples: Examples
    objective: str
    n_steps: int
    seconds: float
    first: list[dict[str, Any]]


class RecipeRunner:
    """Opens what a recipe names and runs it."""

    def __init__(self, recipe: Recipe, *, data: str | Path | None = None, device: str | None = None) -> None:
        self.recipe = recipe
        self.team = join_team()  # before a model is opened: each process has a device of its own
        self.data = Path(data or os.environ.get("GEMEL_DATA") or ".")
        self.device = device
        self.seeds = recipe.seeds or tuple({stage.train.seed for stage in recipe.stages})

    def run(
        self,
        output: str | Path,
        *,
        resume: bool = False,
        on_stage: Callable[[str], None] = lambda message: None,
    ) -> list[StageRun]:
        """Train every stage, the last one for every seed; its `model` folder is the outcome."""
        runs: list[StageRun] = []
        start: str | Path = self.recipe.model
        for number, stage in enumerate(self.recipe.stages, start=1):
            is_last = number == len(self.recipe.stages)
            for seed in self.seeds if is_last else self.seeds[:1]:
                place = self._place(Path(output), seed, number)
                on_stage(f"{place}: seed {seed}, stage {number} of {len(self.recipe.stages)}")
                finished = self._finished(place) if resume else None
                result = finished or self._run_stage(stage, start, place, seed, resume)
                runs.append(StageRun(number, seed, result))
            start = runs[-1].result.model
            if not self.team.is_leader and not start.exists():
                # On another machine: what was trained comes from the leader, the architecture is the same.
                start = self.recipe.model
        return runs

    def preview(self) -> Iterator[Preview]:
        """Each stage's data, objective, steps and estimated time; nothing is written."""
        for stage in self.recipe.stages:
            examples = self.read(stage.data)
            step = self._step(stage, self.recipe.model, examples)
            config = stage.train
            n_batches = max(1, len(examples) // config.batch_size)
            n_steps = config.steps_in_all(n_batches)
            yield Preview(
                examples=examples,
                objective=type(step.objective).__name__,
                n_steps=n_steps,
                seconds=_seconds_a_step(step, examples, config.batch_size) * config.accumulate * n_steps,
                first=[_shown(examples, row) for row in range(min(3, len(examples)))],
            )

    def read(self, source: DataSource) -> Examples:
        """The examples of a source: a path as it stands, or within the data folder."""
        path = Path(source.path).expanduser()
        if not path.is_absolute() and not path.exists():
            path = self.data / path
        return read_examples(path, **source.options)

    def _finished(self, place: Path) -> TrainResult | None:
        return self.team.from_leader(lambda: _finished(place))

    def _place(self, output: Path, seed: int, number: int) -> Path:
        if len(self.seeds) > 1 and number == len(self.recipe.stages):
            output = output / f"seed-{seed}"
        return output / f"stage-{number}" if len(self.recipe.stages) > 1 else output

    def _run_stage(
        self, stage: Stage, start: str | Path, place: Path, seed: int, resume: bool
    ) -> TrainResult:
        examples = self.read(stage.data)
        config = replace(stage.train, seed=seed)
        torch.manual_seed(seed)  # a new head starts from the seed as well
        step = self._step(stage, start, examples)
        validate = None if stage.validate is None else self._validator(self.read(stage.validate))
        result = train(step, examples, place, config, validate=validate, resume=resume)
        if not self.team.is_leader:
            return result
        metrics = MetricsFile(place / "metrics.jsonl").read()
        scores = {} if result.best_score is None else {"validation": result.best_score}
        facts = CardFacts(
            name=self.recipe.name,
            base_model=str(start),
            objective=stage.objective or type(step.objective).__name__,
            n_examples=len(examples),
            data=stage.data.path,
            settings=config.to_dict(),
            scores=scores,
            is_cross_encoder=self.recipe.kind == "cross-encoder",
            labels=examples.label_names,
        )
        write_card(result.model, facts)
        if find_spec("matplotlib"):  # the extra "plot"; a run is whole without its picture
            draw_curves(metrics, f"{self.recipe.name}, seed {seed}", place / "curves")
        _write_result(place, result)
        return result

    def _step(self, stage: Stage, start: str | Path, examples: Examples) -> Step:
        is_cross = self.recipe.kind == "cross-encoder"
        folder = resolve(start)
        settings = dict(stage.objective_settings)
        n_labels = len(examples.label_names)
        if is_cross:
            model = self._cross_encoder(folder, examples)
            objective = build_objective(
                stage.objective, examples.kind, dim=0, cross_encoder=True, n_labels=n_labels, **settings
            )
            return CrossEncoderStep(model, objective)
        encoder = SentenceEncoder(self._encoder_folder(folder), device=self.device)
        objective = build_objective(
            stage.objective, examples.kind, dim=encoder.dim, n_labels=n_labels, **settings
        )
        return SentenceEncoderStep(encoder, objective, examples.label_names)

    def _encoder_folder(self, folder: Path) -> ModelFolder:
        model = read_encoder_folder(folder)
        changes: dict[str, Any] = {}
        if self.recipe.pooling is not None:
            changes["pooling"] = Pooling(self.recipe.pooling)
        if self.recipe.max_tokens is not None:
            changes["max_tokens"] = self.recipe.max_tokens
        return model.with_spec(EncoderSpec(**{**vars(model.spec), **changes})) if changes else model

    def _cross_encoder(self, folder: Path, examples: Examples) -> CrossEncoder:
        labels = examples.label_names or ("score",)
        try:
            trained = read_reranker_folder(folder)
        except InvalidModel:
            return CrossEncoder.from_encoder(self._encoder_folder(folder), labels, device=self.device)
        return CrossEncoder(trained, device=self.device)

    def _validator(self, examples: Examples) -> Callable[[Any], float]:
        if self.recipe.kind == "encoder":
            return validate_on_sts(examples)
        pairs = list(zip(*examples.columns.values(), strict=True))
        labels = examples.labels
        assert labels is not None

        def validate(model: CrossEncoder) -> float:
            scores = model.score(pairs, show_progress=False)
            if examples.kind == "classified pairs":
                return float((scores.argmax(axis=1) == labels).mean())
            return 0.0 if scores.min() == scores.max() else spearman(scores, labels)

        return validate


def spread(values: list[float]) -> tuple[float, float]:
    """The mean over seeds and the standard deviation of a sample."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _seconds_a_step(step: Step, examples: Examples, batch_size: int) -> float:
    """Forward and backward of a few batches; the weights stay as they are."""
    rows = np.random.default_rng(0).permutation(len(examples))
    taken = []
    for number in range(TIMED_STEPS):
        began = time.perf_counter()
        batch = rows[(number * batch_size) % len(rows) :][:batch_size]
        torch.autograd.backward(step.loss(examples, batch)[0])
        taken.append(time.perf_counter() - began)
    assert isinstance(step, torch.nn.Module)
    step.zero_grad(set_to_none=True)
    return float(np.median(taken))


def _shown(examples: Examples, row: int) -> dict[str, Any]:
    shown: dict[str, Any] = {name: texts[row] for name, texts in examples.columns.items()}
    if examples.labels is not None:
        label = examples.labels[row].item()
        shown["label"] = examples.label_names[int(label)] if examples.label_names else round(label, 4)
    return shown


def _write_result(place: Path, result: TrainResult) -> None:
    values = {**vars(result), "model": str(result.model)}
    draft = place / "result.json.draft"
    draft.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    draft.replace(place / "result.json")


def _finished(place: Path) -> TrainResult | None:
    """The result of a stage that an earlier run has finished."""
    file = place / "result.json"
    if not file.is_file():
        return None
    values = json.loads(file.read_text(encoding="utf-8"))
    return TrainResult(**{**values, "model": Path(values["model"])})
