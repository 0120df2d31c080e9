"""gemel: Sentence-BERT as real software. Importing it imports neither torch nor numpy's heavier friends."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gemel.version import VERSION

if TYPE_CHECKING:
    from gemel.client import Client
    from gemel.contracts import Encoder, Hits, Index, Reranker
    from gemel.data.example_files import read_examples
    from gemel.data.examples import Examples
    from gemel.errors import (
        Busy,
        Damaged,
        GemelError,
        InvalidInput,
        InvalidModel,
        MissingExtra,
        ModelMismatch,
        ModelNotFound,
        Overloaded,
        PoolingWarning,
        ProcessLost,
        ServerError,
        SlowSearchWarning,
        TruncationWarning,
        UnknownWordsWarning,
        WriteFailed,
    )
    from gemel.index import Collection, ExactIndex, HnswIndex, Record, Store
    from gemel.index.copying import copy_collection
    from gemel.index.opening import create_collection, open_collection
    from gemel.loading import (
        load_classifier,
        load_encoder,
        load_pair_classifier,
        load_reranker,
        load_trainable,
    )
    from gemel.publishing import push
    from gemel.similarity import Pairs, cosine, dot, euclidean, manhattan, pairs_above, top_k, top_pairs
    from gemel.tasks.calibrate import calibrate, load_calibration
    from gemel.tasks.cluster import cluster
    from gemel.tasks.clustering import Clustering
    from gemel.tasks.communities import communities
    from gemel.tasks.corpus import Corpus, make_corpus, read_corpus
    from gemel.tasks.dedupe import dedupe
    from gemel.tasks.few_shot import FewShotClassifier
    from gemel.tasks.mine import mine
    from gemel.tasks.negatives import HardNegatives, NegativeRules
    from gemel.tasks.passages import Chunking, add_documents, remove_documents
    from gemel.tasks.rerank import Reranking, rerank
    from gemel.tasks.search import Hit, search
    from gemel.tasks.suggestion import suggest_threshold
    from gemel.tasks.zero_shot import ZeroShotClassifier

__version__ = VERSION

# The map of the library: every public name and the module it lives in.
_HOMES = {
    "Busy": "errors",
    "Chunking": "tasks.passages",
    "Client": "client",
    "Clustering": "tasks.clustering",
    "Collection": "index",
    "Corpus": "tasks.corpus",
    "Damaged": "errors",
    "Encoder": "contracts",
    "ExactIndex": "index",
    "Examples": "data.examples",
    "FewShotClassifier": "tasks.few_shot",
    "GemelError": "errors",
    "HardNegatives": "tasks.negatives",
    "Hit": "tasks.search",
    "Hits": "contracts",
    "HnswIndex": "index",
    "Index": "contracts",
    "InvalidInput": "errors",
    "InvalidModel": "errors",
    "MissingExtra": "errors",
    "ModelMismatch": "errors",
    "ModelNotFound": "errors",
    "NegativeRules": "tasks.negatives",
    "Overloaded": "errors",
    "Pairs": "similarity",
    "PoolingWarning": "errors",
    "ProcessLost": "errors",
    "Record": "index",
    "Reranker": "contracts",
    "Reranking": "tasks.rerank",
    "ServerError": "errors",
    "SlowSearchWarning": "errors",
    "Store": "index",
    "TruncationWarning": "errors",
    "UnknownWordsWarning": "errors",
    "WriteFailed": "errors",
    "ZeroShotClassifier": "tasks.zero_shot",
    "add_documents": "tasks.passages",
    "calibrate": "tasks.calibrate",
    "cluster": "tasks.cluster",
    "communities": "tasks.communities",
    "copy_collection": "index.copying",
    "cosine": "similarity",
    "create_collection": "index.opening",
    "dedupe": "tasks.dedupe",
    "dot": "similarity",
    "euclidean": "similarity",
    "load_calibration": "tasks.calibrate",
    "load_classifier": "loading",
    "load_encoder": "loading",
    "load_pair_classifier": "loading",
    "load_reranker": "loading",
    "load_trainable": "loading",
    "make_corpus": "tasks.corpus",
    "manhattan": "similarity",
    "mine": "tasks.mine",
    "open_collection": "index.opening",
    "pairs_above": "similarity",
    "push": "publishing",
    "read_corpus": "tasks.corpus",
    "read_examples": "data.example_files",
    "remove_documents": "tasks.passages",
    "rerank": "tasks.rerank",
    "search": "tasks.search",
    "suggest_threshold": "tasks.suggestion",
    "top_k": "similarity",
    "top_pairs": "similarity",
}

__all__ = [
    "Busy",
    "Chunking",
    "Client",
    "Clustering",
    "Collection",
    "Corpus",
    "Damaged",
    "Encoder",
    "ExactIndex",
    "Examples",
    "FewShotClassifier",
    "GemelError",
    "HardNegatives",
    "Hit",
    "Hits",
    "HnswIndex",
    "Index",
    "InvalidInput",
    "InvalidModel",
    "MissingExtra",
    "ModelMismatch",
    "ModelNotFound",
    "NegativeRules",
    "Overloaded",
    "Pairs",
    "PoolingWarning",
    "ProcessLost",
    "Record",
    "Reranker",
    "Reranking",
    "ServerError",
    "SlowSearchWarning",
    "Store",
    "TruncationWarning",
    "UnknownWordsWarning",
    "WriteFailed",
    "ZeroShotClassifier",
    "__version__",
    "add_documents",
    "calibrate",
    "cluster",
    "communities",
    "copy_collection",
    "cosine",
    "create_collection",
    "dedupe",
    "dot",
    "euclidean",
    "load_calibration",
    "load_classifier",
    "load_encoder",
    "load_pair_classifier",
    "load_reranker",
    "load_trainable",
    "make_corpus",
    "manhattan",
    "mine",
    "open_collection",
    "pairs_above",
    "push",
    "read_corpus",
    "read_examples",
    "remove_documents",
    "rerank",
    "search",
    "suggest_threshold",
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
