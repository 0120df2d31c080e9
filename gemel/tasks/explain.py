"""Why a record was found: its place in each channel, the query's words in it, and the words that count.

How much a word counts is measured, not guessed: the hit is encoded once more without it, and what its score
loses is the word's influence. That is true of every encoder, whatever goes on in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from gemel.contracts import Encoder, Vectors
from gemel.similarity import MEASURES

MOST_PARTS = 24  # of a long hit that are left out in turn, some words together

_WORD = re.compile(r"\w+")
# Letters of scripts that leave no spaces between words, or (Korean) glue particles to them.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af]"
)


class Match(NamedTuple):
    """A part of a hit, `text[start:end]`."""

    start: int
    end: int


class Influence(NamedTuple):
    """What a part of a hit, `text[start:end]`, adds to its similarity with the query."""

    start: int
    end: int
    share: float


@dataclass(frozen=True)
class Place:
    """Where a channel has put a hit: its rank from 1, its score there, and what that adds to the whole."""

    rank: int
    score: float
    share: float


@dataclass(frozen=True)
class Explanation:
    """How a hit came to its score: the sum of the shares of its places, or the reranker's score of it."""

    channels: dict[Literal["dense", "lexical"], Place]
    matches: tuple[Match, ...]  # words of the query in the hit
    influences: tuple[Influence, ...]  # the parts of the hit by what they add to the dense score, most first
    reranked_from: int | None = None  # the rank before a reranker read it


def is_unspaced(query: str) -> bool:
    """Whether a query is in a script whose words have no simple borders."""
    return _UNSPACED.search(query) is not None


def matches(query: str, text: str) -> tuple[Match, ...]:
    """The words of a text that stand in the query, accents and case apart; parts of words where scripts have
    no spaces."""
    if is_unspaced(query):
        return _stretches(query, text)
    wanted = {_folded(word) for word in _WORD.findall(query)}
    return tuple(
        Match(found.start(), found.end())
        for found in _WORD.finditer(text)
        if _folded(found.group()) in wanted
    )


def influences(encoder: Encoder, query: Vectors, texts: Sequence[str], measure: str) -> list[list[Influence]]:
    """For each text what its parts add to its similarity with a query (1, dim), most first."""
    parts = [_parts_of(text) for text in texts]
    without = [
        text[:start] + " " + text[end:] for text, own in zip(texts, parts, strict=True) for start, end in own
    ]
    scores = MEASURES[measure](query, encoder.encode([*texts, *without]))[0].astype(np.float64)
    whole, partial = scores[: len(texts)], iter(scores[len(texts) :].tolist())
    return [
        sorted(
            (Influence(start, end, float(score) - next(partial)) for start, end in own),
            key=lambda influence: -influence.share,
        )
        for score, own in zip(whole, parts, strict=True)
    ]


def _parts_of(text: str) -> list[Match]:
    """The words of a text, or as many stretches of words as are still looked at in time."""
    words = [Match(found.start(), found.end()) for found in _WORD.finditer(text)]
    if len(words) < 2:
        return words
    step = -(-len(words) // MOST_PARTS)
    groups = [words[start : start + step] for start in range(0, len(words), step)]
    return [Match(group[0].start, group[-1].end) for group in groups]


def _stretches(query: str, text: str) -> tuple[Match, ...]:
    """Stretches of two letters or more that both have, joined where they meet."""
    asked = "".join(query.lower().split(" "))
    pairs = {asked[at : at + 2] for at in range(len(asked) - 1)}
    lower = text.lower()
    if len(lower) != len(text):  # a few letters change their length with their case
        lower = text
    found: list[Match] = []
    for at in range(len(lower) - 1):
        if lower[at : at + 2] in pairs:
            if found and found[-1].end >= at + 1:
                found[-1] = Match(found[-1].start, at + 2)
            else:
                found.append(Match(at, at + 2))
    return tuple(found)


def _folded(word: str) -> str:
    """The word as the full text compares it: without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
