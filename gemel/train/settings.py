"""Settings of objectives that are built by name, checked before they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
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
