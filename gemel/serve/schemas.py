"""What requests and answers look like: each kind of value checks it and describes it, so both agree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gemel.serve.refusals import Refusal

REQUIRED: Any = object()
LARGEST_ID = (1 << 31) - 1  # of a token, in any model
JSON_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}


class Kind(ABC):
    """A kind of JSON value."""

    what: str  # in a sentence: "... was expected"

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""

    @abstractmethod
    def read(self, value: Any, where: str) -> Any:
        """The value, or a refusal that says where and what was expected."""

    def refuse(self, value: Any, where: str) -> Refusal:
        """What to say of a value of another kind."""
        return Refusal("invalid", f"{where} is {shown(value)}, and {self.what} was expected", parameter=where)


def shown(value: Any) -> str:
    """What a value is, without what is in it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"the number {value}"
    return JSON_NAMES.get(type(value), type(value).__name__)


@dataclass(frozen=True)
class Text(Kind):
    """A text."""

    what: str = "a text"

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def read(self, value: Any, where: str) -> str:
        if not isinstance(value, str):
            raise self.refuse(value, where)
        return value


@dataclass(frozen=True)
class Flag(Kind):
    """True or false."""

    what: str = "true or false"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read(self, value: Any, where: str) -> bool:
        if not isinstance(value, bool):
            raise self.refuse(value, where)
        return value


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number within bounds."""

    least: int = 0
    most: int | None = None

    @property
    def what(self) -> str:  # type: ignore[override]
        """The bounds in words."""
        return f"a whole number from {self.least}" + ("" if self.most is None else f" to {self.most}")

    def schema(self) -> dict[str, Any]:
        bounds = {"minimum": self.least} | ({} if self.most is None else {"maximum": self.most})
        return {"type": "integer", **bounds}

    def read(self, value: Any, where: str) -> int:
        if not _is_whole(value) or value < self.least or (self.most is not None and value > self.most):
            raise self.refuse(value, where)
        return int(value)


@dataclass(frozen=True)
class Number(Kind):
    """A number."""

    what: str = "a number"

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}

    def read(self, value: Any, where: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(value, where)
        return float(value)


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def what(self) -> str:  # type: ignore[override]
        """The words."""
        return "one of " + ", ".join(repr(word) for word in self.words)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}

    def read(self, value: Any, where: str) -> str:
        if value not in self.words or not isinstance(value, str):
            raise self.refuse(value, where)
        return value


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

    def read(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.refuse(value, where)
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            raise Refusal(
                "empty" if not value else "invalid",
                f"{where} has {len(value)} entries, and {self._bounds()} were expected",
                parameter=where,
            )
        return [self.kind.read(entry, f"{where}[{position}]") for position, entry in enumerate(value)]

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

    def read(self, value: Any, where: str) -> Any:
        reasons: dict[str, Refusal] = {}
        for kind in self.kinds:
            try:
                return kind.read(value, where)
            except Refusal as refusal:
                if refusal.message != kind.refuse(value, where).message:
                    reasons[refusal.message] = refusal
        if len(reasons) == 1:  # one of the kinds was meant, and what is wrong is inside the value
            raise reasons.popitem()[1]
        raise self.refuse(value, where)


@dataclass(frozen=True)
class Field:
    """One field of an object."""

    name: str
    kind: Kind
    default: Any = REQUIRED
    says: str = ""


class Record(Kind):
    """An object with known fields; null stands for a field's default, and unknown ones are refused."""

    what = "an object"

    def __init__(self, name: str, *members: Field) -> None:
        self.name = name
        self.members = members
        self._known = {member.name: member for member in members}

    def schema(self) -> dict[str, Any]:
        properties = {member.name: self._described(member) for member in self.members}
        required = [member.name for member in self.members if member.default is REQUIRED]
        described = {"type": "object", "title": self.name, "properties": properties}
        return described | ({"required": required} if required else {}) | {"additionalProperties": False}

    def read(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.refuse(value, where or "the body")
        prefix = f"{where}." if where else ""
        for name in value:
            if name not in self._known:
                known = ", ".join(self._known)
                raise Refusal(
                    "invalid",
                    f"the field {prefix}{name[:80]} is unknown; known are: {known}",
                    parameter=name[:80],
                )
        return {member.name: self._member(member, value, prefix) for member in self.members}

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


@dataclass(frozen=True)
class Free(Kind):
    """Any object."""

    what: str = "an object"

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def read(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise self.refuse(value, where)
        return value


@dataclass(frozen=True)
class Nullable(Kind):
    """A value that may be null; answers only."""

    kind: Kind
    what: str = "a value or null"

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}

    def read(self, value: Any, where: str) -> Any:
        return None if value is None else self.kind.read(value, where)


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
            return Inputs([_ids(ids, f"{where}[{position}]") for position, ids in enumerate(value)], False)
        return Inputs([_ids(value, where)], True)


def _ids(value: Any, where: str) -> TokenIds:
    if not isinstance(value, list):
        raise Refusal("invalid", f"{where} is {shown(value)}, and token ids were expected", parameter=where)
    if not value:
        raise Refusal("empty", f"{where} has no token ids; give at least one", parameter=where)
    for position, number in enumerate(value):
        if not _is_whole(number) or not 0 <= number <= LARGEST_ID:
            raise Refusal(
                "invalid",
                f"{where}[{position}] is {shown(number)}, and a token id was expected",
                parameter=where,
            )
    return [int(number) for number in value]


def _is_whole(value: Any) -> bool:
    """Whether a number is whole; in JSON 3.0 is."""
    return type(value) is int or (type(value) is float and value.is_integer())
