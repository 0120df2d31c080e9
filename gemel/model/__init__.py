"""The torch side: encoders and cross-encoders that can be trained."""

from importlib.util import find_spec

from gemel.errors import MissingExtra

if not (find_spec("torch") and find_spec("transformers")):
    raise MissingExtra("the torch engine", "train")

from gemel.model.cross_encoder import CrossEncoder
from gemel.model.infersent import InferSent
from gemel.model.sentence_encoder import SentenceEncoder

Trainable = SentenceEncoder | InferSent  # what every objective on sentence vectors can train

__all__ = ["CrossEncoder", "InferSent", "SentenceEncoder", "Trainable"]
