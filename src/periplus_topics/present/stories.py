"""Stories: in lines, as JSON, and as drawings of how each spread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import TextIO

import numpy as np
from markupsafe import Markup

from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import SiteKey
from periplus.present.draw import (
    Axes,
    Key,
    caption,
    clip,
    element,
    heading,
    legend,
    nice,
    page_link,
    px,
    quarters,
    short_names,
    write_sheet,
)
from periplus.present.markup import text_lines
from periplus.present.tables import align, json_text, write_table
from periplus.present.wording import cells, count_of, iso, number, text_bar, utc, visible
from periplus.values import JsonObject, fields_of
from periplus_topics.model import (
    Cascades,
    Edition,
    Entry,
    Holdout,
    Influence,
    Objective,
    Order,
    Stories,
    Story,
    TellingWord,
    Topic,
)

ORDER_WORDS = {
    Order.DATES: "by dates",
    Order.LINKS: "by dates and the direction of links",
    Order.FIRST_SEEN: "partly by the time of discovery",
}
OWN = "periplus_topics.present"
_DAY_S = 86_400.0
LANES_MOST = 60  # sites drawn; later sites share the last lane
NAME_SIGNS = 27
_TICKS = (
    (0, "source"),
    (3600, "1 h"),
    (6 * 3600, "6 h"),
    (86_400, "1 day"),
    (3 * 86_400, "3 days"),
    (7 * 86_400, "1 week"),
    (30 * 86_400, "1 month"),
    (365 * 86_400, "1 year"),
)
_CLOCK = ", %H:%M UTC"
_SCALE_S = 1800.0  # the axis is linear up to about half an hour, logarithmic from there on
_KINDS = {Order.DATES: "teal dot", Order.LINKS: "teal", Order.FIRST_SEEN: "teal hollow"}
GOALS = {
    Objective.DL: "detect the most stories",
    Objective.DT: "detect stories the earliest",
    Objective.PA: "detect stories before most sites have them",
}
SHARES = {
    Objective.DL: "of the stories",
    Objective.DT: "of the time that could be saved",
    Objective.PA: "of the sites that could be ahead of",
}
_COLUMNS = ("rank", "site", "gain", "value", "cost", "stories_added")
SIZE = (900, 440)


def stories_lines(stories: Stories, width: int, most: int) -> list[str]:
    """A summary, then two lines a story, the weightiest first. most: stories shown; -1: all."""
    shown = stories.stories if most < 0 else stories.stories[:most]
    pages = sum(len(story.pages) for story in stories.stories)
    return text_lines("stories.txt", OWN, stories=stories, shown=shown, pages=pages, extent=_extent, width=width)


def _extent(story: Story) -> str:
    return f"{count_of(len(story.sites), 'site')}, {count_of(len(story.pages), 'page')}"


def format_date(date: PageDate, day: str = "%d %B %Y", time: str = ", %H:%M") -> str:
    """`5 May 2026`, with the time where it is known; in UTC."""
    return utc(date.when, day if date.whole_day else day + time)


def iso_date(date: PageDate) -> str:
    """The same for programs, as ISO 8601 has it: `2026-05-05`, or with the time."""
    return iso(date.when)[:10] if date.whole_day else iso(date.when)


def cascade_lines(story: Story, width: int) -> list[str]:
    """One story, its pages in order, with time, site and source."""
    pages = range(len(story.pages))
    links = dict(reversed(story.links))  # of several the first
    copies = {later: (earlier, share) for later, earlier, share in story.near}
    return text_lines(
        "cascade.txt", OWN, story=story, extent=_extent, ordered=ORDER_WORDS[story.order], delay=delay,
        links=[links.get(place) for place in pages], copies=[copies.get(place) for place in pages],
        site_width=min(max(cells(page.site) for page in story.pages), 30), width=max(width, 40),
    )  # fmt: skip


def delay(date: PageDate, first: PageDate) -> str:
    """A time after the source, in its natural unit; before it, as an order by links may have it, with a minus."""
    seconds = date.when - first.when
    if date.source is DateOrigin.FIRST_SEEN:
        return "undated"
    if (date.whole_day or first.whole_day) and abs(seconds) < _DAY_S:
        return "same day" if date.when // _DAY_S == first.when // _DAY_S else "next day"
    for unit, length in (("d", _DAY_S), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= length:
            return f"{seconds / length:+.1f} {unit}"
    return "+0"


def write_stories_json(stories: Stories, out: TextIO) -> None:
    """Everything, for programs: times ISO 8601; links and copies are places in pages."""
    values = [
        {
            "title": story.title, "sites": list(story.sites), "order": story.order.value,
            "disordered_links": story.disordered,
            "pages": [
                {**fields_of(page, "url site title language"),
                    "date": iso_date(page.date),
                 "dated_by": page.date.source.value, "whole_day": page.date.whole_day, "placed_by": page.order.value}
                for page in story.pages
            ],
            "links": [list(pair) for pair in story.links],
            "copies": [[later, earlier, round(share, 4)] for later, earlier, share in story.near],
        }
        for story in stories.stories
    ]  # fmt: skip
    whole = {
        "pages": stories.pages, "sites": len(stories.posts), "posts": dict(stories.posts),
        "dated_by": {source.value: pages for source, pages in stories.dated},
        "digests": list(stories.digests), "stories": values,
    }  # fmt: skip
    out.write(json_text(whole))


def kinds(edition: Edition, waiting: bool) -> list[tuple[str, tuple[Entry, ...]]]:
    """Its entries by what becomes of them."""
    kinds = [("published", edition.entries), ("waiting for approval", edition.waiting), ("hidden", edition.hidden)]
    return kinds[1:2] if waiting else kinds


def edition_values(edition: Edition, limit: int, waiting: bool) -> JsonObject:
    """The edition for programs; times ISO 8601."""
    return {
        "portal": asdict(edition.portal),
        "made": iso(edition.made),
        "run": edition.run,
        "lacks": list(edition.lacks),
        "entries": [_entry_json(entry, kind) for kind, entries in kinds(edition, waiting) for entry in entries[:limit]],
        "sites": [asdict(site) for site in edition.sites],
        "covered": edition.covered,
    }


def _entry_json(entry: Entry, kind: str) -> JsonObject:
    pages = [
        {
            **fields_of(page, "url site title"),
            "date": iso_date(page.date),
            "by": page.date.source,
        }
        for page in entry.story.pages
    ]
    return {
        "key": entry.key, "kind": kind.partition(" ")[0], "verdict": entry.verdict, "title": entry.story.title,
        "published": iso_date(entry.story.pages[0].date),
        "updated": iso_date(entry.latest), **fields_of(entry, "weight relevance sentence"),
        "keywords": list(entry.keywords), "words": entry.words, "alt": entry.alt,
        "pages": pages, "links": list(entry.story.links),
    }  # fmt: skip


WIDTH, TOP, LANE, FOOT = 1000, 96, 26, 44
LEFT, RIGHT = 190, 960
_LINK, _COPY = "bow", "bow copy"
_KEYS = (
    Key("placed by dates", "circle", _KINDS[Order.DATES]),
    Key("placed by links", "circle", _KINDS[Order.LINKS]),
    Key("placed by time of discovery", "circle", _KINDS[Order.FIRST_SEEN]),
    Key("links to", "line", _LINK, 1.4),
    Key("has text of", "line", _COPY, 1.4),
)


def write_cascade_svg(story: Story, out: TextIO) -> None:
    """The story as SVG that needs nothing else, light and dark as the reader's system.

    Each dot links to its page. out: UTF-8.
    """
    lanes = {site: min(place, LANES_MOST - 1) for place, site in enumerate(story.sites)}
    height = TOP + LANE * (max(lanes.values()) + 1) + FOOT
    late = _late(story)
    spots = [
        complex(_x(after, late[-1]), TOP + LANE * (lanes[page.site] + 0.5))
        for after, page in zip(late, story.pages, strict=True)
    ]
    sites = [visible(page.site) for page in story.pages]
    about = (
        f"{_extent(story)}, from {format_date(story.pages[0].date, time=_CLOCK)}, ordered {ORDER_WORDS[story.order]}"
    )
    marks = [heading(clip(story.title, 92), about), *_axis(late[-1], height), *_lanes(story.sites)]
    for later, earlier, share in story.near:
        hint = f"{sites[later]} has {share:.0%} of {sites[earlier]}"
        marks.append(_arc(spots[later], spots[earlier], _COPY, hint))
    for citing, cited in story.links:
        marks.append(_arc(spots[citing], spots[cited], _LINK, f"{sites[citing]} links to {sites[cited]}"))
    marks += [_dot(story, place, spot) for place, spot in reversed(list(enumerate(spots)))]
    write_sheet(out, (WIDTH, height), story.title, [*marks, legend(_KEYS, 14, height - 16)[0]])


def _late(story: Story) -> list[float]:
    """Seconds after the source, never decreasing in the order of pages."""
    first = story.pages[0].date.when
    return list(accumulate((page.date.when - first for page in story.pages), max, initial=0.0))[1:]


def _x(late: float, last: float) -> float:
    return LEFT + (RIGHT - LEFT) * (math.log1p(late / _SCALE_S) / math.log1p(last / _SCALE_S) if last > 0 else 0.0)


def _axis(last: float, height: int) -> Iterator[str]:
    free = -100.0
    for seconds, name in _TICKS:
        x = _x(seconds, last)
        if seconds <= last:
            yield element("line", "axis", x1=x, y1=TOP - 8, x2=x, y2=height - FOOT)
        if seconds <= last and x - free > 48:
            yield caption(x, TOP - 14, name, "soft small mid")
            free = x


def _lanes(sites: Sequence[SiteKey]) -> Iterator[str]:
    more = len(sites) - LANES_MOST
    names = [*sites[: LANES_MOST - 1], count_of(more + 1, "more site")] if more > 0 else sites
    for lane, name in enumerate(short_names(names, NAME_SIGNS)):
        y = TOP + LANE * (lane + 0.5)
        yield element("line", "axis", x1=LEFT, y1=y, x2=RIGHT, y2=y) + caption(LEFT - 14, y + 4, name, "end")


def _arc(start: complex, end: complex, kind: str, hint: str) -> str:
    """An arc from the later page to the earlier one, bent so that arcs between the same lanes are separate."""
    bend = (start + end) / 2 + (18 - 18j if kind == _LINK else -18 + 18j)
    points = (f"{px(point.real)} {px(point.imag)}" for point in (start, bend, end))
    return element("path", kind, "", hint, d="M{}Q{} {}".format(*points))


def _dot(story: Story, place: int, spot: complex) -> str:
    page = story.pages[place]
    late = f"{delay(page.date, story.pages[0].date)}, " if place else ""
    when = f"{late}{format_date(page.date, time=_CLOCK)}, dated by {page.date.source.value}"
    hint = f"{visible(page.title)}\n{visible(page.url)}\n{when}"
    dot = element("circle", _KINDS[page.order], cx=spot.real, cy=spot.imag, r=5 if place else 7)
    return page_link(page.url, dot, hint)


def influence_lines(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, width: int
) -> list[str]:
    """The choice with what each site adds, the coverage as bars, how good that is, what is missed."""
    columns = 5 if any(choice.cost != 1 for choice in influence.chosen) else 4
    rows = [("", "site", "adds", "all", "posts")[:columns]]
    for place, choice in enumerate(influence.chosen, 1):
        values = (f"{choice.gain:.1%}", f"{choice.value:.1%}", number(round(choice.cost)))
        rows.append((f"  {place}", clip(cascades.sites[choice.site], 32), *values)[:columns])
    lines = list(align(rows, {0, 2, 3, 4}))
    room = max(width - max(map(cells, lines)) - 4, 10)
    bars = ["", *(f"  {text_bar(choice.value, room)}" for choice in influence.chosen)]
    return text_lines(
        "influence.txt", OWN, influence=influence, cascades=cascades, goal=GOALS[objective],
        table=[Markup(line + bar) for line, bar in zip(lines, bars, strict=True)],
        verdict=list(verdict_lines(influence, objective, ahead)), stories=len(cascades.offsets) - 1,
        sizes=np.diff(cascades.offsets),
    )  # fmt: skip


def verdict_lines(influence: Influence, objective: Objective, ahead: Holdout | None) -> Iterator[str]:
    """Quality of the choice: compared with its bound, with no choice, and on later stories."""
    yield (
        f"They have {influence.value:.2%} {SHARES[objective]}; the busiest sites within the same budget have "
        f"{_last(influence.most_posts):.2%}."
    )
    yield (
        f"No choice within the budget can exceed {influence.lp_bound:.2%}: this choice reaches at least "
        f"{_share(influence.value, influence.lp_bound):.2%} of the best one."
    )
    if ahead is not None:
        yield (
            "Chosen by the earlier half of the stories, scored on the later "
            f"{count_of(ahead.stories, 'story', 'stories')}: {_last(ahead.later):.2%};"
            f" the busiest sites {_last(ahead.most_posts):.2%}, the best choice in hindsight {ahead.hindsight:.2%}."
        )


def _last(values: Sequence[float]) -> float:
    return values[-1] if values else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def write_influence_csv(cascades: Cascades, influence: Influence, out: TextIO) -> None:
    """A row a chosen site. out: newline=''."""
    rows = [
        (place, cascades.sites[choice.site], choice.gain, choice.value, choice.cost, len(choice.first_of))
        for place, choice in enumerate(influence.chosen, 1)
    ]
    write_table(_COLUMNS, rows, "csv", out)


def write_influence_json(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """Everything, for programs.

    Shares are of what all sites together have; stories are numbered as in the input, from 0.
    """
    whole: dict[str, object] = {
        "objective": objective.value, "sites": len(cascades.sites), "stories": len(cascades.offsets) - 1,
        **fields_of(influence, "budget value lp_bound online_bound"),
        "share_of_bound": _share(influence.value, influence.lp_bound),
        "rule": influence.rule, "evaluations": influence.evaluations,
        "most_posts": _last(influence.most_posts),
        "chosen": [
            {"site": cascades.sites[choice.site], **fields_of(choice, "gain value cost"),
                "adds_stories": list(choice.first_of)}
            for choice in influence.chosen
        ],
        "missed_stories": list(influence.missed),
        "titles": {str(story): cascades.titles[story] for story in range(len(cascades.titles)) if cascades.titles[story]},  # noqa: E501
    }  # fmt: skip
    if ahead is not None:
        whole["holdout"] = {
            "later_stories": ahead.stories, "value": _last(ahead.later), "by_sites": list(ahead.later),
            "hindsight": ahead.hindsight,
            "most_posts": _last(ahead.most_posts),
        }  # fmt: skip
    out.write(json_text(whole))


def write_coverage_svg(
    cascades: Cascades, influence: Influence, objective: Objective, ahead: Holdout | None, out: TextIO
) -> None:
    """SVG that needs nothing else, light and dark as the reader's system. out: UTF-8."""
    costs = list(accumulate(choice.cost for choice in influence.chosen))
    posts = any(choice.cost != 1 for choice in influence.chosen)
    across = max(influence.budget if not posts else max(costs, default=1.0), 1.0)
    axes = Axes(64, 76, 690, 390, across, 1.0)
    values = [choice.value for choice in influence.chosen]
    bound = f"no choice has more: {influence.lp_bound:.1%}"
    curves: list[tuple[str, str, Sequence[float], Sequence[float]]] = [("teal thick", "chosen", costs, values)]
    if ahead is not None:
        curves.append(("red", "on later stories", list(accumulate(ahead.costs)), ahead.later))
    if not posts:
        curves.append(("amber dashed", "most posts", range(1, len(influence.most_posts) + 1), influence.most_posts))
    curves = [curve for curve in curves if curve[3]]
    ends = [(shares[-1], kind, f"{name}: {shares[-1]:.1%}") for kind, name, _, shares in curves]
    title = f"{count_of(len(influence.chosen), 'site')} that {GOALS[objective]}"
    stories = count_of(len(cascades.offsets) - 1, "story", "stories")
    about = f"share {SHARES[objective]} over {'posts' if posts else 'sites'} read; {stories}"
    marks = [
        heading(title, f"{about} on {number(len(cascades.sites))} sites"),
        axes.grid(
            [(tick, number(tick)) for tick in range(0, math.floor(across) + 1, math.ceil(across / 5))],
            [(part / 5, f"{part * 20} %") for part in range(6)],
        ),
        axes.curve([(0, influence.lp_bound), (across, influence.lp_bound)], "grey dotted"),
        *(axes.curve(zip((0, *paid), (0, *shares), strict=False), kind) for kind, _, paid, shares in reversed(curves)),
    ]
    for cost, choice in zip(costs, influence.chosen, strict=True):
        hint = f"{visible(cascades.sites[choice.site])}: adds {choice.gain:.2%}, together {choice.value:.2%}"
        marks.append(element("circle", "teal dot", "", hint, cx=axes.x(cost), cy=axes.y(choice.value), r=3))
    marks.append(axes.names([(influence.lp_bound, "grey dotted", bound), *ends]))
    write_sheet(out, SIZE, f"Sites that {GOALS[objective]}", marks)


def topic_lines(topic: Topic) -> list[str]:
    """For reading, at a terminal."""
    positives = sum(mark.positive for mark in topic.examples)
    return text_lines("topic.txt", OWN, topic=topic, report=topic.report, positives=positives)


def topic_values(topic: Topic) -> JsonObject:
    """For programs."""
    report, positives = topic.report, sum(mark.positive for mark in topic.examples)
    return {
        "name": topic.name, "positive_examples": positives,
        "negative_examples": len(topic.examples) - positives,
        "background_pages": topic.background, "words": len(topic.words),
        "scores": report.scores._asdict(),
        "f_interval": list(report.f_interval),
        "curve": [{"positives": size, "f": f} for size, f in report.curve],
        "held_out": [{"source": source, "recall": recall} for source, recall in report.held_out],
        "top_words": [_word_values(word) for word in report.telling],
        "warnings": list(report.warnings),
    }  # fmt: skip


def _word_values(word: TellingWord) -> JsonObject:
    return {**word._asdict(), "weight": round(word.weight, 4)}


def write_harvest_svg(topic: str, points: Sequence[tuple[int, int, float]], out: TextIO) -> None:
    """points: (pages, of them relevant, share of the last pages), in order. SVG that needs nothing else. out: UTF-8."""
    pages, relevant, lately = points[-1] if points else (0, 0, 0.0)
    across = nice(max(pages, 1))
    counts = Axes(64, 66, 740, 258, across, across)
    shares = Axes(64, 66, 740, 258, across, 1.0)
    title = f"{number(relevant)} of {number(pages)} pages are on the topic"
    marks = [
        heading(title, "pages on the topic over pages fetched; share of the last 500 at the right"),
        counts.grid(quarters(across), quarters(across)),
        *(caption(shares.right + 8, shares.y(part / 4) + 4, f"{part * 25} %", "soft small") for part in range(5)),
        counts.curve([(0, 0), (across, across)], "grey thin dotted"),
        counts.curve([(0, 0), *((at, among) for at, among, _ in points)], "teal"),
        shares.curve([(at, share) for at, _, share in points], "amber"),
    ]
    if pages:
        ends = [
            (relevant / across, "teal", f"{relevant / pages:.0%} in all"),
            (lately, "amber", f"{lately:.0%} lately"),
        ]
        marks.append(shares.names(ends, shares.right + 46))
    write_sheet(out, (900, 300), f"Harvest of {topic}: {title}", marks)
