"""Settings that a recipe names, checked before they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gemel.errors import InvalidInput
from gemel.train.values import (
    ANYTHING,
    BOOLEAN,
    NUMBER,
    TEXT,
    WHOLE,
    Expected,
    check_types,
    is_int,
    is_number,
)

Made = TypeVar("Made")


# annotation of a parameter -> what a setting of it must be
_PLAIN_TYPES = {"bool": BOOLEAN, "int": WHOLE, "float": NUMBER, "str": TEXT}


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
    check_types(settings, {name: _expected(parameters[name].annotation) for name in settings}, what)


def _expected(annotation: object) -> Expected:
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    name = name.removesuffix(" | None")  # a recipe has no way to say None
    return _PLAIN_TYPES.get(name, ANYTHING)


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number, and no smaller."""
    return is_int(value) and value >= least


def is_above(value: object, limit: float) -> bool:
    """Whether a value is a number, and larger."""
    return is_number(value) and value > limit


def one_or_more(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names, of which a recipe may give one alone."""
    return (names,) if isinstance(names, str) else tuple(names)
