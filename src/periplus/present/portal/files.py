"""Which files is a portal, and what stands in each?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from io import StringIO

from periplus.model.portal import Edition, Entry
from periplus.model.web import SiteKey
from periplus.present.cascade_svg import write_cascade_svg
from periplus.present.portal.feeds import atom, json_feed, opml
from periplus.present.portal.frame import ATOM, JSON_FEED, OPML, STYLE, Page, framed, picture_path
from periplus.present.portal.front import front_page
from periplus.present.portal.lists import about_page, archive_pages, sources_page
from periplus.present.portal.said import name_of
from periplus.present.portal.story import story_page


def portal_files(edition: Edition) -> dict[str, bytes]:
    """Path below the portal's folder -> content, in the order in which they may be written: what a page leads to comes before it.

    The same edition gives the same bytes; another moment alone changes the front page and the one about the portal.
    """
    style = files("periplus.present.portal").joinpath(STYLE).read_text("utf-8")
    texts = {STYLE: style} | {picture_path(entry): _picture(entry) for entry in edition.entries}
    texts |= {page.path: framed(edition, page) for page in _pages(edition)}
    texts |= {OPML: opml(edition), ATOM: atom(edition), JSON_FEED: json_feed(edition)}
    front = front_page(edition)
    texts[front.path] = framed(edition, front)
    return {path: content.encode("utf-8", "replace") for path, content in texts.items()}


def _picture(entry: Entry) -> str:
    """Its sites called as on the pages, unless two would be called alike."""
    story, out = entry.story, StringIO(newline="")
    named = replace(story, pages=tuple(replace(page, site=SiteKey(name_of(page.site))) for page in story.pages))
    write_cascade_svg(named if len(named.sites) == len(story.sites) else story, out)
    return out.getvalue()


def _pages(edition: Edition) -> Iterator[Page]:
    for entry in edition.entries:
        yield story_page(edition, entry)
    *weeks, archive = reversed(list(archive_pages(edition)))
    yield from (*weeks, archive, sources_page(edition), about_page(edition))
