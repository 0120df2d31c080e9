"""What follows the pooling: Dense layers and normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gemel.checkpoint import Dense, EncoderSpec, Normalise

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity,
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "leaky_relu": nn.LeakyReLU,
    "softplus": nn.Softplus,
    "mish": nn.Mish,
}


class DenseLayer(nn.Module):
    """A linear layer and an activation, with the tensor names of the folder format."""

    def __init__(self, dense: Dense) -> None:
        super().__init__()
        self.linear = nn.Linear(dense.in_features, dense.out_features, bias=dense.bias)
        self.activation = ACTIVATIONS[dense.activation]()
        self.adds_input = dense.residual
        self.residual: nn.Module = nn.Identity()
        if dense.residual and dense.in_features != dense.out_features:
            self.residual = nn.Linear(dense.in_features, dense.out_features, bias=False)

    def forward(self, vectors: Tensor) -> Tensor:
        """(batch, in) to (batch, out)."""
        out: Tensor = self.activation(self.linear(vectors))
        return out + self.residual(vectors) if self.adds_input else out


class Tail(nn.Module):
    """Pooled vectors into sentence vectors."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.dense = nn.ModuleList(DenseLayer(dense) for dense in spec.dense_layers)
        self._normalises = tuple(isinstance(layer, Normalise) for layer in spec.tail)

    def load(self, tensors: list[Mapping[str, Any]]) -> None:
        """Take each Dense layer's weights."""
        for layer, arrays in zip(self.dense, tensors, strict=True):
            layer.load_state_dict({name: torch.from_numpy(array).float() for name, array in arrays.items()})

    def forward(self, vectors: Tensor) -> Tensor:
        """(batch, pooled) to (batch, dim)."""
        dense = iter(self.dense)
        for normalises in self._normalises:
            vectors = nn.functional.normalize(vectors, dim=-1) if normalises else next(dense)(vectors)
        return vectors
