"""What does a portal say beside its stories: the archive by weeks, its sources, how it is made?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from periplus.model.portal import Edition, Entry
from periplus.present.markup import Html, text
from periplus.present.portal.frame import ABOUT, ARCHIVE, OPML, SOURCES, Page, leaving, story_path, up, week_path
from periplus.present.portal.front import teaser
from periplus.present.portal.said import day, name_of, period, week_days, week_title
from periplus.present.wording import count_of, number, utc

TITLES_OF_WEEK = 3  # in the list of weeks


def archive_pages(edition: Edition) -> Iterator[Page]:
    """The list of weeks, newest first, and a page for each."""
    weeks: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in edition.entries:
        weeks[entry.week].append(entry)
    order = sorted(weeks)
    body = "\n".join(_week_row(week, weeks[week]) for week in reversed(order))
    yield Page(ARCHIVE, "Archive", f'<h1>Archive</h1>\n<div class="archive">{body or "<p>Nothing was published yet.</p>"}</div>', ARCHIVE)
    for place, week in enumerate(order):
        before, after = order[place - 1] if place else "", order[place + 1] if place + 1 < len(order) else ""
        yield _week_page(week, weeks[week], before, after)


def _week_row(week: str, entries: list[Entry]) -> Html:
    titles = "".join(f'<li><a href="../{story_path(entry)}" dir="auto">{text(entry.story.title)}</a></li>' for entry in _by_reach(entries)[:TITLES_OF_WEEK])
    return (
        f'<section><h2><a href="../{week_path(week)}">{week_title(week)}</a></h2><p class="when">{week_days(week)}, '
        f"{count_of(len(entries), 'story', 'stories')}</p><ul>{titles}</ul></section>"
    )


def _by_reach(entries: list[Entry]) -> list[Entry]:
    """Within a week what counts is who told it, not when in it."""
    return sorted(entries, key=lambda entry: (-len(entry.story.sites), -len(entry.story.pages), -entry.published, entry.key))


def _week_page(week: str, entries: list[Entry], before: str, after: str) -> Page:
    path = week_path(week)
    turns = [f'<a rel="prev" href="../{week_path(before)}">← {week_title(before)}</a>' if before else "<span></span>"]
    turns += [f'<a rel="next" href="../{week_path(after)}">{week_title(after)} →</a>' if after else ""]
    stories = "\n".join(teaser(entry, up(path)) for entry in _by_reach(entries))
    head = f'<h1>{week_title(week)}</h1><p class="when">{week_days(week)}</p>'
    return Page(path, week_title(week), f'{head}\n<div class="grid">\n{stories}\n</div>\n<p class="turns">{"".join(turns)}</p>', ARCHIVE, True)


def sources_page(edition: Edition) -> Page:
    shows_relevance = any(site.relevance is not None for site in edition.sites)
    heads = ["<th>site</th>", '<th class="n">stories</th>', '<th class="n">adds</th>']
    heads += ['<th class="n">of the topic</th>'] if shows_relevance else []
    rows = []
    for site in edition.sites:
        chips = '<span class="pin">Pinned</span>' if site.pinned else ""
        feeds = "".join(f" <small>{leaving(feed, 'feed')}</small>" for feed in site.feeds[:1])
        name = f"<small>{text(site.title)}</small>" if site.title else ""
        cells = [f'<th scope="row">{leaving(site.home, text(name_of(site.key)))}{chips}{feeds}<br/>{name}</th>', f'<td class="n">{number(site.stories)}</td>']
        cells.append(f'<td class="n">{_share(site.gain)}</td>')
        cells += [f'<td class="n">{_share(site.relevance)}</td>'] if shows_relevance else []
        rows.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(rows)}</tbody></table>" if rows else "<p>No site was chosen yet.</p>"
    covered = f" Together they have {100 * edition.covered:.0f} % of the stories." if edition.covered is not None else ""
    adds = " <i>Adds</i> is the share of all stories that a site has and none above it has."
    subscribe = f'All of them as a list for feed readers: <a href="{OPML}">OPML</a>.'
    note = f'<p class="note">The sites that one would read to miss the least.{covered}{adds} {subscribe}</p>'
    return Page(SOURCES, "Sources", f"<h1>Sources</h1>\n{note}\n{table}", SOURCES)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def about_page(edition: Edition) -> Page:
    portal = edition.portal
    facts = [
        ("Made", utc(edition.made) + (f", and renewed {period(portal.period_s)}" if portal.period_s else "")),
        ("From", f"{edition.run}, ended {utc(edition.run_ended)}" if edition.run else "a collection without runs"),
        ("Pages compared", number(edition.pages)),
        ("Topic", portal.topic or "none: every story of the collection"),
        ("Stories", f"{number(len(edition.entries))} published" + (f", {number(len(edition.waiting))} waiting" if portal.approve else "")),
        ("Approval", "an editor approves each story before it is published" if portal.approve else "stories are published as they are found"),
        ("First story", day(min(entry.published for entry in edition.entries)) if edition.entries else "none yet"),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{text(value)}</dd>" for name, value in facts)
    lacks = "".join(f"<li>{text(lack)}</li>" for lack in edition.lacks)
    missing = f"<h2>What this edition lacks</h2>\n<ul>{lacks}</ul>" if lacks else ""
    how = (
        "<p>A story is what several sites tell of one thing: pages that share much of their text, or link to one another. Each site that tells it counts "
        "once, and half as much every three days; the heaviest stories stand first. Sources are the sites that together have most of the stories.</p>"
        "<p>Pages belong to their authors: each story leads to them, and only the sentence with which the first one begins is shown here.</p>"
    )
    return Page(ABOUT, "About", f'<h1>About</h1>\n{how}\n<dl class="facts">{rows}</dl>\n{missing}', ABOUT)
