"""Dropout as a training wants it, in place of the model's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from gemel.errors import InvalidInput


@contextmanager
def dropout_of(module: nn.Module, share: float | None) -> Iterator[None]:
    """That share of the activations is dropped for a while, wherever the model drops any; None: its own."""
    own = [] if share is None else list(_places(module))
    if share and not own:
        raise InvalidInput(f"dropout is {share} and this model has no dropout to set; leave the setting out")
    for part, name, _ in own:
        setattr(part, name, share)
    try:
        yield
    finally:
        for part, name, before in own:
            setattr(part, name, before)


def has_dropout(module: nn.Module) -> bool:
    """Whether a model has a place for dropout, be it unused."""
    return next(_places(module), None) is not None


def _places(module: nn.Module) -> Iterator[tuple[nn.Module, str, float]]:
    """Where a module keeps what it drops, and how much: layers of dropout, and numbers given to attention."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            yield part, "p", part.p
        elif not isinstance(part, nn.RNNBase):  # drops between its layers only, and hands that over by itself
            for name, value in vars(part).items():
                if "dropout" in name and isinstance(value, float):
                    yield part, name, value
