"""Who links to whom in the target set, and how much? The interlinking matrix as shades."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TextIO

from periplus.present.lines import cells, fit, visible
from periplus.present.palette import FONT, PALETTE
from periplus.present.wording import number
from periplus.present.xml_text import escaped

STEPS = 7  # shades that eyes tell apart on a screen
WITH_NUMBERS = 24  # sites: of more, the cells are too small to be read
WITH_NAMES = 120  # sites: of more, a line of text is higher than a row
SIGN = 7.0
NAME_SIGNS = 20
TOP = 74

_STYLE = (
    PALETTE
    + FONT
    + """
svg { --s1: #d8e8e5; --s2: #bfdcd9; --s3: #a6cfcd; --s4: #7db8b9; --s5: #529da1; --s6: #2f7f86; --s7: #175b63; --light: #ffffff; }
@media (prefers-color-scheme: dark) {
  svg { --s1: #1d2d31; --s2: #22404a; --s3: #27555c; --s4: #2f6d72; --s5: #43898c; --s6: #6aabab; --s7: #a5d5d2; --light: #10181a; }
}
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); } .none { fill: var(--card); } .end { text-anchor: end; }
.s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); } .s4 { fill: var(--s4); } .s5 { fill: var(--s5); }
.s6 { fill: var(--s6); } .s7 { fill: var(--s7); } .n { text-anchor: middle; font-size: 10px; } .n.on { fill: var(--light); }
.own { fill: none; stroke: var(--soft); stroke-width: .8; stroke-dasharray: 2 2; } rect[class^="s"]:hover { stroke: var(--ink); }
"""
)


def write_heat_map(names: Sequence[str], table: Sequence[Sequence[int]], title: str, about: str, out: TextIO) -> None:
    """The matrix as SVG, row = source, logarithmic shades; the diagonal, self-links, is framed and has no shade of its own.

    names: as short as may be. Light and dark as the reader's system. out: UTF-8.
    """
    size = len(names)
    cell = max(4, min(34, 1000 // max(size, 1)))
    named = size <= WITH_NAMES
    font = min(12.0, max(cell - 1.0, 7.0))
    room = SIGN * font / 12 * min(max((cells(visible(name)) for name in names), default=0), NAME_SIGNS) + 24 if named else 16
    left, top = room, TOP + 10 + room * 0.82
    width, height = max(int(left + cell * size + 60 + room * 0.5), 560), int(top + cell * size + 20)
    most = max((count for row, counts in enumerate(table) for end, count in enumerate(counts) if row != end), default=0)
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n')
    out.write(f"<title>{escaped(visible(title))}: interlinking matrix</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{width}" height="{height}"/>\n')
    out.write(f'<text class="title" x="14" y="28">{escaped(visible(title))}</text>\n<text class="soft" x="14" y="48">{escaped(visible(about))}</text>\n')
    out.writelines(_legend(most))
    out.write(f'<rect class="none" x="{left:.1f}" y="{top:.1f}" width="{cell * size}" height="{cell * size}"/>\n')
    for row, counts in enumerate(table):
        for end, count in enumerate(counts):
            if count:
                out.write(_cell((row, end, count), (left + end * cell, top + row * cell, cell), names, most))
    if named:
        out.writelines(_names(names, (left, top, cell), font))
    out.write("</svg>\n")


def shade(count: int, most: int) -> int:
    """1 to STEPS, by the logarithm."""
    if most <= 1:
        return STEPS // 2
    return 1 + min(int(STEPS * math.log(count) / math.log(most)), STEPS - 1) if count > 1 else 1


def _cell(entry: tuple[int, int, int], place: tuple[float, float, int], names: Sequence[str], most: int) -> str:
    (row, end, count), (x, y, cell) = entry, place
    said = f"{names[row]} to {names[end]}: {number(count)}" if row != end else f"{names[row]} to itself: {number(count)}"
    step = shade(count, most)
    gap = 1.0 if cell > 8 else 0.3
    kind = f"s{step}" if row != end else "own"
    box = f'<rect class="{kind}" x="{x + gap / 2:.1f}" y="{y + gap / 2:.1f}" width="{cell - gap:.1f}" height="{cell - gap:.1f}">'
    out = f"{box}<title>{escaped(visible(said))}</title></rect>"
    if len(names) <= WITH_NUMBERS:
        on = " on" if row != end and step >= 5 else ""
        out += f'<text class="n{on}{" soft" if row == end else ""}" x="{x + cell / 2:.1f}" y="{y + cell / 2 + 3.5:.1f}">{_short(count)}</text>'
    return out + "\n"


def _short(count: int) -> str:
    if count < 10_000:
        return str(count)
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def _names(names: Sequence[str], place: tuple[float, float, int], font: float) -> Iterator[str]:
    left, top, cell = place
    for number_, name in enumerate(names):
        said = escaped(fit(visible(name), min(cells(visible(name)), NAME_SIGNS)))
        middle = number_ * cell + cell / 2
        look = f'style="font-size: {font:.1f}px"'
        yield f'<text class="end" {look} x="{left - 6:.1f}" y="{top + middle + font * 0.36:.1f}">{said}</text>'
        x, y = left + middle + font * 0.3, top - 6
        yield f'<text {look} transform="translate({x:.1f} {y:.1f}) rotate(-52)">{said}</text>\n'


def _legend(most: int) -> Iterator[str]:
    yield '<text class="soft" x="14" y="68">rows link to columns</text>\n'
    x = 150
    counts = range(1, most + 1)
    lows = [1 + bisect_left(counts, step, key=lambda count: shade(count, most)) for step in range(1, STEPS + 2)]
    for step, (low, past) in enumerate(pairwise(lows), 1):
        if low == past:
            continue
        said = number(low) if low == past - 1 else f"{number(low)}–{number(past - 1)}"
        yield f'<rect class="s{step}" x="{x}" y="58" width="12" height="12"/><text class="soft" x="{x + 17}" y="68">{said}</text>\n'
        x += 32 + int(SIGN * len(said))
    yield f'<rect class="own" x="{x}" y="58" width="12" height="12"/><text class="soft" x="{x + 17}" y="68">self-links</text>\n'
