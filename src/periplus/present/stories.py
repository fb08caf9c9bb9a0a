"""Stories: in lines, as JSON, and as drawings of how each spread."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TextIO

from periplus.model.story import DateOrigin, Edition, Entry, Order, PageDate, Stories, Story
from periplus.model.web import SiteKey
from periplus.present.drawing import FONT, PALETTE
from periplus.present.markup import attributes, escaped
from periplus.present.wording import cells, count_of, fit, iso, number, utc, visible

ORDER_WORDS = {
    Order.DATES: "by dates",
    Order.LINKS: "by dates and the direction of links",
    Order.FIRST_SEEN: "partly by when we saw the pages",
}
SITES_NAMED = 4  # of a story in the list
DIGESTS_NAMED = 5
_DAY_S = 86_400.0


def stories_lines(found: Stories, width: int, most: int) -> Iterator[str]:
    """A summary, then two lines a story, the weightiest first. most: stories shown; -1: all."""
    shown = found.stories if most < 0 else found.stories[:most]
    told = sum(len(story.pages) for story in found.stories)
    what = count_of(len(found.stories), "story", "stories")
    yield (
        f"{what} on {count_of(told, 'page')}; {count_of(found.pages, 'page')} of "
        f"{count_of(len(found.posts), 'site')} compared"
    )
    yield fit(f"dated by {_dated(found)}", width).rstrip()
    for place, story in enumerate(shown, 1):
        yield ""
        head = f"{place:>3}  "
        yield head + fit(visible(story.title), width - len(head)).rstrip()
        yield " " * len(head) + fit(_about(story), width - len(head)).rstrip()
    if len(shown) < len(found.stories):
        yield ""
        yield f"     and {count_of(len(found.stories) - len(shown), 'more story', 'more stories')}: -n -1 shows all"
    if found.digests:
        yield ""
        named = ", ".join(visible(url) for url in found.digests[:DIGESTS_NAMED])
        more = f" and {number(len(found.digests) - DIGESTS_NAMED)} more" if len(found.digests) > DIGESTS_NAMED else ""
        yield f"Left out, since they speak of several stories: {named}{more}"


def _dated(found: Stories) -> str:
    return ", ".join(f"{source.value} {number(pages)}" for source, pages in found.dated)


def _about(story: Story) -> str:
    sites = ", ".join(story.sites[:SITES_NAMED]) + (", ..." if len(story.sites) > SITES_NAMED else "")
    return (
        f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, {_when(story)}: {visible(sites)}"
    )


def _when(story: Story) -> str:
    first = story.pages[0].date
    if first.source is DateOrigin.FIRST_SEEN:
        return f"seen {utc(first.when, '%d %B %Y').lstrip('0')}"
    return utc(first.when, "%d %B %Y")


def cascade_lines(story: Story, width: int) -> Iterator[str]:
    """One story, its pages in order: when, on which site, from whom."""
    yield visible(story.title)
    yield (
        f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, "
        f"ordered {ORDER_WORDS[story.order]}"
    )
    if story.disordered:
        yield f"{count_of(story.disordered, 'link')} from a page dated before the one that it links to"
    yield ""
    site_width = min(max(cells(page.site) for page in story.pages), 30)
    cited = dict(reversed(story.links))  # of several the first
    copied = {later: (earlier, share) for later, earlier, share in story.near}
    for place, page in enumerate(story.pages):
        after = delay(page.date, story.pages[0].date) if place else utc(page.date.when, "%d %b %Y")
        how = _from(story, cited.get(place), copied.get(place)) if place else "the source"
        row = (
            f"{place + 1:>3}  {fit(after, 11)}  {fit(visible(page.site), site_width)}  {how}, dated "
            f"by {page.date.source.value}"
        )
        yield fit(row, max(width, 40)).rstrip()
        yield fit(f"     {visible(page.url)}", max(width, 40)).rstrip()


def _from(story: Story, cited: int | None, copied: tuple[int, float] | None) -> str:
    said = []
    if copied is not None:
        said.append(f"has {copied[1]:.0%} of {story.pages[copied[0]].site} ({copied[0] + 1})")
    if cited is not None:
        said.append(f"links to {story.pages[cited].site} ({cited + 1})")
    return visible(", ".join(said)) or "linked to later"


def delay(date: PageDate, first: PageDate) -> str:
    """A time after the source, in its natural unit; before it, as an order by links may have it, with a minus."""
    seconds = date.when - first.when
    if date.source is DateOrigin.FIRST_SEEN:
        return "undated"
    if (date.whole_day or first.whole_day) and abs(seconds) < _DAY_S:
        return "same day" if date.when // _DAY_S == first.when // _DAY_S else "next day"
    for unit, length in (("d", _DAY_S), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= length:
            return f"{seconds / length:+.1f} {unit}"
    return "+0"


def write_stories_json(found: Stories, out: TextIO) -> None:
    """Everything, for programs: times ISO 8601; links and copies are places in pages."""
    stories = [
        {
            "title": story.title, "sites": list(story.sites), "order": story.order.value,
            "disordered_links": story.disordered,
            "pages": [
                {"url": page.url, "site": page.site, "title": page.title, "language": page.language,
                    "date": iso(page.date.when),
                 "dated_by": page.date.source.value, "whole_day": page.date.whole_day, "placed_by": page.order.value}
                for page in story.pages
            ],
            "links": [list(pair) for pair in story.links],
            "copies": [[later, earlier, round(share, 4)] for later, earlier, share in story.near],
        }
        for story in found.stories
    ]  # fmt: skip
    whole = {
        "pages": found.pages, "sites": len(found.posts), "posts": dict(found.posts),
        "dated_by": {source.value: pages for source, pages in found.dated},
        "digests": list(found.digests), "stories": stories,
    }  # fmt: skip
    out.write(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")


def kinds(edition: Edition, waiting: bool) -> list[tuple[str, tuple[Entry, ...]]]:
    """Its entries by what becomes of them."""
    kinds = [("published", edition.entries), ("waiting for approval", edition.waiting), ("hidden", edition.hidden)]
    return kinds[1:2] if waiting else kinds


def edition_values(edition: Edition, limit: int, waiting: bool) -> dict[str, object]:
    """The edition for programs; times ISO 8601."""
    found: dict[str, object] = {
        "portal": asdict(edition.portal),
        "made": iso(edition.made),
        "run": edition.run,
        "lacks": list(edition.lacks),
    }
    found["entries"] = [
        _entry_json(entry, kind) for kind, entries in kinds(edition, waiting) for entry in entries[:limit]
    ]
    found["sites"] = [asdict(site) for site in edition.sites]
    found["covered"] = edition.covered
    return found


def _entry_json(entry: Entry, kind: str) -> dict[str, object]:
    pages = [
        {"url": page.url, "site": page.site, "title": page.title, "date": iso(page.date.when), "by": page.date.source}
        for page in entry.story.pages
    ]
    return {
        "key": entry.key, "kind": kind.partition(" ")[0], "verdict": entry.verdict, "title": entry.story.title,
        "published": iso(entry.published),
        "updated": iso(entry.updated), "weight": entry.weight, "relevance": entry.relevance, "sentence": entry.sentence,
        "keywords": list(entry.keywords), "pages": pages, "links": list(entry.story.links),
    }  # fmt: skip


LANES_MOST = 60  # sites drawn; the later ones share the last lane
WIDTH, TOP, LANE, FOOT = 1000, 96, 26, 44
LEFT, RIGHT = 190, 960
NAME_SIGNS = 27
_TICKS = (
    (0, "source"),
    (3600, "1 h"),
    (6 * 3600, "6 h"),
    (86_400, "1 day"),
    (3 * 86_400, "3 days"),
    (7 * 86_400, "1 week"),
    (30 * 86_400, "1 month"),
)
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
"""  # noqa: E501
)
_KINDS = {Order.DATES: "dates", Order.LINKS: "links", Order.FIRST_SEEN: "seen"}


def write_cascade_svg(story: Story, out: TextIO) -> None:
    """The story as SVG that needs nothing else, light and dark as the reader's system.

    Each dot links to its page. out: UTF-8.
    """
    lanes = {site: min(place, LANES_MOST - 1) for place, site in enumerate(story.sites)}
    height = TOP + LANE * (max(lanes.values()) + 1) + FOOT
    out.write(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">\n'
    )
    out.write(f"<title>{escaped(visible(story.title))}</title>\n<style>{_STYLE}</style>\n")
    out.write(f'<rect class="paper" width="{WIDTH}" height="{height}"/>\n')
    out.write(f'<text class="title" x="14" y="28">{escaped(fit(visible(story.title), 92).rstrip())}</text>\n')
    about = (
        f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, from "
        f"{utc(story.pages[0].date.when)}, ordered {ORDER_WORDS[story.order]}"
    )
    out.write(f'<text class="soft" x="14" y="48">{escaped(about)}</text>\n')
    points = _points(story, lanes)
    out.writelines(_axis(story, height))
    out.writelines(_lanes(story, lanes))
    for later, earlier, share in story.near:
        out.write(
            _arc(
                points[later],
                points[earlier],
                "copy",
                f"{_site(story, later)} has {share:.0%} of {_site(story, earlier)}",
            )
        )
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
    return [
        (_x(after, late[-1]), TOP + LANE * (lanes[page.site] + 0.5))
        for after, page in zip(late, story.pages, strict=True)
    ]


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
        name = (
            visible(site)
            if lanes[site] < LANES_MOST - 1 or len(story.sites) == LANES_MOST
            else count_of(len(story.sites) - LANES_MOST + 1, "more site")
        )
        name = fit(name, min(cells(name), NAME_SIGNS))
        yield (
            f'<line class="lane" x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}"/><text class="end" x="{LEFT - 14}" '
            f'y="{y + 4}">{escaped(name)}</text>\n'
        )


def _arc(start: tuple[float, float], end: tuple[float, float], kind: str, said: str) -> str:
    """From the later page to the earlier one, bent so that arcs between the same lanes lie apart."""
    (x, y), (to_x, to_y) = start, end
    bend = 18 if kind == "link" else -18
    middle = f"{(x + to_x) / 2 + bend:.1f} {(y + to_y) / 2 - bend:.1f}"
    return (
        f'<path class="{kind}" d="M{x:.1f} {y:.1f}Q{middle} {to_x:.1f} '
        f'{to_y:.1f}"><title>{escaped(said)}</title></path>\n'
    )


def _dot(story: Story, place: int, x: float, y: float) -> str:
    page = story.pages[place]
    late = "" if not place else f"{delay(page.date, story.pages[0].date)}, "
    said = f"{visible(page.title)}\n{visible(page.url)}\n{late}{utc(page.date.when)}, dated by {page.date.source.value}"
    dot = (
        f'<title>{escaped(said)}</title><circle class="{_KINDS[page.order]}" cx="{x:.1f}" cy="{y:.1f}" '
        f'r="{7 if not place else 5}"/>'
    )
    if page.url.startswith(("http://", "https://")):
        return (
            f"<a{attributes([('href', page.url), ('target', '_top'), ('rel', 'noopener noreferrer nofollow')])}>"
            f"{dot}</a>\n"
        )
    return f"<g>{dot}</g>\n"


def _legend(height: int) -> Iterator[str]:
    y, x = height - 16, 14
    for kind, name in (
        ("dates", "placed by dates"),
        ("links", "placed by links"),
        ("seen", "placed by when we saw it"),
    ):
        yield (
            f'<circle class="{kind}" cx="{x + 5}" cy="{y - 4}" r="5"/><text class="soft" '
            f'x="{x + 16}" y="{y}">{name}</text>'
        )
        x += 40 + 6 * len(name)
    for kind, name in (("link", "links to"), ("copy", "has text of")):
        yield f'<path class="{kind}" d="M{x} {y - 4}h26"/><text class="soft" x="{x + 32}" y="{y}">{name}</text>'
        x += 56 + 6 * len(name)
    yield "\n"
