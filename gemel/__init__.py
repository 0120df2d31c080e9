"""gemel: Sentence-BERT as real software. Importing it imports neither torch nor numpy's heavier friends."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemel.version import VERSION

if TYPE_CHECKING:
    from gemel.client import Client
    from gemel.contracts import Encoder, Hits, Reranker
    from gemel.errors import (
        GemelError,
        InvalidInput,
        InvalidModel,
        MissingExtra,
        ModelMismatch,
        ModelNotFound,
        Overloaded,
        ServerError,
        TruncationWarning,
        UnknownWordsWarning,
        WriteFailed,
    )
    from gemel.loading import load_encoder, load_pair_classifier, load_reranker, load_trainable
    from gemel.similarity import Pairs, cosine, dot, euclidean, manhattan, top_k, top_pairs
    from gemel.tasks.cluster import communities

__version__ = VERSION

# The map of the library: every public name and the module it lives in.
_HOMES = {
    "Client": "client",
    "Encoder": "contracts",
    "GemelError": "errors",
    "Hits": "contracts",
    "InvalidInput": "errors",
    "InvalidModel": "errors",
    "MissingExtra": "errors",
    "ModelMismatch": "errors",
    "ModelNotFound": "errors",
    "Overloaded": "errors",
    "Pairs": "similarity",
    "Reranker": "contracts",
    "ServerError": "errors",
    "TruncationWarning": "errors",
    "UnknownWordsWarning": "errors",
    "WriteFailed": "errors",
    "communities": "tasks.cluster",
    "cosine": "similarity",
    "dot": "similarity",
    "euclidean": "similarity",
    "load_encoder": "loading",
    "load_pair_classifier": "loading",
    "load_reranker": "loading",
    "load_trainable": "loading",
    "manhattan": "similarity",
    "top_k": "similarity",
    "top_pairs": "similarity",
}

__all__ = [
    "Client",
    "Encoder",
    "GemelError",
    "Hits",
    "InvalidInput",
    "InvalidModel",
    "MissingExtra",
    "ModelMismatch",
    "ModelNotFound",
    "Overloaded",
    "Pairs",
    "Reranker",
    "ServerError",
    "TruncationWarning",
    "UnknownWordsWarning",
    "WriteFailed",
    "__version__",
    "communities",
    "cosine",
    "dot",
    "euclidean",
    "load_encoder",
    "load_pair_classifier",
    "load_reranker",
    "load_trainable",
    "manhattan",
    "top_k",
    "top_pairs",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gemel' has no attribute {name!r}")
    value = getattr(import_module(f"gemel.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
