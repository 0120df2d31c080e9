"""The JSON of Sentence-Transformers folders, in both dialects, to and from an EncoderSpec.

Since 5.4 Sentence-Transformers writes a shorter dialect that older readers (and other servers) cannot
parse. gemel reads both and writes the older one, which everybody reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemel.checkpoint import fields
from gemel.checkpoint.fields import Json
from gemel.checkpoint.spec import ACTIVATIONS, POOLING_MODES, Dense, EncoderSpec, Normalise, Pooling
from gemel.errors import InvalidModel

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
# What Sentence-Transformers hands to the readers of transformers, by its older and its newer names.
READER_ARGUMENTS = (
    "config_args",
    "model_args",
    "tokenizer_args",
    "config_kwargs",
    "model_kwargs",
    "processor_kwargs",
)
# Architectures whose position ids start after the padding id, so that fewer positions hold tokens.
OFFSET_POSITIONS = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "mpnet",
    "longformer",
    "roberta-prelayernorm",
    "data2vec-text",
)
NO_LIMIT = 1_000_000  # tokenizer configs say "no limit" with numbers like 1e30
DEFAULT_MAX_TOKENS = 512


def parse_pooling(config: Json, file: str) -> tuple[int | None, Pooling]:
    """The width and the pooling that a Pooling config names."""
    unknown = sorted(set(config) - POOLING_KEYS)
    if unknown:
        raise InvalidModel(
            f"{file} has the unknown key {unknown[0]!r}; the known keys are {', '.join(sorted(POOLING_KEYS))}"
        )
    width = fields.integer(config, "word_embedding_dimension", file)
    width = fields.integer(config, "embedding_dimension", file) if width is None else width
    include_prompt = fields.flag(config, "include_prompt", file, default=True)
    modes = _pooling_modes(config, file)
    try:
        return width, Pooling(modes, include_prompt=include_prompt)
    except InvalidModel as error:
        raise InvalidModel(f"{file}: {error}") from None


def _pooling_modes(config: Json, file: str) -> tuple[str, ...]:
    if "pooling_mode" not in config:
        named = [mode for mode in POOLING_MODES if fields.flag(config, OLD_POOLING_KEYS[mode], file, False)]
        return tuple(named) or ("mean",)
    value = config["pooling_mode"]
    modes: Any = [value] if isinstance(value, str) else value
    if not isinstance(modes, list) or not modes or not all(isinstance(mode, str) for mode in modes):
        raise fields.wrong(config, "pooling_mode", file, "a mode or a list of modes")
    return tuple(MODE_ALIASES.get(str(mode), str(mode)) for mode in modes)


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
    dotted = fields.text(config, "activation_function", file) or "torch.nn.modules.activation.Tanh"
    in_features = fields.required_integer(config, "in_features", file)
    out_features = fields.required_integer(config, "out_features", file)
    bias = fields.flag(config, "bias", file, default=True)
    residual = fields.flag(config, "use_residual", file, default=False)
    try:
        return Dense(in_features, out_features, bias, activation_name(dotted), residual)
    except InvalidModel as error:
        raise InvalidModel(f"{file}: {error}") from None


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


def max_tokens(settings: Json, tokenizer_config: Json, config: Json, folder: Path | None = None) -> int:
    """The most tokens a text may have, special ones included: what the folder says, and what fits."""
    folder = folder or Path()
    wanted = fields.integer(settings, "max_seq_length", str(folder / TRANSFORMER_CONFIG_NAMES[0]))
    if wanted is None:
        wanted = _tokenizer_limit(tokenizer_config, str(folder / "tokenizer_config.json"))
    fits = _positions(config, str(folder / "config.json"))
    limits = [limit for limit in (wanted, fits) if limit is not None and limit < NO_LIMIT]
    return min(limits, default=DEFAULT_MAX_TOKENS)


def _tokenizer_limit(tokenizer_config: Json, file: str) -> int | None:
    limit = tokenizer_config.get("model_max_length")
    if isinstance(limit, int | float) and limit >= NO_LIMIT:
        return None
    return fields.integer(tokenizer_config, "model_max_length", file)


def _positions(config: Json, file: str) -> int | None:
    key = "n_positions" if config.get("model_type") == "gpt2" else "max_position_embeddings"
    positions = fields.integer(config, key, file)
    if positions is None or config.get("model_type") not in OFFSET_POSITIONS:
        return positions
    padding = fields.integer({"pad_token_id": 1, **config}, "pad_token_id", file, least=0)
    if padding is None or first_position(config) >= positions:
        expected = f"a whole number below {positions - 1}, after which the positions start,"
        raise fields.wrong(config, "pad_token_id", file, expected)
    return positions - first_position(config)


def first_position(config: Json) -> int:
    """The position of a text's first token: some architectures count from their padding token's number on."""
    architecture = config.get("model_type")
    if architecture not in OFFSET_POSITIONS:
        return 0
    padding = 1 if architecture == "mpnet" else config.get("pad_token_id", 1)  # MPNet's is fixed in its code
    return int(padding) + 1


def check_transformer_settings(settings: Json, file: str, *, task: str) -> None:
    """Refuse what would silently change the vectors."""
    if settings.get("transformer_task", task) != task:
        raise InvalidModel(
            f"{file} is a model for {settings['transformer_task']!r}, and {task!r} was expected: "
            "load_encoder opens sentence encoders, load_reranker opens cross-encoders"
        )
    fields.integer(settings, "max_seq_length", file)
    fields.flag(settings, "do_lower_case", file, default=False)
    if settings.get("processing_kwargs"):
        raise InvalidModel(f"{file} sets processing_kwargs, which gemel cannot honour")
    for key in READER_ARGUMENTS:
        for name, value in fields.table(settings, key, file).items():
            if value is not None and not _is_harmless(name, value):
                raise InvalidModel(
                    f"{file} sets {name!r} in {key}, which may change the vectors and which gemel cannot "
                    "honour: put it into the folder's own files, and take it out here"
                )


def _is_harmless(name: str, value: Any) -> bool:
    """Whether an argument of transformers' readers moves no vector here: gemel always computes in float32."""
    if name == "trust_remote_code":
        return value is False
    return name in ("torch_dtype", "dtype", "local_files_only", "attn_implementation")


def parse_model_settings(config: Json, file: str) -> dict[str, Any]:
    """Prompts, truncation and similarity out of config_sentence_transformers.json."""
    return {
        "prompts": fields.text_table(config, "prompts", file),
        "default_prompt": fields.text(config, "default_prompt_name", file),
        "truncate_dim": fields.integer(config, "truncate_dim", file),
        "similarity": fields.text(config, "similarity_fn_name", file) or "cosine",
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
