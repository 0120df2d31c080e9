"""The modules of a model as programs look at them: what each one is, without its weights."""

from __future__ import annotations

from typing import Any

from gemel.checkpoint import Dense as DenseSpec
from gemel.checkpoint import EncoderSpec
from gemel.errors import InvalidInput


class Part:
    """One step of a model."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_config_dict()})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"gemel's {type(self).__name__} has no {name}: it tells what the folder says; the engine has the "
            "weights; use the model's encode or predict"
        )

    def get_config_dict(self) -> dict[str, Any]:
        """What is known of it."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class Transformer(Part):
    """Tokens into their vectors."""

    def __init__(self, model: Any, hidden_size: int) -> None:
        self._model, self._hidden_size = model, hidden_size

    @property
    def max_seq_length(self) -> int:
        """How many tokens of a text are read; setting it opens the model anew."""
        return int(self._model.max_seq_length)

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        self._model.max_seq_length = value

    @property
    def tokenizer(self) -> Any:
        """The same as the model's."""
        return self._model.tokenizer

    def get_embedding_dimension(self) -> int:
        """The length of a token's vector."""
        return self._hidden_size

    get_word_embedding_dimension = get_embedding_dimension

    def get_config_dict(self) -> dict[str, Any]:
        """What is known of it."""
        return {"max_seq_length": self.max_seq_length}


class Pooling(Part):
    """Vectors of tokens into one vector."""

    def __init__(self, spec: EncoderSpec) -> None:
        modes = spec.pooling.modes
        self.embedding_dimension = spec.hidden_size
        self.pooling_mode = modes[0] if len(modes) == 1 else modes
        self.include_prompt = spec.pooling.include_prompt
        self._n_modes = len(modes)

    def get_embedding_dimension(self) -> int:
        """The length of the vector."""
        return self.embedding_dimension * self._n_modes

    get_sentence_embedding_dimension = get_embedding_dimension
    pooling_output_dimension = property(get_embedding_dimension)


class Dense(Part):
    """A linear layer."""

    def __init__(self, spec: DenseSpec) -> None:
        self.in_features, self.out_features, self.bias = spec.in_features, spec.out_features, spec.bias

    def get_embedding_dimension(self) -> int:
        """The length of the vector."""
        return self.out_features

    get_sentence_embedding_dimension = get_embedding_dimension


class Normalize(Part):
    """A vector to unit length."""


class StaticEmbedding(Part):
    """Texts into the means of their tokens' rows."""

    def __init__(self, dim: int) -> None:
        self.embedding_dim = dim


def parts_of(model: Any, spec: EncoderSpec) -> list[Part]:
    """The modules of a sentence encoder, in their order."""
    tail = [Dense(layer) if isinstance(layer, DenseSpec) else Normalize() for layer in spec.tail]
    return [Transformer(model, spec.hidden_size), Pooling(spec), *tail]


def part_at(parts: list[Part], place: Any) -> Part:
    """One of the modules; a part of a model is none that could encode."""
    if not isinstance(place, int):
        raise InvalidInput(
            f"model[{place!r}] was asked for; expected the number of a module, such as model[0]"
        )
    return parts[place]
