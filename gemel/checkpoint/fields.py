"""JSON that somebody else wrote, read field by field: a wrong type is named, never guessed at.

A null means that the field is not given, as in every program that writes these files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemel.errors import InvalidModel

Json = Mapping[str, Any]
LARGEST = 2**31 - 1


def parse_json(file: Path) -> Any:
    """Whatever value a JSON file holds."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise InvalidModel(
            f"{file} is nested too deeply to be a model's file: get the folder again"
        ) from None
    except ValueError as error:
        raise InvalidModel(f"{file} is not valid JSON ({error}): get the folder again") from None
    except OSError as error:
        raise InvalidModel(f"{file} cannot be read ({error.strerror})") from None


def read_json(file: Path, *, required_by: str | None = None) -> dict[str, Any]:
    """The object in a JSON file; an absent file is empty unless something requires it."""
    if not file.is_file():
        if required_by:
            raise InvalidModel(f"{file.parent} has no {file.name}, which {required_by} needs")
        return {}
    value = parse_json(file)
    if not isinstance(value, dict):
        raise InvalidModel(f"{file} holds a {type(value).__name__}, and a JSON object was expected")
    return value


def integer(config: Json, key: str, file: str, *, least: int = 1, most: int = LARGEST) -> int | None:
    """A whole number, or None where it is not given."""
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise wrong(config, key, file, f"a whole number from {least} to {most}")
    return value


def required_integer(config: Json, key: str, file: str) -> int:
    """A whole number that must be given."""
    value = integer(config, key, file)
    if value is None:
        raise InvalidModel(f"{file} lacks the key {key!r}, and a whole number of at least 1 was expected")
    return value


def number(config: Json, key: str, file: str, default: float) -> float:
    """A number that is not negative."""
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise wrong(config, key, file, "a number of at least 0")
    return float(value)


def flag(config: Json, key: str, file: str, default: bool) -> bool:
    """True or false, nothing that merely looks like it: "false" is a text, and would count as true."""
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise wrong(config, key, file, "true or false")
    return value


def text(config: Json, key: str, file: str) -> str | None:
    """A text, or None where it is not given."""
    value = config.get(key)
    if value is None or isinstance(value, str):
        return value
    raise wrong(config, key, file, "a text")


def texts(config: Json, key: str, file: str) -> tuple[str, ...]:
    """A list of texts, empty where it is not given."""
    value = config.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(config, key, file, "a list of texts")
    return tuple(value)


def text_table(config: Json, key: str, file: str) -> dict[str, str]:
    """Texts by name, empty where it is not given."""
    value = table(config, key, file)
    if not all(isinstance(item, str) for item in value.values()):
        raise wrong(config, key, file, "an object whose values are texts")
    return value


def table(config: Json, key: str, file: str) -> dict[str, Any]:
    """An object, empty where it is not given."""
    value = config.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(config, key, file, "an object")
    return value


def wrong(config: Json, key: str, file: str, expected: str) -> InvalidModel:
    """The error that a field's value calls for."""
    shown = repr(config.get(key))
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    return InvalidModel(f"{file} sets {key} to {shown}, and {expected} was expected")
