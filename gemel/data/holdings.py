"""What of the catalogue is on this machine, and whether it is what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gemel.data.acquisition import read_source_note
from gemel.data.catalogue import DataFile, DataSet
from gemel.data.normalised import content_hash
from gemel.data.places import present_file
from gemel.errors import InvalidInput

Here = Literal["yes", "partly", "no"]
VERIFIED, DIFFERS, UNKNOWN, DAMAGED = "verified", "differs", "not known", "damaged"


@dataclass(frozen=True)
class Held:
    """A file of a set: where it is, and the state of its content where that was looked at."""

    file: DataFile
    path: Path | None
    state: str = ""


@dataclass(frozen=True)
class Holding:
    """A set and what is here of it."""

    data_set: DataSet
    folder: Path
    files: tuple[Held, ...]

    @property
    def here(self) -> Here:
        """Whether all files are here, some, or none."""
        n_here = sum(held.path is not None for held in self.files)
        return "no" if not n_here else "yes" if n_here == len(self.files) else "partly"

    @property
    def state(self) -> str:
        """The state of the content of all files together: the worst of them."""
        states = [held.state for held in self.files if held.path]
        worst = [state for state in states if not state.startswith(VERIFIED)]
        bad = [state for state in (DAMAGED, DIFFERS) if state in worst]
        return (bad or worst or states or [""])[0]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        known = self.data_set
        return {
            "name": known.name,
            "task": known.task,
            "description": known.description,
            "licence": known.licence,
            "here": self.here,
            "folder": str(self.folder),
            "rows": known.rows,
            "files": [
                {
                    "path": held.file.path,
                    "rows": held.file.rows,
                    "sha256": held.file.sha256,
                    "here": held.path is not None,
                    **({"state": held.state} if held.state else {}),
                }
                for held in self.files
            ],
            "page": known.page,
            "downloads": [vars(each) for each in known.downloads],
            "obstacle": known.obstacle,
            "source": read_source_note(self.folder),
        }


def holding(known: DataSet, root: Path, *, verify: bool = False) -> Holding:
    """What is here of a set; `verify` reads and hashes it."""
    folder = root / known.name
    files = []
    for file in known.files:
        path = present_file(folder, file.path)
        files.append(Held(file, path, _state(file, path) if verify and path else ""))
    return Holding(known, folder, tuple(files))


def _state(file: DataFile, path: Path) -> str:
    try:
        found = content_hash(path)
    except InvalidInput:
        return DAMAGED
    if found == file.sha256:
        return VERIFIED
    for sha256, what in file.other_forms:
        if found == sha256:
            return f"{VERIFIED}, {what}"
    return UNKNOWN if file.sha256 is None else DIFFERS
