"""What a route is: a row of a table, from which the server routes, checks and documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from gemel.serve.answers import Answer
from gemel.serve.calls import Call
from gemel.serve.keys import Scope
from gemel.serve.refusals import Dialect
from gemel.serve.schemas import Kind, Record

Handler = Callable[[Call, dict[str, Any]], Awaitable[Answer]]


@dataclass(frozen=True)
class Route:
    """One door of the server."""

    method: Literal["GET", "POST"]
    path: str
    handler: Handler
    says: str
    answer: Kind | None  # None: text that is no JSON
    request: Record | None = None
    dialect: Dialect = "openai"
    scope: Scope = "read"
    measures: Literal["embed", "predict"] | None = None
