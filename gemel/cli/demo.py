"""`gemel demo`: the paper's headline on this machine, with sentences that every machine has."""

from __future__ import annotations

import math
import platform
import shutil
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import options
from gemel.errors import InvalidInput
from gemel.version import VERSION

if TYPE_CHECKING:
    from gemel.contracts import Vectors
    from gemel.index import Collection
    from gemel.similarity import Pairs
    from gemel.text_encoder import FolderEncoder

QUERIES = (
    "how do I compress a file",
    "wait until another thread is finished",
    "what happens when the connection is lost",
)
N_SENTENCES = 10_000
SHOWN_PAIRS, SHOWN_HITS, SHOWN_CLUSTERS, SHOWN_MEMBERS = 6, 3, 4, 3
CLUSTER_THRESHOLD, CLUSTER_SIZE = 0.75, 5
TIMED_PAIRS = 1_024
PAPER_CROSS_ENCODER_SECONDS = 65 * 3600  # BERT on a V100 (arXiv 1908.10084, abstract)
PAPER_SENTENCE_BERT_SECONDS = 5.0


@click.command("demo")
@click.option("--corpus", metavar="FILE", help="Your own texts.  [default: Python's own documentation]")
@click.option("--column", default="text", show_default=True, help="The column of FILE that holds the text.")
@click.option("--query", "queries", multiple=True, help="What to search for; may be given several times.")
@click.option(
    "--limit",
    type=click.IntRange(min=2),
    default=N_SENTENCES,
    show_default=True,
    help="How many sentences to take.",
)
@options.model
@options.compute
def command(
    corpus: str | None,
    column: str,
    queries: tuple[str, ...],
    limit: int,
    model: str | None,
    **compute: Any,
) -> None:
    """Find the most similar of 10,000 sentences, search them and cluster them, and tell the time.

    BERT reads both sentences of a pair at once, so that the most similar pair of 10,000 takes 50 million
    readings: 65 hours. Sentence-BERT reads each sentence once.

    \b
    Examples:
      gemel demo
      gemel demo --corpus reviews.csv --column review --query "too expensive"
    """
    clock = Clock()
    with clock.step("read the sentences") as note:
        sentences, origin = _own_corpus(corpus, column, limit) if corpus else _python_corpus(limit)
        note(f"{len(sentences):,} sentences")
    with clock.step("load the model"):
        from gemel.loading import load_encoder
        from gemel.text_encoder import FolderEncoder

        encoder = load_encoder(model, on_truncate="ignore", **compute)
        if not isinstance(encoder, FolderEncoder):
            raise InvalidInput(f"the demo compares a transformer with a cross-encoder, and {model} is none")
    _title(f"gemel {VERSION}: {_named(encoder)}, {_machine(encoder)}", origin)
    with clock.step("encode each sentence once") as note:
        vectors = encoder.encode(sentences)
        note(lambda seconds: f"{len(sentences) / seconds:,.0f} sentences/s")
    _show_pairs(sentences, vectors, clock)
    queries = queries or (() if corpus else QUERIES)
    if queries:
        with (
            tempfile.TemporaryDirectory(prefix="gemel-demo-") as folder,
            _kept(sentences, vectors, encoder, Path(folder), clock) as collection,
        ):
            _show_searches(collection, queries, clock)
    _show_clusters(sentences, vectors, clock)
    _show_times(clock, len(sentences), _seconds_with_cross_encoder(encoder, sentences))


@dataclass
class Clock:
    """Named steps and what they took."""

    steps: list[tuple[str, float, str]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str | Callable[[float], str]], None]]:
        """Time a step; the function it gives takes a remark, which may need the seconds."""
        remarks: list[str | Callable[[float], str]] = []
        began = time.perf_counter()
        yield remarks.append
        seconds = time.perf_counter() - began
        spoken = [remark if isinstance(remark, str) else remark(seconds) for remark in remarks]
        self.steps.append((name, seconds, ", ".join(spoken)))

    @property
    def total(self) -> float:
        """All steps together."""
        return sum(seconds for _, seconds, _ in self.steps)


def _python_corpus(limit: int) -> tuple[list[str], str]:
    from gemel.data.docstrings import read_docstring_corpus

    corpus = read_docstring_corpus(limit)
    return corpus.sentences, (
        f"{len(corpus.sentences):,} sentences out of {corpus.n_docstrings:,} docstrings of Python "
        f"{platform.python_version()}'s own library ({corpus.n_repeats:,} exact repeats set aside)"
    )


def _own_corpus(file: str, column: str, limit: int) -> tuple[list[str], str]:
    from gemel.data.texts import TextSource

    source = TextSource(file, column=column, options=("--column",))
    texts = [record.text.strip() for record in source.records()]
    kept = list(dict.fromkeys(text for text in texts if text))
    if len(kept) < 2:
        raise InvalidInput(f"{file} holds {len(kept)} different texts; the demo needs at least 2")
    n_repeats = len([text for text in texts if text]) - len(kept)
    taken = f"the first {limit:,} of {len(kept):,}" if len(kept) > limit else f"{len(kept):,}"
    return kept[:limit], f"{taken} texts of {file} ({n_repeats:,} exact repeats set aside)"


def _show_pairs(sentences: Sequence[str], vectors: Vectors, clock: Clock) -> None:
    from gemel.similarity import top_pairs

    n_pairs = len(sentences) * (len(sentences) - 1) // 2
    with clock.step("compare every pair") as note:
        best = top_pairs(vectors, min(1_000, n_pairs))
        note(f"{n_pairs:,} pairs")
    _heading("The most similar pairs")
    for first, second, score in _worth_showing(sentences, best):
        _item(f"{score:.3f}", first)
        _item("", second)
        click.echo()


def _worth_showing(sentences: Sequence[str], pairs: Pairs) -> Iterator[tuple[str, str, float]]:
    """Pairs that differ in more than case, punctuation and digits, no sentence twice."""
    shown: set[int] = set()
    rows = zip(pairs.first.tolist(), pairs.second.tolist(), pairs.scores.tolist(), strict=True)
    for i, j, score in rows:
        if _letters(sentences[i]) != _letters(sentences[j]) and not {i, j} & shown:
            shown |= {i, j}
            yield sentences[i], sentences[j], score
        if len(shown) == 2 * SHOWN_PAIRS:
            return


def _letters(sentence: str) -> str:
    return "".join(character for character in sentence.lower() if character.isalpha())


def _kept(
    sentences: Sequence[str], vectors: Vectors, encoder: FolderEncoder, folder: Path, clock: Clock
) -> Collection:
    """The sentences in a collection, as a person would keep them."""
    from gemel.index import Collection

    with clock.step("keep them in a collection") as note:
        collection = Collection.create(folder / "demo", encoder, text_search=("word",))
        collection.add_vectors(sentences, vectors, fingerprint=encoder.fingerprint)
        note(f"{collection.info().n_bytes / 1e6:,.0f} MB on the disk")
    return collection


def _show_searches(collection: Collection, queries: Sequence[str], clock: Clock) -> None:
    from gemel.tasks.search import search

    with clock.step("search " + ("once" if len(queries) == 1 else f"{len(queries)} times")) as note:
        found = search(collection, queries, SHOWN_HITS, mode="dense")
        note(
            lambda seconds: f"{1000 * seconds / len(queries):,.0f} ms each, the question's encoding included"
        )
    _heading("Searches")
    for query, hits in zip(queries, found, strict=True):
        click.secho(f"  {query}", fg="cyan", bold=True)
        for hit in hits:
            _item(f"{hit.score:.3f}", hit.text)
        click.echo()


def _show_clusters(sentences: Sequence[str], vectors: Vectors, clock: Clock) -> None:
    from gemel.tasks.communities import communities

    with clock.step("cluster") as note:
        clusters = communities(vectors, threshold=CLUSTER_THRESHOLD, min_size=CLUSTER_SIZE)
        note(f"{len(clusters):,} clusters of {CLUSTER_SIZE} or more")
    _heading("Clusters")
    for cluster in clusters[:SHOWN_CLUSTERS]:
        click.secho(f"  {len(cluster)} sentences such as", fg="cyan", bold=True)
        for row in _spread(cluster.tolist()):
            _item("", sentences[row])
        click.echo()
    if not clusters:
        click.echo(f"  no {CLUSTER_SIZE} sentences are that much alike\n")


def _spread(cluster: Sequence[int]) -> list[int]:
    """The centre, one from the middle and the last: how far the cluster reaches."""
    n_shown = min(SHOWN_MEMBERS, len(cluster))
    return [cluster[round(i * (len(cluster) - 1) / (n_shown - 1))] for i in range(n_shown)]


def _seconds_with_cross_encoder(encoder: FolderEncoder, sentences: Sequence[str]) -> float:
    """What one reading of each pair would take here, by timing some with the same transformer.

    A cross-encoder reads both sentences of a pair as one text; the head on top of it costs next to nothing.
    """
    import numpy as np

    rows = np.random.default_rng(0).integers(0, len(sentences), (TIMED_PAIRS, 2))
    pairs = [f"{sentences[i]} {sentences[j]}" for i, j in rows]
    encoder.encode(pairs[:32], show_progress=False)
    began = time.perf_counter()
    encoder.encode(pairs, show_progress=False)
    per_pair = (time.perf_counter() - began) / len(pairs)
    return per_pair * len(sentences) * (len(sentences) - 1) / 2


def _show_times(clock: Clock, n_sentences: int, cross_encoder_seconds: float) -> None:
    _heading("Time")
    width = max(len(name) for name, _, _ in clock.steps)
    for name, seconds, remark in clock.steps:
        click.echo(f"  {name:<{width}}  {seconds:8.2f} s   {remark}".rstrip())
    click.secho(f"  {'all of it':<{width}}  {clock.total:8.2f} s", bold=True)
    n_pairs = n_sentences * (n_sentences - 1) // 2
    click.echo(f"\n  The most similar of {n_sentences:,} sentences ({n_pairs:,} pairs):\n")
    rows = [("gemel, here, all of the above", clock.total, "green")]
    if n_sentences == N_SENTENCES:
        rows.insert(0, ("cross-encoder on a V100 GPU (the paper)", PAPER_CROSS_ENCODER_SECONDS, "red"))
        rows.append(("Sentence-BERT on a V100 GPU (the paper)", PAPER_SENTENCE_BERT_SECONDS, "green"))
    rate = n_pairs / cross_encoder_seconds
    rows.insert(0, (f"cross-encoder, here ({rate:,.0f} pairs/s measured)", cross_encoder_seconds, "red"))
    _bars(rows)


def _bars(rows: Sequence[tuple[str, float, str]]) -> None:
    """A bar for each time, on a logarithmic scale: a linear one would leave all but the longest empty."""
    name_width = max(len(name) for name, _, _ in rows)
    room = max(10, _width() - name_width - 20)
    longest = math.log10(max(seconds for _, seconds, _ in rows) + 1)
    for name, seconds, colour in rows:
        bar = "█" * max(1, round(room * math.log10(seconds + 1) / longest))
        click.echo(f"  {name:<{name_width}}  " + click.style(bar, fg=colour) + f" {_spoken(seconds)}")
    click.secho(f"  {'':<{name_width}}  (logarithmic scale)\n", dim=True)


def _spoken(seconds: float) -> str:
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.1f} s"


def _named(encoder: FolderEncoder) -> str:
    from gemel.checkpoint.package import DEFAULT_WEIGHTS
    from gemel.checkpoint.resolving import DEFAULT_MODEL

    path = Path(encoder.folder.path)
    name = DEFAULT_MODEL if path == DEFAULT_WEIGHTS.folder() else path.name
    return f"{name} ({encoder.dim} numbers a sentence)"


def _machine(encoder: FolderEncoder) -> str:
    from gemel.engine import NativeEncoder

    if not isinstance(encoder, NativeEncoder):
        return f"{encoder.engine} {encoder.precision}"
    instructions = encoder.instruction_set.replace("_", " ").upper()
    cores = "1 core" if encoder.n_threads == 1 else f"{encoder.n_threads} cores"
    return f"{encoder.precision} on {cores} with {instructions}"


def _title(first: str, second: str) -> None:
    click.echo()
    for line in textwrap.wrap(first, _width() - 4):
        click.secho(f"  {line}", bold=True)
    for line in textwrap.wrap(second, _width() - 4):
        click.secho(f"  {line}", dim=True)


def _heading(text: str) -> None:
    click.echo()
    click.secho(f"── {text} " + "─" * max(0, _width() - len(text) - 4), fg="yellow")
    click.echo()


def _item(label: str, text: str) -> None:
    """A text under a narrow column of scores, wrapped to the screen."""
    lines = textwrap.wrap(" ".join(text.split()), _width() - 10, max_lines=3, placeholder=" …") or [""]
    click.echo("  " + click.style(f"{label:>5}", fg="green") + f"  {lines[0]}")
    for line in lines[1:]:
        click.echo(" " * 9 + line)


def _width() -> int:
    return min(110, max(40, shutil.get_terminal_size((100, 24)).columns))
