"""The metrics of a run as TensorBoard's event files, written while it trains."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from gemel.errors import MissingExtra

# metric -> where TensorBoard shows it
TAGS = {
    "loss": "training/loss",
    "learning_rate": "training/learning_rate",
    "validation": "validation/score",
    "pairs_per_second": "speed/pairs_per_second",
    "tokens_per_second": "speed/tokens_per_second",
}


class EventFiles:
    """A folder of event files; `tensorboard --logdir` shows it, and its parent shows several runs."""

    def __init__(self, folder: str | Path) -> None:
        try:
            self._writer_class: Any = import_module("torch.utils.tensorboard").SummaryWriter
        except ImportError:
            raise MissingExtra("writing TensorBoard's event files", "tensorboard") from None
        self.folder = Path(folder)
        self._writer: Any = None

    def add(self, step: int, *, loss_by_task: Mapping[str, float] | None = None, **values: float) -> None:
        """Write the scalars of a step now."""
        if self._writer is None:
            self._writer = self._writer_class(str(self.folder))
        for name, value in values.items():
            if name in TAGS:
                self._writer.add_scalar(TAGS[name], value, step)
        for task, loss in (loss_by_task or {}).items():
            self._writer.add_scalar(f"{TAGS['loss']}_of_{task}", loss, step)
        self._writer.flush()

    def forget_after(self, step: int) -> None:
        """Let TensorBoard leave out what a run that goes on from this step will write again."""
        self.close()
        self._writer = self._writer_class(str(self.folder), purge_step=step + 1)

    def close(self) -> None:
        """Write what is left and let the file go."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
