"""The OpenAPI document, made from the table of routes that the server itself checks by."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gemel.serve.refusals import REASONS, Dialect
from gemel.serve.routing import Route
from gemel.version import VERSION

ERRORS: dict[Dialect, dict[str, Any]] = {
    "openai": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "type": {"type": "string"},
                    "param": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "code": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "required": ["message", "type", "param", "code"],
            }
        },
        "required": ["error"],
    },
    "tei": {
        "type": "object",
        "properties": {"error": {"type": "string"}, "error_type": {"type": "string"}},
        "required": ["error", "error_type"],
    },
    "cohere": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
}
PARAMETER = re.compile(r"{(\w+)(?::path)?}")
ONLY_WITH_A_BODY = {"too_large", "media_type", "slow_body", "overloaded", "empty", "not_loaded"}


def document(routes: Iterable[Route], *, needs_key: bool) -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    paths: dict[str, Any] = {}
    for route in routes:
        path = route.path.replace(":path}", "}")
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, needs_key)
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "gemel",
            "version": VERSION,
            "description": "Sentence embeddings, similarity, search, clusters, duplicates and re-ranking.",
        },
        "paths": paths,
        "components": {"schemas": {f"Error-{name}": schema for name, schema in ERRORS.items()}},
    }
    if needs_key:
        made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return made


def _operation(route: Route, needs_key: bool) -> dict[str, Any]:
    media_type = "application/json" if route.answer is not None else "text/plain"
    schema = route.answer.schema() if route.answer is not None else {"type": "string"}
    operation: dict[str, Any] = {
        "summary": route.says,
        "operationId": _name(route),
        "responses": {
            "200": {"description": "The answer.", "content": {media_type: {"schema": schema}}},
            **_refusals(route),
        },
    }
    names = PARAMETER.findall(route.path)
    if names:
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if route.request is not None:
        request = route.request.tolerant() if route.dialect == "tei" else route.request
        content = {"application/json": {"schema": request.schema()}}
        operation["requestBody"] = {"required": True, "content": content}
    if needs_key and route.scope != "open":
        operation["security"] = [{"key": []}]
    return operation


def _name(route: Route) -> str:
    words = [word for word in route.path.split("/") if word and "{" not in word]
    return "_".join([route.method.lower(), *words, *(["one"] if "{" in route.path else [])])


def _refusals(route: Route) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for name, reason in REASONS.items():
        if route.request is None and name in ONLY_WITH_A_BODY:
            continue
        status = reason.tei_status if route.dialect == "tei" else reason.status
        by_status.setdefault(status, []).append(name)
    schema = {"$ref": f"#/components/schemas/Error-{route.dialect}"}
    # What the gate refuses comes in the one shape that it knows, whatever the route.
    generic = {"$ref": "#/components/schemas/Error-openai"}
    return {
        str(status): {
            "description": ", ".join(names).replace("_", " "),
            "content": {
                "application/json": {"schema": generic if status in (403, 405, 421) else schema},
            },
        }
        for status, names in sorted(by_status.items())
    }
