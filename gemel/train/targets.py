"""What a teacher says of each example: computed once, by the native engine, and mapped from a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.data.examples import Examples
from gemel.data.spool import Layout
from gemel.data.texts import TextRecord
from gemel.data.vectors import VectorWriter
from gemel.errors import InvalidInput, ModelMismatch
from gemel.pair_scorer import PairScorer
from gemel.progress import progress_bar
from gemel.text_encoder import TextEncoder

WINDOW_TEXTS = 8_192
PAIRS_AT_ONCE = 8_192
Scores = npt.NDArray[np.float32]


def teacher_vectors(
    teacher: TextEncoder, texts: Sequence[str], file: Path, *, show_progress: bool | None = None
) -> Vectors:
    """The teacher's vectors of the texts (n, dim), mapped from a file that is made, continued or found."""
    notes = _notes(teacher, texts)
    if not _is_of(file, notes):
        with _noted(file, notes):
            _write_vectors(teacher, texts, file, show_progress)
    vectors: Vectors = np.load(file, mmap_mode="r")
    return vectors


def teacher_scores(
    teacher: PairScorer, examples: Examples, file: Path, *, show_progress: bool | None = None
) -> Scores:
    """A cross-encoder's score of the first text with each of the others (n, columns - 1), kept in a file."""
    if len(teacher.labels) != 1:
        raise InvalidInput(
            f"the teacher gives {len(teacher.labels)} scores ({', '.join(teacher.labels)}); expected 1: "
            "name a cross-encoder that was trained to score"
        )
    notes = _notes(teacher, [text for column in examples.columns.values() for text in column])
    if not _is_of(file, notes):
        with _noted(file, notes):
            np.save(file, _scores(teacher, examples, show_progress))
    scores: Scores = np.load(file)
    return scores


def _scores(teacher: PairScorer, examples: Examples, show_progress: bool | None) -> Scores:
    first, *others = examples.columns.values()
    scores = np.zeros((len(examples), len(others)), np.float32)
    with progress_bar(scores.size, "teacher", show_progress, "pairs") as bar:
        for column, texts in enumerate(others):
            for start in range(0, len(texts), PAIRS_AT_ONCE):
                rows = slice(start, start + PAIRS_AT_ONCE)
                pairs = list(zip(first[rows], texts[rows], strict=True))
                scores[rows, column] = teacher.score(pairs, show_progress=False)
                bar.update(len(pairs))
    return scores


def scored_by(
    teacher: PairScorer, examples: Examples, file: Path, *, show_progress: bool | None = None
) -> Examples:
    """Pairs with a cross-encoder's scores, 0 to 1, as their labels, for whatever eats scored pairs."""
    if len(examples.columns) != 2:
        raise InvalidInput(
            f"{examples.kind} were given to be scored; expected pairs: for triplets take their margins"
        )
    scores = teacher_scores(teacher, examples, file, show_progress=show_progress)[:, 0]
    if teacher.folder.activation != "sigmoid":
        scores = (1 / (1 + np.exp(-scores))).astype(np.float32)  # raw ones go as far as they like
    return Examples("scored pairs", examples.columns, scores, origin=examples.origin, files=examples.files)


def margins(scores: Scores) -> Scores:
    """How much better the teacher likes the positive than each negative (n, negatives)."""
    return scores[:, :1] - scores[:, 1:]


def _write_vectors(
    teacher: TextEncoder, texts: Sequence[str], file: Path, show_progress: bool | None
) -> None:
    layout = Layout(
        teacher.fingerprint, teacher.dim, "float32", "npy", keeps_ids=False, settings=teacher.settings
    )
    bar_of = progress_bar(len(texts), "teacher", show_progress)
    with _continued(file, layout, texts) as writer, bar_of as bar:
        bar.update(writer.rows)
        for start in range(writer.rows, len(texts), WINDOW_TEXTS):
            window = texts[start : start + WINDOW_TEXTS]
            records = [TextRecord(start + row, text) for row, text in enumerate(window)]
            writer.append(records, teacher.encode(window, show_progress=False))
            bar.update(len(window))
        writer.finish()


def _continued(file: Path, layout: Layout, texts: Sequence[str]) -> VectorWriter:
    """A writer behind the rows that an earlier run has made, or anew where those were of something else."""
    try:
        return _opened(file, layout, texts, restart=False)
    except (InvalidInput, ModelMismatch):
        return _opened(file, layout, texts, restart=True)


def _opened(file: Path, layout: Layout, texts: Sequence[str], restart: bool) -> VectorWriter:
    with ExitStack() as stack:
        writer = stack.enter_context(VectorWriter(file, layout, overwrite=True, restart=restart))
        writer.skip_done(TextRecord(row, text) for row, text in enumerate(texts))
        stack.pop_all()
    return writer


def _notes(teacher: TextEncoder | PairScorer, texts: Sequence[str]) -> dict[str, object]:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(json.dumps(text).encode())
    return {
        "fingerprint": teacher.fingerprint,
        "settings": teacher.settings if isinstance(teacher, TextEncoder) else teacher.precision,
        "texts": len(texts),
        "sha256": digest.hexdigest(),
    }


@contextmanager
def _noted(file: Path, notes: dict[str, object]) -> Iterator[None]:
    """What the file holds is told once all of it is there; what it held before is no longer told."""
    file.parent.mkdir(parents=True, exist_ok=True)
    told = file.with_suffix(".json")
    told.unlink(missing_ok=True)
    yield
    draft = told.with_suffix(".json.draft")
    draft.write_text(json.dumps(notes, indent=2) + "\n", encoding="utf-8")
    draft.replace(told)


def _is_of(file: Path, notes: dict[str, object]) -> bool:
    """Whether the file holds the vectors of these texts by this teacher."""
    told = file.with_suffix(".json")
    if not (file.is_file() and told.is_file()):
        return False
    try:
        return bool(json.loads(told.read_text(encoding="utf-8")) == notes)
    except ValueError:
        return False
