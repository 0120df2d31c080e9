"""A collection copied into another, wherever the two are: its vectors go along and are not made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from gemel.errors import InvalidInput, WriteFailed
from gemel.index.records import Record
from gemel.index.store import Store

WINDOW_ROWS = 2_048


@dataclass(frozen=True)
class Copied:
    """What became of the records of a collection that was copied."""

    n_copied: int = 0
    n_unchanged: int = 0  # these were there already, the same text with the same metadata

    def __len__(self) -> int:
        return self.n_copied + self.n_unchanged


def copy_collection(
    source: Store, target: Store, *, on_progress: Callable[[int], object] | None = None
) -> Copied:
    """Bring every record of one collection, with its vector, into another of the same model.

    A copy that was broken off goes on where it ended: what is there already is compared and not sent. At the
    end the records are counted. Those that only the target has are left alone.
    """
    target.settings.check_model(source.settings.fingerprint, source.settings.dim, target.name)
    if source.settings.measure != target.settings.measure:
        raise InvalidInput(
            f"{source.name} measures by {source.settings.measure} and {target.name} by "
            f"{target.settings.measure}; copy it into one that measures alike"
        )
    copied = Copied()
    remaining = source.records()
    while window := list(islice(remaining, WINDOW_ROWS)):
        there = target.get([record.id for record in window])
        missing = [
            record for record, before in zip(window, there, strict=True) if not _is_same(record, before)
        ]
        if missing:
            _send(source, target, missing)
        copied = Copied(copied.n_copied + len(missing), copied.n_unchanged + len(window) - len(missing))
        if on_progress is not None:
            on_progress(len(copied))
    n_there = len(target)
    if n_there < len(copied):
        raise WriteFailed(
            f"{len(copied):,} records of {source.name} were copied, and {target.name} has {n_there:,}; copy "
            "again: what is there is kept"
        )
    return copied


def _send(source: Store, target: Store, records: list[Record]) -> None:
    # Read again with the vectors: what has changed since the records were listed is copied as it is now.
    current, rows = source.records_with_vectors([record.id for record in records])
    there = {record.id for record in current}
    lost = [record.id for record in records if record.id not in there]
    if lost:
        raise InvalidInput(
            f"{len(lost)} records of {source.name} have no vector or were removed meanwhile, {lost[0]!r} "
            "among them; mend the collection with its doctor, or copy again"
        )
    target.add_vectors(current, rows, fingerprint=source.settings.fingerprint)


def _is_same(record: Record, before: Record | None) -> bool:
    return before is not None and before.text == record.text and _is_alike(before.metadata, record.metadata)


def _is_alike(one: object, other: object) -> bool:
    """Whether two values of JSON are equal; to Python 1 is true, and to a filter it is not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
