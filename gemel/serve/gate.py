"""The outermost layer: whose requests are heard at all, how every answer is labelled, one log line each."""

from __future__ import annotations

import re
import time
import uuid
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gemel.serve.answers import SECURITY_HEADERS, Answer, json_bytes
from gemel.serve.calls import Serving
from gemel.serve.door import send_answer
from gemel.serve.logs import log
from gemel.serve.overload import Overload
from gemel.serve.refusals import Refusal

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# What a preflight asks for is allowed, if it is names of headers: clients add some of their own to ours.
HEADER_NAMES = re.compile(r"[A-Za-z0-9_-]{1,64}( ?, ?[A-Za-z0-9_-]{1,64}){0,63}")
OUR_HEADERS = "authorization, content-type, x-request-id, x-timeout-seconds"
TOLD_HEADERS = "retry-after, www-authenticate, x-request-id, x-truncated-inputs"  # that a page may read


class Gate:
    """Checks Host and Origin, answers preflights, adds headers and writes the log."""

    def __init__(self, app: ASGIApp, serving: Serving, overload: Overload) -> None:
        self._app = app
        self._serving = serving
        self.overload = overload
        self._hosts = serving.settings.host_names
        self._origins = frozenset(serving.settings.cors_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_one_too_many = scope["method"] == "POST" and self.overload.is_here
        if is_one_too_many and "origin" not in headers and self.overload.can_be_short:
            await send_answer(send, self.overload.answer(scope["path"]))
            return
        given = headers.get("x-request-id", "")
        entry = scope["gemel"] = {"id": given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex}
        origin = headers.get("origin")
        began = time.monotonic()

        async def send_labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry["status"] = message["status"]
                self._label(message, entry["id"], headers)
            await send(message)

        try:
            self._check_origin(headers, origin)
        except Refusal as refusal:
            await send_answer(
                send_labelled, Answer(json_bytes(refusal.body("openai")), refusal.status("openai"))
            )
        else:
            if is_one_too_many:
                await send_answer(send_labelled, self.overload.answer(scope["path"]))
            elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await send_answer(send_labelled, Answer(b"", 204))
            else:
                await self._app(scope, receive, send_labelled)
        seconds = round(time.monotonic() - began, 6)
        log("request", method=scope["method"], **{"route": None, "status": None, **entry}, seconds=seconds)

    def _check_origin(self, headers: Headers, origin: str | None) -> None:
        """Refuse what a foreign page makes a browser send: by a rebound name, or from another origin."""
        host = headers.get("host", "")
        name = host_name(host)
        if name not in self._hosts and "*" not in self._hosts:
            raise Refusal(
                "misdirected",
                f"the host {host[:100]!r} is not one of this server's; start it with --allowed-host NAME",
            )
        if origin is None or origin in self._origins or "*" in self._origins:
            return
        if _host_of(origin) != host.lower():
            raise Refusal(
                "forbidden",
                f"pages of {origin[:100]!r} may not use this server; start it with --cors-origin ORIGIN",
            )

    def _label(self, message: Message, request_id: str, asked: Headers) -> None:
        raw: list[tuple[bytes, bytes]] = list(message["headers"])
        present = {name for name, _ in raw}
        added: dict[str, str] = {"x-request-id": request_id, **SECURITY_HEADERS}
        origin = asked.get("origin")
        if origin is not None and (origin in self._origins or "*" in self._origins):
            wanted = asked.get("access-control-request-headers", "")
            added |= {
                "access-control-allow-origin": origin,
                "access-control-allow-methods": "GET, POST, DELETE",
                "access-control-allow-headers": wanted if HEADER_NAMES.fullmatch(wanted) else OUR_HEADERS,
                "access-control-expose-headers": TOLD_HEADERS,
                "access-control-max-age": "600",
                "cross-origin-resource-policy": "cross-origin",
                "vary": "Origin, Access-Control-Request-Headers",
            }
        if self._serving.is_draining:
            added["connection"] = "close"
        raw += [
            (name.encode(), value.encode("latin-1"))
            for name, value in added.items()
            if name.encode() not in present
        ]
        message["headers"] = raw


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # a bracket that is not closed, which no browser sends
        return None


def host_name(host: str) -> str:
    """The name in a Host header, without the port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.rpartition(":")[0] if ":" in name else name
