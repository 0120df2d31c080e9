"""What an objective has learnt on top of the vectors, kept beside the encoder so that it can be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import fields
from gemel.checkpoint.weights import SINGLE_FILE, read_weights
from gemel.errors import InvalidModel

HEAD_FOLDER = "gemel_head"  # other programs follow modules.json and never look in here


@dataclass(frozen=True)
class Head:
    """A classifier or regressor on two joined vectors."""

    kind: str  # "softmax" or "regression"
    concatenation: tuple[str, ...]  # such as u, v, |u-v|
    weights: Mapping[str, npt.NDArray[Any]]
    labels: tuple[str, ...] = ()
    by_task: Mapping[str, Head] = field(default_factory=dict)  # all heads, where several tasks were trained


def write_head(folder: Path, head: Head) -> None:
    """Put a head into a model folder that is being written, and those of other tasks below it."""
    _write(folder / HEAD_FOLDER, head)
    for task, other in head.by_task.items():
        _write(folder / HEAD_FOLDER / task, other)


def _write(place: Path, head: Head) -> None:
    from safetensors.numpy import save_file

    place.mkdir()
    config = {"kind": head.kind, "concatenation": list(head.concatenation), "labels": list(head.labels)}
    (place / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(
        {name: np.ascontiguousarray(array) for name, array in head.weights.items()}, place / SINGLE_FILE
    )


def read_head(folder: Path, task: str | None = None) -> Head | None:
    """The head in a model folder, that of a task if one is named, or None if it has none."""
    place = folder / HEAD_FOLDER
    if not place.is_dir():
        return None
    if task is not None:
        tasks = sorted(child.name for child in place.iterdir() if child.is_dir())
        if task not in tasks:
            raise InvalidModel(
                f"{folder} has no head for the task {task!r}; it has {', '.join(tasks) or 'none by name'}"
            )
        place = place / task
    file = place / "config.json"
    config = fields.read_json(file, required_by="a head")
    kind, parts = fields.text(config, "kind", str(file)), fields.texts(config, "concatenation", str(file))
    if kind is None or not parts:
        raise InvalidModel(f"{file} lacks a kind or a concatenation: train or get the model again")
    if not (place / SINGLE_FILE).is_file():
        raise InvalidModel(f"{place} has no {SINGLE_FILE}: train or get the model again")
    labels = fields.texts(config, "labels", str(file))
    return Head(kind, parts, read_weights((place / SINGLE_FILE,)), labels)
