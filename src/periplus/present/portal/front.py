"""What does a reader see first? The edition's weightiest story, the others beside one another, sources and words in the margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from periplus.model.portal import Edition, Entry, Verdict
from periplus.present.markup import Html, bar, text
from periplus.present.portal.frame import ARCHIVE, FRONT, SOURCES, Page, leaving, of_language, story_path, strip, tags, week_path
from periplus.present.portal.said import delay, name_of, time_element, week_title
from periplus.present.wording import count_of

SITES_TOLD = 5  # of a story, on a page of many
SITES_SHOWN, WEEKS_SHOWN, WORDS_SHOWN = 8, 6, 14  # in the margin
KEYWORDS_SHOWN = 4  # of a story, on a page of many


def front_page(edition: Edition) -> Page:
    stories = list(edition.front)
    if not stories:
        return Page(FRONT, edition.portal.title, f'<div class="front"><div class="stories">{_nothing(edition)}</div>{_margin(edition)}</div>', FRONT, True)
    lead, others = teaser(stories[0], "", "lead-story"), "\n".join(teaser(entry, "") for entry in stories[1:])
    more = len(edition.entries) - len(stories)
    rest = f'<p class="more"><a href="{ARCHIVE}">{count_of(more, "more story", "more stories")} in the archive</a></p>' if more > 0 else ""
    grid = f'<div class="grid">\n{others}\n</div>' if others else ""
    body = f'<div class="front">\n<div class="stories">\n{lead}\n{grid}{rest}</div>\n{_margin(edition)}</div>'
    return Page(FRONT, edition.portal.title, body, FRONT, True)


def _nothing(edition: Edition) -> Html:
    if edition.waiting:
        return f'<p class="empty">{count_of(len(edition.waiting), "story waits", "stories wait")} for the editor\'s approval.</p>'
    return '<p class="empty">There is no story yet: a story begins when two sites tell one thing.</p>'


def teaser(entry: Entry, root: str, kind: str = "teaser", level: int = 2) -> Html:
    """A story among others. root: what leads from the page to the portal's folder."""
    story = entry.story
    language = of_language(story.pages[0].language)
    pinned = '<span class="pin">Pinned</span>' if entry.verdict is Verdict.PINNED else ""
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
    more = f"<li><small>and {count_of(len(sites) - SITES_TOLD, 'more site')}</small></li>" if len(sites) > SITES_TOLD else ""
    return f'<div class="tellers">{strip(entry)}<ol>{"".join(shown)}{more}</ol></div>'


def _margin(edition: Edition) -> Html:
    return f'<aside class="margin">{_sources(edition)}{_words(edition.front)}{_weeks(edition)}</aside>'


def _sources(edition: Edition) -> Html:
    if not edition.sites:
        return ""
    most = max(*(site.stories for site in edition.sites), 1)
    rows = "".join(
        f"<li><span>{leaving(site.home, text(name_of(site.key)))}</span>{bar([('told', site.stories)], most, 'meter')}<small>{site.stories}</small></li>"
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
        f'<li><a href="{week_path(week)}">{week_title(week)}</a><small>{count_of(count[week], "story", "stories")}</small></li>'
        for week in sorted(count, reverse=True)[:WEEKS_SHOWN]
    )
    return f'<section><h2>Archive</h2><ul class="weeks">{rows}</ul></section>' if rows else ""
