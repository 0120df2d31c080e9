"""A checkpoint's tensors handed over to the native engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel import _native
from gemel.checkpoint import WeightFile, fields, first_position, open_weights
from gemel.engine.families import ACTIVATIONS, Family, family_of
from gemel.errors import InvalidModel

Array = npt.NDArray[np.float32]
HEAD_ALIGNMENT = 16  # numbers of a head that the engine handles at once; narrower heads are filled with zeros
LOG2_E = math.log2(math.e)
# Groups of the inputs of each feed-forward output that keep a scale of their own: four take a twelfth of the
# error away, for less than 1% of the time (docs/log.md).
DOWN_GROUPS = 4
STORED_BUFFERS = (".position_ids",)  # counters that some programs store with the weights
OLD_NAMES = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


@dataclass(frozen=True)
class EngineSettings:
    """How the engine computes; none of it changes what a model means."""

    precision: str
    instruction_set: str
    n_threads: int
    tokens_at_once: int = 0  # of a micro-batch; 0: as many as the cache holds


class Tensors:
    """A checkpoint's tensors by the names of their family, mapped from disk, checked when they are read."""

    def __init__(self, files: tuple[Path, ...], prefix: str) -> None:
        self._files: dict[str, WeightFile] = open_weights(files)
        self._where = files[0].parent
        self._prefix = prefix if any(name.startswith(prefix) for name in self._files) else ""
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self._found(name) is not None

    def read(self, name: str, *shape: int) -> Array:
        """A tensor as float32, or a sentence that says what is missing or misshapen."""
        found = self._found(name)
        if found is None:
            raise InvalidModel(f"{self._where}: the weights lack the tensor {name!r}; get the folder again")
        array = self._files[found].view(found)
        if array.shape != shape:
            raise InvalidModel(
                f"{self._where}: tensor {found!r} has shape {array.shape}, expected {shape} by config.json"
            )
        self._read.add(found)
        return array

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the tensor where the engine refuses numbers that are none."""
        try:
            yield
        except InvalidModel:
            raise
        except ValueError:
            for name in sorted(self._read):
                if not np.isfinite(self._files[name].view(name)).all():
                    raise not_finite(self._where, name) from None
            raise

    def refuse_unread(self, part: str) -> None:
        """Tensors of a layer that is computed without them mean that the layer was another one."""
        for name in sorted(self._files.keys() - self._read):
            if name.startswith((part, self._prefix + part)) and not name.endswith(STORED_BUFFERS):
                raise InvalidModel(
                    f"{self._where}: the weights have the tensor {name!r}, for which the engine has no "
                    "place, so the vectors would be another model's; merge adapters into the weights, or use "
                    "another model"
                )

    def _found(self, name: str) -> str | None:
        candidates = [self._prefix + name, name]
        candidates += [
            candidate.replace(new, old) for candidate in candidates for new, old in OLD_NAMES.items()
        ]
        return next((candidate for candidate in candidates if candidate in self._files), None)


def not_finite(where: Path, name: str) -> InvalidModel:
    """The error that a tensor with NaN or infinity calls for."""
    return InvalidModel(
        f"{where}: tensor {name!r} holds numbers that are not finite, as after a training that went astray: "
        "get the folder again, or take an earlier checkpoint"
    )


class Assembly:
    """One transformer on its way into the engine."""

    def __init__(
        self, folder: Path, config: Mapping[str, Any], files: tuple[Path, ...], settings: EngineSettings
    ) -> None:
        family = family_of(config)
        assert family is not None, "only families that the engine knows are assembled"
        self.family: Family = family
        self.config = config
        self.folder = folder
        self.tensors = Tensors(files, family.prefix)
        self.hidden = self._count(family.hidden_size)
        self.n_heads = self._count(family.n_heads)
        if self.hidden % self.n_heads:
            raise InvalidModel(f"{folder}: {self.n_heads} heads cannot share a width of {self.hidden}")
        self.inner = self._count("hidden_dim" if family.hidden_size == "dim" else "intermediate_size")
        self.head_dim = -(-self.hidden // self.n_heads // HEAD_ALIGNMENT) * HEAD_ALIGNMENT
        self.first_position = first_position(config)
        self.n_positions = self._count("max_position_embeddings") - self.first_position
        self.engine = _native.Engine(self._settings(settings), settings.instruction_set, settings.n_threads)

    @property
    def _file(self) -> str:
        return str(self.folder / "config.json")

    @property
    def operations_per_token(self) -> int:
        """Multiplications and additions of the matrix products for one token."""
        a_layer = 4 * self.hidden * self.hidden + 2 * self.hidden * self.inner
        return 2 * self._count(self.family.n_layers) * a_layer

    def build(self) -> _native.Engine:
        """The engine with all weights of the transformer; the tail is still to be added."""
        with self.tensors.named():
            self._add_embeddings()
            if self.family.distance_buckets:
                self.engine.set_distance_bias(self._distance_bias(self.family.distance_buckets))
            for layer in range(self._count(self.family.n_layers)):
                prefix = self.family.layer.format(layer)
                self.engine.add_layer(self._layer(prefix))
                self.tensors.refuse_unread(prefix)
        return self.engine

    def add_classifier(self, n_labels: int, activation: str) -> None:
        """A cross-encoder's head."""
        head = self.family.head
        with self.tensors.named():
            weight, bias = self._linear(head.hidden, self.hidden, self.hidden)
            self.engine.add_dense(weight, bias, head.activation)
            weight, bias = self._linear(head.output, n_labels, self.hidden)
            self.engine.add_dense(weight, bias, activation)

    def _count(self, key: str) -> int:
        value = self.config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidModel(
                f"{self.folder}: config.json says {key} = {value!r}, and a whole number was expected"
            )
        return value

    def _settings(self, settings: EngineSettings) -> dict[str, Any]:
        epsilon = self.family.epsilon
        if epsilon is None:
            epsilon = fields.number(self.config, "layer_norm_eps", self._file, self.family.default_epsilon)
        return {
            "hidden": self.hidden,
            "n_heads": self.n_heads,
            "head_dim": self.head_dim,
            "n_positions": self.n_positions,
            "first_position": self.first_position,
            "activation": ACTIVATIONS[str(self.config.get(self.family.activation, "gelu"))],
            "epsilon": epsilon,
            "is_int8": settings.precision == "int8",
            "tokens_at_once": settings.tokens_at_once,
            "n_down_groups": DOWN_GROUPS,
        }

    def _add_embeddings(self) -> None:
        width = self.hidden
        if self.family.projects_embedding:
            width = fields.integer(self.config, "embedding_size", self._file) or self.hidden
        n_types = fields.integer(self.config, "type_vocab_size", self._file, least=0) or 0
        name = "embeddings.{}_embeddings.weight"
        types = name.format("token_type")
        self.engine.set_embeddings(
            self.tensors.read(name.format("word"), self._count("vocab_size"), width),
            self.tensors.read(name.format("position"), self._count("max_position_embeddings"), width),
            self.tensors.read(types, n_types, width) if types in self.tensors else None,
            self.tensors.read("embeddings.LayerNorm.weight", width),
            self.tensors.read("embeddings.LayerNorm.bias", width),
        )
        if width != self.hidden:
            self.engine.set_projection(*self._linear("embeddings_project", self.hidden, width))

    def _layer(self, prefix: str) -> dict[str, Array]:
        family, hidden = self.family, self.hidden
        # The scores come out as powers of two, and already divided by the square root of the head's width.
        scale = LOG2_E / math.sqrt(hidden // self.n_heads)
        projections = [
            self._linear(prefix + name, hidden, hidden) for name in (family.query, family.key, family.value)
        ]
        factors = (scale, 1.0, 1.0)
        weights = [
            self._spread(weight * np.float32(f)) for (weight, _), f in zip(projections, factors, strict=True)
        ]
        biases = [
            self._spread(bias * np.float32(f)) for (_, bias), f in zip(projections, factors, strict=True)
        ]
        output, output_bias = self._linear(prefix + family.attention_output, hidden, hidden)
        up, up_bias = self._linear(prefix + family.up, self.inner, hidden)
        down, down_bias = self._linear(prefix + family.down, hidden, self.inner)
        return {
            "query_key_value.weight": np.concatenate(weights),
            "query_key_value.bias": np.concatenate(biases),
            "attention_output.weight": np.ascontiguousarray(self._spread(output.T).T),
            "attention_output.bias": output_bias,
            "up.weight": up,
            "up.bias": up_bias,
            "down.weight": down,
            "down.bias": down_bias,
            "after_attention.gain": self.tensors.read(f"{prefix}{family.after_attention}.weight", hidden),
            "after_attention.shift": self.tensors.read(f"{prefix}{family.after_attention}.bias", hidden),
            "after_feed_forward.gain": self.tensors.read(
                f"{prefix}{family.after_feed_forward}.weight", hidden
            ),
            "after_feed_forward.shift": self.tensors.read(
                f"{prefix}{family.after_feed_forward}.bias", hidden
            ),
        }

    def _linear(self, name: str, n_outputs: int, n_inputs: int) -> tuple[Array, Array]:
        return (
            self.tensors.read(f"{name}.weight", n_outputs, n_inputs),
            self.tensors.read(f"{name}.bias", n_outputs),
        )

    def _spread(self, rows: Array) -> Array:
        """The rows of each head followed by zeros, up to the width that the engine handles."""
        narrow = self.hidden // self.n_heads
        if narrow == self.head_dim:
            return rows
        by_head = rows.reshape(self.n_heads, narrow, *rows.shape[1:])
        room = np.zeros((self.n_heads, self.head_dim, *rows.shape[1:]), np.float32)
        room[:, :narrow] = by_head
        return room.reshape(self.n_heads * self.head_dim, *rows.shape[1:])

    def _distance_bias(self, name: str) -> Array:
        """MPNet's bias of each head for every distance from a query to a key."""
        n_buckets = fields.integer(self.config, "relative_attention_num_buckets", self._file) or 32
        table = self.tensors.read(name, n_buckets, self.n_heads)
        distances = np.arange(-(self.n_positions - 1), self.n_positions)
        buckets = distance_buckets(distances, n_buckets)
        return np.ascontiguousarray(table[buckets].T * np.float32(LOG2_E))


def distance_buckets(
    distances: npt.NDArray[np.int64], n_buckets: int, furthest: int = 128
) -> npt.NDArray[np.int64]:
    """T5's buckets: near distances have one each, further ones share them by their logarithm."""
    half = n_buckets // 2
    exact = half // 2
    away = np.abs(distances)
    with np.errstate(divide="ignore"):
        steps = np.log(away.astype(np.float32) / exact) / math.log(furthest / exact) * (half - exact)
    far = np.minimum(exact + np.where(away < exact, 0, steps).astype(np.int64), half - 1)
    buckets: npt.NDArray[np.int64] = np.where(away < exact, away, far) + np.where(distances > 0, half, 0)
    return buckets
