"""A recipe: one TOML file that says all of a training run, in one or several stages.

A stage has data and an objective, or several tasks with their own, which are mixed on one encoder:

    model = "bert-base-uncased"
    pooling = "mean"

    [[stage]]
    mixing = "proportional"             # or "round-robin"
    scale_losses = true                 # each divided by what guessing costs: log n for n classes
    train = { batch_size = 16, max_steps = 1000 }
    validate = { path = "stsb/dev.tsv" }

    [[stage.task]]
    name = "nli"
    data = { path = "nli_mix/train.tsv.gz" }
    objective = { name = "softmax" }

    [[stage.task]]
    name = "questions"
    data = { path = "quora_duplicates_positive/all.tsv.gz" }
    objective = { name = "contrastive", matryoshka = { dimensions = [768, 192] } }
    weight = 0.5

A stage may have a teacher, whose vectors or scores are learnt, and a recipe may start from some layers of
its model:

    model = "all-MiniLM-L6-v2"
    layers = 3                          # or which: [0, 2, 5]

    [[stage]]
    data = { limit = 200_000, files = [{ path = "a.txt" }, { path = "b.tsv", columns = ["premise"] }] }
    teacher = "all-MiniLM-L6-v2"        # or { model = ..., precision = "float32" }; or a cross-encoder

Models that read questions and documents differently learn with what stands before either:

    prompts = { first = "query: ", second = "passage: " }
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gemel.errors import InvalidInput
from gemel.reproduce.sources import DataSource, parse_source
from gemel.train import TrainConfig
from gemel.train.mixing import MIXINGS
from gemel.train.values import (
    BOOLEAN,
    NUMBER,
    TABLE,
    TABLES,
    TEXT,
    TEXT_OR_TABLE,
    TEXT_OR_TEXTS,
    WHOLE,
    WHOLE_OR_WHOLES,
    WHOLES,
    check_keys,
    check_types,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TASK_KEYS = ("data", "objective")
MIXING_KEYS = ("mixing", "scale_losses")
MODEL_KINDS = ("encoder", "cross-encoder")
RECIPE_TYPES = {
    "model": TEXT,
    "pooling": TEXT_OR_TEXTS,
    "max_tokens": WHOLE,
    "layers": WHOLE_OR_WHOLES,
    "seeds": WHOLES,
    "stage": TABLES,
    "infersent": TABLE,
}
STAGE_TYPES = {
    "data": TABLE,
    "objective": TABLE,
    "train": TABLE,
    "validate": TABLE,
    "task": TABLES,
    "teacher": TEXT_OR_TABLE,
    "prompts": TABLE,
    "mixing": TEXT,
    "scale_losses": BOOLEAN,
    "name": TEXT,
    "weight": NUMBER,
}
TEACHER_TYPES = {"model": TEXT, "precision": TEXT, "threads": WHOLE}


@dataclass(frozen=True)
class Teacher:
    """The model that a stage learns from: an encoder or a cross-encoder, as its folder says."""

    model: str
    precision: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Task:
    """Data and what is asked of it; a stage with one task needs no name for it."""

    data: DataSource
    objective: str | None = None
    objective_settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    weight: float = 1.0


@dataclass(frozen=True)
class Stage:
    """One run of the loop: one task or several, settings, and what it is validated on."""

    tasks: tuple[Task, ...]
    train: TrainConfig = field(default_factory=TrainConfig)
    validate: DataSource | None = None
    mixing: str = MIXINGS[0]
    scale_losses: bool = True
    teacher: Teacher | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)  # what stands before the texts of a column


@dataclass(frozen=True)
class Recipe:
    """A model to start from and the stages that it goes through, for each seed."""

    name: str
    model: str
    stages: tuple[Stage, ...]
    kind: str = "encoder"
    pooling: tuple[str, ...] | None = None
    max_tokens: int | None = None
    layers: int | tuple[int, ...] | None = None  # of the model that are kept: so many, or these
    seeds: tuple[int, ...] = ()
    infersent: Mapping[str, Any] = field(default_factory=dict)  # the size of a new InferSent encoder

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def read_recipe(path: str | Path, model: str | None = None) -> Recipe:
    """The recipe in a TOML file, with another model if one is given; an unknown key is an error."""
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # as some editors save it
    except OSError as error:
        raise InvalidInput(f"the recipe {path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InvalidInput(f"the recipe {path} is not TOML: {error}") from None
    return parse_recipe(values if model is None else {**values, "model": model}, path.stem)


def parse_recipe(values: Mapping[str, Any], name: str) -> Recipe:
    """The recipe in a table of values."""
    known = ("model", "kind", "pooling", "max_tokens", "layers", "seeds", "stage", "infersent")
    check_keys(values, known, f"the recipe {name}")
    if "model" not in values:
        raise InvalidInput(
            f'the recipe {name} names no model to start from; add model = "...", or give --model'
        )
    if not values.get("stage"):
        raise InvalidInput(f"the recipe {name} has no [[stage]]; expected at least one, with its data")
    kind = values.get("kind", "encoder")
    if kind not in MODEL_KINDS:
        raise InvalidInput(f"the recipe {name} is for the kind {kind!r}; expected {' or '.join(MODEL_KINDS)}")
    check_types(values, RECIPE_TYPES, f"the recipe {name}")
    if kind == "cross-encoder" and "pooling" in values:
        raise InvalidInput(
            f"the recipe {name} has pooling, and a cross-encoder has its own head instead; leave it out"
        )
    pooling, layers, seeds = values.get("pooling"), values.get("layers"), values.get("seeds", [])
    if len(set(seeds)) < len(seeds):
        raise InvalidInput(f"seeds of the recipe {name} is {seeds!r}; expected no number twice")
    stages = tuple(_stage(stage, name) for stage in values["stage"])
    if kind == "cross-encoder" and any(len(stage.tasks) > 1 for stage in stages):
        raise InvalidInput(
            f"the recipe {name} mixes tasks for a cross-encoder; expected an encoder, or a stage for each"
        )
    for seed in seeds:
        replace(stages[-1].train, seed=seed)  # refuses what is no seed now, and not when its turn comes
    return Recipe(
        name=name,
        model=str(values["model"]),
        stages=stages,
        kind=kind,
        pooling=None if pooling is None else tuple([pooling] if isinstance(pooling, str) else pooling),
        max_tokens=values.get("max_tokens"),
        layers=tuple(layers) if isinstance(layers, list) else layers,
        seeds=tuple(seeds),
        infersent=dict(values.get("infersent", {})),
    )


def _stage(values: Mapping[str, Any], name: str) -> Stage:
    where = f"a stage of the recipe {name}"
    check_types(values, STAGE_TYPES, where)
    mixing = {key: values[key] for key in MIXING_KEYS if key in values}
    if "task" in values:
        check_keys(values, ("task", "train", "validate", *MIXING_KEYS), where)
        tasks = _tasks(values["task"], name)
        if len(tasks) == 1:
            raise InvalidInput(
                f"{where} has one task, with which nothing is mixed; give the stage its data and objective "
                "itself, or another task"
            )
    else:
        check_keys(values, (*TASK_KEYS, "train", "validate", "teacher", "prompts", "task"), where)
        tasks = (_task(values, name, where),)
    train = TrainConfig.from_dict(values.get("train", {}))
    for idle in ("evaluate_every", "patience"):
        if getattr(train, idle) is not None and "validate" not in values:
            raise InvalidInput(
                f"{where} has {idle} and nothing to validate on; add validate (the flag --validate), or "
                "leave it out"
            )
    return Stage(
        tasks=tasks,
        train=train,
        validate=parse_source(values["validate"], name) if "validate" in values else None,
        teacher=_teacher(values["teacher"], name) if "teacher" in values else None,
        prompts=_prompts(values.get("prompts", {}), where),
        **mixing,
    )


def _tasks(values: Sequence[Mapping[str, Any]], name: str) -> tuple[Task, ...]:
    where = f"a task of the recipe {name}"
    for task in values:
        check_keys(task, (*TASK_KEYS, "name", "weight"), where)
        check_types(task, STAGE_TYPES, where)
    tasks = tuple(_task(task, name, where) for task in values)
    names = [task.name for task in tasks]
    if not all(names) or len(set(names)) < len(names):
        raise InvalidInput(
            f"the tasks of the recipe {name} are named {', '.join(map(repr, names))}; expected a name "
            "for each, and no two the same"
        )
    return tasks


def _task(values: Mapping[str, Any], name: str, where: str) -> Task:
    if "data" not in values:
        raise InvalidInput(f"{where} needs data")
    objective = dict(values.get("objective", {}))
    check_types(objective, {"name": TEXT}, f"the objective of {where}")
    return Task(
        data=parse_source(values["data"], name),
        objective=objective.pop("name", None),
        objective_settings=objective,
        name=str(values.get("name", "")),
        weight=values.get("weight", 1.0),
    )


def _prompts(values: Mapping[str, Any], where: str) -> dict[str, str]:
    check_types(values, dict.fromkeys(values, TEXT), f"prompts of {where}")
    return dict(values)


def _teacher(values: str | Mapping[str, Any], name: str) -> Teacher:
    if isinstance(values, str):
        return Teacher(values)
    check_keys(values, tuple(TEACHER_TYPES), f"the teacher of the recipe {name}")
    check_types(values, TEACHER_TYPES, f"the teacher of the recipe {name}")
    if "model" not in values:
        raise InvalidInput(f"the teacher of the recipe {name} needs a model")
    return Teacher(str(values["model"]), values.get("precision"), values.get("threads"))


def parse_settings(given: Sequence[str]) -> dict[str, Any]:
    """Settings as a command line has them, `temperature=0.1`: values are TOML's, or else words."""
    lines = []
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InvalidInput(f"the setting {setting!r} has no value; expected NAME=VALUE")
        if value.lower() in ("true", "false"):  # as Python has them
            value = value.lower()
        line = f"{name} = {value}"
        lines.append(line if _is_toml(line) else f"{name} = {json.dumps(value)}")
    try:
        return tomllib.loads("\n".join(lines))
    except ValueError as error:
        raise InvalidInput(f"the settings {', '.join(given)} cannot be read: {error}") from None


def _is_toml(line: str) -> bool:
    try:
        tomllib.loads(line)
    except ValueError:
        return False
    return True
