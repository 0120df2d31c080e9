"""The JSON of Sentence-Transformers folders, in both dialects, to and from an EncoderSpec.

Since 5.4 Sentence-Transformers writes a shorter dialect that older readers (and other servers) cannot
parse. gemel reads both and writes the older one, which everybody reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gemel.checkpoint.spec import ACTIVATIONS, POOLING_MODES, Dense, EncoderSpec, Normalise, Pooling
from gemel.errors import InvalidModel

Json = Mapping[str, Any]

OLD_POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
POOLING_KEYS = {
    "word_embedding_dimension",
    "embedding_dimension",
    "pooling_mode",
    "include_prompt",
    *OLD_POOLING_KEYS.values(),
}
# The shorter dialect spells one mode differently.
MODE_ALIASES = {"mean_sqrt_len_tokens": "mean_sqrt_len"}
TRANSFORMER_CONFIG_NAMES = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
# Architectures whose position ids start after the padding id, so that fewer positions hold tokens.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer")
NO_LIMIT = 1_000_000  # tokenizer configs say "no limit" with numbers like 1e30
DEFAULT_MAX_TOKENS = 512


def parse_pooling(config: Json, file: str) -> tuple[int | None, Pooling]:
    """The width and the pooling that a Pooling config names."""
    unknown = sorted(set(config) - POOLING_KEYS)
    if unknown:
        raise InvalidModel(
            f"{file} has the unknown key {unknown[0]!r}; the known keys are {', '.join(sorted(POOLING_KEYS))}"
        )
    width = config.get("word_embedding_dimension", config.get("embedding_dimension"))
    if "pooling_mode" in config:
        named = config["pooling_mode"]
        named = [named] if isinstance(named, str) else named
        modes = tuple(MODE_ALIASES.get(mode, mode) for mode in named)
    else:
        modes = tuple(mode for mode in POOLING_MODES if config.get(OLD_POOLING_KEYS[mode])) or ("mean",)
    return width, Pooling(modes, include_prompt=config.get("include_prompt", True))


def format_pooling(pooling: Pooling, width: int) -> dict[str, Any]:
    """A Pooling config in the older dialect, or in the newer where only that can say the order."""
    if pooling.modes != tuple(mode for mode in POOLING_MODES if mode in pooling.modes):
        spelled = {mode: alias for alias, mode in MODE_ALIASES.items()}
        modes = [spelled.get(mode, mode) for mode in pooling.modes]
        return {
            "embedding_dimension": width,
            "pooling_mode": modes,
            "include_prompt": pooling.include_prompt,
        }
    switches = {key: mode in pooling.modes for mode, key in OLD_POOLING_KEYS.items()}
    return {"word_embedding_dimension": width, **switches, "include_prompt": pooling.include_prompt}


def parse_dense(config: Json, file: str) -> Dense:
    """The layer that a Dense config names."""
    for key in ("module_input_name", "module_output_name"):
        if config.get(key) not in (None, "sentence_embedding"):
            raise InvalidModel(f"{file} works on {config[key]!r}; gemel applies Dense to the sentence only")
    dotted = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    try:
        return Dense(
            in_features=int(config["in_features"]),
            out_features=int(config["out_features"]),
            bias=bool(config.get("bias", True)),
            activation=activation_name(dotted),
            residual=bool(config.get("use_residual", False)),
        )
    except KeyError as missing:
        raise InvalidModel(f"{file} lacks the key {missing}") from None


def format_dense(dense: Dense) -> dict[str, Any]:
    """A Dense config as every Sentence-Transformers reads it."""
    config: dict[str, Any] = {
        "in_features": dense.in_features,
        "out_features": dense.out_features,
        "bias": dense.bias,
        "activation_function": TORCH_ACTIVATIONS[dense.activation],
    }
    return {**config, "use_residual": True} if dense.residual else config


def activation_name(dotted: str) -> str:
    short = dotted.rsplit(".", 1)[-1].lower()
    squeezed = {name.replace("_", ""): name for name in ACTIVATIONS}
    return squeezed.get(short, short)


TORCH_ACTIVATIONS = {
    name: "torch.nn.modules.activation." + class_name
    for name, class_name in {
        "tanh": "Tanh",
        "relu": "ReLU",
        "gelu": "GELU",
        "sigmoid": "Sigmoid",
        "silu": "SiLU",
        "elu": "ELU",
        "leaky_relu": "LeakyReLU",
        "softplus": "Softplus",
        "mish": "Mish",
    }.items()
} | {"identity": "torch.nn.modules.linear.Identity"}


def max_tokens(settings: Json, tokenizer_config: Json, config: Json) -> int:
    """The most tokens a text may have, special ones included: what the folder says, and what fits."""
    wanted = settings.get("max_seq_length") or tokenizer_config.get("model_max_length")
    fits = config.get("max_position_embeddings")
    if isinstance(fits, int) and config.get("model_type") in OFFSET_POSITIONS:
        fits -= int(config.get("pad_token_id", 1)) + 1
    limits = [int(limit) for limit in (wanted, fits) if limit and 0 < limit < NO_LIMIT]
    return min(limits, default=DEFAULT_MAX_TOKENS)


def check_transformer_settings(settings: Json, file: str, *, task: str) -> None:
    """Refuse what would silently change the vectors."""
    if settings.get("transformer_task", task) != task:
        raise InvalidModel(
            f"{file} is a model for {settings['transformer_task']!r}, and {task!r} was expected: "
            "load_encoder opens sentence encoders, load_reranker opens cross-encoders"
        )
    if settings.get("processing_kwargs"):
        raise InvalidModel(f"{file} sets processing_kwargs, which gemel cannot honour")


def parse_model_settings(config: Json) -> dict[str, Any]:
    """Prompts, truncation and similarity out of config_sentence_transformers.json."""
    return {
        "prompts": dict(config.get("prompts") or {}),
        "default_prompt": config.get("default_prompt_name"),
        "truncate_dim": config.get("truncate_dim"),
        "similarity": config.get("similarity_fn_name") or "cosine",
    }


def format_model_settings(spec: EncoderSpec, version: str) -> dict[str, Any]:
    """config_sentence_transformers.json for this encoder."""
    settings: dict[str, Any] = {
        "model_type": "SentenceTransformer",
        "__version__": {"gemel": version},
        "prompts": dict(spec.prompts),
        "default_prompt_name": spec.default_prompt,
        "similarity_fn_name": spec.similarity,
    }
    return {**settings, "truncate_dim": spec.truncate_dim} if spec.truncate_dim else settings


def format_modules(tail: Sequence[Dense | Normalise]) -> list[dict[str, Any]]:
    """modules.json for a transformer, a pooling and this tail."""
    kinds = [
        "Transformer",
        "Pooling",
        *("Dense" if isinstance(layer, Dense) else "Normalize" for layer in tail),
    ]
    return [
        {
            "idx": index,
            "name": str(index),
            "path": f"{index}_{kind}" if index else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, kind in enumerate(kinds)
    ]
