"""gemel for scikit-learn: `make_pipeline(SentenceVectorizer(), LogisticRegression())`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.opening import EncoderLike, open_encoder
from gemel.contracts import Encoder, Vectors, checked_texts
from gemel.errors import InvalidInput, MissingExtra
from gemel.similarity import normalise as at_unit_length

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError:
    raise MissingExtra("the scikit-learn adapter", "evaluate") from None


class SentenceVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts into vectors; nothing is learnt, so that `fit` only opens the model."""

    def __init__(
        self,
        model: EncoderLike = None,
        *,
        precision: str | None = None,
        threads: int | None = None,
        prompt: str | None = None,
        dim: int | None = None,
        normalise: bool = False,
    ) -> None:
        """`model` is a name, a folder or an open encoder; `prompt` is the name of one of the model's."""
        self.model = model
        self.precision = precision
        self.threads = threads
        self.prompt = prompt
        self.dim = dim
        self.normalise = normalise

    def fit(self, X: Any, y: Any = None) -> SentenceVectorizer:  # noqa: N803 - scikit-learn's name
        """Open the model; texts are looked at, and nothing of them is kept."""
        _texts(X)
        self._open()
        return self

    def transform(self, X: Any) -> Vectors:  # noqa: N803 - scikit-learn's name
        """One vector a text (n, dim)."""
        texts = _texts(X)
        vectors = self._open().encode(texts)
        return at_unit_length(vectors) if self.normalise else vectors

    def _open(self) -> Encoder:
        """The encoder of these settings, opened anew where they have changed."""
        settings = self.get_params()
        if getattr(self, "_opened_with", None) != settings:
            encoder: Any = open_encoder(self.model, precision=self.precision, threads=self.threads)
            encoder = encoder if self.prompt is None else encoder.with_prompt(self.prompt)
            self.encoder_: Encoder = encoder if self.dim is None else encoder.with_dim(self.dim)
            self._opened_with = settings
            self._n_features_out = self.encoder_.dim
        return self.encoder_

    def __sklearn_clone__(self) -> SentenceVectorizer:
        """Another one with the same settings; an encoder is shared and not copied."""
        return type(self)(**self.get_params(deep=False))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _texts(given: Any) -> list[str]:
    """Texts as a list, from a list, a Series, an array, or one column of a frame."""
    if isinstance(given, str):
        raise InvalidInput("one str was given and a sequence of texts was expected; put it into a list")
    shape: Sequence[int] = getattr(given, "shape", ())
    if len(shape) == 2:
        if shape[1] != 1:
            raise InvalidInput(f"{shape[1]} columns were given; expected one column of texts: choose one")
        column: npt.NDArray[Any] = np.asarray(given)[:, 0]
        given = column.tolist()
    return checked_texts(given.tolist() if isinstance(given, np.ndarray) else given)
