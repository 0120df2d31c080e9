"""Devices and pools of processes: asked for as there, and seen to by gemel's engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

from gemel.adapters.sentence_transformers.tensors import has_torch
from gemel.errors import MissingExtra

Self = TypeVar("Self", bound="Placed")


class Placed(ABC):
    """A model on a device, which it can be moved from."""

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

    def eval(self: Self) -> Self:
        """Nothing: the engine never trains."""
        return self

    def half(self: Self) -> Self:
        """Nothing: the engine has its own precision."""
        return self

    def float(self: Self) -> Self:
        """Nothing: the engine has its own precision."""
        return self

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
