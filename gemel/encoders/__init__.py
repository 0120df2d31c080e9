"""Encoders without a transformer behind the same waist, and the names that open them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from gemel import _native
from gemel.checkpoint import is_static_folder
from gemel.checkpoint.infersent import is_infersent_folder
from gemel.encoders.baseline import Baseline
from gemel.encoders.infersent import InferSentEncoder, open_infersent
from gemel.encoders.static import StaticEncoder, open_static
from gemel.encoders.tfidf import TfIdfEncoder
from gemel.encoders.universal import MODULE, UniversalEncoder
from gemel.encoders.word_vectors import installed_glove, open_word_vectors
from gemel.errors import InvalidInput, MissingExtra, ModelNotFound

__all__ = [
    "NAMES",
    "Baseline",
    "FolderKind",
    "InferSentEncoder",
    "NamedEncoder",
    "StaticEncoder",
    "TfIdfEncoder",
    "UniversalEncoder",
    "folder_kind",
    "named_encoder",
    "open_infersent",
    "open_static",
    "open_word_vectors",
]


def _open_glove(file: str | None, threads: int | None, *, without_stop_words: bool) -> Baseline:
    return open_word_vectors(file, without_stop_words=without_stop_words)


def _open_tfidf(file: str | None, threads: int | None) -> Baseline:
    from gemel.data.texts import TextSource

    assert file is not None, "the table says that it needs a file"
    return TfIdfEncoder.fit(record.text for record in TextSource(file, options=()).records())


def _open_universal(file: str | None, threads: int | None) -> Baseline:
    return UniversalEncoder(_native.usable_cores() if threads is None else threads)


def _check_universal() -> None:
    if find_spec(MODULE) is None:
        raise MissingExtra("the Universal Sentence Encoder", "baselines")


@dataclass(frozen=True)
class Kind:
    """What stands behind a name, with or without `:FILE` after it."""

    what: str
    open: Callable[[str | None, int | None], Baseline]
    takes_file: bool
    check_without_file: Callable[[], object] | None  # None: a file must be named


_GLOVE = "GloVe, word2vec or fastText vectors"
NAMES: Mapping[str, Kind] = {
    "glove": Kind(
        f"the mean of the {_GLOVE} of a text's words",
        partial(_open_glove, without_stop_words=False),
        takes_file=True,
        check_without_file=installed_glove,
    ),
    "glove-content": Kind(
        f"the mean of the {_GLOVE} of a text's words, English stop words left out",
        partial(_open_glove, without_stop_words=True),
        takes_file=True,
        check_without_file=installed_glove,
    ),
    "tfidf": Kind(
        "tf-idf, with the words of a file of texts", _open_tfidf, takes_file=True, check_without_file=None
    ),
    "use-multilingual": Kind(
        "the Universal Sentence Encoder, multilingual",
        _open_universal,
        takes_file=False,
        check_without_file=_check_universal,
    ),
}


@dataclass(frozen=True)
class NamedEncoder:
    """An encoder that is asked for by one of NAMES, and is not open yet."""

    name: str
    kind: Kind
    file: str | None

    def check(self) -> None:
        """Refuse what cannot be opened, without opening it."""
        if self.file is None:
            if self.kind.check_without_file is None:
                raise InvalidInput(f"{self.name} is {self.kind.what}: name one, as in {self.name}:texts.txt")
            self.kind.check_without_file()
            return
        if not self.kind.takes_file:
            raise InvalidInput(f"{self.name}:{self.file} was given, and {self.name} takes no file")
        path = Path(self.file).expanduser()
        if not path.exists() and path.parent.suffix != ".zip":
            raise ModelNotFound(f"there is no file {self.file!r} for {self.name} to open")

    def open(self, threads: int | None = None) -> Baseline:
        """The encoder itself, which computes with so many threads at most."""
        self.check()
        return self.kind.open(self.file, threads)


def named_encoder(name: str | Path | None) -> NamedEncoder | None:
    """What a name means if it is one of NAMES, alone or before `:FILE`; a folder of that name goes before."""
    if not isinstance(name, str) or Path(name).is_dir():
        return None
    word, colon, file = name.partition(":")
    return NamedEncoder(word, NAMES[word], file if colon else None) if word in NAMES else None


@dataclass(frozen=True)
class FolderKind:
    """A folder that holds an encoder without a transformer."""

    what: str
    is_one: Callable[[Path], bool]
    open: Callable[[Path], Baseline]


FOLDERS = (
    FolderKind("the static table", is_static_folder, open_static),
    FolderKind("the InferSent encoder", is_infersent_folder, open_infersent),
)


def folder_kind(folder: Path) -> FolderKind | None:
    """What a folder holds if it has no transformer; else None."""
    return next((kind for kind in FOLDERS if kind.is_one(folder)), None)
