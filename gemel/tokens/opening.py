"""The tokenizer in a model folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gemel.checkpoint import fields
from gemel.checkpoint.tokenizer_settings import WORDPIECE_FAMILIES, has_bert_tokenizer, later_tokens
from gemel.errors import InvalidModel
from gemel.tokens.pieces import Ids

if TYPE_CHECKING:
    import tokenizers


def open_tokenizer(folder: Path, config: Mapping[str, Any], *, lowercase: bool) -> tokenizers.Tokenizer:
    """The folder's tokenizer, with neither truncation nor padding of its own."""
    import tokenizers
    from tokenizers import normalizers

    file = folder / "tokenizer.json"
    if file.is_file():
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises bare Exception
            raise InvalidModel(f"{file} is not a tokenizer ({error}): get the folder again") from None
    elif (folder / "vocab.txt").is_file() and config.get("model_type") in WORDPIECE_FAMILIES:
        tokenizer = _wordpiece_tokenizer(folder)
    else:
        raise InvalidModel(
            f"{folder} has no tokenizer.json; make one with: gemel convert {folder} NEW_FOLDER"
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    check_unknown_token(tokenizer, folder)
    settings = settings_of(folder)
    _apply_settings(tokenizer, settings, config.get("model_type"), _settings_file(folder))
    _add_later_tokens(tokenizer, folder, settings)
    if lowercase:
        present = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *present])
    return tokenizer


def settings_of(folder: Path) -> dict[str, Any]:
    """What tokenizer_config.json says, if there is one."""
    return fields.read_json(folder / "tokenizer_config.json")


def truncation_side(folder: Path) -> str:
    """Which end of a long text is cut."""
    settings, file = settings_of(folder), _settings_file(folder)
    side = fields.text(settings, "truncation_side", file) or "right"
    if side not in ("left", "right"):
        raise fields.wrong(settings, "truncation_side", file, "left or right")
    return side


def _settings_file(folder: Path) -> str:
    return str(folder / "tokenizer_config.json")


def check_unknown_token(tokenizer: tokenizers.Tokenizer, folder: Path) -> None:
    """Without it, the library would fail at the first word that is not in the vocabulary."""
    from tokenizers import models

    model = tokenizer.model
    if isinstance(model, models.WordPiece | models.WordLevel) and model.token_to_id(model.unk_token) is None:
        raise InvalidModel(
            f"the tokenizer in {folder} has no {model.unk_token!r} in its vocabulary, the token of unknown "
            "words: get the folder again"
        )


def _apply_settings(
    tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any], architecture: object, file: str
) -> None:
    """What tokenizer_config.json says goes before what tokenizer.json says, as in transformers."""
    from tokenizers import normalizers, pre_tokenizers

    normalizer, splitter = tokenizer.normalizer, tokenizer.pre_tokenizer
    if has_bert_tokenizer(settings, architecture) and isinstance(normalizer, normalizers.BertNormalizer):
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=normalizer.clean_text,
            handle_chinese_chars=fields.flag(
                settings, "tokenize_chinese_chars", file, normalizer.handle_chinese_chars
            ),
            strip_accents=_strips_accents(settings, file, normalizer.strip_accents),
            lowercase=fields.flag(settings, "do_lower_case", file, normalizer.lowercase),
        )
    if isinstance(splitter, pre_tokenizers.ByteLevel) and settings.get("add_prefix_space") is not None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=fields.flag(settings, "add_prefix_space", file, splitter.add_prefix_space),
            use_regex=splitter.use_regex,
        )


def _strips_accents(settings: Mapping[str, Any], file: str, default: bool | None) -> bool | None:
    """Here a null says something: that accents go where letters are made small."""
    if "strip_accents" in settings and settings["strip_accents"] is None:
        return None
    return default if "strip_accents" not in settings else fields.flag(settings, "strip_accents", file, False)


def _add_later_tokens(tokenizer: tokenizers.Tokenizer, folder: Path, settings: Mapping[str, Any]) -> None:
    """Tokens that were added after a vocabulary was made, and that only files beside it name."""
    from tokenizers import AddedToken

    for token, ways in later_tokens(folder, settings).items():
        if tokenizer.token_to_id(token) is None:
            tokenizer.add_tokens([AddedToken(token, **ways)])


def lone_id(config: Mapping[str, Any]) -> Ids:
    """A token to stand for an empty text where the tokenizer adds none."""
    named = (config.get(key) for key in ("eos_token_id", "bos_token_id", "pad_token_id"))
    whole = (token for token in named if isinstance(token, int) and 0 <= token <= fields.LARGEST)
    return np.array([next(whole, 0)], np.int32)


def _wordpiece_tokenizer(folder: Path) -> tokenizers.Tokenizer:
    from tokenizers import BertWordPieceTokenizer

    settings, file = settings_of(folder), _settings_file(folder)
    wrapped = BertWordPieceTokenizer(
        str(folder / "vocab.txt"),
        lowercase=fields.flag(settings, "do_lower_case", file, True),
        strip_accents=_strips_accents(settings, file, None),
        handle_chinese_chars=fields.flag(settings, "tokenize_chinese_chars", file, True),
    )
    tokenizer: tokenizers.Tokenizer = wrapped._tokenizer
    return tokenizer


def special_ids(tokenizer: tokenizers.Tokenizer, folder: Path) -> tuple[Ids, Ids]:
    """What the tokenizer puts before and after a text, found by looking at one."""
    for word in ("a", "the", "0", ".", "하"):
        mask = tokenizer.encode(word).special_tokens_mask
        if 0 in mask:
            ids = np.array(tokenizer.encode(word).ids, np.int32)
            first, last = mask.index(0), len(mask) - mask[::-1].index(0)
            return ids[:first], ids[last:]
    raise InvalidModel(f"the tokenizer in {folder} finds no token in ordinary words")
