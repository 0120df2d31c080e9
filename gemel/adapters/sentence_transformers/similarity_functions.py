"""`sentence_transformers.similarity_functions` under its name there."""

from __future__ import annotations

from gemel.adapters.sentence_transformers.measures import SimilarityFunction

__all__ = ["SimilarityFunction"]
