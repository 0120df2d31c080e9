"""What the columns of a table are for, told by their names and never by their order.

A role is what a column is to an example: `first`, `second`, `negative_1` and so on, `score`, `label`; or
`text`, where an example is one text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from gemel.errors import InvalidInput

Kind = Literal["pairs", "scored pairs", "classified pairs", "triplets", "classified texts", "texts"]

# role -> the names that its column goes by; case, `_`, `-` and blanks make no difference.
ALIASES: dict[str, tuple[str, ...]] = {
    "first": (
        *("sentence1", "sentence_a", "premise", "text1", "text_a", "question1"),
        *("anchor", "query", "question"),
    ),
    "second": (
        *("sentence2", "sentence_b", "hypothesis", "text2", "text_b", "question2"),
        *("positive", "answer", "passage", "document"),
    ),
    "text": ("text", "sentence", "content"),
    "score": ("score", "scores", "similarity", "similarity_score", "relatedness_score", "gold_score"),
    "label": ("label", "labels", "gold_label", "class", "is_duplicate", "is_paraphrase", "similar"),
}
_CLASSES_OF_TEXTS = ("category", "intent")  # beside two texts they are topics, and nothing to tell apart
_NEGATIVE = re.compile(r"(?:hard)?negative(\d*)")  # negative, hard_negative, negative_1 ... negative_n

# kind -> the roles that its examples are made of; one `negative` stands for one or more.
KIND_ROLES: dict[Kind, tuple[str, ...]] = {
    "triplets": ("first", "second", "negative"),
    "scored pairs": ("first", "second", "score"),
    "classified pairs": ("first", "second", "label"),
    "pairs": ("first", "second"),
    "classified texts": ("text", "label"),
    "texts": ("text",),
}
# Beside one of these a column of texts says too little: (query, text) may be pairs under other names.
_OF_SEVERAL_TEXTS = {"first", "second", "negative", "score"}
# What callers may say for a role.
_SPOKEN = {"anchor": "first", "positive": "second", "negative": "negative_1"}


def checked_kind(kind: str) -> Kind:
    """The kind, or a sentence that lists the known ones."""
    if kind not in get_args(Kind):
        raise InvalidInput(f"kind is {kind!r}; expected one of: {', '.join(get_args(Kind))}")
    return kind  # type: ignore[return-value]


def assign_roles(
    found: Sequence[str], *, columns: Mapping[str, str] | None, kind: Kind | None, where: str
) -> tuple[Kind, dict[str, str]]:
    """The kind of examples that the columns make, and role -> column in canonical order."""
    named = _named(columns or {}, found, where)
    candidates = {**_candidates(found, set(named.values())), **{role: [name] for role, name in named.items()}}
    if kind == "scored pairs" and "score" not in candidates and "label" in candidates:
        candidates["score"] = candidates.pop("label")  # yes and no as 1 and 0
    if kind is None:
        kind = _inferred_kind(candidates, set(named), found, where)
    assigned: dict[str, str] = {}
    for role in _expanded(KIND_ROLES[kind], candidates):
        names = candidates.get(role, [])
        if not names:
            raise InvalidInput(f"{where} has no column for {role}, as {kind} need. {_needs(found)}. {_NAMES}")
        if len(names) > 1 or found.count(names[0]) > 1:
            choice = " or ".join(map(repr, names)) if len(names) > 1 else f"either column {names[0]!r}"
            raise InvalidInput(
                f"{where}: {role} could be {choice}; say which with --column {role}=NAME, or "
                f'columns={{"{role}": ...}}'
            )
        assigned[role] = names[0]
    for role in named.keys() - assigned.keys():
        raise InvalidInput(f"columns names a {role}, and {kind} have none; leave it out, or say another kind")
    return kind, assigned


def _named(columns: Mapping[str, str], found: Sequence[str], where: str) -> dict[str, str]:
    """role -> column, as the caller has said."""
    named: dict[str, str] = {}
    for spoken, column in columns.items():
        role = _SPOKEN.get(spoken, spoken)
        if role not in ALIASES and not re.fullmatch(r"negative_\d+", role):
            known = ", ".join((*ALIASES, "negative_1, negative_2 ..."))
            raise InvalidInput(f"columns names {spoken!r}, which is no role; the roles are {known}")
        if column not in found:
            raise InvalidInput(f"{where} has no column {column!r} to be {spoken}; it has {_shown(found)}")
        named[role] = column
    return named


def _candidates(found: Sequence[str], taken: set[str]) -> dict[str, list[str]]:
    """role -> all columns whose names fit and that nobody has spoken for."""
    candidates: dict[str, list[str]] = {}
    for column in dict.fromkeys(found):
        role = role_of(column)
        if role is not None and column not in taken:
            candidates.setdefault(role, []).append(column)
    if set(candidates) == {"text"}:
        classes = [name for name in found if _plain(name) in _CLASSES_OF_TEXTS and name not in taken]
        candidates.update({"label": classes} if classes else {})
    return candidates


def may_matter(column: str) -> bool:
    """Whether a column of this name can change what the rows are, be it beside some others only."""
    return role_of(column) is not None or _plain(column) in _CLASSES_OF_TEXTS


def role_of(column: str) -> str | None:
    """What a column of this name is for, if that is known."""
    plain = _plain(column)
    negative = _NEGATIVE.fullmatch(plain)
    if negative:
        return f"negative_{int(negative[1] or 1)}"
    return _BY_NAME.get(plain)


def _plain(column: str) -> str:
    return re.sub(r"[\s_-]", "", column.lower())


_BY_NAME = {_plain(name): role for role, names in ALIASES.items() for name in names}


def _inferred_kind(
    candidates: Mapping[str, list[str]], named: set[str], found: Sequence[str], where: str
) -> Kind:
    """The one kind that has a use for whatever was named, or else for whatever is there."""
    present, asked = _without_numbers(candidates), _without_numbers(named)
    fitting = [kind for kind, roles in KIND_ROLES.items() if asked <= set(roles) <= present]
    if "text" not in asked and present & _OF_SEVERAL_TEXTS:
        fitting = [kind for kind in fitting if "text" not in KIND_ROLES[kind]]
    if not fitting:
        raise InvalidInput(f"{where} has no columns that make examples. {_needs(found)}. {_NAMES}")
    if len(fitting) > 1 and fitting[-1] in ("pairs", "texts"):
        fitting.pop()
    if len(fitting) > 1:
        raise InvalidInput(f"{where} could be {' or '.join(fitting)}; say which with kind. {_needs(found)}")
    return fitting[0]


def _without_numbers(roles: Iterable[str]) -> set[str]:
    return {"negative" if role.startswith("negative_") else role for role in roles}


def _expanded(roles: Sequence[str], candidates: Mapping[str, list[str]]) -> list[str]:
    """The roles with `negative` put for as many of them as there are, in the order of their numbers."""
    negatives = [role for role in candidates if role.startswith("negative_")]
    numbered = sorted(negatives, key=lambda role: int(role.removeprefix("negative_")))
    return [each for role in roles for each in ((numbered or ["negative"]) if role == "negative" else [role])]


def _needs(found: Sequence[str]) -> str:
    kinds = "; ".join(f"{kind} need {', '.join(roles)}" for kind, roles in KIND_ROLES.items())
    return f"Columns found: {_shown(found)}. {kinds[0].upper()}{kinds[1:]}"


def _shown(found: Sequence[str]) -> str:
    return ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in found) or "none"


_NAMES = (
    "Names that are known: "
    + "; ".join(f"{role} is {', '.join(names)}" for role, names in ALIASES.items())
    + "; negative is negative, hard_negative, negative_1, negative_2 ...; "
    'other columns are named with --column first=NAME, or columns={"first": ..., "second": ...}'
)
