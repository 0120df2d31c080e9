"""What a run leaves behind in memory, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gemel.train.lora import settle_adapters
from gemel.train.steps import Step, module_of


@contextmanager
def left_plain(step: Step) -> Iterator[None]:
    """A model that gives its true vectors, without adapters, and whose parts may move as before.

    The caller's own random numbers go on where they were.
    """
    module = module_of(step)
    could_move = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
    devices = {each.device for each in module.parameters() if each.device.type == "cuda"}
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            settle_adapters(step.model)
            for name, parameter in module.named_parameters():
                parameter.requires_grad_(could_move.get(name, True))
            module.eval()  # its modules are the caller's, whose encoder may be another view of them
