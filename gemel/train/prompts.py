"""What stands before the texts of each column, for models that read questions and documents differently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gemel.checkpoint import EncoderSpec
from gemel.contracts import DOCUMENT_PROMPTS, QUERY_PROMPTS
from gemel.errors import InvalidInput

TEXT_PROMPT = "text"  # of a column of texts alone
_ROLES = {"anchor": "first", "positive": "second"}  # as triplets have them


def prompts_of(columns: Iterable[str], named: Mapping[str, str]) -> tuple[str, ...]:
    """The prompt of each column; a negative has that of the positives, unless another is named."""
    by_role = {_role(name): prompt for name, prompt in named.items()}
    roles = [_role(column) for column in columns]
    unknown = [name for name in named if _role(name) not in roles]
    if unknown:
        raise InvalidInput(
            f"prompts names {unknown[0]!r}, and the examples have {', '.join(dict.fromkeys(roles))}; "
            "name these"
        )
    by_role.setdefault("negative", by_role.get("second", ""))
    return tuple(by_role.get(role, "") for role in roles)


def with_prompts(spec: EncoderSpec, named: Mapping[str, str]) -> EncoderSpec:
    """The encoder with the prompts it is trained with under the names that a search looks for."""
    by_role = {_role(name): prompt for name, prompt in named.items()}
    found = {
        QUERY_PROMPTS[0]: by_role.get("first"),
        DOCUMENT_PROMPTS[0]: by_role.get("second"),
        TEXT_PROMPT: by_role.get(TEXT_PROMPT),
    }
    prompts = {**spec.prompts, **{name: prompt for name, prompt in found.items() if prompt}}
    if not spec.pooling.include_prompt:
        raise InvalidInput(
            "prompts are set for the columns, and this model's pooling leaves prompts out, which it can do "
            "of one prompt alone; leave them out, or start from another model"
        )
    if found[TEXT_PROMPT]:  # examples are texts of one kind, and so will be those that it reads
        return replace(spec, prompts=prompts, default_prompt=TEXT_PROMPT)
    return replace(spec, prompts=prompts)


def prompt_of_first(named: Mapping[str, str]) -> str:
    """What stands before the texts of the first column, if anything."""
    return next((prompt for name, prompt in named.items() if _role(name) == "first"), "")


def _role(name: str) -> str:
    return "negative" if name.startswith("negative") else _ROLES.get(name, name)
