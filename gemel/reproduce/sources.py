"""What a recipe's data become: examples of a table, contrasts in NLI, plain texts, or translated pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemel.data.contrasts import contrasted
from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.long_texts import without_long_texts
from gemel.data.places import cache_folder
from gemel.data.plain_texts import TextFile, read_plain_texts
from gemel.data.translations import read_translations
from gemel.errors import InvalidInput
from gemel.evaluate.contamination import leave_out_overlap
from gemel.evaluate.held_out import find_held_out
from gemel.train.values import (
    BOOLEAN,
    TABLE,
    TABLES,
    TEXT,
    TEXTS,
    TWO_NUMBERS,
    WHOLE,
    WORDS,
    check_keys,
    check_types,
)

DATA_KEYS = (
    *("path", "columns", "kind", "where", "limit", "max_characters", "skip_bad_rows"),
    *("score_range", "label_names", "contrasts", "translations", "leave_out_tests"),
)
MADE_OF_EXAMPLES = ("max_characters", "contrasts", "leave_out_tests")  # once they are read
DATA_TYPES = {
    "path": TEXT,
    "files": TABLES,
    "columns": WORDS,
    "kind": TEXT,
    "where": TABLE,
    "limit": WHOLE,
    "max_characters": WHOLE,
    "skip_bad_rows": BOOLEAN,
    "score_range": TWO_NUMBERS,
    "label_names": WORDS,
    "contrasts": BOOLEAN,
    "translations": TABLE,
    "leave_out_tests": BOOLEAN,
}
FILE_TYPES = {"path": TEXT, "columns": TEXTS, "where": TABLE, "document": TEXT}
FILE_KEYS = ("path", "columns", "where", "document")  # of plain texts
TRANSLATION_KEYS = ("texts", "language", "pivot", "languages")


@dataclass(frozen=True)
class DataSource:
    """Where examples come from and how they are read; plain texts may come from several files."""

    path: str  # of several files, all of them, as a person would say it
    options: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[TextFile, ...] = ()

    @property
    def name(self) -> str:
        """What others may read: a path within the data folder, or the name of a file of this machine's."""
        paths = [str(file.path) for file in self.files] or [self.path]
        return " + ".join(path if _is_within(path) else Path(path).name for path in paths)

    @property
    def told(self) -> str:
        """The name, and what is taken of it."""
        taken = ["contrasts"] if self.options.get("contrasts") else []
        for column, conditions in self.options.get("where", {}).items():
            for condition in conditions if isinstance(conditions, list) else [conditions]:
                is_not = str(condition).startswith("!=")
                taken.append(f"{column} {'!=' if is_not else '='} {str(condition).removeprefix('!=')}")
        if "score_range" in self.options:
            taken.append("scores from {:g} to {:g}".format(*self.options["score_range"]))
        if "max_characters" in self.options:
            taken.append(f"texts of at most {self.options['max_characters']:,} characters")
        if "limit" in self.options:
            taken.append(f"{'a sample of' if self.files else 'the first'} {self.options['limit']:,}")
        if self.options.get("leave_out_tests"):
            taken.append("without rows of test sets")
        return f"{self.name} ({', '.join(taken)})" if taken else self.name

    def places(self, data: Path) -> dict[str, Path]:
        """Where its files are, by the paths that were written."""
        return {path: place(path, data) for path in [str(file.path) for file in self.files] or [self.path]}

    def read(self, data: Path, label_names: Sequence[str] | None = None) -> Examples:
        """The examples: paths as they stand, or within the data folder; classes in an order that is set."""
        if self.files:
            files = [replace(file, path=place(str(file.path), data)) for file in self.files]
            return read_plain_texts(files, limit=self.options.get("limit"))
        if "translations" in self.options:
            return read_translations(place(self.path, data), **self.options["translations"])
        options = {key: value for key, value in self.options.items() if key not in MADE_OF_EXAMPLES}
        if label_names is not None and "label_names" not in options:
            options["label_names"] = label_names
        longest = self.options.get("max_characters")
        n_wanted = None if longest is None else options.pop("limit", None)  # of the short ones
        examples = read_examples(place(self.path, data), **options)
        if longest is not None:
            examples = without_long_texts(examples, longest, n_wanted)
        if label_names is not None and examples.label_names:
            examples = examples.with_label_names(label_names)
        if self.options.get("contrasts"):
            examples = contrasted(examples)
        return self._without_tests(examples, data) if self.options.get("leave_out_tests") else examples

    def _without_tests(self, examples: Examples, data: Path) -> Examples:
        held_out = find_held_out(data)
        if not held_out:
            raise InvalidInput(
                f"rows of test sets are to be left out of {self.path}, and no test set is in {data} or "
                "among the downloaded ones; get some with `gemel data get stsb`, or take leave_out_tests out"
            )
        left = leave_out_overlap(examples, held_out)
        if not len(left):
            raise InvalidInput(
                f"all {len(examples):,} {examples.kind} of {self.path} stand in test sets, so that "
                "leave_out_tests leaves none; name other data"
            )
        return left


def _is_within(path: str) -> bool:
    return not Path(path).is_absolute() and not path.startswith("~") and ".." not in Path(path).parts


def place(path: str, data: Path) -> Path:
    """A path as it stands, or within the data folder; one that is nowhere is told as it was written, unless
    a data folder was named."""
    found = Path(path).expanduser()
    within = data / found
    if found.is_absolute() or found.exists():
        return found
    return within if within.exists() or data != cache_folder() else found


def parse_source(values: Mapping[str, Any], name: str) -> DataSource:
    """The data that a recipe names: a file of examples, of translations, or several files of plain texts."""
    where = f"data of the recipe {name}"
    check_types(values, DATA_TYPES, where)
    if "files" in values:
        check_keys(values, ("files", "limit"), where)
        files = tuple(_text_file(each, f"a file in {where}") for each in values["files"])
        if not files:
            raise InvalidInput(f"{where} has no files; expected at least one")
        options = {key: value for key, value in values.items() if key != "files"}
        return DataSource(" + ".join(str(file.path) for file in files), options, files)
    check_keys(values, (*DATA_KEYS, "files"), where)
    options = {key: value for key, value in values.items() if key != "path"}
    if "score_range" in options:
        options["score_range"] = tuple(options["score_range"])
    if "translations" in options:
        check_keys(options["translations"], TRANSLATION_KEYS, f"translations of the recipe {name}")
        if len(options) > 1 or "texts" not in options["translations"]:
            raise InvalidInput(
                f"translations of the recipe {name} need texts, the columns that hold some, and "
                "nothing beside translations"
            )
    return DataSource(_path(values, where), options)


def _text_file(values: Mapping[str, Any], where: str) -> TextFile:
    check_keys(values, FILE_KEYS, where)
    check_types(values, FILE_TYPES, where)
    return TextFile(
        _path(values, where),
        tuple(values.get("columns", ["text"])),
        values.get("where", {}),
        values.get("document"),
    )


def _path(values: Mapping[str, Any], where: str) -> str:
    if "path" not in values:
        raise InvalidInput(f"{where} needs a path")
    return str(values["path"])
