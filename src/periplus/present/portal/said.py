"""How are times, delays, weeks and sites said on a portal?"""

from __future__ import annotations

from datetime import UTC, date, datetime

from periplus.model.story import DateSource, Order, PageDate
from periplus.present.lines import visible
from periplus.present.markup import Html, text
from periplus.present.wording import utc

HOUR_S, DAY_S = 3600.0, 86_400.0
DATED_BY = {
    DateSource.JSON_LD: "its JSON-LD",
    DateSource.META: "its meta elements",
    DateSource.TIME: "its time element",
    DateSource.FEED: "its feed",
    DateSource.URL: "its address",
    DateSource.TEXT: "its text",
    DateSource.LAST_MODIFIED: "its server",
    DateSource.FIRST_SEEN: "the crawl that saw it first",
}
ORDERED_BY = {
    Order.DATES: "by the dates of the pages",
    Order.LINKS: "by who links to whom, where dates do not tell",
    Order.FIRST_SEEN: "by when the crawl saw them, where neither dates nor links tell",
}


def name_of(site: str) -> str:
    """A site as it is called: without the port that a crawl on one machine may have needed."""
    name, _, port = site.rpartition(":")
    return visible(name if name and port.isdigit() and not name.endswith(":") else site)


def day(moment: float) -> str:
    return utc(moment, "%d %B %Y")


def dated(found: PageDate) -> str:
    """`5 May 2026`, with the time where it is known."""
    return day(found.when) if found.whole_day else utc(found.when, "%d %B %Y, %H:%M")


def time_element(found: PageDate) -> Html:
    machine = datetime.fromtimestamp(found.when, UTC).strftime("%Y-%m-%d" if found.whole_day else "%Y-%m-%dT%H:%M:%SZ")
    return f'<time datetime="{machine}">{text(dated(found))}</time>'


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
