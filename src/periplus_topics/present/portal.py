"""The files of a portal: its pages, a feed as Atom, and its sources as OPML."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from email.utils import formatdate
from functools import cache, partial
from importlib.resources import files
from io import StringIO
from typing import TYPE_CHECKING

from markupsafe import Markup

from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import SiteKey
from periplus.present.markup import bar, characters, environment
from periplus.present.wording import iso, utc, visible
from periplus_topics.model import Edition, Entry, Order, StoryPage
from periplus_topics.present.stories import format_date, iso_date, write_cascade_svg

if TYPE_CHECKING:
    import jinja2

HOUR_S, DAY_S = 3600.0, 86_400.0
DATE_WORDS = {
    DateOrigin.JSON_LD: "its JSON-LD",
    DateOrigin.META: "its meta elements",
    DateOrigin.TIME: "its time element",
    DateOrigin.FEED: "its feed",
    DateOrigin.URL: "its address",
    DateOrigin.TEXT: "its text",
    DateOrigin.LAST_MODIFIED: "its server",
    DateOrigin.FIRST_SEEN: "the crawl that found it first",
}
ORDER_WORDS = {
    Order.DATES: "by the dates of the pages",
    Order.LINKS: "by links between the sites, if dates are unknown",
    Order.FIRST_SEEN: "by when the crawl found them, without dates or links",
}
MOST_SITES = 5  # of a story, on a page of many
MOST_KEYWORDS = 4  # the same
STALE_S = 7 * 86_400.0  # without a story for so long, the front page says so
MOST_TITLES = 3  # of a week, in the list of weeks
STRIP_PX = 120, 5  # length of a story's line of time, and how far its marks stay from the ends
_PICTURES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))
ENTRIES_MOST = 50  # newest of the stories: readers poll, and remember what they saw
TEXT_SITES = 10


def name_of(site: str) -> str:
    """A site as it is called: without the port that a crawl on one machine may have needed."""
    name, _, port = site.rpartition(":")
    return visible(name if name and port.isdigit() and not name.endswith(":") else site)


def _day(moment: float) -> str:
    return utc(moment, "%d %B %Y")


def delay(first: PageDate, other: PageDate) -> str:
    """How long after the first page another came: `+3 h`, `+2 d`; in days where no more than a day is known of one."""
    seconds = other.when - first.when
    if first.whole_day or other.whole_day:
        days = int(other.when // DAY_S - first.when // DAY_S)
        return "same day" if not days else f"{days:+} d"
    if abs(seconds) < HOUR_S:
        return f"{round(seconds / 60):+} min" if round(seconds / 60) else "at once"
    return f"{round(seconds / HOUR_S):+} h" if abs(seconds) < 2 * DAY_S else f"{round(seconds / DAY_S):+} d"


def week_title(week: str) -> str:
    """`Week 47, 2026`."""
    year, _, number = week.partition("-W")
    return f"Week {int(number)}, {year}"


def week_days(week: str) -> str:
    """`16 to 22 November 2026`: its Monday and Sunday."""
    year, _, number = week.partition("-W")
    monday, sunday = (date.fromisocalendar(int(year), int(number), weekday) for weekday in (1, 7))
    shown = monday.strftime("%d").lstrip("0")
    if monday.month != sunday.month:
        shown += monday.strftime(" %B")
    if monday.year != sunday.year:
        shown += monday.strftime(" %Y")
    return f"{shown} to {sunday.strftime('%d %B %Y').lstrip('0')}"


def period(period_s: float) -> str:
    """`every 24 hours`."""
    for unit_s, name in ((7 * DAY_S, "week"), (DAY_S, "day"), (HOUR_S, "hour"), (60.0, "minute")):
        count = period_s / unit_s
        if count >= 1 and count == int(count):
            return f"every {name}" if count == 1 else f"every {int(count)} {name}s"
    return f"every {period_s:g} seconds"


FRONT, STYLE = "index.html", "portal.css"
ATOM, OPML = "feed.atom", "sources.opml"
MARGIN_SITES, MARGIN_WEEKS, MARGIN_WORDS = 8, 6, 14  # in the margin


def story_path(entry: Entry) -> str:
    return f"story/{entry.key}.html"


def picture_type(picture: bytes) -> str:
    """`png`, `jpeg`, `gif` or `webp`, by its first bytes (WHATWG MIME Sniffing, 6.1); empty: none of them."""
    if picture[:4] == b"RIFF" and picture[8:14] == b"WEBPVP":
        return "webp"
    return next((name for begin, name in _PICTURES if picture.startswith(begin)), "")


def picture_path(entry: Entry) -> str:
    """Path of the editor's picture; empty: none."""
    return f"story/{entry.key}.{picture_type(entry.picture)}" if entry.picture else ""


@cache
def _environment() -> jinja2.Environment:
    made = environment(
        "periplus_topics.present",
        day=_day, dated=format_date, machine=iso_date, delay=delay, week_title=week_title, week_days=week_days,
        period=period, site_name=name_of, story_path=story_path,
        picture_path=picture_path, first_pages=_first_pages, times=_strip, iso=iso,
        meter=lambda amount, most: Markup(bar([("told", amount)], most, "meter")), picture_type=picture_type,
        summary=_summary, http_date=partial(formatdate, usegmt=True),
    )  # fmt: skip
    made.globals |= {
        "sites_named": MOST_SITES, "keywords_named": MOST_KEYWORDS, "sites_shown": MARGIN_SITES,
        "titles_named": MOST_TITLES, "dated_by": DATE_WORDS, "ordered_by": ORDER_WORDS,
    }  # fmt: skip
    return made


def _first_pages(entry: Entry) -> list[StoryPage]:
    """The first page of each site, in the order of publication."""
    first = {page.site: page for page in reversed(entry.story.pages)}
    return [first[site] for site in entry.story.sites]


def _strip(entry: Entry) -> list[str]:
    """Position of each site on the time line, px; empty for a single site."""
    times = [page.date.when for page in _first_pages(entry)]
    begin, end, (length, edge) = min(times), max(times), STRIP_PX
    if end > begin:
        shares = [(when - begin) / (end - begin) for when in times]
    else:
        shares = [at / max(len(times) - 1, 1) for at in range(len(times))]
    return [f"{edge + (length - 2 * edge) * share:.1f}" for share in shares] if len(times) > 1 else []


def _page(edition: Edition, path: str, template: str, title: str = "", **values: object) -> tuple[str, str]:
    """(path, a page of XHTML that every browser takes as HTML too): one style sheet beside it, no script, nothing from
    elsewhere.
    """
    around = {"edition": edition, "portal": edition.portal, "path": path, "root": "../" * path.count("/")}
    values = around | {"title": title, "wide": False} | values
    return path, _environment().get_template(template).render(values) + "\n"


def front_page(edition: Edition) -> tuple[str, str]:
    """(its path, the page)"""
    spelling: dict[str, str] = {}
    times: Counter[str] = Counter()  # keywords of several stories first, then of the heaviest story
    for word in (word for entry in edition.front for word in entry.keywords):
        spelling.setdefault(word.casefold(), word)
        times[word.casefold()] += 1
    weeks = Counter(entry.week for entry in edition.entries)
    newest_s = max((entry.last_update_s for entry in edition.entries), default=edition.made)
    return _page(
        edition,
        FRONT,
        "front.html",
        wide=True,
        newest_s=newest_s if edition.made - newest_s > STALE_S else 0.0,
        telling=len({page.site for entry in edition.entries for page in entry.story.pages}),
        more=len(edition.entries) - len(edition.front),
        most=max((site.stories for site in edition.sites), default=1) or 1,
        words=[spelling[word] for word, _ in times.most_common(MARGIN_WORDS)],
        weeks=sorted(weeks.items(), reverse=True)[:MARGIN_WEEKS],
    )


def _story_page(edition: Edition, entry: Entry) -> tuple[str, str]:
    origins = [_origin(entry, place) for place in range(len(entry.story.pages))]
    return _page(edition, story_path(entry), "story.html", entry.story.title, entry=entry, origins=origins)


def _origin(entry: Entry, place: int) -> list[str]:
    """Time of a page and the source of its story."""
    pages, page = entry.story.pages, entry.story.pages[place]
    notes = [delay(pages[0].date, page.date)] if place else []
    cited = dict.fromkeys(name_of(pages[other].site) for linker, other in entry.story.links if linker == place)
    notes += [f"links to {', '.join(cited)}"] if cited else []
    near = {later: (earlier, share) for later, earlier, share in entry.story.near}
    earlier, share = near.get(place, (0, 0.0))
    return notes + ([f"shares {100 * share:.0f} % with {name_of(pages[earlier].site)}"] if share > 0 else [])


def _archive(edition: Edition) -> Iterator[tuple[str, str]]:
    """A page for each week, newest first, and the list of weeks."""
    weeks: dict[str, list[Entry]] = {}
    for entry in sorted(edition.entries, key=_reach):
        weeks.setdefault(entry.week, []).append(entry)
    order = sorted(weeks)
    for place, week in reversed(list(enumerate(order))):
        turns = {"before": order[place - 1] if place else "", "after": "".join(order[place + 1 : place + 2])}
        values: Mapping[str, object] = {"week": week, "entries": weeks[week], "wide": True, **turns}
        yield _page(edition, f"archive/{week}.html", "week.html", week_title(week), **values)
    listed = [(week, weeks[week]) for week in reversed(order)]
    yield _page(edition, "archive/index.html", "archive.html", "Archive", weeks=listed)


def _reach(entry: Entry) -> tuple[int, int, float, str]:
    """Within a week the order is by sites, not by days."""
    return (-len(entry.story.sites), -len(entry.story.pages), -entry.publication_s, entry.key)


def portal_files(edition: Edition) -> dict[str, bytes]:
    """Path below the portal's folder -> content, in a safe order of writing: link targets come before the pages that
    link to them.

    The same edition gives the same bytes; another moment alone changes the front page and the one about the portal.
    """
    texts = {STYLE: files("periplus_topics.present").joinpath(STYLE).read_text("utf-8")}
    texts |= {f"story/{entry.key}.svg": _picture(entry) for entry in edition.entries}
    texts |= dict(_story_page(edition, entry) for entry in edition.entries)
    texts |= dict(_archive(edition))
    texts |= dict(_page(edition, f"{name.lower()}.html", f"{name.lower()}.html", name) for name in ("Sources", "About"))
    texts |= {OPML: _feed(edition, "sources.xml"), ATOM: _feed(edition, "feed.xml")}
    texts |= dict([front_page(edition)])
    pictures = {picture_path(entry): entry.picture for entry in edition.entries if entry.picture}
    return pictures | {path: content.encode("utf-8", "replace") for path, content in texts.items()}


def _picture(entry: Entry) -> str:
    """Its sites called as on the pages, unless two would be called alike."""
    story, out = entry.story, StringIO(newline="")
    named = replace(story, pages=tuple(replace(page, site=SiteKey(name_of(page.site))) for page in story.pages))
    write_cascade_svg(named if len(named.sites) == len(story.sites) else story, out)
    return out.getvalue()


# Sources: RFC 4287 (Atom); OPML 2.0.


def feed_id(edition: Edition, key: str = "") -> str:
    """Permanent, also if the portal moves: derived from its name and time of creation (RFC 4122, name-based)."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"periplus portal {edition.portal.name} {edition.portal.created!r} {key}").urn


def fed(edition: Edition) -> list[Entry]:
    """The stories of the feeds, newest first."""
    return sorted(edition.entries, key=lambda entry: (-entry.last_update_s, entry.key))[:ENTRIES_MOST]


def _update_time(edition: Edition) -> float:
    """Time of the newest change: a rebuilt feed with the same stories is equal."""
    return max((entry.last_update_s for entry in fed(edition)), default=edition.portal.created)


def _address(edition: Edition, path: str) -> str:
    base = edition.portal.address
    return f"{base.rstrip('/')}/{path}" if base else path


def _sites(entry: Entry) -> str:
    sites = entry.story.sites
    more = f" and {len(sites) - TEXT_SITES} more" if len(sites) > TEXT_SITES else ""
    return ", ".join(map(name_of, sites[:TEXT_SITES])) + more


def _feed(edition: Edition, template: str) -> str:
    """An XML file about the newest stories, or the sources: sites with a feed as subscriptions, the rest as links.

    Without an address of the portal, links are relative to the feed itself (RFC 3986, as RFC 4287, section 2 allows).
    """
    return characters(
        _page(
            edition, "", template, entries=fed(edition), updated_s=_update_time(edition),
            feed_id=partial(feed_id, edition), address=partial(_address, edition),
        )[1]
    )  # fmt: skip


def _summary(entry: Entry) -> str:
    text = entry.words or entry.sentence
    return f"{text} ({_sites(entry)}.)" if text else f"Sites: {_sites(entry)}."


def _plain(value: str) -> str:
    return characters(visible(value))
