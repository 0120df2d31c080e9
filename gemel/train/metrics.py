"""What happened during a run, a JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gemel.train.tensorboard import EventFiles


class MetricsFile:
    """Appends lines; forgets those that a resumed run will write again. `events` are told the same."""

    def __init__(self, path: Path, events: EventFiles | None = None) -> None:
        self.path, self.events = path, events

    def add(self, **values: Any) -> None:
        """Write one line now."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")
        if self.events is not None:
            self.events.add(**values)

    def read(self) -> list[dict[str, Any]]:
        """All lines so far; one that was cut off by a crash is left out."""
        if not self.path.is_file():
            return []
        lines = self.path.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line.endswith("}")]

    def forget_after(self, logged_at: int, evaluated_at: int) -> None:
        """Keep the lines of losses up to one step, and those of evaluations up to another."""
        kept = [
            line
            for line in self.read()
            if line["step"] <= (evaluated_at if "validation" in line else logged_at)
        ]
        draft = self.path.with_suffix(".draft")
        draft.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        draft.replace(self.path)
        if self.events is not None and kept:
            first, last = sorted((logged_at, evaluated_at))
            self.events.forget_after(first)
            for line in kept:
                if first < line["step"] <= last:
                    self.events.add(**line)

    def close(self) -> None:
        """Let the event files go, if there are any."""
        if self.events is not None:
            self.events.close()
