"""The pages of a portal: what they share, its front page, stories, archive and sources."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from periplus.model.story import DateOrigin, Edition, EditorVerdict, Entry, Order, PageDate, Provenance, StoryPage
from periplus.present.markup import Html, bar, text
from periplus.present.wording import count_of, number, utc, visible

HOUR_S, DAY_S = 3600.0, 86_400.0
DATED_BY = {
    DateOrigin.JSON_LD: "its JSON-LD",
    DateOrigin.META: "its meta elements",
    DateOrigin.TIME: "its time element",
    DateOrigin.FEED: "its feed",
    DateOrigin.URL: "its address",
    DateOrigin.TEXT: "its text",
    DateOrigin.LAST_MODIFIED: "its server",
    DateOrigin.FIRST_SEEN: "the crawl that saw it first",
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


STYLE = "portal.css"
FRONT, ARCHIVE, SOURCES, ABOUT = "index.html", "archive/index.html", "sources.html", "about.html"
ATOM, JSON_FEED, OPML = "feed.atom", "feed.json", "sources.opml"
_NAV = ((FRONT, "This edition"), (ARCHIVE, "Archive"), (SOURCES, "Sources"), (ABOUT, "About"))
_FEEDS = ((ATOM, "Atom"), (JSON_FEED, "JSON"), (OPML, "OPML"))
_STRIP_WIDTH, _STRIP_HEIGHT = 120, 14


@dataclass(frozen=True, slots=True)
class PortalPage:
    """A page before its frame.

    path: below the portal's folder, with slashes; here: which item of the navigation it belongs to.
    """

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


def framed(edition: Edition, page: PortalPage) -> str:
    """A page of XHTML that every browser takes as HTML too: one style sheet beside it, no script,
    nothing from elsewhere.
    """
    portal, root = edition.portal, up(page.path)
    title = text(portal.title) if page.path == FRONT else f"{text(page.title)} · {text(portal.title)}"
    items = "".join(f'<a href="{root}{path}"{_current(page, path)}>{name}</a>' for path, name in _NAV)
    feeds = "".join(f'<a href="{root}{path}">{name}</a>' for path, name in _FEEDS)
    lead = f'<p class="lead">{text(portal.lead)}</p>' if portal.lead else ""
    name = f'<a href="{root}{FRONT}">{text(portal.title)}</a>'
    heading = f'<h1 class="name">{name}</h1>' if page.path == FRONT else f'<p class="name">{name}</p>'
    dateline = (
        f'<p class="dateline"><span>{day(edition.made)}</span><span>{_figures(edition)}</span></p>'
        if page.path == FRONT
        else ""
    )
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


def _current(page: PortalPage, path: str) -> str:
    if page.path == path:
        return ' aria-current="page"'
    return ' aria-current="true"' if page.here == path else ""


def _figures(edition: Edition) -> str:
    sites = {page.site for entry in edition.entries for page in entry.story.pages}
    return f"{count_of(len(edition.entries), 'story', 'stories')} from {count_of(len(sites), 'site')}"


def _foot(edition: Edition, page: PortalPage) -> Html:
    """Only the front page says when it was made: the others change when their stories do,
    and are not written anew without need.
    """
    renewed = f" Renewed {period(edition.portal.period_s)}." if edition.portal.period_s else ""
    came = f" from {text(edition.run)}" if edition.run else ""
    made = f"Made {utc(edition.made)}{came}." if page.path == FRONT else ""
    return (
        f'<footer><p>{made}{renewed} <a href="{up(page.path)}{ABOUT}">How this is made, and '
        "what it lacks</a>.</p></footer>"
    )


def leaving(url: str, name: Html) -> Html:
    """A link to another site. name: HTML already; alone where the URL is none that browsers should open."""
    if not url.startswith(("http://", "https://")):
        return name
    return f'<a href="{text(url)}" rel="noopener external">{name}</a>'


def of_language(language: str) -> str:
    """Attributes of an element whose text came from a page."""
    return (
        f' lang="{text(language)}" xml:lang="{text(language)}" dir="auto"'
        if language.replace("-", "").isalnum()
        else ' dir="auto"'
    )


def tags(words: Iterable[str]) -> Html:
    items = "".join(f"<li>{text(word)}</li>" for word in words)
    return f'<ul class="tags" dir="auto">{items}</ul>' if items else ""


def strip(entry: Entry) -> Html:
    """When each site told the story: a mark each on a line of time, the first one filled.

    For eyes; the words stand beside it.
    """
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
        marks.append(
            f'<circle class="{"first" if not place else "told"}" cx="{x:.1f}" cy="{_STRIP_HEIGHT / 2:g}" '
            f'r="{4 if not place else 3}"/>'
        )
    line = f'<line x1="0" x2="{_STRIP_WIDTH}" y1="{_STRIP_HEIGHT / 2:g}" y2="{_STRIP_HEIGHT / 2:g}"/>'
    size = f'width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}" viewBox="0 0 {_STRIP_WIDTH} {_STRIP_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="strip" {size} '
        f'aria-hidden="true">{line}{"".join(reversed(marks))}</svg>'
    )


def story_page(edition: Edition, entry: Entry) -> PortalPage:
    story = entry.story
    week, language = entry.week, of_language(story.pages[0].language)
    sentence = f'<p class="summary"{language}>{text(entry.sentence)}</p>' if entry.sentence else ""
    alt = f"{count_of(len(story.sites), 'site')}, a lane each; time runs to the right. The list below says the same."
    picture = f'<a href="{entry.key}.svg"><img src="{entry.key}.svg" alt="{text(alt)}"/></a>'
    figure = f'<figure class="cascade">{picture}<figcaption>{_caption(entry)}</figcaption></figure>'
    body = (
        f'<article class="story"><p class="when">{time_element(story.pages[0].date)} <a '
        f'href="../{week_path(week)}">{week_title(week)}</a></p>\n'
        f"<h1{language}>{text(story.title)}</h1>\n{sentence}\n{tags(entry.keywords)}\n"
        f"<section><h2>How it went from site to site</h2>\n{figure}\n{_pages(entry)}</section>\n"
        f"{_origin(edition, entry)}</article>"
    )
    return PortalPage(story_path(entry), story.title, body, ARCHIVE)


def _caption(entry: Entry) -> Html:
    links, near = len(entry.story.links), len(entry.story.near)
    said = [
        f"{count_of(links, 'link')} between its pages" if links else "no page links to another",
        f"{count_of(near, 'text')} taken over" if near else "",
    ]
    return text("; ".join(part for part in said if part)).capitalize() + "."


def _pages(entry: Entry) -> Html:
    story = entry.story
    cites: dict[int, list[int]] = {}
    for one, other in story.links:
        cites.setdefault(one, []).append(other)
    shares = {later: (earlier, share) for later, earlier, share in story.near}
    rows = "".join(_row(entry, place, cites.get(place, []), shares.get(place)) for place in range(len(story.pages)))
    return f'<ol class="pages">{rows}</ol>'


def _row(entry: Entry, place: int, cites: Sequence[int], near: tuple[int, float] | None) -> Html:
    pages = entry.story.pages
    page = pages[place]
    said = []
    if place:
        said.append(delay(pages[0].date, page.date))
    if cites:
        said.append("links to " + ", ".join(dict.fromkeys(text(name_of(pages[other].site)) for other in cites)))
    if near is not None and near[1] > 0:
        said.append(f"shares {100 * near[1]:.0f} % with {text(name_of(pages[near[0]].site))}")
    where = f"<b>{text(name_of(page.site))}</b> {time_element(page.date)} <small>{' · '.join(said) or 'first'}</small>"
    title = f"<p{of_language(page.language)}>{leaving(page.url, text(page.title or page.url))}</p>"
    return f'<li id="p{place + 1}"><p class="where">{where}</p>{title}</li>'


def _origin(edition: Edition, entry: Entry) -> Html:
    story = entry.story
    known = entry.provenance or (Provenance("", 0.0),) * len(story.pages)
    rows = "".join(
        f"<li>{_came(page, place + 1, source)}</li>"
        for place, (page, source) in enumerate(zip(story.pages, known, strict=True))
    )
    against = (
        f" {count_of(story.disordered, 'link leads', 'links lead')} to a page that is dated later."
        if story.disordered
        else ""
    )
    relevance = (
        f" Its pages are of the topic {text(edition.portal.topic)} with {entry.relevance:.2f} on average."
        if entry.relevance is not None
        else ""
    )
    return (
        '<details class="origin"><summary>Where this comes from</summary>'
        f"<p>{count_of(len(story.pages), 'page')} of {count_of(len(story.sites), 'site')}, in order "
        f"{ORDERED_BY[story.order]}.{against}{relevance} "
        f'Entry <code>{entry.key}</code>.</p><ol class="came">{rows}</ol></details>'
    )


def _came(page: StoryPage, place: int, source: Provenance) -> Html:
    fetched = f", fetched {utc(source.fetched)}" if source.fetched else ""
    run = f" in {text(source.run)}" if source.run else ""
    return (
        f'<a href="#p{place}">{text(name_of(page.site))}</a>: dated {day(page.date.when)} by '
        f"{DATED_BY[page.date.source]}{fetched}{run}"
    )


SITES_TOLD = 5  # of a story, on a page of many
SITES_SHOWN, WEEKS_SHOWN, WORDS_SHOWN = 8, 6, 14  # in the margin
KEYWORDS_SHOWN = 4  # of a story, on a page of many


def front_page(edition: Edition) -> PortalPage:
    stories = list(edition.front)
    if not stories:
        return PortalPage(
            FRONT,
            edition.portal.title,
            f'<div class="front"><div class="stories">{_nothing(edition)}</div>{_margin(edition)}</div>',
            FRONT,
            True,
        )
    lead, others = teaser(stories[0], "", "lead-story"), "\n".join(teaser(entry, "") for entry in stories[1:])
    more = len(edition.entries) - len(stories)
    rest = (
        f'<p class="more"><a href="{ARCHIVE}">{count_of(more, "more story", "more stories")} in the archive</a></p>'
        if more > 0
        else ""
    )
    grid = f'<div class="grid">\n{others}\n</div>' if others else ""
    body = f'<div class="front">\n<div class="stories">\n{lead}\n{grid}{rest}</div>\n{_margin(edition)}</div>'
    return PortalPage(FRONT, edition.portal.title, body, FRONT, True)


def _nothing(edition: Edition) -> Html:
    if edition.waiting:
        return (
            f'<p class="empty">{count_of(len(edition.waiting), "story waits", "stories wait")} for '
            "the editor's approval.</p>"
        )
    return '<p class="empty">There is no story yet: a story begins when two sites tell one thing.</p>'


def teaser(entry: Entry, root: str, kind: str = "teaser", level: int = 2) -> Html:
    """A story among others. root: what leads from the page to the portal's folder."""
    story = entry.story
    language = of_language(story.pages[0].language)
    pinned = '<span class="pin">Pinned</span>' if entry.verdict is EditorVerdict.PINNED else ""
    sentence = f"<p{language}>{text(entry.sentence)}</p>" if entry.sentence else ""
    return (
        f'<article class="{kind}" id="s-{entry.key}"><p class="when">{time_element(story.pages[0].date)}{pinned}</p>'
        f'<h{level}{language}><a href="{root}{story_path(entry)}">{text(story.title)}</a></h{level}>'
        f"{sentence}{_tellers(entry)}{tags(entry.keywords[:KEYWORDS_SHOWN])}</article>"
    )


def _tellers(entry: Entry) -> Html:
    """The sites in the order in which they told it, each linked to its first page, with how much later it came."""
    first = {page.site: page for page in reversed(entry.story.pages)}
    sites = entry.story.sites
    shown = []
    for place, site in enumerate(sites[:SITES_TOLD]):
        page = first[site]
        later = "" if not place else f" <small>{delay(entry.story.pages[0].date, page.date)}</small>"
        shown.append(f"<li>{leaving(page.url, text(name_of(site)))}{later}</li>")
    more = (
        f"<li><small>and {count_of(len(sites) - SITES_TOLD, 'more site')}</small></li>"
        if len(sites) > SITES_TOLD
        else ""
    )
    return f'<div class="tellers">{strip(entry)}<ol>{"".join(shown)}{more}</ol></div>'


def _margin(edition: Edition) -> Html:
    return f'<aside class="margin">{_sources(edition)}{_words(edition.front)}{_weeks(edition)}</aside>'


def _sources(edition: Edition) -> Html:
    if not edition.sites:
        return ""
    most = max(*(site.stories for site in edition.sites), 1)
    rows = "".join(
        (
            f"<li><span>{leaving(site.home, text(name_of(site.key)))}</span>"
            f"{bar([('told', site.stories)], most, 'meter')}<small>{site.stories}</small></li>"
        )
        for site in edition.sites[:SITES_SHOWN]
    )
    note = f'<p class="more"><a href="{SOURCES}">All {count_of(len(edition.sites), "source")}, with their feeds</a></p>'
    return f'<section><h2>Sources</h2><ol class="ranked">{rows}</ol>{note}</section>'


def _words(entries: Sequence[Entry]) -> Html:
    """Keywords of several stories first, then those of the heaviest."""
    spelling: dict[str, str] = {}
    count: Counter[str] = Counter()
    for entry in entries:
        for word in entry.keywords:
            spelling.setdefault(word.casefold(), word)
            count[word.casefold()] += 1
    words = [spelling[word] for word, _ in count.most_common(WORDS_SHOWN)]
    return f"<section><h2>Words of this edition</h2>{tags(words)}</section>" if words else ""


def _weeks(edition: Edition) -> Html:
    count = Counter(entry.week for entry in edition.entries)
    rows = "".join(
        (
            f'<li><a href="{week_path(week)}">{week_title(week)}</a><small>'
            f"{count_of(count[week], 'story', 'stories')}</small></li>"
        )
        for week in sorted(count, reverse=True)[:WEEKS_SHOWN]
    )
    return f'<section><h2>Archive</h2><ul class="weeks">{rows}</ul></section>' if rows else ""


TITLES_OF_WEEK = 3  # in the list of weeks


def archive_pages(edition: Edition) -> Iterator[PortalPage]:
    """The list of weeks, newest first, and a page for each."""
    weeks: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in edition.entries:
        weeks[entry.week].append(entry)
    order = sorted(weeks)
    body = "\n".join(_week_row(week, weeks[week]) for week in reversed(order))
    yield PortalPage(
        ARCHIVE,
        "Archive",
        f'<h1>Archive</h1>\n<div class="archive">{body or "<p>Nothing was published yet.</p>"}</div>',
        ARCHIVE,
    )
    for place, week in enumerate(order):
        before, after = order[place - 1] if place else "", order[place + 1] if place + 1 < len(order) else ""
        yield _week_page(week, weeks[week], before, after)


def _week_row(week: str, entries: list[Entry]) -> Html:
    titles = "".join(
        f'<li><a href="../{story_path(entry)}" dir="auto">{text(entry.story.title)}</a></li>'
        for entry in _by_reach(entries)[:TITLES_OF_WEEK]
    )
    return (
        f'<section><h2><a href="../{week_path(week)}">{week_title(week)}</a></h2><p class="when">{week_days(week)}, '
        f"{count_of(len(entries), 'story', 'stories')}</p><ul>{titles}</ul></section>"
    )


def _by_reach(entries: list[Entry]) -> list[Entry]:
    """Within a week what counts is who told it, not when in it."""
    return sorted(
        entries, key=lambda entry: (-len(entry.story.sites), -len(entry.story.pages), -entry.published, entry.key)
    )


def _week_page(week: str, entries: list[Entry], before: str, after: str) -> PortalPage:
    path = week_path(week)
    turns = [f'<a rel="prev" href="../{week_path(before)}">← {week_title(before)}</a>' if before else "<span></span>"]
    turns += [f'<a rel="next" href="../{week_path(after)}">{week_title(after)} →</a>' if after else ""]
    stories = "\n".join(teaser(entry, up(path)) for entry in _by_reach(entries))
    head = f'<h1>{week_title(week)}</h1><p class="when">{week_days(week)}</p>'
    return PortalPage(
        path,
        week_title(week),
        f'{head}\n<div class="grid">\n{stories}\n</div>\n<p class="turns">{"".join(turns)}</p>',
        ARCHIVE,
        True,
    )


def sources_page(edition: Edition) -> PortalPage:
    shows_relevance = any(site.relevance is not None for site in edition.sites)
    heads = ["<th>site</th>", '<th class="n">stories</th>', '<th class="n">adds</th>']
    heads += ['<th class="n">of the topic</th>'] if shows_relevance else []
    rows = []
    for site in edition.sites:
        chips = '<span class="pin">Pinned</span>' if site.pinned else ""
        feeds = "".join(f" <small>{leaving(feed, 'feed')}</small>" for feed in site.feeds[:1])
        name = f"<small>{text(site.title)}</small>" if site.title else ""
        cells = [
            f'<th scope="row">{leaving(site.home, text(name_of(site.key)))}{chips}{feeds}<br/>{name}</th>',
            f'<td class="n">{number(site.stories)}</td>',
        ]
        cells.append(f'<td class="n">{_share(site.gain)}</td>')
        cells += [f'<td class="n">{_share(site.relevance)}</td>'] if shows_relevance else []
        rows.append(f"<tr>{''.join(cells)}</tr>")
    table = (
        f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        if rows
        else "<p>No site was chosen yet.</p>"
    )
    covered = (
        f" Together they have {100 * edition.covered:.0f} % of the stories." if edition.covered is not None else ""
    )
    adds = " <i>Adds</i> is the share of all stories that a site has and none above it has."
    subscribe = f'All of them as a list for feed readers: <a href="{OPML}">OPML</a>.'
    note = f'<p class="note">The sites that one would read to miss the least.{covered}{adds} {subscribe}</p>'
    return PortalPage(SOURCES, "Sources", f"<h1>Sources</h1>\n{note}\n{table}", SOURCES)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def about_page(edition: Edition) -> PortalPage:
    portal = edition.portal
    facts = [
        ("Made", utc(edition.made) + (f", and renewed {period(portal.period_s)}" if portal.period_s else "")),
        ("From", f"{edition.run}, ended {utc(edition.run_ended)}" if edition.run else "a collection without runs"),
        ("Pages compared", number(edition.pages)),
        ("Topic", portal.topic or "none: every story of the collection"),
        (
            "Stories",
            f"{number(len(edition.entries))} published"
            + (f", {number(len(edition.waiting))} waiting" if portal.approve else ""),
        ),
        (
            "Approval",
            "an editor approves each story before it is published"
            if portal.approve
            else "stories are published as they are found",
        ),
        ("First story", day(min(entry.published for entry in edition.entries)) if edition.entries else "none yet"),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{text(value)}</dd>" for name, value in facts)
    lacks = "".join(f"<li>{text(lack)}</li>" for lack in edition.lacks)
    missing = f"<h2>What this edition lacks</h2>\n<ul>{lacks}</ul>" if lacks else ""
    how = (
        "<p>A story is what several sites tell of one thing: pages that share much of their text, or link to one "
        "another. Each site that tells it counts "
        "once, and half as much every three days; the heaviest stories stand first. Sources are the sites that "
        "together have most of the stories.</p>"
        "<p>Pages belong to their authors: each story leads to them, and only the sentence with which the first "
        "one begins is shown here.</p>"
    )
    return PortalPage(ABOUT, "About", f'<h1>About</h1>\n{how}\n<dl class="facts">{rows}</dl>\n{missing}', ABOUT)
