"""The folder of a text classifier: a linear head, what it tells apart, and the encoder it belongs to.

classifier.json     the classes, the settings, and which encoder with which fingerprint
head.safetensors    weights (outputs, dim) and intercepts (outputs,), float64
encoder/            the model folder of the encoder, unless it is known by its name alone
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import fields
from gemel.checkpoint.folder import CLASSIFIER_FILE, existing_folder, read_encoder_folder
from gemel.checkpoint.saving import whole_folder, write_json, write_tensors
from gemel.checkpoint.static import is_static_folder
from gemel.checkpoint.weights import WeightFile, check_shapes
from gemel.errors import InvalidModel, ModelNotFound
from gemel.version import VERSION

HEAD_FILE = "head.safetensors"
ENCODER_FOLDER = "encoder"
KIND = "few-shot"


@dataclass(frozen=True)
class EncoderReference:
    """Which encoder a head was fitted on, and how it was used."""

    fingerprint: str
    dim: int
    name: str | None = None  # of an encoder that is not in the folder
    prompt: str | None = None
    on_truncate: str = "warn"


@dataclass(frozen=True, eq=False)
class ClassifierFolder:
    """A classifier on disk, read and checked."""

    path: Path
    classes: tuple[str, ...] | tuple[int, ...]
    cost: float
    weights: npt.NDArray[np.float64]  # (outputs, dim); one output for two classes
    intercepts: npt.NDArray[np.float64]  # (outputs,)
    encoder: EncoderReference

    @property
    def encoder_folder(self) -> Path | None:
        """Where the encoder is, or None where only its name or fingerprint is known."""
        place = self.path / ENCODER_FOLDER
        return place if place.is_dir() else None


def save_classifier_folder(
    model: ClassifierFolder,
    *,
    save_encoder: Callable[[Path], object] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the classifier to its path, with the encoder that `save_encoder` writes into a folder."""
    reference = asdict(model.encoder)
    with whole_folder(model.path, overwrite) as folder:
        if save_encoder is not None:
            place = folder / ENCODER_FOLDER
            save_encoder(place)
            if not is_static_folder(place):  # saving may have changed the precision, and so the fingerprint
                reference["fingerprint"] = read_encoder_folder(place).fingerprint
        config = {"kind": KIND, "classes": list(model.classes), "cost": model.cost, "encoder": reference}
        write_json(folder / CLASSIFIER_FILE, {**config, "gemel_version": VERSION})
        write_tensors(folder / HEAD_FILE, {"weights": model.weights, "intercepts": model.intercepts})


def is_classifier_folder(folder: str | Path) -> bool:
    """Whether a folder holds a classifier of texts."""
    return (Path(folder).expanduser() / CLASSIFIER_FILE).is_file()


def read_classifier_folder(folder: str | Path) -> ClassifierFolder:
    """The classifier in a folder; the encoder is not opened."""
    try:
        path = existing_folder(folder)
    except ModelNotFound:
        raise ModelNotFound(
            f"there is no classifier folder {str(folder)!r}; make one with gemel classify --fit"
        ) from None
    if not is_classifier_folder(path):
        raise InvalidModel(
            f"{path} has no {CLASSIFIER_FILE}, so it is no text classifier: make one with "
            "gemel classify --fit, or name one"
        )
    file = path / CLASSIFIER_FILE
    config = fields.read_json(file)
    if config.get("kind") != KIND:
        raise fields.wrong(config, "kind", str(file), repr(KIND))
    classes, reference = _classes(config, str(file)), _reference(config, str(file))
    n_outputs = 1 if len(classes) == 2 else len(classes)
    head = _head(path / HEAD_FILE, {"weights": (n_outputs, reference.dim), "intercepts": (n_outputs,)})
    return ClassifierFolder(path, classes, _cost(config, str(file)), **head, encoder=reference)


def _classes(config: fields.Json, file: str) -> tuple[str, ...] | tuple[int, ...]:
    value = config.get("classes")
    if not isinstance(value, list) or len({*map(str, value)}) != len(value) or len(value) < 2:
        raise fields.wrong(config, "classes", file, "a list of two or more different classes")
    if all(type(name) is str for name in value) or all(type(name) is int for name in value):
        return tuple(value)
    raise fields.wrong(config, "classes", file, "a list of texts or of whole numbers")


def _cost(config: fields.Json, file: str) -> float:
    value = config.get("cost")
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise fields.wrong(config, "cost", file, "a number above 0")
    return float(value)


def _reference(config: fields.Json, file: str) -> EncoderReference:
    encoder = fields.table(config, "encoder", file)
    known = [field.name for field in fields_of(EncoderReference)]
    unknown = sorted(set(encoder) - set(known))
    if unknown:
        raise InvalidModel(
            f"{file} has the unknown key {unknown[0]!r} in encoder; the known ones are {', '.join(known)}"
        )
    fingerprint = fields.text(encoder, "fingerprint", file)
    if not fingerprint:
        raise InvalidModel(f"{file} lacks the encoder's fingerprint: save the classifier again")
    return EncoderReference(
        fingerprint=fingerprint,
        dim=fields.required_integer(encoder, "dim", file),
        name=fields.text(encoder, "name", file),
        prompt=fields.text(encoder, "prompt", file),
        on_truncate=fields.text(encoder, "on_truncate", file) or "warn",
    )


def _head(file: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, npt.NDArray[Any]]:
    if not file.is_file():
        raise InvalidModel(f"{file.parent} has no {file.name}: save the classifier again, or get it anew")
    weights = WeightFile.open(file)
    check_shapes(weights, shapes)
    found = {name: np.asarray(weights.read(name), np.float64) for name in shapes}
    for name, array in found.items():
        if not np.isfinite(array).all():
            raise InvalidModel(f"{file}: {name} holds NaN or infinity; save the classifier again")
    return found
