"""Packed sequences give what padded ones give, forwards and backwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins import sentences
from transformers import AutoModel

from gemel.checkpoint import read_encoder_folder
from gemel.model import SentenceEncoder
from gemel.model.batches import padded
from gemel.model.packing import LENGTH_RATIO, PACKABLE, pack
from gemel.model.pooling import pool

CPU = torch.device("cpu")


@pytest.mark.parametrize("architecture", [name for name in PACKABLE if name != "camembert"])
def test_vectors_and_gradients_are_those_of_transformers_padded(
    tiny_model: Callable[[str], Path], architecture: str
) -> None:
    folder = tiny_model(architecture)
    encoder = SentenceEncoder(read_encoder_folder(folder), device="cpu", on_truncate="ignore")
    ids = encoder.tokenizer.pieces(sentences(30, seed=2, max_words=20), on_truncate="ignore").ids
    ours = encoder(encoder.batch(ids))
    theirs = AutoModel.from_pretrained(folder).eval()
    input_ids, mask = padded(ids, theirs.config.pad_token_id, CPU)
    expected = pool(theirs(input_ids=input_ids, attention_mask=mask).last_hidden_state, mask, ("mean",))
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
    weights = torch.linspace(-1, 1, ours.numel()).reshape(ours.shape)
    (ours * weights).sum().backward()
    (expected * weights).sum().backward()
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in encoder.backbone.named_parameters():
        if gradients[name] is not None:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-3, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 70), min_size=1, max_size=40))
def test_every_token_finds_its_place_and_the_way_back(lengths: list[int]) -> None:
    starts = np.cumsum([0, *lengths])
    sequences = [
        np.arange(start, start + length, dtype=np.int32)
        for start, length in zip(starts, lengths, strict=False)
    ]
    batch = pack(sequences, 0, CPU)
    tokens = batch.input_ids[0]
    rows: list[list[int]] = []
    for span in batch.spans:
        matrix = span.padded(tokens)
        assert span.longest <= max(1, LENGTH_RATIO * int(span.attention_mask.sum(1).min()))
        torch.testing.assert_close(span.packed(matrix), tokens[span.start : span.end])
        rows += [row[mask > 0].tolist() for row, mask in zip(matrix, span.attention_mask, strict=True)]
    assert [rows[place] for place in batch.restore.tolist()] == [ids.tolist() for ids in sequences]
