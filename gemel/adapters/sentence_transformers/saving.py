"""A model saved among a user's own files, which stay: there, a folder is written into and never emptied."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from gemel.checkpoint.folder import OWN_SETTINGS, UNFINISHED
from gemel.checkpoint.head import HEAD_FOLDER
from gemel.checkpoint.saving import TOKENIZER_FILE_NAMES
from gemel.errors import GemelError, InvalidInput, WriteFailed

MODEL_MARKS = ("config.json", "modules.json")
# What would change how the next model is read, were it left over from the one before.
MODEL_FILES = (
    OWN_SETTINGS,
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    *TOKENIZER_FILE_NAMES,
)


def save_among_others(path: str | Path, save: Callable[[Path], None]) -> None:
    """Have a model saved whole in its own folder, and then moved into place; what else is there stays."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise InvalidInput(f"{target} is a file; expected a folder to save the model in: name another")
    if not target.exists() or not any(target.iterdir()):
        save(target)
        return
    try:
        with tempfile.TemporaryDirectory(prefix=".gemel.", suffix=".new", dir=target) as place:
            fresh = Path(place) / "model"
            save(fresh)
            _move(fresh, target)
    except GemelError:  # some are OSErrors too, and say already what went wrong
        raise
    except OSError as error:
        raise WriteFailed(f"the model could not be written into {target} ({error}); save again") from error


def _move(fresh: Path, target: Path) -> None:
    """Put every file into the target, which is marked as unfinished meanwhile."""
    (target / UNFINISHED).touch()
    if any((target / mark).is_file() for mark in MODEL_MARKS):
        for name in MODEL_FILES:
            (target / name).unlink(missing_ok=True)
        shutil.rmtree(target / HEAD_FOLDER, ignore_errors=True)
    for file in sorted(file for file in fresh.rglob("*") if file.is_file()):
        place = target / file.relative_to(fresh)
        place.parent.mkdir(parents=True, exist_ok=True)
        file.replace(place)
    (target / UNFINISHED).unlink()
