"""Longer work than encoding: the library's own functions on threads, their encoding by way of the queue."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS, Vectors
from gemel.errors import GemelError
from gemel.serve.answers import Answer, json_bytes
from gemel.serve.calls import SLOW_WORKERS, Call
from gemel.serve.inputs import Reading, default_reading, embed, score
from gemel.serve.refusals import Refusal, refusal_of
from gemel.serve.schemas import Inputs
from gemel.text_encoder import TextEncoder

Result = TypeVar("Result")
Loop = asyncio.AbstractEventLoop
GoOn = Callable[..., None]  # takes what progress is told with; ends work that is given up

GRACE_SECONDS = 1.0  # after the request's time, in which the queue itself says that it is over
# Slow work that runs or waits: whoever would wait longer than a request may take is told so at once.
MOST_SLOW_JOBS = SLOW_WORKERS + 6
SLOW_RETRY_SECONDS = 5


class QueuedEncoder:
    """The server's encoder for a function on a thread: it waits in the queue as every request does."""

    def __init__(self, call: Call, encoder: TextEncoder, loop: Loop) -> None:
        self.dim = encoder.dim
        self.fingerprint = encoder.fingerprint
        self._call = call
        self._encoder = encoder
        self._loop = loop

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector a text (n, dim)."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        # Texts that are known already, or stand twice, are not among these: rows would mislead.
        reading = replace(default_reading(self._call), name_of=lambda _: "a text")
        made = embed(self._call, Inputs(list(texts), False), reading, self._encoder)
        return _waited_for(self._call, made, self._loop)


class QueuedReranker:
    """The server's re-ranker, likewise."""

    def __init__(self, call: Call, loop: Loop) -> None:
        call.models.the_reranker()
        self._call = call
        self._loop = loop

    def score(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """One score a pair (n,), or one a label (n, labels)."""
        # Always cut: no client can shorten a document that is stored.
        made = score(self._call, pairs, Reading(cuts=True))
        scores: npt.NDArray[np.float32] = _waited_for(self._call, made, self._loop)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def both_sides(call: Call) -> tuple[QueuedEncoder, QueuedEncoder]:
    """The encoder with the prompts that its model has for documents and for queries."""
    loop, encoder = asyncio.get_running_loop(), call.models.encoder
    prompts: Mapping[str, str] = getattr(getattr(encoder, "spec", None), "prompts", {})
    documents, queries = (
        QueuedEncoder(
            call, call.models.encoder_with(next((each for each in names if each in prompts), None)), loop
        )
        for names in (DOCUMENT_PROMPTS, QUERY_PROMPTS)
    )
    return documents, queries


def on_thread(workers: concurrent.futures.Executor, work: Callable[[], Result]) -> asyncio.Future[Result]:
    """The work on another thread, in this context: it says how many threads compare vectors."""
    return asyncio.get_running_loop().run_in_executor(workers, copy_context().run, work)


class GivenUp(Exception):
    """Nobody waits for this work any more: its client has gone, or its time is over."""


async def answered(call: Call, work: Callable[[], Any]) -> Answer:
    """What a function gives, as JSON; it runs on a thread, and its time is the request's."""
    return await _answer(call, on_thread(call.serving.workers, lambda: json_bytes(work())))


async def answered_slowly(call: Call, work: Callable[[GoOn], Any]) -> Answer:
    """The same for work that may take long: wherever it asks whether to go on, it ends if it is given up."""
    jobs = call.serving.slow_jobs
    if len(jobs) >= MOST_SLOW_JOBS:
        raise Refusal(
            "overloaded",
            f"{len(jobs)} minings, deduplications and clusterings run or wait already; try again later",
            headers={"Retry-After": str(SLOW_RETRY_SECONDS)},
        )
    is_given_up = threading.Event()

    def go_on(*progress: int) -> None:
        if is_given_up.is_set():
            raise GivenUp

    running = call.serving.slow_workers.submit(copy_context().run, lambda: json_bytes(work(go_on)))
    jobs.add(running)
    running.add_done_callback(jobs.discard)
    try:
        return await _answer(call, asyncio.wrap_future(running))
    finally:
        is_given_up.set()


async def _answer(call: Call, running: asyncio.Future[bytes]) -> Answer:
    """What work on a thread gives; work that nobody waits for any more gets no thread, if it has none yet."""
    serving = call.serving
    try:
        return Answer(await call.wait_for(running))
    except GemelError as error:
        refusal = refusal_of(error, serving.retry_after_seconds)
        if serving.library is not None:
            refusal.message = serving.library.without_root(refusal.message)
        raise refusal from error
    finally:
        running.cancel()


def _waited_for(call: Call, made: Coroutine[Any, Any, Result], loop: Loop) -> Result:
    """The result of what runs on the event loop; not waited for once that has come to its end."""
    running = asyncio.run_coroutine_threadsafe(made, loop)
    try:
        return running.result(max(0.0, call.deadline - time.monotonic()) + GRACE_SECONDS)
    except concurrent.futures.TimeoutError:
        running.cancel()
        raise Refusal("stopping", "the server has stopped before the answer was ready") from None
