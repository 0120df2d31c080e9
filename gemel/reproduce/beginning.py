"""What a stage was begun with, kept beside it: a run goes on by the same recipe, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gemel.data.places import hash_of
from gemel.errors import InvalidInput
from gemel.reproduce.outcome import RESULT
from gemel.reproduce.recipe import Recipe, Stage
from gemel.train import TrainConfig
from gemel.train.card import base_name
from gemel.train.prompts import prompt_of_first
from gemel.train.state import FREE_SETTINGS, KEPT

FILE_NAME = "begun-with.json"
CONTENTS = "contents of "  # what files hold, which is compared where both sides know it


def begun_with(
    recipe: Recipe, stage: Stage, config: TrainConfig, data: Path, start: str | Path
) -> dict[str, Any]:
    """All that decides what a stage comes to, as plain JSON values by their names; `start` is its model."""
    values: dict[str, Any] = {
        name: getattr(recipe, name) for name in ("kind", "pooling", "max_tokens", "layers", "infersent")
    }
    values["model"] = base_name(recipe.model)
    values |= {name: getattr(stage, name) for name in ("mixing", "scale_losses")}
    for task in stage.tasks:
        own = {"data": asdict(task.data), "objective": task.objective, "weight": task.weight}
        own["settings of the objective"] = dict(task.objective_settings)
        values |= {f"{task.name} {name}".strip(): value for name, value in own.items()}
    values["teacher"] = stage.teacher and {**asdict(stage.teacher), "model": base_name(stage.teacher.model)}
    values["prompts"] = dict(stage.prompts) or None
    values["validate"] = stage.validate and asdict(stage.validate)
    # Scores with a prompt and without are not to be compared, and an older program knew none.
    values["prompt of the validation"] = (stage.validate and prompt_of_first(stage.prompts)) or None
    values |= {name: value for name, value in config.to_dict().items() if name not in FREE_SETTINGS}
    values |= {f"{CONTENTS}{name}": mark for name, mark in _contents(recipe, stage, data, start) if mark}
    plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
    return plain


def _contents(
    recipe: Recipe, stage: Stage, data: Path, start: str | Path
) -> Iterator[tuple[str, str | None]]:
    """Names may stay while what they stand for changes."""
    yield "the model", _mark_of_model(recipe.model)
    if stage is not recipe.stages[0]:
        yield "the stage before", _mark_of_model(str(start))  # which may have gone on, with more patience
    if stage.teacher is not None:
        yield "the teacher", _mark_of_model(stage.teacher.model)
    if stage.validate is not None:
        yield "the validation data", _mark_of_files(list(stage.validate.places(data).values()))
    for task in stage.tasks:
        yield f"the data {task.name}".strip(), _mark_of_files(list(task.data.places(data).values()))


def _mark_of_model(name: str) -> str | None:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return None  # a name on the hub, or a new model
    files = [path for path in folder.rglob("*") if path.suffix in (".safetensors", ".json", ".txt")]
    return _mark_of_files(sorted(files))


def _mark_of_files(paths: Sequence[Path]) -> str | None:
    return hash_of(*paths) if paths and all(path.is_file() for path in paths) else None


def keep_to_beginning(place: Path, values: dict[str, Any], *, resume: bool) -> None:
    """Note what a stage is begun with, or refuse to continue one that was begun with something else."""
    file = place / FILE_NAME
    if not any((place / name).exists() for name in KEPT):
        place.mkdir(parents=True, exist_ok=True)
        (place / RESULT).unlink(missing_ok=True)  # of a run whose models somebody has removed
        file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        return
    if not resume:
        raise InvalidInput(
            f"{place} holds a run already: continue it (--resume, resume=True), or name another"
        )
    if not file.is_file():
        return
    saved = json.loads(file.read_text(encoding="utf-8"))
    for name in sorted(saved.keys() & values.keys()) + sorted(saved.keys() ^ values.keys()):
        is_known = name in saved and name in values
        if name.startswith(CONTENTS) and is_known and saved[name] != values[name]:
            raise InvalidInput(
                f"the {name} have changed since {place} was begun: resume with the same, name another "
                "output, or remove that folder to begin it anew"
            )
        if not name.startswith(CONTENTS) and saved.get(name) != values.get(name):
            raise InvalidInput(
                f"{place} was begun with {name} = {saved.get(name)!r} and now it is {values.get(name)!r}: "
                "resume with the same recipe, or name another output"
            )
