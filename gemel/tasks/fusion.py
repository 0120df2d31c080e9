"""Several rankings into one: reciprocal-rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

# The paper's constant: large enough that no single first place decides.
RRF_CONSTANT = 60
# Ranks below this are fused only when somebody reads on that far: a page that has been read never changes.
FIRST_DEPTH = 50

Key = TypeVar("Key", bound=Hashable)


def rank_share(rank: int) -> float:
    """What a rank (from 1) adds to a fused score."""
    return 1 / (RRF_CONSTANT + rank)


def fused(rankings: Sequence[Sequence[Key]]) -> list[tuple[Key, float]]:
    """All that stand in any ranking with the sum of their shares, best first; equal ones by best rank."""
    shares: dict[Key, float] = {}
    best: dict[Key, int] = {}
    for ranking in rankings:
        for rank, key in enumerate(ranking, 1):
            shares[key] = shares.get(key, 0.0) + rank_share(rank)
            best[key] = min(rank, best.get(key, rank))
    # Sorting is stable: what is still equal stays in the order of the first ranking.
    return sorted(shares.items(), key=lambda item: (-item[1], best[item[0]]))


def depth_for(n_wanted: int) -> int:
    """How far down rankings have to be known for so many fused places."""
    depth = FIRST_DEPTH
    while depth < n_wanted:
        depth *= 2
    return depth


def fused_pages(rankings: Sequence[Sequence[Key]], n_wanted: int) -> list[tuple[Key, float]]:
    """The first places of the fusion, so that asking for more never changes those before.

    Fusing deeper lists can lift what stands low in both. So the first fifty places come from the first
    fifty of each ranking, the next fifty from the first hundred without those, and so on.
    """
    places: dict[Key, float] = {}
    depth = FIRST_DEPTH
    while True:
        for key, score in fused([ranking[:depth] for ranking in rankings]):
            if len(places) == min(depth, n_wanted):
                break
            places.setdefault(key, score)
        if len(places) >= n_wanted or depth >= max(map(len, rankings), default=0):
            return list(places.items())
        depth *= 2
