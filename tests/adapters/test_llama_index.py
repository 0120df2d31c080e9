"""gemel inside LlamaIndex."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported
from stand_ins import ToyEncoder

from gemel import load_encoder
from gemel.checkpoint.resolving import DEFAULT_MODEL
from gemel.errors import InvalidInput, ModelNotFound
from gemel.pair_scorer import PairScorer

pytestmark = pytest.mark.extras

TEXTS = ["the dog runs", "a cat sleeps", "the old piano", "a new guitar"]


@pytest.fixture(scope="module")
def core() -> Any:
    return imported("llama_index.core")


def test_each_side_has_its_own_prompt(core: Any, prompted_folder: Path) -> None:
    from gemel.adapters.llama_index import GemelEmbedding

    model = GemelEmbedding(str(prompted_folder), precision="float32")
    plain = load_encoder(prompted_folder, precision="float32")
    query, texts = (
        plain.encode_one("the red dog").tolist(),
        plain.encode([f"a big {each}" for each in TEXTS]).tolist(),
    )
    assert model.get_query_embedding("dog") == query
    assert asyncio.run(model.aget_query_embedding("dog")) == query
    assert model.get_text_embedding_batch(TEXTS) == texts
    assert asyncio.run(model.aget_text_embedding_batch(TEXTS)) == texts
    assert model.get_text_embedding(TEXTS[1]) == texts[1]
    assert (model.class_name(), model.model_name) == ("GemelEmbedding", str(prompted_folder))


def test_a_model_is_opened_by_the_name_that_llama_index_has_for_it(core: Any, tiny_bert: Path) -> None:
    from gemel.adapters.llama_index import GemelEmbedding

    expected = load_encoder(tiny_bert, precision="float32").encode_one("a dog").tolist()
    named = GemelEmbedding(model_name=str(tiny_bert), precision="float32")
    assert named.get_text_embedding("a dog") == expected
    for model in (named, GemelEmbedding(tiny_bert, precision="float32")):
        assert model.model_name == str(tiny_bert)
        for again in (GemelEmbedding.from_dict(model.to_dict()), pickle.loads(pickle.dumps(model))):
            assert again.get_text_embedding("a dog") == expected
    labelled = GemelEmbedding(str(tiny_bert), model_name="ours", precision="float32")
    for model in (
        labelled,
        GemelEmbedding.from_dict(labelled.to_dict()),
        pickle.loads(pickle.dumps(labelled)),
    ):
        assert (model.model_name, model.get_text_embedding("a dog")) == ("ours", expected)


def test_a_name_that_opens_nothing_is_refused(core: Any, tmp_path: Path) -> None:
    from gemel.adapters.llama_index import GemelEmbedding

    with pytest.raises(ModelNotFound):
        GemelEmbedding(model_name=str(tmp_path / "nowhere"))
    saved = GemelEmbedding(ToyEncoder()).to_dict()
    with pytest.raises(InvalidInput, match="stands for a model that was given open; give that model"):
        GemelEmbedding.from_dict(saved)
    again = GemelEmbedding.from_dict(saved, model=ToyEncoder())
    assert again.get_text_embedding("a dog") == ToyEncoder().encode(["a dog"])[0].tolist()


def test_the_default_model_has_a_name_by_which_it_is_opened_again(
    core: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gemel.adapters import llama_index

    monkeypatch.setattr(llama_index, "open_encoder", lambda model, **choices: ToyEncoder())
    assert llama_index.GemelEmbedding().model_name == DEFAULT_MODEL


def test_an_index_of_theirs_finds_the_nearest_text(core: Any) -> None:
    from gemel.adapters.llama_index import GemelEmbedding

    encoder = ToyEncoder()
    index = core.VectorStoreIndex.from_documents(
        [core.Document(text=text) for text in TEXTS], embed_model=GemelEmbedding(encoder)
    )
    (found,) = index.as_retriever(similarity_top_k=1).retrieve("a cat")
    assert found.text == "a cat sleeps"
    expected = encoder.encode(["a cat"]) @ encoder.encode(["a cat sleeps"]).T
    assert found.score == pytest.approx(float(expected[0, 0]), abs=1e-5)


def test_nodes_are_put_into_the_rerankers_order(core: Any, tiny_reranker: PairScorer) -> None:
    from llama_index.core.schema import NodeWithScore, TextNode

    from gemel.adapters.llama_index import GemelRerank

    nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in TEXTS]
    scores = tiny_reranker.score([("a dog", text) for text in TEXTS])
    order = np.argsort(-scores, kind="stable")[:2]
    ranker = GemelRerank(tiny_reranker, top_n=2, keep_retrieval_score=True)
    found = ranker.postprocess_nodes(nodes, query_str="a dog")
    assert [each.text for each in found] == [TEXTS[row] for row in order]
    assert [each.score for each in found] == pytest.approx(scores[order].tolist())
    assert found[0].node.metadata["retrieval_score"] == 0.5
    assert ranker.postprocess_nodes([], query_str="a dog") == []
    with pytest.raises(InvalidInput, match="without a query"):
        ranker.postprocess_nodes(nodes)
