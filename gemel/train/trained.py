"""What a run moves: all parameters, those that nobody has frozen, or adapters alone."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from gemel.errors import InvalidInput
from gemel.train.config import TrainConfig
from gemel.train.lora import add_adapters, keep_to_adapters
from gemel.train.steps import Step, module_of


def trained_parts(step: Step, config: TrainConfig) -> dict[str, nn.Parameter]:
    """The parameters that a run moves, by name; adapters are put in where they are asked for."""
    if config.lora is not None:
        add_adapters(step.model, config.lora, config.seed)
    trained = _trainable(step, config.freeze)
    if config.lora is not None:
        trained = keep_to_adapters(step.model, trained)
    if not trained:
        told = f"freeze is {', '.join(config.freeze)}" if config.freeze else "every parameter is frozen"
        raise InvalidInput(f"{told} and leaves nothing to train; freeze less")
    return trained


def _trainable(step: Step, freeze: tuple[str, ...]) -> dict[str, nn.Parameter]:
    """The parameters that move, by name; a name to freeze that fits nothing is an error.

    What somebody has frozen as torch has it (`requires_grad_(False)`) stays so.
    """
    named = dict(module_of(step).named_parameters())
    names = {name: name.removeprefix("model.") for name in named}
    for prefix in freeze:
        if not any(_is_part(name, prefix) for name in names.values()):
            known = sorted({".".join(name.split(".")[:2]) for name in names.values()})
            raise InvalidInput(
                f"nothing is named {prefix!r}, so it cannot be frozen; there are {', '.join(known)}"
            )
    for name, parameter in named.items():
        if any(_is_part(names[name], frozen) for frozen in freeze):
            parameter.requires_grad_(False)
    return {name: parameter for name, parameter in named.items() if parameter.requires_grad}


def _is_part(name: str, of: str) -> bool:
    """Whether a parameter is that one or within that module: `layer.1` is no part of `layer.11`."""
    return f"{name}.".startswith(f"{of.rstrip('.')}.")


def check_finite(trained: Mapping[str, nn.Parameter], step: int) -> None:
    """Refuse weights that are no numbers: saved, they would take the place of the last good ones."""
    for name, parameter in trained.items():
        if not torch.isfinite(parameter.detach()).all():
            raise InvalidInput(
                f"{name} became infinite or no number by step {step}: lower the learning rate; the last "
                "checkpoint stands"
            )


def adam(trained: dict[str, nn.Parameter], config: TrainConfig) -> torch.optim.AdamW:
    """AdamW in one pass over memory; biases and layer norms are not decayed, as in BERT."""
    decayed = [parameter for parameter in trained.values() if parameter.dim() > 1]
    plain = [parameter for parameter in trained.values() if parameter.dim() <= 1]
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, eps=1e-8, fused=True)
