"""Where each family of transformers keeps its tensors: the architectures that the engine knows, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


@dataclass(frozen=True)
class ClassifierHead:
    """How a cross-encoder turns its first token into scores; names as in the checkpoint."""

    hidden: str
    activation: str
    output: str


@dataclass(frozen=True)
class Family:
    """The names of a family's tensors (without the prefix that some checkpoints add) and of its settings."""

    layer: str  # with {} for the layer's number
    query: str
    key: str
    value: str
    attention_output: str
    after_attention: str
    up: str
    down: str
    after_feed_forward: str
    head: ClassifierHead
    prefix: str  # before everything, in checkpoints with a head
    hidden_size: str = "hidden_size"
    n_layers: str = "num_hidden_layers"
    n_heads: str = "num_attention_heads"
    activation: str = "hidden_act"
    epsilon: float | None = None  # None: the config says
    default_epsilon: float = 1e-12
    projects_embedding: bool = False
    distance_buckets: str | None = None


def _like_bert(prefix: str, head: ClassifierHead, **changes: Any) -> Family:
    return Family(
        layer="encoder.layer.{}.",
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        attention_output="attention.output.dense",
        after_attention="attention.output.LayerNorm",
        up="intermediate.dense",
        down="output.dense",
        after_feed_forward="output.LayerNorm",
        prefix=prefix,
        head=head,
        **changes,
    )


_ROBERTA_HEAD = ClassifierHead("classifier.dense", "tanh", "classifier.out_proj")
_ROBERTA = _like_bert("roberta.", _ROBERTA_HEAD)

FAMILIES: Mapping[str, Family] = {
    "bert": _like_bert("bert.", ClassifierHead("bert.pooler.dense", "tanh", "classifier")),
    "electra": _like_bert(
        "electra.",
        ClassifierHead("classifier.dense", "gelu", "classifier.out_proj"),
        projects_embedding=True,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": Family(
        layer="transformer.layer.{}.",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_output="attention.out_lin",
        after_attention="sa_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        after_feed_forward="output_layer_norm",
        prefix="distilbert.",
        head=ClassifierHead("pre_classifier", "relu", "classifier"),
        hidden_size="dim",
        n_layers="n_layers",
        n_heads="n_heads",
        activation="activation",
        epsilon=1e-12,
    ),
    "mpnet": Family(
        layer="encoder.layer.{}.",
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        attention_output="attention.attn.o",
        after_attention="attention.LayerNorm",
        up="intermediate.dense",
        down="output.dense",
        after_feed_forward="output.LayerNorm",
        prefix="mpnet.",
        head=_ROBERTA_HEAD,
        distance_buckets="encoder.relative_attention_bias.weight",
    ),
}


def family_of(config: Mapping[str, Any]) -> Family | None:
    """The family of a transformer, or None where the engine would compute something else than it means."""
    family = FAMILIES.get(str(config.get("model_type")))
    if family is None or config.get("is_decoder") or config.get("add_cross_attention"):
        return None
    if (config.get("position_embedding_type") or "absolute") != "absolute":
        return None
    if str(config.get(family.activation, "gelu")) not in ACTIVATIONS:
        return None
    return family
