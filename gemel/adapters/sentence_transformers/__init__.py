"""The names of sentence-transformers on gemel's engine: change the import, keep the program.

Neither torch nor sentence-transformers is needed. Where torch is installed, what is a tensor there is a
tensor here; elsewhere it is an array. What cannot be honoured is refused, never silently ignored, except for
what only says how to compute (batch sizes, backends, pools of processes): the engine sees to that itself.
"""

from __future__ import annotations

from typing import Any

from gemel.adapters.sentence_transformers import quantization, similarity_functions, util
from gemel.adapters.sentence_transformers.cross_encoder import CrossEncoder
from gemel.adapters.sentence_transformers.logs import LoggingHandler
from gemel.adapters.sentence_transformers.measures import SimilarityFunction
from gemel.adapters.sentence_transformers.missing import refused
from gemel.adapters.sentence_transformers.model import SentenceTransformer
from gemel.adapters.sentence_transformers.negatives import mine_hard_negatives
from gemel.adapters.sentence_transformers.quantisation import quantize_embeddings

__version__ = "6.2.0"  # the version whose names these are

__all__ = [
    "CrossEncoder",
    "LoggingHandler",
    "SentenceTransformer",
    "SimilarityFunction",
    "mine_hard_negatives",
    "quantization",
    "quantize_embeddings",
    "similarity_functions",
    "util",
]


def __getattr__(name: str) -> Any:
    raise refused(__name__, name)
