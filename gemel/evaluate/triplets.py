"""Triplets: is the text that belongs to the anchor nearer to it than the one that does not?

The paper's figure for sections of Wikipedia (section 4.4): sentences of one section against one of another,
by Euclidean distance. Texts that are equally near are not told apart, so a tie is not correct.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.bootstrap import interval_of, mean_of, resample
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.similarity import pairwise

PRIMARY = "accuracy_euclidean"
MEASURES = ("euclidean", "cosine", "manhattan", "dot")


def evaluate_triplets(
    encoder: Encoder, triplets: Examples, *, name: str = "triplets", data_hash: str = ""
) -> Scores:
    """The share of anchors that are nearer to the positive than to each of their negatives."""
    if triplets.kind != "triplets" or not len(triplets):
        raise InvalidInput(f"{name} holds {len(triplets):,} {triplets.kind}; expected one triplet or more")
    texts = EncodedTexts(encoder, (text for column in triplets.columns.values() for text in column))
    correct = {measure: _is_correct(triplets, texts, measure) for measure in MEASURES}
    return Scores(
        name=name,
        metrics={f"accuracy_{measure}": float(values.mean()) for measure, values in correct.items()},
        primary=PRIMARY,
        protocol=(
            f"the positive is nearer to the anchor than {_negatives(triplets)}, by Euclidean distance as in "
            "the paper; a tie is not correct; chance is "
            f"{1 / (len(triplets.columns) - 1):.2f}"
        ),
        n_examples=len(triplets),
        data_hash=data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
        interval=interval_of(resample(mean_of(correct["euclidean"]), len(triplets))),
    )


def _is_correct(triplets: Examples, texts: EncodedTexts, measure: str) -> npt.NDArray[np.bool_]:
    anchor, positive, *negatives = (texts.of(column) for column in triplets.columns.values())
    nearness = pairwise(anchor, positive, measure)
    correct = np.ones(len(triplets), np.bool_)
    for negative in negatives:
        correct &= nearness > pairwise(anchor, negative, measure)
    return correct


def _negatives(triplets: Examples) -> str:
    n_negatives = len(triplets.columns) - 2
    return "the negative" if n_negatives == 1 else f"each of {n_negatives} negatives"
