"""Every set of pairs that models are measured on, as far as it is at hand: what nobody should train on."""

from __future__ import annotations

from pathlib import Path

from gemel.data.example_files import read_examples
from gemel.data.examples import Examples
from gemel.data.places import cache_folder, present_file
from gemel.evaluate.sts_sets import KLUE_STS, KORSTS, SICK_R_ALL, STS_SETS
from gemel.evaluate.suite import DUPLICATE_TASKS, NLI_TASKS

# Name -> files in the data folder. A set in several languages is one: a pair in any of them counts.
HELD_OUT: dict[str, tuple[str, ...]] = {
    **{each.name: (each.file, *each.more_files) for each in (*STS_SETS, SICK_R_ALL, KORSTS, KLUE_STS)},
    "STSb in other languages": ("stsb_multi_mt/test.tsv.gz",),
    **{task.name: (task.file,) for task in DUPLICATE_TASKS},
    "PAWS-X (dev)": ("pawsx/dev.tsv.gz",),
    **{task.name: (task.file,) for task in NLI_TASKS},
}


def read_held_out(folder: Path) -> dict[str, Examples]:
    """The pairs of each set whose files are all in the folder."""
    found = {name: [present_file(folder, file) for file in files] for name, files in HELD_OUT.items()}
    return {
        name: _joined([read_examples(path, kind="pairs") for path in paths if path])
        for name, paths in found.items()
        if all(paths)
    }


def find_held_out(folder: Path) -> dict[str, Examples]:
    """The sets of the folder, or where it has none, of the cache of downloaded ones."""
    return read_held_out(folder) or read_held_out(cache_folder())


def _joined(parts: list[Examples]) -> Examples:
    columns = {role: [text for part in parts for text in part.columns[role]] for role in ("first", "second")}
    return Examples("pairs", columns)
