"""The functions of `sentence_transformers.util` that work on embeddings, and a few around them."""

from __future__ import annotations

from gemel.adapters.sentence_transformers.logs import LoggingHandler
from gemel.adapters.sentence_transformers.measures import (
    SimilarityFunction,
    cos_sim,
    dot_score,
    euclidean_sim,
    manhattan_sim,
    normalize_embeddings,
    pairwise_angle_sim,
    pairwise_cos_sim,
    pairwise_dot_score,
    pairwise_euclidean_sim,
    pairwise_manhattan_sim,
    pytorch_cos_sim,
    truncate_embeddings,
)
from gemel.adapters.sentence_transformers.negatives import mine_hard_negatives
from gemel.adapters.sentence_transformers.quantisation import quantize_embeddings
from gemel.adapters.sentence_transformers.retrieval import (
    community_detection,
    information_retrieval,
    paraphrase_mining,
    paraphrase_mining_embeddings,
    semantic_search,
)
from gemel.adapters.sentence_transformers.surroundings import batch_to_device, get_device_name, http_get

__all__ = [
    "LoggingHandler",
    "SimilarityFunction",
    "batch_to_device",
    "community_detection",
    "cos_sim",
    "dot_score",
    "euclidean_sim",
    "get_device_name",
    "http_get",
    "information_retrieval",
    "manhattan_sim",
    "mine_hard_negatives",
    "normalize_embeddings",
    "pairwise_angle_sim",
    "pairwise_cos_sim",
    "pairwise_dot_score",
    "pairwise_euclidean_sim",
    "pairwise_manhattan_sim",
    "paraphrase_mining",
    "paraphrase_mining_embeddings",
    "pytorch_cos_sim",
    "quantize_embeddings",
    "semantic_search",
    "truncate_embeddings",
]
