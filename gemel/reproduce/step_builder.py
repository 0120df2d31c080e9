"""What a stage of a recipe trains: the model that it starts from, and the objective on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from torch import nn

from gemel.checkpoint import (
    EncoderSpec,
    Head,
    ModelFolder,
    RerankerFolder,
    read_encoder_folder,
    read_head,
    read_reranker_folder,
)
from gemel.checkpoint.infersent import is_infersent_folder
from gemel.checkpoint.resolving import resolve
from gemel.data.examples import Examples
from gemel.data.tables import finite_number
from gemel.errors import InvalidInput, InvalidModel
from gemel.loading import fitting_tokens
from gemel.model import CrossEncoder, InferSent, SentenceEncoder
from gemel.model.infersent import InferSentSettings, asks_for_new
from gemel.reproduce.recipe import Recipe, Stage, Task
from gemel.reproduce.teaching import Lesson, fitted_student, taught_step
from gemel.train import (
    CrossEncoderStep,
    MixedExamples,
    MixedObjective,
    MultiTaskStep,
    SentenceEncoderStep,
    build_objective,
)
from gemel.train.card import base_name
from gemel.train.objectives import Objective
from gemel.train.pretraining import PRETRAINING, build_pretraining
from gemel.train.prompts import prompts_of, with_prompts
from gemel.train.steps import Step, go_on_with, head_of, is_alike

_SET_BY_THE_DATA = ("name", "kind", "dim", "n_labels", "label_names", "cross_encoder")


class StepBuilder:
    """The steps of a recipe's stages."""

    def __init__(self, recipe: Recipe, device: str | None = None) -> None:
        self.recipe = recipe
        self.device = device

    def build(self, stage: Stage, start: str | Path, lesson: Lesson, place: Path) -> Step:
        """The model of `start` with the stage's objective; what is made on the way goes under `place`."""
        examples = lesson.examples
        self._check_prompts(stage, start)
        is_infersent = asks_for_new(start) or is_infersent_folder(resolve(start))
        if is_infersent and (isinstance(examples, MixedExamples) or self.recipe.kind == "cross-encoder"):
            raise InvalidInput(
                f"the recipe {self.recipe.name} mixes tasks on an InferSent encoder or makes it a "
                "cross-encoder, which transformers alone can be; give it one task, or another model"
            )
        if self.recipe.infersent and not is_infersent:
            raise InvalidInput(
                f"the recipe {self.recipe.name} sizes an InferSent encoder and starts from {start}"
            )
        if isinstance(examples, MixedExamples):
            return self._mixed(stage, resolve(start), examples)
        (task,) = stage.tasks
        if self.recipe.kind == "cross-encoder":
            model = self._cross_encoder(resolve(start), examples, stage is self.recipe.stages[0])
            return CrossEncoderStep(model, _objective(task, examples, dim=0, cross_encoder=True))
        if is_infersent:
            return self._infersent_step(stage, start, examples)
        folder = self._encoder_folder(resolve(start))
        if stage.prompts:
            folder = folder.with_spec(with_prompts(folder.spec, stage.prompts))
        student = fitted_student(folder, lesson, task.objective, place)
        encoder = SentenceEncoder(student, device=self.device)
        if lesson.targets is not None:
            return taught_step(encoder, task.objective, lesson, task.objective_settings)
        if task.objective in PRETRAINING:
            return build_pretraining(task.objective, encoder, examples.kind, task.objective_settings)
        objective = _objective(task, examples, encoder.dim)
        if head_of(objective, examples.label_names) is not None:
            go_on_with(objective, _head_for(encoder, start), examples.label_names)
        prompts = prompts_of(examples.columns, stage.prompts) if stage.prompts else ()
        return SentenceEncoderStep(encoder, objective, examples.label_names, prompts)

    def _check_prompts(self, stage: Stage, start: str | Path) -> None:
        is_other = (
            self.recipe.kind == "cross-encoder" or stage.teacher or stage.tasks[0].objective in PRETRAINING
        )
        if stage.prompts and (is_other or asks_for_new(start) or is_infersent_folder(resolve(start))):
            raise InvalidInput(
                f"the recipe {self.recipe.name} has prompts, which go with a transformer that learns vectors "
                "from examples and has no teacher; leave them out"
            )

    def _mixed(self, stage: Stage, folder: Path, examples: MixedExamples) -> MultiTaskStep:
        encoder = SentenceEncoder(self._encoder_folder(folder), device=self.device)
        objective = MixedObjective(
            {task.name: _objective(task, examples.parts[task.name], encoder.dim) for task in stage.tasks},
            {task.name: task.weight for task in stage.tasks},
            stage.scale_losses,
        )
        labels = {name: part.label_names for name, part in examples.parts.items()}
        return MultiTaskStep(encoder, objective, labels)

    def _infersent_step(self, stage: Stage, start: str | Path, examples: Examples) -> SentenceEncoderStep:
        recipe, (task,) = self.recipe, stage.tasks
        if stage.teacher is not None or task.objective in PRETRAINING:
            raise InvalidInput(
                f"the recipe {recipe.name} trains an InferSent encoder with a teacher or by pre-training, "
                "which transformers alone can have; give it examples and an objective"
            )
        if (recipe.pooling, recipe.max_tokens) not in ((None, None), (("max",), None)):
            raise InvalidInput(
                f"the recipe {recipe.name} has pooling or max_tokens, and an InferSent encoder takes the "
                "maximum over all words; leave them out"
            )
        encoder = self._infersent(start, examples)
        return SentenceEncoderStep(encoder, _objective(task, examples, encoder.dim), examples.label_names)

    def _infersent(self, start: str | Path, examples: Examples) -> InferSent:
        """The encoder of a folder, or a new one that knows the words of the examples."""
        if not asks_for_new(start):
            return InferSent.open(resolve(start), device=self.device)
        texts = (text for column in examples.columns.values() for text in column)
        try:
            settings = InferSentSettings(**self.recipe.infersent)
        except TypeError as error:
            raise InvalidInput(f"infersent of the recipe {self.recipe.name}: {error}") from None
        return InferSent.new(str(start), texts, settings, device=self.device)

    def _encoder_folder(self, folder: Path) -> ModelFolder:
        model = read_encoder_folder(folder)
        changes: dict[str, Any] = {}
        if self.recipe.pooling is not None:
            changes["pooling"] = replace(model.spec.pooling, modes=self.recipe.pooling)
        if self.recipe.max_tokens is not None:
            changes["max_tokens"] = fitting_tokens(model, self.recipe.max_tokens)
        return model.with_spec(EncoderSpec(**{**vars(model.spec), **changes})) if changes else model

    def _cross_encoder(self, folder: Path, examples: Examples, is_first: bool) -> CrossEncoder:
        """The model of a folder; with a new head where it has none, or an earlier stage's for others."""
        labels = examples.label_names or ("score",)
        try:
            trained = read_reranker_folder(folder)
        except InvalidModel:
            return CrossEncoder.from_encoder(self._encoder_folder(folder), labels, device=self.device)
        if self.recipe.max_tokens is not None:
            trained = replace(trained, max_tokens=fitting_tokens(trained, self.recipe.max_tokens))
        if _has_head_for(labels, trained):
            return CrossEncoder(trained, device=self.device)
        if is_first:
            _refuse_head(trained, labels)
        check_new_head(trained.labels, labels)
        return CrossEncoder.with_new_head(trained, labels, device=self.device)


def _has_head_for(labels: Sequence[str], trained: RerankerFolder) -> bool:
    is_score = len(trained.labels) == 1
    return (is_score and tuple(labels) == ("score",)) or tuple(labels) == trained.labels


def _refuse_head(trained: RerankerFolder, labels: Sequence[str]) -> NoReturn:
    """Somebody's cross-encoder goes on with the head that it has."""
    gives = "one score" if len(trained.labels) == 1 else f"the classes {', '.join(trained.labels)}"
    raise InvalidInput(
        f"the cross-encoder {trained.path} gives {gives}, and the examples have {', '.join(labels)}; "
        "expected the same: give it other examples, or start from an encoder, which gets a new head"
    )


def check_new_head(learnt: Sequence[str], labels: Sequence[str]) -> None:
    """What an earlier stage has learnt of the same classes is not to be lost over how they are written."""
    before, now = set(learnt), set(labels)
    if 1 in (len(before), len(now)) or before == now or not (now < before or _are_respelt(before, now)):
        return
    raise InvalidInput(
        f"the stage before has learnt the classes {', '.join(learnt)}, and the examples of this one "
        f"have {', '.join(labels)}; expected the same, so that it goes on with them: say what the labels "
        "stand for with label_names"
    )


def _are_respelt(before: set[str], now: set[str]) -> bool:
    """Whether they may be the same classes: numbers of names, or names in other letters."""
    if {name.casefold() for name in before} == {name.casefold() for name in now}:
        return True
    are_numbers = [all(finite_number(name) is not None for name in names) for names in (before, now)]
    return len(before) == len(now) and are_numbers[0] != are_numbers[1]


def tell_new_head(start: str | Path, step: Step) -> str | None:
    """A line for a model that begins a new head where it had one for other labels."""
    if isinstance(step, SentenceEncoderStep):
        return _tell_new_classifier(start, step)
    if not isinstance(step, CrossEncoderStep):
        return None
    try:
        before = read_reranker_folder(resolve(start))
    except InvalidModel:
        return None
    if _has_head_for(step.model.folder.labels, before):
        return None
    return (
        f"a new head begins, for {', '.join(step.model.folder.labels)} instead of {', '.join(before.labels)}"
    )


def _tell_new_classifier(start: str | Path, step: SentenceEncoderStep) -> str | None:
    now = step.head()
    head = None if now is None or asks_for_new(start) else read_head(resolve(start))
    if head is None or now is None:
        return None
    if is_alike(head, now) and _head_for(step.model, start) is not None:
        return None
    if (head.kind, head.labels) == (now.kind, now.labels):
        return f"a new {now.kind} head begins: the one of {base_name(str(start))} was for other vectors"
    return f"a new {now.kind} head begins, for {_spoken(now)} instead of {_spoken(head)}"


def _head_for(encoder: nn.Module, start: str | Path) -> Head | None:
    """The head of a folder, if it was learnt on vectors that are made in the same way."""
    folder = resolve(start)
    if not isinstance(encoder, SentenceEncoder):
        return None
    return read_head(folder) if read_encoder_folder(folder).spec.pooling == encoder.spec.pooling else None


def _spoken(head: Head) -> str:
    return ", ".join(head.labels) or "scores"


def _objective(task: Task, examples: Examples, dim: int, cross_encoder: bool = False) -> Objective:
    _check_differences(examples)
    taken = [name for name in task.objective_settings if name in _SET_BY_THE_DATA]
    if taken:
        raise InvalidInput(
            f"the objective is given the setting {taken[0]!r}, which follows from the model and the data; "
            "leave it out"
        )
    return build_objective(
        task.objective,
        examples.kind,
        dim=dim,
        n_labels=len(examples.label_names),
        label_names=examples.label_names,
        cross_encoder=cross_encoder,
        **task.objective_settings,
    )


def _check_differences(examples: Examples) -> None:
    """Refuse labels that are all the same: any vectors would do."""
    if examples.labels is None or len(np.unique(examples.labels)) > 1:
        return
    only = examples.labels[0].item()
    same = f"the label {examples.label_names[int(only)]!r}" if examples.label_names else f"the score {only:g}"
    raise InvalidInput(
        f"all {len(examples):,} {examples.kind} of {examples.origin} have {same}, from which nothing can be "
        "learnt; expected different ones"
    )
