"""What models are on this machine, and what each of them is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemel.checkpoint import (
    ModelFolder,
    is_static_folder,
    read_encoder_folder,
    read_licence,
    read_reranker_folder,
)
from gemel.checkpoint.infersent import is_infersent_folder
from gemel.checkpoint.package import DEFAULT_WEIGHTS
from gemel.checkpoint.resolving import resolve
from gemel.errors import InvalidModel


@dataclass(frozen=True)
class ModelCard:
    """One line about a model; no dimension or fingerprint: a cross-encoder; no limit: reads any length."""

    name: str
    kind: str  # "encoder" or "reranker"
    architecture: str
    dim: int | None
    max_tokens: int | None
    pooling: str | None
    licence: str
    fingerprint: str | None
    source: str  # "package", "hub cache" or "folder"
    path: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def installed_models(on_damage: Callable[[str], object]) -> Iterator[ModelCard]:
    """Every model that opens here without a network: the weights package, then the hub cache.

    A damaged weights package is told of and passed over; the other models are as good as before.
    """
    folder = DEFAULT_WEIGHTS.folder()
    if folder is not None:
        try:
            DEFAULT_WEIGHTS.check(folder)
            yield _describe(folder, DEFAULT_WEIGHTS.model, "package", DEFAULT_WEIGHTS.licence)
        except InvalidModel as damage:
            on_damage(str(damage))
    for name, cached in _cached_models():
        if _generates_text(cached):
            continue
        try:
            yield _describe(cached, name, "hub cache")
        except InvalidModel:
            continue  # the cache holds other kinds of models too, and half-finished downloads


def describe(name: str | Path) -> ModelCard:
    """One model by its folder or name."""
    folder = resolve(name)
    source = "folder" if Path(name).expanduser() == folder else "hub cache"
    return _describe(folder, str(name), "package" if folder == DEFAULT_WEIGHTS.folder() else source)


def _describe(folder: Path, name: str, source: str, licence: str | None = None) -> ModelCard:
    licence = licence or read_licence(folder) or "unknown"
    if is_static_folder(folder) or is_infersent_folder(folder):
        return _describe_baseline(folder, name, source, licence)
    try:
        encoder = read_encoder_folder(folder)
    except InvalidModel as not_an_encoder:
        try:
            reranker = read_reranker_folder(folder)
        except InvalidModel:
            raise not_an_encoder from None
        return ModelCard(
            name=name,
            kind="reranker",
            architecture=str(reranker.config.get("model_type", "?")),
            dim=None,
            max_tokens=reranker.max_tokens,
            pooling=None,
            licence=licence,
            fingerprint=None,
            source=source,
            path=str(folder),
        )
    return ModelCard(
        name=name,
        kind="encoder",
        architecture=str(encoder.config.get("model_type", "?")),
        dim=encoder.spec.dim,
        max_tokens=encoder.spec.max_tokens,
        pooling=_pooling(encoder),
        licence=licence,
        fingerprint=encoder.fingerprint,
        source=source,
        path=str(folder),
    )


def _describe_baseline(folder: Path, name: str, source: str, licence: str) -> ModelCard:
    from gemel.encoders import InferSentEncoder, folder_kind

    kind = folder_kind(folder)
    assert kind is not None, "the caller has looked"
    encoder = kind.open(folder)
    is_infersent = isinstance(encoder, InferSentEncoder)
    return ModelCard(
        name=name,
        kind="encoder",
        architecture="infersent" if is_infersent else "static table",
        dim=encoder.dim,
        max_tokens=None,
        pooling="max" if is_infersent else "mean",
        licence=licence,
        fingerprint=encoder.fingerprint,
        source=source,
        path=str(folder),
    )


def _pooling(model: ModelFolder) -> str:
    modes = "+".join(model.spec.pooling.modes)
    return modes if model.names_its_pooling else f"{modes} (the folder names none)"


def _generates_text(folder: Path) -> bool:
    """Whether this is a language model, which nobody means to encode sentences with as it stands."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        names = [str(name) for name in config.get("architectures") or ()]
    except (OSError, ValueError, AttributeError, TypeError):
        return False
    return any(name.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")) for name in names)


def _cached_models() -> Iterator[tuple[str, Path]]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        cache = scan_cache_dir()
    except CacheNotFound:
        return
    for repository in sorted(cache.repos, key=lambda repository: repository.repo_id):
        if repository.repo_type != "model":
            continue
        for revision in sorted(repository.revisions, key=lambda revision: revision.commit_hash):
            yield repository.repo_id, revision.snapshot_path
