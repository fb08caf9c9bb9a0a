"""What does a portal say of one story: its pages in order, how it spread, and where all this comes from?"""

from __future__ import annotations

from collections.abc import Sequence

from periplus.model.portal import Edition, Entry, Provenance
from periplus.model.story import StoryPage
from periplus.present.markup import Html, text
from periplus.present.portal.frame import ARCHIVE, Page, leaving, of_language, story_path, tags, week_path
from periplus.present.portal.said import DATED_BY, ORDERED_BY, day, delay, name_of, time_element, week_title
from periplus.present.wording import count_of, utc


def story_page(edition: Edition, entry: Entry) -> Page:
    story = entry.story
    week, language = entry.week, of_language(story.pages[0].language)
    sentence = f'<p class="summary"{language}>{text(entry.sentence)}</p>' if entry.sentence else ""
    alt = f"{count_of(len(story.sites), 'site')}, a lane each; time runs to the right. The list below says the same."
    picture = f'<a href="{entry.key}.svg"><img src="{entry.key}.svg" alt="{text(alt)}"/></a>'
    figure = f'<figure class="cascade">{picture}<figcaption>{_caption(entry)}</figcaption></figure>'
    body = (
        f'<article class="story"><p class="when">{time_element(story.pages[0].date)} <a href="../{week_path(week)}">{week_title(week)}</a></p>\n'
        f"<h1{language}>{text(story.title)}</h1>\n{sentence}\n{tags(entry.keywords)}\n"
        f"<section><h2>How it went from site to site</h2>\n{figure}\n{_pages(entry)}</section>\n{_origin(edition, entry)}</article>"
    )
    return Page(story_path(entry), story.title, body, ARCHIVE)


def _caption(entry: Entry) -> Html:
    links, near = len(entry.story.links), len(entry.story.near)
    said = [f"{count_of(links, 'link')} between its pages" if links else "no page links to another", f"{count_of(near, 'text')} taken over" if near else ""]
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
    rows = "".join(f"<li>{_came(page, place + 1, source)}</li>" for place, (page, source) in enumerate(zip(story.pages, known, strict=True)))
    against = f" {count_of(story.disordered, 'link leads', 'links lead')} to a page that is dated later." if story.disordered else ""
    relevance = f" Its pages are of the topic {text(edition.portal.topic)} with {entry.relevance:.2f} on average." if entry.relevance is not None else ""
    return (
        '<details class="origin"><summary>Where this comes from</summary>'
        f"<p>{count_of(len(story.pages), 'page')} of {count_of(len(story.sites), 'site')}, in order {ORDERED_BY[story.order]}.{against}{relevance} "
        f'Entry <code>{entry.key}</code>.</p><ol class="came">{rows}</ol></details>'
    )


def _came(page: StoryPage, place: int, source: Provenance) -> Html:
    fetched = f", fetched {utc(source.fetched)}" if source.fetched else ""
    run = f" in {text(source.run)}" if source.run else ""
    return f'<a href="#p{place}">{text(name_of(page.site))}</a>: dated {day(page.date.when)} by {DATED_BY[page.date.source]}{fetched}{run}'
