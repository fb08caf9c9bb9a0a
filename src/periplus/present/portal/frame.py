"""What do all pages of a portal share: their head, masthead and foot, links, and the small picture of a cascade?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from periplus.model.portal import Edition, Entry
from periplus.present.markup import Html, text
from periplus.present.portal.said import day, period
from periplus.present.wording import count_of, utc

STYLE = "portal.css"
FRONT, ARCHIVE, SOURCES, ABOUT = "index.html", "archive/index.html", "sources.html", "about.html"
ATOM, JSON_FEED, OPML = "feed.atom", "feed.json", "sources.opml"
_NAV = ((FRONT, "This edition"), (ARCHIVE, "Archive"), (SOURCES, "Sources"), (ABOUT, "About"))
_FEEDS = ((ATOM, "Atom"), (JSON_FEED, "JSON"), (OPML, "OPML"))
_STRIP_WIDTH, _STRIP_HEIGHT = 120, 14


@dataclass(frozen=True, slots=True)
class Page:
    """A page before its frame. path: below the portal's folder, with slashes; here: which item of the navigation it belongs to."""

    path: str
    title: str
    body: Html
    here: str = ""
    wide: bool = False


def story_path(entry: Entry) -> str:
    return f"story/{entry.key}.html"


def picture_path(entry: Entry) -> str:
    return f"story/{entry.key}.svg"


def week_path(week: str) -> str:
    return f"archive/{week}.html"


def up(path: str) -> str:
    """What stands before an address relative to the portal's folder, on the page at path."""
    return "../" * path.count("/")


def framed(edition: Edition, page: Page) -> str:
    """A page of XHTML that every browser takes as HTML too: one style sheet beside it, no script, nothing from elsewhere."""
    portal, root = edition.portal, up(page.path)
    title = text(portal.title) if page.path == FRONT else f"{text(page.title)} · {text(portal.title)}"
    items = "".join(f'<a href="{root}{path}"{_current(page, path)}>{name}</a>' for path, name in _NAV)
    feeds = "".join(f'<a href="{root}{path}">{name}</a>' for path, name in _FEEDS)
    lead = f'<p class="lead">{text(portal.lead)}</p>' if portal.lead else ""
    name = f'<a href="{root}{FRONT}">{text(portal.title)}</a>'
    heading = f'<h1 class="name">{name}</h1>' if page.path == FRONT else f'<p class="name">{name}</p>'
    dateline = f'<p class="dateline"><span>{day(edition.made)}</span><span>{_figures(edition)}</span></p>' if page.path == FRONT else ""
    return f"""<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en"><head><meta charset="utf-8"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'self'; img-src 'self'"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/><meta name="color-scheme" content="light dark"/>
<meta name="generator" content="Periplus"/><title>{title}</title>
<link rel="stylesheet" href="{root}{STYLE}"/>
<link rel="alternate" type="application/atom+xml" title="{text(portal.title)} (Atom)" href="{root}{ATOM}"/>
<link rel="alternate" type="application/feed+json" title="{text(portal.title)} (JSON)" href="{root}{JSON_FEED}"/>
</head><body>
<a class="skip" href="#content">To the content</a>
<header class="masthead">{dateline}
{heading}
{lead}
<nav aria-label="Portal">{items}<span class="feeds">{feeds}</span></nav></header>
<main id="content"{' class="wide"' if page.wide else ""}>
{page.body}
</main>
{_foot(edition, page)}
</body></html>
"""


def _current(page: Page, path: str) -> str:
    if page.path == path:
        return ' aria-current="page"'
    return ' aria-current="true"' if page.here == path else ""


def _figures(edition: Edition) -> str:
    sites = {page.site for entry in edition.entries for page in entry.story.pages}
    return f"{count_of(len(edition.entries), 'story', 'stories')} from {count_of(len(sites), 'site')}"


def _foot(edition: Edition, page: Page) -> Html:
    """Only the front page says when it was made: the others change when their stories do, and are not written anew without need."""
    renewed = f" Renewed {period(edition.portal.period_s)}." if edition.portal.period_s else ""
    came = f" from {text(edition.run)}" if edition.run else ""
    made = f"Made {utc(edition.made)}{came}." if page.path == FRONT else ""
    return f'<footer><p>{made}{renewed} <a href="{up(page.path)}{ABOUT}">How this is made, and what it lacks</a>.</p></footer>'


def leaving(url: str, name: Html) -> Html:
    """A link to another site. name: HTML already; alone where the URL is none that browsers should open."""
    if not url.startswith(("http://", "https://")):
        return name
    return f'<a href="{text(url)}" rel="noopener external">{name}</a>'


def of_language(language: str) -> str:
    """Attributes of an element whose text came from a page."""
    return f' lang="{text(language)}" xml:lang="{text(language)}" dir="auto"' if language.replace("-", "").isalnum() else ' dir="auto"'


def tags(words: Iterable[str]) -> Html:
    items = "".join(f"<li>{text(word)}</li>" for word in words)
    return f'<ul class="tags" dir="auto">{items}</ul>' if items else ""


def strip(entry: Entry) -> Html:
    """When each site told the story: a mark each on a line of time, the first one filled. For eyes; the words stand beside it."""
    first: dict[str, float] = {}
    for page in entry.story.pages:
        first.setdefault(page.site, page.date.when)
    if len(first) < 2:
        return ""
    begin, end = min(first.values()), max(first.values())
    room = _STRIP_WIDTH - 10
    marks = []
    for place, when in enumerate(first.values()):
        x = 5 + (room * (when - begin) / (end - begin) if end > begin else room * place / (len(first) - 1))
        marks.append(f'<circle class="{"first" if not place else "told"}" cx="{x:.1f}" cy="{_STRIP_HEIGHT / 2:g}" r="{4 if not place else 3}"/>')
    line = f'<line x1="0" x2="{_STRIP_WIDTH}" y1="{_STRIP_HEIGHT / 2:g}" y2="{_STRIP_HEIGHT / 2:g}"/>'
    size = f'width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}" viewBox="0 0 {_STRIP_WIDTH} {_STRIP_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="strip" {size} aria-hidden="true">{line}{"".join(reversed(marks))}</svg>'
