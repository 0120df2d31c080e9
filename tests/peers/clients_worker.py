"""Asks a running server with one of the clients that people have; runs in the environment of the clients.

    python clients_worker.py CLIENT '{"url": ..., "texts": [...], ...}'

prints what came back as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


def ask_openai(url: str, key: str, texts: list[str], **_: Any) -> Any:
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    model = client.models.list().data[0].id
    answer = client.embeddings.create(model=model, input=texts)
    floats = client.embeddings.create(model=model, input=texts, encoding_format="float")
    short = client.embeddings.create(model=model, input=texts[0], dimensions=5)
    errors = {}
    for name, arguments in {
        "model": {"model": "no-such-model"},
        "size": {"model": model, "dimensions": 9_999},
    }.items():
        try:
            client.embeddings.create(input=texts, **arguments)
        except openai.APIStatusError as error:
            errors[name] = [type(error).__name__, error.status_code, error.code, error.body["message"]]
    try:
        openai.OpenAI(base_url=f"{url}/v1", api_key="wrong").embeddings.create(model=model, input="a")
    except openai.AuthenticationError as error:
        errors["key"] = [type(error).__name__, error.status_code, error.code, error.body["message"]]
    return {
        "vectors": [entry.embedding for entry in answer.data],
        "floats": [entry.embedding for entry in floats.data],
        "short": [entry.embedding for entry in short.data],
        "tokens": answer.usage.prompt_tokens,
        "model": client.models.retrieve(model).id,
        "errors": errors,
        "async": asyncio.run(_ask_openai_async(url, key, texts)),
    }


async def _ask_openai_async(url: str, key: str, texts: list[str]) -> Any:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client:
        answers = await asyncio.gather(
            *(client.embeddings.create(model="tiny-encoder", input=text) for text in texts)
        )
    return [answer.data[0].embedding for answer in answers]


def ask_cohere(url: str, key: str, query: str, texts: list[str], **_: Any) -> Any:
    import cohere

    found = {}
    for name, kind in (("v2", cohere.ClientV2), ("v1", cohere.Client)):
        client = kind(api_key=key, base_url=url)
        answer = client.rerank(model="tiny-reranker", query=query, documents=texts, top_n=5)
        found[name] = [[entry.index, entry.relevance_score] for entry in answer.results]
        try:
            client.rerank(model="rerank-v3.5", query=query, documents=texts)
        except cohere.NotFoundError as error:
            found[f"{name} error"] = error.body["message"]
    return found


def ask_huggingface(url: str, key: str, texts: list[str], **_: Any) -> Any:
    from huggingface_hub import InferenceClient

    root, named = InferenceClient(model=url, token=key), InferenceClient(model=f"{url}/embed", token=key)
    similarity = InferenceClient(model=f"{url}/similarity", token=key)
    return {
        "root": root.feature_extraction(texts[1]).tolist(),
        "embed": named.feature_extraction(texts[1], normalize=True, truncate=True).tolist(),
        "prompted": named.feature_extraction(texts[1], prompt_name="query").tolist(),
        "similarity": similarity.sentence_similarity(texts[0], other_sentences=texts[1:]),
    }


def ask_langchain(url: str, key: str, texts: list[str], **_: Any) -> Any:
    from langchain_openai import OpenAIEmbeddings

    embeddings = OpenAIEmbeddings(
        model="tiny-encoder", base_url=f"{url}/v1", api_key=key, check_embedding_ctx_length=False
    )
    return {"documents": embeddings.embed_documents(texts), "query": embeddings.embed_query(texts[0])}


def ask_llama_index(url: str, key: str, texts: list[str], **_: Any) -> Any:
    from llama_index.embeddings.openai import OpenAIEmbedding

    embedding = OpenAIEmbedding(model_name="tiny-encoder", api_base=f"{url}/v1", api_key=key)
    return {
        "documents": embedding.get_text_embedding_batch(texts),
        "query": embedding.get_query_embedding(texts[0]),
    }


if __name__ == "__main__":
    ask = globals()[f"ask_{sys.argv[1]}"]
    sys.stdout.write("\n" + json.dumps(ask(**json.loads(sys.argv[2]))) + "\n")
