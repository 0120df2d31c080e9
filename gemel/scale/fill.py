"""Documents into a collection that a server keeps: each window encoded and stored by whoever takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from gemel.errors import InvalidInput
from gemel.index import Added, Record, Store
from gemel.index.opening import is_remote, open_collection, shown_address
from gemel.scale.parts import EncoderChoice
from gemel.scale.runners import LocalRunner, Runner
from gemel.tasks.passages import WINDOW_DOCUMENTS, Chunking, add_documents, each_once


class WindowDone(NamedTuple):
    """What became of a window of documents."""

    documents: int
    added: Added


@dataclass(frozen=True)
class WindowFiller:
    """Encodes and stores a window: the piece of work that is sent to workers.

    Done twice, as where a machine was lost after it had stored all, the second time finds nothing changed.
    """

    address: str
    choice: EncoderChoice
    chunking: Chunking

    def __call__(self, window: list[Record]) -> WindowDone:
        """Encode what is new or changed, and store it."""
        return WindowDone(
            len(window), add_documents(_opened(self.address, self.choice), window, self.chunking)
        )


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
    added, n_done = Added(), 0
    for done in runner.run(WindowFiller(address, choice, chunking), windows):
        added, n_done = added + done.added, n_done + done.documents
        if on_progress is not None:
            on_progress(n_done)
    return added


def check_shared(address: str) -> None:
    """Refuse what only one process can write: a folder, or a file of Milvus Lite's."""
    if not is_remote(address) or "://" not in address:
        raise InvalidInput(
            f"{shown_address(address)} is written by one process at a time, so that workers cannot fill it; "
            "name a collection on a PostgreSQL or Milvus server, or leave the runner out"
        )


@lru_cache(maxsize=1)
def _opened(address: str, choice: EncoderChoice) -> Store:
    # The index is made once, at the end: to grow it with each of many windows takes longer.
    return open_collection(address, choice.open(), keeps_index=False)
