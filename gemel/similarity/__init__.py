"""How alike vectors are, and which are most alike: four measures and exact searches over them.

Larger is always more similar. The scores that a search gives are those of `pairwise` to the last bit, for
any size of block and any number of threads.
"""

from __future__ import annotations

from gemel.similarity.measures import MEASURES, cosine, dot, euclidean, manhattan, normalise, pairwise
from gemel.similarity.packed import PackedRows, using_threads
from gemel.similarity.search import Neighbours, Pairs, neighbours, pairs_above, top_k, top_pairs

__all__ = [
    "MEASURES",
    "Neighbours",
    "PackedRows",
    "Pairs",
    "cosine",
    "dot",
    "euclidean",
    "manhattan",
    "neighbours",
    "normalise",
    "pairs_above",
    "pairwise",
    "top_k",
    "top_pairs",
    "using_threads",
]
