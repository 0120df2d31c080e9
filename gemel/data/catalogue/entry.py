"""What the catalogue says of a set: its files, its licence, and where it is officially published."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

# Where the sha256 of an official file can be looked up.
TFDS = "tensorflow/datasets, checksums of its downloads"
HUB = "huggingface/datasets 2.3.2, dataset_infos.json"
REPOSITORY = "the file in the repository that publishes it"

TOKENISED = "tokenised as in SentEval"


@dataclass(frozen=True)
class DataFile:
    """A table in gemel's own layout; the sha256 is that of its content, however it is packed."""

    path: str
    rows: int | None = None  # None: not known
    sha256: str | None = None
    other_forms: tuple[tuple[str, str], ...] = ()  # (sha256, what is different about this content)

    @property
    def part(self) -> str:
        """The name without suffixes: `train` for `train.tsv.gz`."""
        return self.path.partition(".")[0]


@dataclass(frozen=True)
class Download:
    """An official file; without a sha256 nobody is known to have published one."""

    url: str
    n_bytes: int | None = None
    sha256: str | None = None
    attested_by: str = ""

    @property
    def file_name(self) -> str:
        """What the file is called once it is here."""
        return unquote(urlsplit(self.url).path.rpartition("/")[2])


@dataclass(frozen=True)
class DataSet:
    """A set: its name is that of its folder; `layout` names the reader of its official files."""

    name: str
    task: str
    description: str
    licence: str
    files: tuple[DataFile, ...]
    downloads: tuple[Download, ...] = ()
    layout: str = ""
    page: str = ""
    obstacle: str = ""  # why it cannot be fetched

    @property
    def rows(self) -> int | None:
        """How many rows all files have together, if that is known of each."""
        known = [file.rows for file in self.files if file.rows is not None]
        return sum(known) if len(known) == len(self.files) else None

    def file(self, part: str) -> DataFile | None:
        """The file of a part."""
        return next((file for file in self.files if part in (file.part, file.path)), None)
