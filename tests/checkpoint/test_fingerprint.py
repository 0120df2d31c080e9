"""The fingerprint sees everything that moves a vector, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from stand_ins import read_json, write_json

from gemel.checkpoint import read_encoder_folder

# What Sentence-Transformers 6.2 with transformers 5 added to the config of all-MiniLM-L6-v2.
ADDED = {
    "add_cross_attention": False,
    "bos_token_id": None,
    "classifier_dropout": None,
    "dtype": "float32",
    "eos_token_id": None,
    "is_decoder": False,
    "tie_word_embeddings": True,
    "transformers_version": "5.22.2",
    "use_cache": False,
}


def fingerprint(folder: Path) -> str:
    return read_encoder_folder(folder).fingerprint


def change(file: Path, **values: Any) -> None:
    write_json(file, {**(read_json(file) if file.is_file() else {}), **values})


def save_again(folder: Path) -> None:
    """Rewrite a folder's JSON as Sentence-Transformers 6.2 does when it saves what it has loaded."""
    config = read_json(folder / "config.json")
    config.pop("_name_or_path", None)
    write_json(folder / "config.json", {**config, **ADDED})
    tokenizer = read_json(folder / "tokenizer.json")
    tokenizer["truncation"] = {
        "direction": "Right",
        "max_length": 128,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    tokenizer["padding"] = None
    laid_out = json.dumps(dict(reversed(tokenizer.items())), indent=2, ensure_ascii=False)
    (folder / "tokenizer.json").write_text(laid_out, encoding="utf-8")
    limit = read_encoder_folder(folder).spec.max_tokens
    write_json(folder / "sentence_bert_config.json", {"transformer_task": "feature-extraction"})
    change(folder / "tokenizer_config.json", model_max_length=limit, backend="tokenizers")
    change(
        folder / "config_sentence_transformers.json",
        prompts={"query": "", "document": ""},
        default_prompt_name=None,
        similarity_fn_name="cosine",
    )


def test_real_weights_saved_again_elsewhere_keep_their_fingerprint(
    default_weights: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(default_weights, copy, ignore=shutil.ignore_patterns("*.safetensors"))
    weights = load_file(default_weights / "model.safetensors")
    counters = {name for name in weights if name.endswith("position_ids")}
    save_file({name: weights[name] for name in weights.keys() - counters}, copy / "model.safetensors")
    save_again(copy)
    assert fingerprint(copy) == fingerprint(default_weights)


def test_a_stored_counter_of_positions_is_not_a_weight(folder: Path) -> None:
    before = fingerprint(folder)
    weights = load_file(folder / "model.safetensors")
    counter = {"embeddings.position_ids": np.arange(40)[None]}
    save_file({**weights, **counter}, folder / "model.safetensors")
    assert fingerprint(folder) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("is_decoder", True),
        ("hidden_act", "relu"),
        ("layer_norm_eps", 1e-5),
        ("pad_token_id", 1),
        ("something_new", 1),
    ],
)
def test_a_setting_that_may_move_a_vector_changes_the_fingerprint(
    folder: Path, key: str, value: object
) -> None:
    before = fingerprint(folder)
    change(folder / "config.json", **{key: value})
    assert fingerprint(folder) != before


def test_an_empty_prompt_is_no_prompt_and_another_text_is_another_model(folder: Path) -> None:
    file = folder / "config_sentence_transformers.json"
    change(file, prompts={})
    without = fingerprint(folder)
    change(file, prompts={"document": ""}, default_prompt_name="document")
    assert fingerprint(folder) == without
    change(file, prompts={"document": "text: "}, default_prompt_name="document")
    assert fingerprint(folder) != without


def test_a_model_with_a_vocabulary_alone_is_known_by_how_it_is_read(folder: Path) -> None:
    words = read_json(folder / "tokenizer.json")["model"]["vocab"]
    (folder / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    seen = set()
    for lower in (True, False):
        change(folder / "tokenizer_config.json", do_lower_case=lower)
        seen.add(fingerprint(folder))
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", encoding="utf-8")
    seen.add(fingerprint(folder))
    assert len(seen) == 3


@pytest.mark.parametrize(
    "said", [{"do_lower_case": False}, {"strip_accents": False}, {"truncation_side": "left"}]
)
def test_what_stands_beside_the_tokenizer_and_changes_it_counts(folder: Path, said: dict[str, Any]) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    before = fingerprint(folder)
    change(folder / "tokenizer_config.json", **said)
    assert fingerprint(folder) != before
    change(folder / "tokenizer_config.json", do_lower_case=True, strip_accents=None, truncation_side="right")
    assert fingerprint(folder) == before


def test_tokens_that_were_added_later_count(folder: Path) -> None:
    before = fingerprint(folder)
    write_json(folder / "added_tokens.json", {"[PAD]": 0})
    assert fingerprint(folder) == before
    write_json(folder / "added_tokens.json", {"[PAD]": 0, "newword": 500})
    assert fingerprint(folder) != before


def test_what_only_spells_out_what_is_done_anyway_does_not_count(folder: Path) -> None:
    change(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    before = fingerprint(folder)
    change(folder / "tokenizer_config.json", strip_accents=True)  # as all that makes letters small does
    assert fingerprint(folder) == before
