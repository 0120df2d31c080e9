"""Where a student starts: some layers of its teacher, a projection where vectors are of another length."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import Dense, EncoderSpec, ModelFolder, Normalise, read_weights, save_encoder_folder
from gemel.errors import InvalidInput

# architecture -> the setting that counts its layers; those whose layers are alike and know no other
LAYERED = {
    "bert": "num_hidden_layers",
    "camembert": "num_hidden_layers",
    "distilbert": "n_layers",
    "electra": "num_hidden_layers",
    "mpnet": "num_hidden_layers",
    "roberta": "num_hidden_layers",
    "xlm-roberta": "num_hidden_layers",
}
_LAYER = re.compile(r"(?P<before>(?:^|.*\.)layer\.)(?P<number>\d+)(?P<after>\..*)")


def chosen_layers(layers: int | Sequence[int], n_layers: int) -> tuple[int, ...]:
    """The layers that a student keeps: those named, or so many, evenly spread from the first to the last."""
    if isinstance(layers, int):
        if not 1 <= layers <= n_layers:
            raise InvalidInput(
                f"{layers} layers were asked for and the model has {n_layers}; choose 1 to {n_layers}"
            )
        return tuple(int(place) for place in np.linspace(0, n_layers - 1, layers).round())
    kept = tuple(layers)
    if not kept or list(kept) != sorted(set(kept)) or not 0 <= kept[0] <= kept[-1] < n_layers:
        raise InvalidInput(f"the layers {list(kept)} were asked for; expected some of 0 to {n_layers - 1}")
    return kept


def save_student(
    folder: ModelFolder, target: str | Path, layers: int | Sequence[int], *, overwrite: bool = False
) -> tuple[int, ...]:
    """Write a model that has only some layers of another one; which they are."""
    setting = LAYERED.get(str(folder.config.get("model_type")))
    n_layers = folder.config.get(setting) if setting else None
    if setting is None or not isinstance(n_layers, int):
        raise InvalidInput(
            f"{folder.path} is a {folder.config.get('model_type')!r}, whose layers stay together; expected "
            f"one of {', '.join(LAYERED)}: give another model as the student"
        )
    kept = chosen_layers(layers, n_layers)
    weights = _without_layers(read_weights(folder.weight_files), kept)
    dense = [read_weights((file,)) for file in folder.dense_files]
    smaller = replace(folder, config={**folder.config, setting: len(kept)})
    save_encoder_folder(target, smaller, weights, dense, overwrite=overwrite)
    return kept


def ends_normalised(spec: EncoderSpec) -> bool:
    """Whether the vectors of a model have length 1."""
    return bool(spec.tail) and isinstance(spec.tail[-1], Normalise)


def save_projected(
    folder: ModelFolder, target: str | Path, dim: int, *, seed: int = 42, overwrite: bool = False
) -> None:
    """Write a model whose vectors a new linear layer brings to another length; normalised where they were."""
    spec = folder.spec
    is_last = ends_normalised(spec)
    before = spec.tail[:-1] if is_last else spec.tail
    added = Dense(spec.dim, dim, bias=False, activation="identity")
    tail = (*before, added, Normalise()) if is_last else (*before, added)
    # A random orthogonal matrix keeps angles as well as so many numbers can: a start that loses little.
    shape = (max(dim, spec.dim), min(dim, spec.dim))
    axes, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal(shape))
    matrix = (axes if dim >= spec.dim else axes.T).astype(np.float32)
    dense = [*(read_weights((file,)) for file in folder.dense_files), {"linear.weight": matrix}]
    changed = folder.with_spec(replace(spec, tail=tail))
    save_encoder_folder(target, changed, read_weights(folder.weight_files), dense, overwrite=overwrite)


def _without_layers(weights: Any, kept: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    """The tensors of the kept layers under their new numbers, and those of no layer."""
    places = {number: place for place, number in enumerate(kept)}
    found: dict[str, npt.NDArray[Any]] = {}
    for name, array in weights.items():
        match = _LAYER.fullmatch(name)
        if match is None:
            found[name] = array
        elif int(match["number"]) in places:
            found[f"{match['before']}{places[int(match['number'])]}{match['after']}"] = array
    return found
