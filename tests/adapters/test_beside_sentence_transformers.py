"""The same programs with sentence-transformers and with gemel: only the import differs."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import sentences

import gemel.adapters.sentence_transformers as ours

pytestmark = pytest.mark.extras

TEXTS = [*sentences(40, seed=1, max_words=9), "", "  ", "Unknowable WORDS, here!", "the " * 90, "한국어"]
PAIRS = list(zip(sentences(30, 1, 5), sentences(30, 2, 5), strict=True))
PROMPTS = {"query": "the red ", "passage": "a big "}
VECTORS = np.random.default_rng(0).standard_normal((150, 12)).astype(np.float32)

Program = Callable[[Any, str], Any]
PROGRAMS: dict[str, Program] = {}


@pytest.fixture(scope="module")
def theirs() -> Any:
    return imported("sentence_transformers")


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def opened(st: Any, folder: str, **arguments: Any) -> Any:
    """The model in full precision, which is how theirs computes."""
    dtype = {"model_kwargs": {"torch_dtype": "float32"}}
    more = {"on_truncate": "ignore"} if st is ours else {}
    return st.SentenceTransformer(folder, device="cpu", **dtype, **more, **arguments)


@program
def one_text(st: Any, folder: str) -> Any:
    return opened(st, folder).encode("the dog runs")


@program
def several_texts(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    return [model.encode(kind(TEXTS)) for kind in (list, tuple, np.array)]


@program
def no_texts(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    return [
        model.encode([]),
        model.encode([], convert_to_tensor=True),
        model.encode([], convert_to_numpy=False),
        model.encode([], output_value="token_embeddings"),
    ]


@program
def tensors(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    return [
        model.encode(TEXTS, convert_to_tensor=True),
        model.encode("a cat", convert_to_tensor=True),
        model.encode(TEXTS, convert_to_numpy=False),
    ]


@program
def normalised_and_cut(st: Any, folder: str) -> Any:
    model = opened(st, folder, truncate_dim=20)
    with model.truncate_embeddings(7):
        cut = model.encode(TEXTS)
    whole = [model.encode(TEXTS), model.encode(TEXTS, truncate_dim=5, normalize_embeddings=True)]
    return [cut, *whole, model.get_embedding_dimension(), model.truncate_dim]


@program
def packed(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    kinds = ("float32", "int8", "uint8", "binary", "ubinary")
    return [model.encode(TEXTS, precision=kind) for kind in kinds] + [model.encode("a", precision="binary")]


@program
def prompted(st: Any, folder: str) -> Any:
    model = opened(st, folder, prompts=PROMPTS)
    return [
        model.encode_query(TEXTS),
        model.encode_document(TEXTS),
        model.encode_document("a dog"),
        model.encode(TEXTS, prompt_name="passage"),
        model.encode(TEXTS, prompt="two "),
        model.prompts,
    ]


@program
def prompted_unless_told(st: Any, folder: str) -> Any:
    model = opened(st, folder, prompts=PROMPTS, default_prompt_name="query")
    return [model.encode(TEXTS), model.encode(TEXTS, prompt=""), model.default_prompt_name]


@program
def vectors_of_tokens(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    return [
        model.encode(TEXTS, output_value="token_embeddings"),
        model.encode("a", output_value="token_embeddings"),
    ]


@program
def everything_of_a_text(st: Any, folder: str) -> Any:
    found = opened(st, folder).encode("the dog runs", output_value=None)
    return {
        name: found[name]
        for name in ("input_ids", "attention_mask", "sentence_embedding", "token_embeddings")
    }


@program
def similarities(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    vectors, found = model.encode(TEXTS), []
    for name in ("cosine", "dot", "euclidean", "manhattan"):
        model.similarity_fn_name = name
        found += [
            model.similarity(vectors, 2 * vectors[:3]),
            model.similarity_pairwise(vectors, vectors[::-1].copy()),
        ]
        found += [model.similarity(vectors[0], vectors[1]), model.similarity_fn_name]
    return found


@program
def limits(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    before = model.max_seq_length
    model.max_seq_length = 9
    return [before, model.max_seq_length, model.encode(TEXTS), model.get_max_seq_length()]


@program
def tokens(st: Any, folder: str) -> Any:
    model = opened(st, folder)
    found = model.preprocess(TEXTS)
    return [
        found["input_ids"],
        found["attention_mask"],
        model.tokenizer.tokenize("the dog runs"),
        len(model.tokenizer),
        str(model.device),
    ]


@program
def measures(st: Any, folder: str) -> Any:
    import torch

    a, b = np.split(VECTORS, 2)
    kinds = (np.copy, torch.from_numpy, list, np.ndarray.tolist)
    names = (
        "cos_sim",
        "dot_score",
        "euclidean_sim",
        "manhattan_sim",
        "pairwise_cos_sim",
        "pairwise_dot_score",
    )
    names += ("pairwise_euclidean_sim", "pairwise_manhattan_sim", "pytorch_cos_sim")
    found = [getattr(st.util, name)(kind(a), kind(b)) for name in names for kind in kinds]
    return [
        *found,
        st.util.normalize_embeddings(torch.from_numpy(VECTORS)),
        st.util.truncate_embeddings(VECTORS, 3),
    ]


@program
def searches(st: Any, folder: str) -> Any:
    import torch

    def lopsided(a: Any, b: Any) -> Any:
        return 2 * a @ b.T

    queries = VECTORS[:20] + 0.1
    return [
        st.util.semantic_search(queries, VECTORS),
        st.util.semantic_search(queries[0], VECTORS, top_k=3),
        st.util.semantic_search(torch.from_numpy(queries), torch.from_numpy(VECTORS), top_k=500),
        st.util.semantic_search(queries, VECTORS, score_function=st.util.dot_score),
        st.util.semantic_search(
            queries, VECTORS, score_function=lopsided, query_chunk_size=7, corpus_chunk_size=40
        ),
    ]


@program
def paraphrases(st: Any, folder: str) -> Any:
    import torch

    vectors = torch.from_numpy(VECTORS)
    mined = st.util.paraphrase_mining(opened(st, folder), sentences(60, seed=3), max_pairs=40)
    return [
        st.util.paraphrase_mining_embeddings(vectors, top_k=3),
        st.util.paraphrase_mining_embeddings(vectors, max_pairs=50, query_chunk_size=20),
        st.util.paraphrase_mining_embeddings(vectors, top_k=5, score_function=st.util.dot_score),
        [score for score, *_ in mined],
    ]


@program
def communities(st: Any, folder: str) -> Any:
    crowd = np.repeat(VECTORS[:30], 4, axis=0) + 0.3 * np.random.default_rng(1).standard_normal((120, 12))
    crowd = crowd.astype(np.float32)
    return [
        st.util.community_detection(crowd, threshold=threshold, min_community_size=size)
        for threshold in (0.5, 0.7, 0.9)
        for size in (2, 3, 10)
    ]


@program
def fewer_bits(st: Any, folder: str) -> Any:
    ranges = np.stack([VECTORS.min(axis=0), VECTORS.max(axis=0)])
    quantise = st.util.quantize_embeddings
    return [
        quantise(VECTORS, "int8", ranges=ranges),
        quantise(VECTORS[0], "uint8", ranges=ranges),
        quantise(VECTORS[:2], "int8", calibration_embeddings=VECTORS),
        quantise(VECTORS, "binary"),
        quantise(list(VECTORS), "ubinary"),
    ]


@program
def evaluations(st: Any, folder: str) -> Any:
    """Their evaluators, on either model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers.sentence_transformer import evaluation
    a, b = sentences(20, seed=8, max_words=6), sentences(20, seed=9, max_words=6)
    by_id = ({str(row): text for row, text in enumerate(texts)} for texts in (a, b))
    model = opened(st, folder)
    return [
        {name: float(value) for name, value in model.evaluate(evaluator).items()}
        for evaluator in (
            evaluation.EmbeddingSimilarityEvaluator(a, b, np.linspace(0, 1, 20).tolist()),
            evaluation.TripletEvaluator(a, b, b[::-1]),
            evaluation.InformationRetrievalEvaluator(*by_id, {str(row): {str(row)} for row in range(20)}),
        )
    ]


ANCHORS = [*sentences(25, seed=5, max_words=6), *sentences(5, seed=5, max_words=6)]  # some of them twice
POSITIVES = sentences(30, seed=6, max_words=6)
MINING: dict[str, dict[str, Any]] = {
    "plain": {},
    "tuples": {"output_format": "n-tuple", "output_scores": True},
    "labelled pairs": {"output_format": "labeled-pair", "num_negatives": 2},
    "labelled lists": {"output_format": "labeled-list", "range_min": 2, "output_scores": True},
    "labels": {"output_format": "labeled-list", "max_score": 0.8},
    "margins": {"absolute_margin": 0.05, "relative_margin": 0.1, "output_scores": True},
    "between": {"min_score": 0.2, "max_score": 0.9, "range_max": 12, "output_scores": True},
    "with positives": {"include_positives": True},
    "at random": {"sampling_strategy": "random", "range_max": 20, "output_scores": True},
    "a corpus": {
        "corpus": sentences(50, seed=7, max_words=6),
        "query_prompt": "the red ",
        "output_scores": True,
    },
    "few texts": {"num_negatives": 28, "output_format": "labeled-list"},
}


@pytest.mark.parametrize("name", MINING)
def test_hard_negatives_are_those_of_the_original(theirs: Any, tiny_bert: Path, name: str) -> None:
    from datasets import Dataset

    given, found = {"question": ANCHORS, "answer": POSITIVES}, {}
    for st in (theirs, ours):
        random.seed(3)
        dataset = Dataset.from_dict(given)
        model = opened(st, str(tiny_bert))
        mined = st.util.mine_hard_negatives(dataset, model, verbose=False, **MINING[name])
        assert type(mined) is Dataset
        found[st.__name__] = {column: list(mined[column]) for column in mined.column_names}
    (expected, made) = found.values()
    assert len(next(iter(expected.values()))) > 5
    assert_alike(made, expected)
    random.seed(3)
    quick = ours.util.mine_hard_negatives(given, opened(ours, str(tiny_bert)), **MINING[name])
    assert quick == made


def test_a_cross_encoder_judges_candidates_as_in_the_original(
    theirs: Any, tiny_bert: Path, tiny_reranker_folder: Path
) -> None:
    from datasets import Dataset

    found = []
    for st in (theirs, ours):
        more = {"precision": "float32"} if st is ours else {}
        judge = st.CrossEncoder(str(tiny_reranker_folder), device="cpu", **more)
        dataset = Dataset.from_dict({"question": ANCHORS, "answer": POSITIVES})
        model = opened(st, str(tiny_bert))
        mined = st.util.mine_hard_negatives(
            dataset, model, cross_encoder=judge, max_score=0.99, output_scores=True, verbose=False
        )
        found.append({column: list(mined[column]) for column in mined.column_names})
    assert len(found[0]["negative"]) > 5
    assert_alike(found[1], found[0])


def assert_alike(found: Any, expected: Any) -> None:
    """The same type, shape and kind of numbers; numbers as close as two orders of summing are."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for each, other in zip(found, expected, strict=True):
            assert_alike(each, other)
        return
    assert type(found) is type(expected)
    if isinstance(expected, str | int | None):
        assert found == expected
        return
    assert getattr(found, "dtype", float) == getattr(expected, "dtype", float)
    here, there = np.asarray(found), np.asarray(expected)
    assert here.shape == there.shape
    if (
        here.dtype in (np.int8, np.uint8) and here.shape[-1:] == VECTORS.shape[-1:]
    ):  # a border may be on either side
        assert np.abs(here.astype(int) - there.astype(int)).max(initial=0) <= 1
    elif here.dtype in (np.int8, np.uint8):
        assert (here == there).mean() > 0.99
    else:
        np.testing.assert_allclose(here, there, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_with_either_import(theirs: Any, tiny_bert: Path, name: str) -> None:
    assert_alike(PROGRAMS[name](ours, str(tiny_bert)), PROGRAMS[name](theirs, str(tiny_bert)))


def test_the_default_model_gives_the_same_vectors_and_by_bytes_nearly_the_same(
    theirs: Any, default_weights: Path
) -> None:
    texts = ["A man is eating food.", "How do I compress a file?", "", "Ça va? 한국어", "word " * 300]
    expected = theirs.SentenceTransformer(str(default_weights), device="cpu").encode(texts)
    exact = opened(ours, str(default_weights)).encode(texts)
    np.testing.assert_allclose(exact, expected, atol=2e-5)
    quick = ours.SentenceTransformer(str(default_weights), on_truncate="ignore").encode(texts)
    assert (quick * expected).sum(axis=1).min() > 0.99


@pytest.fixture(scope="module", params=[("score",), ("contradiction", "entailment", "neutral")])
def reranker_folder(
    request: pytest.FixtureRequest, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    import torch

    from gemel.checkpoint import read_encoder_folder
    from gemel.model import CrossEncoder

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("reranker") / "model"
    CrossEncoder.from_encoder(read_encoder_folder(tiny_bert), request.param, device="cpu").save(folder)
    return folder


def reread(st: Any, folder: Path) -> Any:
    import torch

    more = {"precision": "float32"} if st is ours else {}
    model = st.CrossEncoder(str(folder), device="cpu", max_length=30, **more)
    found = [
        model.predict(PAIRS),
        model.predict(PAIRS[0]),
        model.predict(list(PAIRS[0])),
        model.predict([]),
        model.predict(PAIRS, apply_softmax=True),
        model.predict(PAIRS, activation_fn=torch.nn.Identity()),
        model.predict(PAIRS, convert_to_tensor=True),
        model.predict(PAIRS, convert_to_numpy=False),
        model.num_labels,
        model.max_seq_length,
    ]
    if model.num_labels == 1:
        texts = [text for _, text in PAIRS]
        found += [model.rank("the dog", texts, top_k=5), model.rank("a cat", texts, return_documents=True)]
    return found


def test_cross_encoders_give_the_same(theirs: Any, reranker_folder: Path) -> None:
    assert_alike(reread(ours, reranker_folder), reread(theirs, reranker_folder))


def test_what_is_saved_opens_there_with_its_prompts_and_gives_the_same(
    theirs: Any, tiny_bert: Path, tmp_path: Path
) -> None:
    model = opened(ours, str(tiny_bert), prompts=PROMPTS, default_prompt_name="query", truncate_dim=9)
    model.similarity_fn_name = "dot"
    model.max_seq_length = 20
    model.save(tmp_path / "saved")
    again = theirs.SentenceTransformer(str(tmp_path / "saved"), device="cpu")
    assert (again.max_seq_length, again.similarity_fn_name, again.default_prompt_name) == (20, "dot", "query")
    assert again.prompts == model.prompts
    assert_alike(model.encode(TEXTS), again.encode(TEXTS))


MISTAKES: dict[str, Program] = {
    "unknown prompt": lambda st, folder: opened(st, folder).encode("a", prompt_name="nonsense"),
    "no batch": lambda st, folder: opened(st, folder).encode("a", batch_size=0),
    "unknown argument": lambda st, folder: opened(st, folder).encode("a", colour="red"),
    "unknown precision": lambda st, folder: opened(st, folder).encode("a", precision="int3"),
    "one row in int8": lambda st, folder: opened(st, folder).encode("a", precision="int8"),
    "unknown measure": lambda st, folder: opened(st, folder, similarity_fn_name="maximum"),
    "unknown default prompt": lambda st, folder: opened(st, folder, default_prompt_name="nonsense"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_wrong_there_is_wrong_here(theirs: Any, tiny_bert: Path, name: str) -> None:
    for st in (theirs, ours):
        with pytest.raises(ValueError, match=r"\w"):
            MISTAKES[name](st, str(tiny_bert))
