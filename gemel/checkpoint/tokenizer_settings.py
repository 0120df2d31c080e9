"""What stands beside tokenizer.json and changes the tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemel.checkpoint.fields import integer, read_json

# What may hold a vocabulary; the first that is there does.
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
# Architectures whose tokenizer can be made of vocab.txt alone.
WORDPIECE_FAMILIES = ("bert", "distilbert", "electra")
BERT_TOKENIZERS = tuple(
    f"{family}Tokenizer{kind}"
    for family in ("Bert", "DistilBert", "Electra", "MPNet")
    for kind in ("", "Fast")
)
# Keys of tokenizer_config.json and what tokenizer.json calls the same.
NORMALISER_KEYS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
# How a tokenizer looks for an added token in a text.
WAYS_TO_LOOK = ("single_word", "lstrip", "rstrip", "normalized", "special")


def has_bert_tokenizer(settings: Mapping[str, Any], architecture: object) -> bool:
    """Whether transformers opens the folder with a tokenizer of BERT's, which heeds the keys above."""
    named = settings.get("tokenizer_class")
    return architecture in (*WORDPIECE_FAMILIES, "mpnet") if named is None else named in BERT_TOKENIZERS


def explicit_settings(
    settings: Mapping[str, Any], tokenizer: Mapping[str, Any], architecture: object
) -> dict[str, Any]:
    """The settings with what tokenizer.json says where they are silent: others assume something else then."""
    normaliser = tokenizer.get("normalizer") or {}
    if not has_bert_tokenizer(settings, architecture) or normaliser.get("type") != "BertNormalizer":
        return dict(settings)
    said = {key: normaliser[name] for key, name in NORMALISER_KEYS.items() if name in normaliser}
    return {**said, **settings}


def said_otherwise(
    settings: Mapping[str, Any], tokenizer: Mapping[str, Any], architecture: object
) -> dict[str, Any]:
    """What tokenizer_config.json changes of what tokenizer.json says; what it only repeats is left out."""
    normaliser, splitter = (tokenizer.get(part) or {} for part in ("normalizer", "pre_tokenizer"))
    changes: dict[str, Any] = {}
    if has_bert_tokenizer(settings, architecture) and normaliser.get("type") == "BertNormalizer":
        said = {
            name: settings[key]
            for key, name in NORMALISER_KEYS.items()
            if settings.get(key) is not None or (key == "strip_accents" and key in settings)
        }
        before, after = _effective(normaliser), _effective({**normaliser, **said})
        changes = {name: value for name, value in after.items() if value != before[name]}
    if splitter.get("type") == "ByteLevel" and settings.get("add_prefix_space") is not None:
        wanted = bool(settings["add_prefix_space"])
        changes |= {} if wanted == splitter.get("add_prefix_space") else {"add_prefix_space": wanted}
    return changes | ({"truncation_side": "left"} if settings.get("truncation_side") == "left" else {})


def _effective(normaliser: Mapping[str, Any]) -> dict[str, Any]:
    """What a BERT normaliser does: unless told, it strips accents where it makes letters small."""
    values = {name: normaliser.get(name) for name in NORMALISER_KEYS.values()}
    accents = values["strip_accents"]
    return {**values, "strip_accents": values["lowercase"] if accents is None else accents}


def vocabulary_of(tokenizer: Mapping[str, Any]) -> set[str]:
    """Every token that tokenizer.json knows."""
    vocabulary = (tokenizer.get("model") or {}).get("vocab") or ()
    tokens = vocabulary if isinstance(vocabulary, Mapping) else [entry[0] for entry in vocabulary]
    return {*tokens, *(added["content"] for added in tokenizer.get("added_tokens") or ())}


def later_tokens(folder: Path, settings: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """The tokens that were added to a vocabulary, in order of their ids, and how each is looked for.

    Newer programs write them into tokenizer_config.json, and added_tokens.json is read where they did not.
    """
    more = settings.get("additional_special_tokens")
    contents = [_content(token) for token in (more if isinstance(more, list) else ())]
    special = {token: {"special": True, "normalized": False} for token in contents if token}
    decoder = settings.get("added_tokens_decoder")
    if isinstance(decoder, Mapping):
        numbered = [(number, token) for number, token in decoder.items() if isinstance(token, Mapping)]
        numbered.sort(key=lambda entry: int(entry[0]) if entry[0].isdecimal() else 0)
        named = {
            _content(token): {way: token[way] is True for way in WAYS_TO_LOOK if way in token}
            for _, token in numbered
        }
        return {**named, **{token: ways for token, ways in special.items() if token not in named}}
    file = folder / "added_tokens.json"
    added = read_json(file)
    ordered = sorted(added, key=lambda token: integer(added, token, str(file), least=0) or 0)
    return {**{token: {"normalized": True} for token in ordered}, **special}


def _content(token: object) -> str:
    """A token, which is written as its text or as an object that has it."""
    return str(token.get("content", "") if isinstance(token, Mapping) else token)
