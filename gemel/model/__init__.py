"""The torch side: encoders and cross-encoders that can be trained."""

from importlib.util import find_spec

from gemel.errors import MissingExtra

if not (find_spec("torch") and find_spec("transformers")):
    raise MissingExtra("the torch engine", "train")

from gemel.model.cross_encoder import CrossEncoder
from gemel.model.sentence_encoder import SentenceEncoder

__all__ = ["CrossEncoder", "SentenceEncoder"]
