"""Folders of static tables: model2vec's layout, and Sentence-Transformers' StaticEmbedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import dialects, fields
from gemel.checkpoint.folder import existing_folder, module_list
from gemel.checkpoint.saving import whole_folder, write_json, write_tensors
from gemel.checkpoint.weights import SINGLE_FILE, WeightFile, find_weights
from gemel.errors import InvalidModel

# What the tensor of rows is called says whose folder it is, and so what becomes of unknown tokens.
MODEL2VEC_ROWS = "embeddings"
SENTENCE_TRANSFORMERS_ROWS = "embedding.weight"


@dataclass(frozen=True)
class StaticFolder:
    """A static table on disk, its header read and checked."""

    path: Path
    weights: WeightFile
    tokenizer_file: Path
    normalises: bool
    truncate_dim: int | None = None

    @property
    def drops_unknown(self) -> bool:
        """Whether unknown tokens are left out of the mean, as in model2vec, or have a row that counts."""
        return MODEL2VEC_ROWS in self.weights.entries

    def rows(self) -> npt.NDArray[np.float32]:
        """The table (rows, dim); stored as float32, its pages are those of the file."""
        return self.weights.view(MODEL2VEC_ROWS if self.drops_unknown else SENTENCE_TRANSFORMERS_ROWS)

    def extra(self, name: str) -> npt.NDArray[Any] | None:
        """The `mapping` or the `weights` of the tokens, where the folder has them."""
        return self.weights.read(name) if name in self.weights.entries else None


def is_static_folder(folder: Path) -> bool:
    """Whether a folder holds a static table, told by its JSON alone."""
    folder = existing_folder(folder)
    if (folder / "modules.json").is_file():
        return bool(modules := module_list(folder / "modules.json")) and modules[0][0] == "StaticEmbedding"
    return fields.read_json(folder / "config.json").get("model_type") == "model2vec"


def read_static_folder(folder: str | Path) -> StaticFolder:
    """The static table in a folder of either layout."""
    folder = existing_folder(folder)
    place, normalises = _place(folder)
    config, settings = folder / "config.json", folder / "config_sentence_transformers.json"
    files = find_weights(place, folder)
    if len(files) != 1:
        raise InvalidModel(f"{place} holds its table in {len(files)} files, and one was expected")
    weights = WeightFile.open(files[0])
    _check_tensors(weights)
    named = dialects.parse_model_settings(fields.read_json(settings), str(settings))
    if named["default_prompt"] is not None and named["prompts"].get(named["default_prompt"]):
        raise InvalidModel(f"{settings} sets a default prompt, which gemel cannot honour for static tables")
    if not (place / "tokenizer.json").is_file():
        raise InvalidModel(f"{place} has no tokenizer.json, which a static table needs: get the folder again")
    return StaticFolder(
        path=folder,
        weights=weights,
        tokenizer_file=place / "tokenizer.json",
        normalises=fields.flag(fields.read_json(config), "normalize", str(config), normalises),
        truncate_dim=named["truncate_dim"],
    )


def _place(folder: Path) -> tuple[Path, bool]:
    """Where the table is, and whether modules.json has its means scaled to unit length."""
    if not (folder / "modules.json").is_file():
        return folder, False
    modules = module_list(folder / "modules.json")
    kinds = [kind for kind, _ in modules]
    if kinds[:1] != ["StaticEmbedding"] or set(kinds[1:]) - {"Normalize"}:
        raise InvalidModel(
            f"{folder} is the chain {' > '.join(kinds) or 'of no modules'}; StaticEmbedding, or "
            "StaticEmbedding > Normalize is needed"
        )
    return modules[0][1], "Normalize" in kinds


def _check_tensors(weights: WeightFile) -> None:
    shapes = {name: entry.shape for name, entry in weights.entries.items()}
    rows = shapes.get(MODEL2VEC_ROWS, shapes.get(SENTENCE_TRANSFORMERS_ROWS))
    if rows is None or len(rows) != 2 or 0 in rows:
        raise InvalidModel(
            f"{weights.path} holds {', '.join(sorted(shapes)) or 'no tensors'}; a table "
            f"{MODEL2VEC_ROWS!r} or {SENTENCE_TRANSFORMERS_ROWS!r} of rows was expected"
        )
    for name in ("mapping", "weights"):
        if len(shapes.get(name, (0,))) != 1:
            raise InvalidModel(f"{weights.path}: {name!r} has shape {shapes[name]}, expected (tokens,)")


def save_static_folder(
    target: str | Path,
    tensors: Mapping[str, npt.NDArray[Any]],
    tokenizer_json: str,
    *,
    normalises: bool,
    card: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a static table so that model2vec and Sentence-Transformers open it too."""
    rows = tensors.get(MODEL2VEC_ROWS)
    modules = ["StaticEmbedding", "Normalize"] if normalises else ["StaticEmbedding"]
    paths = [".", "1_Normalize"]
    with whole_folder(Path(target), overwrite) as folder:
        write_tensors(folder / SINGLE_FILE, tensors)
        (folder / "tokenizer.json").write_text(tokenizer_json, encoding="utf-8")
        if rows is not None:
            config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": normalises}
            # Without this word model2vec reads no more than 512 tokens of a text.
            whole = {"max_length": None}
            write_json(folder / "config.json", {**config, **whole, "hidden_dim": int(rows.shape[1])})
        if card is not None:
            (folder / "README.md").write_text(card, encoding="utf-8")
        write_json(
            folder / "modules.json",
            [
                {
                    "idx": index,
                    "name": str(index),
                    "path": paths[index],
                    "type": f"sentence_transformers.models.{kind}",
                }
                for index, kind in enumerate(modules)
            ],
        )
