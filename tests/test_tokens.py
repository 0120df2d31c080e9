"""Texts into token ids: cutting, chunking, counting."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import read_json, sentences, write_json

import gemel.tokens.pieces
import gemel.tokens.texts
from gemel.checkpoint import read_encoder_folder
from gemel.errors import InvalidInput, InvalidModel
from gemel.tokens import PairTokenizer, TextTokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_bert: Path) -> TextTokenizer:
    return open_text_tokenizer(tiny_bert, max_tokens=20)


def open_text_tokenizer(folder: Path, max_tokens: int) -> TextTokenizer:
    config = read_encoder_folder(folder).config
    return TextTokenizer(folder, config, lowercase=False, max_tokens=max_tokens)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_ids_are_those_of_transformers(tiny_model, architecture: str) -> None:  # type: ignore[no-untyped-def]
    from transformers import AutoTokenizer

    folder = tiny_model(architecture)
    theirs = AutoTokenizer.from_pretrained(folder)
    ours = open_text_tokenizer(folder, max_tokens=20)
    texts = [*sentences(50, max_words=40), "", "   ", "unknowable words", "a\0b", "한국어 문장"]
    expected = theirs(texts, truncation=True, max_length=20)["input_ids"]
    assert [ids.tolist() for ids in ours.pieces(texts).ids] == expected


def test_a_text_that_just_fits_is_not_cut(tokenizer: TextTokenizer) -> None:
    assert tokenizer.pieces(["the " * 18]).n_truncated == 0
    assert tokenizer.pieces(["the " * 19]).n_truncated == 1


def test_counts_are_of_the_whole_text(tokenizer: TextTokenizer) -> None:
    assert tokenizer.count(["", "the", "the " * 500]).tolist() == [2, 3, 502]


def test_refusing_long_texts_names_the_first(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InvalidInput, match=r"text 1 is longer than the 20 tokens .*2 of 3 texts"):
        tokenizer.pieces(["the", "the " * 50, "a " * 50], on_truncate="error")


@given(n_tokens=st.integers(0, 500), size=st.integers(1, 60))
def test_windows_cover_every_token_and_overlap_by_an_eighth(n_tokens: int, size: int) -> None:
    windows = list(gemel.tokens.texts._windows(n_tokens, size))
    covered = {token for start, end in windows for token in range(start, end)}
    assert covered == set(range(n_tokens))
    assert all(end - start == size for start, end in windows[:-1])
    assert windows[-1][1] - windows[-1][0] <= size
    for (_, end), (start, _) in pairwise(windows):
        assert end - start == size // 8


SETTINGS = [
    ("bert", {"tokenizer_class": "BertTokenizer", "do_lower_case": False}),
    ("bert", {"tokenizer_class": "BertTokenizer", "strip_accents": False}),
    ("roberta", {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True}),
    ("bert", {"truncation_side": "left"}),
]


@pytest.mark.parametrize(("architecture", "settings"), SETTINGS)
def test_tokenizer_config_goes_before_the_tokenizer_file(
    tiny_model: Callable[[str], Path], tmp_path: Path, architecture: str, settings: dict[str, object]
) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "model"
    shutil.copytree(tiny_model(architecture), folder)
    config = read_json(folder / "tokenizer_config.json")
    write_json(folder / "tokenizer_config.json", {**config, **settings})
    texts = ["The MAN is éating", "the big dog " * 12, *sentences(20, seed=8, max_words=30)]
    expected = AutoTokenizer.from_pretrained(folder)(texts, truncation=True, max_length=20)["input_ids"]
    ours = open_text_tokenizer(folder, max_tokens=20)
    assert [ids.tolist() for ids in ours.pieces(texts).ids] == expected
    plain = open_text_tokenizer(tiny_model(architecture), max_tokens=20)
    assert [ids.tolist() for ids in plain.pieces(texts).ids] != expected


def test_an_unnamed_tokenizer_is_the_one_of_its_architecture(tiny_bert: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    write_json(folder / "tokenizer_config.json", {"do_lower_case": False})
    text = "The Man is éating"
    ours = open_text_tokenizer(folder, max_tokens=20).pieces([text]).flat.tolist()
    assert ours == AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    assert ours != open_text_tokenizer(tiny_bert, max_tokens=20).pieces([text]).flat.tolist()


@pytest.mark.parametrize("in_settings", [True, False])
@pytest.mark.parametrize("has_file", [True, False])
def test_tokens_that_were_added_later_are_known(
    has_file: bool, in_settings: bool, tiny_bert: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    folder = tmp_path / "model"
    shutil.copytree(tiny_bert, folder)
    vocabulary = read_json(folder / "tokenizer.json")["model"]["vocab"]
    n = len(vocabulary)
    if not has_file:
        words = sorted(vocabulary, key=vocabulary.__getitem__)
        (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        (folder / "tokenizer.json").unlink()
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "additional_special_tokens": ["[R]"],
    }
    if in_settings:
        decoder = {
            str(n + 1): added_token("[Q]", special=True),
            str(n): added_token("newword", special=False),
        }
        write_json(folder / "tokenizer_config.json", {**settings, "added_tokens_decoder": decoder})
    else:
        write_json(folder / "tokenizer_config.json", settings)
        write_json(folder / "added_tokens.json", {"[Q]": n + 1, "newword": n})
        write_json(folder / "special_tokens_map.json", {"additional_special_tokens": ["[Q]"]})
    texts = ["the newword", "a NEWWORD man", "[Q] the dog", "[q] the", "newwords", "the [R] dog"]
    expected = AutoTokenizer.from_pretrained(folder)(texts)["input_ids"]
    ours = open_text_tokenizer(folder, max_tokens=20)
    assert [ids.tolist() for ids in ours.pieces(texts).ids] == expected
    assert max(map(max, expected)) == n + 2


def added_token(content: str, special: bool) -> dict[str, object]:
    sides = {"lstrip": False, "rstrip": False, "single_word": False}
    return {"content": content, "special": special, "normalized": not special, **sides}


def test_an_empty_text_gets_a_token_where_the_tokenizer_adds_none(tiny_bert: Path, tmp_path: Path) -> None:
    tokenizer = read_json(tiny_bert / "tokenizer.json")
    write_json(tmp_path / "tokenizer.json", {**tokenizer, "post_processor": None})
    bare = TextTokenizer(tmp_path, {"eos_token_id": 7}, lowercase=False, max_tokens=20)
    assert [ids.tolist() for ids in bare.pieces([""]).ids] == [[7]]
    assert len(bare.pieces(["the"]).ids[0]) == 1


def test_chunks_hold_the_prompt_and_all_tokens(tokenizer: TextTokenizer) -> None:
    pieces = tokenizer.pieces(["man dog " * 30, "cat"], prompt="the red ", on_truncate="chunk")
    assert pieces.n_texts == 2
    assert pieces.n_truncated == 0
    assert set(pieces.owners.tolist()) == {0, 1}
    prompt = tokenizer.pieces(["the red"]).ids[0][1:3]
    assert all(len(ids) <= 20 for ids in pieces.ids)
    assert all((ids[1:3] == prompt).all() for ids in pieces.ids)


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_a_prompt_that_ends_in_a_space_takes_no_word_of_the_text_along(
    tiny_model: Callable[[str], Path], architecture: str
) -> None:
    tokenizer = open_text_tokenizer(tiny_model(architecture), max_tokens=20)
    pieces = tokenizer.pieces(["cat " + "man dog " * 30], prompt="the red ", on_truncate="chunk")
    whole = tokenizer.contents(["the red cat"])[0]
    n_prompt, once = len(whole) - 1, whole[-1]
    assert len(pieces.ids) > 2
    assert all((ids[1 : n_prompt + 1] == whole[:-1]).all() for ids in pieces.ids)
    assert [int((ids == once).sum()) for ids in pieces.ids] == [1] + [0] * (len(pieces.ids) - 1)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta"])
def test_a_huge_text_read_in_parts_gives_the_ids_of_the_whole(
    tiny_model,
    architecture: str,
    monkeypatch: pytest.MonkeyPatch,  # type: ignore[no-untyped-def]
) -> None:
    tokenizer = open_text_tokenizer(tiny_model(architecture), max_tokens=20)
    texts = ["  ".join(sentences(20, seed)) + " \n\t  " for seed in range(5)] + ["x" * 5_000, " " * 900]
    whole = [tokenizer._contents([text], None)[0].tolist() for text in texts]
    monkeypatch.setattr(gemel.tokens.texts, "PART_CHARACTERS", 64)
    assert [tokenizer._contents([text], None)[0].tolist() for text in texts] == whole


def test_lone_surrogates_are_named_with_their_place(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InvalidInput, match=r"text 1 holds a lone surrogate \(U\+D800 at character 2\)"):
        tokenizer.pieces(["fine", "ab\ud800c"])
    with pytest.raises(InvalidInput, match="text 2 holds a lone surrogate"):
        tokenizer.pieces(["fine", "fine", "\ud800" + "x" * 200_000])


def test_a_limit_without_room_for_a_token_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(InvalidModel, match="leaves no room"):
        open_text_tokenizer(tiny_bert, max_tokens=2)


@pytest.mark.parametrize("max_tokens", [1, 3, 4])
def test_a_limit_that_leaves_no_room_for_two_texts_is_refused(tiny_bert: Path, max_tokens: int) -> None:
    config = {"model_type": "bert"}
    with pytest.raises(
        InvalidModel, match=f"at most {max_tokens} tokens, which leaves no room for two texts"
    ):
        PairTokenizer(tiny_bert, config, lowercase=False, max_tokens=max_tokens)
    assert PairTokenizer(tiny_bert, config, lowercase=False, max_tokens=5).pieces([("the", "a")])[2] == 0


def test_a_folder_with_only_a_vocabulary_is_read(tiny_bert: Path, tmp_path: Path) -> None:
    whole = open_text_tokenizer(tiny_bert, max_tokens=20)
    vocabulary = whole._tokenizer.get_vocab()
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    rebuilt = TextTokenizer(tmp_path, {"model_type": "bert"}, lowercase=False, max_tokens=20)
    texts = [*sentences(20), "The Man, eating!"]
    for ours, theirs in zip(rebuilt.pieces(texts).ids, whole.pieces(texts).ids, strict=True):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("key", ["do_lower_case", "tokenize_chinese_chars", "strip_accents"])
def test_a_flag_is_true_false_or_not_given(tiny_bert: Path, tmp_path: Path, key: str) -> None:
    shutil.copytree(tiny_bert, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer_config.json"
    settings = {**read_json(file), "tokenizer_class": "BertTokenizer"}
    settings.pop(key, None)
    write_json(file, settings)
    expected = open_text_tokenizer(tmp_path / "model", 20).pieces(["The Mán 한국어"]).flat.tolist()
    write_json(file, {**settings, key: None})
    assert open_text_tokenizer(tmp_path / "model", 20).pieces(["The Mán 한국어"]).flat.tolist() == expected
    for value in (0, 1, "false"):
        write_json(file, {**settings, key: value})
        with pytest.raises(InvalidModel, match=f"sets {key} to {value!r}, and true or false was expected"):
            open_text_tokenizer(tmp_path / "model", 20)


def test_a_side_that_is_none_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer_config.json"
    write_json(file, {**read_json(file), "truncation_side": "up"})
    with pytest.raises(InvalidModel, match="sets truncation_side to 'up', and left or right was expected"):
        open_text_tokenizer(tmp_path / "model", 20)


def test_a_vocabulary_without_its_unknown_token_is_refused(tiny_bert: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_bert, tmp_path / "model")
    file = tmp_path / "model" / "tokenizer.json"
    tokenizer = read_json(file)
    tokenizer["model"]["unk_token"] = "[NONE]"
    write_json(file, tokenizer)
    with pytest.raises(InvalidModel, match=r"has no '\[NONE\]' in its vocabulary, the token of unknown"):
        open_text_tokenizer(tmp_path / "model", 20)


def test_a_folder_without_a_tokenizer_names_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match=r"has no tokenizer\.json; make one with: gemel convert"):
        TextTokenizer(tmp_path, {"model_type": "roberta"}, lowercase=False, max_tokens=20)


def test_lowercasing_is_applied_when_the_folder_asks_for_it(tiny_model) -> None:  # type: ignore[no-untyped-def]
    folder = tiny_model("roberta")
    config = read_encoder_folder(folder).config
    plain = TextTokenizer(folder, config, lowercase=False, max_tokens=20)
    lower = TextTokenizer(folder, config, lowercase=True, max_tokens=20)
    assert lower.pieces(["The MAN"]).ids[0].tolist() == plain.pieces(["the man"]).ids[0].tolist()


def test_pairs_are_cut_as_transformers_cuts_them(tiny_bert: Path) -> None:
    from transformers import AutoTokenizer

    pairs = list(zip(sentences(40, 1, 30), sentences(40, 2, 30), strict=True))
    expected = AutoTokenizer.from_pretrained(tiny_bert)(
        pairs, truncation=True, max_length=20, return_token_type_ids=True
    )
    ours = PairTokenizer(tiny_bert, {"model_type": "bert"}, lowercase=False, max_tokens=20)
    ids, types, n_truncated = ours.pieces(pairs)
    assert [row.tolist() for row in ids] == expected["input_ids"]
    assert [row.tolist() for row in types] == expected["token_type_ids"]
    assert n_truncated == np.sum([len(row) == 20 for row in ids])


def test_long_pairs_and_texts_are_tokenised_a_few_at_a_time(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = sentences(60, 3, 30)
    pairs = list(zip(texts, reversed(texts), strict=True))
    of_pairs = PairTokenizer(tiny_bert, {"model_type": "bert"}, lowercase=False, max_tokens=20)
    of_texts = open_text_tokenizer(tiny_bert, max_tokens=20)
    whole, contents = of_pairs.pieces(pairs), of_texts.contents(texts)
    monkeypatch.setattr(gemel.tokens.pieces, "CHARACTERS_AT_ONCE", 300)
    windows = of_pairs.windows(pairs)
    assert len(windows) > 5
    for window in windows:
        assert window.stop - window.start == 1 or sum(len(a + b) for a, b in pairs[window]) <= 300
    assert [row for window in windows for row in range(window.start, window.stop)] == list(range(60))
    for ours, theirs in zip(of_pairs.pieces(pairs)[:2], whole[:2], strict=True):
        assert [row.tolist() for row in ours] == [row.tolist() for row in theirs]
    assert of_pairs.pieces(pairs)[2] == whole[2]
    assert [row.tolist() for row in of_texts.contents(texts)] == [row.tolist() for row in contents]


def test_a_pair_that_is_not_unicode_is_named(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = PairTokenizer(tiny_bert, {"model_type": "bert"}, lowercase=False, max_tokens=20)
    for at_once in (1_000, 2):
        monkeypatch.setattr(gemel.tokens.pieces, "CHARACTERS_AT_ONCE", at_once)
        with pytest.raises(InvalidInput, match="the second text of pair 1 holds a lone surrogate"):
            pairs.pieces([("a", "b"), ("a", "\ud800")])


@pytest.mark.parametrize("architecture", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_ids_become_the_pieces_of_their_text_with_and_without_special_tokens(
    tiny_model: Callable[[str], Path], architecture: str
) -> None:
    tokenizer = open_text_tokenizer(tiny_model(architecture), max_tokens=20)
    texts = ["", "the cat runs", *sentences(20, max_words=40)]
    pieces = tokenizer.pieces(texts)
    first, last = len(tokenizer.prefix), len(tokenizer.suffix)
    for sequences in (pieces.ids, [ids[first : len(ids) - last] for ids in pieces.ids]):
        again = tokenizer.pieces_of_ids(sequences)
        assert again.flat.tolist() == pieces.flat.tolist()
        assert again.starts.tolist() == pieces.starts.tolist()
    long = tokenizer.pieces_of_ids([np.full(50, 7, np.int32)])
    assert (long.cut, len(long.flat)) == ((0,), 20)


def test_a_tokenizer_that_keeps_the_end_cuts_the_start(tokenizer: TextTokenizer) -> None:
    text = "the " * 10 + "cat " * 18
    kept = tokenizer.keeping_the_end(True).pieces([text]).flat
    assert kept.tolist() == tokenizer.pieces(["cat " * 18]).flat.tolist()
    assert (
        tokenizer.keeping_the_end(False).pieces([text]).flat.tolist()
        == tokenizer.pieces([text]).flat.tolist()
    )


def test_tokens_are_explained_by_the_characters_they_stand_for(tokenizer: TextTokenizer) -> None:
    text = "The  cat, 한!"
    tokens = tokenizer.explain(text)
    assert [token.id for token in tokens] == tokenizer.pieces([text]).flat.tolist()
    assert [token.is_special for token in tokens] == [True, *[False] * (len(tokens) - 2), True]
    assert [token.text for token in tokens[1:4]] == ["The", "cat", ","]
    assert (tokens[2].start, tokens[2].stop) == (5, 8)
    assert tokenizer.explain(text, add_special_tokens=False) == tokens[1:-1]
    with pytest.raises(InvalidInput, match="lone surrogate"):
        tokenizer.explain("\ud800")


def test_ids_are_decoded_to_their_text(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.pieces(["the cat runs"]).flat.tolist()
    assert tokenizer.decode(ids) == "the cat runs"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "[CLS] the cat runs [SEP]"
    assert tokenizer.n_vocabulary > max(ids)
