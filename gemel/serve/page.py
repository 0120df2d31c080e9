"""The page at `/`: a few files, read once, that ask nobody but this server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gemel.serve.answers import Answer
from gemel.serve.calls import Call
from gemel.serve.refusals import Refusal
from gemel.serve.routing import Route

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


def page_routes() -> list[Route]:
    """The page and its parts, which need no key: what they ask for does."""
    files = {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in MEDIA_TYPES}

    def answer_of(name: str) -> Answer:
        media_type = MEDIA_TYPES[Path(name).suffix]
        return Answer(files[name], media_type=media_type, headers=dict(HEADERS))

    async def page(call: Call, request: dict[str, Any]) -> Answer:
        return answer_of("index.html")

    async def part(call: Call, request: dict[str, Any]) -> Answer:
        name = request["path"]["file"]
        if name not in files:
            raise Refusal("not_found", "the page has no such part")
        return answer_of(name)

    return [
        Route("GET", "/", page, "The page for people.", None, scope="open"),
        Route("GET", "/page/{file}", part, "A part of the page.", None, scope="open"),
    ]
