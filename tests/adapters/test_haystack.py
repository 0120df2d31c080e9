"""gemel inside Haystack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters.packages import imported

from gemel import load_encoder, load_reranker
from gemel.errors import InvalidInput

pytestmark = pytest.mark.extras

TEXTS = ["the dog runs", "a cat sleeps", "the old piano", "a new guitar"]


@pytest.fixture(scope="module")
def haystack() -> Any:
    return imported("haystack")


def test_queries_and_documents_get_their_vectors(haystack: Any, prompted_folder: Path) -> None:
    from gemel.adapters.haystack import GemelDocumentEmbedder, GemelTextEmbedder

    plain = load_encoder(prompted_folder, precision="float32")
    texts = GemelTextEmbedder(str(prompted_folder), precision="float32", prefix="old ", suffix=" .")
    texts.warm_up()
    assert texts.run("dog") == {"embedding": plain.encode_one("the red old dog .").tolist()}
    documents = [haystack.Document(content=text, meta={"title": "new"}) for text in TEXTS]
    embedder = GemelDocumentEmbedder(
        str(prompted_folder),
        precision="float32",
        meta_fields_to_embed=["title", "none"],
        embedding_separator=" , ",
    )
    found = embedder.run(documents)["documents"]
    assert [each.embedding for each in found] == plain.encode(
        [f"a big new , {text}" for text in TEXTS]
    ).tolist()
    assert documents[0].embedding is None
    short = GemelTextEmbedder(str(prompted_folder), truncate_dim=5, normalize_embeddings=True).run("dog")
    assert np.linalg.norm(short["embedding"]) == pytest.approx(1)
    assert len(short["embedding"]) == 5


def test_documents_are_put_into_the_rerankers_order(haystack: Any, tiny_reranker_folder: Path) -> None:
    from gemel.adapters.haystack import GemelRanker

    documents = [haystack.Document(content=text) for text in TEXTS]
    scores = load_reranker(tiny_reranker_folder).score([("a dog", text) for text in TEXTS])
    order = np.argsort(-scores, kind="stable")
    ranker = GemelRanker(str(tiny_reranker_folder), top_k=3)
    found = ranker.run("a dog", documents)["documents"]
    assert [each.content for each in found] == [TEXTS[row] for row in order[:3]]
    assert [each.score for each in found] == pytest.approx(scores[order[:3]].tolist())
    floor = float(scores[order[1]])
    assert len(ranker.run("a dog", documents, score_threshold=floor)["documents"]) == 2
    assert ranker.run("a dog", []) == {"documents": []}


def test_a_pipeline_is_written_and_read_with_its_components(
    haystack: Any, tiny_bert: Path, tiny_reranker_folder: Path
) -> None:
    from gemel.adapters.haystack import GemelDocumentEmbedder, GemelRanker, GemelTextEmbedder

    parts = {
        "texts": GemelTextEmbedder(str(tiny_bert), prefix="a ", truncate_dim=8),
        "documents": GemelDocumentEmbedder(str(tiny_bert), meta_fields_to_embed=["title"]),
        "ranker": GemelRanker(str(tiny_reranker_folder), top_k=2, score_threshold=0.1),
    }
    for part in parts.values():
        again = type(part).from_dict(part.to_dict())
        assert again.to_dict() == part.to_dict()
    pipeline = haystack.Pipeline()
    for name in ("documents", "ranker"):
        pipeline.add_component(name, parts[name])
    pipeline.connect("documents.documents", "ranker.documents")
    documents = [haystack.Document(content=text) for text in TEXTS]
    asked = {"documents": {"documents": documents}, "ranker": {"query": "a dog", "score_threshold": -9.0}}
    expected = pipeline.run(asked)["ranker"]["documents"]
    written = pipeline.dumps()
    read = haystack.Pipeline.loads(written, allowed_modules=["gemel.adapters.haystack"])
    found = read.run(asked)["ranker"]["documents"]
    assert [each.content for each in found] == [each.content for each in expected]
    assert len(found) == 2


def test_the_wrong_kind_of_input_says_which_component_to_use(haystack: Any, tiny_bert: Path) -> None:
    from gemel.adapters.haystack import GemelDocumentEmbedder, GemelTextEmbedder

    with pytest.raises(InvalidInput, match="GemelDocumentEmbedder"):
        GemelTextEmbedder(str(tiny_bert)).run(["a dog"])
    with pytest.raises(InvalidInput, match="GemelTextEmbedder"):
        GemelDocumentEmbedder(str(tiny_bert)).run("a dog")
