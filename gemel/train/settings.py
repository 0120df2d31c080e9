"""Settings that a recipe names, checked before they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar

from gemel.errors import InvalidInput

Made = TypeVar("Made")


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return _is_int(value) or isinstance(value, float)


# annotation -> in words, and how to know it
_PLAIN_TYPES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", _is_int),
    "float": ("a number", _is_number),
    "str": ("a word in quotes", lambda value: isinstance(value, str)),
}


def build_with_settings(
    name: str, make: Callable[..., Made], settings: Mapping[str, Any], *needs: object
) -> Made:
    """What `make` makes of its needs and the settings; an unknown setting is told with the known ones."""
    known = list(inspect.signature(make).parameters)[len(needs) :]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise InvalidInput(
            f"the objective {name!r} does not take these settings: {', '.join(unknown)}; "
            f"it takes {', '.join(known) or 'none'}"
        )
    check_plain_types(f"the objective {name!r}", make, settings)
    try:
        return make(*needs, **settings)
    except TypeError as error:
        raise InvalidInput(f"the settings of the objective {name!r} are of wrong types: {error}") from None


def check_plain_types(what: str, make: Callable[..., object], settings: Mapping[str, Any]) -> None:
    """Refuse a setting whose value is not of the plain type that its parameter names."""
    parameters = inspect.signature(make).parameters
    for setting, value in settings.items():
        annotation = parameters[setting].annotation
        expected = _PLAIN_TYPES.get(annotation if isinstance(annotation, str) else annotation.__name__)
        if expected is not None and not expected[1](value):
            raise InvalidInput(f"{setting} of {what} is {value!r}; expected {expected[0]}")


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number, and no smaller."""
    return _is_int(value) and value >= least


def is_above(value: object, limit: float) -> bool:
    """Whether a value is a number, and larger."""
    return _is_number(value) and value > limit


def one_or_more(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names, of which a recipe may give one alone."""
    return (names,) if isinstance(names, str) else tuple(names)
