"""How did a story spread, at one look? A lane a site, a dot a page, time to the right, arcs for links and copies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TextIO

from periplus.model.story import Order, Story
from periplus.model.web import SiteKey
from periplus.present.lines import cells, fit, visible
from periplus.present.palette import FONT, PALETTE
from periplus.present.story_text import ORDER_WORDS, delay
from periplus.present.wording import count_of, utc
from periplus.present.xml_text import attributes, escaped

LANES_MOST = 60  # sites drawn; the later ones share the last lane
WIDTH, TOP, LANE, FOOT = 1000, 96, 26, 44
LEFT, RIGHT = 190, 960
NAME_SIGNS = 27
_TICKS = ((0, "source"), (3600, "1 h"), (6 * 3600, "6 h"), (86_400, "1 day"), (3 * 86_400, "3 days"), (7 * 86_400, "1 week"), (30 * 86_400, "1 month"))
_YEAR = ((365 * 86_400, "1 year"),)
_SCALE_S = 1800.0  # the axis is linear up to about half an hour, logarithmic from there on
_STYLE = (
    PALETTE
    + FONT
    + """
.title { font-size: 18px; font-weight: 600; } .soft { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; } .mid { text-anchor: middle; }
.lane { stroke: var(--line); } .link { fill: none; stroke: var(--teal-line); stroke-width: 1.4; opacity: .75; }
.copy { fill: none; stroke: var(--amber-line); stroke-width: 1.4; stroke-dasharray: 5 3; opacity: .8; }
.dates { fill: var(--teal-line); } .links { fill: var(--teal); stroke: var(--teal-line); } .seen { fill: var(--paper); stroke: var(--teal-line); }
circle { stroke-width: 1.6; } a:hover circle { stroke-width: 4; }
"""
)
_KINDS = {Order.DATES: "dates", Order.LINKS: "links", Order.FIRST_SEEN: "seen"}


def write_cascade_svg(story: Story, out: TextIO) -> None:
    """The story as SVG that needs nothing else, light and dark as the reader's system. Each dot links to its page. out: UTF-8."""
    lanes = {site: min(place, LANES_MOST - 1) for place, site in enumerate(story.sites)}
    height = TOP + LANE * (max(lanes.values()) + 1) + FOOT
    out.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">\n')
    out.write(f"<title>{escaped(visible(story.title))}</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{WIDTH}" height="{height}"/>\n')
    out.write(f'<text class="title" x="14" y="28">{escaped(fit(visible(story.title), 92).rstrip())}</text>\n')
    about = (
        f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, from {utc(story.pages[0].date.when)}, ordered {ORDER_WORDS[story.order]}"
    )
    out.write(f'<text class="soft" x="14" y="48">{escaped(about)}</text>\n')
    points = _points(story, lanes)
    out.writelines(_axis(story, height))
    out.writelines(_lanes(story, lanes))
    for later, earlier, share in story.near:
        out.write(_arc(points[later], points[earlier], "copy", f"{_site(story, later)} has {share:.0%} of {_site(story, earlier)}"))
    for citing, cited in story.links:
        out.write(_arc(points[citing], points[cited], "link", f"{_site(story, citing)} links to {_site(story, cited)}"))
    for place, (x, y) in reversed(list(enumerate(points))):
        out.write(_dot(story, place, x, y))
    out.writelines(_legend(height))
    out.write("</svg>\n")


def _site(story: Story, place: int) -> str:
    return visible(story.pages[place].site)


def _late(story: Story) -> list[float]:
    """Seconds after the source; no page stands left of the one before it in the order."""
    first, latest, found = story.pages[0].date.when, 0.0, []
    for page in story.pages:
        latest = max(latest, page.date.when - first)
        found.append(latest)
    return found


def _x(late: float, last: float) -> float:
    return LEFT + (RIGHT - LEFT) * (math.log1p(late / _SCALE_S) / math.log1p(last / _SCALE_S) if last > 0 else 0.0)


def _points(story: Story, lanes: dict[SiteKey, int]) -> list[tuple[float, float]]:
    late = _late(story)
    return [(_x(after, late[-1]), TOP + LANE * (lanes[page.site] + 0.5)) for after, page in zip(late, story.pages, strict=True)]


def _axis(story: Story, height: int) -> Iterator[str]:
    last = _late(story)[-1]
    free = -100.0
    for seconds, name in (*_TICKS, *_YEAR):
        if seconds <= last:
            x = _x(seconds, last)
            yield f'<line class="lane" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{height - FOOT}"/>'
            if x - free > 48:
                yield f'<text class="soft mid" x="{x:.1f}" y="{TOP - 14}">{name}</text>\n'
                free = x


def _lanes(story: Story, lanes: dict[SiteKey, int]) -> Iterator[str]:
    for site in story.sites[:LANES_MOST]:
        y = TOP + LANE * (lanes[site] + 0.5)
        name = visible(site) if lanes[site] < LANES_MOST - 1 or len(story.sites) == LANES_MOST else count_of(len(story.sites) - LANES_MOST + 1, "more site")
        name = fit(name, min(cells(name), NAME_SIGNS))
        yield f'<line class="lane" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/><text class="end" x="{LEFT - 14}" y="{y + 4}">{escaped(name)}</text>\n'


def _arc(start: tuple[float, float], end: tuple[float, float], kind: str, said: str) -> str:
    """From the later page to the earlier one, bent so that arcs between the same lanes lie apart."""
    (x, y), (to_x, to_y) = start, end
    bend = 18 if kind == "link" else -18
    middle = f"{(x + to_x) / 2 + bend:.1f} {(y + to_y) / 2 - bend:.1f}"
    return f'<path class="{kind}" d="M{x:.1f} {y:.1f}Q{middle} {to_x:.1f} {to_y:.1f}"><title>{escaped(said)}</title></path>\n'


def _dot(story: Story, place: int, x: float, y: float) -> str:
    page = story.pages[place]
    late = "" if not place else f"{delay(page.date, story.pages[0].date)}, "
    said = f"{visible(page.title)}\n{visible(page.url)}\n{late}{utc(page.date.when)}, dated by {page.date.source.value}"
    dot = f'<title>{escaped(said)}</title><circle class="{_KINDS[page.order]}" cx="{x:.1f}" cy="{y:.1f}" r="{7 if not place else 5}"/>'
    if page.url.startswith(("http://", "https://")):
        return f"<a{attributes([('href', page.url), ('target', '_top'), ('rel', 'noopener noreferrer nofollow')])}>{dot}</a>\n"
    return f"<g>{dot}</g>\n"


def _legend(height: int) -> Iterator[str]:
    y, x = height - 16, 14
    for kind, name in (("dates", "placed by dates"), ("links", "placed by links"), ("seen", "placed by when we saw it")):
        yield f'<circle class="{kind}" cx="{x + 5}" cy="{y - 4}" r="5"/><text class="soft" x="{x + 16}" y="{y}">{name}</text>'
        x += 40 + 6 * len(name)
    for kind, name in (("link", "links to"), ("copy", "has text of")):
        yield f'<path class="{kind}" d="M{x} {y - 4}h26"/><text class="soft" x="{x + 32}" y="{y}">{name}</text>'
        x += 56 + 6 * len(name)
    yield "\n"
