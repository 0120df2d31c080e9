"""Files of word vectors: GloVe's and word2vec's text, plain or packed, and arrays with an index of words."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from gemel.data.lines import decompressed
from gemel.data.parquet import import_pyarrow
from gemel.errors import InvalidInput, ModelNotFound

LINES_AT_ONCE = 8_192
PROBED_LINES = 64
LONGEST_WORD = 100  # letters; what is longer no tokenizer here looks up

Rows = npt.NDArray[np.float32]


def read_word_file(
    path: Path,
    left_out: Collection[str] = (),
    max_words: int | None = None,
    *,
    also: Collection[str] | None = None,
) -> tuple[list[str], Rows]:
    """The words of a file and their vectors (words + 1, dim); the last row is zero, for unknown words.

    Words that no text can have are left out: such as hold a blank, or no letter and no digit. Of those after
    the first `max_words`, only the ones in `also` are taken.
    """
    if max_words is not None and max_words < 1:
        raise InvalidInput(f"max_words={max_words} was given, and at least 1 was expected")
    path = path.expanduser()
    chosen = _Chosen(left_out, max_words, also)
    if path.is_dir() or path.suffix == ".npy":
        return _read_arrays(path, chosen)
    try:
        with _opened(path) as stream:
            words, rows = _read_text(stream, str(path), chosen)
    except (EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(f"{path} is damaged ({error}); a whole file was expected: get it again") from None
    if not words:
        raise InvalidInput(f"{path} holds no words; lines of a word and its numbers were expected")
    return words, rows


class _Chosen:
    """Which words are kept: each once, as many as wanted."""

    def __init__(
        self, left_out: Collection[str], max_words: int | None, also: Collection[str] | None = None
    ) -> None:
        self._left_out = frozenset(left_out)
        self._seen: set[str] = set()
        self._max_words = max_words
        self._also = None if also is None else frozenset(also)

    @property
    def has_most(self) -> bool:
        return self._max_words is not None and len(self._seen) >= self._max_words

    @property
    def is_full(self) -> bool:
        return self.has_most and self._also is None

    def takes(self, word: str) -> bool:
        """Whether the word is to be kept; it will not be a second time."""
        is_kept = (
            (not self.has_most or (self._also is not None and word in self._also))
            and word not in self._seen
            and word.lower() not in self._left_out
            and len(word) <= LONGEST_WORD
            and not any(letter.isspace() for letter in word)
            and any(letter.isalnum() for letter in word)
            and not word.startswith("##")  # would be taken for the end of another word
        )
        if is_kept:
            self._seen.add(word)
        return is_kept


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a text file, or of a gz, zst or zip file with one inside."""
    with ExitStack() as stack:
        if path.suffix == ".zip" or path.parent.suffix == ".zip":
            yield stack.enter_context(_opened_member(path))
            return
        if not path.is_file():
            raise ModelNotFound(
                f"there is no file {str(path)!r}; word vectors, such as glove.6B.300d.txt, were expected"
            )
        compression = path.suffix[1:] if path.suffix in (".gz", ".zst") else ""
        yield decompressed(stack.enter_context(path.open("rb")), compression)


@contextmanager
def _opened_member(path: Path) -> Iterator[IO[bytes]]:
    archive_path, member = (path, None) if path.suffix == ".zip" else (path.parent, path.name)
    if not archive_path.is_file():
        raise ModelNotFound(f"there is no file {str(archive_path)!r}; a zip of word vectors was expected")
    with zipfile.ZipFile(archive_path) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        wanted = names if member is None else [name for name in names if Path(name).name == member]
        if len(wanted) != 1:
            raise InvalidInput(
                f"{archive_path} holds {', '.join(names) or 'nothing'}; name one of these, as in "
                f"{archive_path}/{Path(names[0]).name if names else 'FILE'}"
            )
        with archive.open(wanted[0]) as stream:
            yield stream


def _read_text(stream: IO[bytes], name: str, chosen: _Chosen) -> tuple[list[str], Rows]:
    first = list(islice(stream, PROBED_LINES))
    n_skipped = 1 if first and _is_header(first[0]) else 0
    dim = _dim_of(first[n_skipped:], name)
    lines = chain(first[n_skipped:], stream)
    words: list[str] = []
    rows = np.zeros((LINES_AT_ONCE, dim), np.float32)
    n_read = n_skipped
    while not chosen.is_full and (block := list(islice(lines, LINES_AT_ONCE))):
        kept, numbers = [], []
        for number, line in enumerate(block, n_read + 1):
            if line.isspace():
                continue
            word, tail = _split(line, dim, f"{name}, line {number}")
            if chosen.takes(word):
                kept.append(word)
                numbers.append(tail)
        if len(words) + len(kept) >= len(rows):
            # In place: a table of gigabytes is not there twice while it grows.
            rows.resize((2 * len(rows) + len(kept), dim), refcheck=False)
        if kept:
            rows[len(words) : len(words) + len(kept)] = _parsed(numbers, dim, kept, name)
        words += kept
        n_read += len(block)
    rows.resize((len(words) + 1, dim), refcheck=False)
    return words, rows


def _is_header(line: bytes) -> bool:
    """Whether this is word2vec's and fastText's first line: how many words, how many numbers each."""
    parts = line.split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def _dim_of(lines: list[bytes], name: str) -> int:
    """How many numbers a word has: some words hold blanks, so that the shortest line tells."""
    dim = min((line.rstrip().count(b" ") for line in lines if not line.isspace()), default=0)
    if dim < 1:
        raise InvalidInput(
            f"{name} is no file of word vectors; lines of a word and its numbers were expected"
        )
    return dim


def _split(line: bytes, dim: int, where: str) -> tuple[str, str]:
    """The word, which may hold blanks, and its numbers."""
    word, _, tail = line.rstrip().partition(b" ")
    n_numbers = tail.count(b" ") + 1 if tail else 0
    if n_numbers > dim:
        word, *numbers = line.rstrip().rsplit(b" ", dim)
        tail = b" ".join(numbers)
    elif n_numbers < dim:
        raise InvalidInput(f"{where} has {n_numbers} numbers; expected a word and {dim} numbers")
    return word.decode(errors="replace"), tail.decode(errors="replace")


def _parsed(numbers: list[str], dim: int, words: list[str], name: str) -> Rows:
    try:
        rows: Rows = np.loadtxt(numbers, np.float32, comments=None, ndmin=2)
    except ValueError:
        rows = np.zeros((0, dim), np.float32)
    if rows.shape == (len(numbers), dim) and np.isfinite(rows).all():
        return rows
    word = next(word for word, tail in zip(words, numbers, strict=True) if not _are_numbers(tail, dim))
    raise InvalidInput(f"{name}: the word {word!r} has something else among its {dim} finite numbers")


def _are_numbers(tail: str, dim: int) -> bool:
    try:
        values = [float(part) for part in tail.split()]
    except ValueError:
        return False
    return len(values) == dim and all(map(math.isfinite, values))


def _read_arrays(path: Path, chosen: _Chosen) -> tuple[list[str], Rows]:
    """An .npy of vectors, and a .parquet beside it whose first column has the words."""
    folder = path if path.is_dir() else path.parent
    arrays = [path] if path.is_file() else sorted(folder.glob("*.npy"))
    indexes = sorted(folder.glob("*.parquet"))
    if len(arrays) != 1 or len(indexes) != 1:
        raise InvalidInput(
            f"{folder} holds {len(arrays)} .npy and {len(indexes)} .parquet files; expected one array of "
            "vectors and one index of words"
        )
    pyarrow = import_pyarrow(f"reading {indexes[0]}")
    table = np.load(arrays[0], mmap_mode="r", allow_pickle=False)
    named = pyarrow.parquet.read_table(indexes[0]).column(0).to_pylist()
    if table.ndim != 2 or table.dtype.kind != "f" or len(table) != len(named):
        raise InvalidInput(
            f"{arrays[0]} holds {table.dtype} {table.shape}; expected numbers for {len(named):,} words"
        )
    kept = np.array([row for row, word in enumerate(named) if chosen.takes(str(word))], np.int64)
    rows = np.zeros((len(kept) + 1, table.shape[1]), np.float32)
    rows[:-1] = np.ascontiguousarray(table)[kept]
    return [str(named[row]) for row in kept], rows
