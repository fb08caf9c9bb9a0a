"""The files of a portal: its pages, feeds as Atom and JSON Feed, and its sources as OPML."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from importlib.resources import files
from io import StringIO

from periplus.model.story import Edition, Entry, PortalSite
from periplus.model.web import SiteKey
from periplus.present.markup import characters, escaped
from periplus.present.portal.frame import (
    ATOM,
    FRONT,
    JSON_FEED,
    OPML,
    STYLE,
    PortalPage,
    about_page,
    archive_pages,
    framed,
    front_page,
    name_of,
    period,
    picture_path,
    sources_page,
    story_page,
    story_path,
)
from periplus.present.stories import write_cascade_svg
from periplus.present.wording import iso, visible

# Sources: RFC 4287 (Atom); JSON Feed 1.1; OPML 2.0.

ENTRIES_MOST = 50  # newest of the stories: readers poll, and remember what they saw
TEXT_SITES = 10


def feed_id(edition: Edition, key: str = "") -> str:
    """The same for ever, wherever the portal is moved: made from its name and the moment of its
    creation (RFC 4122, name-based).
    """
    return uuid.uuid5(uuid.NAMESPACE_URL, f"periplus portal {edition.portal.name} {edition.portal.created!r} {key}").urn


def fed(edition: Edition) -> list[Entry]:
    """The stories of the feeds, newest first."""
    return sorted(edition.entries, key=lambda entry: (-entry.updated, entry.key))[:ENTRIES_MOST]


def _updated(edition: Edition) -> float:
    """When the newest of them changed: a feed made anew with the same stories is the same."""
    return max((entry.updated for entry in fed(edition)), default=edition.portal.created)


def _address(edition: Edition, path: str) -> str:
    base = edition.portal.address
    return f"{base.rstrip('/')}/{path}" if base else path


def _told(entry: Entry) -> str:
    sites = entry.story.sites
    more = f" and {len(sites) - TEXT_SITES} more" if len(sites) > TEXT_SITES else ""
    return ", ".join(map(name_of, sites[:TEXT_SITES])) + more


def atom(edition: Edition) -> str:
    """Without an address of the portal, links are relative to the feed itself (RFC 3986, as RFC 4287,
    section 2 allows).
    """
    portal = edition.portal
    entries = "".join(_atom_entry(edition, entry) for entry in fed(edition))
    lead = f"<subtitle>{_text(portal.lead)}</subtitle>\n" if portal.lead else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{feed_id(edition)}</id>
<title>{_text(portal.title)}</title>
{lead}<updated>{iso(_updated(edition))}</updated>
<author><name>{_text(portal.title)}</name></author>
<generator>Periplus</generator>
<link rel="self" type="application/atom+xml" href="{escaped(_address(edition, ATOM))}"/>
<link rel="alternate" type="text/html" href="{escaped(_address(edition, FRONT))}"/>
{entries}</feed>
"""


def _atom_entry(edition: Edition, entry: Entry) -> str:
    first, *others = entry.story.pages
    related = "".join(
        f'<link rel="related" href="{escaped(page.url)}" title="{_text(name_of(page.site))}"/>\n' for page in others
    )
    words = "".join(f'<category term="{_text(word)}"/>\n' for word in entry.keywords)
    language = (
        f' xml:lang="{escaped(first.language)}"'
        if first.language.replace("-", "").isalnum() and first.language.isascii()
        else ""
    )
    return f"""<entry{language}>
<id>{feed_id(edition, entry.key)}</id>
<title>{_text(entry.story.title)}</title>
<published>{iso(entry.published)}</published>
<updated>{iso(entry.updated)}</updated>
<link rel="alternate" type="text/html" href="{escaped(_address(edition, story_path(entry)))}"/>
<link rel="via" href="{escaped(first.url)}" title="{_text(name_of(first.site))}"/>
{related}{words}<summary>{_text(_summary(entry))}</summary>
</entry>
"""


def _summary(entry: Entry) -> str:
    return f"{entry.sentence} ({_told(entry)}.)" if entry.sentence else f"Told by {_told(entry)}."


def _text(value: str) -> str:
    return escaped(visible(value))


def json_feed(edition: Edition) -> str:
    portal = edition.portal
    found: dict[str, object] = {"version": "https://jsonfeed.org/version/1.1", "title": _plain(portal.title)}
    if portal.address:
        found |= {"home_page_url": _address(edition, FRONT), "feed_url": _address(edition, JSON_FEED)}
    if portal.lead:
        found["description"] = _plain(portal.lead)
    if portal.period_s:
        found["user_comment"] = f"Renewed {period(portal.period_s)}."
    found |= {"authors": [{"name": _plain(portal.title)}], "items": [_item(edition, entry) for entry in fed(edition)]}
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def _item(edition: Edition, entry: Entry) -> dict[str, object]:
    first = entry.story.pages[0]
    item: dict[str, object] = {"id": feed_id(edition, entry.key)}
    if edition.portal.address:
        item["url"] = _address(edition, story_path(entry))
    item |= {
        "external_url": first.url,
        "title": _plain(entry.story.title),
        "content_text": _plain(_summary(entry)),
        "summary": _plain(_summary(entry)),
    }
    item |= {"date_published": iso(entry.published), "date_modified": iso(entry.updated)}
    if entry.keywords:
        item["tags"] = [_plain(word) for word in entry.keywords]
    if first.language:
        item["language"] = _plain(first.language)
    item["_periplus"] = {
        "pages": [
            {"url": page.url, "site": page.site, "date": iso(page.date.when), "dated_by": page.date.source.value}
            for page in entry.story.pages
        ]
    }
    return item


def _plain(value: str) -> str:
    return characters(visible(value))


def opml(edition: Edition) -> str:
    """The sources: those with a feed as subscriptions, the others as links."""
    outlines = "".join(map(_outline, edition.sites))
    made = format_datetime(datetime.fromtimestamp(_updated(edition), UTC), usegmt=True)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<opml version="2.0">
<head><title>{_text(edition.portal.title)}: sources</title><dateModified>{made}</dateModified><docs>http://opml.org/spec2.opml</docs></head>
<body>
{outlines}</body>
</opml>
"""


def _outline(site: PortalSite) -> str:
    name, words = _text(name_of(site.key)), _text(site.title or name_of(site.key))
    if not site.feeds:
        return f'<outline type="link" text="{words}" url="{escaped(site.home)}"/>\n'
    return (
        f'<outline type="rss" text="{words}" title="{name}" xmlUrl="{escaped(site.feeds[0])}" '
        f'htmlUrl="{escaped(site.home)}"/>\n'
    )


def portal_files(edition: Edition) -> dict[str, bytes]:
    """Path below the portal's folder -> content, in the order in which they may be written:
    what a page leads to comes before it.

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


def _pages(edition: Edition) -> Iterator[PortalPage]:
    for entry in edition.entries:
        yield story_page(edition, entry)
    *weeks, archive = reversed(list(archive_pages(edition)))
    yield from (*weeks, archive, sources_page(edition), about_page(edition))
