"""What a constructor there takes, and what becomes of it here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gemel.checkpoint.hub_names import full_name
from gemel.checkpoint.resolving import resolve
from gemel.errors import InvalidInput

# What only says how torch, ONNX or OpenVINO shall compute: gemel's engine decides that itself.
IGNORED_MODEL_ARGUMENTS = (
    "attn_implementation",
    "device_map",
    "dtype",
    "export",
    "file_name",
    "low_cpu_mem_usage",
    "ov_config",
    "provider",
    "provider_options",
    "session_options",
    "torch_dtype",
    "use_safetensors",
)
IGNORED_TOKENIZER_ARGUMENTS = ("clean_up_tokenization_spaces", "padding_side", "use_fast")
BACKENDS = ("torch", "onnx", "openvino")
# Arguments that change nothing here: nothing is trained, remote code is never run, and a model
# card is not kept.
IGNORED_ARGUMENTS = ("classifier_dropout", "keep_in_fp32_modules", "model_card_data", "trust_remote_code")


def merged(arguments: dict[str, Any], old: str, new: str) -> Any:
    """Take an argument by its newer or its older name."""
    older, newer = arguments.pop(old, None), arguments.pop(new, None)
    if older is not None and newer is not None:
        raise InvalidInput(f"{old} and {new} were both given, and are the same; leave {old} out")
    return older if newer is None else newer


def rename(arguments: dict[str, Any], older: Mapping[str, str]) -> None:
    """Put what was given by an older name under its newer one."""
    for old, new in older.items():
        arguments[new] = merged(arguments, old, new)


def refuse_rest(what: str, arguments: Mapping[str, Any], ignored: Iterable[str] = ()) -> None:
    """Refuse what is left, save for what changes nothing here."""
    unknown = sorted(name for name, value in arguments.items() if value is not None and name not in ignored)
    if unknown:
        raise InvalidInput(f"{what} was given {', '.join(unknown)}, which gemel does not take; leave it out")


def take_folder(name: str | os.PathLike[str] | None, organisation: str, arguments: dict[str, Any]) -> Path:
    """The model folder behind a name, by the arguments that say where to look for it."""
    if arguments.pop("modules", None) is not None:
        raise InvalidInput(
            "modules were given, which are torch layers; give the name or the folder of a saved model"
        )
    if name is None:
        raise InvalidInput("no model was given; give a name such as 'all-MiniLM-L6-v2', or a folder")
    text = os.fspath(name)
    if isinstance(name, str) and "/" not in text and "\\" not in text and not Path(text).is_dir():
        name = full_name(text, organisation)
    return resolve(
        name if isinstance(name, str) else Path(name),
        revision=arguments.pop("revision", None),
        may_download=not arguments.pop("local_files_only", False),
        cache_dir=arguments.pop("cache_folder", None) or os.environ.get("SENTENCE_TRANSFORMERS_HOME"),
        token=merged(arguments, "use_auth_token", "token"),
    )


def take_computing(arguments: dict[str, Any]) -> dict[str, Any]:
    """How to compute, as `load_encoder` and `load_reranker` take it; nothing that is unknown may be left."""
    if (backend := arguments.pop("backend", None)) not in (None, *BACKENDS):
        raise InvalidInput(f"backend is {backend!r}; expected one of {', '.join(BACKENDS)}")
    model = merged(arguments, "automodel_args", "model_kwargs") or {}
    tokenizer = dict(merged(arguments, "tokenizer_kwargs", "processor_kwargs") or {})
    max_tokens = tokenizer.pop("model_max_length", None)
    refuse_rest("processor_kwargs", tokenizer, IGNORED_TOKENIZER_ARGUMENTS)
    refuse_rest("model_kwargs", model, IGNORED_MODEL_ARGUMENTS)
    refuse_rest("config_kwargs", arguments.pop("config_kwargs", None) or {})
    asked = str(model.get("dtype", model.get("torch_dtype")))
    precision = arguments.pop("precision", None)
    computing = {
        "precision": "float32" if precision is None and asked.endswith("float32") else precision,
        "device": arguments.pop("device", None),
        "threads": arguments.pop("threads", None),
        "max_tokens": max_tokens,
    }
    refuse_rest("the constructor", arguments, IGNORED_ARGUMENTS)
    return {name: value for name, value in computing.items() if value is not None}
