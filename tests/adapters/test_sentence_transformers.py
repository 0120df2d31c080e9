"""The drop-in for sentence-transformers by itself; beside the real one it is tested in the extras."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoders.made import write_static_embedding
from stand_ins import sentences

import gemel.adapters.sentence_transformers as ours
from gemel import communities, load_encoder
from gemel.adapters.sentence_transformers import CrossEncoder, SentenceTransformer, util
from gemel.errors import InvalidInput, ModelMismatch, ModelNotFound, TruncationWarning
from gemel.pair_scorer import PairScorer

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None  # as if they were not installed
import json
import numpy as np
from gemel.adapters.sentence_transformers import CrossEncoder, SentenceTransformer, util
model = SentenceTransformer(sys.argv[1])
vectors = model.encode(["the dog runs", "a dog runs", "the piano"])
found = {
    "similarity": type(model.similarity(vectors, vectors)).__name__,
    "pairwise": util.pairwise_cos_sim(vectors, vectors).tolist(),
    "tokens": type(model.encode("a dog", output_value="token_embeddings")).__name__,
    "device": model.device,
    "hits": util.semantic_search(vectors[:1], vectors, top_k=1),
    "tensor": type(model.encode(["a"], convert_to_tensor=True)).__name__,
    "list": [type(each).__name__ for each in model.encode(["a"], convert_to_numpy=False)],
}
reranker = CrossEncoder(sys.argv[2])
pairs = [("the dog", "a dog"), ("the dog", "a piano")]
found["activation"] = reranker.activation_fn
found["scores"] = type(reranker.predict(pairs, convert_to_tensor=True)).__name__
found["list of scores"] = len(reranker.predict(pairs, convert_to_numpy=False))
try:
    model.tokenizer
except ImportError as error:
    found["tokenizer"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> SentenceTransformer:
    return SentenceTransformer(str(tiny_bert), prompts={"query": "the red "})


def test_it_works_without_torch_and_says_what_needs_it(tiny_bert: Path, tiny_reranker_folder: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tiny_bert), str(tiny_reranker_folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    assert (found["similarity"], found["tokens"], found["device"]) == ("ndarray", "ndarray", "cpu")
    assert found["pairwise"] == pytest.approx([1, 1, 1])
    assert found["hits"] == [[{"corpus_id": 0, "score": pytest.approx(1)}]]
    assert (found["tensor"], found["list"]) == ("ndarray", ["ndarray"])
    assert (found["scores"], found["list of scores"], found["activation"]) == ("ndarray", 2, "sigmoid")
    assert "pip install 'gemel[train]'" in found["tokenizer"]


def test_importing_it_imports_no_torch() -> None:
    program = "import sys, gemel.adapters.sentence_transformers; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_one_text_gives_a_vector_and_several_give_rows(model: SentenceTransformer) -> None:
    assert model.encode("the dog").shape == (32,)
    rows = model.encode(["the dog", "a cat"])
    assert (rows.shape, rows.dtype) == ((2, 32), np.float32)
    assert np.array_equal(rows[0], model.encode("the dog"))
    assert np.array_equal(model.encode(sentences=["the dog", "a cat"]), rows)


def test_calls_for_several_processes_give_the_same_vectors(model: SentenceTransformer) -> None:
    texts = sentences(30, max_words=9)
    expected = model.encode(texts)
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    assert np.array_equal(model.encode_multi_process(texts, pool, chunk_size=10), expected)
    assert np.array_equal(model.encode(texts, pool=pool, device=["cpu", "cpu"]), expected)
    prompted = model.encode_multi_process(texts, pool, "query")
    assert np.array_equal(prompted, model.encode(texts, prompt_name="query"))
    model.stop_multi_process_pool(pool)


def test_a_model_can_be_pickled_and_moved(model: SentenceTransformer) -> None:
    again = pickle.loads(pickle.dumps(model)).to("cpu").eval()
    assert np.array_equal(again.encode_query("a dog"), model.encode_query("a dog"))


def test_tokens_are_those_of_the_text_alone_unless_a_prompt_is_given(tiny_bert: Path) -> None:
    model = SentenceTransformer(str(tiny_bert), prompts={"query": "the red "}, default_prompt_name="query")
    alone = np.asarray(model.tokenize(["dog"])["input_ids"])
    assert alone.shape == (1, 3)
    np.testing.assert_array_equal(np.asarray(model.preprocess(["dog"])["input_ids"]), alone)
    prompted = np.asarray(model.tokenize(["dog"], prompt="the red ")["input_ids"])
    np.testing.assert_array_equal(prompted, np.asarray(model.tokenize(["the red dog"])["input_ids"]))


def test_a_tokenizer_is_opened_once_until_the_model_is_opened_anew(
    tiny_bert: Path, tiny_reranker_folder: Path
) -> None:
    for model in (SentenceTransformer(str(tiny_bert)), CrossEncoder(str(tiny_reranker_folder))):
        first = model.tokenizer
        assert model.tokenizer is first
        model.max_seq_length = 17
        assert model.tokenizer.model_max_length == 17


def test_a_saved_model_takes_the_place_of_the_one_before(model: SentenceTransformer, tmp_path: Path) -> None:
    for _ in range(2):
        model.save(tmp_path / "model")
    again = SentenceTransformer(str(tmp_path / "model"))
    assert again.prompts == model.prompts
    assert np.array_equal(again.encode_query("a dog"), model.encode_query("a dog"))


def test_a_model_may_be_saved_into_its_own_folder_again(
    tiny_bert: Path, tiny_reranker_folder: Path, tmp_path: Path
) -> None:
    for kind, source in ((SentenceTransformer, tiny_bert), (CrossEncoder, tiny_reranker_folder)):
        own = tmp_path / kind.__name__
        kind(str(source)).save(own)
        model: Any = kind(str(own))
        for target in (own, own, tmp_path / f"{kind.__name__} elsewhere"):
            model.save(target)
        shutil.rmtree(own)
        shutil.copytree(source, own)
        with pytest.raises(ModelMismatch, match="has changed since this model was opened"):
            model.save(tmp_path / "after")


def test_a_folder_says_how_many_numbers_a_vector_has(tiny_bert: Path, tmp_path: Path) -> None:
    whole = SentenceTransformer(str(tiny_bert))
    assert whole.truncate_dim is None
    whole.truncate_dim = 8
    whole.save(tmp_path / "cut")
    cut = SentenceTransformer(str(tmp_path / "cut"))
    cut.max_seq_length = 20
    assert (cut.truncate_dim, cut.encode("the dog").shape) == (8, (8,))
    assert cut.encode("the dog", truncate_dim=20).shape == (20,)
    cut.save(tmp_path / "again")
    settings = json.loads((tmp_path / "again" / "config_sentence_transformers.json").read_text())
    assert settings["truncate_dim"] == 8
    whole.truncate_dim = None
    whole.save(tmp_path / "whole")
    assert SentenceTransformer(str(tmp_path / "whole")).truncate_dim is None


@pytest.mark.parametrize("holds_a_model", [True, False])
def test_saving_keeps_what_else_is_in_the_folder(
    model: SentenceTransformer, tiny_reranker_folder: Path, tmp_path: Path, holds_a_model: bool
) -> None:
    folder, others = (
        tmp_path / "model",
        ("notes.txt", "eval/r.csv", "checkpoint-1/model.safetensors", ".git/HEAD"),
    )
    if holds_a_model:
        CrossEncoder(str(tiny_reranker_folder)).save(folder)
    for name in others:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    model.save(folder)
    assert np.array_equal(SentenceTransformer(str(folder)).encode("a dog"), model.encode("a dog"))
    CrossEncoder(str(tiny_reranker_folder)).save(folder)
    assert CrossEncoder(str(folder)).num_labels == 1
    assert all((folder / name).read_text() == name for name in others)
    assert {path.name for path in folder.iterdir() if path.name.startswith(".")} == {".git"}


def test_saving_nowhere_does_nothing_and_a_file_is_no_folder(
    model: SentenceTransformer, tiny_reranker_folder: Path, tmp_path: Path
) -> None:
    model.save(None)
    CrossEncoder(str(tiny_reranker_folder)).save(None)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="file is a file; expected a folder"):
        model.save(tmp_path / "file")


def test_settings_of_the_model_before_are_not_left_over(model: SentenceTransformer, tmp_path: Path) -> None:
    model.save(tmp_path)
    (tmp_path / "gemel.json").write_text('{"include_special_tokens": false}')
    model.save(tmp_path)
    assert np.array_equal(SentenceTransformer(str(tmp_path)).encode("a dog"), model.encode("a dog"))


def test_a_static_table_is_a_model_too(tmp_path: Path) -> None:
    folder = write_static_embedding(tmp_path)
    model = SentenceTransformer(str(folder), device="cpu")
    texts = ["the dog", "a cat"]
    assert np.array_equal(model.encode(texts), load_encoder(folder).encode(texts))
    assert model.encode(texts, truncate_dim=3).shape == (2, 3)
    with pytest.raises(InvalidInput, match="this model has no prompts"):
        model.encode(texts, prompt="query: ")
    with pytest.raises(InvalidInput, match="no vectors of tokens"):
        model.encode(texts, output_value="token_embeddings")


def test_cut_texts_are_told_of_unless_that_is_unwanted(model: SentenceTransformer, tiny_bert: Path) -> None:
    with pytest.warns(TruncationWarning, match="1 of 1"):
        model.encode("the " * 100)
    SentenceTransformer(str(tiny_bert), on_truncate="ignore").encode("the " * 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"colour": "red"}, "the constructor was given colour"),
        ({"modules": []}, "modules were given"),
        ({"backend": "jax"}, "backend is 'jax'; expected one of torch, onnx, openvino"),
        ({"model_kwargs": {"quantize": True}}, "model_kwargs was given quantize"),
        ({"config_kwargs": {"hidden_size": 3}}, "config_kwargs was given hidden_size"),
        ({"similarity_fn_name": "best"}, "expected one of cosine, dot"),
        ({"default_prompt_name": "no"}, "default_prompt_name is 'no'; expected one of the prompts: query"),
        ({"token": "a", "use_auth_token": "b"}, "leave use_auth_token out"),
        ({"processor_kwargs": {"model_max_length": 10_000}}, "max_tokens=10000 does not fit"),
    ],
)
def test_what_cannot_be_honoured_is_refused(tiny_bert: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SentenceTransformer(str(tiny_bert), **arguments)


def test_what_only_says_how_to_compute_is_accepted(tiny_bert: Path) -> None:
    model = SentenceTransformer(
        str(tiny_bert),
        backend="onnx",
        trust_remote_code=True,
        model_kwargs={"torch_dtype": "float16", "attn_implementation": "sdpa"},
        tokenizer_kwargs={"model_max_length": 12},
        config_kwargs={},
    )
    assert model.max_seq_length == 12


def test_a_name_is_looked_for_under_the_organisation_that_it_has_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match=r"^sentence-transformers/nonesuch is neither"):
        SentenceTransformer("nonesuch", cache_folder=str(tmp_path))
    with pytest.raises(ModelNotFound, match=r"^cross-encoder/nonesuch is neither"):
        CrossEncoder("nonesuch", local_files_only=True)
    with pytest.raises(InvalidInput, match="no model was given"):
        SentenceTransformer()


def test_what_belongs_to_training_says_where_to_go(model: SentenceTransformer) -> None:
    with pytest.raises(AttributeError, match="train with `gemel train`"):
        model.fit  # noqa: B018
    with pytest.raises(AttributeError, match="send it with `gemel push`"):
        model.push_to_hub  # noqa: B018
    assert not hasattr(model, "nonsense")


def test_a_model_shows_its_modules(tiny_bert: Path) -> None:
    model = SentenceTransformer(str(tiny_bert))
    assert [type(part).__name__ for part in model] == ["Transformer", "Pooling"]
    assert (len(model), model[0].get_word_embedding_dimension()) == (2, 32)
    assert (model[1].pooling_mode, model[1].embedding_dimension) == ("mean", 32)
    assert model[-1].get_sentence_embedding_dimension() == model[1].pooling_output_dimension == 32
    model[0].max_seq_length = 19
    assert model.max_seq_length == model[0].max_seq_length == 19
    assert model._first_module().tokenizer is model.tokenizer
    with pytest.raises(AttributeError, match="gemel's Transformer has no auto_model"):
        model[0].auto_model  # noqa: B018
    with pytest.raises(InvalidInput, match="expected the number of a module"):
        model[:1]
    with pytest.raises(IndexError):
        model[2]


def test_what_a_torch_module_can_do_is_done_or_refused(tiny_bert: Path, tiny_reranker_folder: Path) -> None:
    for model in (SentenceTransformer(str(tiny_bert)), CrossEncoder(str(tiny_reranker_folder))):
        for name in ("eval", "train", "half", "float", "bfloat16", "requires_grad_", "share_memory"):
            assert getattr(model, name)() is model
        assert model.train(False).training is False
        for name in ("parameters", "state_dict", "forward", "fit", "push_to_hub"):
            with pytest.raises(AttributeError, match=f"gemel's {type(model).__name__} has no {name}: "):
                getattr(model, name)
        with pytest.raises(TypeError, match="it takes texts; use encode or predict"):
            model({"input_ids": [[1, 2]]})


def test_queries_and_documents_take_all_that_texts_take(model: SentenceTransformer) -> None:
    expected = model.encode_query(["a dog"], convert_to_tensor=True)
    assert model.encode_query(["a dog"], None, None, 8, True).tolist() == expected.tolist()
    assert model.encode_document(["a dog"], None, "the red ", 8).tolist() == expected.tolist()
    assert model.encode(["a dog"], task="document").tolist() == model.encode(["a dog"]).tolist()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("losses", "train with `gemel train`"),
        ("InputExample", "train with `gemel train`"),
        ("models", "give the folder of a saved model"),
        ("evaluation", "measure with `gemel evaluate`"),
        ("SparseEncoder", "one dense vector for a text"),
    ],
)
def test_a_name_that_is_not_here_says_what_is(name: str, advice: str) -> None:
    with pytest.raises(ImportError, match=f"gemel's adapter has no {name}: .*{advice}"):
        exec(f"from gemel.adapters.sentence_transformers import {name}", {})


def test_modules_have_the_names_that_programs_import() -> None:
    assert ours.__version__ == "6.2.0"
    assert ours.mine_hard_negatives is util.mine_hard_negatives
    assert ours.quantization.quantize_embeddings is ours.quantize_embeddings is util.quantize_embeddings
    assert ours.similarity_functions.SimilarityFunction is ours.SimilarityFunction
    assert not hasattr(ours, "nonsense")
    with pytest.raises(ImportError, match="which is exact, or a collection"):
        ours.quantization.semantic_search_faiss  # noqa: B018


def test_records_are_written_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    handler = ours.LoggingHandler()
    handler.emit(logging.LogRecord("name", logging.INFO, "", 0, "%d texts", (3,), None))
    assert capsys.readouterr().out == "3 texts\n"


def test_a_file_is_downloaded_whole(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("three words here")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        util.http_get(f"http://127.0.0.1:{server.server_port}/there.txt", tmp_path / "new" / "here.txt")
        server.shutdown()
    assert (tmp_path / "new" / "here.txt").read_text() == "three words here"
    with pytest.raises(InvalidInput, match="expected one that begins with http"):
        util.http_get(f"file://{tmp_path}/there.txt", tmp_path / "other.txt")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["here.txt"]


def test_batches_are_moved_to_a_device(model: SentenceTransformer) -> None:
    batch = util.batch_to_device({**model.tokenize(["a dog"]), "kept": 3}, util.get_device_name())
    assert str(batch["input_ids"].device).startswith(util.get_device_name())
    assert batch["kept"] == 3


# Cross-encoders --------------------------------------------------------------------------------------------

PAIRS = [("the dog", "a dog runs"), ("the dog", "a piano"), ("the dog", "the dog")]


def test_pairs_are_scored_alone_and_together(tiny_reranker_folder: Path, tiny_reranker: PairScorer) -> None:
    model = CrossEncoder(str(tiny_reranker_folder))
    expected = tiny_reranker.score(PAIRS)
    assert np.array_equal(model.predict(PAIRS), expected)
    assert np.array_equal(model.predict(np.array(PAIRS)), expected)
    assert model.predict(list(PAIRS[1])) == expected[1]
    assert model.predict([]).shape == (0,)
    assert np.array_equal(
        model.predict(PAIRS, activation_fct=lambda raw: -raw).argsort(), (-expected).argsort()
    )


def test_documents_are_ranked_with_or_without_their_texts(tiny_reranker_folder: Path) -> None:
    model = CrossEncoder(str(tiny_reranker_folder))
    texts = [text for _, text in PAIRS]
    scores = model.predict(PAIRS)
    order = np.argsort(-scores).tolist()
    assert model.rank("the dog", texts) == [{"corpus_id": row, "score": float(scores[row])} for row in order]
    (best,) = model.rank("the dog", texts, top_k=1, return_documents=True)
    assert best["text"] == texts[order[0]]


def test_a_cross_encoder_has_its_labels_and_its_length(tiny_reranker_folder: Path, tmp_path: Path) -> None:
    model = CrossEncoder(str(tiny_reranker_folder), max_length=12, num_labels=1)
    assert (model.num_labels, model.max_length) == (1, 12)
    model.max_length = 20
    assert model.max_seq_length == 20
    model.save(tmp_path / "saved")
    assert np.array_equal(CrossEncoder(str(tmp_path / "saved")).predict(PAIRS), model.predict(PAIRS))
    for arguments, message in (
        ({"num_labels": 3}, "the model has 1"),
        ({"prompts": {"query": "q"}}, "a cross-encoder was given prompts"),
        ({"max_length": 1_000}, "max_tokens=1000 does not fit"),
    ):
        with pytest.raises(InvalidInput, match=message):
            CrossEncoder(str(tiny_reranker_folder), **arguments)
    with pytest.raises(InvalidInput, match="pair 0 is"):
        model.predict([["only one"]])


def test_a_cross_encoder_is_called_as_in_older_programs(tiny_reranker_folder: Path, tmp_path: Path) -> None:
    name, texts = str(tiny_reranker_folder), [text for _, text in PAIRS]
    model = CrossEncoder(name, 1, 20, None, "cpu")
    assert (model.num_labels, model.max_length, len(model), model[0].max_seq_length) == (1, 20, 1, 20)
    older = CrossEncoder(
        model_name=name,
        tokenizer_args={"model_max_length": 20},
        cache_dir=str(tmp_path),
        classifier_dropout=0.1,
    )
    expected = model.predict(PAIRS)
    assert np.array_equal(older.predict(PAIRS, num_workers=0), expected)
    ranked = model.rank("the dog", texts)
    for choices in ({"num_workers": 0}, {"convert_to_numpy": False}, {"convert_to_tensor": True}):
        assert model.rank("the dog", texts, **choices) == ranked
    (best,) = model.rank("the dog", texts, 1, True, None, None, 16)
    assert best == {**ranked[0], "text": texts[ranked[0]["corpus_id"]]}
    with pytest.raises(InvalidInput, match="predict was given colour"):
        model.rank("the dog", texts, colour="red")
    with pytest.raises(InvalidInput, match="leave model_name out"):
        CrossEncoder(name, model_name=name)


def test_a_cross_encoder_can_be_pickled_and_copied(tiny_reranker_folder: Path) -> None:
    model = CrossEncoder(str(tiny_reranker_folder), max_length=20)
    expected = model.predict(PAIRS)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.max_length == 20
        assert np.array_equal(again.predict(PAIRS), expected)


def test_an_activation_is_shown_and_saved(tiny_reranker_folder: Path, tmp_path: Path) -> None:
    from torch import nn

    model = CrossEncoder(str(tiny_reranker_folder))
    assert isinstance(model.activation_fn, nn.Sigmoid)
    assert isinstance(model.default_activation_function, nn.Sigmoid)
    model = CrossEncoder(str(tiny_reranker_folder), activation_fn=nn.Identity())
    model.save(tmp_path / "raw")
    again = CrossEncoder(str(tmp_path / "raw"))
    assert isinstance(again.activation_fn, nn.Identity)
    assert np.array_equal(again.predict(PAIRS), model.predict(PAIRS))
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(
            again.predict(PAIRS), CrossEncoder(str(tiny_reranker_folder)).predict(PAIRS)
        )
    again.activation_fn = nn.Sigmoid()
    again.save(tmp_path / "raw")
    assert isinstance(CrossEncoder(str(tmp_path / "raw")).activation_fn, nn.Sigmoid)
    for other in (nn.ELU(alpha=2.0), lambda raw: raw * 2):
        again.activation_fn = other
        with pytest.raises(InvalidInput, match="cannot be written into a folder; set it to"):
            again.save(tmp_path / "raw")


def test_an_activation_is_given_a_column_of_scores(tiny_reranker_folder: Path) -> None:
    shapes = []

    def doubled(raw: Any) -> Any:
        shapes.append(tuple(raw.shape))
        return 2 * raw

    model = CrossEncoder(str(tiny_reranker_folder))
    raw = model.predict(PAIRS, activation_fn=lambda raw: raw)
    assert np.array_equal(model.predict(PAIRS, activation_fn=doubled), 2 * raw)
    assert shapes == [(3, 1)]


# By hand ---------------------------------------------------------------------------------------------------

SQUARE = np.array([[1, 0], [0, 1], [-1, 0], [0.6, 0.8]], np.float32)


def test_the_nearest_rows_are_found_with_their_scores() -> None:
    hits = util.semantic_search(SQUARE[:1], SQUARE, top_k=2)
    assert hits == [[{"corpus_id": 0, "score": 1.0}, {"corpus_id": 3, "score": pytest.approx(0.6)}]]
    assert util.semantic_search(np.zeros((2, 2)), np.zeros((0, 2))) == [[], []]


@pytest.mark.parametrize("measure", ["cos_sim", "dot_score", "euclidean_sim", "manhattan_sim"])
def test_one_vector_is_compared_with_every_row(measure: str) -> None:
    compare, pairwise = getattr(util, measure), getattr(util, f"pairwise_{measure}")
    expected = np.asarray(compare(SQUARE[3], SQUARE))[0]
    assert np.asarray(pairwise(SQUARE[3], SQUARE)) == pytest.approx(expected, abs=1e-6)
    assert np.asarray(pairwise(SQUARE, SQUARE[3:])) == pytest.approx(expected, abs=1e-6)
    assert pairwise(SQUARE[3], SQUARE[3]).shape == ()


def test_angles_are_those_of_complex_numbers() -> None:
    same, turned = util.pairwise_angle_sim(SQUARE[:2], np.array([[1, 0], [1, 0]], np.float32))
    assert (float(same), float(turned)) == (1, 1)
    assert float(util.pairwise_angle_sim(SQUARE[3:], SQUARE[:1])[0]) == pytest.approx(1.4)
    assert util.pairwise_angle_sim(np.ones((2, 3)), np.ones((2, 3))).shape == (2,)


def test_pairs_come_from_the_nearest_of_each_row() -> None:
    pairs = util.paraphrase_mining_embeddings(SQUARE, top_k=1)
    # 0 and 1 are nearest to 3, which is nearest to 1; 2 is as far from 0 as can be, and nearest to 1
    assert [tuple(pair[1:]) for pair in pairs] == [(1, 3), (0, 3), (1, 2)]
    assert [pair[0] for pair in pairs] == pytest.approx([0.8, 0.6, 0])
    assert len(util.paraphrase_mining_embeddings(SQUARE, max_pairs=2)) == 2
    assert util.paraphrase_mining_embeddings(SQUARE[:1]) == []


@pytest.mark.parametrize(("n_pairs", "k"), [(50, 20), (300, 20), (600, 20), (50, 1), (10**6, 200)])
def test_pairs_are_those_of_all_pairs_compared(n_pairs: int, k: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((120, 6)).astype(np.float32)
    scores = np.asarray(util.cos_sim(vectors, vectors)).copy()
    np.fill_diagonal(scores, -2)
    nearest = np.argsort(-scores, axis=1)[:, :k]
    expected = {(min(i, j), max(i, j)) for i in range(120) for j in nearest[i, :119].tolist()}
    expected = sorted(expected, key=lambda pair: -scores[pair])[:n_pairs]
    found = util.paraphrase_mining_embeddings(vectors, max_pairs=n_pairs, top_k=k)
    assert {(i, j) for _, i, j in found} == set(expected)
    assert [score for score, *_ in found] == pytest.approx([scores[pair] for pair in expected], abs=1e-6)


def test_a_community_is_counted_before_others_take_its_rows() -> None:
    angles = np.radians([40, 50, 70, 90, 100, 120])
    fan = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    near = float(np.cos(np.radians(25)))
    # Rows 1 to 4 have three rows each within 25 degrees; 1 comes first, and of those around 3 two are left.
    assert util.community_detection(fan, near, min_community_size=2) == [[1, 0, 2], [3, 4]]
    # Counted anew, 4 still has three.
    assert [each.tolist() for each in communities(fan, threshold=near, min_size=2)] == [[1, 0, 2], [4, 3, 5]]
    assert util.community_detection([], 0.5) == []


def test_numbers_become_steps_of_their_range_or_signs() -> None:
    ranges = np.array([[0, -10], [255, 500]], np.float32)  # in steps of 1 and of 2
    assert util.quantize_embeddings([[0, -10.0], [300, 500]], "uint8", ranges).tolist() == [
        [0, 0],
        [255, 255],
    ]
    assert util.quantize_embeddings([[10.5, 1.0]], "int8", ranges).tolist() == [[-118, -123]]
    assert util.quantize_embeddings([[1.0, -1, 1, 0, 0, 0, 0, 2]], "ubinary").tolist() == [[0b10100001]]
    assert util.quantize_embeddings([[1.0, -1, 1, 0, 0, 0, 0, 2]], "binary").tolist() == [[0b10100001 - 128]]


def test_negatives_are_near_the_anchor_and_never_its_positive(model: SentenceTransformer) -> None:
    pairs = {"a": ["the dog runs", "the cat sleeps"], "b": ["a dog runs", "a cat sleeps"]}
    corpus = ["the dog sleeps", "one piano", "a dog runs"]
    found = util.mine_hard_negatives(pairs, model, corpus=corpus, num_negatives=2, output_scores=True)
    assert list(found) == ["a", "b", "negative", "scores"]
    assert len(found["negative"]) == 4
    for anchor, positive, negative, (_, score) in zip(*found.values(), strict=True):
        assert negative != positive
        expected = util.cos_sim(model.encode_query(anchor), model.encode_document(negative))
        assert score == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_negatives": 0}, "num_negatives is 0"),
        ({"range_min": 5, "range_max": 6}, "3 negatives were asked for from places 5 to 6"),
        ({"output_format": "table"}, "expected one of triplet, n-tuple, labeled-pair, labeled-list"),
        ({"sampling_strategy": "best"}, "expected one of top, random"),
        ({"num_negative": 1}, "mine_hard_negatives was given num_negative, which gemel does not take"),
    ],
)
def test_negatives_that_cannot_be_mined_are_refused(
    model: SentenceTransformer, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        util.mine_hard_negatives({"a": ["x"], "b": ["y"]}, model, **changes)
    with pytest.raises(InvalidInput, match="the dataset is empty"):
        util.mine_hard_negatives({"a": [], "b": []}, model)


def test_older_words_for_the_choice_of_negatives_have_their_effect(model: SentenceTransformer) -> None:
    pairs = {"a": ["the dog runs", "the cat sleeps"], "b": ["a dog runs", "a cat sleeps"]}
    corpus = ["the dog sleeps", "one piano", "a dog runs", "a big house"]

    def mined(**choices: Any) -> Any:
        return util.mine_hard_negatives(pairs, model, corpus=corpus, num_negatives=1, **choices)

    without_effect = {"use_faiss": True, "faiss_batch_size": 8, "use_multi_process": True, "verbose": False}
    assert mined(**without_effect, cache_folder="here") == mined()
    assert mined(as_triplets=False) == mined(output_format="n-tuple") != mined()
    assert mined(margin=0.1) == mined(absolute_margin=0.1)
    assert mined(margin=2.5)["negative"] == []


def test_gradients_are_refused_and_not_lost() -> None:
    import torch

    with pytest.raises(InvalidInput, match="gradients do not pass through here"):
        util.cos_sim(torch.ones(2, 3, requires_grad=True), np.ones((2, 3)))
