"""mteb itself runs the adapter and gives the published figures."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.data.retrieval import read_retrieval
from gemel.evaluate.retrieval import evaluate_retrieval
from gemel.pair_scorer import PairScorer

pytestmark = pytest.mark.extras

# sentence-transformers/all-MiniLM-L6-v2 in mteb's own table of results, cosine Spearman in percent
PUBLISHED = {
    "STSBenchmark": (("stsb/test.tsv",), 82.03),
    "SICK-R": (("sick/train.tsv", "sick/dev.tsv", "sick/test.tsv"), 77.58),  # all that there is of it
}


@pytest.fixture(scope="module")
def mteb() -> Any:
    return imported("mteb")


def local_task(mteb: Any, name: str, rows: list[dict[str, Any]]) -> Any:
    """mteb's own task, fed from here instead of from the hub."""
    from datasets import Dataset, DatasetDict

    task = mteb.get_task(name)
    task.dataset = DatasetDict({"test": Dataset.from_list(rows)})
    task.data_loaded = True
    return task


def pairs_of(file: Path) -> list[dict[str, Any]]:
    header, *lines = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    columns = [header.index(name) for name in ("sentence1", "sentence2", "score")]
    found = [[line[column] for column in columns] for line in lines]
    return [{"sentence1": a, "sentence2": b, "score": float(score)} for a, b, score in found]


def evaluated(mteb: Any, model: Any, task: Any, split: str = "test") -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mteb.evaluate(
            model,
            task,
            cache=None,
            co2_tracker=False,
            show_progress_bar=False,
            encode_kwargs={"batch_size": 64},
        )
    score: float = found.task_results[0].scores[split][0]["main_score"]
    return 100 * score


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_figures_come_out(mteb: Any, real_data: Path, default_weights: Path, name: str) -> None:
    from gemel.adapters.mteb import MtebEncoder

    files, expected = PUBLISHED[name]
    rows = [row for file in files for row in pairs_of(real_data / file)]
    score = evaluated(mteb, MtebEncoder(str(default_weights)), local_task(mteb, name, rows))
    assert score == pytest.approx(expected, abs=0.01)


def test_search_is_judged_as_gemel_judges_it(mteb: Any, real_data: Path, default_weights: Path) -> None:
    from datasets import Dataset

    from gemel.adapters.mteb import MtebEncoder

    data = read_retrieval(real_data / "cranfield")
    task = mteb.get_task("NanoQuoraRetrieval")  # any of its tasks of this kind: the data are not its own
    relevance = {
        query: {document: int(grade) for document, grade in judged.items()}
        for query, judged in data.relevance.items()
    }
    columns = {
        name: Dataset.from_list([{"id": id_, "text": text, **title} for id_, text in texts.items()])
        for name, texts, title in (("corpus", data.documents, {"title": ""}), ("queries", data.queries, {}))
    }
    task.dataset = {"default": {"train": {**columns, "relevant_docs": relevance, "top_ranked": None}}}
    task.data_loaded = True
    encoder = load_encoder(default_weights, on_truncate="ignore")
    score = evaluated(mteb, MtebEncoder(encoder), task, split="train")
    assert score == pytest.approx(100 * evaluate_retrieval(encoder, data).metrics["ndcg@10"], abs=0.1)


def test_a_reranker_scores_the_pairs_of_two_streams(mteb: Any, tiny_reranker: PairScorer) -> None:
    from mteb.models import CrossEncoderProtocol

    from gemel.adapters.mteb import MtebReranker

    model = MtebReranker(tiny_reranker)
    assert isinstance(model, CrossEncoderProtocol)
    assert model.mteb_model_meta.revision == tiny_reranker.fingerprint
    queries = [{"text": ["a dog", "a cat"]}, {"text": ["the piano"]}]
    documents = [{"text": ["the dog"]}, {"text": ["one dog", "a guitar"]}]
    expected = tiny_reranker.score([("a dog", "the dog"), ("a cat", "one dog"), ("the piano", "a guitar")])
    assert np.array_equal(model.predict(queries, documents), expected)


def test_any_encoder_is_a_model_and_is_known_by_its_fingerprint(mteb: Any) -> None:
    from mteb.models import EncoderProtocol

    from gemel.adapters.mteb import MtebEncoder

    model = MtebEncoder(ToyEncoder())
    assert isinstance(model, EncoderProtocol)
    assert (model.mteb_model_meta.name, model.mteb_model_meta.revision) == ("gemel/ToyEncoder", "toy-16")
    texts = ["the dog", "the cat", "a piano"]
    rows = [
        {"sentence1": text, "sentence2": f"{text} runs", "score": float(score)}
        for score, text in enumerate(texts)
    ]
    assert -100 <= evaluated(mteb, model, local_task(mteb, "STSBenchmark", rows)) <= 100
