"""Reading a model folder: every accepted layout becomes one frozen description."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gemel.checkpoint import dialects
from gemel.checkpoint.spec import Dense, EncoderSpec, Normalise, Pooling
from gemel.checkpoint.weights import WeightFile, check_shapes, find_weights, open_weights
from gemel.errors import InvalidModel, ModelNotFound

UNFINISHED = "UNFINISHED"  # stands in a folder while it is being written
OWN_SETTINGS = "gemel.json"  # what the Sentence-Transformers layout has no word for
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
# Written anew by every program that saves a config, and without influence on a vector.
VOLATILE_CONFIG_KEYS = {"_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache"}


@dataclass(frozen=True)
class ModelFolder:
    """A sentence encoder on disk, read and checked; its weights are not loaded yet."""

    path: Path
    transformer: Path  # where config.json, the weights and the tokenizer are
    config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    spec: EncoderSpec
    weight_files: tuple[Path, ...]
    dense_files: tuple[Path, ...] = ()
    names_its_pooling: bool = True

    @cached_property
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and configuration, the same in both dialects."""
        return fingerprint(self)

    def with_spec(self, spec: EncoderSpec) -> ModelFolder:
        """The same weights used in another way."""
        return replace(self, spec=spec)


@dataclass(frozen=True)
class RerankerFolder:
    """A cross-encoder on disk, read and checked; its weights are not loaded yet."""

    path: Path
    transformer: Path
    config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    max_tokens: int
    weight_files: tuple[Path, ...]
    lowercase: bool = False
    activation: str = "sigmoid"
    labels: tuple[str, ...] = field(default=("0",))


def read_encoder_folder(folder: str | Path) -> ModelFolder:
    """The sentence encoder in a folder; a plain transformer gets mean pooling, as in the paper."""
    folder = _existing_folder(folder)
    if (folder / "modules.json").is_file():
        return _read_modules(folder)
    config = read_json(folder / "config.json", required_by="a transformer")
    if _is_classifier(config):
        raise InvalidModel(f"{folder} is a cross-encoder ({config['architectures'][0]}): use load_reranker")
    return _assemble(folder, folder, Pooling(), tail=(), dense_files=(), names_its_pooling=False)


def read_reranker_folder(folder: str | Path) -> RerankerFolder:
    """The cross-encoder in a folder: a transformer with a sequence classification head."""
    folder = _existing_folder(folder)
    config = read_json(folder / "config.json", required_by="a cross-encoder")
    if not _is_classifier(config):
        raise InvalidModel(
            f"{folder} is not a cross-encoder: its config.json names {config.get('architectures')}, and a "
            "…ForSequenceClassification was expected; sentence encoders open with load_encoder"
        )
    settings, tokenizer_config = _transformer_settings(folder, task="sequence-classification")
    labels = _labels(config)
    return RerankerFolder(
        path=folder,
        transformer=folder,
        config=config,
        tokenizer_config=tokenizer_config,
        max_tokens=dialects.max_tokens(settings, tokenizer_config, config),
        weight_files=find_weights(folder),
        lowercase=bool(settings.get("do_lower_case", False)),
        activation=_reranker_activation(folder, config, len(labels)),
        labels=labels,
    )


def fingerprint(model: ModelFolder) -> str:
    """128 bits of sha256 over everything that moves a vector."""
    digest = hashlib.sha256()
    config = {key: value for key, value in model.config.items() if key not in VOLATILE_CONFIG_KEYS}
    digest.update(json.dumps([model.spec.to_dict(), config], sort_keys=True).encode())
    for files in (model.weight_files, *((file,) for file in model.dense_files)):
        weights = open_weights(files)
        for name in sorted(weights):
            if name.endswith("position_ids"):  # a counter some exporters store, not a weight
                continue
            entry = weights[name].entries[name]
            digest.update(f"{name}:{entry.dtype}:{entry.shape};".encode())
            digest.update(weights[name].raw(name))
    for name in TOKENIZER_FILES:
        file = model.transformer / name
        if file.is_file():
            digest.update(file.read_bytes())
            break
    return digest.hexdigest()[:32]


def read_json(file: Path, *, required_by: str | None = None) -> dict[str, Any]:
    """The object in a JSON file; an absent file is empty unless something requires it."""
    if not file.is_file():
        if required_by:
            raise InvalidModel(f"{file.parent} has no {file.name}, which {required_by} needs")
        return {}
    value = _parse_json(file)
    if not isinstance(value, dict):
        raise InvalidModel(f"{file} holds a {type(value).__name__}, and a JSON object was expected")
    return value


def read_licence(folder: Path) -> str | None:
    """The licence that the model card's front matter names, if it does."""
    card = folder / "README.md"
    lines = card.read_text(encoding="utf-8", errors="replace").split("\n") if card.is_file() else [""]
    if lines[0].strip() == "---":
        for line in lines[1:]:
            if line.strip() == "---":
                break
            if line.startswith("license:"):
                return line.partition(":")[2].strip() or None
    return None


def _existing_folder(folder: str | Path) -> Path:
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise ModelNotFound(f"there is no model folder {str(folder)!r}")
    if (folder / UNFINISHED).exists():
        raise InvalidModel(f"{folder} was not written to its end: save the model again, or delete the folder")
    return folder


def _read_modules(folder: Path) -> ModelFolder:
    """Follow modules.json: a Transformer, a Pooling, then any number of Dense and Normalize."""
    modules = _module_list(folder / "modules.json")
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        kinds = " > ".join(kind for kind, _ in modules)
        raise InvalidModel(
            f"{folder} is the chain {kinds or 'of no modules'}; Transformer > Pooling > … is needed"
        )
    file = modules[1][1] / "config.json"
    width, pooling = dialects.parse_pooling(read_json(file, required_by="a Pooling module"), str(file))
    tail: list[Dense | Normalise] = []
    dense_files: list[Path] = []
    for kind, path in modules[2:]:
        if kind == "Normalize":
            tail.append(Normalise())
            continue
        file = path / "config.json"
        dense = dialects.parse_dense(read_json(file, required_by="a Dense module"), str(file))
        dense_files.extend(_dense_weights(path, dense))
        tail.append(dense)
    model = _assemble(folder, modules[0][1], pooling, tuple(tail), tuple(dense_files))
    if width is not None and width != model.spec.hidden_size:
        raise InvalidModel(
            f"{folder}: Pooling expects vectors of {width}, the transformer has {model.spec.hidden_size}"
        )
    return model


def _module_list(file: Path) -> list[tuple[str, Path]]:
    modules = _parse_json(file)
    found = []
    for module in modules if isinstance(modules, list) else []:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        path = (file.parent / str(module.get("path", ""))).resolve()
        if not path.is_relative_to(file.parent.resolve()):
            raise InvalidModel(f"{file} points outside of its folder: {module['path']!r}")
        if kind not in ("Transformer", "Pooling", "Dense", "Normalize"):
            raise InvalidModel(
                f"{file} has the module {module.get('type')!r}; "
                "gemel knows Transformer, Pooling, Dense, Normalize"
            )
        found.append((kind, file.parent / str(module.get("path", ""))))
    return found


def _dense_weights(path: Path, dense: Dense) -> tuple[Path, ...]:
    (file,) = find_weights(path)
    check_shapes(WeightFile.open(file), dense.tensor_shapes())
    return (file,)


def _assemble(
    folder: Path,
    transformer: Path,
    pooling: Pooling,
    tail: tuple[Dense | Normalise, ...],
    dense_files: tuple[Path, ...],
    names_its_pooling: bool = True,
) -> ModelFolder:
    config = read_json(transformer / "config.json", required_by="a transformer")
    settings, tokenizer_config = _transformer_settings(transformer, task="feature-extraction")
    own = _own_settings(folder / OWN_SETTINGS)
    spec = EncoderSpec(
        hidden_size=_hidden_size(config, transformer),
        max_tokens=dialects.max_tokens(settings, tokenizer_config, config),
        lowercase=bool(settings.get("do_lower_case", False)),
        pooling=replace(pooling, include_special_tokens=own.get("include_special_tokens", True)),
        tail=tail,
        **dialects.parse_model_settings(read_json(folder / "config_sentence_transformers.json")),
    )
    files = find_weights(transformer)
    open_weights(files)
    return ModelFolder(
        folder, transformer, config, tokenizer_config, spec, files, dense_files, names_its_pooling
    )


def _transformer_settings(folder: Path, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    present = [folder / name for name in dialects.TRANSFORMER_CONFIG_NAMES if (folder / name).is_file()]
    settings = read_json(present[0]) if present else {}
    dialects.check_transformer_settings(settings, str(present[0]) if present else "", task=task)
    return settings, read_json(folder / "tokenizer_config.json")


def _own_settings(file: Path) -> dict[str, Any]:
    own = read_json(file)
    unknown = sorted(set(own) - {"include_special_tokens"})
    if unknown:
        raise InvalidModel(
            f"{file} has the unknown key {unknown[0]!r}; the known key is include_special_tokens"
        )
    return own


def _hidden_size(config: Mapping[str, Any], folder: Path) -> int:
    for key in ("hidden_size", "dim", "d_model", "n_embd"):
        if isinstance(config.get(key), int):
            return int(config[key])
    raise InvalidModel(f"{folder / 'config.json'} names no hidden_size")


def _is_classifier(config: Mapping[str, Any]) -> bool:
    return any("ForSequenceClassification" in name for name in config.get("architectures") or ())


def _labels(config: Mapping[str, Any]) -> tuple[str, ...]:
    names = config.get("id2label") or {str(i): str(i) for i in range(config.get("num_labels", 2))}
    return tuple(names[key] for key in sorted(names, key=int))


def _reranker_activation(folder: Path, config: Mapping[str, Any], n_labels: int) -> str:
    """One label is a score between 0 and 1 unless the folder says otherwise."""
    saved = read_json(folder / "config_sentence_transformers.json")
    dotted = (
        saved.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
    )
    if dotted is None:
        return "sigmoid" if n_labels == 1 else "identity"
    return dialects.activation_name(str(dotted))


def _parse_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidModel(f"{file} is not valid JSON ({error}): get the folder again") from None
