"""Files of texts into a folder of vectors, part by part: what is done stays, and every row is there once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gemel.contracts import OnTruncate
from gemel.errors import InvalidInput
from gemel.scale.flaws import Flaws
from gemel.scale.inputs import StoredTexts, look_through, parts_of
from gemel.scale.manifest import Manifest, begin_or_continue
from gemel.scale.parts import EncoderChoice, PartWriter
from gemel.scale.places import Folder, absolute, matching
from gemel.scale.runners import LocalRunner, Runner

OnProgress = Callable[[int, int], object]


@dataclass(frozen=True)
class EncodingSettings:
    """How files are read and encoded; a part is what is encoded, written and made safe at a time."""

    input_format: str | None = None
    prompt: str | None = None
    precision: str | None = None
    device: str | None = None
    pooling: str | None = None
    on_truncate: OnTruncate = "warn"
    part_rows: int = 16_384

    def __post_init__(self) -> None:
        if self.part_rows < 1:
            raise InvalidInput(f"part_rows is {self.part_rows}; expected at least 1")

    def choice(self, model: str | Path | None, threads: int | None) -> EncoderChoice:
        """The encoder that each worker opens."""
        if model is not None and Path(model).exists():
            model = str(Path(model).resolve())  # a worker stands elsewhere
        return EncoderChoice(
            model, self.precision, self.device, threads, self.pooling, self.on_truncate, self.prompt
        )


@dataclass(frozen=True)
class EncodedFiles:
    """What a folder of vectors holds, and how many of its rows an earlier run had made."""

    output: str
    rows: int
    resumed_rows: int
    parts: int
    dim: int
    fingerprint: str


def encode_files(
    model: str | Path | None,
    inputs: str | Sequence[str],
    output: str | Path,
    *,
    column: str = "text",
    id_column: str | None = None,
    settings: EncodingSettings | None = None,
    runner: Runner | None = None,
    on_progress: OnProgress | None = None,
) -> EncodedFiles:
    """Write one vector a text into parquet parts under `output`, or continue a run that broke off.

    Inputs are files, addresses such as `s3://bucket/texts.parquet`, or patterns of them. `on_progress` hears
    of the rows that are done and of how many there are.
    """
    settings, runner = settings or EncodingSettings(), runner or LocalRunner()
    sources = [StoredTexts(path, settings.input_format, column, id_column) for path in matching(inputs)]
    choice = settings.choice(model, runner.threads())
    encoder, folder = choice.open(), Folder(absolute(str(output)))
    manifest = Manifest(
        fingerprint=encoder.fingerprint,
        dim=encoder.dim,
        settings=encoder.settings,
        column=column,
        id_column=id_column,
        part_rows=settings.part_rows,
        inputs=tuple(look_through(sources)),
    )
    done = begin_or_continue(folder, manifest)
    n_done = n_resumed = manifest.rows_of(done)
    if on_progress is not None:
        on_progress(n_done, manifest.rows)
    parts = parts_of(sources, manifest.inputs, settings.part_rows, done)
    flaws = Flaws()
    for part in runner.run(PartWriter(choice, encoder.fingerprint, encoder.settings, folder.url), parts):
        n_done, flaws = n_done + part.flaws.n_texts, flaws.joined(part.flaws)
        if on_progress is not None:
            on_progress(n_done, manifest.rows)
    folder.sweep()
    manifest.write(folder, is_complete=True)
    flaws.tell()
    return EncodedFiles(
        folder.name, manifest.rows, n_resumed, len(manifest.sizes()), encoder.dim, encoder.fingerprint
    )
