"""The waists of the house: what an encoder, a reranker, an index and a search result are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

Vectors = npt.NDArray[np.float32]  # (n, dim)
Vector = npt.NDArray[np.float32]  # (dim,)
OnTruncate = Literal["warn", "error", "ignore", "chunk"]
# What models call the prompt of each side.
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors: the waist between torch (training) and numpy (use)."""

    @property
    def dim(self) -> int:
        """The length of every vector."""

    @property
    def fingerprint(self) -> str:
        """A hash of weights and configuration: equal fingerprints give comparable vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in the order given: float32 (n, dim), also for n = 0."""


@runtime_checkable
class Reranker(Protocol):
    """Reads two texts at once and scores how well they fit: slower than an encoder, more exact."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """One score a pair (n,), or one a label (n, labels); larger is better."""


@dataclass(frozen=True)
class Hits:
    """The best rows for each query: similarities, best first; short rows are padded with id -1."""

    ids: npt.NDArray[np.int64]  # (queries, k)
    scores: npt.NDArray[np.float32]  # (queries, k)

    def __post_init__(self) -> None:
        assert self.ids.shape == self.scores.shape, "ids and scores must be of one shape"

    def __len__(self) -> int:
        return len(self.ids)


@runtime_checkable
class Index(Protocol):
    """Finds the vectors that are most like a query: the waist between vectors and what is done with hits."""

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Keep one vector (n, dim) under each id (n,); an id that is there already gets the new one."""

    def remove(self, ids: npt.ArrayLike) -> int:
        """Forget these ids; how many of them were there."""

    def search(self, queries: npt.ArrayLike, k: int, *, allowed: npt.ArrayLike | None = None) -> Hits:
        """The k ids most like each query, among the `allowed` ones where these are given."""

    def flush(self) -> None:
        """Make everything so far last, where the index is of a kind that lasts."""

    def __len__(self) -> int:
        """How many vectors it holds."""


def checked_texts(texts: Any, fix: str = "use encode_one(text), or encode([text])") -> list[str]:
    """The texts as a list, or a sentence that names the first thing among them that is none.

    `fix` says what to do where one text was given instead of several.
    """
    check_holds_texts(texts, fix)
    checked = list(texts)
    for position, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInput(f"text {position} is {_shown(text)}, and a str was expected")
    return checked


def check_holds_texts(texts: Any, fix: str) -> None:
    """Refuse what would give letters, keys or the names of columns in the place of texts."""
    kind = type(texts).__name__
    if isinstance(texts, str | bytes):
        raise InvalidInput(f"a sequence of texts was expected and one {kind} was given; {fix}")
    if hasattr(texts, "columns"):  # as tables of pandas, polars and pyarrow have
        raise InvalidInput(f"a sequence of texts was expected and a {kind} was given; choose a column of it")
    if isinstance(texts, Mapping | set | frozenset) or not isinstance(texts, Iterable):
        raise InvalidInput(f"a sequence of texts was expected and a {kind} was given")


def checked_pairs(pairs: Any) -> list[tuple[str, str]]:
    """The pairs as a list of two texts each, or a sentence that names the first that is none."""
    if isinstance(pairs, str | bytes | Mapping | set | frozenset) or not isinstance(pairs, Iterable):
        raise InvalidInput(f"a sequence of text pairs was expected and a {type(pairs).__name__} was given")
    checked = []
    for position, pair in enumerate(pairs):
        members = list(pair) if isinstance(pair, Sequence) and not isinstance(pair, str | bytes) else []
        if len(members) != 2 or not all(isinstance(text, str) for text in members):
            raise InvalidInput(f"pair {position} is {_shown(pair)}, and two str were expected")
        checked.append((members[0], members[1]))
    return checked


def checked_on_truncate(policy: str) -> OnTruncate:
    """The policy, or a sentence that lists the known ones."""
    if policy not in get_args(OnTruncate):
        known = ", ".join(get_args(OnTruncate))
        raise InvalidInput(f"on_truncate={policy!r} is unknown; choose from {known}")
    return policy  # type: ignore[return-value]


def _shown(value: object) -> str:
    if value is None:
        return "None"
    shown = repr(value)
    return f"the {type(value).__name__} {shown if len(shown) <= 40 else shown[:37] + '...'}"
