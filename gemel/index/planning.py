"""What has to be done with records that are to be stored, given what is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from gemel.index.records import Added, Id, Row

WINDOW_TEXTS = 4_096  # encoded and committed at a time
WINDOW_CHARS = 16_000_000


class Known(Protocol):
    """A record that is there, as far as a plan has to know it."""

    @property
    def metadata(self) -> str:
        """As JSON."""

    @property
    def content(self) -> bytes:
        """The hash of its text."""

    @property
    def is_sound(self) -> bool:
        """Whether it is whole and has its vector: adding a damaged record again mends it."""


KnownT = TypeVar("KnownT", bound=Known)


@dataclass(frozen=True)
class Changes(Generic[KnownT]):
    """What has to be done with a window of rows, given what is in the table."""

    inserted: list[Row]  # these need a vector, be they new or changed
    replaced: list[KnownT]  # these go, to come back changed
    relabelled: list[tuple[Row, KnownT]]  # only the metadata of these has changed
    n_unchanged: int

    def __bool__(self) -> bool:
        return bool(self.inserted or self.relabelled)

    def added(self, n_encoded: int) -> Added:
        """The plan in numbers."""
        n_changed = len(self.replaced) + len(self.relabelled)
        return Added(len(self.inserted) - len(self.replaced), n_changed, self.n_unchanged, n_encoded)


def changes_for(rows: Sequence[Row], known: Mapping[Id, KnownT]) -> Changes[KnownT]:
    """What it takes to store these rows where those are known already."""
    inserted: list[Row] = []
    replaced: list[KnownT] = []
    relabelled: list[tuple[Row, KnownT]] = []
    last = {row.id: row for row in rows}  # of a text without an id that stands here twice
    n_unchanged = len(rows) - len(last)
    for row in last.values():
        before = known.get(row.id)
        if before is None:
            inserted.append(row)
        elif row.content != before.content or not before.is_sound:
            inserted.append(row)
            replaced.append(before)
        elif row.metadata != before.metadata:
            relabelled.append((row, before))
        else:
            n_unchanged += 1
    return Changes(inserted, replaced, relabelled, n_unchanged)


def windows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows in windows, each bounded in texts and in characters."""
    window: list[Row] = []
    n_chars = 0
    for row in rows:
        window.append(row)
        n_chars += len(row.text)
        if len(window) >= WINDOW_TEXTS or n_chars >= WINDOW_CHARS:
            yield window
            window, n_chars = [], 0
    if window:
        yield window
