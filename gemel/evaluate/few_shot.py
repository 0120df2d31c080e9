"""How well an encoder's vectors tell classes apart when only a few examples of each are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gemel.contracts import Encoder
from gemel.data.labelled import LabelledTexts
from gemel.errors import InvalidInput
from gemel.evaluate.encoded import EncodedTexts
from gemel.evaluate.scores import Scores, engine_of
from gemel.tasks.logistic import Design, Labels, fit_logistic

SHOTS = (8, 16, 64)
COST = 1.0  # scikit-learn's default, as there is nothing to choose it by


def few_shot(
    encoder: Encoder,
    train: LabelledTexts,
    test: LabelledTexts,
    shots: Sequence[int] = SHOTS,
    seeds: Sequence[int] = range(10),
    *,
    name: str = "few-shot",
    data_hash: str = "",
) -> Scores:
    """Accuracy on the test part after so many examples a class, mean and deviation over the seeds.

    The first of `shots` is the primary metric. A class that has fewer examples gives all that it has. What a
    seed draws for fewer shots is among what it draws for more; what no seed draws is not encoded.
    """
    _check(train, test, shots, seeds)
    draws = {seed: _draw(train.labels, max(shots), seed) for seed in seeds}
    drawn = np.unique(np.concatenate([rows for by_class in draws.values() for rows in by_class]))
    texts = EncodedTexts(encoder, [*(train.texts[row] for row in drawn), *test.texts])
    test_vectors = texts.of(test.texts)
    metrics = {}
    for n_shots in shots:
        accuracies = []
        for by_class in draws.values():
            rows = np.concatenate([of_class[:n_shots] for of_class in by_class])
            classes, labels = np.unique(train.labels[rows], return_inverse=True)
            design = Design(texts.of([train.texts[row] for row in rows]))
            predictions = fit_logistic(design, labels, [COST]).classifier(0).predict(test_vectors)
            accuracies.append(float((classes[predictions] == test.labels).mean()))
        metrics[f"accuracy_{n_shots}"] = float(np.mean(accuracies))
        metrics[f"accuracy_{n_shots}_std"] = float(np.std(accuracies))
    return Scores(
        name=name,
        metrics=metrics,
        primary=f"accuracy_{shots[0]}",
        protocol=_protocol(train.labels, shots, seeds),
        n_examples=len(test),
        data_hash=data_hash,
        fingerprint=encoder.fingerprint,
        engine=engine_of(encoder),
    )


def _draw(labels: Labels, n_shots: int, seed: int) -> list[npt.NDArray[np.int64]]:
    """Rows of each class that training has, in the order of the seed."""
    generator = np.random.default_rng(seed)
    return [generator.permutation(np.flatnonzero(labels == each))[:n_shots] for each in np.unique(labels)]


def _protocol(labels: Labels, shots: Sequence[int], seeds: Sequence[int]) -> str:
    counts = np.bincount(labels)
    n_short = int(((counts > 0) & (counts < max(shots))).sum())
    words = [
        f"logistic regression on frozen vectors, L2, C = {COST:g}, on {', '.join(map(str, shots))} examples "
        f"of each of {(counts > 0).sum()} classes; accuracy on the test part, mean of {len(seeds)} seeds"
    ]
    if n_short:
        words.append(f"{n_short} classes have fewer than {max(shots)} and gave all")
    return "; ".join(words)


def _check(train: LabelledTexts, test: LabelledTexts, shots: Sequence[int], seeds: Sequence[int]) -> None:
    for part, its_name in ((train, "training"), (test, "test")):
        if not len(part):
            raise InvalidInput(f"the {its_name} part is empty; expected some labelled texts")
    if train.label_names != test.label_names:
        raise InvalidInput(
            "the training and the test part have other classes; "
            "read the test part with label_names= of the training part"
        )
    if len(np.unique(train.labels)) < 2:
        name = train.label_names[train.labels[0]]
        raise InvalidInput(f"the training part has one class, {name!r}; expected two or more")
    if not len(shots) or min(shots) < 1:
        raise InvalidInput(
            f"shots is {list(shots)}; expected numbers of examples a class, such as (8, 16, 64)"
        )
    if not len(seeds):
        raise InvalidInput("seeds is empty; expected one or more, such as range(10)")
    if len(set(seeds)) < len(seeds):
        raise InvalidInput(
            f"seeds is {list(seeds)}; expected each once: the same seed draws the same examples"
        )
