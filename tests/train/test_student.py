"""Students that are cut out of their teachers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from stand_ins import ARCHITECTURES, sentences

from gemel import load_encoder
from gemel.checkpoint import Dense, Normalise, read_encoder_folder
from gemel.errors import InvalidInput
from gemel.model import SentenceEncoder
from gemel.train.student import chosen_layers, save_projected, save_student

TEXTS = sentences(20, seed=3)


def test_layers_are_spread_from_the_first_to_the_last() -> None:
    assert chosen_layers(3, 6) == (0, 2, 5)
    assert chosen_layers(6, 12) == (0, 2, 4, 7, 9, 11)
    assert chosen_layers(1, 6) == (0,)
    assert chosen_layers(6, 6) == (0, 1, 2, 3, 4, 5)
    assert chosen_layers([1, 4], 6) == (1, 4)


@pytest.mark.parametrize("layers", [0, 7, [], [2, 1], [1, 1], [0, 6], [-1]])
def test_layers_that_are_not_there_are_refused(layers: int | list[int]) -> None:
    with pytest.raises(InvalidInput, match=r"(choose 1 to 6|expected some of 0 to 5)"):
        chosen_layers(layers, 6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_student_is_the_teacher_without_some_layers(
    architecture: str, tiny_model: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tiny_model(architecture)
    assert save_student(read_encoder_folder(folder), tmp_path / "student", [1]) == (1,)
    student = load_encoder(tmp_path / "student", precision="float32", on_truncate="ignore")
    # The teacher itself, with its first layer taken out in memory, is an independent reference.
    teacher = SentenceEncoder(read_encoder_folder(folder), device="cpu", on_truncate="ignore")
    (layers,) = [module for module in teacher.backbone.modules() if isinstance(module, torch.nn.ModuleList)]
    del layers[0]
    np.testing.assert_allclose(student.encode(TEXTS), teacher.encode(TEXTS), atol=2e-5)


def test_all_layers_are_the_teacher_itself(tiny_bert: Path, tmp_path: Path) -> None:
    save_student(read_encoder_folder(tiny_bert), tmp_path / "same", 2)
    before, after = (load_file(folder / "model.safetensors") for folder in (tiny_bert, tmp_path / "same"))
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("dim", [16, 48])
def test_a_projection_is_saved_as_a_dense_layer(dim: int, tiny_bert: Path, tmp_path: Path) -> None:
    save_projected(read_encoder_folder(tiny_bert), tmp_path / "projected", dim)
    (dense,) = load_encoder(tmp_path / "projected").spec.tail
    assert dense == Dense(32, dim, bias=False, activation="identity")
    vectors = load_encoder(tmp_path / "projected", precision="float32").encode(TEXTS)
    matrix = load_file(tmp_path / "projected" / "2_Dense" / "model.safetensors")["linear.weight"]
    plain = load_encoder(tiny_bert, precision="float32").encode(TEXTS)
    np.testing.assert_allclose(vectors, plain @ matrix.T, atol=1e-5)
    if dim > 32:  # nothing is lost where there is room: all angles stay
        np.testing.assert_allclose(vectors @ vectors.T, plain @ plain.T, atol=1e-3)


def test_a_projection_goes_before_the_normalisation(tiny_bert: Path, tmp_path: Path) -> None:
    folder = read_encoder_folder(tiny_bert)
    unit = folder.with_spec(type(folder.spec)(**{**vars(folder.spec), "tail": (Normalise(),)}))
    save_projected(unit, tmp_path / "projected", 8)
    made = load_encoder(tmp_path / "projected")
    assert [type(layer) for layer in made.spec.tail] == [Dense, Normalise]
    np.testing.assert_allclose(np.linalg.norm(made.encode(TEXTS), axis=1), 1, atol=1e-5)
