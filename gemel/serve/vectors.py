"""Vectors as a request wants them: shortened, scaled to unit length."""

from __future__ import annotations

import numpy as np

from gemel.checkpoint import Normalise
from gemel.contracts import Vectors
from gemel.serve.refusals import Refusal
from gemel.similarity import normalise
from gemel.text_encoder import FolderEncoder, TextEncoder


def gives_unit_vectors(encoder: TextEncoder) -> bool:
    """Whether the model itself scales its vectors, as the last thing it does."""
    if not isinstance(encoder, FolderEncoder):
        return False
    tail = encoder.spec.tail
    return bool(tail) and isinstance(tail[-1], Normalise) and encoder.spec.truncate_dim is None


def check_dim(encoder: TextEncoder, dim: int | None) -> None:
    """Refuse vectors longer than the model's."""
    if dim is not None and dim > encoder.dim:
        raise Refusal(
            "invalid",
            f"dimensions={dim} was given, and this model's vectors have {encoder.dim} numbers; ask for fewer",
            parameter="dimensions",
        )


def shortened(encoder: TextEncoder, vectors: Vectors, dim: int | None) -> Vectors:
    """The first `dim` numbers of each vector; where the whole had unit length, the part has it again."""
    if dim is None or dim == encoder.dim:
        return vectors
    cut = np.ascontiguousarray(vectors[:, :dim])
    return normalise(cut) if gives_unit_vectors(encoder) else cut


def unit(encoder: TextEncoder, vectors: Vectors) -> Vectors:
    """The vectors scaled to unit length; those of a model that does so itself stay as they are."""
    is_whole = vectors.shape[1] == encoder.dim
    return vectors if is_whole and gives_unit_vectors(encoder) else normalise(vectors)
