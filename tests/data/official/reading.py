"""Official files made by hand, and the tables that they become."""

from __future__ import annotations

from pathlib import Path

from gemel.data.normalised import write_part
from gemel.data.official import reader_of
from gemel.data.official.files import OfficialFiles


def put(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Write files, given as path -> content, into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def tables(layout: str, folder: Path) -> dict[str, str]:
    """part -> the text of its table, as it is written to disk."""
    made: dict[str, str] = {}
    for part in reader_of(layout)(OfficialFiles(folder)):
        target = folder / "made.tsv"
        written = write_part(part, target)
        made[part.name] = target.read_bytes().decode()
        assert written.rows == made[part.name].count("\n") - 1
        target.unlink()
    return made
