"""Semantic textual similarity: does the similarity of two vectors order pairs as people do?

The paper's seven sets and its protocol (section 4.1): no training on them, the cosine of the two vectors,
Spearman's correlation with the gold scores. Aggregation is "all": the sub-files of a year are one list with
one correlation; "mean" and "wmean", SentEval's other two, are other figures. Beware of averages over models
that saw STSb's training part: it shares pairs with STS12 to STS16 (`contamination` counts them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder, Vectors
from gemel.data.examples import Examples
from gemel.errors import InvalidInput
from gemel.evaluate.bootstrap import N_RESAMPLES, SpearmanOf, interval_of, resample
from gemel.evaluate.correlation import pearson, spearman
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.evaluate.sts_sets import STS_GROUPS, STS_SETS, StsData, StsSet, read_sts
from gemel.similarity import MEASURES, pairwise

__all__ = [
    "AGGREGATIONS",
    "PRIMARY",
    "STS_GROUPS",
    "STS_SETS",
    "StsData",
    "StsSet",
    "evaluate_sts",
    "read_sts",
    "validate_on_sts",
]

PRIMARY = "spearman_cosine"
AGGREGATIONS = {
    "all": 'over all pairs as one list ("all")',
    "mean": 'for each of the {n} sub-files, and their mean ("mean")',
    "wmean": 'for each of the {n} sub-files, and their mean weighted by pairs ("wmean")',
}
_Rows = npt.NDArray[np.int64]


def evaluate_sts(
    encoder: Encoder,
    data: Sequence[StsData] | None = None,
    *,
    aggregation: str = "all",
    n_resamples: int = N_RESAMPLES,
) -> list[Scores]:
    """The figures for each set; every distinct sentence of all of them is encoded once.

    The interval is of Spearman's correlation of cosines, by resampling pairs; `n_resamples=0` leaves it out.
    """
    if aggregation not in AGGREGATIONS:
        raise InvalidInput(f"aggregation is {aggregation!r}; choose from {', '.join(AGGREGATIONS)}")
    sets = read_sts() if data is None else data
    parts = [_parts(each, aggregation) for each in sets]
    sentences = _encoded(encoder, (each.pairs for each in sets))
    return [
        _scores(each, its_parts, aggregation, sentences, encoder, n_resamples)
        for each, its_parts in zip(sets, parts, strict=True)
    ]


def validate_on_sts(pairs: Examples) -> Callable[[Encoder], float]:
    """A function that gives an encoder's Spearman correlation of cosines with the scores of the pairs.

    An encoder that gives all sentences one vector gets 0.0: a training run may pass through that.
    """
    gold = _gold(StsData("validation", pairs))
    if gold.min() == gold.max():
        raise InvalidInput(
            f"validation was given {len(gold):,} pairs with one score; expected pairs that people judged "
            "differently: nothing else has a correlation"
        )

    def validate(encoder: Encoder) -> float:
        similarities = pairwise(*_columns(pairs, _encoded(encoder, [pairs])))
        return 0.0 if similarities.min() == similarities.max() else spearman(similarities, gold)

    return validate


# What one set gives ----------------------------------------------------------------------------------


def _scores(
    data: StsData,
    parts: Sequence[_Rows],
    aggregation: str,
    sentences: EncodedTexts,
    encoder: Encoder,
    n_resamples: int,
) -> Scores:
    gold, (first, second) = _gold(data), _columns(data.pairs, sentences)
    weights = np.array([len(rows) if aggregation == "wmean" else 1 for rows in parts], np.float64)
    combine = partial(np.average, axis=0, weights=weights)
    metrics, interval = {}, None
    for measure in MEASURES:
        similarities = pairwise(first, second, measure)
        _check_spread(data.name, similarities, measure)
        for kind, correlation in (("spearman", spearman), ("pearson", pearson)):
            values = [correlation(similarities[rows], gold[rows]) for rows in parts]
            metrics[f"{kind}_{measure}"] = float(combine(values))
        if f"spearman_{measure}" == PRIMARY and n_resamples:
            drawn = [
                resample(SpearmanOf(similarities[rows], gold[rows]), len(rows), n_resamples, seed)
                for seed, rows in enumerate(parts)
            ]
            interval = interval_of(combine(drawn))
    phrase = AGGREGATIONS[aggregation if len(parts) > 1 else "all"].format(n=len(parts))
    return Scores(
        name=data.name,
        metrics=metrics,
        primary=PRIMARY,
        protocol=f"Spearman of cosines with gold scores, {phrase}{data.protocol and '; '}{data.protocol}",
        n_examples=len(data.pairs),
        data_hash=data.data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
        interval=interval,
    )


def _parts(data: StsData, aggregation: str) -> list[_Rows]:
    """The rows that are one list each."""
    if aggregation == "all" or data.parts is None:
        return [np.arange(len(data.pairs))]
    if not data.parts:
        raise InvalidInput(
            f"{data.name} does not tell its sub-files apart; expected a column `file` or `dataset` for "
            f'aggregation="{aggregation}", or take "all"'
        )
    names, places = np.unique(np.asarray(data.parts), return_inverse=True)
    return [np.flatnonzero(places == place) for place in range(len(names))]


def _encoded(encoder: Encoder, sets: Iterable[Examples]) -> EncodedTexts:
    return EncodedTexts(
        encoder, (text for pairs in sets for column in pairs.columns.values() for text in column)
    )


def _columns(pairs: Examples, sentences: EncodedTexts) -> tuple[Vectors, Vectors]:
    first, second = (sentences.of(column) for column in pairs.columns.values())
    return first, second


def _gold(data: StsData) -> npt.NDArray[np.float32]:
    gold = data.pairs.labels
    assert gold is not None, "scored pairs have scores"
    return gold.astype(np.float32, copy=False)


def _check_spread(name: str, similarities: npt.NDArray[np.float32], measure: str) -> None:
    if len(similarities) == 1:
        raise InvalidInput(f"{name} holds one pair; expected two or more, which can be ordered")
    if similarities.min() == similarities.max():
        raise InvalidInput(
            f"{name}: every pair has the same {measure} similarity, {similarities[0]:g}; "
            "the encoder gives all sentences one vector"
        )
