"""The names of sentence-transformers on gemel's engine: change the import, keep the program.

Neither torch nor sentence-transformers is needed. Where torch is installed, what is a tensor there is a
tensor here; elsewhere it is an array. What cannot be honoured is refused, never silently ignored, except for
what only says how to compute (batch sizes, backends, pools of processes): the engine sees to that itself.
"""

from __future__ import annotations

from gemel.adapters.sentence_transformers import util
from gemel.adapters.sentence_transformers.cross_encoder import CrossEncoder
from gemel.adapters.sentence_transformers.measures import SimilarityFunction
from gemel.adapters.sentence_transformers.model import SentenceTransformer

__all__ = ["CrossEncoder", "SentenceTransformer", "SimilarityFunction", "util"]
