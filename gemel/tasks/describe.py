"""What each cluster is about: its key words and its most typical texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from gemel.contracts import checked_texts
from gemel.errors import InvalidInput
from gemel.tasks.clustering import Clustering
from gemel.tasks.words import LITTLE_SAID, are_forms_of_one, split_words, without_particles


@dataclass(frozen=True)
class Description:
    """A cluster in words: those that are frequent in it and rare elsewhere, and rows near its centre."""

    cluster: int
    size: int
    key_words: tuple[str, ...]  # the most telling first
    typical: tuple[int, ...]  # rows with different texts, the nearest to the centre first


def describe(
    clustering: Clustering,
    texts: Sequence[str],
    *,
    n_words: int = 6,
    n_typical: int = 3,
    stop_words: Collection[str] = LITTLE_SAID,
) -> list[Description]:
    """A description of every cluster, in their order; the texts are those behind the rows."""
    checked = checked_texts(texts)
    if len(checked) != len(clustering.labels):
        raise InvalidInput(
            f"{len(checked):,} texts were given for {len(clustering.labels):,} clustered rows; expected "
            "as many: give the texts that were clustered"
        )
    labels = clustering.labels
    counts = [Counter[str]() for _ in range(len(clustering) + 1)]  # the last is of the texts in no cluster
    for label, text in zip(labels.tolist(), checked, strict=True):
        counts[label].update(split_words(text))
    words = key_words(counts, n_words=n_words, stop_words=stop_words)
    rows = np.flatnonzero(labels >= 0)
    rows = rows[np.lexsort((rows, -clustering.similarities[rows], labels[rows]))]
    parts = np.split(rows, np.cumsum(clustering.sizes)[:-1]) if len(clustering) else []
    return [
        Description(number, len(members), words[number], _typical(members.tolist(), checked, n_typical))
        for number, members in enumerate(parts)
    ]


def key_words(
    counts: Sequence[Counter[str]], *, n_words: int, stop_words: Collection[str] = ()
) -> list[tuple[str, ...]]:
    """The words of each class that stand out by class-based tf-idf: how often a word is in the class, times
    log(1 + A / f), for A words in a class on average and f times that this word is in all of them."""
    counts = without_particles(counts)
    totals: Counter[str] = Counter()
    for each in counts:
        totals.update(each)
    n_classes, n_all = sum(1 for each in counts if each), sum(totals.values())
    average = n_all / max(1, n_classes)
    weights = {
        word: float(np.log1p(average / count)) for word, count in totals.items() if word not in stop_words
    }
    found = []
    for each in counts:
        share = sum(each.values()) / max(1, n_all)
        scores = {
            word: count * weights[word]
            for word, count in each.items()
            # A word that is rarer here than elsewhere tells of other classes, however frequent it is.
            if word in weights and count >= share * totals[word]
        }
        found.append(_best_words(scores, n_words))
    return found


def _best_words(scores: dict[str, float], n_words: int) -> tuple[str, ...]:
    """The words with the highest scores; of several forms of a word the best alone."""
    best: list[str] = []
    for word in sorted(scores, key=lambda word: (-scores[word], word)):
        if len(best) == n_words:
            break
        if not any(are_forms_of_one(word, other) for other in best):
            best.append(word)
    return tuple(best)


def _typical(members: list[int], texts: Sequence[str], n_typical: int) -> tuple[int, ...]:
    firsts: dict[str, int] = {}
    for row in members:
        if len(firsts) == n_typical:
            break
        firsts.setdefault(texts[row].strip(), row)
    return tuple(firsts.values())
