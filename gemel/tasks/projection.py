"""Vectors in fewer dimensions: those along which they differ most (PCA), found and applied in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vector, Vectors

_BLOCK_ROWS = 4_096


@dataclass(frozen=True, eq=False)
class Axes:
    """The mean of some rows, the directions in which they differ most, and their share of all variance."""

    mean: Vector  # (dim,)
    directions: Vectors  # (n_axes, dim), the longest axis first
    shares: npt.NDArray[np.float64]  # (n_axes,)

    def project(self, vectors: Vectors) -> Vectors:
        """The rows on these axes (n, n_axes)."""
        places = np.empty((len(vectors), len(self.directions)), np.float32)
        for start in range(0, len(vectors), _BLOCK_ROWS):
            part = slice(start, start + _BLOCK_ROWS)
            with np.errstate(
                all="ignore"
            ):  # BLAS may flag what it computes in the unused lanes of a register
                places[part] = (vectors[part] - self.mean) @ self.directions.T
        return places


def principal_axes(vectors: Vectors, n_axes: int) -> Axes:
    """The n_axes directions of greatest variance, fewer if there are fewer dimensions or rows."""
    dim = vectors.shape[1]
    mean = vectors.mean(axis=0, dtype=np.float64) if len(vectors) else np.zeros(dim)
    if len(vectors) < dim:
        _, lengths, all_directions = np.linalg.svd(vectors - mean, full_matrices=False)
        values = lengths**2
    else:
        values, columns = np.linalg.eigh(_covariance(vectors, mean))
        values, all_directions = values[::-1], columns.T[::-1]
    directions = all_directions[:n_axes]
    # An axis has no direction of its own: its largest part points upwards, so that pictures do not flip.
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
    shares = np.maximum(values[:n_axes], 0) / max(float(values.sum()), np.finfo(np.float64).tiny)
    return Axes(mean.astype(np.float32), directions.astype(np.float32), shares)


def _covariance(vectors: Vectors, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of the outer products of the rows around their mean (dim, dim)."""
    covariance = np.zeros((len(mean), len(mean)))
    for start in range(0, len(vectors), _BLOCK_ROWS):
        centred = vectors[start : start + _BLOCK_ROWS] - mean
        with np.errstate(all="ignore"):
            covariance += centred.T @ centred
    return covariance
