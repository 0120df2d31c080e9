"""A recipe: one TOML file that says all of a training run, in one or several stages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gemel.errors import InvalidInput
from gemel.reproduce.sources import DataSource, check_keys, parse_source
from gemel.train import TrainConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODEL_KINDS = ("encoder", "cross-encoder")


@dataclass(frozen=True)
class Teacher:
    """The model that a stage learns from: an encoder or a cross-encoder, as its folder says."""

    model: str
    precision: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Stage:
    """One run of the loop: data, objective, settings, and what it is validated on."""

    data: DataSource
    objective: str | None = None
    objective_settings: Mapping[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)
    validate: DataSource | None = None
    teacher: Teacher | None = None


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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def read_recipe(path: str | Path) -> Recipe:
    """The recipe in a TOML file; an unknown key is an error that lists the known ones."""
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"the recipe {path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InvalidInput(f"the recipe {path} is not TOML: {error}") from None
    return parse_recipe(values, path.stem)


def parse_recipe(values: Mapping[str, Any], name: str) -> Recipe:
    """The recipe in a table of values."""
    known = ("model", "kind", "pooling", "max_tokens", "layers", "seeds", "stage", "expected")
    check_keys(values, known, f"the recipe {name}")
    if "model" not in values or not values.get("stage"):
        raise InvalidInput(f"the recipe {name} needs a model and at least one [[stage]]")
    kind = values.get("kind", "encoder")
    if kind not in MODEL_KINDS:
        raise InvalidInput(f"the recipe {name} is for the kind {kind!r}; expected {' or '.join(MODEL_KINDS)}")
    pooling, layers = values.get("pooling"), values.get("layers")
    return Recipe(
        name=name,
        model=str(values["model"]),
        stages=tuple(_stage(stage, name) for stage in values["stage"]),
        kind=kind,
        pooling=None if pooling is None else tuple([pooling] if isinstance(pooling, str) else pooling),
        max_tokens=values.get("max_tokens"),
        layers=tuple(layers) if isinstance(layers, list) else layers,
        seeds=tuple(values.get("seeds", ())),
    )


def _stage(values: Mapping[str, Any], name: str) -> Stage:
    check_keys(values, ("data", "objective", "train", "validate", "teacher"), f"a stage of the recipe {name}")
    if "data" not in values:
        raise InvalidInput(f"a stage of the recipe {name} needs data")
    objective = dict(values.get("objective", {}))
    return Stage(
        data=parse_source(values["data"], name),
        objective=objective.pop("name", None),
        objective_settings=objective,
        train=TrainConfig.from_dict(values.get("train", {})),
        validate=parse_source(values["validate"], name) if "validate" in values else None,
        teacher=_teacher(values["teacher"], name) if "teacher" in values else None,
    )


def _teacher(values: str | Mapping[str, Any], name: str) -> Teacher:
    if isinstance(values, str):
        return Teacher(values)
    check_keys(values, ("model", "precision", "threads"), f"the teacher of the recipe {name}")
    if "model" not in values:
        raise InvalidInput(f"the teacher of the recipe {name} needs a model")
    return Teacher(str(values["model"]), values.get("precision"), values.get("threads"))
