"""Distilling an encoder into a static table that encodes tens of thousands of texts a second.

Every token goes through the encoder by itself, gets fewer dimensions by principal components, and weighs the
less the more frequent it is, as in model2vec. Tuning then fits the rows to the encoder's own vectors of real
sentences, as Tokenlearn does; here by ridge regression, which takes seconds where training takes epochs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gemel.checkpoint import read_licence
from gemel.contracts import Vectors
from gemel.encoders.static import StaticEncoder, TokenTable
from gemel.encoders.token_ids import TokenIds
from gemel.errors import InvalidInput
from gemel.text_encoder import FolderEncoder, TextEncoder
from gemel.tokens import Ids
from gemel.train.static_card import StaticCard, format_static_card
from gemel.train.token_rows import (
    Projection,
    Starts,
    TokenSums,
    fit_rows,
    mean_cosine,
    rarity_weights,
    zipf_shares,
)

WINDOW_TEXTS = 8_192
MOST_HELD_OUT = 5_000
HELD_OUT = 20  # one sentence in so many
SMOOTHING_COUNTED = 1e-3  # STSb dev 79.3; at 1e-2 76.3, at 1e-4 77.9
SMOOTHING_BY_RANK = 1e-4  # STSb dev 73.0; at 1e-3 66.9


@dataclass(frozen=True)
class StaticConfig:
    """How a table is made; the defaults were chosen on STSb's dev set."""

    dim: int = 256
    tunes: bool = True
    n_sentences: int = 200_000  # at most, for tuning: a sample of the corpus
    smoothing: float | None = None  # of the token weights a / (a + p); None: by where p comes from
    ridge: float = 1.0  # how many sentences the encoder's vector of a lone token counts for
    n_steps: int = 8
    seed: int = 42

    def __post_init__(self) -> None:
        for name in ("dim", "n_sentences", "n_steps"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; expected at least 1")
        for name in ("smoothing", "ridge"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InvalidInput(f"{name} is {value!r}; expected a finite number above 0")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class StaticDistillation:
    """A static encoder, and what it was made from."""

    encoder: StaticEncoder
    config: StaticConfig
    n_read: int  # texts of the corpus
    n_tuned: int  # sentences that the rows were fitted to
    agreement: (
        tuple[float, float] | None
    )  # mean cosine to the teacher on held-out sentences, before and after
    licence: str | None

    def save(self, target: str | Path, *, base_model: str, overwrite: bool = False) -> None:
        """Write a folder that gemel, model2vec and Sentence-Transformers open, with its model card."""
        facts = StaticCard(
            name=Path(target).name,
            base_model=base_model,
            licence=self.licence,
            n_tokens=self.encoder.table.n_tokens,
            dim=self.encoder.dim,
            n_read=self.n_read,
            n_tuned=self.n_tuned,
            agreement=self.agreement,
            settings=self.config.to_dict(),
        )
        self.encoder.save(target, card=format_static_card(facts), overwrite=overwrite)


def distil_static(
    teacher: TextEncoder, corpus: Iterable[str] | None = None, config: StaticConfig | None = None
) -> StaticDistillation:
    """A static table that imitates an encoder; a corpus tells how frequent tokens are, and tunes the rows."""
    config = config or StaticConfig()
    teacher = _checked_teacher(teacher, config)
    if corpus is None and config.tunes:
        raise InvalidInput(
            "tuning was asked for without a corpus; expected sentences: give some, or set tunes=False"
        )
    vocabulary = _Vocabulary(teacher)
    sample = None if corpus is None else _read(corpus, vocabulary, config)
    if sample is not None and config.tunes:
        rows, n_tuned, agreement = _tuned_rows(teacher, vocabulary, sample, config)
    else:
        alone = vocabulary.vectors()
        projected = Projection.fit(alone[vocabulary.is_word], config.dim).of(alone)
        rows, n_tuned, agreement = vocabulary.weighted(projected, sample, config), 0, None
    encoder = StaticEncoder(
        vocabulary.ids.tokenizer,
        TokenTable(rows, normalises=True),
        tokenizer_json=teacher.tokenizer.to_json(),
    )
    n_read = 0 if sample is None else sample.n_read
    return StaticDistillation(encoder, config, n_read, n_tuned, agreement, read_licence(teacher.folder.path))


def _checked_teacher(teacher: TextEncoder, config: StaticConfig) -> FolderEncoder:
    if not isinstance(teacher, FolderEncoder):
        raise InvalidInput(
            f"a {type(teacher).__name__} was given to be distilled; expected a transformer, which reads "
            "tokens in their context: name its folder or hub name"
        )
    if config.dim > teacher.dim:
        raise InvalidInput(
            f"dim is {config.dim}, and the vectors of this model have {teacher.dim} numbers; "
            f"choose 1 to {teacher.dim}"
        )
    return teacher


class _Vocabulary:
    """The tokens of the teacher, and those of them that get a row."""

    def __init__(self, teacher: FolderEncoder) -> None:
        from tokenizers import Tokenizer

        self._teacher = teacher
        self.ids = TokenIds(Tokenizer.from_str(teacher.tokenizer.to_json()))
        self.n_tokens = teacher.tokenizer.n_tokens
        # A row of zeros leaves the direction of a mean as it is: so it is of no moment that model2vec drops
        # unknown tokens and Sentence-Transformers counts them.
        self.is_word = np.ones(self.n_tokens, np.bool_)
        added = self.ids.tokenizer.get_added_tokens_decoder()
        self.is_word[[number for number, token in added.items() if token.special]] = False
        if self.ids.unknown is not None:
            self.is_word[self.ids.unknown] = False
        if not self.is_word.any():
            raise InvalidInput("this model's vocabulary has nothing but special tokens; expected words")

    def vectors(self) -> Vectors:
        """What the teacher makes of each token alone (tokens, dim)."""
        return self._teacher.encode_ids(list(np.arange(self.n_tokens, dtype=np.int32)[:, None]))

    def of(self, texts: list[str]) -> tuple[Ids, Starts]:
        """The tokens of texts, special and unknown ones left out."""
        flat, starts = self.ids.of(texts)
        is_kept = self.is_word[flat]
        return flat[is_kept], np.concatenate([[0], np.cumsum(is_kept)])[starts]

    def weighted(self, rows: Vectors, sample: _Sample | None, config: StaticConfig) -> Vectors:
        """Rows at a mean length of 1, the shorter the more frequent their token is; special ones zero."""
        if sample is None:
            weights = rarity_weights(zipf_shares(self.n_tokens), config.smoothing or SMOOTHING_BY_RANK)
        else:
            shares = sample.counts / max(1, sample.counts.sum())
            weights = rarity_weights(shares, config.smoothing or SMOOTHING_COUNTED)
        weighted = rows * np.where(self.is_word, weights, 0)[:, None]
        mean_length = np.linalg.norm(weighted[self.is_word], axis=1).mean()
        scaled: Vectors = (weighted / (mean_length or 1)).astype(np.float32)
        return scaled


@dataclass(frozen=True)
class _Sample:
    sentences: list[str]
    counts: npt.NDArray[np.int64]  # (tokens,) in the whole corpus
    n_read: int


def _read(corpus: Iterable[str], vocabulary: _Vocabulary, config: StaticConfig) -> _Sample:
    """How often each token occurs, and an even sample of the different texts, in one pass over the corpus."""
    counts = np.zeros(vocabulary.n_tokens, np.int64)
    kept: list[str] = []
    n_read, texts, chance = 0, iter(corpus), random.Random(config.seed)
    while window := list(islice(texts, WINDOW_TEXTS)):
        flat, _ = vocabulary.of(window)
        counts += np.bincount(flat, minlength=vocabulary.n_tokens)
        for number, text in enumerate(window, n_read):
            if len(kept) < config.n_sentences:
                kept.append(text)
            elif (place := chance.randrange(number + 1)) < config.n_sentences:
                kept[place] = text
        n_read += len(window)
    if not counts.any():
        raise InvalidInput(
            f"the corpus has {n_read:,} texts and no word that this model knows; expected sentences in its "
            "language: name another file"
        )
    chance.shuffle(kept)  # so that what is held out is like the rest, however the file is sorted
    return _Sample([text for text in dict.fromkeys(kept) if text.strip()], counts, n_read)


def _tuned_rows(
    teacher: FolderEncoder, vocabulary: _Vocabulary, sample: _Sample, config: StaticConfig
) -> tuple[Vectors, int, tuple[float, float] | None]:
    """Rows fitted to the teacher's vectors of the sample, how many those were, and how well others agree."""
    vectors = teacher.encode(sample.sentences)
    projection = Projection.fit(vectors, config.dim)
    targets = projection.of(vectors)
    del vectors
    targets /= np.maximum(np.linalg.norm(targets, axis=1, keepdims=True), np.float32(1e-12))
    alone = vocabulary.vectors()
    # The mean of lone tokens is not that of sentences: each kind has its own at the origin.
    around = Projection(alone[vocabulary.is_word].mean(axis=0, dtype=np.float64), projection.axes)
    start = vocabulary.weighted(around.of(alone), sample, config)
    n_held_out = min(MOST_HELD_OUT, len(targets) // HELD_OUT)
    n_tuned = len(targets) - n_held_out
    held_out, tuned = sample.sentences[n_tuned:], sample.sentences[:n_tuned]
    sums = TokenSums(*vocabulary.of(tuned), vocabulary.n_tokens)
    rows = fit_rows(sums, start, targets[:n_tuned], ridge=config.ridge, n_steps=config.n_steps)
    if not n_held_out:
        return rows, n_tuned, None
    others = TokenSums(*vocabulary.of(held_out), vocabulary.n_tokens)
    before, after = (mean_cosine(others, table, targets[n_tuned:]) for table in (start, rows))
    return rows, n_tuned, (before, after)
