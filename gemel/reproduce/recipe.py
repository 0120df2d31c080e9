"""A recipe: one TOML file that says all of a training run, in one or several stages."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gemel.errors import InvalidInput
from gemel.train import TrainConfig

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA_KEYS = ("path", "columns", "kind", "where", "limit", "skip_bad_rows", "score_range")
MODEL_KINDS = ("encoder", "cross-encoder")


@dataclass(frozen=True)
class DataSource:
    """Where examples come from and how they are read."""

    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """One run of the loop: data, objective, settings, and what it is validated on."""

    data: DataSource
    objective: str | None = None
    objective_settings: Mapping[str, Any] = field(default_factory=dict)
    train: TrainConfig = field(default_factory=TrainConfig)
    validate: DataSource | None = None


@dataclass(frozen=True)
class Recipe:
    """A model to start from and the stages that it goes through, for each seed."""

    name: str
    model: str
    stages: tuple[Stage, ...]
    kind: str = "encoder"
    pooling: tuple[str, ...] | None = None
    max_tokens: int | None = None
    seeds: tuple[int, ...] = ()
    infersent: Mapping[str, Any] = field(default_factory=dict)  # the size of a new InferSent encoder

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
    known = ("model", "kind", "pooling", "max_tokens", "seeds", "stage", "expected", "infersent")
    _check_keys(values, known, f"the recipe {name}")
    if "model" not in values or not values.get("stage"):
        raise InvalidInput(f"the recipe {name} needs a model and at least one [[stage]]")
    kind = values.get("kind", "encoder")
    if kind not in MODEL_KINDS:
        raise InvalidInput(f"the recipe {name} is for the kind {kind!r}; expected {' or '.join(MODEL_KINDS)}")
    pooling = values.get("pooling")
    return Recipe(
        name=name,
        model=str(values["model"]),
        stages=tuple(_stage(stage, name) for stage in values["stage"]),
        kind=kind,
        pooling=None if pooling is None else tuple([pooling] if isinstance(pooling, str) else pooling),
        max_tokens=values.get("max_tokens"),
        seeds=tuple(values.get("seeds", ())),
        infersent=dict(values.get("infersent", {})),
    )


def _stage(values: Mapping[str, Any], name: str) -> Stage:
    _check_keys(values, ("data", "objective", "train", "validate"), f"a stage of the recipe {name}")
    if "data" not in values:
        raise InvalidInput(f"a stage of the recipe {name} needs data")
    objective = dict(values.get("objective", {}))
    return Stage(
        data=_source(values["data"], name),
        objective=objective.pop("name", None),
        objective_settings=objective,
        train=TrainConfig.from_dict(values.get("train", {})),
        validate=_source(values["validate"], name) if "validate" in values else None,
    )


def _source(values: Mapping[str, Any], name: str) -> DataSource:
    _check_keys(values, DATA_KEYS, f"data of the recipe {name}")
    if "path" not in values:
        raise InvalidInput(f"data of the recipe {name} needs a path")
    options = {key: value for key, value in values.items() if key != "path"}
    if "score_range" in options:
        options["score_range"] = tuple(options["score_range"])
    return DataSource(str(values["path"]), options)


def _check_keys(values: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInput(
            f"{where} has the unknown key {unknown[0]!r}; the known keys are {', '.join(known)}"
        )
