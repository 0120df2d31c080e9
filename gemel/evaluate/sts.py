"""Semantic textual similarity: does the similarity of two vectors order pairs as people do?

The paper's seven sets and its protocol (section 4.1): no training on them, the cosine of the two vectors,
Spearman's correlation with the gold scores. Aggregation is "all": the sub-files of a year are one list with
one correlation; the mean over the sub-files would be another figure. Beware of averages over models that saw
STSb's training part: it shares pairs with STS12 to STS16.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemel.contracts import Encoder, Vectors
from gemel.data.examples import Examples, read_examples
from gemel.data.places import data_folder, find_file, hash_of
from gemel.errors import InvalidInput
from gemel.evaluate.correlation import pearson, spearman
from gemel.evaluate.scores import Scores, engine_of
from gemel.similarity import MEASURES, pairwise

PRIMARY = "spearman_cosine"


@dataclass(frozen=True)
class StsSet:
    """One of the sets: where its file is in the data folder, and what it must hold."""

    name: str
    file: str
    n_pairs: int
    protocol: str
    score_range: tuple[float, float] = (0, 5)


_ALL = 'Spearman over all pairs of the year ("all"), no training on the set'
STS_SETS = (
    StsSet("STS12", "sts12/test.tsv", 3_108, f"{_ALL}; 5 sub-files"),
    StsSet("STS13", "sts13/test.tsv", 1_500, f"{_ALL}; 3 sub-files, without SMT as in SentEval"),
    StsSet("STS14", "sts14/test.tsv", 3_750, f"{_ALL}; 6 sub-files"),
    StsSet("STS15", "sts15/test.tsv", 3_000, f"{_ALL}; 5 sub-files"),
    StsSet("STS16", "sts16/test.tsv", 1_186, f"{_ALL}; 5 sub-files"),
    StsSet("STSb", "stsb/test.tsv", 1_379, "Spearman over the test split of the STS benchmark"),
    StsSet("SICK-R", "sick/test.tsv", 4_927, "Spearman over the test split of SICK (not all 9,927)", (1, 5)),
)


@dataclass(frozen=True, eq=False)
class StsData:
    """A set that has been read."""

    name: str
    pairs: Examples
    protocol: str = "Spearman over all pairs"
    data_hash: str = ""

    def __post_init__(self) -> None:
        if self.pairs.kind != "scored pairs":
            raise InvalidInput(f"{self.name} holds {self.pairs.kind}; expected scored pairs")


def read_sts(data: str | os.PathLike[str] | None = None, sets: Iterable[StsSet] = STS_SETS) -> list[StsData]:
    """The sets, read from the data folder and found to be whole."""
    folder = data_folder(data)
    return [_read_set(folder, each) for each in sets]


def evaluate_sts(encoder: Encoder, data: Sequence[StsData] | None = None) -> list[Scores]:
    """The figures for each set; every distinct sentence of all of them is encoded once."""
    sets = read_sts() if data is None else data
    sentences = _distinct(each.pairs for each in sets)
    vectors = encoder.encode(list(sentences))
    return [
        Scores(
            name=each.name,
            metrics=_correlations(each, sentences, vectors),
            primary=PRIMARY,
            protocol=each.protocol,
            n_examples=len(each.pairs),
            data_hash=each.data_hash,
            fingerprint=encoder.fingerprint,
            engine=engine_of(encoder),
        )
        for each in sets
    ]


def validate_on_sts(pairs: Examples) -> Callable[[Encoder], float]:
    """A function that gives an encoder's Spearman correlation of cosines with the scores of the pairs."""
    data = StsData("validation", pairs)
    sentences = _distinct([pairs])

    def validate(encoder: Encoder) -> float:
        return _correlations(data, sentences, encoder.encode(list(sentences)), ["cosine"])[PRIMARY]

    return validate


def _read_set(folder: Path, each: StsSet) -> StsData:
    path = find_file(folder, each.file, each.name)
    roles = {"first": "sentence1", "second": "sentence2", "score": "score"}
    pairs = read_examples(path, columns=roles, kind="scored pairs", score_range=each.score_range)
    if len(pairs) != each.n_pairs:
        raise InvalidInput(
            f"{path} holds {len(pairs):,} pairs; expected the {each.n_pairs:,} of {each.name}: "
            "figures on other pairs cannot be compared with published ones"
        )
    return StsData(each.name, pairs, each.protocol, hash_of(path))


def _distinct(sets: Iterable[Examples]) -> dict[str, int]:
    """Every sentence once, and its row."""
    texts = (text for pairs in sets for column in pairs.columns.values() for text in column)
    return {text: row for row, text in enumerate(dict.fromkeys(texts))}


def _correlations(
    data: StsData, sentences: dict[str, int], vectors: Vectors, measures: Iterable[str] = MEASURES
) -> dict[str, float]:
    first, second = (vectors[[sentences[text] for text in column]] for column in data.pairs.columns.values())
    gold = data.pairs.labels
    assert gold is not None, "scored pairs have scores"
    metrics = {}
    for measure in measures:
        similarities = pairwise(first, second, measure)
        if similarities.min() == similarities.max():
            raise InvalidInput(
                f"{data.name}: every pair has the same {measure} similarity, {similarities[0]:g}; "
                "the encoder gives all sentences one vector"
            )
        metrics[f"spearman_{measure}"] = spearman(similarities, gold)
        metrics[f"pearson_{measure}"] = pearson(similarities, gold)
    return metrics
