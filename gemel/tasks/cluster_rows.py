"""A clustering as rows of results: one a text, or one a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gemel.data.results import Values, id_type
from gemel.tasks.clustering import Clustering
from gemel.tasks.corpus import Corpus
from gemel.tasks.describe import Description

_DIGITS = 6


def text_columns(corpus: Corpus) -> dict[str, type]:
    """The columns of the rows of texts, and their types."""
    return {"id": id_type(corpus.ids), "text": str, "cluster": int, "similarity": float}


def text_rows(corpus: Corpus, clustering: Clustering) -> Iterator[Values]:
    """Each text with its cluster, -1 for none, and its cosine to the centre of that."""
    similarities = clustering.similarities.tolist()
    for row, cluster in enumerate(clustering.labels.tolist()):
        similarity = None if cluster < 0 else round(similarities[row], _DIGITS)
        yield corpus.ids[row], corpus.texts[row], cluster, similarity


def cluster_columns(corpus: Corpus) -> dict[str, type]:
    """The columns of the rows of clusters, and their types."""
    ids = id_type(corpus.ids)
    return {
        "cluster": int,
        "size": int,
        "key_words": str,
        "similarity": float,
        "typical_id": ids,
        "typical": str,
    }


def cluster_rows(
    corpus: Corpus, clustering: Clustering, descriptions: Sequence[Description]
) -> Iterator[Values]:
    """Each cluster with its key words, the mean cosine of its texts to its centre, and the nearest."""
    similarities = mean_similarities(clustering)
    for each in descriptions:
        typical = each.typical[0]
        yield (
            each.cluster,
            each.size,
            ", ".join(each.key_words),
            similarities[each.cluster],
            corpus.ids[typical],
            corpus.texts[typical],
        )


def cluster_line(corpus: Corpus, similarity: float, description: Description) -> dict[str, Any]:
    """A cluster as an object: as the row above, with all its words and typical texts as lists."""
    return {
        "cluster": description.cluster,
        "size": description.size,
        "key_words": list(description.key_words),
        "similarity": similarity,
        "typical": [{"id": corpus.ids[row], "text": corpus.texts[row]} for row in description.typical],
    }


def mean_similarities(clustering: Clustering) -> list[float]:
    """The mean cosine of the texts of each cluster to its centre."""
    is_member = clustering.labels >= 0
    sums = np.bincount(
        clustering.labels[is_member], clustering.similarities[is_member], minlength=len(clustering)
    )
    means: list[float] = (sums / clustering.sizes).round(_DIGITS).tolist()
    return means
