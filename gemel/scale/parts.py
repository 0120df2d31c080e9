"""A part of the rows: encoded by whoever takes it, and written as one file of ids and vectors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from gemel.contracts import OnTruncate, Vectors
from gemel.data.parquet import import_pyarrow
from gemel.data.stored_vectors import StoredVectors
from gemel.data.texts import Id
from gemel.errors import Damaged, ModelMismatch
from gemel.loading import load_encoder
from gemel.scale.flaws import Flaws, with_flaws
from gemel.scale.inputs import Part
from gemel.scale.manifest import part_name, read_manifest
from gemel.scale.places import Folder
from gemel.tasks.encode import check_finite
from gemel.text_encoder import TextEncoder


@dataclass(frozen=True)
class EncoderChoice:
    """A model and how it is used: what each worker opens for itself."""

    model: str | Path | None = None
    precision: str | None = None
    device: str | None = None
    threads: int | None = None
    pooling: str | None = None
    on_truncate: OnTruncate = "warn"
    prompt: str | None = None

    def open(self) -> TextEncoder:
        """The encoder as its files are now."""
        encoder = load_encoder(
            self.model,
            precision=self.precision,
            device=self.device,
            threads=self.threads,
            pooling=self.pooling,
            on_truncate=self.on_truncate,
        )
        encoder = encoder if self.prompt is None else encoder.with_prompt(self.prompt)
        _last_opened[:] = [(self, encoder.fingerprint, encoder)]
        return encoder

    def opened(self, fingerprint: str) -> TextEncoder:
        """The encoder that this process has opened last, if it is the one that is meant; else a fresh one."""
        for *opened, encoder in tuple(_last_opened):
            if opened == [self, fingerprint]:
                return encoder
        return self.open()


_last_opened: list[tuple[EncoderChoice, str, TextEncoder]] = []  # one at most: models are large


class PartDone(NamedTuple):
    """What became of a part."""

    number: int
    flaws: Flaws


@dataclass(frozen=True)
class PartWriter:
    """Encodes a part and writes it: the piece of work that is sent to workers."""

    choice: EncoderChoice
    fingerprint: str
    settings: str  # what moves a vector besides the model, as whoever sends the work has it
    output: str

    def __call__(self, part: Part) -> PartDone:
        """Encode and write; done twice, the same file is written twice."""
        encoder = self.choice.opened(self.fingerprint)
        if encoder.fingerprint != self.fingerprint:
            raise ModelMismatch(
                f"a worker has opened {self.choice.model or 'the default model'} with the fingerprint "
                f"{encoder.fingerprint}, expected {self.fingerprint}: put the same model on every machine"
            )
        if encoder.settings != self.settings:
            raise ModelMismatch(
                f"a worker encodes by {encoder.settings}, expected {self.settings}: name precision and "
                "device, so that every machine makes the same vectors"
            )
        vectors, flaws = with_flaws(lambda: encoder.encode(part.texts, show_progress=False), len(part.texts))
        check_finite(vectors, lambda row: f"the text with the id {part.ids[row]!r}")
        Folder(self.output).write(part_name(part.number), lambda file: _write(file, part.ids, vectors))
        return PartDone(part.number, flaws)


def open_parts(output: str | Path) -> StoredVectors:
    """All vectors and ids of a folder of parts, in the order of the rows."""
    pyarrow = import_pyarrow("partitioned vectors")
    folder = Folder(str(output))
    manifest = read_manifest(folder)
    vectors = np.empty((manifest.rows, manifest.dim), np.float32)
    ids: list[Id] = []
    for number, n_rows in enumerate(manifest.sizes()):
        with folder.open(part_name(number)) as file:
            table = pyarrow.parquet.read_table(file)
        if len(table) != n_rows:
            raise Damaged(
                f"{folder.name}/{part_name(number)} has {len(table):,} rows, expected {n_rows:,}: delete it "
                "and give the command again that has made it"
            )
        rows = table.column("embedding").combine_chunks().flatten().to_numpy()
        vectors[len(ids) : len(ids) + n_rows] = rows.reshape(n_rows, manifest.dim)
        ids += table.column("id").to_pylist()
    return StoredVectors(vectors, ids)


def _write(file: IO[bytes], ids: list[Id], vectors: Vectors) -> None:
    pyarrow = import_pyarrow("partitioned vectors")
    id_type = pyarrow.string() if isinstance(ids[0], str) else pyarrow.int64()
    rows = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), vectors.shape[1])
    table = pyarrow.table({"id": pyarrow.array(ids, id_type), "embedding": rows})
    pyarrow.parquet.write_table(table, file, use_dictionary=False, compression="none")
