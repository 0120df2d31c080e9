"""What a recipe's data become: examples of a table, plain texts of several files, or translated pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemel.data.examples import Examples, read_examples
from gemel.data.plain_texts import TextFile, read_plain_texts
from gemel.data.translations import read_translations
from gemel.errors import InvalidInput

DATA_KEYS = ("path", "columns", "kind", "where", "limit", "skip_bad_rows", "score_range")
TEXT_KEYS = ("path", "columns", "kind", "where", "limit")
TRANSLATION_KEYS = ("path", "translations")
TRANSLATION_SETTINGS = ("texts", "language", "pivot", "languages")


@dataclass(frozen=True)
class DataSource:
    """Where examples come from and how they are read; `others` are further files of plain texts."""

    path: str
    options: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[DataSource, ...] = ()

    def read(self, data: Path) -> Examples:
        """The examples: paths as they stand, or within the data folder."""
        options = dict(self.options)
        if self.others or options.get("kind") == "texts":
            files = [source._text_file(data) for source in (self, *self.others)]
            return read_plain_texts(files, limit=options.get("limit"))
        if "translations" in options:
            return read_translations(place(self.path, data), **options["translations"])
        return read_examples(place(self.path, data), **options)

    def _text_file(self, data: Path) -> TextFile:
        columns = self.options.get("columns", ["text"])
        return TextFile(place(self.path, data), tuple(columns), self.options.get("where", {}))


def place(path: str, data: Path) -> Path:
    """A path as it stands, or within the data folder."""
    found = Path(path).expanduser()
    return found if found.is_absolute() or found.exists() else data / found


def parse_source(values: Any, name: str) -> DataSource:
    """The data that a recipe names: a table of settings, or for plain texts a list of such."""
    if isinstance(values, list):
        if not values:
            raise InvalidInput(f"data of the recipe {name} is an empty list; expected a file or more")
        first, *others = ({**each, "kind": "texts"} for each in values)
        return DataSource(
            str(first["path"]) if "path" in first else "",
            _options(first, name),
            tuple(parse_source(each, name) for each in others),
        )
    return DataSource(str(values.get("path", "")), _options(values, name))


def _options(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    known: tuple[str, ...] = DATA_KEYS
    if values.get("kind") == "texts":
        known = TEXT_KEYS
    elif "translations" in values:
        known = TRANSLATION_KEYS
        check_keys(values["translations"], TRANSLATION_SETTINGS, f"translations of the recipe {name}")
    check_keys(values, known, f"data of the recipe {name}")
    if "path" not in values:
        raise InvalidInput(f"data of the recipe {name} needs a path")
    options = {key: value for key, value in values.items() if key != "path"}
    if "score_range" in options:
        options["score_range"] = tuple(options["score_range"])
    return options


def check_keys(values: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse an unknown key with a list of the known ones."""
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise InvalidInput(
            f"{where} has the unknown key {unknown[0]!r}; the known keys are {', '.join(known)}"
        )
