"""A file becomes a corpus, with vectors made here or before."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from encoding_process import HashEncoder

from gemel.data.texts import TextSource
from gemel.errors import InvalidInput, ModelMismatch
from gemel.tasks import corpus as corpus_module
from gemel.tasks.corpus import Corpus, make_corpus, read_corpus
from gemel.tasks.encode import EncodeOptions, encode_file

TEXTS = ["one", "two", "one", "three", "two", ""]


def save(path: Path, texts: list[str] = TEXTS) -> TextSource:
    path.write_text("".join(json.dumps({"key": f"k{n}", "text": t}) + "\n" for n, t in enumerate(texts)))
    return TextSource(path, id_column="key")


def test_texts_ids_and_vectors_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    corpus = read_corpus(save(tmp_path / "in.jsonl"), HashEncoder())
    assert (corpus.texts, corpus.ids) == (TEXTS, ["k0", "k1", "k2", "k3", "k4", "k5"])
    assert (corpus.name, corpus.fingerprint) == (str(tmp_path / "in.jsonl"), "hash-16")
    np.testing.assert_array_equal(corpus.vectors, HashEncoder().encode(TEXTS))


def test_a_repeated_text_is_encoded_once_even_across_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "WINDOW_TEXTS", 2)
    encoder, seen = HashEncoder(), []
    corpus = make_corpus(TEXTS, encoder, on_progress=lambda done, total: seen.append((done, total)))
    assert encoder.n_encoded == 4
    assert seen == [(0, 4), (2, 4), (4, 4)]
    np.testing.assert_array_equal(corpus.vectors, HashEncoder().encode(TEXTS))


@pytest.mark.parametrize("name", ["v.npz", "v.parquet"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_vectors_made_before_are_used_as_they_are(tmp_path: Path, name: str, dtype: str) -> None:
    source, encoder = save(tmp_path / "in.jsonl"), HashEncoder()
    encode_file(encoder, source, tmp_path / name, options=EncodeOptions(dtype=dtype))  # type: ignore[arg-type]
    corpus = read_corpus(source, vectors=tmp_path / name)
    assert (corpus.fingerprint, corpus.vectors.dtype) == ("", np.float32)
    expected = encoder.encode(TEXTS).astype(dtype)
    np.testing.assert_array_equal(corpus.vectors, expected)


def test_npy_and_npz_are_mapped_and_not_read(tmp_path: Path) -> None:
    source = save(tmp_path / "in.jsonl")
    encode_file(HashEncoder(), source, tmp_path / "v.npz")
    encode_file(HashEncoder(), TextSource(tmp_path / "in.jsonl"), tmp_path / "v.npy")
    assert isinstance(read_corpus(source, vectors=tmp_path / "v.npz").vectors, np.memmap)
    assert isinstance(read_corpus(source, vectors=tmp_path / "v.npy").vectors, np.memmap)


def test_a_compressed_npz_is_read_all_the_same(tmp_path: Path) -> None:
    vectors = HashEncoder().encode(TEXTS)
    np.savez_compressed(tmp_path / "v.npz", embeddings=vectors)
    np.testing.assert_array_equal(
        read_corpus(save(tmp_path / "in.jsonl"), vectors=tmp_path / "v.npz").vectors, vectors
    )


def test_vectors_of_another_file_are_refused(tmp_path: Path) -> None:
    source = save(tmp_path / "in.jsonl")
    encode_file(HashEncoder(), save(tmp_path / "longer.jsonl", [*TEXTS, "more"]), tmp_path / "longer.npz")
    with pytest.raises(InvalidInput, match=r"holds 7 vectors and .*in.jsonl 6 texts; expected as many"):
        read_corpus(source, vectors=tmp_path / "longer.npz")
    encode_file(HashEncoder(), TextSource(tmp_path / "in.jsonl"), tmp_path / "numbered.npz")
    with pytest.raises(InvalidInput, match=r"row 0 has the id 0 in .*numbered.npz and 'k0' in"):
        read_corpus(source, vectors=tmp_path / "numbered.npz")


def test_vectors_of_another_width_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.ones((6, 5), np.float32))
    with pytest.raises(ModelMismatch, match="vectors of 5 dimensions, and those of this model have 16"):
        read_corpus(save(tmp_path / "in.jsonl"), HashEncoder(), vectors=tmp_path / "v.npy")


def test_vectors_that_the_model_does_not_make_of_these_texts_are_refused(tmp_path: Path) -> None:
    texts = [f"text {n}" for n in range(40)]
    source, encoder = TextSource(save(tmp_path / "in.jsonl", texts).path), HashEncoder()
    right = encoder.encode(texts)
    right[3] = 0  # as a text without known words has
    np.save(tmp_path / "right.npy", right)
    read_corpus(source, encoder, vectors=tmp_path / "right.npy")
    for name, wrong in (("rows", right[::-1]), ("model", right[:, ::-1])):
        np.save(tmp_path / f"{name}.npy", wrong)
        with pytest.raises(ModelMismatch, match=rf"{name}\.npy holds other vectors than this model makes of"):
            read_corpus(source, encoder, vectors=tmp_path / f"{name}.npy")


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.parquet", "v.csv"])
def test_a_file_that_holds_no_vectors_is_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidInput, match=f"{name}.*expected a whole .npy, .npz or .parquet file"):
        read_corpus(save(tmp_path / "in.jsonl"), vectors=tmp_path / name)


@pytest.mark.parametrize("array", [np.ones(6, np.float32), np.ones((6, 2), np.int64)])
def test_an_array_that_holds_no_vectors_is_refused(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InvalidInput, match=r"shape \(6,\)|of type int64"):
        read_corpus(save(tmp_path / "in.jsonl"), vectors=tmp_path / "v.npy")


def test_an_absent_file_of_vectors_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no file .*v.npy"):
        read_corpus(save(tmp_path / "in.jsonl"), vectors=tmp_path / "v.npy")


def test_an_empty_file_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="holds no texts; expected at least one"):
        read_corpus(save(tmp_path / "in.jsonl", []), HashEncoder())


def test_a_corpus_whose_parts_differ_in_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2 texts, 1 ids and vectors of shape"):
        Corpus(["a", "b"], [0], np.ones((2, 3), np.float32))
