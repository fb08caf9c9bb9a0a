"""How are stories shown in a terminal and to programs?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

from periplus.model.story import DateSource, Order, PageDate, Stories, Story
from periplus.present.lines import cells, fit, visible
from periplus.present.wording import count_of, iso, number, utc

ORDER_WORDS = {Order.DATES: "by dates", Order.LINKS: "by dates and the direction of links", Order.FIRST_SEEN: "partly by when we saw the pages"}
SITES_NAMED = 4  # of a story in the list
DIGESTS_NAMED = 5
_DAY_S = 86_400.0


def stories_lines(found: Stories, width: int, most: int) -> Iterator[str]:
    """A summary, then two lines a story, the weightiest first. most: stories shown; -1: all."""
    shown = found.stories if most < 0 else found.stories[:most]
    told = sum(len(story.pages) for story in found.stories)
    what = count_of(len(found.stories), "story", "stories")
    yield f"{what} on {count_of(told, 'page')}; {count_of(found.pages, 'page')} of {count_of(len(found.posts), 'site')} compared"
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
    return f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, {_when(story)}: {visible(sites)}"


def _when(story: Story) -> str:
    first = story.pages[0].date
    if first.source is DateSource.FIRST_SEEN:
        return f"seen {utc(first.when, '%d %B %Y').lstrip('0')}"
    return utc(first.when, "%d %B %Y")


def cascade_lines(story: Story, width: int) -> Iterator[str]:
    """One story, its pages in order: when, on which site, from whom."""
    yield visible(story.title)
    yield f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}, ordered {ORDER_WORDS[story.order]}"
    if story.disordered:
        yield f"{count_of(story.disordered, 'link')} from a page dated before the one that it links to"
    yield ""
    site_width = min(max(cells(page.site) for page in story.pages), 30)
    cited = dict(reversed(story.links))  # of several the first
    copied = {later: (earlier, share) for later, earlier, share in story.near}
    for place, page in enumerate(story.pages):
        after = delay(page.date, story.pages[0].date) if place else utc(page.date.when, "%d %b %Y")
        how = _from(story, cited.get(place), copied.get(place)) if place else "the source"
        row = f"{place + 1:>3}  {fit(after, 11)}  {fit(visible(page.site), site_width)}  {how}, dated by {page.date.source.value}"
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
    if date.source is DateSource.FIRST_SEEN:
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
            "title": story.title, "sites": list(story.sites), "order": story.order.value, "disordered_links": story.disordered,
            "pages": [
                {"url": page.url, "site": page.site, "title": page.title, "language": page.language, "date": iso(page.date.when),
                 "dated_by": page.date.source.value, "whole_day": page.date.whole_day, "placed_by": page.order.value}
                for page in story.pages
            ],
            "links": [list(pair) for pair in story.links],
            "copies": [[later, earlier, round(share, 4)] for later, earlier, share in story.near],
        }
        for story in found.stories
    ]  # fmt: skip
    whole = {
        "pages": found.pages, "sites": len(found.posts), "posts": dict(found.posts), "dated_by": {source.value: pages for source, pages in found.dated},
        "digests": list(found.digests), "stories": stories,
    }  # fmt: skip
    out.write(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
