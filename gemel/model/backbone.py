"""Pretrained transformers, loaded so that nothing is missing, misshapen or made up."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
import transformers
from transformers.utils import logging as transformers_logging

from gemel.checkpoint import ModelFolder
from gemel.errors import InvalidInput, InvalidModel

# BERT's own pooler sits on top of the last layer; no pooling of ours reads it.
UNUSED_PARTS = ("pooler.",)
# Counters and masks that older programs stored with the weights of each layer.
STORED_BUFFERS = (".position_ids", ".inv_freq", ".masked_bias", ".attn.bias", ".attention.bias")
A_LAYER = re.compile(r"[a-z_]+\.\d+\.")
ENCODERS_ALONE = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}


def load_transformer(
    auto_class: Any, folder: Path, *, with_new_head: bool = False, **settings: Any
) -> torch.nn.Module:
    """The folder's transformer in float32; nothing but a new head may be absent from its weights."""
    try:
        with _quiet_transformers():
            model, report = auto_class.from_pretrained(
                folder,
                local_files_only=True,
                use_safetensors=True,
                trust_remote_code=False,
                dtype=torch.float32,
                ignore_mismatched_sizes=True,
                output_loading_info=True,
                **settings,
            )
    except Exception as error:  # what a damaged or unknown config makes transformers raise is open-ended
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidModel(f"{folder} cannot be opened by transformers ({reason})") from error
    for name, found, expected in sorted(report["mismatched_keys"]):
        raise InvalidModel(
            f"{folder}: tensor {name!r} has shape {tuple(found)}, expected {tuple(expected)} by config.json"
        )
    prefix = f"{model.base_model_prefix}." if with_new_head else ""
    unused = tuple(prefix + part for part in UNUSED_PARTS)
    missing = sorted(
        name for name in report["missing_keys"] if name.startswith(prefix) and not name.startswith(unused)
    )
    if missing:
        raise InvalidModel(
            f"{folder}: the weights lack the tensor {missing[0]!r} ({len(missing)} missing in all), so the "
            "model would be partly random; get the folder again"
        )
    _refuse_unread(folder, report["unexpected_keys"], model.state_dict())
    if not with_new_head and any(name.startswith(UNUSED_PARTS) for name in report["missing_keys"]):
        model.pooler = None  # a random one would be saved with the model, and change its fingerprint
    module: torch.nn.Module = model.eval()
    return module


def _refuse_unread(folder: Path, names: Iterable[str], read: Iterable[str]) -> None:
    """Tensors of a layer that is computed without them mean that the layer was another one."""
    layers = tuple({f".{name[: match.end()]}" for name in read if (match := A_LAYER.search(name))})
    for name in sorted(names):
        match = A_LAYER.search(name)
        if match and f".{name[: match.end()]}".endswith(layers) and not name.endswith(STORED_BUFFERS):
            raise InvalidModel(
                f"{folder}: the weights have the tensor {name!r}, for which transformers has no place, so "
                "the vectors would be another model's; merge adapters into the weights, or use another model"
            )


def load_backbone(folder: ModelFolder, attention: str | None) -> torch.nn.Module:
    """The transformer of a sentence encoder; of an encoder-decoder, the encoder."""
    name = ENCODERS_ALONE.get(str(folder.config.get("model_type")))
    auto_class = getattr(transformers, name) if name else transformers.AutoModel
    return load_transformer(auto_class, folder.transformer, attn_implementation=attention)


@contextmanager
def without_dropout(model: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode for a while, so that a model in training gives its true vectors."""
    # Each has a flag of its own: that of an encoder says nothing of modules that it shares with another.
    in_training = [part for part in model.modules() if part.training]
    for part in in_training:
        part.training = False
    try:
        yield
    finally:
        for part in in_training:
            part.training = True


def choose_device(name: str | None) -> torch.device:
    """The named device, or the fastest one of this machine."""
    if name is None:
        for kind, backend in (("cuda", torch.cuda), ("mps", torch.backends.mps)):
            if backend.is_available():
                return torch.device(kind)
        return torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidInput(f"the device {name!r} cannot be used here ({reason}); try device='cpu'") from None
    return device


def accepts(model: torch.nn.Module, parameter: str) -> bool:
    """Whether the model's forward pass takes an argument of that name."""
    return parameter in inspect.signature(model.forward).parameters


def arrays_of(module: torch.nn.Module) -> dict[str, npt.NDArray[Any]]:
    """A module's weights by name, as arrays."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in module.state_dict().items()}


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No bars and no reports from transformers: what matters in them is raised above."""
    verbosity = transformers_logging.get_verbosity()
    had_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if had_bars:
            transformers_logging.enable_progress_bar()
