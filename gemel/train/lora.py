"""Low-rank adapters (Hu et al., 2021): W stays, and a product of two thin matrices is learnt beside it.

Adapters live only while a model is trained. What is saved, and what is left in memory, is a plain model with
W + BA in the place of W, so that nothing that reads it needs to know of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gemel.errors import InvalidInput
from gemel.train.interrupts import held_interrupts
from gemel.train.settings import is_above, is_whole, one_or_more
from gemel.train.values import TEXT_OR_TEXTS, check_keys, check_types

_IN_A_LAYER = re.compile(r"\.\d+\.")  # the linear maps of numbered layers, not those of heads and poolers


@dataclass(frozen=True)
class Lora:
    """How thin the adapters are, how much they count, and which linear maps have one."""

    rank: int = 8
    alpha: float = 16.0  # the product is scaled by alpha / rank
    targets: tuple[str, ...] = ()  # last parts of names, such as "query"; none means all maps of all layers

    def __post_init__(self) -> None:
        if not is_whole(self.rank, 1):
            raise InvalidInput(f"the rank of adapters is {self.rank!r}; expected a whole number from 1")
        if not is_above(self.alpha, 0) or math.isinf(self.alpha):
            raise InvalidInput(f"the alpha of adapters is {self.alpha!r}; expected more than 0")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Lora:
        """Settings out of a recipe; an unknown one is an error that lists the known ones."""
        check_keys(values, tuple(field.name for field in fields(cls)), "lora")
        check_types(values, {"targets": TEXT_OR_TEXTS}, "lora")
        return cls(**{**values, "targets": one_or_more(values.get("targets", ()))})


class AdaptedLinear(nn.Linear):
    """x W' + b + (x A') B' alpha / rank: W and b frozen under their own names, A and B learnt."""

    lora_a: nn.Parameter  # (rank, in)
    lora_b: nn.Parameter  # (out, rank), zero at first: an adapted model starts as the model it was
    scale: float

    @classmethod
    def around(cls, linear: nn.Linear, lora: Lora, generator: torch.Generator) -> AdaptedLinear:
        """The map with an adapter, sharing its weights."""
        adapted = cls.__new__(cls)
        nn.Module.__init__(adapted)
        adapted.in_features, adapted.out_features = linear.in_features, linear.out_features
        adapted.weight, adapted.bias = linear.weight, linear.bias
        start = torch.randn(lora.rank, linear.in_features, generator=generator) / math.sqrt(
            linear.in_features
        )
        adapted.lora_a = nn.Parameter(start.to(linear.weight))
        adapted.lora_b = nn.Parameter(linear.weight.new_zeros(linear.out_features, lora.rank))
        adapted.scale = lora.alpha / lora.rank
        return adapted.train(linear.training)

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) to (..., out)."""
        return super().forward(input) + F.linear(F.linear(input, self.lora_a), self.lora_b) * self.scale

    def merged(self) -> MergedLinear:
        """A plain map that does the same."""
        plain = MergedLinear(self.in_features, self.out_features, device="meta")
        plain.weight = nn.Parameter((self.weight + self.scale * self.lora_b @ self.lora_a).detach())
        plain.bias = self.bias
        return plain.train(self.training)

    def settled(self) -> nn.Linear:
        """What stays after the training; an adapter that has learnt nothing leaves the map as it was."""
        if self.lora_b.count_nonzero():
            return self.merged()
        plain = nn.Linear(self.in_features, self.out_features, device="meta")
        plain.weight, plain.bias = self.weight, self.bias
        return plain.train(self.training)


class MergedLinear(nn.Linear):
    """A map that an adapter was added to: other weights than those a checkpoint of adapters stands beside."""


def add_adapters(model: Any, lora: Lora, seed: int) -> int:
    """Put an adapter beside the chosen linear maps of the pretrained part; how many there are."""
    pretrained = _pretrained(model)
    if any(isinstance(module, AdaptedLinear | MergedLinear) for module in pretrained.modules()):
        raise InvalidInput(
            "this model was trained with adapters already, which are part of its weights; open it anew from "
            "its folder"
        )
    generator = torch.Generator().manual_seed(seed)
    linear = {name: module for name, module in pretrained.named_modules() if type(module) is nn.Linear}
    inner = {name: module for name, module in linear.items() if _IN_A_LAYER.search(f".{name}.")}
    chosen = {
        name: module
        for name, module in inner.items()
        if not lora.targets or name.rpartition(".")[2] in lora.targets
    }
    missing = set(lora.targets) - {name.rpartition(".")[2] for name in chosen}
    if missing or not chosen:
        known = sorted({name.rpartition(".")[2] for name in inner})
        raise InvalidInput(
            f"no linear map of this model is named {', '.join(sorted(missing)) or 'at all'}; "
            f"choose the targets of adapters from {', '.join(known)}"
        )
    for name, module in chosen.items():
        _put(pretrained, name, AdaptedLinear.around(module, lora, generator))
    return len(chosen)


def keep_to_adapters(model: Any, trained: dict[str, nn.Parameter]) -> dict[str, nn.Parameter]:
    """Freeze the pretrained part but for its adapters; what is left to train, new heads included.

    A cross-encoder's pooler belongs to its head: many pretrained models have none, and it is new.
    """
    base = of_base_model(model)
    for value in _pretrained(model).parameters():
        value.requires_grad_(id(value) not in base and value.requires_grad)
    return {name: value for name, value in trained.items() if id(value) not in base}


def of_base_model(model: Any) -> set[int]:
    """The ids of the tensors that a model with adapters has from the one it began with."""
    heads = () if hasattr(model, "backbone") else ("pooler.",)
    return {
        id(value)
        for name, value in _pretrained(model).state_dict(keep_vars=True).items()
        if ".lora_" not in name and not name.startswith(heads)
    }


@contextmanager
def merged(model: Any) -> Iterator[None]:
    """The model without adapters for a while, each added to the map beside it; then as it was, to the bit."""
    adapted = _adapted(model)
    plain = {name: module.merged() for name, module in adapted.items()}
    try:
        _put_all(model, plain)  # within, as a signal that was held is heard at its end
        yield
    finally:
        _put_all(model, adapted)


def settle_adapters(model: Any) -> None:
    """Leave a plain model behind, whose maps do what they did with their adapters."""
    _put_all(model, {name: module.settled() for name, module in _adapted(model).items()})


def _pretrained(model: Any) -> nn.Module:
    """The part of an encoder or a cross-encoder that was there before: not its tail or new head."""
    module: nn.Module
    if hasattr(model, "backbone"):
        module = model.backbone
    elif hasattr(model, "transformer"):
        module = getattr(model.transformer, model.transformer.base_model_prefix)
    else:
        raise InvalidInput(
            f"adapters stand beside the layers of a transformer, and {type(model).__name__} has none; leave "
            "lora out"
        )
    return module


def _adapted(model: nn.Module) -> dict[str, AdaptedLinear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, AdaptedLinear)}


def _put_all(root: nn.Module, modules: Mapping[str, nn.Module]) -> None:
    with held_interrupts():  # some of each would be neither
        for name, module in modules.items():
            _put(root, name, module)


def _put(root: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(root.get_submodule(parent), last, module)
