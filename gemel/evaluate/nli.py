"""Natural language inference: does a head on two vectors know what follows from what?

The classifier reads each sentence by itself, so its figures are below those of cross-encoders, which read
both at once. Labels are matched by name: heads and files number them in different orders.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.bootstrap import interval_of, mean_of, resample
from gemel.evaluate.classes import Confusion
from gemel.evaluate.scores import Scores, engine_of
from gemel.tasks.classify import PairClassifier

PRIMARY = "accuracy"


def evaluate_nli(
    classifier: PairClassifier, pairs: Examples, *, name: str = "nli", data_hash: str = ""
) -> Scores:
    """Accuracy, its parts by class and macro F1 of a classifier of pairs."""
    truth = _truth(classifier, pairs, name)
    places = {label: place for place, label in enumerate(pairs.label_names)}
    found = classifier.predict(list(zip(*pairs.columns.values(), strict=True)))
    predicted = np.array([places[label] for label in found])
    confusion = Confusion.of(truth, predicted, pairs.label_names)
    metrics = {PRIMARY: confusion.accuracy(), "macro_f1": confusion.macro_f1()}
    for label, recall, f1 in zip(pairs.label_names, confusion.recalls(), confusion.f1(), strict=True):
        if np.isfinite(recall):
            metrics |= {f"accuracy_{label}": float(recall), f"f1_{label}": float(f1)}
    shares = np.bincount(truth) / len(truth)
    return Scores(
        name=name,
        metrics=metrics,
        primary=PRIMARY,
        protocol=(
            f"classes matched by name: {', '.join(pairs.label_names)}; a head on two vectors, each sentence "
            f"read by itself; the commonest class alone would be right in {shares.max():.1%}"
        ),
        n_examples=len(pairs),
        data_hash=data_hash,
        fingerprint=classifier.encoder.fingerprint,
        engine=engine_of(classifier.encoder),
        interval=interval_of(resample(mean_of(truth == predicted), len(pairs))),
    )


def _truth(classifier: PairClassifier, pairs: Examples, name: str) -> npt.NDArray[np.int64]:
    if pairs.kind != "classified pairs" or pairs.labels is None or not len(pairs):
        raise InvalidInput(
            f"{name} holds {len(pairs):,} {pairs.kind}; expected classified pairs, one or more"
        )
    if set(classifier.labels) != set(pairs.label_names):
        raise InvalidInput(
            f"{name} has the labels {', '.join(pairs.label_names)} and the classifier knows "
            f"{', '.join(classifier.labels)}; expected the same names: read the file with label_names="
        )
    return pairs.labels.astype(np.int64)
