"""Clusters as a map in two dimensions, the largest named by their key words, and where the threshold lies."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gemel.contracts import Vectors
from gemel.drawing import GREY, Picture, drawable, finished, label_points, new_figure, quiet_style
from gemel.errors import InvalidInput, MissingExtra
from gemel.similarity import normalise
from gemel.tasks.clustering import Clustering
from gemel.tasks.describe import Description
from gemel.tasks.histogram import SimilaritySample, draw_bars
from gemel.tasks.projection import principal_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Labels = npt.NDArray[np.int64]
Places = npt.NDArray[np.float32]  # (n, 2)

PROJECTIONS = ("pca", "umap")
N_DRAWN = 6_000  # more dots cover each other and say nothing more
_N_WORDS = 3
_PULL = 0.5  # of the way to the centre: two of hundreds of dimensions show less of what keeps clusters apart
# Okabe and Ito's colours and some of Paul Tol's, told apart by colour-blind readers: one a named cluster.
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
    "#882255", "#117733", "#aa4499", "#999933", "#6699cc", "#661100",
)  # fmt: skip


def draw_clusters(
    clustering: Clustering,
    vectors: Vectors,
    descriptions: Sequence[Description],
    *,
    projection: str = "pca",
    sample: SimilaritySample | None = None,
    name: str = "the corpus",
    seed: int = 0,
) -> Picture:
    """The map, and below it the histogram of a sample of similarities with the threshold among them."""
    check_projection(projection)
    rows = _drawn(clustering, seed)
    labels = clustering.labels[rows]
    if projection == "umap":
        places = _umap(normalise(vectors[rows]), seed)
    else:
        places = places_on_axes(normalise(vectors[rows]), labels, clustering)
    n_named = min(len(clustering), len(_COLOURS))
    with quiet_style():
        figure = new_figure(7.2, 5.6 if sample is None else 7.8)
        if sample is None:
            above = figure.add_subplot()
        else:
            above, below = figure.subplots(2, 1, gridspec_kw={"height_ratios": (2.6, 1)})
        title = f"{len(clustering):,} clusters of {len(clustering.labels):,} texts"
        title = f"{title} in {name}" if drawable(name) else title
        above.set_title(title.replace("$", r"\$"))  # $ would begin a formula
        _draw_dots(above, places, labels, n_named)
        caption = _caption(clustering, n_named, projection)
        above.set_xlabel(fill(caption, 95), fontsize=9)
        if sample is not None:
            bars = draw_bars(below, sample, clustering.threshold)
            below.set_xlabel(f"{sample.measure}\n{bars}", fontsize=9)
            caption = f"{caption} {bars}"
        _draw_names(above, places, labels, descriptions[:n_named])
        return finished(title, caption, figure)


def check_projection(projection: str) -> None:
    """Refuse a projection that is unknown or not installed, before the work and not after it."""
    if projection not in PROJECTIONS:
        raise InvalidInput(f"projection is {projection!r}; expected one of {', '.join(PROJECTIONS)}")
    if projection == "umap" and find_spec("umap") is None:
        raise MissingExtra("a map by UMAP", "umap")


def _drawn(clustering: Clustering, seed: int) -> Labels:
    n_rows = len(clustering.labels)
    if not n_rows:
        raise InvalidInput("a clustering of no rows was given to draw; expected at least one")
    chosen = np.random.default_rng(seed).permutation(n_rows)[:N_DRAWN]
    return np.sort(chosen)


def places_on_axes(units: Vectors, labels: Labels, clustering: Clustering) -> Places:
    """Where rows (n, dim) of unit length lie on a map (n, 2): half-way to the centre of their cluster."""
    # The axes along which the centres differ: those of the rows would spread the clusters over each other.
    weights = np.ceil(100 * clustering.sizes / max(1, len(clustering.labels))).astype(np.int64)
    spread = np.repeat(clustering.centres, weights, axis=0)
    axes = principal_axes(spread if len(clustering) > 2 else units, 2)
    places, centres = (_in_two(axes.project(each)) for each in (units, clustering.centres))
    is_member = labels >= 0
    places[is_member] += _PULL * (centres[labels[is_member]] - places[is_member])
    return places


def _in_two(places: Places) -> Places:
    """The same places, where vectors of one dimension lie on a line."""
    return np.pad(places, ((0, 0), (0, 2 - places.shape[1])))


def _umap(units: Vectors, seed: int) -> Places:
    places: Places = (
        import_module("umap").UMAP(metric="cosine", random_state=seed, n_jobs=1).fit_transform(units)
    )
    return places


def _draw_dots(axes: Axes, places: Places, labels: Labels, n_named: int) -> None:
    size = float(np.clip(6_000 / len(places), 4, 30))
    others = (labels < 0) | (labels >= n_named)
    x, y = places[others].T
    axes.scatter(x, y, s=size * 0.6, color=GREY, alpha=0.25, linewidths=0, rasterized=True)
    for number in range(n_named):
        x, y = places[labels == number].T
        axes.scatter(x, y, s=size, color=_COLOURS[number], alpha=0.75, linewidths=0, rasterized=True)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.margins(0.08)


def _draw_names(axes: Axes, places: Places, labels: Labels, descriptions: Sequence[Description]) -> None:
    """Each name where the dots of its cluster are densest, in their colour."""
    points, names, colours = [], [], []
    for each in descriptions:
        dots = places[labels == each.cluster]
        if len(dots):
            points.append((float(np.median(dots[:, 0])), float(np.median(dots[:, 1]))))
            words = " ".join(each.key_words[:_N_WORDS])
            names.append(words if words and drawable(words) else f"cluster {each.cluster}")
            colours.append(_COLOURS[each.cluster])
    label_points(axes, points, names, colours)


def _caption(clustering: Clustering, n_named: int, projection: str) -> str:
    n_rest = len(clustering) - n_named
    drawn = ", drawn half-way to the centre of its cluster" if projection == "pca" else ""
    colours = (
        f"one of the {n_named} largest clusters; the other {n_rest:,} are grey" if n_rest else "a cluster"
    )
    none = f"; {clustering.n_unclustered:,} texts are in none and grey" if clustering.n_unclustered else ""
    return f"Each dot is a text{drawn}, each colour {colours}{none}."
