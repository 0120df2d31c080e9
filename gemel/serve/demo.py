"""Something to look at where nobody has brought texts yet: the sentences of Python's own documentation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from gemel.contracts import Encoder
from gemel.data.docstrings import standard_library_sentences
from gemel.data.places import cache_folder
from gemel.errors import ModelMismatch
from gemel.index import Collection, Record
from gemel.serve.library import Library

NAME = "python-docstrings"
N_SENTENCES = 10_000


def demo_folder() -> Path:
    """Where the collections of a server are that was told nothing."""
    return cache_folder().parent / "collections"


def add_demo(
    library: Library,
    encoder: Encoder,
    model: str,
    *,
    n_sentences: int = N_SENTENCES,
    on_begin: Callable[[int], object] = lambda n: None,
) -> str:
    """The name of this model's demo collection, which is made, whole or not at all, if it is not there."""
    name = NAME
    if name in library.names():
        try:
            library.collection(name).with_encoder(encoder)
        except ModelMismatch:
            name = f"{NAME}-{encoder.fingerprint[:8]}"
    if name in library.names():
        return name
    sentences = standard_library_sentences(n_sentences)
    on_begin(len(sentences))
    draft = library.root / f".{name}.{os.getpid()}.unfinished"
    try:
        with Collection.create(draft, encoder, model=model) as collection:
            collection.add(
                Record(number, text, {"length": len(text.split())})
                for number, text in enumerate(sentences, 1)
            )
        if name not in library.names():  # another server may have been quicker
            draft.rename(library.root / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return name
