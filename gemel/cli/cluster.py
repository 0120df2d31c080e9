"""`gemel cluster`: groups of alike texts, and what each is about."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemel.cli import corpora, options
from gemel.table import format_table, shortened, width_of

if TYPE_CHECKING:
    from gemel.tasks.clustering import Clustering
    from gemel.tasks.corpus import Corpus
    from gemel.tasks.describe import Description

METHODS = ("star", "connected", "agglomerative", "kmeans", "minibatch", "hdbscan")
_LEAST_WIDTH = 80
_MOST_WIDTH = 160


class Threshold(click.ParamType[float | None]):
    """A number, or auto for the one that suits the texts."""

    name = "auto|T"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """The number, None for auto."""
        if value is None or value == "auto":
            return None
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is neither auto nor a number")


@click.command("cluster")
@click.argument("source", metavar="INPUT")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="A row a text: .jsonl, .csv, .tsv (also .gz) or .parquet; - for JSON lines to standard output.",
)
@click.option("--clusters", metavar="FILE", help="A row a cluster, likewise.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="star",
    show_default=True,
    help="star: a centre and all within the threshold of it; connected: chains of similar texts; "
    "agglomerative: the most similar merge, up to 20,000 texts; kmeans and, for millions, minibatch: a "
    "number of clusters; hdbscan: dense places, up to 50,000 texts.",
)
@click.option(
    "--threshold",
    type=Threshold(),
    default="auto",
    show_default=True,
    help="The cosine that makes texts alike; auto finds one where neighbours and random pairs part.",
)
@click.option("-k", "--n-clusters", type=int, help="How many clusters: for kmeans, minibatch, agglomerative.")
@click.option(
    "--min-size",
    type=click.IntRange(1),
    help="Smaller groups are no clusters.  [default: 3; 5 for hdbscan, 1 where -k is given]",
)
@click.option(
    "--linkage",
    type=click.Choice(["average", "complete", "single"]),
    default="average",
    show_default=True,
    help="How agglomerative compares groups: by the mean, the least or the highest similarity.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random choices.")
@click.option(
    "--plot", metavar="FILE", help="Draw a map of the clusters, and where the threshold lies: .png or .svg."
)
@click.option(
    "--projection",
    type=click.Choice(["pca", "umap"]),
    default="pca",
    show_default=True,
    help="How the map is made; umap needs an extra.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Clusters in the table.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines, a cluster each, also on a terminal.")
@corpora.reading
@corpora.overwrite
def command(source: str, output: str | None, clusters: str | None, **choices: Any) -> None:
    """Group the texts of INPUT by what they are about.

    Clusters are numbered from the largest one. A terminal shows how many texts each has, its key words and
    its most typical text; without a terminal, or with --json, that is a JSON line a cluster. With -o, each
    text is written with its cluster, -1 for none, and its cosine to the centre of that.

    \b
    Examples:
      gemel cluster questions.txt
      gemel cluster reviews.csv --column review --threshold 0.7 -o grouped.csv --clusters topics.csv
      gemel cluster corpus.parquet --method minibatch -k 500 --vectors vectors.npy -o grouped.parquet
      gemel cluster tickets.tsv --plot map.png
    """
    _check(output, clusters, choices)
    began = time.perf_counter()
    encoder = corpora.needed_model(choices, has_vectors=choices["vectors"] is not None)
    corpus = corpora.read(corpora.text_source(source, choices), encoder, choices["vectors"])
    found = _clustered(corpus, choices)

    from gemel.tasks.describe import describe

    descriptions = describe(found, corpus.texts)
    with corpora.partial_report(output, clusters):
        _write(corpus, found, descriptions, output, clusters, choices["overwrite"])
    if choices["plot"]:
        _draw(corpus, found, descriptions, choices)
    if "-" not in (output, clusters):
        seconds = round(time.perf_counter() - began, 3)
        _report(corpus, found, descriptions, output, seconds, choices)


def _check(output: str | None, clusters: str | None, choices: Mapping[str, Any]) -> None:
    """Refuse what cannot be, before a model is loaded."""
    from gemel.data.results import format_of_results
    from gemel.tasks.cluster import check_choice

    check_choice(choices["method"], choices["threshold"], choices["n_clusters"])
    if choices["method"] != "agglomerative" and options.was_given("linkage"):
        raise click.UsageError(
            f"--linkage goes with --method agglomerative, and the method is {choices['method']}"
        )
    if choices["plot"] is None and options.was_given("projection"):
        raise click.UsageError("--projection goes with --plot FILE, the map that it is for")
    if output == clusters == "-":
        raise click.UsageError(
            "-o - and --clusters - would mix texts and clusters; give a file for one of them"
        )
    corpora.check_outputs(choices["overwrite"], output, clusters, choices["plot"])
    for file in (output, clusters):
        if file not in (None, "-"):
            format_of_results(str(file))
    if choices["plot"]:
        from gemel.tasks.cluster_map import check_projection

        check_projection(choices["projection"])
    corpora.check_plot(choices["plot"])


def _clustered(corpus: Corpus, choices: Mapping[str, Any]) -> Clustering:
    from gemel.tasks.cluster import cluster

    names = ("method", "threshold", "n_clusters", "min_size", "linkage", "seed")
    with corpora.counting_rows("cluster", len(corpus)) as tell:
        return cluster(corpus.vectors, **{name: choices[name] for name in names}, on_progress=tell)


def _write(
    corpus: Corpus,
    found: Clustering,
    descriptions: Sequence[Description],
    output: str | None,
    clusters: str | None,
    overwrite: bool,
) -> None:
    from gemel.data.results import ResultWriter
    from gemel.tasks.cluster_rows import cluster_columns, cluster_rows, text_columns, text_rows

    if clusters is not None:
        with ResultWriter(clusters, cluster_columns(corpus), overwrite=overwrite) as results:
            results.write(cluster_rows(corpus, found, descriptions))
    if output is not None:
        with ResultWriter(output, text_columns(corpus), overwrite=overwrite) as results:
            results.write(text_rows(corpus, found))


def _draw(
    corpus: Corpus, found: Clustering, descriptions: Sequence[Description], choices: Mapping[str, Any]
) -> None:
    from gemel.tasks.cluster_map import draw_clusters
    from gemel.tasks.histogram import sample_similarities

    sample = None
    if found.threshold is not None and len(corpus) > 1:
        sample = sample_similarities(corpus.vectors, seed=choices["seed"])
    draw_clusters(
        found,
        corpus.vectors,
        descriptions,
        projection=choices["projection"],
        sample=sample,
        name=Path(corpus.name).name,
        seed=choices["seed"],
    ).save(choices["plot"])


# What is said ----------------------------------------------------------------------------------------


def _report(
    corpus: Corpus,
    found: Clustering,
    descriptions: Sequence[Description],
    output: str | None,
    seconds: float,
    choices: Mapping[str, Any],
) -> None:
    from gemel.tasks.cluster_rows import cluster_line, mean_similarities

    if not choices["as_json"] and sys.stdout.isatty():
        click.echo(_headline(found, choices["threshold"]))
        if descriptions:
            click.echo(f"\n{_table(corpus, descriptions[: choices['top']])}")
        if len(descriptions) > choices["top"]:
            click.echo(f"… and {len(descriptions) - choices['top']:,} more: --clusters FILE has them all")
        return
    if output is None:
        for similarity, each in zip(mean_similarities(found), descriptions, strict=True):
            click.echo(json.dumps(cluster_line(corpus, similarity, each), ensure_ascii=False, default=str))
        return
    summary = {
        "output": output,
        "rows": len(corpus),
        "clusters": len(found),
        "unclustered": found.n_unclustered,
        "method": found.method,
        "threshold": found.threshold,
        "seconds": seconds,
    }
    click.echo(json.dumps(summary))


def _headline(found: Clustering, given: float | None) -> str:
    at = ""
    if found.threshold is not None:
        at = f" at the cosine {found.threshold:g}{' (found)' if given is None else ''}"
    none = f"; {found.n_unclustered:,} in none" if found.n_unclustered else ""
    return f"{len(found):,} clusters of {len(found.labels):,} texts by {found.method}{at}{none}."


def _table(corpus: Corpus, descriptions: Sequence[Description]) -> str:
    """Clusters, aligned; key words and texts share what room the terminal has."""
    width = min(max(shutil.get_terminal_size().columns, _LEAST_WIDTH), _MOST_WIDTH)
    cells = [(str(each.cluster), f"{each.size:,}", ", ".join(each.key_words)) for each in descriptions]
    room = width - 6 - max(len("cluster"), 4) - max(len("texts"), *(len(size) for _, size, _ in cells))
    most = max(width_of(words) for _, _, words in cells)
    for_words = min(most, room // 2)
    rows = [
        [
            number,
            size,
            shortened(words, for_words),
            shortened(corpus.texts[each.typical[0]], room - max(for_words, len("key words"))),
        ]
        for (number, size, words), each in zip(cells, descriptions, strict=True)
    ]
    return format_table(["cluster", "texts", "key words", "typical"], rows)
