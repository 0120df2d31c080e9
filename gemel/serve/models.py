"""What is loaded: one frozen set of models, replaced as a whole when the folders have changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gemel import _native
from gemel.checkpoint.resolving import DEFAULT_MODEL
from gemel.errors import InvalidModel
from gemel.loading import load_encoder, load_pair_classifier, load_reranker
from gemel.pair_scorer import PairScorer
from gemel.serve.refusals import Refusal
from gemel.serve.settings import ModelChoice
from gemel.tasks.classify import PairClassifier
from gemel.text_encoder import FolderEncoder, TextEncoder

Made = TypeVar("Made")
Model = TypeVar("Model")

HOW_TO_RERANK = (
    "no re-ranker is loaded; start the server with --reranker NAME, a cross-encoder's folder or hub name, "
    "such as cross-encoder/ms-marco-MiniLM-L6-v2, or train one with gemel train"
)
HOW_TO_CLASSIFY = (
    "no classifier is loaded; start the server with --classifier FOLDER, a model that gemel train has made "
    "with the softmax objective"
)
HOW_TO_HAVE_TOKENS = "has no tokens of its own; start the server with --model NAME, a transformer's folder"


@dataclass(frozen=True)
class Models:
    """The models that requests are answered with, and the names they answer to."""

    encoder: TextEncoder
    name: str
    aliases: tuple[str, ...] = ()
    reranker: PairScorer | None = None
    reranker_name: str | None = None
    classifier: PairClassifier | None = None
    classifier_name: str | None = None
    loaded: float = field(default_factory=time.time)
    _prompted: dict[str, TextEncoder] = field(default_factory=dict)
    _runners: dict[tuple[object, object], Any] = field(default_factory=dict)

    @property
    def n_threads(self) -> int:
        """How many threads compute."""
        return int(getattr(self.encoder, "n_threads", 0)) or _native.usable_cores()

    def encoder_with(self, prompt: str | None) -> TextEncoder:
        """The encoder with one of its prompts, or as it is; always the same object for the same prompt."""
        if prompt is None:
            return self.encoder
        if prompt not in self._prompted:
            self._prompted[prompt] = self.encoder.with_prompt(prompt)
        return self._prompted[prompt]

    def runner(self, kind: Callable[[Model], Made], model: Model) -> Made:
        """The runner of a model: always the same one, so that jobs share steps."""
        if (kind, model) not in self._runners:
            self._runners[kind, model] = kind(model)
        made: Made = self._runners[kind, model]
        return made

    def check_encoder_name(self, name: str | None) -> None:
        """Refuse a request for a model that is not the one loaded."""
        _check_name(name, (self.name, *self.aliases), "--alias")

    def the_reranker(self, name: str | None = None) -> PairScorer:
        """The re-ranker, if that is what was asked for and it is loaded."""
        if self.reranker is None or self.reranker_name is None:
            raise Refusal("not_loaded", HOW_TO_RERANK)
        _check_name(name, (self.reranker_name,), "--reranker")
        return self.reranker

    def the_classifier(self, name: str | None = None) -> PairClassifier:
        """The classifier of text pairs, if that is what was asked for and it is loaded."""
        if self.classifier is None or self.classifier_name is None:
            raise Refusal("not_loaded", HOW_TO_CLASSIFY)
        _check_name(name, (self.classifier_name,), "--classifier")
        return self.classifier

    def the_transformer(self) -> FolderEncoder:
        """The encoder, if it reads tokens."""
        if not isinstance(self.encoder, FolderEncoder):
            raise Refusal("not_loaded", f"{self.name} {HOW_TO_HAVE_TOKENS}")
        return self.encoder


class Shelf:
    """Where the current models stand."""

    def __init__(self, models: Models, choice: ModelChoice) -> None:
        self.current = models
        self._choice = choice
        self._loading = threading.Lock()

    def reload(self) -> Models:
        """Load the same folders again; requests that have begun keep the models they began with."""
        with self._loading:
            self.current = load_models(self._choice)
            return self.current


def load_models(choice: ModelChoice) -> Models:
    """The chosen models; the encoder's own classifier comes with it."""
    compute: dict[str, Any] = {name: getattr(choice, name) for name in ("precision", "device", "threads")}
    encoder = load_encoder(choice.encoder, on_truncate="ignore", **compute)
    classifier, classifier_name = None, choice.classifier
    if choice.classifier is not None:
        classifier = load_pair_classifier(choice.classifier, **compute)
    elif choice.encoder is not None and isinstance(encoder, FolderEncoder):
        classifier, classifier_name = _own_classifier(encoder)
    reranker = None
    if choice.reranker is not None:
        reranker = load_reranker(choice.reranker, **compute)
    _ = encoder.fingerprint  # read now and kept: a folder that is replaced later could not tell it any more
    return Models(
        encoder=encoder,
        name=served_name(choice.encoder or DEFAULT_MODEL),
        aliases=choice.aliases,
        reranker=reranker,
        reranker_name=None if choice.reranker is None else served_name(choice.reranker),
        classifier=classifier,
        classifier_name=None if classifier_name is None else served_name(classifier_name),
    )


def _own_classifier(encoder: FolderEncoder) -> tuple[PairClassifier | None, str | None]:
    try:
        return load_pair_classifier(encoder.folder.path, encoder=encoder), str(encoder.folder.path)
    except InvalidModel:
        return None, None  # most models have none


def served_name(name: str) -> str:
    """What a model is called over HTTP: a hub name as it is, of a folder only the last part."""
    path = Path(name).expanduser()
    return path.resolve().name if path.is_dir() or name.startswith((".", "/", "~")) else name


def _check_name(name: str | None, known: tuple[str, ...], option: str) -> None:
    short = {other.rpartition("/")[2] for other in known}
    if name and name not in known and name not in short:
        raise Refusal(
            "unknown_model",
            f"the model {name[:200]!r} is not loaded; here is {known[0]!r} (start the server with {option} "
            "to have another name or model)",
            parameter="model",
        )
