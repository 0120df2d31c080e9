"""The kinds of single JSON values in requests and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from gemel.serve.refusals import Refusal
from gemel.serve.settings import Limits

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

    def takes(self, value: Any) -> bool:
        """Whether a value looks like one of this kind, without a look at what is in it."""
        return True

    def check_size(self, value: Any, where: str, limits: Limits) -> None:
        """Refuse lists of more entries than a request may have, before any of them is read."""
        return

    def refuse(self, value: Any, where: str) -> Refusal:
        """What to say of a value of another kind."""
        return Refusal("invalid", f"{where} is {shown(value)}, and {self.what} was expected", parameter=where)


def shown(value: Any) -> str:
    """What a value is, without what is in it."""
    if _is_number(value):
        return f"the number {value}"
    return JSON_NAMES.get(type(value), type(value).__name__)


@dataclass(frozen=True)
class Text(Kind):
    """A text."""

    what: str = "a text"

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

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

    def takes(self, value: Any) -> bool:
        return isinstance(value, bool)

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

    def takes(self, value: Any) -> bool:
        return _is_number(value)

    def read(self, value: Any, where: str) -> int:
        if not is_whole(value) or value < self.least or (self.most is not None and value > self.most):
            raise self.refuse(value, where)
        return int(value)


@dataclass(frozen=True)
class Number(Kind):
    """A number."""

    what: str = "a number"

    def schema(self) -> dict[str, Any]:
        return {"type": "number"}

    def takes(self, value: Any) -> bool:
        return _is_number(value)

    def read(self, value: Any, where: str) -> float:
        if not _is_number(value):
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

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def read(self, value: Any, where: str) -> str:
        if value not in self.words or not isinstance(value, str):
            raise self.refuse(value, where)
        return value


@dataclass(frozen=True)
class Free(Kind):
    """Any object."""

    what: str = "an object"

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def takes(self, value: Any) -> bool:
        return isinstance(value, dict)

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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Whether a number is whole; in JSON 3.0 is."""
    return type(value) is int or (type(value) is float and value.is_integer())
