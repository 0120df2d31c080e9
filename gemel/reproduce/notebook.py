"""Scores that are kept, so that what was measured once need not be measured again."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from gemel.evaluate.scores import Scores
from gemel.version import VERSION


class Notebook:
    """A file of JSON lines; a measurement is known by program, model, engine and data."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, list[Scores]] = {}
        if path is not None and path.is_file():
            for line in path.read_bytes().splitlines():
                # The last line of a run that was killed may be half a line, and an older program's unknown:
                # both are measured again.
                with suppress(ValueError, TypeError, KeyError, AttributeError):
                    entry = json.loads(line)
                    self._kept[entry["key"]] = [_read(each) for each in entry["scores"]]

    @staticmethod
    def key(measure: str, fingerprint: str, engine: str, data_hash: str) -> str:
        """What makes two measurements the same."""
        return hashlib.sha256(
            "\n".join((VERSION, measure, fingerprint, engine, data_hash)).encode()
        ).hexdigest()

    def get(self, key: str) -> list[Scores] | None:
        """What was measured before, or None."""
        return self._kept.get(key)

    def put(self, key: str, scores: list[Scores]) -> None:
        """Keep what was measured."""
        self._kept[key] = scores
        if self.path is None:
            return
        line = json.dumps({"key": key, "scores": [each.to_dict() for each in scores]}, ensure_ascii=False)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_torn = (
            self.path.is_file() and not self.path.read_bytes().endswith(b"\n") and self.path.stat().st_size
        )
        with self.path.open("a", encoding="utf-8") as file:
            file.write(("\n" if is_torn else "") + line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _read(values: dict[str, object]) -> Scores:
    interval = values.pop("interval", None)
    assert interval is None or isinstance(interval, list)
    return Scores(**values, interval=None if interval is None else tuple(interval))  # type: ignore[arg-type]
