"""Where vectors are kept and searched: plain indexes, and collections of sentences that last."""

from gemel.index.collection import Collection
from gemel.index.doctor import Diagnosis, Finding
from gemel.index.exact import ExactIndex
from gemel.index.filters import Filter
from gemel.index.hnsw import HnswIndex, HnswParameters
from gemel.index.records import Added, Found, Record
from gemel.index.settings import KnownModel
from gemel.index.store import CollectionInfo, Plan, Store

__all__ = [
    "Added",
    "Collection",
    "CollectionInfo",
    "Diagnosis",
    "ExactIndex",
    "Filter",
    "Finding",
    "Found",
    "HnswIndex",
    "HnswParameters",
    "KnownModel",
    "Plan",
    "Record",
    "Store",
]
