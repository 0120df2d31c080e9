"""The model card of a static table: what it imitates, how it was made, how to open it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StaticCard:
    """What the card of a static table tells."""

    name: str
    base_model: str
    licence: str | None
    n_tokens: int
    dim: int
    n_read: int
    n_tuned: int
    agreement: tuple[float, float] | None
    settings: Mapping[str, Any]


def format_static_card(facts: StaticCard) -> str:
    """Markdown with the front matter that model hubs, and model2vec, read."""
    licence = f"license: {facts.licence}\n" if facts.licence else ""
    made = "\n".join(f"- {line}" for line in _making(facts))
    return _CARD.format(
        licence=licence,
        base_model=json.dumps(facts.base_model),
        name=facts.name,
        teacher=facts.base_model,
        n_tokens=facts.n_tokens,
        dim=facts.dim,
        made=made,
    )


def _making(facts: StaticCard) -> list[str]:
    lines = [
        f"token frequencies: counted in {facts.n_read:,} texts"
        if facts.n_read
        else "token frequencies: by rank in the vocabulary",
        f"tuned on: the encoder's vectors of {facts.n_tuned:,} sentences" if facts.n_tuned else "not tuned",
    ]
    if facts.agreement is not None:
        before, after = facts.agreement
        lines.append(
            f"mean cosine to the encoder on held-out sentences: {after:.3f}, before tuning {before:.3f}"
        )
    return lines + [f"{name}: {value}" for name, value in facts.settings.items() if value is not None]


_CARD = """\
---
{licence}library_name: model2vec
pipeline_tag: sentence-similarity
tags:
- model2vec
- static-embeddings
- sentence-transformers
- sentence-similarity
- feature-extraction
- gemel
base_model: {base_model}
---
# {name}

A static table distilled from `{teacher}`: {n_tokens:,} tokens, vectors of {dim} numbers.
A text is the mean of its tokens' rows at unit length: words have no context, and encoding takes microseconds.

## Making

{made}

## Use

```python
from gemel import load_encoder

vectors = load_encoder("this-folder").encode(["A sentence.", "Another one."])
```

model2vec opens it with `StaticModel.from_pretrained("this-folder")`, sentence-transformers with
`SentenceTransformer("this-folder")`; the vectors are the same.
"""
