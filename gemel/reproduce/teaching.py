"""What a teacher says of a stage's examples, and the student that is to learn it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gemel.checkpoint import ModelFolder, Normalise, read_encoder_folder, read_reranker_folder
from gemel.checkpoint.resolving import resolve
from gemel.data.examples import Examples
from gemel.errors import InvalidInput, InvalidModel
from gemel.loading import load_encoder, load_reranker
from gemel.model import SentenceEncoder
from gemel.reproduce.recipe import Teacher
from gemel.train import MixedExamples
from gemel.train.distillation import DistillationStep, Targets
from gemel.train.imitation import build_imitation
from gemel.train.student import ends_normalised, save_projected, save_student
from gemel.train.targets import margins, scored_by, teacher_scores, teacher_vectors

TARGETS_FILE = "teacher.npy"
LOOKED_AT = 1_000  # of the teacher's vectors, for their length


@dataclass(frozen=True)
class Lesson:
    """Examples and what the teacher said of them; where that became their labels, there are no targets."""

    examples: Examples | MixedExamples
    targets: Targets | None = None


def listen(teacher: Teacher, examples: Examples, place: Path, device: str | None = None) -> Lesson:
    """Let a teacher speak of all examples, once: what it said is kept in a folder, and found there."""
    file = place / TARGETS_FILE
    chosen: Any = {"precision": teacher.precision, "threads": teacher.threads, "device": device}
    if _is_reranker(teacher.model):
        scorer = load_reranker(teacher.model, **chosen)
        if examples.kind == "triplets":
            return Lesson(examples, margins(teacher_scores(scorer, examples, file)))
        return Lesson(scored_by(scorer, examples, file))
    if examples.kind not in ("texts", "pairs"):
        raise InvalidInput(
            f"{teacher.model} is an encoder and the data holds {examples.kind}; an encoder teaches "
            "texts, or pairs of a text and its translation: read it as such, or name a cross-encoder"
        )
    encoder = load_encoder(teacher.model, on_truncate="ignore", **chosen)
    texts = next(iter(examples.columns.values()))
    return Lesson(examples, teacher_vectors(encoder, texts, file))


def taught_step(
    model: SentenceEncoder, name: str | None, lesson: Lesson, settings: Mapping[str, Any]
) -> DistillationStep:
    """The step that brings a student to say what its teacher said."""
    assert lesson.targets is not None
    assert isinstance(lesson.examples, Examples)
    return DistillationStep(model, build_imitation(name, lesson.examples.kind, settings), lesson.targets)


def cut_student(model: str | Path, layers: int | tuple[int, ...], place: Path) -> Path:
    """A folder with some layers of a model under `place`, made unless it is there."""
    folder = read_encoder_folder(resolve(model))
    target = place / f"student-{_mark(folder, layers)}"
    if not target.exists():
        save_student(folder, target, layers)
    return target


def fitted_student(folder: ModelFolder, lesson: Lesson, name: str | None, place: Path) -> ModelFolder:
    """The student, with a projection where its vectors have not as many numbers as the teacher's.

    Where those are of length 1, the student's are brought to it as well.
    """
    is_of_vectors = isinstance(lesson.examples, Examples) and lesson.examples.kind != "triplets"
    if lesson.targets is None or not is_of_vectors or name == "similarity-imitation":
        return folder
    lengths = np.linalg.norm(lesson.targets[:LOOKED_AT], axis=1)
    if np.allclose(lengths, 1, atol=1e-3) and not ends_normalised(folder.spec):
        folder = folder.with_spec(replace(folder.spec, tail=(*folder.spec.tail, Normalise())))
    dim = lesson.targets.shape[1]
    if folder.spec.dim == dim:
        return folder
    target = place / f"projected-{_mark(folder, dim)}"
    if not target.exists():
        save_projected(folder, target, dim)
    return read_encoder_folder(target)


def _mark(folder: ModelFolder, choice: object) -> str:
    """A name for what is made of a model by a choice: what another run has left is not taken for it."""
    return hashlib.sha256(f"{folder.fingerprint} {choice}".encode()).hexdigest()[:12]


def _is_reranker(model: str) -> bool:
    try:
        read_reranker_folder(resolve(model))
    except InvalidModel:
        return False
    return True
