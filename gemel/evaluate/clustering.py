"""Clustering: do groups of alike vectors find the classes that people made?

As many groups as there are classes, by a seeded k-means of our own, with the classes unseen until the groups
are made. The figures are of one such partition, the best of several beginnings by its inertia.
"""

from __future__ import annotations

from gemel.contracts import Encoder
from gemel.data.labelled import LabelledTexts
from gemel.errors import InvalidInput
from gemel.evaluate.agreement import Agreement
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.tasks.kmeans import kmeans

PRIMARY = "v_measure"


def evaluate_clustering(
    encoder: Encoder,
    data: LabelledTexts,
    *,
    name: str = "clustering",
    measure: str = "cosine",
    n_starts: int = 5,
    seed: int = 0,
    data_hash: str = "",
) -> Scores:
    """How well k-means on the vectors finds the classes of the texts."""
    n_classes = len(set(data.labels.tolist()))
    if n_classes < 2:
        raise InvalidInput(
            f"{name} has {len(data):,} texts of {n_classes} class(es); expected at least two classes to find"
        )
    vectors = EncodedTexts(encoder, data.texts).of(data.texts)
    partition = kmeans(vectors, n_classes, measure=measure, n_starts=n_starts, seed=seed)
    agreement = Agreement(data.labels, partition.groups)
    return Scores(
        name=name,
        metrics={
            PRIMARY: agreement.v_measure(),
            "homogeneity": agreement.homogeneity(),
            "completeness": agreement.completeness(),
            "adjusted_rand": agreement.adjusted_rand(),
        },
        primary=PRIMARY,
        protocol=(
            f"k-means by {measure} into as many groups as classes, {n_classes}; k-means++, the best of "
            f"{n_starts} beginnings by inertia, seed {seed}"
        ),
        n_examples=len(data),
        data_hash=data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
    )
