"""Similarities under sentence-transformers' names: larger is more similar."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from gemel import similarity
from gemel.adapters.sentence_transformers.tensors import array, is_tensor, rows, tensor, tensor_or_array
from gemel.errors import InvalidInput

ScoreFunction = Callable[[Any, Any], Any]


def cos_sim(a: Any, b: Any) -> Any:
    """The cosine of every row of a with every row of b (n, m)."""
    return tensor_or_array(similarity.cosine(rows(a), rows(b)))


def dot_score(a: Any, b: Any) -> Any:
    """The inner product of every row of a with every row of b (n, m)."""
    return tensor_or_array(similarity.dot(rows(a), rows(b)))


def euclidean_sim(a: Any, b: Any) -> Any:
    """The negated Euclidean distance of every row of a to every row of b (n, m)."""
    return tensor_or_array(similarity.euclidean(rows(a), rows(b)))


def manhattan_sim(a: Any, b: Any) -> Any:
    """The negated Manhattan distance of every row of a to every row of b (n, m)."""
    return tensor_or_array(similarity.manhattan(rows(a), rows(b)))


def pairwise_cos_sim(a: Any, b: Any) -> Any:
    """The cosine of each row of a with the same row of b (n,)."""
    return _pairwise(a, b, "cosine")


def pairwise_dot_score(a: Any, b: Any) -> Any:
    """The inner product of each row of a with the same row of b (n,)."""
    return _pairwise(a, b, "dot")


def pairwise_euclidean_sim(a: Any, b: Any) -> Any:
    """The negated Euclidean distance of each row of a to the same row of b (n,)."""
    return _pairwise(a, b, "euclidean")


def pairwise_manhattan_sim(a: Any, b: Any) -> Any:
    """The negated Manhattan distance of each row of a to the same row of b (n,)."""
    return _pairwise(a, b, "manhattan")


def pairwise_angle_sim(a: Any, b: Any) -> Any:
    """How alike the angles of each row of a and the same row of b are (n,): |cosine + sine|, where the halves
    of a row are the two parts of complex numbers."""
    left, right = (similarity.normalise(rows(each)) for each in (a, b))
    odd = ((0, 0), (0, left.shape[1] % 2))
    left, right = np.pad(left, odd), np.pad(right, odd)
    (left_first, left_last), (right_first, right_last) = (np.split(each, 2, axis=1) for each in (left, right))
    turned = left_last * right_first - left_first * right_last
    return tensor_or_array(np.abs((left * right).sum(axis=1) + turned.sum(axis=1)))


pytorch_cos_sim = cos_sim  # its name in older programs

FUNCTIONS: dict[str, tuple[ScoreFunction, ScoreFunction]] = {
    "cosine": (cos_sim, pairwise_cos_sim),
    "dot": (dot_score, pairwise_dot_score),
    "euclidean": (euclidean_sim, pairwise_euclidean_sim),
    "manhattan": (manhattan_sim, pairwise_manhattan_sim),
}


class SimilarityFunction(Enum):
    """The measures by name."""

    COSINE = "cosine"
    DOT_PRODUCT = "dot"
    DOT = "dot"  # noqa: PIE796 - an alias there too
    EUCLIDEAN = "euclidean"
    MANHATTAN = "manhattan"

    @staticmethod
    def to_similarity_fn(name: str | SimilarityFunction) -> ScoreFunction:
        """The function that compares every row with every other."""
        return FUNCTIONS[measure_named(name)][0]

    @staticmethod
    def to_similarity_pairwise_fn(name: str | SimilarityFunction) -> ScoreFunction:
        """The function that compares rows at the same place."""
        return FUNCTIONS[measure_named(name)][1]

    @staticmethod
    def possible_values() -> list[str]:
        """The names."""
        return list(FUNCTIONS)


def measure_named(name: str | SimilarityFunction) -> str:
    """The name of a measure, or a sentence that lists the known ones."""
    value = name.value if isinstance(name, Enum) else name
    if value not in FUNCTIONS:
        raise InvalidInput(f"similarity_fn_name is {value!r}; expected one of {', '.join(FUNCTIONS)}")
    return str(value)


def measure_of(function: ScoreFunction) -> str | None:
    """The measure that a function of this module computes, or None for any other function."""
    return next((name for name, functions in FUNCTIONS.items() if function in functions), None)


def normalize_embeddings(embeddings: Any) -> Any:
    """The rows at unit length, in the shape and the kind given; a row of zeros stays zero."""
    given = array(embeddings)
    units = similarity.normalise(rows(given)).reshape(given.shape) if given.size else given
    return tensor(units, "a tensor") if is_tensor(embeddings) else units


def truncate_embeddings(embeddings: Any, truncate_dim: int | None) -> Any:
    """The first numbers of every row."""
    return embeddings[..., :truncate_dim]


def _pairwise(a: Any, b: Any, measure: str) -> Any:
    """Row by row, where one vector is compared with every row of the other side, as there."""
    left, right = rows(a), rows(b)
    if 1 in (len(left), len(right)):
        left, right = (np.ascontiguousarray(each) for each in np.broadcast_arrays(left, right))
    scores = similarity.pairwise(left, right, measure)
    is_one = array(a).ndim == array(b).ndim == 1
    return tensor_or_array(np.asarray(scores[0]) if is_one else scores)
