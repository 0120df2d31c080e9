"""What `gemel index add` does: files or a folder into a collection, here or by the workers of a cluster."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import click

from gemel.errors import InvalidInput
from gemel.progress import progress_bar

if TYPE_CHECKING:
    from gemel.cli.documents import Documents
    from gemel.index import Added, Record, Store
    from gemel.scale import Runner
    from gemel.tasks.folder import Synced
    from gemel.tasks.passages import Chunking

OVERLAP_SHARE = 1 / 8
NEVER_CUT = 1 << 40


class Adding(Protocol):
    """Puts documents into a collection, and tells how many are in it."""

    def __call__(self, documents: Iterator[Record], *, on_progress: Callable[[int], object]) -> Added:
        """What became of them."""


def chunking_of(opened: Store, max_tokens: int | None, overlap_tokens: int | None) -> Chunking:
    """How long texts are cut: as asked, or to what the collection's model reads."""
    from gemel.cli.opening import longest_passage
    from gemel.tasks.passages import Chunking

    longest = longest_passage(opened.encoder)
    if max_tokens is None:
        max_tokens = NEVER_CUT if longest is None else longest
    elif max_tokens == 0:
        max_tokens = NEVER_CUT
    elif longest is not None and max_tokens > longest:
        raise InvalidInput(f"--chunk-tokens {max_tokens} is more than the {longest} that this model reads")
    overlap = 0 if max_tokens == NEVER_CUT else int(max_tokens * OVERLAP_SHARE)
    return Chunking(max_tokens, overlap if overlap_tokens is None else overlap_tokens)


def add_files(opened: Store, documents: Documents, n_rows: int | None, add: Adding) -> None:
    """Add documents, here or by workers, and tell what became of them."""
    from gemel.cli.opening import keep_index

    began = time.perf_counter()
    with progress_bar(n_rows, "add") as bar:
        added = add(iter(documents), on_progress=lambda n: bar.update(n - bar.n))
    keep_index(opened)
    echo_added(opened, {**asdict(added), "n_left_out": documents.n_left_out}, began)
    if documents.loss:
        click.echo(f"gemel: {documents.loss}", err=True)


def added_here(opened: Store, chunking: Chunking) -> Adding:
    """Documents are encoded and stored by this process."""
    from gemel.tasks.passages import add_documents

    return partial(add_documents, opened, chunking=chunking)


def added_by(
    runner: Runner, path: str, opened: Store, chunking: Chunking, choices: Mapping[str, Any]
) -> Adding:
    """The same by workers, each of which opens the model and the collection itself."""
    from gemel.cli.opening import document_prompt, lasting_name
    from gemel.scale import fill
    from gemel.scale.parts import EncoderChoice

    model = lasting_name(choices["model"] or opened.settings.model or None)
    computing = (choices["precision"], choices["device"], runner.threads())
    choice = EncoderChoice(model, *computing, prompt=document_prompt(opened.encoder))
    return partial(fill, path, chunking=chunking, choice=choice, runner=runner)


def echo_added(opened: Store, added: dict[str, int], began: float) -> None:
    """One line of JSON: what became of the records, and how many there are now."""
    counts = {name.removeprefix("n_"): n for name, n in added.items()}
    seconds = round(time.perf_counter() - began, 3)
    line = {"collection": opened.name, **counts, "records": len(opened), "seconds": seconds}
    click.echo(json.dumps(line, ensure_ascii=False))


def watch(opened: Store, chunking: Chunking, choices: Mapping[str, Any]) -> None:
    """Keep the collection in step with a folder, until stopped."""
    from gemel.cli.opening import keep_index
    from gemel.tasks.folder import FolderSync

    folder = FolderSync(opened, choices["watch"], chunking)
    is_first = True
    told: set[str] = set()
    while True:
        with progress_bar(None, "read") as bar:
            synced = folder.sync(lambda n, n_all: bar.update(n - bar.n))
        if is_first or synced.is_change:
            keep_index(opened)
            _echo_synced(opened, synced)
        for flaw in synced.unreadable:
            if flaw not in told:
                click.echo(f"gemel: left alone: {flaw}", err=True)
        told = set(synced.unreadable)
        if choices["once"]:
            return
        is_first = False
        time.sleep(choices["interval"])


def _echo_synced(opened: Store, synced: Synced) -> None:
    counts = {name.removeprefix("n_"): n for name, n in asdict(synced).items() if name.startswith("n_")}
    line = {"collection": opened.name, **counts, "records": len(opened)}
    click.echo(json.dumps(line, ensure_ascii=False))
    sys.stdout.flush()
