"""Draw curves over the share that one trim frees, as SVG, without a chart library for this single picture.

The caller provides the data; this module draws the axes and the curves, and places the labels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 860, 490
_PLOT_LEFT, _PLOT_TOP, _PLOT_RIGHT, _PLOT_BOTTOM = 64, 64, 650, 400
_MIN_LABEL_GAP = 17
_MAX_SHARE = 0.75
_FONT = 'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13"'
_INK, _GRID_COLOUR = "#30363d", "#d8dee4"


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve through points of (share, value), both from 0 to 1; an empty name is not drawn."""

    name: str
    colour: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False


def draw_curves(title: str, below: Sequence[str], curves: Sequence[Curve], marked_share: float) -> str:
    """Return the picture as SVG, with lines of text below it and a vertical line at the marked share."""
    marked = _scale_x(marked_share)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT} fill="{_INK}">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
        _draw_text(_PLOT_LEFT, 28, title, more='font-size="16" font-weight="bold"'),
        *_draw_grid(),
        f'<path d="M{marked:.1f} {_PLOT_TOP}V{_PLOT_BOTTOM}" stroke="{_INK}" stroke-dasharray="2 3"/>',
        _draw_text(marked, _PLOT_TOP - 8, "default", more='text-anchor="middle"'),
        *map(_draw_curve, curves),
        *_draw_labels(curves),
        *(_draw_text(_PLOT_LEFT, _PLOT_BOTTOM + 50 + 20 * line, text, more="") for line, text in enumerate(below)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _draw_grid() -> Iterator[str]:
    for percent in range(0, 101, 20):
        y = _scale_y(percent / 100)
        yield f'<path d="M{_PLOT_LEFT} {y:.1f}H{_PLOT_RIGHT}" stroke="{_GRID_COLOUR}"/>'
        yield _draw_text(_PLOT_LEFT - 8, y + 4, f"{percent} %", more='text-anchor="end"')
    for percent in (0, 10, 25, 40, 50, 75):
        yield _draw_text(_scale_x(percent / 100), _PLOT_BOTTOM + 22, f"{percent} %", more='text-anchor="middle"')


def _draw_curve(curve: Curve) -> str:
    path = " ".join(f"{_scale_x(share):.1f},{_scale_y(value):.1f}" for share, value in curve.points)
    dashes = ' stroke-dasharray="7 5"' if curve.is_dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2.2"{dashes}/>'


def _draw_labels(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield the labels at the ends of the curves, moved apart if they would overlap."""
    above = float("-inf")
    for curve in sorted(filter(_has_name, curves), key=lambda curve: -curve.points[-1][1]):
        y = max(_scale_y(curve.points[-1][1]) + 4, above + _MIN_LABEL_GAP)
        above = y
        yield _draw_text(_PLOT_RIGHT + 10, y, curve.name, more=f'fill="{curve.colour}"')


def _has_name(curve: Curve) -> bool:
    return bool(curve.name)


def _draw_text(x: float, y: float, text: str, *, more: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(text)}</text>'


def _scale_x(share: float) -> float:
    return _PLOT_LEFT + (_PLOT_RIGHT - _PLOT_LEFT) * share / _MAX_SHARE


def _scale_y(value: float) -> float:
    return _PLOT_BOTTOM - (_PLOT_BOTTOM - _PLOT_TOP) * value
