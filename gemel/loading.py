"""The one place where a name or a folder becomes an object."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemel.checkpoint import (
    Head,
    ModelFolder,
    RerankerFolder,
    is_reranker_folder,
    is_static_folder,
    read_classifier_folder,
    read_encoder_folder,
    read_head,
    read_reranker_folder,
    read_static_folder,
)
from gemel.checkpoint.hub_names import RAW_TRANSFORMERS, full_name
from gemel.checkpoint.infersent import is_infersent_folder
from gemel.checkpoint.resolving import is_path, resolve
from gemel.checkpoint.spec import ACTIVATIONS
from gemel.contracts import Encoder, OnTruncate, checked_on_truncate
from gemel.errors import InvalidInput, InvalidModel, PoolingWarning

if TYPE_CHECKING:
    from gemel.engine import EngineSettings
    from gemel.model import Trainable
    from gemel.pair_scorer import PairScorer
    from gemel.tasks.classify import CrossPairClassifier, PairClassifier
    from gemel.tasks.few_shot import FewShotClassifier
    from gemel.text_encoder import TextEncoder

PRECISIONS = ("int8", "float32")
GRAPHICS_CARD = Path("/dev/nvidiactl")  # there wherever NVIDIA's driver is
MOST_THREADS = 4096


def load_encoder(
    name: str | Path | None = None,
    *,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    pooling: str | None = None,
    on_truncate: OnTruncate = "warn",
) -> TextEncoder:
    """A sentence encoder from a folder, the hub or its cache; with no name, the default model.

    On a processor the native engine computes, in int8 unless precision="float32" is asked for. Other
    devices, and architectures that the engine does not know, are served by torch, in float32; `threads` are
    the native engine's: torch computes with as many as `torch.set_num_threads` has set, tables and words
    with one. `pooling`, such as "cls" or "mean+max", goes before what the folder says. Names without a
    transformer are those of `gemel.encoders.NAMES`: "glove:FILE", "tfidf:FILE" and others.
    """
    from gemel.encoders import folder_kind, named_encoder

    choices = {"precision": precision, "device": device, "max_tokens": max_tokens, "pooling": pooling}
    at_most = None if threads is None else _checked_threads(threads)
    if (named := named_encoder(name)) is not None:
        _refuse_choices(named.name, **choices, revision=revision)
        return named.open(at_most).with_on_truncate(on_truncate)
    path = resolve(name, revision=revision)
    if (kind := folder_kind(path)) is not None:
        _refuse_choices(f"{kind.what} {path}", **choices)
        return kind.open(path).with_on_truncate(on_truncate)
    folder = _encoder_folder(path, max_tokens, pooling)
    if pooling is None and not folder.names_its_pooling and not _names_no_pooling(name):
        warnings.warn(PoolingWarning(str(name)), stacklevel=2)
    settings = _engine_settings(folder.config, precision, device, threads)
    if settings is None:
        from gemel.model import SentenceEncoder

        return SentenceEncoder(folder, device=device, on_truncate=on_truncate)
    from gemel.engine import NativeEncoder

    return NativeEncoder(folder, settings, on_truncate=on_truncate)


def load_trainable(
    name: str | Path | None = None,
    *,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    pooling: str | None = None,
    on_truncate: OnTruncate = "warn",
) -> Trainable:
    """The same sentence encoder, or an InferSent one, with weights that torch can train."""
    from gemel.model import InferSent, SentenceEncoder

    path = resolve(name, revision=revision)
    if is_infersent_folder(path):
        _refuse_choices(f"the InferSent encoder {path}", max_tokens=max_tokens, pooling=pooling)
        return InferSent.open(path, device=device)
    folder = _encoder_folder(path, max_tokens, pooling)
    return SentenceEncoder(folder, device=device, on_truncate=on_truncate)


def load_reranker(
    name: str | Path,
    *,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    activation: str | None = None,
) -> PairScorer:
    """A cross-encoder from a folder, the hub or its cache; the engine is chosen as for `load_encoder`, and
    `activation`, such as "identity" for raw scores, goes before what the folder says."""
    folder = read_reranker_folder(resolve(name, revision=revision))
    folder = folder if max_tokens is None else replace(folder, max_tokens=fitting_tokens(folder, max_tokens))
    if activation not in (None, *ACTIVATIONS):
        raise InvalidInput(f"activation={activation!r} is unknown; choose from {', '.join(ACTIVATIONS)}")
    folder = folder if activation is None else replace(folder, activation=activation)
    settings = _engine_settings(folder.config, precision, device, threads)
    if settings is None:
        from gemel.model import CrossEncoder

        return CrossEncoder(folder, device=device)
    from gemel.engine import NativeReranker

    return NativeReranker(folder, settings)


def check_encoder(
    name: str | Path | None,
    *,
    pooling: str | None = None,
    precision: str | None = None,
    may_download: bool = True,
) -> None:
    """Refuse a name that nothing stands behind, a folder that is damaged, and choices that do not fit it.

    No weights are read: what is wrong within them is found when it is opened.
    """
    from gemel.encoders import folder_kind, named_encoder

    if (named := named_encoder(name)) is not None:
        named.check()
        return
    path = resolve(name, may_download=may_download)
    if is_static_folder(path):
        read_static_folder(path)
    elif folder_kind(path) is None:
        folder = _encoder_folder(path, None, pooling)
        _engine_settings(folder.config, precision, None, None)


def is_baseline(name: str | Path) -> bool:
    """Whether a model has no transformer, and so no choice of precision, device or threads."""
    from gemel.encoders import folder_kind, named_encoder

    return named_encoder(name) is not None or folder_kind(resolve(name)) is not None


def _encoder_folder(path: Path, max_tokens: int | None, pooling: str | None) -> ModelFolder:
    folder = read_encoder_folder(path)
    folder = folder if pooling is None else _pooled(folder, pooling)
    if max_tokens is None:
        return folder
    return folder.with_spec(replace(folder.spec, max_tokens=fitting_tokens(folder, max_tokens)))


def _refuse_choices(what: str, **choices: Any) -> None:
    """Tell that an encoder without a transformer has no such choice, unless it is what it does anyway."""
    for option, value in choices.items():
        if value is not None and (option, value) not in (("precision", "float32"), ("device", "cpu")):
            raise InvalidInput(
                f"{option}={value!r} was given, and {what} has no such choice: it computes in float32 on the "
                "processor; leave it out"
            )


def _engine_settings(
    config: Mapping[str, Any], precision: str | None, device: str | None, threads: int | None
) -> EngineSettings | None:
    """How the native engine shall compute, or None where torch has to."""
    from gemel import _native
    from gemel.engine import EngineSettings, family_of

    if precision not in (None, *PRECISIONS):
        raise InvalidInput(f"precision={precision!r} is unknown; choose from {', '.join(PRECISIONS)}")
    n_threads = _native.usable_cores() if threads is None else _checked_threads(threads)
    if device not in (None, "cpu"):
        if precision == "int8":
            given = f"precision='int8' was given with device={device!r}"
            raise InvalidInput(f"{given}, and only the processor computes in int8; leave one of them out")
        return None
    if device is None and precision != "int8" and _has_accelerator():
        return None
    if family_of(config) is None:
        if precision == "int8":
            raise InvalidInput(
                f"the native engine does not know the architecture {config.get('model_type')!r}, and only it "
                "computes in int8; leave precision out"
            )
        return None
    return EngineSettings(precision or "int8", "", n_threads)


def _checked_threads(threads: Any) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise InvalidInput(f"threads={threads!r} was given; choose from 1 to {MOST_THREADS}")
    return threads


def _has_accelerator() -> bool:
    """Whether torch can use a graphics card; it is imported, and asked, only where one is there."""
    is_there = GRAPHICS_CARD.exists() and all(map(importlib.util.find_spec, ("torch", "transformers")))
    return is_there and bool(importlib.import_module("torch").cuda.is_available())


def load_pair_classifier(
    name: str | Path,
    *,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
    encoder: TextEncoder | None = None,
    task: str | None = None,
) -> PairClassifier:
    """The classifier that softmax training has left in a model folder, such as one for NLI.

    `encoder` takes the place of the folder's own, where that is open already. `task` names one of several
    that the model was trained on; without, it is the first that has a classifier.
    """
    from gemel.tasks.classify import PairClassifier

    folder = resolve(name)
    head = _softmax_head(folder, task)

    if encoder is None:
        encoder = load_encoder(folder, precision=precision, device=device, threads=threads)
    return PairClassifier(encoder, head.weights, head.concatenation, head.labels)


def load_cross_classifier(
    name: str | Path,
    *,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> CrossPairClassifier | None:
    """The classes of a cross-encoder that gives several, such as one for NLI; None if it is no such model."""
    from gemel.tasks.classify import CrossPairClassifier

    folder = resolve(name)
    labels = read_reranker_folder(folder).labels if is_reranker_folder(folder) else ()
    if len(labels) < 2:
        return None
    reranker = load_reranker(
        folder, precision=precision, device=device, threads=threads, activation="identity"
    )
    return CrossPairClassifier(reranker, labels)


def check_pair_classifier(name: str | Path) -> None:
    """Refuse a model that keeps no classifier of pairs, without opening it."""
    _softmax_head(resolve(name), None)


def _softmax_head(folder: Path, task: str | None) -> Head:
    head = read_head(folder, task)
    if head is None or head.kind != "softmax":
        raise InvalidModel(
            f"{folder} has no classifier of pairs: models trained with the softmax objective keep one, and "
            "cross-encoders with several classes are one"
        )
    return head


def load_classifier(
    folder: str | Path,
    *,
    encoder: Encoder | None = None,
    precision: str | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> FewShotClassifier:
    """The classifier that `FewShotClassifier.save` has left in a folder, on its encoder or on the given one,
    which must be the same."""
    from gemel.tasks.few_shot import FewShotClassifier

    found = read_classifier_folder(folder)
    if encoder is None:
        name = found.encoder_folder or found.encoder.name
        if name is None:
            raise InvalidModel(
                f"{found.path} knows its encoder by the fingerprint {found.encoder.fingerprint} alone; "
                "give it as encoder="
            )
        policy = checked_on_truncate(found.encoder.on_truncate)
        encoder = load_encoder(name, precision=precision, device=device, threads=threads, on_truncate=policy)
        encoder = encoder if found.encoder.prompt is None else encoder.with_prompt(found.encoder.prompt)
    return FewShotClassifier.from_folder(found, encoder)


def _names_no_pooling(name: str | Path | None) -> bool:
    """Whether a model is certainly no more than a transformer: a raw one, or a folder as it stands."""
    return name is None or is_path(name) or full_name(str(name)) in RAW_TRANSFORMERS.values()


def _pooled(folder: ModelFolder, pooling: str) -> ModelFolder:
    """The folder with other pooling modes, several of them joined by +."""
    if not isinstance(pooling, str):
        raise InvalidInput(f"pooling={pooling!r} was given; expected a str, such as 'cls' or 'mean+max'")
    try:
        modes = replace(folder.spec.pooling, modes=tuple(pooling.split("+")))
        return folder.with_spec(replace(folder.spec, pooling=modes))
    except InvalidModel as error:
        raise InvalidInput(f"pooling={pooling!r} does not fit {folder.path}: {error}") from None


def fitting_tokens(folder: ModelFolder | RerankerFolder, max_tokens: Any) -> int:
    """A limit of tokens, or a sentence that says how many this model has places for."""
    longest = folder.spec.max_tokens if isinstance(folder, ModelFolder) else folder.max_tokens
    positions = folder.config.get("max_position_embeddings")
    if isinstance(positions, int):
        from gemel.checkpoint.dialects import max_tokens as limit_of

        longest = limit_of({}, {}, folder.config)
    if isinstance(max_tokens, bool) or not hasattr(max_tokens, "__index__"):
        raise InvalidInput(f"max_tokens={max_tokens!r} was given; expected a whole number, 3 to {longest}")
    if not 3 <= max_tokens <= longest:
        raise InvalidInput(f"max_tokens={max_tokens} does not fit this model; choose 3 to {longest}")
    return int(max_tokens)
