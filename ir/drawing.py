"""Graph -> SVG, drawn in layers by lavax itself: boxes by kind of operation, the graphs of loops and branches inside.

The colours are those of the page around it, light or dark; the picture refers to nothing outside it.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import pairwise

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node
from lavax.ir.layered_layout import Layout, Point, layout
from lavax.ir.picture import Box, Picture, picture_of

_CHARACTER, _LINE, _PADDING = 6.7, 15.0, 9.0  # pixels, of a monospaced font of 11 pixels
_MARGIN, _TITLE = 10.0, 18.0
_STYLE = """
.lavax-graph{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
--ink:#1c2733;--soft:#5b6b7c;--line:#8796a6;--paper:#fff;--plain:#f3f6f9;--blue:#dfeaf8;--orange:#fbe2cc;
--yellow:#f8efc3;--purple:#e9def6;--green:#def0de}
@media (prefers-color-scheme:dark){.lavax-graph{--ink:#e3eaf1;--soft:#9aa9b8;--line:#6c7c8d;--paper:#151b22;
--plain:#222b35;--blue:#1d3450;--orange:#54351b;--yellow:#4a421a;--purple:#3a2c50;--green:#1f3f26}}
.lavax-graph rect{fill:var(--plain);stroke:var(--line);stroke-width:1}
.lavax-graph text{fill:var(--ink);text-anchor:middle}.lavax-graph .more{fill:var(--soft)}
.lavax-graph path{fill:none;stroke:var(--line);stroke-width:1.2}.lavax-graph .tip{fill:var(--line);stroke:none}
.lavax-graph .input rect,.lavax-graph .output rect{fill:var(--blue)}
.lavax-graph .contraction rect{fill:var(--orange)}.lavax-graph .reduction rect{fill:var(--yellow)}
.lavax-graph .region>rect{fill:var(--purple)}.lavax-graph .movement rect,.lavax-graph .indexing rect{fill:var(--green)}
.lavax-graph g>rect.frame{fill:var(--paper);stroke-dasharray:3 3}.lavax-graph .mark{fill:var(--soft);text-anchor:end}
.lavax-graph .name{text-anchor:start;fill:var(--soft)}
"""


@dataclass(frozen=True)
class _Drawing:
    """Elements of SVG, and the size of the area that they cover from (0, 0) on."""

    elements: tuple[str, ...]
    width: float
    height: float


def svg_of(graph: Graph, marks: Mapping[Node, str] | None = None) -> str:
    """The graph as one SVG element, which may stand in a page or in a file of its own.

    `marks` are words at the corners of boxes, such as the kernels that compute them.
    """
    drawing = _drawn(picture_of(graph, marks))
    width, height = drawing.width + 2 * _MARGIN, drawing.height + 2 * _MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lavax-graph" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    body = f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">'
    return "\n".join([head, f"<style>{_STYLE}</style>", body, *drawing.elements, "</g>", "</svg>"])


def _drawn(picture: Picture) -> _Drawing:
    inner = [[(name, _drawn(part)) for name, part in box.inner] for box in picture.boxes]
    sizes = [_size(box, parts) for box, parts in zip(picture.boxes, inner, strict=True)]
    placed = layout(sizes, picture.arrows)
    elements = [*_arrows(placed)]
    for box, parts, size, centre in zip(picture.boxes, inner, sizes, placed.centres, strict=True):
        elements += _box(box, parts, size, centre)
    return _Drawing(tuple(elements), placed.width, placed.height)


def _size(box: Box, parts: list[tuple[str, _Drawing]]) -> tuple[float, float]:
    beside = 2 * (len(box.mark) + 1) if box.mark else 0  # the first line stands in the middle
    longest = max(len(box.lines[0]) + beside, *map(len, box.lines))
    width, height = longest * _CHARACTER + 2 * _PADDING, len(box.lines) * _LINE + _PADDING
    if parts:
        width = max(width, sum(drawing.width + 3 * _PADDING for _, drawing in parts) + _PADDING)
        height += max(drawing.height for _, drawing in parts) + _TITLE + 3 * _PADDING
    return width, height


def _box(box: Box, parts: list[tuple[str, _Drawing]], size: tuple[float, float], centre: Point) -> Iterator[str]:
    (width, height), (x, y) = size, centre
    left, top = x - width / 2, y - height / 2
    title = f"<title>{escape(box.location)}</title>" if box.location else ""
    yield f'<g class="{box.kind}">{title}{_rectangle(left, top, width, height)}'
    for number, line in enumerate(box.lines):
        kind = ' class="more"' if number else ""
        yield f'<text{kind} x="{x:.1f}" y="{top + _PADDING / 2 + (number + 0.75) * _LINE:.1f}">{escape(line)}</text>'
    if box.mark:
        yield f'<text class="mark" x="{left + width - 4:.1f}" y="{top + 12:.1f}">{escape(box.mark)}</text>'
    start = left + 2 * _PADDING
    for name, drawing in parts:
        below = top + len(box.lines) * _LINE + 2 * _PADDING
        frame = drawing.width + 2 * _PADDING, drawing.height + _TITLE + _PADDING
        yield _rectangle(start - _PADDING, below, *frame, "frame")
        yield f'<text class="name" x="{start:.1f}" y="{below + 13:.1f}">{escape(name)}</text>'
        yield f'<g transform="translate({start:.1f} {below + _TITLE:.1f})">'
        yield from drawing.elements
        yield "</g>"
        start += drawing.width + 3 * _PADDING
    yield "</g>"


def _rectangle(left: float, top: float, width: float, height: float, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<rect{named} x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'


def _arrows(placed: Layout) -> Iterator[str]:
    for points in placed.arrows:
        *_, (x, y) = points
        yield f'<path d="{_curve((*points[:-1], (x, y - 5)))}"/>'
        yield f'<path class="tip" d="M{x:.1f} {y:.1f}l-3.2 -6h6.4z"/>'


def _curve(points: tuple[Point, ...]) -> str:
    """Smooth between the points, and upright at each of them."""
    (x, y), path = points[0], []
    for (_, before), (right, below) in pairwise(points):
        middle = (before + below) / 2
        path.append(f"C{x:.1f} {middle:.1f} {right:.1f} {middle:.1f} {right:.1f} {below:.1f}")
        x = right
    return f"M{points[0][0]:.1f} {y:.1f}{''.join(path)}"
