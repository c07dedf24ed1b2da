"""Draw curves over the share that one trim frees, as SVG, without a chart library for this single picture.

The caller provides the data; this module draws the axes and the curves, and places the labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 860, 490
_LEFT, _TOP, _RIGHT, _BOTTOM = 64, 64, 650, 400
_LEAST_GAP = 17
_MOST_SHARE = 0.75
_FONT = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13"'
_INK, _GRID = "#30363d", "#d8dee4"


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve through points of (share, value), both from 0 to 1; an empty name is not drawn."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def draw(title: str, below: Sequence[str], curves: Sequence[Curve], marked_share: float) -> str:
    """Return the picture as SVG, with lines of text below it and a vertical line at the marked share."""
    marked = _x(marked_share)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT} fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _label(_LEFT, 28, title, more='font-size="16" font-weight="bold"'),
        *_grid(),
        f'<path d="M{marked:.1f} {_TOP}V{_BOTTOM}" stroke="{_INK}" stroke-dasharray="2 3"/>',
        _label(marked, _TOP - 8, "default", more='text-anchor="middle"'),
        *map(_line, curves),
        *_names(curves),
        *(_label(_LEFT, _BOTTOM + 50 + 20 * line, text, more="") for line, text in enumerate(below)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid() -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        yield f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="{_GRID}"/>'
        yield _label(_LEFT - 8, y + 4, f"{percent} %", more='text-anchor="end"')
    for percent in (0, 10, 25, 40, 50, 75):
        yield _label(_x(percent / 100), _BOTTOM + 22, f"{percent} %", more='text-anchor="middle"')


def _line(curve: Curve) -> str:
    path = " ".join(f"{_x(share):.1f},{_y(value):.1f}" for share, value in curve.points)
    dashes = ' stroke-dasharray="7 5"' if curve.dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2.2"{dashes}/>'


def _names(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield the labels at the ends of the curves, moved apart if they would overlap."""
    above = float("-inf")
    for curve in sorted(filter(_has_name, curves), key=lambda curve: -curve.points[-1][1]):
        y = max(_y(curve.points[-1][1]) + 4, above + _LEAST_GAP)
        above = y
        yield _label(_RIGHT + 10, y, curve.name, more=f'fill="{curve.colour}"')


def _has_name(curve: Curve) -> bool:
    return bool(curve.name)


def _label(x: float, y: float, text: str, *, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _x(share: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * share / _MOST_SHARE


def _y(value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value
