"""One JSON object a line on standard error: what happened, never what was said in a request."""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import datetime, timezone
from typing import Any

import orjson

LOGGER = logging.getLogger("gemel.serve")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON; of an exception its kind and place, not its message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.name == LOGGER.name else "server",
        }
        if record.name != LOGGER.name:
            line["message"] = record.getMessage()
        line |= getattr(record, "values", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return orjson.dumps(line, default=str).decode()


def set_up(level: str = "info") -> None:
    """Send the server's and uvicorn's records to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (LOGGER.name, "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper() if name == LOGGER.name else logging.WARNING)
        logger.propagate = False


def log(
    event: str, *, level: int = logging.INFO, failure: BaseException | None = None, **values: Any
) -> None:
    """One line."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"values": values}, exc_info=failure)
