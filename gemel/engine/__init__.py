"""The native engine behind `load_encoder` and `load_reranker`: no torch."""

from gemel.engine.assembly import EngineSettings
from gemel.engine.encoder import NativeEncoder
from gemel.engine.families import family_of
from gemel.engine.reranker import NativeReranker

__all__ = ["EngineSettings", "NativeEncoder", "NativeReranker", "family_of"]
