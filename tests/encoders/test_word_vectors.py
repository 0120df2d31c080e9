"""Averaged word vectors: files in, means out."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from encoders.made import write_glove

from gemel import load_encoder
from gemel.encoders import StaticEncoder, open_word_vectors
from gemel.encoders.word_files import read_word_file
from gemel.errors import InvalidInput, ModelNotFound, UnknownWordsWarning

LINES = """the 1 0 0
cat 0 2 0
dog 0 0 4
. 9 9 9
don 1 1 1
"""


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    file = tmp_path / "glove.txt"
    file.write_text(LINES, encoding="utf-8")
    return file


def test_a_text_is_the_mean_of_its_known_words(glove: Path) -> None:
    encoder = open_word_vectors(glove)
    texts = ["the cat", "The CAT, the dog!", "cat xqzz cat", "cat."]
    expected = [[0.5, 1, 0], [0.5, 0.5, 1], [0, 2, 0], [0, 2, 0]]
    np.testing.assert_array_equal(encoder.encode(texts), np.array(expected, np.float32))


def test_stop_words_are_left_out_where_that_is_asked(glove: Path) -> None:
    texts = ["the cat", "The CAT, the dog!"]
    expected = np.array([[0, 2, 0], [0, 1, 2]], np.float32)
    np.testing.assert_array_equal(open_word_vectors(glove, without_stop_words=True).encode(texts), expected)
    np.testing.assert_array_equal(load_encoder(f"glove-content:{glove}").encode(texts), expected)
    assert load_encoder(f"glove:{glove}").fingerprint != load_encoder(f"glove-content:{glove}").fingerprint


def test_texts_without_a_known_word_are_zero_and_counted(glove: Path) -> None:
    encoder = open_word_vectors(glove)
    with pytest.warns(UnknownWordsWarning, match=r"4 of 5 texts have no word .* vector of zeros") as caught:
        vectors = encoder.encode(["xqzz", "the", "", "xqzz", ". . ."])
    assert (caught[0].message.n_unknown, caught[0].message.n_texts) == (4, 5)  # type: ignore[union-attr]
    np.testing.assert_array_equal(vectors.any(axis=1), [False, True, False, False, False])


def test_the_first_of_two_lines_for_a_word_counts(tmp_path: Path) -> None:
    (tmp_path / "twice.txt").write_text("cat 1 2\ncat 3 4\n", encoding="utf-8")
    np.testing.assert_array_equal(open_word_vectors(tmp_path / "twice.txt").encode(["cat"]), [[1, 2]])


def test_a_file_that_knows_capitals_is_asked_with_them(tmp_path: Path) -> None:
    (tmp_path / "cased.txt").write_text("Cat 1 2\ncat 3 4\n", encoding="utf-8")
    vectors = open_word_vectors(tmp_path / "cased.txt").encode(["Cat", "cat", "a cat"])
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4], [3, 4]])


def test_accents_and_other_scripts_are_words_too(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("café 1 2\nкот 3 4\n고양이 5 6\n", encoding="utf-8")
    vectors = open_word_vectors(tmp_path / "words.txt").encode(["Café!", "Кот", "고양이, кот"])
    np.testing.assert_array_equal(vectors, [[1, 2], [3, 4], [4, 5]])


def test_words_with_blanks_inside_do_not_move_the_numbers(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text(
        ". . . 1 2 3\nat name@domain.com 4 5 6\ncat 7 8 9\n", encoding="utf-8"
    )
    words, rows = read_word_file(tmp_path / "glove.txt")
    assert words == ["cat"]
    np.testing.assert_array_equal(rows, [[7, 8, 9], [0, 0, 0]])


def test_a_longer_word_is_not_taken_for_the_words_it_is_made_of(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text("cat 1 2\n##s 3 4\ns 5 6\n", encoding="utf-8")
    with pytest.warns(UnknownWordsWarning):
        assert not open_word_vectors(tmp_path / "glove.txt").encode(["cats", "catcat"]).any()


@pytest.mark.parametrize("kind", ["txt", "vec", "txt.gz", "zip", "zip member"])
def test_every_packing_gives_the_same(kind: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    write_glove(plain, header=kind == "vec")
    path = tmp_path / f"glove.{kind.split()[0]}"
    if kind == "txt.gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif kind.startswith("zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(plain, "in/glove.8d.txt")
            if kind == "zip member":
                archive.writestr("in/glove.9d.txt", "other 1")
                path = path / "glove.8d.txt"
    else:
        path.write_bytes(plain.read_bytes())
    write_glove(tmp_path / "expected.txt")
    assert (
        load_encoder(f"glove:{path}").fingerprint == open_word_vectors(tmp_path / "expected.txt").fingerprint
    )


def test_an_array_with_an_index_of_words_is_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors = write_glove(tmp_path / "glove.txt", ["the", ".", "cat"], dim=4)
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "vectors.npy", np.asfortranarray(vectors))
    parquet.write_table(pyarrow.table({"index": ["the", ".", "cat"]}), folder / "index.parquet")
    expected = open_word_vectors(tmp_path / "glove.txt")
    for path in (folder, folder / "vectors.npy"):
        assert open_word_vectors(path).fingerprint == expected.fingerprint
    np.save(folder / "vectors.npy", vectors[:2])
    with pytest.raises(InvalidInput, match=r"holds float32 \(2, 4\); expected numbers for 3 words"):
        open_word_vectors(folder)
    np.save(folder / "more.npy", vectors)
    with pytest.raises(InvalidInput, match=r"2 \.npy and 1 \.parquet files; expected one array"):
        open_word_vectors(folder)


def test_only_as_many_words_are_read_as_are_wanted(tmp_path: Path) -> None:
    write_glove(tmp_path / "glove.txt", ["one", ".", "two", "three", "four"])
    words, rows = read_word_file(tmp_path / "glove.txt", max_words=2)
    assert words == ["one", "two"]
    assert rows.shape == (3, 8)
    with pytest.raises(InvalidInput, match="max_words=0 was given"):
        read_word_file(tmp_path / "glove.txt", max_words=0)


def test_a_table_that_grows_keeps_its_first_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemel.encoders.word_files.LINES_AT_ONCE", 3)
    words = [f"w{number}" for number in range(40)]
    vectors = write_glove(tmp_path / "glove.txt", words)
    found, rows = read_word_file(tmp_path / "glove.txt")
    assert found == words
    np.testing.assert_array_equal(rows, np.vstack([vectors, np.zeros((1, 8))]).astype(np.float32))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no file of word vectors"),
        ("word\n", "no file of word vectors"),
        (". 1 2\n", "holds no words"),
        ("cat 1 2\n" * 100 + "dog 1\n", "line 101 has 1 numbers; expected a word and 2 numbers"),
        ("cat 1 2\ndog 1 two\n", "the word 'dog' has something else among its 2 finite numbers"),
        ("cat 1 2\ndog 1 nan\n", "the word 'dog' has something else"),
    ],
)
def test_a_file_of_something_else_is_refused_by_name(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=said) as caught:
        open_word_vectors(tmp_path / "odd.txt")
    assert "odd.txt" in str(caught.value)


def test_an_archive_of_several_files_asks_which(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.writestr("a.txt", LINES)
        archive.writestr("b.txt", LINES)
    with pytest.raises(
        InvalidInput, match=r"holds a\.txt, b\.txt; name one of these, as in .*glove\.zip/a\.txt"
    ):
        load_encoder(f"glove:{tmp_path}/glove.zip")
    for path in ("none.zip", "none.zip/a.txt", "none.txt"):
        with pytest.raises(ModelNotFound, match="there is no file"):
            load_encoder(f"glove:{tmp_path}/{path}")


def test_a_damaged_archive_is_told(glove: Path, tmp_path: Path) -> None:
    packed = gzip.compress(glove.read_bytes())
    (tmp_path / "cut.txt.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "no.zip").write_bytes(packed)
    for name in ("cut.txt.gz", "no.zip"):
        with pytest.raises(InvalidInput, match=f"{name} is damaged .*get it again"):
            open_word_vectors(tmp_path / name)


def test_empty_lines_are_no_words(glove: Path) -> None:
    fingerprint = open_word_vectors(glove).fingerprint
    glove.write_text("\n" + LINES.replace("\n", "\n\n"), encoding="utf-8")
    assert open_word_vectors(glove).fingerprint == fingerprint


def test_a_saved_folder_is_the_same_encoder(glove: Path, tmp_path: Path) -> None:
    encoder = open_word_vectors(glove)
    encoder.save(tmp_path / "folder")
    opened = load_encoder(tmp_path / "folder")
    assert isinstance(opened, StaticEncoder)
    assert opened.fingerprint == encoder.fingerprint
    texts = ["the cat", "The CAT, the dog!", "café the"]
    np.testing.assert_array_equal(opened.encode(texts), encoder.encode(texts))
    with pytest.raises(InvalidInput, match="exists already"):
        encoder.save(tmp_path / "folder")
