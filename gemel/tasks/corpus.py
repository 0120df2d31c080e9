"""A corpus: texts with their ids and vectors, which mining, clustering and deduplication work on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gemel.contracts import Encoder, Vectors, checked_texts
from gemel.data.stored_vectors import StoredVectors, open_vectors
from gemel.data.texts import Id, TextSource
from gemel.errors import InvalidInput, ModelMismatch
from gemel.similarity import pairwise
from gemel.similarity.packed import OnProgress

WINDOW_TEXTS = 8_192
SAMPLED_TEXTS = 15  # encoded again, to see whether stored vectors are theirs
LEAST_AGREEMENT = (
    0.9  # the median cosine of both; int8 against float32 has 0.99, other models or rows hardly 0.5
)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts, the id of each and its vector (n, dim), which may be a memory map."""

    texts: list[str]
    ids: list[Id]
    vectors: Vectors
    name: str = "the corpus"
    fingerprint: str = ""  # of the encoder behind the vectors; empty where nobody knows

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or not len(self.texts) == len(self.ids) == len(self.vectors):
            raise InvalidInput(
                f"{self.name} has {len(self.texts):,} texts, {len(self.ids):,} ids and vectors of shape "
                f"{self.vectors.shape}; expected an id and a row of a matrix for each text"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def check_ids_differ(self) -> None:
        """Refuse an id that two rows have, where results have to say which row is meant."""
        first: dict[Id, int] = {}
        for row, id_ in enumerate(self.ids):
            if first.setdefault(id_, row) != row:
                raise InvalidInput(
                    f"rows {first[id_]:,} and {row:,} of {self.name} both have the id {id_!r}; expected ids "
                    "that differ: name another column, or leave out --id-column"
                )


def make_corpus(
    texts: Sequence[str],
    encoder: Encoder,
    *,
    ids: Sequence[Id] | None = None,
    name: str = "the corpus",
    on_progress: OnProgress | None = None,
) -> Corpus:
    """The corpus of texts in memory, which are encoded here; without ids, these are the row numbers."""
    checked = checked_texts(texts)
    vectors = encode_distinct(encoder, checked, on_progress)
    given: list[Id] = list(range(len(checked)) if ids is None else ids)
    return Corpus(checked, given, vectors, name, encoder.fingerprint)


def read_corpus(
    source: TextSource,
    encoder: Encoder | None = None,
    *,
    vectors: str | os.PathLike[str] | None = None,
    on_progress: OnProgress | None = None,
) -> Corpus:
    """The corpus of a file: encoded here, or with the vectors that `gemel encode` has made of it before."""
    if encoder is None and vectors is None:
        raise InvalidInput(f"{source.name} has no vectors yet; give an encoder, or a file of its vectors")
    ids: list[Id] = []
    texts: list[str] = []
    for record in source.records():
        ids.append(record.id)
        texts.append(record.text)
    if not texts:
        raise InvalidInput(f"{source.name} holds no texts; expected at least one")
    fingerprint = "" if encoder is None else encoder.fingerprint
    if vectors is None:
        assert encoder is not None
        return Corpus(texts, ids, encode_distinct(encoder, texts, on_progress), source.name, fingerprint)
    stored = open_vectors(vectors)
    _check_belongs(stored, ids, source, os.fspath(vectors))
    if encoder is not None and stored.vectors.shape[1] != encoder.dim:
        raise ModelMismatch(
            f"{os.fspath(vectors)} holds vectors of {stored.vectors.shape[1]} dimensions, and those of this "
            f"model have {encoder.dim}; name the model that made them, or encode {source.name} again"
        )
    if encoder is not None:
        _check_made_by(encoder, stored.vectors, texts, source, os.fspath(vectors))
    return Corpus(texts, ids, stored.vectors, source.name, fingerprint)


def encode_distinct(encoder: Encoder, texts: Sequence[str], on_progress: OnProgress | None = None) -> Vectors:
    """One vector a text (n, dim), in windows; a text that occurs again is not encoded again."""
    firsts: dict[str, int] = {}
    first_rows = np.fromiter((firsts.setdefault(text, row) for row, text in enumerate(texts)), np.int64)
    fresh = np.flatnonzero(first_rows == np.arange(len(texts)))
    vectors = np.empty((len(texts), encoder.dim), np.float32)
    for start in range(0, len(fresh), WINDOW_TEXTS):
        rows = fresh[start : start + WINDOW_TEXTS]
        if on_progress is not None:
            on_progress(start, len(fresh))
        try:
            vectors[rows] = encoder.encode([texts[row] for row in rows])
        except InvalidInput as error:
            raise InvalidInput(f"{error} (text 0 is row {rows[0]} here, repeated texts left out)") from None
    if on_progress is not None:
        on_progress(len(fresh), len(fresh))
    repeated = np.flatnonzero(first_rows != np.arange(len(texts)))
    for start in range(0, len(repeated), WINDOW_TEXTS):
        rows = repeated[start : start + WINDOW_TEXTS]
        vectors[rows] = vectors[first_rows[rows]]
    return vectors


def _check_belongs(stored: StoredVectors, ids: Sequence[Id], source: TextSource, vectors: str) -> None:
    """Refuse vectors of another file: another number of rows, or other ids."""
    if len(stored.vectors) != len(ids):
        raise InvalidInput(
            f"{vectors} holds {len(stored.vectors):,} vectors and {source.name} {len(ids):,} texts; expected "
            f"as many: encode this very file with gemel encode"
        )
    for row, (theirs, ours) in enumerate(zip(stored.ids or (), ids, strict=False)):
        # A number in JSON lines is a text in CSV, and the same id.
        if str(theirs) != str(ours):
            raise InvalidInput(
                f"row {row:,} has the id {theirs!r} in {vectors} and {ours!r} in {source.name}; expected the "
                "same ids in the same order: name the id column, or encode this very file with gemel encode"
            )


def _check_made_by(
    encoder: Encoder, stored: Vectors, texts: Sequence[str], source: TextSource, vectors: str
) -> None:
    """Refuse vectors that this model does not make of these texts, by a sample of them."""
    rows = np.unique(np.linspace(0, len(texts) - 1, SAMPLED_TEXTS).round().astype(np.int64))
    theirs = np.asarray(stored[rows], np.float32)
    rows, theirs = rows[theirs.any(axis=1)], theirs[theirs.any(axis=1)]
    if not len(rows) or not np.isfinite(theirs).all():  # which whoever compares them tells by row
        return
    agreement = float(np.median(pairwise(encoder.encode([texts[row] for row in rows]), theirs)))
    if agreement < LEAST_AGREEMENT:
        raise ModelMismatch(
            f"{vectors} holds other vectors than this model makes of {source.name} (a median cosine of "
            f"{agreement:.2f} in a sample); name the model that made them, or encode {source.name} again"
        )
