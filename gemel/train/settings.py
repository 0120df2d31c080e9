"""Settings that a recipe names, checked before they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from gemel.errors import InvalidInput

Made = TypeVar("Made")


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
    try:
        return make(*needs, **settings)
    except TypeError as error:
        raise InvalidInput(f"the settings of the objective {name!r} are of wrong types: {error}") from None


def is_whole(value: object, least: int) -> bool:
    """Whether a value is a whole number, and no smaller."""
    return isinstance(value, int) and value >= least


def is_above(value: object, limit: float) -> bool:
    """Whether a value is a number, and larger."""
    return isinstance(value, int | float) and value > limit


def one_or_more(names: str | Sequence[str]) -> tuple[str, ...]:
    """Names, of which a recipe may give one alone."""
    return (names,) if isinstance(names, str) else tuple(names)
