"""What frameworks hand over as documents is checked as everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemel import load_encoder
from gemel.adapters.embedding import Embedding
from gemel.errors import InvalidInput


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["dog", None], "text 1 is None"),
        (["dog", float("nan")], "text 1 is the float nan"),
        ("dog", "one str was given; give a list of documents"),
    ],
)
def test_what_is_no_document_is_refused(tiny_bert: Path, documents: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Embedding(str(tiny_bert)).embed(documents)


def test_documents_may_be_an_array(tiny_bert: Path) -> None:
    texts = ["the dog", "a cat"]
    expected = load_encoder(tiny_bert).encode(texts)
    for documents in (texts, np.array(texts), np.array(texts, object)):
        np.testing.assert_array_equal(Embedding(str(tiny_bert)).embed(documents), expected)
