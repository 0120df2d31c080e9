"""Models for mteb: `mteb.evaluate(MtebEncoder("all-MiniLM-L6-v2"), tasks)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.opening import EncoderLike, RerankerLike, open_encoder, open_reranker
from gemel.contracts import Encoder, Vectors
from gemel.errors import MissingExtra

try:
    from mteb.models.abs_encoder import get_prompt_name
    from mteb.models.model_meta import ModelMeta, ScoringFunction
except ImportError:
    raise MissingExtra("the mteb adapter", "mteb") from None

from gemel import similarity

Batches = Iterable[Mapping[str, Any]]  # of which "text" holds texts

# What mteb wants to be told of every model, and a folder does not say.
UNKNOWN = (
    "release_date",
    "languages",
    "n_parameters",
    "memory_usage_mb",
    "license",
    "open_weights",
    "public_training_code",
    "public_training_data",
    "training_datasets",
)


class MtebEncoder:
    """A sentence encoder as mteb runs it; in float32, so that results are those of the published model."""

    def __init__(
        self,
        model_name: EncoderLike = None,
        revision: str | None = None,
        *,
        device: str | None = None,
        precision: str | None = None,
        **choices: Any,
    ) -> None:
        """The other choices are those of `load_encoder`; `model_name` may be an encoder that is open."""
        if not isinstance(model_name, Encoder):
            choices |= {"revision": revision, "device": device, "precision": precision or "float32"}
        self.encoder = open_encoder(model_name, **choices)
        spec: Any = getattr(self.encoder, "spec", None)
        self._prompts: Mapping[str, str] = getattr(spec, "prompts", {})
        self._measure: str = getattr(spec, "similarity", "cosine")
        self.mteb_model_meta = _meta(
            model_name,
            revision or self.encoder.fingerprint,
            loader=type(self),
            max_tokens=getattr(spec, "max_tokens", None),
            embed_dim=self.encoder.dim,
            similarity_fn_name=ScoringFunction(self._measure),
            use_instructions=bool(self._prompts),
        )

    def encode(
        self, inputs: Batches, *, task_metadata: Any, prompt_type: Any = None, **ignored: Any
    ) -> Vectors:
        """The vectors (n, dim) of all texts, with the prompt that the model has for the task, if any."""
        name = get_prompt_name(dict(self._prompts), task_metadata, prompt_type)
        encoder: Any = self.encoder
        prompted: Encoder = encoder if name is None else encoder.with_prompt(name)
        return prompted.encode(_texts(inputs))

    def similarity(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Vectors:
        """How similar every row is to every other (n, m)."""
        return similarity.MEASURES[self._measure](np.atleast_2d(embeddings1), np.atleast_2d(embeddings2))

    def similarity_pairwise(self, embeddings1: npt.ArrayLike, embeddings2: npt.ArrayLike) -> Vectors:
        """How similar rows at the same place are (n,)."""
        return similarity.pairwise(np.atleast_2d(embeddings1), np.atleast_2d(embeddings2), self._measure)


class MtebReranker:
    """A cross-encoder as mteb runs it."""

    def __init__(
        self,
        model_name: RerankerLike,
        revision: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        **choices: Any,
    ) -> None:
        """The other choices are those of `load_reranker`; `model_name` may be a reranker that is open."""
        if not hasattr(model_name, "score"):
            choices |= {"revision": revision, "device": device, "precision": precision or "float32"}
        self.reranker = open_reranker(model_name, **choices)
        self.mteb_model_meta = _meta(
            model_name,
            revision or getattr(self.reranker, "fingerprint", None),
            loader=type(self),
            max_tokens=None,
            embed_dim=None,
            similarity_fn_name=None,
            use_instructions=False,
            model_type=["cross-encoder"],
        )

    def predict(self, inputs1: Batches, inputs2: Batches, **ignored: Any) -> npt.NDArray[np.float32]:
        """The score of each pair of texts (n,)."""
        return self.reranker.score(list(zip(_texts(inputs1), _texts(inputs2), strict=True)))


def _texts(batches: Batches) -> list[str]:
    return [text for batch in batches for text in batch["text"]]


def _meta(model: Any, revision: str | None, **known: Any) -> ModelMeta:
    """What is known of the model; a folder or an object gets a name of its own under gemel/."""
    name = str(model) if isinstance(model, str) else getattr(model, "name", None) or type(model).__name__
    if model is None:
        name = "sentence-transformers/all-MiniLM-L6-v2"
    if name.count("/") != 1 or name.startswith("/"):
        name = f"gemel/{name.rstrip('/').rpartition('/')[2]}"
    return ModelMeta(
        name=name, revision=revision, framework=["safetensors"], **dict.fromkeys(UNKNOWN), **known
    )
