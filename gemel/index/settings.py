"""What is decided when a collection is made and never changes, and the making of its folder."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from gemel.data.durable import sync_folder
from gemel.errors import Damaged, GemelError, InvalidInput, ModelMismatch, WriteFailed
from gemel.index.database import Database, lay_out
from gemel.index.lexical import checked_tokenizers
from gemel.index.segment import DType, RowLayout
from gemel.similarity import MEASURES
from gemel.version import VERSION


@dataclass(frozen=True)
class KnownModel:
    """A model by name only, for a collection whose vectors are made elsewhere."""

    fingerprint: str
    dim: int


@dataclass(frozen=True)
class Settings:
    """What all of a collection has in common; `version` is that of the gemel that made it.

    `model` is the name or folder that its encoder was loaded by, where that was said.
    """

    fingerprint: str
    dim: int
    dtype: DType = "float32"
    measure: str = "cosine"
    text_search: tuple[str, ...] = ("word", "trigram")
    version: str = VERSION
    model: str = ""

    def __post_init__(self) -> None:
        if not self.fingerprint:
            raise InvalidInput(f"fingerprint is {self.fingerprint!r}; expected that of an encoder")
        if self.measure not in MEASURES:
            raise InvalidInput(f"measure is {self.measure!r}; expected one of {', '.join(MEASURES)}")
        checked_tokenizers(self.text_search)
        RowLayout(self.dim, self.dtype)

    @property
    def layout(self) -> RowLayout:
        """What all vectors have in common."""
        return RowLayout(self.dim, self.dtype)

    def check_model(self, fingerprint: str, dim: int, name: str) -> None:
        """Refuse the vectors of another model: they would be compared, and the result would mean nothing."""
        if fingerprint != self.fingerprint:
            raise ModelMismatch(
                f"{name} holds vectors of the model {self.fingerprint} and was given {fingerprint}; "
                "use the encoder that it was made with, or make another collection"
            )
        if dim != self.dim:
            raise ModelMismatch(
                f"{name} holds vectors of {self.dim} numbers and the encoder gives {dim}; "
                "use the encoder as it was when the collection was made"
            )


def make_folder(path: Path, settings: Settings) -> None:
    """Make an empty collection, which appears whole or not at all."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidInput(f"{path} exists already; open it, or choose another name")
    draft: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".unfinished", dir=path.parent))
        values = {name: json.dumps(value) for name, value in asdict(settings).items()}
        lay_out(draft, values, settings.text_search)
        _open_to_others(draft)
        sync_folder(draft)
        draft.rename(path)  # also over an empty folder
        sync_folder(path.parent)
    except GemelError:
        raise
    except (OSError, sqlite3.Error) as error:
        raise WriteFailed(f"{path} could not be made ({error}); nothing was changed") from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def read_settings(database: Database) -> Settings:
    """The settings of a collection that is there."""
    with database.reading() as connection:
        found = dict(connection.execute("select name, value from settings"))
    try:
        values = {name: json.loads(value) for name, value in found.items()}
        return Settings(**{**values, "text_search": tuple(values["text_search"])})
    except (ValueError, TypeError, KeyError) as error:
        raise Damaged(
            f"the settings in {database.path} cannot be read ({error}); bring back a copy"
        ) from error


def _open_to_others(folder: Path) -> None:
    """A folder made in private gets the rights that any new one gets."""
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)
