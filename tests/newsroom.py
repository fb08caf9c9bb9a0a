"""Stories and editions for tests of their selection and display."""

from __future__ import annotations

from datetime import UTC, datetime

from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import SiteKey, Url
from periplus_topics.model import (
    Edition,
    EditorVerdict,
    Entry,
    EntryKey,
    Order,
    Portal,
    PortalSite,
    Provenance,
    Story,
    StoryPage,
)

NOW = datetime(2026, 5, 13, 9, 0, tzinfo=UTC).timestamp()
GAZETTE_FEED = Url("https://gazette.example/feed.xml")
HOUR, DAY = 3_600.0, 86_400.0


def told(site: str, slug: str, title: str, when: float, *, whole_day: bool = False, language: str = "en") -> StoryPage:
    date = PageDate(when, DateOrigin.JSON_LD, whole_day)
    return StoryPage(Url(f"https://{site}/{slug}"), SiteKey(site), title, language, date, Order.DATES)


def story(slug: str, title: str, *tellings: tuple[str, float], links: tuple[tuple[int, int], ...] = ()) -> Story:
    """tellings: (site, days before NOW) of each page, the source first."""
    pages = tuple(
        told(site, slug, title if not place else f"{title} (as told by {site})", NOW - ago * DAY)
        for place, (site, ago) in enumerate(tellings)
    )
    return Story(pages, links, tuple((place, 0, 0.6) for place in range(1, len(pages))), 0)


BUOY = story(
    "bell-buoy", "The bell buoy off Sandholm is adrift", ("gazette.example", 2), ("coastwatch.example", 1.9),
    ("tides.example", 1.5),
    ("north-pilot.example", 1.1), links=((1, 0), (3, 1)),
)  # fmt: skip
DREDGE = story(
    "dredging",
    "Dredging at Vellmouth ends a month early",
    ("harbour-post.example", 3),
    ("gazette.example", 2.8),
    ("tides.example", 2),
)
LIGHT = story(
    "averby-light",
    "Averby lights its lamp for the two-hundredth winter",
    ("lampkeepers.example", 9),
    ("gazette.example", 8.5),
)
FERRY = story(
    "ferry", "A night ferry to Grey Skerry, for one season", ("north-pilot.example", 0.4), ("harbour-post.example", 0.1)
)
STORIES = (BUOY, DREDGE, LIGHT, FERRY)


def entry(
    found: Story, key: str, weight: float, sentence: str = "", *keywords: str, verdict: EditorVerdict | None = None
) -> Entry:
    known = tuple(Provenance("crawl 3", NOW - HOUR) for _ in found.pages)
    return Entry(EntryKey(key), found, weight, None, verdict, sentence, keywords, known)


def edition(*entries: Entry, **changes: object) -> Edition:
    """An edition of these entries, or of four default entries."""
    given = entries or (
        entry(BUOY, "aaaaaaa2", 3.1,
            (
"The bell buoy that marks the Combs broke its chain in the gale of Sunday night and was "
"seen six miles to the north."
),
              "bell buoy", "Sandholm", "gale warning", "Combs"),
        entry(FERRY, "aaaaaaa3", 1.8, "From June to September a ferry will leave Port Lorne at eleven at night.",
            "night ferry", "Grey Skerry"),
        entry(DREDGE, "aaaaaaa4", 1.5, "The inner harbour is open again to ships that draw five metres.", "dredging",
            "Vellmouth", "inner harbour"),
        entry(LIGHT, "aaaaaaa5", 0.3, "", "lighthouse", "Averby", verdict=EditorVerdict.PINNED),
    )  # fmt: skip
    values: dict[str, object] = {
        "portal": Portal("coast", "The Seven Lights", NOW - 90 * DAY, (
"What the harbours of the "
"coast tell one another"
),
            period_s=DAY),
        "made": NOW, "run": "crawl 3", "run_ended": NOW - HOUR, "pages": 214, "entries": given, "waiting": (),
        "hidden": (),
        "sites": (
            PortalSite(SiteKey("gazette.example"), Url("https://gazette.example/"), "The Gazette", (GAZETTE_FEED,), 3,
                0.75, None, False),
            PortalSite(SiteKey("north-pilot.example"), Url("https://north-pilot.example/"), "North Pilot", (), 2, 0.25,
                None, True),
        ),
        "covered": 1.0, "lacks": (),
    }  # fmt: skip
    return Edition(**(values | changes))  # type: ignore[arg-type]
