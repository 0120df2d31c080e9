"""The application: the table of all routes, behind the gate."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from gemel.serve import (
    collection_routes,
    openai_routes,
    own_routes,
    rerank_routes,
    state_routes,
    task_routes,
    tei_routes,
)
from gemel.serve.answers import Answer, json_bytes, plain
from gemel.serve.calls import Call, Serving
from gemel.serve.door import Door
from gemel.serve.gate import Gate
from gemel.serve.openapi import document
from gemel.serve.overload import Overload
from gemel.serve.page import page_routes
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route
from gemel.serve.schemas import Free

# Every door of the server but the page.
ROUTES: tuple[Route, ...] = (
    *openai_routes.ROUTES,
    *tei_routes.ROUTES,
    *rerank_routes.ROUTES,
    *own_routes.ROUTES,
    *collection_routes.ROUTES,
    *task_routes.ROUTES,
    *state_routes.ROUTES,
)


def make_app(serving: Serving) -> Gate:
    """The ASGI application of a server."""
    described = plain(document(ROUTES, needs_key=len(serving.keys) > 0))

    async def openapi(call: Call, request: dict[str, Any]) -> Answer:
        return described

    own = Route("GET", "/openapi.json", openapi, "This document.", Free(), scope="open")
    routes = [
        StarletteRoute(route.path, endpoint=Door(route, serving), methods=[route.method])
        for route in (*ROUTES, own, *page_routes())
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _refuse})
    app.router.redirect_slashes = False
    return Gate(app, serving, Overload(serving, {route.path: route.dialect for route in ROUTES}))


async def _refuse(request: Request, error: Exception) -> Response:
    """What Starlette refuses itself: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        refusal = Refusal("method", f"{request.method} is not answered here; see /openapi.json")
    else:
        refusal = Refusal("not_found", "there is nothing at this path; /openapi.json lists what there is")
    headers = dict(error.headers or {})
    body = json_bytes(refusal.body("openai"))
    return Response(body, refusal.status("openai"), headers=headers, media_type="application/json")
