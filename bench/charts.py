"""Bar charts as SVG, without a plotting library: the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _LABELS, _ROW, _TOP = 760, 300, 24, 34
_COLOURS = {"ours": "#2563a8", "other": "#9aa5b1", "loss": "#b3382c"}


@dataclass(frozen=True)
class Bar:
    """One bar: a name, its length, what is written beside it, and how it is coloured."""

    name: str
    value: float
    text: str
    kind: str = "other"
    """ours, other or loss."""


def bar_chart(title: str, bars: Sequence[Bar], line: float | None = None) -> str:
    """Horizontal bars under a title; `line` marks a value, such as a limit."""
    longest = max([bar.value for bar in bars] + ([line] if line is not None else [])) or 1.0
    room = _WIDTH - _LABELS - 110
    height = _TOP + _ROW * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold" fill="#1f2933">{escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        top = _TOP + _ROW * number
        length = max(1.0, room * bar.value / longest)
        parts += [
            f'<text x="{_LABELS - 8}" y="{top + 15}" text-anchor="end" fill="#1f2933">{escape(_cut(bar.name))}</text>',
            f'<rect x="{_LABELS}" y="{top + 3}" width="{length:.1f}" height="{_ROW - 7}" fill="{_COLOURS[bar.kind]}"/>',
            f'<text x="{_LABELS + length + 6:.1f}" y="{top + 15}" fill="#1f2933">{escape(bar.text)}</text>',
        ]
    if line is not None:
        at = _LABELS + room * line / longest
        parts.append(
            f'<line x1="{at:.1f}" y1="{_TOP - 4}" x2="{at:.1f}" y2="{height - 8}" stroke="#1f2933" stroke-dasharray="4 3"/>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _cut(name: str, most: int = 46) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
