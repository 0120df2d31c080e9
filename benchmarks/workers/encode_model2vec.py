"""Encodes with model2vec as it is installed."""

from __future__ import annotations

from typing import Any

from protocol import Encode, serve


def load(settings: dict[str, Any]) -> dict[str, Encode]:
    """The static table; model2vec uses several threads where a call has more than 10,000 texts."""
    from model2vec import StaticModel

    return {"as is": StaticModel.from_pretrained(settings["model"], max_length=None).encode}


if __name__ == "__main__":
    serve(load, ["model2vec", "tokenizers", "numpy"])
