"""Every way to say no: one table from what went wrong to statuses, and the shapes that clients expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gemel.errors import (
    Busy,
    Damaged,
    GemelError,
    InvalidInput,
    ModelMismatch,
    Overloaded,
    ServerError,
    WriteFailed,
)

Dialect = Literal["openai", "tei", "cohere"]


@dataclass(frozen=True)
class Reason:
    """One kind of refusal, in the words of each dialect."""

    status: int
    tei_status: int
    tei_type: str
    openai_type: str
    openai_code: str | None = None


REASONS = {
    "invalid": Reason(400, 422, "Validation", "invalid_request_error"),
    "empty": Reason(400, 400, "Empty", "invalid_request_error", "empty"),
    "too_large": Reason(413, 413, "Validation", "invalid_request_error", "too_large"),
    "not_loaded": Reason(404, 424, "Backend", "invalid_request_error", "model_not_loaded"),
    "unknown_model": Reason(404, 404, "Validation", "invalid_request_error", "model_not_found"),
    "not_found": Reason(404, 404, "Validation", "invalid_request_error", "not_found"),
    "method": Reason(405, 405, "Validation", "invalid_request_error", "method_not_allowed"),
    "media_type": Reason(415, 415, "Validation", "invalid_request_error", "unsupported_media_type"),
    "slow_body": Reason(408, 408, "Validation", "invalid_request_error", "body_timeout"),
    "no_key": Reason(401, 401, "Validation", "authentication_error", "invalid_api_key"),
    "forbidden": Reason(403, 403, "Validation", "permission_error", "forbidden"),
    "misdirected": Reason(421, 421, "Validation", "invalid_request_error", "unknown_host"),
    "mismatch": Reason(409, 409, "Validation", "invalid_request_error", "model_mismatch"),
    "busy": Reason(503, 503, "Overloaded", "server_error", "busy"),
    "storage": Reason(507, 507, "Backend", "server_error", "storage"),
    "overloaded": Reason(429, 429, "Overloaded", "rate_limit_error", "overloaded"),
    "late": Reason(504, 504, "Overloaded", "server_error", "timeout"),
    "stopping": Reason(503, 503, "Unhealthy", "server_error", "stopping"),
    "internal": Reason(500, 500, "Backend", "server_error", "internal"),
}


# The errors whose own words are an answer, and what they are answered as.
TOLD: tuple[tuple[type[GemelError], str], ...] = (
    (ModelMismatch, "mismatch"),
    (InvalidInput, "invalid"),
    (Busy, "busy"),
    (Damaged, "storage"),
    (WriteFailed, "storage"),
)


class Refusal(Exception):
    """A request that is not served, why, and what to do about it."""

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        parameter: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.parameter = parameter
        self.headers = dict(headers or {})

    def status(self, dialect: Dialect) -> int:
        """The status of the answer."""
        reason = REASONS[self.reason]
        return reason.tei_status if dialect == "tei" else reason.status

    def body(self, dialect: Dialect) -> dict[str, Any]:
        """The answer in the shape that this dialect's clients read."""
        reason = REASONS[self.reason]
        if dialect == "tei":
            return {"error": self.message, "error_type": reason.tei_type}
        if dialect == "cohere":
            return {"message": self.message}
        error = {
            "message": self.message,
            "type": reason.openai_type,
            "param": self.parameter,
            "code": reason.openai_code,
        }
        return {"error": error}


class ClientGone(Exception):
    """The client has closed the connection: nobody is left to be answered."""


def refusal_of(error: Exception, retry_after_seconds: int = 1) -> Refusal:
    """What to answer for an error: gemel's own are told, of others nothing leaks."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Overloaded):
        return Refusal("overloaded", str(error), headers={"Retry-After": str(retry_after_seconds)})
    if isinstance(error, ServerError):  # what it says is for the log: it names hosts and users
        away = "the store of the collections cannot be reached, or has failed; try again later"
        return Refusal("busy", away, headers={"Retry-After": "1"})
    for kind_of_error, reason in TOLD:
        if isinstance(error, kind_of_error):
            return Refusal(reason, str(error), headers={"Retry-After": "1"} if reason == "busy" else None)
    kind = "its model failed" if isinstance(error, GemelError) else "it failed"
    return Refusal(
        "internal", f"the request was good, but {kind}; the server's log has it under the request id"
    )
