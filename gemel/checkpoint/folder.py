"""Reading a model folder: every accepted layout becomes one frozen description."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemel.checkpoint import dialects, fields
from gemel.checkpoint.fields import read_json
from gemel.checkpoint.identity import fingerprint, same_model, settled
from gemel.checkpoint.seen import SeenFiles
from gemel.checkpoint.spec import ACTIVATIONS, Dense, EncoderSpec, Normalise, Pooling
from gemel.checkpoint.tokenizer_settings import TOKENIZER_FILES as TOKENIZER_FILES
from gemel.checkpoint.tokenizer_settings import WORDPIECE_FAMILIES
from gemel.checkpoint.weights import WeightFile, check_shapes, find_weights, open_weights
from gemel.errors import InvalidModel, ModelNotFound
from gemel.threads import once

UNFINISHED = "UNFINISHED"  # stands in a folder while it is being written
OWN_SETTINGS = "gemel.json"  # what the Sentence-Transformers layout has no word for
CLASSIFIER_FILE = "classifier.json"  # in the folder of a text classifier
# Read again when a model is named by its fingerprint, saved or opened in another process.
SETTINGS_FILES = ("config.json", "tokenizer_config.json", "added_tokens.json")
LIBRARY = "sentence_transformers."  # whose modules are known; another's of the same name is code of its own
MODULES = ("Transformer", "Pooling", "Dense", "Normalize", "StaticEmbedding")
GENERIC_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")
MOST_LABELS = 100_000
ABSOLUTE_FAMILIES = (
    "albert",
    "bert",
    "camembert",
    "distilbert",
    "electra",
    "mpnet",
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
)


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
    seen: SeenFiles = field(default=SeenFiles(), compare=False, repr=False)

    @once
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and configuration, the same in both dialects."""
        return fingerprint(self, settled(self.spec), self.dense_files)

    def with_spec(self, spec: EncoderSpec) -> ModelFolder:
        """The same weights used in another way."""
        return replace(self, spec=spec)

    def reopened(self) -> ModelFolder:
        """The folder as another process finds it, refused where it holds another model by now."""
        return self if self.seen.are_unchanged() else same_model(self, replace(self, seen=self.seen.again()))


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
    seen: SeenFiles = field(default=SeenFiles(), compare=False, repr=False)

    @once
    def fingerprint(self) -> str:
        """A hash of weights, tokenizer and configuration."""
        chosen = {
            name: getattr(self, name)
            for name in ("max_tokens", "lowercase", "activation", "labels", "gives_types")
        }
        return fingerprint(self, chosen)

    def reopened(self) -> RerankerFolder:
        """The folder as another process finds it, refused where it holds another model by now."""
        return self if self.seen.are_unchanged() else same_model(self, replace(self, seen=self.seen.again()))

    @property
    def gives_types(self) -> bool:
        """Whether the model was trained with token types: transformers' generic tokenizers leave them out."""
        names = self.tokenizer_config.get("model_input_names")
        if names is not None:
            return "token_type_ids" in names
        return self.tokenizer_config.get("tokenizer_class") not in GENERIC_TOKENIZERS


def read_encoder_folder(folder: str | Path) -> ModelFolder:
    """The sentence encoder in a folder; a plain transformer gets mean pooling, as in the paper."""
    folder = existing_folder(folder)
    if (folder / "modules.json").is_file():
        return _read_modules(folder)
    if (folder / CLASSIFIER_FILE).is_file():
        raise InvalidModel(f"{folder} is a text classifier, not an encoder: use load_classifier")
    config = read_json(folder / "config.json", required_by="a transformer")
    if classifier := _classifier(config, folder):
        raise InvalidModel(f"{folder} is a cross-encoder ({classifier}): use load_reranker")
    return _assemble(folder, folder, Pooling(), tail=(), dense_files=(), names_its_pooling=False)


def is_reranker_folder(folder: Path) -> bool:
    """Whether a folder says that it is a cross-encoder; it may be damaged nonetheless."""
    return bool(_classifier(read_json(folder / "config.json"), folder))


def read_reranker_folder(folder: str | Path) -> RerankerFolder:
    """The cross-encoder in a folder: a transformer with a sequence classification head."""
    folder = existing_folder(folder)
    config = read_json(folder / "config.json", required_by="a cross-encoder")
    if not _classifier(config, folder):
        raise InvalidModel(
            f"{folder} is not a cross-encoder: its config.json names {config.get('architectures')}, and a "
            "…ForSequenceClassification was expected; sentence encoders open with load_encoder"
        )
    _refuse_own_code(config, "AutoModelForSequenceClassification", folder)
    _refuse_positions(config, folder)
    settings, tokenizer_config = _transformer_settings(folder, task="sequence-classification")
    labels = _labels(config, str(folder / "config.json"))
    _check_tokenizer(folder, folder, config)
    files = find_weights(folder)
    seen = _seen(folder, folder, files)
    open_weights(files)
    return RerankerFolder(
        path=folder,
        transformer=folder,
        config=config,
        tokenizer_config=tokenizer_config,
        max_tokens=dialects.max_tokens(settings, tokenizer_config, config, folder),
        weight_files=files,
        lowercase=settings.get("do_lower_case") is True,
        activation=_reranker_activation(folder, config, len(labels)),
        labels=labels,
        seen=seen,
    )


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


def existing_folder(folder: str | Path) -> Path:
    """The absolute path of a folder that was written to its end."""
    folder = Path(folder).expanduser().absolute()  # so that a later os.chdir changes nothing
    if not folder.is_dir():
        raise ModelNotFound(f"there is no model folder {str(folder)!r}")
    if (folder / UNFINISHED).exists():
        raise InvalidModel(f"{folder} was not written to its end: save the model again, or delete the folder")
    return folder


def _read_modules(folder: Path) -> ModelFolder:
    """Follow modules.json: a Transformer, a Pooling, then any number of Dense and Normalize."""
    modules = module_list(folder / "modules.json")
    if [kind for kind, _ in modules[:2]] != ["Transformer", "Pooling"]:
        kinds = " > ".join(kind for kind, _ in modules)
        if kinds.startswith("StaticEmbedding"):
            raise InvalidModel(f"{folder} is a static table ({kinds}), not a transformer: use load_encoder")
        raise InvalidModel(
            f"{folder} is the chain {kinds or 'of no modules'}; Transformer > Pooling > … is needed"
        )
    file = modules[1][1] / "config.json"
    width, pooling = dialects.parse_pooling(read_json(file, required_by="a Pooling module"), str(file))
    tail: list[Dense | Normalise] = []
    dense_files: list[Path] = []
    for kind, path in modules[2:]:
        if kind not in ("Dense", "Normalize"):
            raise InvalidModel(
                f"{folder} has the module {kind} after its pooling; Dense or Normalize is needed"
            )
        if kind == "Normalize":
            tail.append(Normalise())
            continue
        file = path / "config.json"
        dense = dialects.parse_dense(read_json(file, required_by="a Dense module"), str(file))
        dense_files.append(_dense_weights(path, dense, folder))
        tail.append(dense)
    model = _assemble(folder, modules[0][1], pooling, tuple(tail), tuple(dense_files))
    if width is not None and width != model.spec.hidden_size:
        raise InvalidModel(
            f"{folder}: Pooling expects vectors of {width}, the transformer has {model.spec.hidden_size}"
        )
    return model


def module_list(file: Path) -> list[tuple[str, Path]]:
    """The kind and the folder of every module that a modules.json names."""
    modules = fields.parse_json(file)
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise InvalidModel(f"{file} holds something else, and a list of modules (type, path) was expected")
    found = []
    for module in modules:
        name, part = fields.text(module, "type", str(file)), fields.text(module, "path", str(file)) or ""
        kind = (name or "").rsplit(".", 1)[-1]
        if not _is_inside(part, file.parent):
            raise InvalidModel(f"{file} points outside of its folder: {part!r}; a folder in it was expected")
        if kind not in MODULES or not (name or "").startswith(LIBRARY):
            known = ", ".join(MODULES)
            raise InvalidModel(
                f"{file} has the module {name!r}; gemel knows {known} of sentence_transformers"
            )
        found.append((kind, file.parent / part))
    return found


def _is_inside(part: str, folder: Path) -> bool:
    # What cannot be printed, such as NUL or half a surrogate pair, would be a ValueError of the path itself.
    return part.isprintable() and (folder / part).resolve().is_relative_to(folder.resolve())


def _dense_weights(path: Path, dense: Dense, root: Path) -> Path:
    files = find_weights(path, root)
    if len(files) != 1:
        raise InvalidModel(f"{path} holds its weights in {len(files)} files, and one was expected for Dense")
    check_shapes(WeightFile.open(files[0]), dense.tensor_shapes())
    return files[0]


def _assemble(
    folder: Path,
    transformer: Path,
    pooling: Pooling,
    tail: tuple[Dense | Normalise, ...],
    dense_files: tuple[Path, ...],
    names_its_pooling: bool = True,
) -> ModelFolder:
    config = read_json(transformer / "config.json", required_by="a transformer")
    _refuse_own_code(config, "AutoModel", transformer)
    _refuse_positions(config, transformer)
    settings, tokenizer_config = _transformer_settings(transformer, task="feature-extraction")
    settings_file = folder / "config_sentence_transformers.json"
    _check_tokenizer(transformer, folder, config)
    spec = EncoderSpec(
        hidden_size=_hidden_size(config, transformer),
        max_tokens=dialects.max_tokens(settings, tokenizer_config, config, transformer),
        lowercase=settings.get("do_lower_case") is True,
        pooling=replace(pooling, include_special_tokens=_includes_special_tokens(folder / OWN_SETTINGS)),
        tail=tail,
        **dialects.parse_model_settings(read_json(settings_file), str(settings_file)),
    )
    files = find_weights(transformer, folder)
    seen = _seen(folder, transformer, (*files, *dense_files))
    open_weights(files)
    return ModelFolder(
        folder, transformer, config, tokenizer_config, spec, files, dense_files, names_its_pooling, seen
    )


def _seen(folder: Path, transformer: Path, weights: Iterable[Path]) -> SeenFiles:
    beside = (transformer / name for name in (*SETTINGS_FILES, *TOKENIZER_FILES))
    return SeenFiles.of(folder, (*weights, *beside))


def _refuse_own_code(config: Mapping[str, Any], kind: str, folder: Path) -> None:
    """Code of its own may compute something else with the same tensors, such as attention both ways."""
    own = config.get("auto_map")
    if isinstance(own, Mapping) and own.get(kind):
        raise InvalidModel(
            f"{folder}/config.json names code of its own, {own[kind]} (auto_map), and gemel runs no code of "
            "models: use a model without it, or take auto_map out if the code computes what transformers does"
        )


def _refuse_positions(config: Mapping[str, Any], folder: Path) -> None:
    """transformers 5 would compute absolute positions whatever the weights have learnt, without a word."""
    kind = config.get("position_embedding_type") or "absolute"
    is_known = kind == "absolute" or config.get("model_type") not in ABSOLUTE_FAMILIES
    if not is_known or str(kind).startswith("relative_key"):
        raise InvalidModel(
            f"{folder}/config.json sets position_embedding_type to {kind!r}, which neither gemel nor "
            "transformers 5 computes; use a model with absolute positions"
        )


def _transformer_settings(folder: Path, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    present = [folder / name for name in dialects.TRANSFORMER_CONFIG_NAMES if (folder / name).is_file()]
    settings = read_json(present[0]) if present else {}
    dialects.check_transformer_settings(settings, str(present[0]) if present else "", task=task)
    return settings, read_json(folder / "tokenizer_config.json")


def _includes_special_tokens(file: Path) -> bool:
    own = read_json(file)
    unknown = sorted(set(own) - {"include_special_tokens"})
    if unknown:
        raise InvalidModel(
            f"{file} has the unknown key {unknown[0]!r}; the known key is include_special_tokens"
        )
    return fields.flag(own, "include_special_tokens", str(file), default=True)


def _check_tokenizer(folder: Path, root: Path, config: Mapping[str, Any]) -> None:
    if (folder / "tokenizer.json").is_file():
        return
    if not (folder / "vocab.txt").is_file() or config.get("model_type") not in WORDPIECE_FAMILIES:
        raise InvalidModel(f"{folder} has no tokenizer.json; make one with: gemel convert {root} NEW_FOLDER")


def _hidden_size(config: Mapping[str, Any], folder: Path) -> int:
    file = folder / "config.json"
    for key in ("hidden_size", "dim", "d_model", "n_embd", "emb_dim"):
        size = fields.integer(config, key, str(file))
        if size is not None:
            return size
    raise InvalidModel(f"{file} names no hidden_size")


def _classifier(config: Mapping[str, Any], folder: Path) -> str | None:
    names = fields.texts(config, "architectures", str(folder / "config.json"))
    return next((name for name in names if "ForSequenceClassification" in name), None)


def _labels(config: Mapping[str, Any], file: str) -> tuple[str, ...]:
    names = fields.text_table(config, "id2label", file)
    if not names:
        n_labels = fields.integer(config, "num_labels", file, most=MOST_LABELS)
        return tuple(str(label) for label in range(2 if n_labels is None else n_labels))
    if set(names) != {str(label) for label in range(len(names))}:
        raise fields.wrong(config, "id2label", file, f"a text for each number from 0 to {len(names) - 1}")
    return tuple(names[str(label)] for label in range(len(names)))


def _reranker_activation(folder: Path, config: Mapping[str, Any], n_labels: int) -> str:
    """One label is a score between 0 and 1 unless the folder says otherwise."""
    file, saved_file = str(folder / "config.json"), folder / "config_sentence_transformers.json"
    dotted = (
        fields.text(read_json(saved_file), "activation_fn", str(saved_file))
        or fields.text(fields.table(config, "sentence_transformers", file), "activation_fn", file)
        or fields.text(config, "sbert_ce_default_activation_function", file)
    )
    if dotted is None:
        return "sigmoid" if n_labels == 1 else "identity"
    activation = dialects.activation_name(dotted)
    if activation not in ACTIVATIONS:
        raise InvalidModel(
            f"{folder} names the unknown activation {dotted!r}; gemel knows {', '.join(ACTIVATIONS)}"
        )
    return activation
