"""A picture put into a page: SVG that runs nothing, asks for nothing and follows the page's colours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from gemel.errors import InvalidInput

# What our own pictures are made of. A `style` would reach into the whole page, a script needs no word.
_SHAPES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "use")
_ELEMENTS = frozenset(("svg", "g", "defs", "clipPath", "title", "desc", *_SHAPES))
_DROPPED = frozenset(("metadata", "style"))
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_OUTSIDE = re.compile(r"url\((?!#)|javascript:|//", re.IGNORECASE)


@dataclass(frozen=True)
class InlinePicture:
    """The `svg` element for a page, and the caption that the picture carries."""

    svg: str
    caption: str


def inline_picture(svg: str, prefix: str, colours: dict[str, str]) -> InlinePicture:
    """An SVG text made ready for a page: its ids begin with `prefix`, its `colours` are replaced."""
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise InvalidInput(f"a picture of a report must be SVG, but this is not XML: {error}") from None
    if _local(root.tag) != "svg":
        raise InvalidInput(f"a picture of a report must be SVG, and this is <{_local(root.tag)}>")
    caption = next((each.text or "" for each in root if _local(each.tag) == "desc"), "")
    _clean(root, prefix, colours)
    root.attrib.pop("width", None)  # the page knows how wide it is
    root.attrib.pop("height", None)
    return InlinePicture(ElementTree.tostring(root, encoding="unicode"), caption.strip())


def _clean(element: ElementTree.Element, prefix: str, colours: dict[str, str]) -> None:
    element.tag = _local(element.tag)
    if element.tag not in _ELEMENTS:
        raise InvalidInput(f"a picture of a report must not hold <{element.tag}>; draw it with plain shapes")
    attributes = {_local(name): value for name, value in element.attrib.items()}
    element.attrib.clear()
    for name, value in attributes.items():
        element.set(name, _checked(name, value, prefix, colours))
    for child in list(element):
        if _local(child.tag) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix, colours)


def _checked(name: str, value: str, prefix: str, colours: dict[str, str]) -> str:
    points_outside = name == "href" and not value.startswith("#")
    if name.startswith("on") or points_outside or _OUTSIDE.search(value):
        raise InvalidInput(f"a picture of a report must stand alone, but it has {name}={value[:60]!r}")
    if name == "id":
        return prefix + value
    if name == "href":
        return f"#{prefix}{value[1:]}"
    value = _REFERENCE.sub(rf"url(#{prefix}\1)", value)
    if name == "style":
        for old, new in colours.items():
            value = value.replace(old, new)
    return value


def _local(name: str) -> str:
    return name.rpartition("}")[2]
