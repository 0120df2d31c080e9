"""What a folder of parts is made of: a run goes on only with the same model and the same inputs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

from gemel.errors import Damaged, InvalidInput, ModelMismatch
from gemel.scale.inputs import InputFacts, count_parts
from gemel.scale.places import Folder, is_draft

NAME = "manifest.json"
LAYOUT = 1


@dataclass(frozen=True)
class Manifest:
    """All that decides what the parts hold."""

    fingerprint: str
    dim: int
    settings: str  # what else moves a vector, such as the prompt
    column: str
    id_column: str | None
    part_rows: int
    inputs: tuple[InputFacts, ...] = field(default=())
    is_complete: bool = False
    layout: int = LAYOUT

    @property
    def rows(self) -> int:
        """How many rows all parts hold together."""
        return sum(fact.rows for fact in self.inputs)

    def rows_of(self, done: frozenset[int]) -> int:
        """How many rows these parts hold."""
        return sum(rows for number, rows in enumerate(self.sizes()) if number in done)

    def sizes(self) -> list[int]:
        """How many rows each part holds."""
        return [
            min(self.part_rows, fact.rows - start)
            for fact in self.inputs
            for start in range(0, fact.rows, self.part_rows)
        ]

    def write(self, folder: Folder, *, is_complete: bool = False) -> None:
        """Put it into the folder."""
        values = {**asdict(replace(self, is_complete=is_complete)), "rows": self.rows}
        content = (json.dumps(values, indent=2) + "\n").encode()
        folder.write(NAME, lambda file: file.write(content))


def part_name(number: int) -> str:
    """The file of a part; by name they stand in the order of the rows."""
    return f"part-{number:08d}.parquet"


def read_manifest(folder: Folder) -> Manifest:
    """The manifest of a folder of parts."""
    try:
        values = json.loads(folder.read(NAME))
        del values["rows"]
        inputs = tuple(InputFacts(**fact) for fact in values.pop("inputs"))
        return Manifest(**values, inputs=inputs)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise Damaged(
            f"{folder.name}/{NAME} is no manifest of gemel ({error}); take another output folder"
        ) from None


def begin_or_continue(folder: Folder, manifest: Manifest) -> frozenset[int]:
    """The parts that an earlier run has written, none in a new folder; a run of something else is refused."""
    files = folder.files()
    if NAME not in files:
        others = [name for name in files if not is_draft(name)]
        if others:
            raise InvalidInput(
                f"{folder.name} holds other files, such as {min(others)}; expected a new or an empty folder"
            )
        folder.make()
        manifest.write(folder)
        return frozenset()
    _check_same(folder, read_manifest(folder), manifest)
    n_parts = count_parts(manifest.inputs, manifest.part_rows)
    return frozenset(number for number in range(n_parts) if files.get(part_name(number)))


def _check_same(folder: Folder, saved: Manifest, now: Manifest) -> None:
    for name in ("fingerprint", "settings", "dim"):
        if getattr(saved, name) != getattr(now, name):
            raise ModelMismatch(
                f"{folder.name} was begun by another model ({name} {getattr(saved, name)!r}, and now "
                f"{getattr(now, name)!r}): continue with the same one, or take another output folder"
            )
    for name in ("layout", "column", "id_column", "part_rows"):
        if getattr(saved, name) != getattr(now, name):
            raise InvalidInput(
                f"{folder.name} was begun with {name} = {getattr(saved, name)!r} and now it is "
                f"{getattr(now, name)!r}: continue with the same, or take another output folder"
            )
    before, after = [fact.path for fact in saved.inputs], [fact.path for fact in now.inputs]
    if before != after:
        raise InvalidInput(
            f"{folder.name} was begun with {len(before)} inputs and now there are {len(after)}, or others: "
            "continue with the same, in the same order, or take another output folder"
        )
    for old, new in zip(saved.inputs, now.inputs, strict=True):
        if old != new:
            raise InvalidInput(
                f"{new.path} has changed since {folder.name} was begun ({old.rows:,} rows then, {new.rows:,} "
                "now): take another output folder"
            )
