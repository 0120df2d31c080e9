"""Duplicates and paraphrases: does similarity tell the pairs that mean the same from those that do not?"""

from __future__ import annotations

from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.evaluate.bootstrap import interval_of, resample
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.similarity import MEASURES, pairwise
from gemel.tasks.thresholds import Separation, positives_of

PRIMARY = "average_precision_cosine"


def evaluate_duplicates(
    encoder: Encoder,
    pairs: Examples,
    *,
    name: str = "duplicates",
    positive: str = "1",
    data_hash: str = "",
) -> Scores:
    """Average precision, best F1 and best accuracy by every measure; `positive` labels the duplicates."""
    is_positive = positives_of(pairs, positive, name)
    texts = EncodedTexts(encoder, (text for column in pairs.columns.values() for text in column))
    first, second = (texts.of(column) for column in pairs.columns.values())
    metrics: dict[str, float] = {}
    interval = None
    for measure in MEASURES:
        separation = Separation(pairwise(first, second, measure), is_positive)
        f1, accuracy = separation.best_f1(), separation.best_accuracy()
        metrics |= {
            f"average_precision_{measure}": separation.average_precision(),
            f"f1_{measure}": f1.value,
            f"f1_threshold_{measure}": f1.threshold,
            f"accuracy_{measure}": accuracy.value,
            f"accuracy_threshold_{measure}": accuracy.threshold,
        }
        if measure == "cosine":
            interval = interval_of(resample(separation.average_precisions, len(pairs)))
    return Scores(
        name=name,
        metrics=metrics,
        primary=PRIMARY,
        protocol=(
            f"{is_positive.sum():,} of {len(pairs):,} pairs are {positive!r}; average precision over all "
            "thresholds, equal similarities as one; F1 and accuracy at the threshold that is best on these "
            "very pairs, which flatters: on other pairs expect less"
        ),
        n_examples=len(pairs),
        data_hash=data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
        interval=interval,
    )
