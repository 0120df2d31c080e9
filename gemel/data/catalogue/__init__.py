"""Every set that gemel knows, as data: what it is for, its files, its licence, where it is published."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from gemel.data.catalogue.entry import DataFile, DataSet, Download
from gemel.data.catalogue.inference import INFERENCE
from gemel.data.catalogue.multilingual import MULTILINGUAL
from gemel.data.catalogue.paraphrases import PARAPHRASES
from gemel.data.catalogue.retrieval import RETRIEVAL
from gemel.data.catalogue.similarity import SIMILARITY
from gemel.data.catalogue.transfer import TRANSFER
from gemel.data.places import data_folder, present_file
from gemel.errors import InvalidInput

__all__ = [
    "CATALOGUE",
    "DataFile",
    "DataSet",
    "Download",
    "data_set",
    "find_set",
    "how_to_get",
]

CATALOGUE: dict[str, DataSet] = {
    each.name: each for each in (*SIMILARITY, *INFERENCE, *TRANSFER, *PARAPHRASES, *RETRIEVAL, *MULTILINGUAL)
}


def data_set(name: str) -> DataSet:
    """The set of this name; case makes no difference, nor whether it is `-` or `_`."""
    plain = name.lower().replace("-", "_")
    if plain not in CATALOGUE:
        near = difflib.get_close_matches(plain, CATALOGUE, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}?" if near else "`gemel data` lists the known ones"
        raise InvalidInput(f"the catalogue has no set {name!r}; {guess}")
    return CATALOGUE[plain]


def find_set(name: str, part: str, data: str | os.PathLike[str] | None = None) -> Path:
    """The file of a set's part in the data folder, or a sentence that says how to come by it."""
    known = data_set(name)
    file = known.file(part)
    if file is None:
        parts = ", ".join(each.part for each in known.files)
        raise InvalidInput(f"{known.name} has no part {part!r}; expected one of {parts}")
    folder = data_folder(data)
    path = present_file(folder / known.name, file.path)
    if path is None:
        place = folder / known.name / file.path
        raise InvalidInput(f"{known.name} was looked for at {place} and is not there; {how_to_get(known)}")
    return path


def how_to_get(known: DataSet) -> str:
    """What to do to have a set here, as the end of a sentence."""
    if known.downloads:
        return f"`gemel data get {known.name}` fetches it"
    reason = f"it cannot be fetched, because {known.obstacle}"
    if known.layout:
        return f"{reason}: download it from {known.page}, then `gemel data get {known.name} --from FILE`"
    where = f" ({known.page})" if known.page else ""
    return f"{reason}{where}: give the folder that holds it with --data or in GEMEL_DATA"
