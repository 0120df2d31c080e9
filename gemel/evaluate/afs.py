"""Argument Facet Similarity: do two arguments on one topic make the same point?

The paper's two protocols (section 4.3). Ten folds over all pairs, each measured by an encoder trained on the
nine others: arguments stand in several pairs, so folds share them. Cross-topic: trained on all topics but
one, measured on that one. An encoder that is not trained on AFS is measured on the same parts. Figures are
means over the parts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder
from gemel.data.cells import Range
from gemel.data.columns import read_column
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.places import hash_of
from gemel.errors import InvalidInput
from gemel.evaluate.correlation import pearson, spearman
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.similarity import pairwise

PRIMARY = "spearman_cosine"
N_FOLDS = 10
PROTOCOLS = ("ten folds", "cross-topic")
Fit = Callable[[Examples], Encoder]  # trains an encoder on scored pairs

_Rows = npt.NDArray[np.int64]
_KnownBy = tuple[str, str]  # the fingerprint of an encoder and its engine


@dataclass(frozen=True, eq=False)
class AfsData:
    """Pairs of arguments with their similarity, and the topic of each pair."""

    pairs: Examples
    topics: Sequence[str]
    data_hash: str = ""

    def __post_init__(self) -> None:
        if self.pairs.kind != "scored pairs":
            raise InvalidInput(f"arguments were given as {self.pairs.kind}; expected scored pairs")
        if len(self.topics) != len(self.pairs):
            raise InvalidInput(
                f"{len(self.pairs):,} pairs were given {len(self.topics):,} topics; expected one a pair"
            )


def read_afs(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    score_range: Range = (0, 5),
    topic: str = "topic",
) -> AfsData:
    """The pairs of a file with a column for the topic; `columns` names others as `read_examples` has it."""
    pairs = read_examples(path, columns=columns, kind="scored pairs", score_range=score_range)
    topics = read_column(path, topic)
    if topics is None:
        raise InvalidInput(f"{path} has no column {topic!r}; name the column of the topics with topic=")
    return AfsData(pairs, topics, hash_of(Path(path)))


def evaluate_afs(
    encoder: Encoder, data: AfsData, *, protocol: str = "cross-topic", name: str = "AFS", seed: int = 0
) -> Scores:
    """The figures of an encoder that was not trained on the arguments."""
    texts = EncodedTexts(encoder, (text for column in data.pairs.columns.values() for text in column))
    splits = _splits(data, protocol, seed)
    parts = [(part, _correlations(data.pairs.take(rows), texts)) for part, _, rows in splits]
    return _scores(parts, data, [_known_by(encoder)], f"not trained on AFS; {_spoken(protocol, seed)}", name)


def cross_validate_afs(
    fit: Fit, data: AfsData, *, protocol: str = "ten folds", name: str = "AFS", seed: int = 0
) -> Scores:
    """The figures of encoders that `fit` trains, each on all parts but the one that it is measured on."""
    parts, trained = [], []
    for part, training, measured in _splits(data, protocol, seed):
        figures, known_by = _fitted(fit, data.pairs.take(training), data.pairs.take(measured))
        parts.append((part, figures))
        trained.append(known_by)
    return _scores(parts, data, trained, f"trained on the other parts; {_spoken(protocol, seed)}", name)


def _splits(data: AfsData, protocol: str, seed: int) -> Iterator[tuple[str, _Rows, _Rows]]:
    """The name of each part, the rows to train on and the rows to measure."""
    if protocol not in PROTOCOLS:
        raise InvalidInput(f"protocol is {protocol!r}; expected one of {', '.join(PROTOCOLS)}")
    rows = np.arange(len(data.pairs))
    if protocol == "ten folds":
        if len(rows) < 2 * N_FOLDS:
            raise InvalidInput(
                f"{len(rows)} pairs were given; expected at least 2 for each of {N_FOLDS} folds"
            )
        folds = np.array_split(np.random.default_rng(seed).permutation(len(rows)), N_FOLDS)
        parts = {f"fold_{number}": np.sort(fold) for number, fold in enumerate(folds, 1)}
    else:
        topics = np.asarray(data.topics)
        parts = {str(topic): np.flatnonzero(topics == topic) for topic in np.unique(topics)}
        if len(parts) < 2:
            raise InvalidInput(f"the pairs have the topic {', '.join(parts)}; expected two topics or more")
    for part, measured in parts.items():
        yield part, np.setdiff1d(rows, measured), measured


def _fitted(fit: Fit, training: Examples, measured: Examples) -> tuple[dict[str, float], _KnownBy]:
    """The figures of an encoder that ends here: the next one is trained without it in memory."""
    encoder = fit(training)
    texts = EncodedTexts(encoder, (text for column in measured.columns.values() for text in column))
    return _correlations(measured, texts), _known_by(encoder)


def _known_by(encoder: Encoder) -> _KnownBy:
    return encoder.fingerprint, engine_of(encoder)


def _correlations(pairs: Examples, texts: EncodedTexts) -> dict[str, float]:
    first, second = pairs.columns.values()
    similarities = pairwise(texts.of(first), texts.of(second))
    assert pairs.labels is not None, "scored pairs have scores"
    return {
        "spearman_cosine": spearman(similarities, pairs.labels),
        "pearson_cosine": pearson(similarities, pairs.labels),
    }


def _scores(
    parts: Sequence[tuple[str, dict[str, float]]],
    data: AfsData,
    measured: Sequence[_KnownBy],
    protocol: str,
    name: str,
) -> Scores:
    metrics = {metric: float(np.mean([figures[metric] for _, figures in parts])) for metric in parts[0][1]}
    metrics |= {f"{metric}_{part}": value for part, figures in parts for metric, value in figures.items()}
    prints = [fingerprint for fingerprint, _ in measured]
    return Scores(
        name=name,
        metrics=metrics,
        primary=PRIMARY,
        protocol=protocol,
        n_examples=len(data.pairs),
        data_hash=data.data_hash,
        fingerprint=prints[0] if len(prints) == 1 else hashlib.sha256("".join(prints).encode()).hexdigest(),
        engine=measured[0][1],
    )


def _spoken(protocol: str, seed: int) -> str:
    parts = "each topic by itself"
    if protocol == "ten folds":
        parts = f"{N_FOLDS} folds of all pairs (seed {seed})"
    return f"correlations of cosines, the mean over {parts}"
