"""`gemel mine`: similar pairs of texts."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import corpora, options
from gemel.errors import InvalidInput

if TYPE_CHECKING:
    from gemel.contracts import Reranker
    from gemel.data.results import ResultWriter
    from gemel.tasks.corpus import Corpus
    from gemel.tasks.mine import PairRows

DEFAULT_PAIRS = 100


@click.command("mine")
@click.argument("source", metavar="INPUT")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("-n", "--n-pairs", type=int, help=f"The N most similar pairs.  [default: {DEFAULT_PAIRS}]")
@click.option("--at-least", type=float, metavar="T", help="All pairs that are at least that similar.")
@click.option("-k", type=int, help="For each text of INPUT the K most similar.")
@options.measure
@click.option("--skip-identical", is_flag=True, help="Let the first of identical texts stand for all.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A .jsonl, .csv, .tsv (also .gz) or .parquet file.  [default: JSON lines to standard output]",
)
@corpora.confirming
@corpora.prefiltering
@corpora.plot
@corpora.reading
@click.option("--other-vectors", metavar="FILE", help="The vectors of OTHER.")
@corpora.overwrite
@options.runner
def command(source: str, other: str | None, output: str | None, **choices: Any) -> None:
    """Find the most similar pairs of texts in INPUT, or of INPUT with OTHER.

    Every pair is compared, exactly. One of -n, --at-least (or --calibration) and -k says which to write;
    --at-least also bounds -n and -k. In a .tsv, tabs and line ends within a text become blanks.

    \b
    Examples:
      gemel mine questions.txt -n 50
      gemel mine corpus.parquet --at-least 0.9 --vectors vectors.npy -o pairs.csv
      gemel mine new.csv known.csv --column title -k 3 -o nearest.jsonl
      gemel mine questions.txt --calibration calibration.json --rerank my-cross-encoder
      gemel mine million.txt --at-least 0.9 --prefilter my-static-table -o pairs.parquet
      gemel mine corpus.parquet --vectors vectors/ --at-least 0.9 --runner ray -o pairs.parquet
    """
    _check(source, other, output, choices)
    has_vectors = choices["vectors"] is not None and (other is None or choices["other_vectors"] is not None)
    began = time.perf_counter()
    encoder = corpora.needed_model(choices, has_vectors=has_vectors)
    calibration = corpora.load_checked_calibration(choices, encoder)
    reranker = corpora.load_confirmation(choices)
    reader = corpora.quick_model(choices) if choices["prefilter"] else encoder
    corpus = corpora.read(corpora.text_source(source, choices), reader, choices["vectors"])
    others = None
    if other is not None:
        others = corpora.read(corpora.text_source(other, choices), reader, choices["other_vectors"])
    threshold = choices["at_least"] if calibration is None else calibration.threshold

    from gemel.data.results import ResultWriter
    from gemel.tasks.mine import PairRows

    rows = PairRows(corpus, others or corpus, calibration, is_reranked=reranker is not None)
    scrolls = output in (None, "-") and sys.stdout.isatty()  # where a bar would run through the results
    show = False if scrolls else None
    with corpora.partial_report(output), corpora.counting_rows("mine", len(corpus), show) as tell:
        if choices["prefilter"]:
            assert reader is not None
            assert encoder is not None
            sides = [corpus] if others is None else [corpus, others]
            blocks: Any = corpora.proposed_pairs(sides, reader, encoder, threshold, choices, tell)
        else:
            blocks = _blocks(corpus, others, threshold, choices, tell)
        with ResultWriter(output, rows.columns, overwrite=choices["overwrite"]) as results:
            _write(blocks, rows, results, reranker, choices["rerank_at_least"])
    if choices["plot"]:
        corpora.draw(choices["plot"], corpus, others, threshold, choices["measure"])
    if output not in (None, "-"):
        seconds = round(time.perf_counter() - began, 3)
        click.echo(json.dumps({"output": output, "pairs": results.n_rows, "seconds": seconds}))


def _check(source: str, other: str | None, output: str | None, choices: Mapping[str, Any]) -> None:
    """Refuse what cannot be, before a model is loaded."""
    from gemel.tasks.thresholds import checked_threshold

    if choices["n_pairs"] is not None and choices["k"] is not None:
        raise click.UsageError("-n and -k were given; expected one of them")
    if choices["at_least"] is not None and choices["calibration"] is not None:
        raise click.UsageError("--at-least and --calibration were given; expected one of them")
    if choices["calibration"] is not None and choices["measure"] != "cosine":
        raise click.UsageError("a calibration is one of cosines; leave out --measure")
    corpora.check_confirmation(choices)
    corpora.check_prefilter(
        choices,
        **{"-n": choices["n_pairs"] is not None, "-k": choices["k"] is not None},
        **{"--vectors": choices["vectors"] is not None, "--measure": choices["measure"] != "cosine"},
        **{"--other-vectors": choices["other_vectors"] is not None},
        **{"--skip-identical": choices["skip_identical"], "--plot": choices["plot"] is not None},
    )
    if choices["prefilter"] and choices["at_least"] is None and choices["calibration"] is None:
        raise click.UsageError("--prefilter needs a threshold; give --at-least T or --calibration FILE")
    corpora.check_runner(
        choices,
        **{"-k": choices["k"] is not None, "--skip-identical": choices["skip_identical"]},
        **{"--prefilter": choices["prefilter"] is not None},
    )
    if choices["other_vectors"] is not None and other is None:
        raise click.UsageError("--other-vectors goes with OTHER")
    if source == other == "-":
        raise InvalidInput("standard input can be read only once; give a file for INPUT or for OTHER")
    if choices["at_least"] is not None:
        checked_threshold(choices["at_least"], choices["measure"])
    corpora.check_outputs(choices["overwrite"], output, choices["plot"])
    if output not in (None, "-"):
        from gemel.data.results import format_of_results

        format_of_results(str(output))
    corpora.check_plot(choices["plot"])


def _blocks(
    corpus: Corpus,
    others: Corpus | None,
    threshold: float | None,
    choices: Mapping[str, Any],
    tell: Callable[[int, int], None],
) -> Any:
    from gemel.tasks.mine import mine

    n_pairs = choices["n_pairs"]
    if n_pairs is None and choices["k"] is None and threshold is None:
        n_pairs = DEFAULT_PAIRS
    if choices["runner"] != "local":
        from gemel import scale

        return scale.mine(
            corpus.vectors,
            None if others is None else others.vectors,
            n_pairs=n_pairs,
            at_least=threshold,
            measure=choices["measure"],
            runner=corpora.make_runner(choices),
            on_progress=tell,
        )
    return mine(
        corpus,
        others,
        n_pairs=n_pairs,
        at_least=threshold,
        k=choices["k"],
        measure=choices["measure"],
        skip_identical=choices["skip_identical"],
        on_progress=tell,
    )


def _write(
    blocks: Any, rows: PairRows, results: ResultWriter, reranker: Reranker | None, at_least: float
) -> None:
    from gemel.tasks.mine import confirm

    if reranker is None:
        for pairs in blocks:
            results.write(rows.of(pairs))
        return
    for pairs, scores in confirm(blocks, rows.corpus, rows.others, reranker, at_least=at_least):
        results.write(rows.of(pairs, scores))
