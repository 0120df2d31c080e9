"""The native encoder: repeats, windows, streams, long texts, threads and processes."""

from __future__ import annotations

import multiprocessing
import pickle
import re
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from engine.native import PRECISIONS, changed, native
from forking import assert_children_go_on
from safetensors.numpy import load_file, save_file
from stand_ins import sentences

from gemel import _native, load_encoder, load_trainable
from gemel.checkpoint import Normalise
from gemel.contracts import Encoder
from gemel.engine import NativeEncoder
from gemel.errors import InvalidInput, InvalidModel, ModelMismatch, TruncationWarning
from gemel.tokens import Pieces

Opened = TypeVar("Opened")
TEXTS = sentences(300, seed=2, max_words=12)


@pytest.fixture(scope="module")
def encoder(tiny_bert: Path) -> NativeEncoder:
    return native(tiny_bert, "int8", threads=2)


def test_it_is_what_load_encoder_gives(tiny_bert: Path) -> None:
    encoder = load_encoder(tiny_bert)
    assert isinstance(encoder, Encoder)
    assert (encoder.engine, encoder.precision) == ("native", "int8")
    assert load_encoder(tiny_bert, precision="float32").precision == "float32"
    assert load_encoder(tiny_bert, threads=3).n_threads == 3  # type: ignore[attr-defined]


def test_it_introduces_itself_in_one_line(encoder: NativeEncoder) -> None:
    shown = repr(encoder)
    assert "dim=32, max_tokens=40, pooling='mean', engine='native', precision='int8'" in shown
    assert shown.endswith("threads=2)")
    assert encoder.settings.startswith("native int8, ")


def test_one_shape_in_one_shape_out(encoder: NativeEncoder) -> None:
    for texts in ([], ["the man"], ("the", "a"), ["dog"] * 3):
        vectors = encoder.encode(texts)
        assert vectors.shape == (len(texts), 32)
        assert vectors.dtype == np.float32


def test_repeated_texts_are_encoded_once(encoder: NativeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    run = NativeEncoder._run

    def counted(self: NativeEncoder, pieces: Pieces, result: str, out: np.ndarray) -> None:
        seen.append(pieces.n_texts)
        run(self, pieces, result, out)

    monkeypatch.setattr(NativeEncoder, "_run", counted)
    texts = ["the man", "a dog", "the man", "the man", "a dog", "a cat"]
    vectors = encoder.encode(texts)
    assert seen == [3]
    np.testing.assert_array_equal(vectors, np.stack([encoder.encode_one(text) for text in texts]))


@pytest.mark.parametrize("window", [2, 8_192])
def test_repeats_take_no_second_output(
    encoder: NativeEncoder, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr("gemel.engine.encoder.WINDOW", window)
    monkeypatch.setattr("gemel.text_encoder.STREAM_WINDOW", window)
    texts = [TEXTS[row] for row in (0, 1, 2, 1, 3, 0, 4, 4, 5, 1)]
    vectors = encoder.encode(texts)
    np.testing.assert_array_equal(vectors, np.stack([encoder.encode_one(text) for text in texts]))
    many = [f"the man {number}" for number in range(3_000)]
    out = np.zeros((len(many) + 1, encoder.dim), np.float32)
    monkeypatch.setattr("gemel.engine.encoder.WINDOW", 50)
    for given in ([*many, "the"], [*many, many[0]]):
        tracemalloc.start()
        encoder.encode(given, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.9 * out.nbytes + 120 * len(given)  # the texts' own rows, a hundred bytes each


def test_windows_change_nothing(encoder: NativeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = encoder.encode(TEXTS)
    monkeypatch.setattr("gemel.engine.encoder.WINDOW", 7)
    np.testing.assert_array_equal(encoder.encode(TEXTS), whole)
    np.testing.assert_array_equal(np.stack(list(encoder.encode_iter(iter(TEXTS)))), whole)


def test_errors_name_the_text_that_was_given(encoder: NativeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gemel.engine.encoder.WINDOW", 4)
    texts = ["the man"] * 5 + ["a dog", "the", "a", "one", "two", "\ud800", "the man"]
    with pytest.raises(InvalidInput, match="text 10 holds a lone surrogate"):
        encoder.encode(texts)
    texts[10] = "dog " * 60
    with pytest.raises(InvalidInput, match="text 10 is longer than the 40 tokens"):
        encoder.with_on_truncate("error").encode(texts)


def test_every_cut_text_is_counted_also_if_repeated(encoder: NativeEncoder) -> None:
    long = "dog " * 60
    with pytest.warns(TruncationWarning, match="3 of 5"):
        encoder.encode([long, "the", long, "cat " * 50, "a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.with_on_truncate("ignore").encode([long])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_long_texts_read_whole_are_those_of_torch(tiny_bert: Path, precision: str) -> None:
    model = changed(tiny_bert, tail=(Normalise(),))
    texts = ["dog " * 90 + "the man sleeps", "a cat", "one two three " * 40]
    ours = native(model, precision).with_on_truncate("chunk").encode(texts)
    theirs = load_trainable(tiny_bert).with_on_truncate("chunk").encode(texts)
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert (ours * theirs).sum(1).min() > (0.99999 if precision == "float32" else 0.97)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_short_text_has_the_same_bits_beside_one_that_is_read_in_windows(
    tiny_bert: Path, precision: str
) -> None:
    chunked = native(tiny_bert, precision).with_on_truncate("chunk")
    beside = chunked.encode([*TEXTS, "dog " * 90])[:-1]
    np.testing.assert_array_equal(beside, chunked.encode(TEXTS))


def test_vectors_go_where_the_caller_wants_them(encoder: NativeEncoder, tmp_path: Path) -> None:
    mapped = np.lib.format.open_memmap(
        tmp_path / "vectors.npy", mode="w+", dtype=np.float32, shape=(len(TEXTS), 32)
    )
    assert encoder.encode(TEXTS, out=mapped) is mapped
    mapped.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "vectors.npy"), encoder.encode(TEXTS))


@pytest.mark.parametrize(
    "out",
    [
        np.zeros((2, 32)),
        np.zeros((3, 32), np.float32),
        np.zeros((2, 64), np.float32)[:, ::2],
        [[0.0] * 32] * 2,
    ],
)
def test_a_place_that_does_not_fit_is_refused(encoder: NativeEncoder, out: object) -> None:
    with pytest.raises(InvalidInput, match="out "):
        encoder.encode(["the", "a"], out=out)  # type: ignore[arg-type]


def test_vectors_can_be_cut_short(encoder: NativeEncoder) -> None:
    np.testing.assert_array_equal(encoder.with_dim(5).encode(TEXTS), encoder.encode(TEXTS)[:, :5])


def test_it_saves_what_it_was_loaded_from(encoder: NativeEncoder, tmp_path: Path) -> None:
    encoder.with_dim(20).save(tmp_path / "saved")
    again = load_encoder(tmp_path / "saved")
    assert again.dim == 20
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS)[:, :20])


def test_many_threads_may_ask_at_once(encoder: NativeEncoder) -> None:
    expected = encoder.encode(TEXTS)
    with ThreadPoolExecutor(8) as callers:
        parts = list(callers.map(lambda i: encoder.encode(TEXTS[i : i + 30]), range(0, 300, 30)))
    np.testing.assert_array_equal(np.concatenate(parts), expected)


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([[5, 6], [99_999]], r"sequence 1 is '\[99999\]', and token ids, .* 0 to \d+, were expected"),
        ([np.array([-1], np.int32)], "sequence 0 is"),
        ([[0.5]], "sequence 0 is"),
        (["the cat"], "sequence 0 is 'the cat'"),
        ([[[5, 6], [7]]], "sequence 0 is"),
    ],
)
def test_what_are_no_token_ids_is_refused(encoder: NativeEncoder, sequences: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        encoder.encode_ids(sequences)


def test_token_ids_may_be_lists_and_arrays(encoder: NativeEncoder) -> None:
    assert encoder.encode_ids([]).shape == (0, 32)
    lists = encoder.encode_ids([[5, 6, 7], []])
    arrays = [np.array([5, 6, 7], np.int64), np.array([], np.int32)]
    np.testing.assert_array_equal(lists, encoder.encode_ids(arrays))


def test_it_can_be_sent_to_another_process(encoder: NativeEncoder) -> None:
    sent = encoder.with_dim(9).with_on_truncate("chunk")
    again = pickle.loads(pickle.dumps(sent))
    assert (again.dim, again.on_truncate, again.n_threads) == (9, "chunk", 2)
    np.testing.assert_array_equal(again.encode(TEXTS), sent.encode(TEXTS))


def replaced_after(folder: Path, other: Path, opened: Callable[[Path], Opened]) -> Opened:
    """What was opened from a folder in whose place another model stands by now."""
    model = opened(folder)
    shutil.rmtree(folder)
    shutil.copytree(other, folder)
    return model


@pytest.fixture
def two_models(tiny_bert: Path, tmp_path: Path) -> tuple[Path, Path]:
    for name, factor in (("model", 1), ("other", 2)):
        shutil.copytree(tiny_bert, tmp_path / name)
        weights = load_file(tmp_path / name / "model.safetensors")
        weights["embeddings.word_embeddings.weight"] *= np.float32(factor)
        save_file(weights, tmp_path / name / "model.safetensors", metadata={"format": "pt"})
    return tmp_path / "model", tmp_path / "other"


def test_a_folder_that_was_replaced_cannot_name_the_model_that_computes(
    two_models: tuple[Path, Path], tmp_path: Path
) -> None:
    encoder = replaced_after(*two_models, native)
    for read_again in (
        lambda: encoder.fingerprint,
        lambda: encoder.with_dim(5).fingerprint,
        lambda: encoder.save(tmp_path / "saved"),
        lambda: pickle.dumps(encoder),
    ):
        with pytest.raises(ModelMismatch, match=r"has changed since this model was opened .*open it again"):
            read_again()
    assert not (tmp_path / "saved").exists()


def test_a_model_that_was_saved_into_its_own_folder_stays_what_it_is(two_models: tuple[Path, Path]) -> None:
    encoder = native(two_models[0])
    for _ in range(2):
        encoder.save(two_models[0], overwrite=True)
    assert encoder.fingerprint == native(two_models[0]).fingerprint


def test_a_fingerprint_that_was_read_in_time_stays(two_models: tuple[Path, Path]) -> None:
    before = native(two_models[0]).fingerprint

    def opened(folder: Path) -> NativeEncoder:
        encoder = native(folder)
        assert encoder.fingerprint == before
        return encoder

    assert replaced_after(*two_models, opened).fingerprint == before


def test_another_process_refuses_another_model_and_takes_a_copy_of_the_same(
    two_models: tuple[Path, Path], tmp_path: Path
) -> None:
    sent = replaced_after(*two_models, lambda folder: pickle.dumps(native(folder)))
    with pytest.raises(ModelMismatch, match=r"holds the model .* was there when it was pickled"):
        pickle.loads(sent)
    copied = tmp_path / "copy"
    shutil.copytree(two_models[1], copied)
    sent = replaced_after(copied, two_models[1], lambda folder: pickle.dumps(native(folder)))
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.encode(TEXTS), native(two_models[1]).encode(TEXTS))
    assert again.fingerprint == native(two_models[1]).fingerprint


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(encoder: NativeEncoder) -> None:
    expected = encoder.encode(TEXTS)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=lambda: results.put(encoder.encode(TEXTS)))
    child.start()
    np.testing.assert_array_equal(results.get(), expected)
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_that_is_forked_while_another_thread_encodes_goes_on(tiny_bert: Path, threads: int) -> None:
    encoder = load_encoder(tiny_bert, threads=threads)
    expected = encoder.encode(TEXTS[:3])

    def encode_once() -> None:
        np.testing.assert_array_equal(encoder.encode(TEXTS[:3]), expected)

    assert_children_go_on(lambda: encoder.encode(TEXTS), encode_once)


def test_threads_that_cannot_be_started_are_told_and_end_nothing(tiny_bert: Path) -> None:
    script = """
import resource, sys
from gemel import load_encoder
many, one = (load_encoder(sys.argv[1], threads=threads) for threads in (600, 1))
one.encode(["the man"])
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 200 * 2**20,) * 2)
try:
    many.encode(["the man"])
except RuntimeError as error:
    print(error)
print(one.encode(["the man"]).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tiny_bert], capture_output=True, text=True, check=True
    )
    assert re.match(r"only \d+ of 600 threads could be started .*; ask for fewer threads", done.stdout)
    assert done.stdout.endswith("(1, 32)\n")


def test_what_the_engine_does_not_know_is_served_by_torch(tiny_bert: Path, tmp_path: Path) -> None:
    import transformers

    config = transformers.ConvBertConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64,
        embedding_size=32, max_position_embeddings=40,
    )  # fmt: skip
    transformers.ConvBertModel(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((tiny_bert / name).read_bytes())
    encoder = load_encoder(tmp_path)
    assert encoder.engine == "torch"
    assert encoder.encode(["the man"]).shape == (1, 32)
    with pytest.raises(InvalidInput, match=r"does not know the architecture 'convbert'"):
        load_encoder(tmp_path, precision="int8")


def test_bad_choices_are_refused(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match=r"precision='int4' is unknown; choose from int8, float32"):
        load_encoder(tiny_bert, precision="int4")
    with pytest.raises(InvalidInput, match="threads=0"):
        load_encoder(tiny_bert, threads=0)


def test_a_missing_tensor_is_named(tiny_bert: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.numpy import load_file, save_file

    folder = Path(shutil.copytree(tiny_bert, tmp_path / "copy"))
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(InvalidModel, match=r"lack the tensor 'encoder.layer.1.output.dense.weight'"):
        load_encoder(folder)


def test_cores_are_those_this_process_may_use() -> None:
    import os

    assert 1 <= _native.usable_cores() <= len(os.sched_getaffinity(0))


def test_tokens_in_give_the_vectors_of_their_texts(encoder: NativeEncoder) -> None:
    texts = [*TEXTS[:40], "", "the cat " * 60]
    quiet = encoder.with_on_truncate("ignore")
    assert quiet.encode_pieces(quiet.tokenise(texts)).tobytes() == quiet.encode(texts).tobytes()
    chunked = encoder.with_on_truncate("chunk")
    assert chunked.encode_pieces(chunked.tokenise(texts)).tobytes() == chunked.encode(texts).tobytes()
    assert quiet.encode_pieces(quiet.tokenise([])).shape == (0, 32)


def test_token_vectors_are_those_of_torch_and_pool_to_the_texts_vector(tiny_bert: Path) -> None:
    exact = native(tiny_bert, "float32", threads=2)
    trainable = load_trainable(tiny_bert, device="cpu")
    pieces = exact.tokenise(TEXTS[:30])
    tokens = exact.encode_tokens(pieces)
    assert tokens.shape == (len(pieces.flat), 32)
    np.testing.assert_allclose(tokens, trainable.encode_tokens(pieces), atol=2e-4)
    np.testing.assert_allclose(trainable.encode_pieces(pieces), trainable.encode(TEXTS[:30]), atol=1e-6)
    means = [vectors.mean(axis=0) for vectors in np.split(tokens, pieces.starts[1:-1])]
    np.testing.assert_allclose(means, exact.encode(TEXTS[:30]), atol=1e-4)
    assert exact.encode_tokens(exact.tokenise([])).shape == (0, 32)
