"""Where vectors are kept and searched: plain indexes, and collections of sentences that last."""

from gemel.index.collection import Collection, CollectionInfo
from gemel.index.dense import Plan
from gemel.index.exact import ExactIndex
from gemel.index.filters import Filter
from gemel.index.hnsw import HnswIndex, HnswParameters
from gemel.index.records import Added, Found, Record
from gemel.index.settings import KnownModel

__all__ = [
    "Added",
    "Collection",
    "CollectionInfo",
    "ExactIndex",
    "Filter",
    "Found",
    "HnswIndex",
    "HnswParameters",
    "KnownModel",
    "Plan",
    "Record",
]
