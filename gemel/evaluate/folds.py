"""Rows divided into folds that each hold their share of every class."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gemel.errors import InvalidInput

Labels = npt.NDArray[np.int64]


def stratified_folds(labels: Labels, n_folds: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of every row, the same as scikit-learn's StratifiedKFold gives when it shuffles by a seed."""
    if n_folds < 2:
        raise InvalidInput(f"{n_folds} folds were asked for; expected 2 or more")
    _, first_rows, encoded = np.unique(labels, return_index=True, return_inverse=True)
    # The classes take their turns with the generator in the order in which they first come.
    places = np.argsort(np.argsort(first_rows))[encoded]
    counts = np.bincount(places)
    if counts.min() < n_folds:
        name = labels[np.sort(first_rows)[counts.argmin()]]
        raise InvalidInput(
            f"class {name} has {counts.min()} examples; expected at least {n_folds}, one for each fold: "
            "ask for fewer folds or give more examples"
        )
    in_order = np.sort(places)
    shares = np.array(
        [np.bincount(in_order[fold::n_folds], minlength=len(counts)) for fold in range(n_folds)]
    )
    generator = np.random.RandomState(seed)  # the one whose streams are promised never to change
    folds = np.empty(len(labels), np.int64)
    for place in range(len(counts)):
        of_class = np.repeat(np.arange(n_folds), shares[:, place])
        generator.shuffle(of_class)
        folds[places == place] = of_class
    return folds
