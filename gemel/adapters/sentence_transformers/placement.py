"""The face of a torch module: devices, modules and pools of processes are asked for as there, and seen to by
gemel's engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from gemel.adapters.sentence_transformers.parts import Part, part_at
from gemel.adapters.sentence_transformers.tensors import has_torch
from gemel.errors import MissingExtra

Self = TypeVar("Self", bound="Placed")

TRAINING = "the engine never trains; train with `gemel train`"
NO_TENSORS = "the engine holds the weights; read the folder's model.safetensors"
ONLY_ENCODES = "it takes texts; use encode or predict"
HUB = "save the folder and send it with `gemel push`"
# Names there that have no place in an engine that only encodes, and what to do instead.
ELSEWHERE = {
    "auto_model": NO_TENSORS,
    "backward": TRAINING,
    "compile": "the engine is compiled already",
    "fit": "train with `gemel train`",
    "forward": ONLY_ENCODES,
    "gradient_checkpointing_enable": TRAINING,
    "load_state_dict": TRAINING,
    "merge": TRAINING,
    "model": NO_TENSORS,
    "named_parameters": NO_TENSORS,
    "old_fit": "train with `gemel train`",
    "parameters": NO_TENSORS,
    "push_to_hub": HUB,
    "save_to_hub": HUB,
    "state_dict": NO_TENSORS,
    "transformers_model": NO_TENSORS,
    "zero_grad": TRAINING,
}


class Placed(ABC):
    """A model on a device, which it can be moved from, and the modules that it consists of."""

    training = False

    _computing: dict[str, Any]
    _tokenizer: Any = None  # of the model that is open
    max_seq_length: Any

    @abstractmethod
    def _open(self) -> None:
        """Open the model anew, by `_computing`."""

    @property
    @abstractmethod
    def _engine(self) -> Any:
        """What computes."""

    @property
    @abstractmethod
    def _transformer_folder(self) -> Path:
        """Where the tokenizer and the weights of the transformer are."""

    @abstractmethod
    def _parts(self) -> list[Part]:
        """The modules in their order."""

    def __getattr__(self, name: str) -> Any:
        if name in ELSEWHERE:
            raise AttributeError(f"gemel's {type(self).__name__} has no {name}: {ELSEWHERE[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *features: Any, **others: Any) -> Any:
        """Refuse features of tokens."""
        raise TypeError(f"gemel's {type(self).__name__} was called with features of tokens: {ONLY_ENCODES}")

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts())

    def __getitem__(self, place: int) -> Part:
        return part_at(self._parts(), place)

    def _first_module(self) -> Part:
        return self[0]

    def _last_module(self) -> Part:
        return self[-1]

    @property
    def tokenizer(self) -> Any:
        """The folder's tokenizer, as transformers opens it; changes to it do not reach the engine."""
        if self._tokenizer is None:
            self._tokenizer = _opened_tokenizer(self._transformer_folder, self.max_seq_length)
        return self._tokenizer

    @property
    def device(self) -> Any:
        """Where the model computes, as torch names it where that is installed."""
        name = str(getattr(self._engine, "device", "cpu"))
        if not has_torch():
            return name
        import torch

        return torch.device(name)

    def to(self: Self, device: Any = None, *ignored: Any, **choices: Any) -> Self:
        """Compute on another device; a type of numbers is not taken from here."""
        is_device = isinstance(device, str) or type(device).__name__ == "device"
        if is_device and str(device) != str(self.device):
            self._computing["device"] = str(device)
            self._open()
        return self

    def cpu(self: Self) -> Self:
        """Compute on the processor."""
        return self.to("cpu")

    def cuda(self: Self, device: int | None = None) -> Self:
        """Compute on a graphics card."""
        return self.to("cuda" if device is None else f"cuda:{device}")

    def _itself(self: Self, *ignored: Any, **choices: Any) -> Self:
        """Nothing: the engine never trains, and has its own precision."""
        return self

    eval = train = requires_grad_ = share_memory = _itself
    half = float = double = bfloat16 = _itself

    def start_multi_process_pool(self, target_devices: list[str] | None = None) -> dict[str, Any]:
        """A pool without processes: the engine uses every core as it is."""
        return {"input": None, "output": None, "processes": []}

    @staticmethod
    def stop_multi_process_pool(pool: dict[str, Any]) -> None:
        """Nothing: there are no processes to stop."""
        pool["processes"] = []


def _opened_tokenizer(folder: Path, max_tokens: int) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise MissingExtra("the tokenizer as transformers' object", "train") from None
    return AutoTokenizer.from_pretrained(str(folder), model_max_length=max_tokens)
