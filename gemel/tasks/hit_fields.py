"""A hit as plain values, the same in JSON lines and over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gemel.tasks.explain import Explanation
from gemel.tasks.search import Hit


def fields_of(hit: Hit) -> dict[str, Any]:
    """The fields of a hit; the passage and the explanation only where it has them."""
    fields: dict[str, Any] = {"id": hit.id, "score": hit.score}
    fields |= {"text": hit.text, "metadata": hit.metadata}
    if hit.passage is not None:
        fields["passage"] = {**asdict(hit.passage), "document": hit.id}
    if hit.explanation is not None:
        fields["explanation"] = _explanation(hit.text, hit.explanation)
    return fields


def _explanation(text: str, explanation: Explanation) -> dict[str, Any]:
    """The explanation with the words themselves beside their places."""
    fields: dict[str, Any] = {
        "channels": {name: asdict(place) for name, place in explanation.channels.items()},
        "matches": [{"word": text[start:end], "start": start} for start, end in explanation.matches],
        "influences": [
            {"words": text[start:end], "start": start, "share": share}
            for start, end, share in explanation.influences
        ],
    }
    if explanation.reranked_from is not None:
        fields["reranked_from"] = explanation.reranked_from
    return fields
