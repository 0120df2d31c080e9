"""Texts into token ids, the same way for every engine."""

from gemel.tokens.pairs import PairTokenizer
from gemel.tokens.pieces import Ids, Pieces, Token
from gemel.tokens.texts import TextTokenizer

__all__ = ["Ids", "PairTokenizer", "Pieces", "TextTokenizer", "Token"]
