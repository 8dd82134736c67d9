"""The arena of a program as a picture: time from left to right, bytes upwards, a rectangle per buffer."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape

from lavax.explanation.arena import Arena, Placed
from lavax.passes.reports.table import bytes_text

_WIDTH, _HEIGHT, _LEFT, _BELOW, _ABOVE = 1100.0, 300.0, 78.0, 26.0, 12.0
_LEAST_LABEL, _MOST_NAMES = 34.0, 24  # pixels that a label needs; names along the axis
_GOLDEN_ANGLE = 137.508  # degrees: neighbours in number differ in hue
_GRID_LINES = 4


def arena_svg(arena: Arena) -> str:
    """The picture, as an SVG element for the page; colours are those of the page."""
    head = (
        f'<svg class="arena" xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}">'
        "<title>Memory of temporaries over the steps of the program</title>"
    )
    return "".join([head, *_axes(arena), *_rectangles(arena), _live(arena), "</svg>"])


def _x(arena: Arena, step: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 4) * step / max(len(arena.steps), 1)


def _y(arena: Arena, nbytes: float) -> float:
    return _HEIGHT - _BELOW - (_HEIGHT - _BELOW - _ABOVE) * nbytes / max(arena.nbytes, 1)


def _axes(arena: Arena) -> Iterator[str]:
    for number in range(_GRID_LINES + 1):
        nbytes = arena.nbytes * number // _GRID_LINES
        y = _y(arena, nbytes)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="axis" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{bytes_text(nbytes)}</text>'
    every = -(-len(arena.steps) // _MOST_NAMES)
    for number, name in list(enumerate(arena.steps))[:: max(every, 1)]:
        x = _x(arena, number + 0.5)
        yield f'<text class="axis" x="{x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(name)}</text>'


def _rectangles(arena: Arena) -> Iterator[str]:
    for number, buffer in enumerate(arena.buffers):
        left, right = _x(arena, buffer.first), _x(arena, buffer.last + 1)
        top, bottom = _y(arena, buffer.offset + buffer.nbytes), _y(arena, buffer.offset)
        hue = number * _GOLDEN_ANGLE % 360
        yield f'<g><title>{escape(_described(arena, buffer))}</title><rect x="{left:.1f}" y="{top:.1f}" '
        yield f'width="{right - left:.1f}" height="{bottom - top:.2f}" fill="hsl({hue:.0f} 60% 58%)"/>'
        if right - left >= _LEAST_LABEL and bottom - top >= 13:
            yield f'<text x="{(left + right) / 2:.1f}" y="{(top + bottom) / 2 + 4:.1f}" text-anchor="middle">'
            yield f"{escape(buffer.name)}</text>"
        yield "</g>"


def _described(arena: Arena, buffer: Placed) -> str:
    first, last = arena.steps[buffer.first], arena.steps[buffer.last]
    return f"{buffer.name}: {bytes_text(buffer.nbytes)} from byte {buffer.offset:,}, {first} to {last}"


def _live(arena: Arena) -> str:
    """The bytes in use, as a line over the buffers."""
    points = []
    for step, nbytes in enumerate(arena.live):
        y = _y(arena, nbytes)
        points += [f"{_x(arena, step):.1f} {y:.1f}", f"{_x(arena, step + 1):.1f} {y:.1f}"]
    return f'<path class="live" d="M{"L".join(points)}"/>' if points else ""
