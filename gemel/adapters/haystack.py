"""gemel for Haystack: embedders of texts and of documents, and a ranker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemel.adapters.opening import for_documents, for_queries, open_encoder, open_reranker
from gemel.contracts import Encoder, Reranker
from gemel.errors import InvalidInput, MissingExtra
from gemel.similarity import normalise
from gemel.tasks.rerank import rerank

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError:
    raise MissingExtra("the Haystack adapter", "haystack") from None


# What a component is written with; the model that is open is not among it.
SETTINGS = (
    "model",
    "prefix",
    "suffix",
    "normalize_embeddings",
    "truncate_dim",
    "precision",
    "threads",
    "meta_fields_to_embed",
    "embedding_separator",
)


class _Embedder:
    """What both embedders are made of; models are opened by `warm_up`, or when they are first needed."""

    def __init__(
        self,
        model: str | None = None,
        prefix: str = "",
        suffix: str = "",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        precision: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.model = None if model is None else str(model)
        self.prefix = prefix
        self.suffix = suffix
        self.normalize_embeddings = normalize_embeddings
        self.truncate_dim = truncate_dim
        self.precision = precision
        self.threads = threads
        self._encoder: Encoder | None = None

    def warm_up(self) -> None:
        """Open the model."""
        self._opened()

    def to_dict(self) -> dict[str, Any]:
        """The settings, without the model."""
        made: dict[str, Any] = default_to_dict(self, **self._settings())
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """The component of these settings."""
        return default_from_dict(cls, data)

    def _settings(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in SETTINGS}

    def _opened(self) -> Encoder:
        encoder: Any = self._encoder
        if encoder is None:
            encoder = open_encoder(self.model, precision=self.precision, threads=self.threads)
            encoder = encoder if self.truncate_dim is None else encoder.with_dim(self.truncate_dim)
            self._encoder = encoder
        opened: Encoder = encoder
        return opened

    def _embedded(self, encoder: Encoder, texts: list[str]) -> list[list[float]]:
        vectors = encoder.encode([f"{self.prefix}{text}{self.suffix}" for text in texts])
        found: list[list[float]] = (normalise(vectors) if self.normalize_embeddings else vectors).tolist()
        return found


@component
class GemelTextEmbedder(_Embedder):
    """The vector of a query, with the prompt that the model has for queries."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """The vector of one text."""
        _check(text, str, "embed documents with GemelDocumentEmbedder")
        return {"embedding": self._embedded(for_queries(self._opened()), [text])[0]}


@component
class GemelDocumentEmbedder(_Embedder):
    """Documents with their vectors, with the prompt that the model has for documents."""

    def __init__(
        self,
        model: str | None = None,
        prefix: str = "",
        suffix: str = "",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        precision: str | None = None,
        threads: int | None = None,
        meta_fields_to_embed: list[str] | None = None,
        embedding_separator: str = "\n",
    ) -> None:
        # `component` makes the class anew, so that `super()` would name another.
        _Embedder.__init__(
            self, model, prefix, suffix, normalize_embeddings, truncate_dim, precision, threads
        )
        self.meta_fields_to_embed = meta_fields_to_embed or []
        self.embedding_separator = embedding_separator

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """The same documents with their vectors; those given are left as they are."""
        _check(documents, list, "embed a query with GemelTextEmbedder")
        texts = [_text_of(each, self.meta_fields_to_embed, self.embedding_separator) for each in documents]
        vectors = self._embedded(for_documents(self._opened()), texts)
        return {
            "documents": [replace(each, embedding=row) for each, row in zip(documents, vectors, strict=True)]
        }


@component
class GemelRanker:
    """Documents in a cross-encoder's order for a query."""

    def __init__(
        self,
        model: str,
        top_k: int = 10,
        score_threshold: float | None = None,
        precision: str | None = None,
        threads: int | None = None,
        meta_fields_to_embed: list[str] | None = None,
        embedding_separator: str = "\n",
    ) -> None:
        if top_k < 1:
            raise InvalidInput(f"top_k is {top_k!r}; expected at least 1")
        self.model = str(model)
        self.top_k = top_k
        self.score_threshold = score_threshold
        self.precision = precision
        self.threads = threads
        self.meta_fields_to_embed = meta_fields_to_embed or []
        self.embedding_separator = embedding_separator
        self._reranker: Reranker | None = None

    def warm_up(self) -> None:
        """Open the model."""
        self._opened()

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        score_threshold: float | None = None,
    ) -> dict[str, list[Document]]:
        """The best documents with their scores, best first."""
        if not documents:
            return {"documents": []}
        texts = [_text_of(each, self.meta_fields_to_embed, self.embedding_separator) for each in documents]
        ranked = rerank(self._opened(), query, texts, top_k or self.top_k)
        floor = self.score_threshold if score_threshold is None else score_threshold
        kept = [each for each in ranked if floor is None or each.score >= floor]
        return {"documents": [replace(documents[each.row], score=each.score) for each in kept]}

    def to_dict(self) -> dict[str, Any]:
        """The settings, without the model."""
        names = (*SETTINGS, "top_k", "score_threshold")
        settings = {name: value for name, value in vars(self).items() if name in names}
        made: dict[str, Any] = default_to_dict(self, **settings)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GemelRanker:
        """The component of these settings."""
        made: GemelRanker = default_from_dict(cls, data)
        return made

    def _opened(self) -> Reranker:
        if self._reranker is None:
            self._reranker = open_reranker(self.model, precision=self.precision, threads=self.threads)
        return self._reranker


def _check(given: Any, expected: type, fix: str) -> None:
    """Refuse what is of another kind, which a pipeline finds out only where its parts are connected."""
    if not isinstance(given, expected):
        raise InvalidInput(
            f"a {type(given).__name__} was given and one {expected.__name__} was expected; {fix}"
        )


def _text_of(document: Document, fields: list[str], separator: str) -> str:
    """The content of a document behind what it is told to take from its metadata."""
    meta = [str(document.meta[name]) for name in fields if document.meta.get(name) is not None]
    return separator.join([*meta, document.content or ""])
