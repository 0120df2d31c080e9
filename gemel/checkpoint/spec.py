"""What a sentence encoder does with a text, apart from its weights: plain, frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gemel.errors import InvalidInput, InvalidModel

# Several modes are concatenated in the order given. Sentence-Transformers' older dialect cannot say an
# order; it always means this one.
POOLING_MODES = ("cls", "max", "mean", "mean_sqrt_len", "weightedmean", "lasttoken")
ACTIVATIONS = ("identity", "tanh", "relu", "gelu", "sigmoid", "silu", "elu", "leaky_relu", "softplus", "mish")


@dataclass(frozen=True)
class Pooling:
    """How the token embeddings of a text become one vector; the paper's default is the mean."""

    modes: tuple[str, ...] = ("mean",)
    include_prompt: bool = True
    include_special_tokens: bool = True

    def __post_init__(self) -> None:
        unknown = [mode for mode in self.modes if mode not in POOLING_MODES]
        if unknown or not self.modes:
            problem = f"unknown pooling mode {unknown[0]!r}" if unknown else "no pooling mode is given"
            raise InvalidModel(f"{problem}; choose from {', '.join(POOLING_MODES)}")


@dataclass(frozen=True)
class Dense:
    """A linear layer and an activation on top of the pooled vector."""

    in_features: int
    out_features: int
    bias: bool = True
    activation: str = "tanh"
    residual: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InvalidModel(
                f"unknown Dense activation {self.activation!r}; gemel knows {', '.join(ACTIVATIONS)}"
            )

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors this layer needs, by their names in the folder."""
        shapes: dict[str, tuple[int, ...]] = {"linear.weight": (self.out_features, self.in_features)}
        if self.bias:
            shapes["linear.bias"] = (self.out_features,)
        if self.residual and self.in_features != self.out_features:
            shapes["residual.weight"] = (self.out_features, self.in_features)
        return shapes


@dataclass(frozen=True)
class Normalise:
    """Scale the vector to unit length."""


@dataclass(frozen=True)
class EncoderSpec:
    """Everything about an encoder that is not a weight."""

    hidden_size: int
    max_tokens: int
    lowercase: bool = False
    pooling: Pooling = field(default_factory=Pooling)
    tail: tuple[Dense | Normalise, ...] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    truncate_dim: int | None = None
    similarity: str = "cosine"

    def __post_init__(self) -> None:
        if self.default_prompt is not None and self.default_prompt not in self.prompts:
            raise InvalidModel(
                f"the default prompt {self.default_prompt!r} is not among the prompts: {self._prompt_names()}"
            )
        dim = self.hidden_size * len(self.pooling.modes)
        for layer in self.tail:
            if isinstance(layer, Dense):
                if layer.in_features != dim:
                    raise InvalidModel(
                        f"a Dense layer takes vectors of {layer.in_features}, but it is given {dim}"
                    )
                dim = layer.out_features

    @property
    def dim(self) -> int:
        """The length of the vectors."""
        dense = [layer for layer in self.tail if isinstance(layer, Dense)]
        full = dense[-1].out_features if dense else self.hidden_size * len(self.pooling.modes)
        return min(full, self.truncate_dim) if self.truncate_dim else full

    @property
    def dense_layers(self) -> tuple[Dense, ...]:
        """The layers of the tail that have weights."""
        return tuple(layer for layer in self.tail if isinstance(layer, Dense))

    def prompt_text(self, name: str | None) -> str:
        """The prompt of that name; None means the model's default, which may be no prompt at all."""
        name = self.default_prompt if name is None else name
        if name is None:
            return ""
        if name not in self.prompts:
            raise InvalidInput(f"this model has no prompt {name!r}; it has {self._prompt_names()}")
        return self.prompts[name]

    def truncated_to(self, dim: int) -> EncoderSpec:
        """The same encoder with its vectors cut to the first `dim` numbers."""
        full = replace(self, truncate_dim=None).dim
        if not hasattr(dim, "__index__") or not 1 <= dim <= full:
            raise InvalidInput(f"vectors of {full} numbers cannot be cut to {dim!r}; choose 1 to {full}")
        return replace(self, truncate_dim=int(dim))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values that say all of it; equal for both dialects of the same model."""
        values = asdict(self)
        values["tail"] = [{"layer": type(layer).__name__, **asdict(layer)} for layer in self.tail]
        return values

    def _prompt_names(self) -> str:
        return ", ".join(sorted(self.prompts)) or "none"
