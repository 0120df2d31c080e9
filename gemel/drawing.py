"""How pictures are drawn: quietly, the same bytes for the same figures, with labels that do not collide."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from gemel.errors import InvalidInput, MissingExtra, WriteFailed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

# Okabe and Ito's palette: told apart by colour-blind readers, and readable on white as on black.
BLUE, ORANGE = "#0072b2", "#d55e00"
# A page may replace these two by its own ink, so that pictures follow its light or dark scheme.
INK, GREY = "#24292f", "#7b838c"

_STYLE: Any = {  # keys of matplotlib's own
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "grid.color": GREY,
    "grid.alpha": 0.22,
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
    "svg.fonttype": "none",  # texts stay texts: they can be searched, read aloud and restyled
    "svg.hashsalt": "gemel",  # ids come from what is drawn, not from chance
}
# No date and no program's version: the same figures give the same bytes.
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@contextmanager
def quiet_style() -> Iterator[None]:
    """Everything that is drawn within has the house's style."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("drawing pictures", "plot") from None
    with mpl.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches that no window system knows of."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def finished(title: str, caption: str, figure: Figure) -> Picture:
    """The picture of a figure whose layout stays as it is, however often it is saved."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return Picture(title, caption, figure)


def picture_format(path: str | os.PathLike[str]) -> str:
    """`png` or `svg`, as the name ends; told before the work, so that no other name ends it."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in ("png", "svg") or not Path(path).parent.is_dir():
        raise InvalidInput(
            f"cannot draw {path}; expected a name that ends in .png or .svg, in a folder that exists"
        )
    return kind


@dataclass(frozen=True)
class Picture:
    """A drawing with its title and a caption that says what to see in it."""

    title: str
    caption: str
    figure: Figure

    @property
    def svg(self) -> str:
        """SVG text that carries title and caption for readers who do not see it."""
        text = self._saved("svg", _NO_METADATA).decode("utf-8")
        head, _, body = text[text.index("<svg") :].partition(">")
        words = f"<title>{escape(self.title)}</title>\n <desc>{escape(self.caption)}</desc>"
        return f'{head} role="img">\n {words}{body}'

    @property
    def png(self) -> bytes:
        """PNG bytes on white, sharp enough to print."""
        return self._saved("png", {"Software": None}, facecolor="white", dpi=160)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as PNG or SVG, by the ending of the name."""
        kind = picture_format(path)
        try:
            Path(path).write_bytes(self.png if kind == "png" else self.svg.encode())
        except OSError as error:
            raise WriteFailed(f"cannot write the picture {path}: {error.strerror or error}") from error

    def _saved(self, kind: str, metadata: Mapping[str, Any], **options: Any) -> bytes:
        file = io.BytesIO()
        with quiet_style():
            self.figure.savefig(file, format=kind, metadata=dict(metadata), **options)
        return file.getvalue()


# Where a label may stand beside its point, best first: horizontal and vertical alignment and offset.
_PLACES = (
    ("left", "center", 8, 0),
    ("right", "center", -8, 0),
    ("center", "bottom", 0, 7),
    ("center", "top", 0, -7),
    ("left", "bottom", 6, 5),
    ("left", "top", 6, -5),
    ("right", "bottom", -6, 5),
    ("right", "top", -6, -5),
    ("left", "bottom", 8, 16),
    ("left", "top", 8, -16),
    ("right", "bottom", -8, 16),
    ("right", "top", -8, -16),
)
_POINT_RADIUS = 5.0


def label_points(axes: Axes, points: Sequence[tuple[float, float]], names: Sequence[str]) -> None:
    """Write each name beside its point, where it covers neither another name, nor a point, nor the edge."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # sizes are known only once the layout is
    scale = figure.dpi / 72
    centres = axes.transData.transform(points)
    taken = [
        _Box(
            x - _POINT_RADIUS * scale,
            y - _POINT_RADIUS * scale,
            x + _POINT_RADIUS * scale,
            y + _POINT_RADIUS * scale,
        )
        for x, y in centres
    ]
    room = _Box(*axes.get_window_extent().extents)
    for number in sorted(range(len(names)), key=lambda each: (-points[each][1], points[each][0])):
        best: tuple[float, Annotation, _Box] | None = None
        for order, place in enumerate(_PLACES):
            label = _label(axes, names[number], points[number], place)
            box = _Box(*label.get_window_extent().extents)
            cost = sum(box.shared(other) for other in taken) + 3 * box.outside(room) + order * 0.01
            if best is None or cost < best[0]:
                if best:
                    best[1].remove()
                best = (cost, label, box)
            else:
                label.remove()
        assert best is not None
        taken.append(best[2])


def _label(axes: Axes, name: str, point: tuple[float, float], place: tuple[str, str, int, int]) -> Annotation:
    horizontal, vertical, right, up = place
    return axes.annotate(
        name, point, xytext=(right, up), textcoords="offset points", ha=horizontal, va=vertical, fontsize=9
    )


@dataclass(frozen=True)
class _Box:
    left: float
    bottom: float
    right: float
    top: float

    def shared(self, other: _Box) -> float:
        """The area that both cover."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)

    def outside(self, room: _Box) -> float:
        """The area that sticks out of a room."""
        return (self.right - self.left) * (self.top - self.bottom) - self.shared(room)
