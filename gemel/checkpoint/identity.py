"""Which model it is: a hash of all that moves a vector or a score, and of nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gemel.checkpoint.fields import read_json
from gemel.checkpoint.spec import EncoderSpec
from gemel.checkpoint.tokenizer_settings import (
    NORMALISER_KEYS,
    TOKENIZER_FILES,
    later_tokens,
    said_otherwise,
    vocabulary_of,
)
from gemel.checkpoint.weights import open_weights
from gemel.errors import ModelMismatch

if TYPE_CHECKING:
    from gemel.checkpoint.folder import ModelFolder, RerankerFolder

Folder = TypeVar("Folder", "ModelFolder", "RerankerFolder")

# Written anew by every program that saves a config, and without influence on an encoder's vectors. The
# keys are forbidden, not allowed: an architecture's key that a list of allowed ones forgot would make two
# different models look alike, and a key forgotten here only makes one model look like two.
VOLATILE_CONFIG_KEYS = {
    "_name_or_path",
    "architectures",
    "bos_token_id",
    "classifier_dropout",
    "dtype",
    "eos_token_id",
    "gradient_checkpointing",
    "tie_word_embeddings",
    "torch_dtype",
    "transformers_version",
    "use_cache",
}
# Written out by newer versions of transformers where older ones said nothing and meant the same.
IMPLIED_CONFIG_VALUES = {
    "add_cross_attention": False,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "position_embedding_type": "absolute",
}


def fingerprint(
    model: ModelFolder | RerankerFolder, chosen: Mapping[str, Any], more_files: tuple[Path, ...] = ()
) -> str:
    """128 bits of sha256 over everything that moves a vector or a score."""
    digest = hashlib.sha256()
    config = {
        key: value
        for key, value in model.config.items()
        if key not in VOLATILE_CONFIG_KEYS and value is not None and value != IMPLIED_CONFIG_VALUES.get(key)
    }
    digest.update(json.dumps([chosen, config], sort_keys=True).encode())
    with model.seen.unchanged():
        for files in (model.weight_files, *((file,) for file in more_files)):
            for piece in _weight_bytes(files):
                digest.update(piece)
        digest.update(_tokenizer_bytes(model))
    return digest.hexdigest()[:32]


def _weight_bytes(files: tuple[Path, ...]) -> Iterator[bytes | memoryview]:
    weights = open_weights(files)
    for name in sorted(weights):
        if name.endswith("position_ids"):  # a counter some exporters store, not a weight
            continue
        entry = weights[name].entries[name]
        yield f"{name}:{entry.dtype}:{entry.shape};".encode()
        yield weights[name].raw(name)


def same_model(pickled: Folder, found: Folder) -> Folder:
    """The folder that was found, if it is the model that was pickled."""
    if found.fingerprint != pickled.fingerprint:
        raise ModelMismatch(
            f"{found.path} holds the model {found.fingerprint}, and {pickled.fingerprint} was there when it "
            "was pickled: put that model back, or open the new one by its name"
        )
    return found


def settled(spec: EncoderSpec) -> dict[str, Any]:
    """The spec's values without empty prompts: newer programs add them, and they say nothing."""
    values = spec.to_dict()
    values["prompts"] = {name: prompt for name, prompt in spec.prompts.items() if prompt}
    if spec.default_prompt not in values["prompts"]:
        values["default_prompt"] = None
    return values


def _tokenizer_bytes(model: ModelFolder | RerankerFolder) -> bytes:
    """The tokenizer, however its JSON is laid out; gemel ignores the truncation and padding in it."""
    folder, settings = model.transformer, model.tokenizer_config
    name = next((name for name in TOKENIZER_FILES if (folder / name).is_file()), None)
    tokenizer: dict[str, Any] = {}
    if name == "tokenizer.json":
        tokenizer = read_json(folder / name)
        kept = {key: value for key, value in tokenizer.items() if key not in ("truncation", "padding")}
        stated, known = json.dumps(kept, sort_keys=True).encode(), vocabulary_of(tokenizer)
    else:
        vocabulary = (folder / name).read_bytes() if name else b""
        stated = json.dumps({key: settings.get(key) for key in NORMALISER_KEYS}).encode() + vocabulary
        known = set(vocabulary.decode(errors="replace").split("\n"))
    changes = said_otherwise(settings, tokenizer, model.config.get("model_type"))
    later = [entry for entry in later_tokens(folder, settings).items() if entry[0] not in known]
    # Most folders say the same everywhere, and keep the fingerprint of what they state.
    return stated + (json.dumps([changes, later], sort_keys=True).encode() if changes or later else b"")
