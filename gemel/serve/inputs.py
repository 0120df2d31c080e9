"""From what a request holds to what the batcher takes: names and limits checked, texts tokenised."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from gemel.contracts import Vectors
from gemel.errors import InvalidInput
from gemel.pair_scorer import PairScorer
from gemel.serve.batcher import Runner
from gemel.serve.calls import Call
from gemel.serve.refusals import Refusal
from gemel.serve.runners import PairRunner, SentenceRunner, TextRunner, TokenRunner
from gemel.serve.schemas import Inputs, TokenIds
from gemel.serve.sizes import check_n_inputs, check_n_tokens
from gemel.text_encoder import FolderEncoder, TextEncoder
from gemel.tokens import Ids, Pieces

# Of the vectors of tokens in one answer, whose digits take three times their memory: as many as 32 texts of
# 512 tokens have with 1,024 numbers each, which text-embeddings-inference takes at once, and some more.
MOST_NUMBERS = 20_000_000
INLINE_CHARACTERS = 8_192  # tokenised in well under a millisecond; more goes to a thread

Result = TypeVar("Result")


async def apart(n_characters: int, work: Callable[[], Result]) -> Result:
    """Run work on a thread if it is long enough to keep other requests waiting."""
    if n_characters <= INLINE_CHARACTERS:
        return work()
    return await asyncio.get_running_loop().run_in_executor(None, work)


def check_count(call: Call, n_inputs: int, where: str) -> None:
    """Refuse more inputs than a request may hold; what it holds is counted once, where it is first looked at.

    A search's queries are checked by the route, and again on their way to the queue.
    """
    check_n_inputs(n_inputs, where, call.serving.limits)
    call.n_inputs = call.n_inputs or n_inputs


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the texts of a request are to be read."""

    cuts: bool
    prompt: str | None = None
    keeps_the_end: bool | None = None
    name_of: Callable[[int], str] = "input {}".format  # what the client calls the text in a row

    def pieces(self, encoder: FolderEncoder, inputs: Sequence[str | TokenIds]) -> Pieces:
        """The inputs as token sequences."""
        tokenizer = encoder.tokenizer
        if self.keeps_the_end is not None:
            tokenizer = tokenizer.keeping_the_end(self.keeps_the_end)
        if isinstance(inputs[0], str):
            texts = [text for text in inputs if isinstance(text, str)]
            pieces = tokenizer.pieces(texts, encoder.prompt, "ignore")
        else:
            pieces = tokenizer.pieces_of_ids([_checked_ids(ids, tokenizer.n_vocabulary) for ids in inputs])
        if pieces.cut and not self.cuts:
            raise _too_long(self.name_of(pieces.cut[0]), tokenizer.max_tokens)
        return pieces

    def pair_pieces(
        self, reranker: PairScorer, pairs: Sequence[tuple[str, str]]
    ) -> tuple[list[Ids], list[Ids], int]:
        """Token ids and token types of text pairs, and how many were cut."""
        ids, types, n_cut = reranker.tokenise(pairs)
        if n_cut and (self.keeps_the_end or not self.cuts):
            row = next(row for row, pair in enumerate(pairs) if reranker.tokenise([pair])[2])
            name, max_tokens = f"pair {row}", reranker.tokenizer.max_tokens
            raise _not_on_this_side(name, max_tokens) if self.cuts else _too_long(name, max_tokens)
        return ids, types, n_cut


def default_reading(call: Call) -> Reading:
    """How texts are read where a request does not say."""
    return Reading(cuts=call.serving.settings.auto_truncate)


async def embed(
    call: Call, inputs: Inputs, reading: Reading | None = None, encoder: TextEncoder | None = None
) -> Vectors:
    """One vector an input (n, dim), the same as `encode` gives."""
    reading = reading or default_reading(call)
    encoder = encoder or call.models.encoder_with(reading.prompt)
    check_count(call, len(inputs.values), "input")
    call.serving.metrics.embed_count.add(len(inputs.values))
    if isinstance(encoder, FolderEncoder):
        ids = await tokenise(call, encoder, inputs.values, reading)
        runner: Runner = call.models.runner(SentenceRunner, encoder)
        vectors: Vectors = await call.compute(runner, ids, [len(sequence) for sequence in ids])
    else:
        texts = _only_texts(call, inputs.values)
        runner = call.models.runner(TextRunner, encoder)
        costs = [1 + len(text) // 4 for text in texts]
        check_tokens(call, sum(costs))
        vectors = await call.compute(runner, texts, costs)
    call.serving.metrics.embed_success.add(len(inputs.values))
    return vectors


async def embed_tokens(call: Call, inputs: Inputs, reading: Reading) -> list[Vectors]:
    """The vectors (tokens, hidden_size) of the tokens of each input."""
    call.models.the_transformer()
    encoder = call.models.encoder_with(reading.prompt)
    assert isinstance(encoder, FolderEncoder)
    check_count(call, len(inputs.values), "inputs")
    call.serving.metrics.embed_count.add(len(inputs.values))
    ids = await tokenise(call, encoder, inputs.values, reading)
    n_numbers = call.n_tokens * encoder.spec.hidden_size
    if n_numbers > MOST_NUMBERS:
        raise Refusal(
            "too_large",
            f"the vectors of {call.n_tokens:,} tokens have {n_numbers:,} numbers, over the {MOST_NUMBERS:,} "
            "of one answer; send fewer inputs at once",
        )
    runner = call.models.runner(TokenRunner, encoder)
    vectors: list[Vectors] = await call.compute(runner, ids, [len(sequence) for sequence in ids])
    call.serving.metrics.embed_success.add(len(inputs.values))
    return vectors


async def score(call: Call, pairs: Sequence[tuple[str, str]], reading: Reading | None = None) -> Any:
    """The scores (n, labels) of text pairs, the same as the re-ranker's `score` gives."""
    reading = reading or default_reading(call)
    reranker = call.models.the_reranker()
    check_count(call, len(pairs), "texts")
    call.serving.metrics.predict_count.add(len(pairs))
    began = time.monotonic()
    n_characters = sum(len(first) + len(second) for first, second in pairs)
    ids, types, n_cut = await apart(n_characters, lambda: reading.pair_pieces(reranker, pairs))
    call.tokenise_seconds += time.monotonic() - began
    costs = [len(sequence) for sequence in ids]
    check_tokens(call, sum(costs))
    _note_cut(call, n_cut)
    runner = call.models.runner(PairRunner, reranker)
    scores = await call.compute(runner, list(zip(ids, types, strict=True)), costs)
    call.serving.metrics.predict_success.add(len(pairs))
    return scores


async def tokenise(
    call: Call, encoder: FolderEncoder, inputs: Sequence[str | TokenIds], reading: Reading
) -> list[Ids]:
    """The token sequences of the inputs, within the limits."""
    began = time.monotonic()
    pieces = await apart(sum(map(len, inputs)), lambda: reading.pieces(encoder, inputs))
    call.tokenise_seconds += time.monotonic() - began
    check_tokens(call, len(pieces.flat))
    _note_cut(call, pieces.n_truncated)
    return pieces.ids


def check_tokens(call: Call, n_tokens: int) -> None:
    """Refuse more tokens than a request may hold."""
    call.n_tokens += n_tokens
    check_n_tokens(call.n_tokens, call.serving.limits)


def _too_long(name: str, max_tokens: int) -> Refusal:
    return Refusal(
        "too_large",
        f"{name} has more than the {max_tokens} tokens that are read (max_input_length); shorten it, send "
        "truncate=true where the route has it, or start the server without --refuse-long",
    )


def _not_on_this_side(name: str, max_tokens: int) -> Refusal:
    return Refusal(
        "invalid",
        f"{name} has more than the {max_tokens} tokens that are read, and where a pair is cut is the model's "
        "choice; shorten it, or leave truncation_direction out",
        parameter="truncation_direction",
    )


def _note_cut(call: Call, n_cut: int) -> None:
    if n_cut:
        call.n_truncated += n_cut
        call.serving.metrics.truncated.add(n_cut)


def _checked_ids(ids: str | TokenIds, n_vocabulary: int) -> Ids:
    if isinstance(ids, str) or max(ids) >= n_vocabulary:
        given = "a text among token ids" if isinstance(ids, str) else f"token {max(ids)}"
        raise InvalidInput(
            f"{given} was given, and this model's vocabulary has {n_vocabulary:,} tokens; send texts, or "
            "the ids of /tokenize (LangChain: check_embedding_ctx_length=False)"
        )
    return np.array(ids, np.int32)


def _only_texts(call: Call, inputs: Sequence[str | TokenIds]) -> list[str]:
    if not all(isinstance(text, str) for text in inputs):
        call.models.the_transformer()  # says that there are no tokens
    return [text for text in inputs if isinstance(text, str)]
