"""Documents into a collection that a server keeps: each window encoded and stored by whoever takes it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from gemel.errors import InvalidInput
from gemel.index import Added, Record, Store
from gemel.index.opening import is_remote, open_collection, shown_address
from gemel.scale.flaws import Flaws, with_flaws
from gemel.scale.parts import EncoderChoice
from gemel.scale.runners import LocalRunner, Runner
from gemel.tasks.passages import WINDOW_DOCUMENTS, Chunking, add_documents, each_once

# Workers store one after the other: with many of them a turn is long in coming.
TIMEOUT_SECONDS = 600.0


class WindowDone(NamedTuple):
    """What became of a window of documents."""

    documents: int
    added: Added
    flaws: Flaws


@dataclass(frozen=True)
class WindowFiller:
    """Encodes and stores a window: the piece of work that is sent to workers.

    Done twice, as where a machine was lost after it had stored all, the second time finds nothing changed.
    """

    address: str
    choice: EncoderChoice
    chunking: Chunking
    run: str = field(default_factory=lambda: uuid.uuid4().hex)  # a worker opens the collection once in each

    def __call__(self, window: list[Record]) -> WindowDone:
        """Encode what is new or changed, and store it."""
        collection = _opened(self.address, self.choice, self.run)
        added, flaws = with_flaws(lambda: add_documents(collection, window, self.chunking), len(window))
        return WindowDone(len(window), added, flaws)


def fill(
    address: str,
    documents: Iterable[Record],
    chunking: Chunking,
    choice: EncoderChoice,
    *,
    runner: Runner | None = None,
    on_progress: Callable[[int], object] | None = None,
) -> Added:
    """Store documents under their ids in a collection that is there; its index is left to the caller.

    A run that broke off is given again: what is stored already is not encoded once more.
    """
    check_shared(address)
    runner, remaining = runner or LocalRunner(), each_once(documents)
    windows = iter(lambda: list(islice(remaining, WINDOW_DOCUMENTS)), [])
    added, flaws, n_done = Added(), Flaws(), 0
    for done in runner.run(WindowFiller(address, choice, chunking), windows):
        added, flaws, n_done = added + done.added, flaws.joined(done.flaws), n_done + done.documents
        if on_progress is not None:
            on_progress(n_done)
    flaws.tell()
    return added


def check_shared(address: str) -> None:
    """Refuse what only one process can write: a folder, or a file of Milvus Lite's."""
    if not is_remote(address) or "://" not in address:
        raise InvalidInput(
            f"{shown_address(address)} is written by one process at a time, so that workers cannot fill it; "
            "name a collection on a PostgreSQL or Milvus server, or leave the runner out"
        )


@lru_cache(maxsize=1)
def _opened(address: str, choice: EncoderChoice, run: str) -> Store:
    # The index is made once, at the end: to grow it with each of many windows takes longer.
    return open_collection(address, choice.open(), keeps_index=False, timeout_seconds=TIMEOUT_SECONDS)
