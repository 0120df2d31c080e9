"""CrossEncoder on gemel's engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.adapters.sentence_transformers.activations import (
    Activation,
    activated,
    activation_named,
    name_of,
    saved_name,
)
from gemel.adapters.sentence_transformers.arguments import (
    merged,
    refuse_rest,
    rename,
    take_computing,
    take_folder,
)
from gemel.adapters.sentence_transformers.parts import Part, Transformer
from gemel.adapters.sentence_transformers.placement import Placed
from gemel.adapters.sentence_transformers.saving import save_among_others
from gemel.adapters.sentence_transformers.tensors import tensor_or_array
from gemel.checkpoint import read_weights, save_reranker_folder
from gemel.contracts import checked_pairs
from gemel.errors import InvalidInput
from gemel.loading import load_reranker
from gemel.pair_scorer import PairScorer

ORGANISATION = "cross-encoder"
OLDER_NAMES = {
    "model_name": "model_name_or_path",
    "tokenizer_args": "processor_kwargs",
    "config_args": "config_kwargs",
    "cache_dir": "cache_folder",
    "default_activation_function": "activation_fn",
}
# What has no effect there either.
IGNORED_CHOICES = ("num_workers",)
IGNORED_IN_RANK = (*IGNORED_CHOICES, "apply_softmax", "convert_to_numpy", "convert_to_tensor")


class CrossEncoder(Placed):
    """Text pairs into scores: the constructor and the methods of the class of that name elsewhere."""

    def __init__(
        self,
        model_name_or_path: str | None = None,
        num_labels: int | None = None,
        max_length: int | None = None,
        activation_fn: Activation | None = None,
        device: Any = None,
        **arguments: Any,
    ) -> None:
        """The other arguments are those that `SentenceTransformer` takes here."""
        arguments |= {"model_name_or_path": model_name_or_path, "activation_fn": activation_fn}
        rename(arguments, OLDER_NAMES)
        prompts = {name: arguments.pop(name, None) for name in ("prompts", "default_prompt_name")}
        refuse_rest("a cross-encoder", prompts)
        self._activation: Any = arguments.pop("activation_fn")
        self._folder = take_folder(arguments.pop("model_name_or_path"), ORGANISATION, arguments)
        self._computing = take_computing({**arguments, "device": device and str(device)})
        if max_length is not None:
            self._computing["max_tokens"] = max_length
        self._open()
        if num_labels not in (None, self.num_labels):
            raise InvalidInput(
                f"num_labels={num_labels} was given, and the model has {self.num_labels}; leave it out, or "
                "train a model with other labels"
            )

    def __repr__(self) -> str:
        return f"CrossEncoder({self._scorer!r})"

    def predict(
        self,
        inputs: Any = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        apply_softmax: bool | None = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        pool: Any = None,
        chunk_size: int | None = None,
        **others: Any,
    ) -> Any:
        """The score of one pair, or the scores of several: (n,), or (n, labels) where there are several."""
        refuse_rest("predict", {"prompt_name": prompt_name, "prompt": prompt})
        others |= {"inputs": inputs, "activation_fn": activation_fn}
        inputs = merged(others, "sentences", "inputs")
        activation_fn = merged(others, "activation_fct", "activation_fn") or self._activation
        refuse_rest("predict", others, IGNORED_CHOICES)
        if batch_size < 1:
            raise InvalidInput(f"batch_size is {batch_size!r}; expected at least 1")
        is_one = _is_one_pair(inputs)
        pairs = checked_pairs([inputs] if is_one else _listed(inputs))
        scores = self._scores(pairs, activation_fn, bool(show_progress_bar))
        if apply_softmax and scores.ndim > 1:
            powers = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
            scores = powers / powers.sum(axis=1, keepdims=True)
        if convert_to_tensor:
            found: Any = tensor_or_array(scores)
        elif convert_to_numpy:
            found = scores if len(scores) else np.array([])
        else:
            found = list(tensor_or_array(scores))
        return found[0] if is_one else found

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Activation | None = None,
        device: Any = None,
        pool: Any = None,
        chunk_size: int | None = None,
        **others: Any,
    ) -> list[dict[str, Any]]:
        """The documents as {"corpus_id", "score"} and perhaps "text", the best fit for the query first."""
        if self.num_labels != 1:
            raise InvalidInput(
                f"ranking needs one score a pair, and this model has {self.num_labels}; use predict"
            )
        scores = self.predict(
            [(query, document) for document in documents],
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            activation_fn,
            **{name: value for name, value in others.items() if name not in IGNORED_IN_RANK},
        )
        order = np.argsort(-scores, kind="stable")[:top_k].tolist()
        texts = [{"text": documents[row]} if return_documents else {} for row in order]
        return [
            {"corpus_id": row, "score": float(scores[row]), **text}
            for row, text in zip(order, texts, strict=True)
        ]

    @property
    def num_labels(self) -> int:
        """How many scores a pair gets."""
        return len(self._scorer.labels)

    @property
    def activation_fn(self) -> Any:
        """What makes scores of the raw ones: torch's layer, or its name where torch is not installed."""
        return self._activation or activation_named(self._scorer.folder.activation)

    @activation_fn.setter
    def activation_fn(self, value: Any) -> None:
        self._activation = value

    default_activation_function = activation_fn

    @property
    def max_length(self) -> int:
        """How many tokens of a pair are read, special ones included."""
        return self._scorer.folder.max_tokens

    @max_length.setter
    def max_length(self, value: int) -> None:
        self._computing["max_tokens"] = value
        self._open()

    max_seq_length = max_length

    def save(self, path: str | Path | None, *ignored: Any, **choices: Any) -> None:
        """Write a model folder, in place of a model that is there; other files in it are kept."""
        if path is None:
            return
        folder = self._scorer.folder
        if self._activation is not None:
            folder = replace(folder, activation=saved_name(self._activation))
        with folder.seen.unchanged():
            weights = read_weights(folder.weight_files)
        save_among_others(path, lambda target: save_reranker_folder(target, folder, weights))
        self._scorer.note_saved(path)

    save_pretrained = save

    def _open(self) -> None:
        self._scorer: PairScorer = load_reranker(self._folder, **self._computing)
        self._raw: PairScorer | None = None
        self._tokenizer = None

    @property
    def _engine(self) -> Any:
        return self._scorer

    def _parts(self) -> list[Part]:
        config = self._scorer.folder.config
        return [Transformer(self, int(config.get("hidden_size") or config["dim"]))]

    @property
    def _transformer_folder(self) -> Path:
        return self._scorer.folder.transformer

    def _scores(
        self, pairs: list[tuple[str, str]], activation: Activation | None, shows: bool
    ) -> npt.NDArray[np.float32]:
        """The model's scores, or what another activation makes of the raw ones."""
        name = self._scorer.folder.activation if activation is None else name_of(activation)
        if name == self._scorer.folder.activation:
            return self._scorer.score(pairs, show_progress=shows)
        if self._raw is None:
            self._raw = load_reranker(self._folder, activation="identity", **self._computing)
        raw = self._raw.score(pairs, show_progress=shows)
        return raw if activation is None or name == "identity" else activated(raw, activation)


def _is_one_pair(inputs: Any) -> bool:
    if isinstance(inputs, np.ndarray):
        return inputs.size > 0 and inputs.ndim == 1
    return isinstance(inputs, list | tuple) and len(inputs) > 0 and isinstance(inputs[0], str)


def _listed(inputs: Any) -> Any:
    return inputs.tolist() if isinstance(inputs, np.ndarray) else inputs
