"""The model card that training writes: what the model is, what it was trained on, what it scores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemel.model.infersent import asks_for_new


@dataclass(frozen=True)
class CardFacts:
    """What a model card tells."""

    name: str
    base_model: str
    objective: str
    n_examples: int
    data: str
    settings: Mapping[str, Any]
    steps: str = ""  # how far the run went
    notes: Sequence[str] = ()  # what a reader of the model has to know, a sentence each
    licence: str | None = None
    stages_before: Sequence[str] = ()  # the data of the stages that it came through, each in a line
    overlap: str = ""  # what of the sets that models are measured on stands in the data
    scores: Mapping[str, float] = field(default_factory=dict)
    is_cross_encoder: bool = False
    labels: Sequence[str] = ()
    losses: Sequence[str] = ()  # for the tags; the objective if it is left out
    prompts: Mapping[str, str] = field(default_factory=dict)  # by name, for texts of different kinds
    truncations: Sequence[int] = ()  # dimensions that a Matryoshka objective has trained to stand alone
    is_infersent: bool = False  # which no other program opens


def base_name(model: str) -> str:
    """What a card calls a model: of a folder its name, which means something on other machines too."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        place = folder.resolve()
        # All that runs make are called so, and told apart by where they are.
        return place.parent.name if place.name == "model" else place.name
    kind, colon, file = model.partition(":")  # infersent:FILE
    return f"{kind}:{Path(file).name}" if colon else model


def write_card(folder: Path, facts: CardFacts) -> None:
    """Put the card into a model folder in place of the plain one."""
    draft = folder / "README.md.draft"
    draft.write_text(format_card(facts), encoding="utf-8")
    draft.replace(folder / "README.md")


def format_card(facts: CardFacts) -> str:
    """Markdown with the front matter that model hubs read."""
    return "\n".join([*_front_matter(facts), *_body(facts)]) + "\n"


def _front_matter(facts: CardFacts) -> list[str]:
    kind = "cross-encoder" if facts.is_cross_encoder else "sentence-similarity"
    tags = ["sentence-transformers", kind, "feature-extraction", "text-embeddings-inference", "gemel"]
    if facts.is_cross_encoder:
        tags.remove("feature-extraction")
    losses = [f"loss:{name}" for name in facts.losses or [facts.objective]]
    if facts.is_infersent:
        tags = [kind, "feature-extraction", "infersent", "gemel"]
    return [
        "---",
        f"library_name: {'gemel' if facts.is_infersent else 'sentence-transformers'}",
        f"pipeline_tag: {'text-ranking' if facts.is_cross_encoder else 'sentence-similarity'}",
        "tags:",
        *(f"- {tag}" for tag in [*tags, f"dataset_size:{facts.n_examples}", *losses]),
        *([f"license: {facts.licence}"] if facts.licence else []),
        *([f"base_model: {json.dumps(facts.base_model)}"] if _is_on_the_hub(facts.base_model) else []),
        "---",
    ]


def _body(facts: CardFacts) -> list[str]:
    lines = [
        *(f"# {facts.name}", "", "## Training", ""),
        f"- started from: `{base_name(facts.base_model)}`",
        *(f"- {stage}" for stage in facts.stages_before),
        f"- data: {facts.data}, {facts.n_examples:,} examples",
        f"- objective: {facts.objective}",
    ]
    if facts.steps:
        lines.append(f"- steps: {facts.steps}")
    if facts.overlap:
        lines.append(f"- {facts.overlap}")
    if facts.prompts:
        told = ", ".join(f"{name} = {text!r}" for name, text in facts.prompts.items())
        lines.append(f"- prompts: {told}")
    if facts.truncations:
        lines.append(f"- dimensions that stand alone: {', '.join(map(str, facts.truncations))} (Matryoshka)")
    if facts.labels:
        lines.append(f"- classes: {', '.join(facts.labels)}")
    lines += [f"- {name}: {value}" for name, value in facts.settings.items() if value not in (None, (), [])]
    if facts.scores:
        lines += ["", "## Scores", "", "| measure | value |", "|---|---|"]
        lines += [f"| {name} | {value:.4f} |" for name, value in facts.scores.items()]
    for note in facts.notes:
        lines += ["", note]
    return [*lines, "", "## Use", "", "```python", *_usage(facts), "```"]


def _is_on_the_hub(model: str) -> bool:
    """Whether others find it by this name: a folder here is nobody else's, and hubs refuse its path."""
    if asks_for_new(model):  # an encoder of a kind, which began from no weights
        return False
    return re.fullmatch(r"(?:[\w.-]+/)?[\w.-]+", model) is not None and not Path(model).exists()


def _usage(facts: CardFacts) -> list[str]:
    if facts.is_cross_encoder:
        return [
            "from gemel import load_reranker",
            "",
            'scores = load_reranker("this-folder").score([("a question", "an answer")])',
        ]
    return [
        "from gemel import load_encoder",
        "",
        'vectors = load_encoder("this-folder").encode(["A sentence.", "Another one."])',
        *_prompted(facts.prompts),
        *_shorter(facts.truncations),
    ]


def _prompted(prompts: Mapping[str, str]) -> list[str]:
    if not prompts:
        return []
    name = next(iter(prompts))
    return [
        f"# With a prompt before each text ({', '.join(prompts)}):",
        f'prompted = load_encoder("this-folder").with_prompt("{name}").encode(["A sentence."])',
    ]


def _shorter(truncations: Sequence[int]) -> list[str]:
    if not truncations:
        return []
    return [
        f"# Shorter vectors, of {', '.join(map(str, truncations))} numbers (truncate_dim elsewhere):",
        f'short = load_encoder("this-folder").with_dim({min(truncations)}).encode(["A sentence."])',
    ]
