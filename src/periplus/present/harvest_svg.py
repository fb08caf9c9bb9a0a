"""How did the harvest of a topical crawl go? Pages on the topic over pages fetched, and their share lately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from periplus.present.palette import FONT, PALETTE
from periplus.present.wording import number
from periplus.present.xml_text import escaped
from periplus.present.yield_svg import nice

WIDTH, HEIGHT = 900, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 760, 60, 258
_STYLE = (
    PALETTE
    + FONT
    + """
.title { font-size: 16px; font-weight: 600; } .soft { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; } .mid { text-anchor: middle; }
.axis { stroke: var(--line); } polyline { fill: none; stroke-width: 2.4; stroke-linejoin: round; }
.found { stroke: var(--teal-line); } .all { stroke: var(--grey-line); stroke-width: 1; stroke-dasharray: 2 3; }
.lately { stroke: var(--amber-line); stroke-width: 1.6; }
text.found { fill: var(--teal-line); stroke: none; font-size: 11px; } text.lately { fill: var(--amber-line); stroke: none; font-size: 11px; }
"""
)


def write_harvest_svg(topic: str, points: Sequence[tuple[int, int, float]], out: TextIO) -> None:
    """points: (pages, of them relevant, share of the last pages), in order. SVG that needs nothing else. out: UTF-8."""
    pages, relevant, lately = points[-1] if points else (0, 0, 0.0)
    across = nice(max(pages, 1))
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n')
    out.write(f"<title>Harvest of {escaped(topic)}: {number(relevant)} of {number(pages)} pages</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>\n')
    out.write(f'<text class="title" x="14" y="26">{number(relevant)} of {number(pages)} pages are on the topic</text>\n')
    out.write('<text class="soft" x="14" y="44">pages on the topic over pages fetched; share of the last 500 at the right</text>\n')
    out.writelines(_axes(across))
    out.write(_line("all", [(0, 0.0), (across, 1.0)], across))
    out.write(_line("found", [(0, 0.0), *((at, found / across) for at, found, _ in points)], across))
    out.write(_line("lately", [(at, share) for at, _, share in points], across))
    for kind, y, name in _apart(_y(relevant / across), f"{relevant / pages:.0%} in all" if pages else "", _y(lately), f"{lately:.0%} lately" if pages else ""):
        out.write(f'<text class="{kind}" x="{RIGHT + 8}" y="{y + 4:.1f}">{name}</text>\n')
    out.write("</svg>\n")


def _apart(found: float, found_name: str, lately: float, lately_name: str) -> list[tuple[str, float, str]]:
    """Two names at the right edge, none over the other."""
    if abs(found - lately) < 14:
        found, lately = (found + 7, lately - 7) if found >= lately else (found - 7, lately + 7)
    return [("found", found, found_name), ("lately", lately, lately_name)]


def _x(pages: float, across: float) -> float:
    return LEFT + (RIGHT - LEFT) * pages / across


def _y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _axes(across: float) -> Iterator[str]:
    for part in range(5):
        y = _y(part / 4)
        yield f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="soft end" x="{LEFT - 8}" y="{y + 4:.1f}">{number(round(across * part / 4))}</text>'
        yield f'<text class="soft mid" x="{_x(across * part / 4, across):.1f}" y="{BOTTOM + 20}">{number(round(across * part / 4))}</text>\n'


def _line(kind: str, points: Sequence[tuple[int, float]] | Sequence[tuple[float, float]], across: float) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{_x(pages, across):.1f},{_y(share):.1f}" for pages, share in points)}"/>\n'
