"""Log records that leave progress bars whole."""

from __future__ import annotations

import logging


class LoggingHandler(logging.Handler):
    """Writes records to standard output, above the progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        from tqdm import tqdm

        tqdm.write(self.format(record))
