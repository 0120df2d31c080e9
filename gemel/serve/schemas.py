"""What requests and answers look like: each kind of value checks it and describes it, so both agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gemel.serve.kinds import Choice, Flag, Free, Kind, Nullable, Number, Text, Whole, is_whole, shown
from gemel.serve.refusals import Refusal
from gemel.serve.settings import Limits
from gemel.serve.sizes import check_n_inputs, check_n_tokens

__all__ = [
    "AnyOf",
    "Choice",
    "Field",
    "Flag",
    "Free",
    "Inputs",
    "InputsKind",
    "Kind",
    "ListOf",
    "Nullable",
    "Number",
    "Record",
    "Reply",
    "Text",
    "TokenIds",
    "Whole",
]

Read = TypeVar("Read")

REQUIRED: Any = object()
LARGEST_ID = (1 << 31) - 1  # of a token, in any model


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind."""

    kind: Kind
    least: int = 0
    most: int | None = None
    what: str = "a list"

    def schema(self) -> dict[str, Any]:
        bounds = ({"minItems": self.least} if self.least else {}) | (
            {} if self.most is None else {"maxItems": self.most}
        )
        return {"type": "array", "items": self.kind.schema(), **bounds}

    def takes(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.refuse(value, where)
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            raise Refusal(
                "empty" if not value else "invalid",
                f"{where} has {len(value)} entries, and {self._bounds()} were expected",
                parameter=where,
            )
        return _each(self.kind.read, value, where)

    def check_size(self, value: Any, where: str, limits: Limits) -> None:
        if not isinstance(value, list):
            return
        if isinstance(self.kind, Whole):
            check_n_tokens(len(value), limits)
            return
        check_n_inputs(len(value), where, limits)
        if isinstance(self.kind, ListOf) and isinstance(self.kind.kind, Whole):
            check_n_tokens(_n_inside(value), limits)

    def _bounds(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


@dataclass(frozen=True)
class AnyOf(Kind):
    """A value of one of several kinds: the first that takes it."""

    kinds: tuple[Kind, ...]
    what: str

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [kind.schema() for kind in self.kinds]}

    def check_size(self, value: Any, where: str, limits: Limits) -> None:
        for kind in self._meant(value):
            kind.check_size(value, where, limits)

    def read(self, value: Any, where: str) -> Any:
        reasons: dict[str, Refusal] = {}
        for kind in self._meant(value):
            try:
                return kind.read(value, where)
            except Refusal as refusal:
                if refusal.message != kind.refuse(value, where).message:
                    reasons[refusal.message] = refusal
        if len(reasons) == 1:  # one of the kinds was meant, and what is wrong is inside the value
            raise reasons.popitem()[1]
        raise self.refuse(value, where)

    def _meant(self, value: Any) -> list[Kind]:
        """The kinds that a value looks like; of several kinds of lists, those that its first entry fits."""
        kinds = [kind for kind in self.kinds if kind.takes(value)]
        if len(kinds) > 1 and isinstance(value, list) and value:
            first = value[0]
            return [kind for kind in kinds if isinstance(kind, ListOf) and kind.kind.takes(first)] or kinds
        return kinds


@dataclass(frozen=True)
class Field:
    """One field of an object."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    says: str = ""


class Record(Kind):
    """An object with known fields; null stands for a field's default, unknown ones are refused or ignored."""

    what = "an object"

    def __init__(self, name: str, *members: Field, ignores_others: bool = False) -> None:
        self.name = name
        self.members = members
        self._ignores_others = ignores_others
        self._known = {member.name: member for member in members}

    def schema(self) -> dict[str, Any]:
        properties = {member.name: self._described(member) for member in self.members}
        required = [member.name for member in self.members if member.default is REQUIRED]
        described: dict[str, Any] = {"type": "object", "title": self.name, "properties": properties}
        described |= {} if self._ignores_others else {"additionalProperties": False}
        return described | ({"required": required} if required else {})

    def tolerant(self) -> Record:
        """The same, where unknown fields are ignored, in the objects within as well."""
        members = (
            replace(member, kind=member.kind.tolerant()) if isinstance(member.kind, Record) else member
            for member in self.members
        )
        return Record(self.name, *members, ignores_others=True)

    def takes(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.refuse(value, where or "the body")
        prefix = f"{where}." if where else ""
        for name in () if self._ignores_others else value:
            if name not in self._known:
                known = ", ".join(self._known)
                raise Refusal(
                    "invalid",
                    f"the field {prefix}{name[:80]} is unknown; known are: {known}",
                    parameter=name[:80],
                )
        return {member.name: self._member(member, value, prefix) for member in self.members}

    def check_size(self, value: Any, where: str, limits: Limits) -> None:
        if isinstance(value, Mapping):
            for member in self.members:
                member.kind.check_size(value.get(member.name), f"{where}.{member.name}".strip("."), limits)

    @staticmethod
    def _member(member: Field, value: Mapping[str, Any], prefix: str) -> Any:
        given = value.get(member.name)
        if given is not None:
            return member.kind.read(given, prefix + member.name)
        if member.default is REQUIRED:
            raise Refusal(
                "invalid",
                f"the field {prefix}{member.name} is missing; {member.kind.what} was expected",
                parameter=prefix + member.name,
            )
        return member.default

    @staticmethod
    def _described(member: Field) -> dict[str, Any]:
        described = member.kind.schema()
        if member.default is not REQUIRED:
            described = {"anyOf": [*described.get("anyOf", [described]), {"type": "null"}]}
            if member.default is not None:
                described["default"] = member.default
        return described | ({"description": member.says} if member.says else {})


class Reply(Record):
    """An object that the server sends: fields with a default may be left out."""

    def schema(self) -> dict[str, Any]:
        described = super().schema()
        described["properties"] = {member.name: member.kind.schema() for member in self.members}
        return described


TokenIds = list[int]


@dataclass(frozen=True)
class Inputs:
    """The inputs of a request, and whether there was one alone rather than a list."""

    values: Sequence[str | TokenIds]
    is_single: bool


@dataclass(frozen=True)
class InputsKind(Kind):
    """A text, a list of texts, the token ids of a text, or a list of such."""

    what: str = "a text, a list of texts, or token ids"

    def schema(self) -> dict[str, Any]:
        ids = ListOf(Whole(0, LARGEST_ID), least=1).schema()
        texts = {"type": "array", "items": {"type": "string"}, "minItems": 1}
        return {"anyOf": [{"type": "string"}, texts, ids, {"type": "array", "items": ids, "minItems": 1}]}

    def read(self, value: Any, where: str) -> Inputs:
        if isinstance(value, str):
            return Inputs([value], True)
        if not isinstance(value, list):
            raise self.refuse(value, where)
        if not value:
            raise Refusal("empty", f"{where} is an empty list; give at least one text", parameter=where)
        first = value[0]
        if isinstance(first, str):
            for position, text in enumerate(value):
                if not isinstance(text, str):
                    raise Text().refuse(text, f"{where}[{position}]")
            return Inputs(value, False)
        if isinstance(first, list):
            return Inputs(_each(_ids, value, where), False)
        return Inputs([_ids(value, where)], True)

    def check_size(self, value: Any, where: str, limits: Limits) -> None:
        if not isinstance(value, list) or not value:
            return
        if isinstance(value[0], str | list):
            check_n_inputs(len(value), where, limits)
            check_n_tokens(_n_inside(value), limits)
        else:
            check_n_tokens(len(value), limits)


def _each(read: Callable[[Any, str], Read], values: Sequence[Any], where: str) -> list[Read]:
    """What is read of each entry; where an entry stands is only written down when it is refused."""
    done: list[Read] = []
    try:
        for value in values:
            done.append(read(value, where))
    except Refusal:
        read(values[len(done)], f"{where}[{len(done)}]")
        raise
    return done


def _n_inside(lists: Sequence[Any]) -> int:
    """How many entries there are in the lists of a list."""
    return sum(len(each) for each in lists if isinstance(each, list))


def _ids(value: Any, where: str) -> TokenIds:
    if not isinstance(value, list):
        raise Refusal("invalid", f"{where} is {shown(value)}, and token ids were expected", parameter=where)
    if not value:
        raise Refusal("empty", f"{where} has no token ids; give at least one", parameter=where)
    for position, number in enumerate(value):
        if not is_whole(number) or not 0 <= number <= LARGEST_ID:
            raise Refusal(
                "invalid",
                f"{where}[{position}] is {shown(number)}, and a token id was expected",
                parameter=where,
            )
    return [int(number) for number in value]
