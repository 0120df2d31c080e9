"""gemel for spaCy: `nlp.add_pipe("gemel")` gives documents and spans a sentence vector and similarity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np

from gemel.adapters.opening import EncoderLike, open_encoder
from gemel.contracts import Encoder, Vector
from gemel.errors import MissingExtra
from gemel.similarity import pairwise

try:
    from spacy.language import Language
    from spacy.tokens import Doc, Span
except ImportError:
    raise MissingExtra("the spaCy adapter", "spacy") from None

NAME = "gemel"
KEY = "gemel_vector"  # in a document's user data, which spaCy saves with it
SOURCE_KEY = "gemel_source"  # what made the vector, and of which text


class SentenceVectors:
    """The component: documents are encoded as they pass, spans when they are asked.

    A document that comes from a file or another process has kept its vector and lost the way to it, for
    spaCy leaves hooks behind: passing through the component again gives that back, and encodes nothing.
    """

    def __init__(self, model: EncoderLike = None, **choices: Any) -> None:
        self.encoder: Encoder = open_encoder(model, **choices)

    def __call__(self, doc: Doc) -> Doc:
        """The document with its vector."""
        return self._with_vectors([doc])[0]

    def pipe(self, stream: Iterable[Doc], batch_size: int = 1_024) -> Iterator[Doc]:
        """The documents with their vectors, many encoded at a time."""
        remaining = iter(stream)
        while batch := list(islice(remaining, batch_size)):
            yield from self._with_vectors(batch)

    def vector(self, part: Doc | Span) -> Vector:
        """The vector of a document, as it was kept, or of a span."""
        is_kept = isinstance(part, Doc) and self._has_vector(part)
        found: Vector = np.asarray(part.user_data[KEY]) if is_kept else self.encoder.encode([part.text])[0]
        return found

    def similarity(self, part: Doc | Span, other: Any) -> float:
        """The cosine of two documents or spans."""
        return float(pairwise(self.vector(part)[None], np.asarray(other.vector)[None])[0])

    def _with_vectors(self, docs: list[Doc]) -> list[Doc]:
        new = [doc for doc in docs if not self._has_vector(doc)]
        for doc, vector in zip(new, self.encoder.encode([doc.text for doc in new]), strict=True):
            doc.user_data[KEY] = vector
            doc.user_data[SOURCE_KEY] = self._source(doc)
        for doc in docs:
            for hooks in (doc.user_hooks, doc.user_span_hooks):
                hooks["vector"] = self.vector
                hooks["vector_norm"] = self._length
                hooks["has_vector"] = lambda part: True
                hooks["similarity"] = self.similarity
        return docs

    def _has_vector(self, doc: Doc) -> bool:
        return KEY in doc.user_data and doc.user_data.get(SOURCE_KEY) == self._source(doc)

    def _source(self, doc: Doc) -> str:
        """A part of a document may be made with a copy of its user data, hence the text as well."""
        return f"{self.encoder.fingerprint} {sha256(doc.text.encode()).hexdigest()}"

    def _length(self, part: Doc | Span) -> float:
        return float(np.linalg.norm(self.vector(part)))


@Language.factory(NAME, default_config={"model": None, "precision": None, "threads": None})
def make_component(
    nlp: Language, name: str, model: str | None, precision: str | None, threads: int | None
) -> SentenceVectors:
    """The component by the settings of a pipeline's configuration."""
    return SentenceVectors(model, precision=precision, threads=threads)
