"""The torch side: encoders and cross-encoders that can be trained."""

from gemel.errors import MissingExtra

try:
    import torch as _torch
    import transformers as _transformers
except ImportError as error:
    raise MissingExtra("the torch engine", "train") from error

from gemel.model.cross_encoder import CrossEncoder
from gemel.model.sentence_encoder import SentenceEncoder

__all__ = ["CrossEncoder", "SentenceEncoder"]
