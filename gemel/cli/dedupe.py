"""`gemel dedupe`: one of each group of duplicates."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import corpora, options

if TYPE_CHECKING:
    from gemel.data.texts import TextSource
    from gemel.tasks.calibrate import Calibration
    from gemel.tasks.corpus import Corpus
    from gemel.tasks.dedupe import Duplicates

DEFAULT_THRESHOLD = 0.9


@click.command("dedupe")
@click.argument("source", metavar="INPUT")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="The rows that are kept, in the format of INPUT or as .jsonl.  [default: to standard output]",
)
@click.option("--dropped", metavar="FILE", help="The others, each with its keeper and the reason.")
@click.option(
    "--threshold",
    type=float,
    metavar="T",
    help=f"The cosine that makes two texts duplicates.  [default: {DEFAULT_THRESHOLD}]",
)
@click.option(
    "--keep",
    type=click.Choice(["first", "longest", "best-connected"]),
    default="first",
    show_default=True,
    help="Which of the duplicates stays.",
)
@click.option(
    "--grouping",
    type=click.Choice(["star", "connected"]),
    default="star",
    show_default=True,
    help="star: each dropped text is within the threshold of its keeper; connected: chains count.",
)
@click.option("--normalise", is_flag=True, help="Texts that differ only in case and white space are exact.")
@corpora.confirming
@corpora.prefiltering
@corpora.plot
@corpora.reading
@corpora.overwrite
@options.runner
def command(source: str, output: str | None, dropped: str | None, **choices: Any) -> None:
    """Keep one text of each group of duplicates, with all the columns of its row.

    Exact repeats go first, then texts whose cosine reaches the threshold. No row is lost: each one is either
    kept or among the dropped, with the id of the row that stands for it.

    \b
    Examples:
      gemel dedupe corpus.jsonl -o kept.jsonl --dropped dropped.jsonl --threshold 0.9 --keep longest
      gemel dedupe reviews.csv --column review --normalise > kept.csv
      gemel dedupe questions.tsv --calibration calibration.json -o kept.tsv --plot similarities.png
    """
    from gemel.data.selection import copy_rows, rereadable

    with rereadable(corpora.text_source(source, choices)) as texts:
        _check(texts, output, dropped, choices)
        began = time.perf_counter()
        encoder = corpora.needed_model(choices, has_vectors=choices["vectors"] is not None)
        calibration = corpora.load_checked_calibration(choices, encoder)
        threshold = _threshold(choices, calibration)
        reranker = corpora.load_confirmation(choices)
        reader = corpora.quick_model(choices) if choices["prefilter"] else encoder
        corpus = corpora.read(texts, reader, choices["vectors"])
        corpus.check_ids_differ()
        if choices["prefilter"]:
            found = _search_proposed(corpus, reader, encoder, threshold, reranker, choices)
        else:
            found = _search(corpus, threshold, reranker, choices)
        with corpora.partial_report(output, dropped):
            # The dropped first: what is not among the kept is safe before these appear.
            if dropped is not None:
                _write_dropped(dropped, corpus, found, threshold, calibration, choices["overwrite"])
            copy_rows(texts, output, found.is_kept, overwrite=choices["overwrite"])
    if choices["plot"] and len(corpus) > 1:
        corpora.draw(choices["plot"], corpus, None, threshold, "cosine")
    elif choices["plot"]:
        click.echo(
            f"gemel: {corpus.name} has one text, which is similar to no other; nothing is drawn", err=True
        )
    summary = {
        **({"output": output} if output not in (None, "-") else {}),
        "rows": len(corpus),
        "kept": len(found.kept),
        "exact": int(found.is_repeat.sum()),
        "similar": len(found.dropped) - int(found.is_repeat.sum()),
        "threshold": threshold,
        "seconds": round(time.perf_counter() - began, 3),
    }
    click.echo(json.dumps(summary), err=output in (None, "-"))


def _check(texts: TextSource, output: str | None, dropped: str | None, choices: Mapping[str, Any]) -> None:
    """Refuse what cannot be, before a model is loaded."""
    from gemel.data.results import format_of_results
    from gemel.data.selection import selection_format
    from gemel.tasks.thresholds import checked_threshold

    if choices["threshold"] is not None and choices["calibration"] is not None:
        raise click.UsageError("--threshold and --calibration were given; expected one of them")
    if choices["threshold"] is not None:
        checked_threshold(choices["threshold"])
    corpora.check_confirmation(choices)
    corpora.check_runner(
        choices, **{name: choices[name[2:]] is not None for name in ("--rerank", "--prefilter")}
    )
    corpora.check_prefilter(
        choices, **{"--vectors": choices["vectors"] is not None, "--plot": choices["plot"] is not None}
    )
    corpora.check_outputs(choices["overwrite"], output, dropped, choices["plot"])
    selection_format(texts, output)
    if dropped is not None:
        format_of_results(dropped)
    corpora.check_plot(choices["plot"])


def _threshold(choices: Mapping[str, Any], calibration: Calibration | None) -> float:
    if calibration is not None:
        return calibration.threshold
    return DEFAULT_THRESHOLD if choices["threshold"] is None else float(choices["threshold"])


def _search(corpus: Corpus, threshold: float, reranker: Any, choices: Mapping[str, Any]) -> Duplicates:
    from gemel import scale
    from gemel.tasks.dedupe import dedupe

    grouping = {name: choices[name] for name in ("keep", "grouping", "normalise")}
    with corpora.counting_rows("compare", len(corpus)) as tell:
        if choices["runner"] != "local":
            runner = corpora.make_runner(choices)
            return scale.dedupe(corpus, threshold=threshold, **grouping, runner=runner, on_progress=tell)
        return dedupe(
            corpus,
            threshold=threshold,
            **grouping,
            reranker=reranker,
            rerank_at_least=choices["rerank_at_least"],
            on_progress=tell,
        )


def _search_proposed(
    corpus: Corpus, quick: Any, slow: Any, threshold: float, reranker: Any, choices: Mapping[str, Any]
) -> Duplicates:
    """The same among repeated texts and those of pairs that one encoder proposes and the other confirms."""
    import numpy as np

    from gemel.tasks.corpus import make_corpus
    from gemel.tasks.dedupe import first_of_the_same

    with corpora.counting_rows("propose", len(corpus)) as tell:
        pairs = list(corpora.proposed_pairs([corpus], quick, slow, threshold, choices, tell))
    is_looked_at = np.zeros(len(corpus), np.bool_)
    for block in pairs:
        is_looked_at[block.first] = is_looked_at[block.second] = True
    # The quick encoder may know no word of a text that is there twice, or hold its capitals for another word.
    first = first_of_the_same(corpus.texts, np.arange(len(corpus)), choices["normalise"])
    is_looked_at |= np.bincount(first, minlength=len(corpus))[first] > 1
    rows = np.flatnonzero(is_looked_at)
    texts, ids = [corpus.texts[row] for row in rows], [corpus.ids[row] for row in rows]
    some = make_corpus(texts, slow, ids=ids, name=corpus.name)
    return _search(some, threshold, reranker, choices).among(rows, len(corpus))


def _write_dropped(
    path: str,
    corpus: Corpus,
    found: Duplicates,
    threshold: float,
    calibration: Calibration | None,
    overwrite: bool,
) -> None:
    from gemel.data.results import ResultWriter
    from gemel.tasks.dedupe import dropped_columns, dropped_rows

    with ResultWriter(path, dropped_columns(corpus, calibration), overwrite=overwrite) as results:
        results.write(dropped_rows(corpus, found, threshold, calibration))
