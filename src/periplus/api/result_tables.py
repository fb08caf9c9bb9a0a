"""Which tables do kept results make, beside those of the store? Stories, pages judged by a topic, its words, a portal's entries and sites.

A table of a topic or a portal is named with it: `judged:films`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from periplus.api.desk import desk_of
from periplus.api.results import judged_stamp, kept_judged, kept_stories, stories_file, when_kept
from periplus.api.topics import topic_file, topic_of
from periplus.model.table import Column, ColumnKind
from periplus.present.story_text import delay
from periplus.present.wording import iso
from periplus.urls.scope import site_key

TEXT, INTEGER, REAL, BOOLEAN, TIME = ColumnKind
_RELEVANT = 0.5  # as everywhere
Rows = Iterator[Sequence[object]]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """rows, stamp: of the table of a topic or portal in a collection's folder; the stamp changes when the rows do."""

    columns: tuple[Column, ...]
    rows: Callable[[Path, str], Rows]
    stamp: Callable[[Path, str], object]
    searched: tuple[str, ...]
    facets: tuple[str, ...] = ()


def _columns(*made: tuple[str, ColumnKind, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind, sentence) for name, kind, sentence in made)


def _stories(folder: Path, _: str) -> Rows:
    found = kept_stories(folder)
    for number, story in enumerate(found.stories if found else (), 1):
        first = story.pages[0]
        last = max(page.date.when for page in story.pages)
        yield (number, story.title, len(story.sites), len(story.pages), iso(first.date.when), iso(last), str(first.site), str(first.url), first.language,
               story.order.value, ", ".join(story.sites))  # fmt: skip


def _story_pages(folder: Path, _: str) -> Rows:
    found = kept_stories(folder)
    for number, story in enumerate(found.stories if found else (), 1):
        for place, page in enumerate(story.pages, 1):
            after = delay(page.date, story.pages[0].date) if place > 1 else ""
            yield number, place, page.url, page.site, page.title, iso(page.date.when), after, page.date.source.value, page.order.value


def _judged(folder: Path, topic: str) -> Rows:
    said = {True: "relevant", False: "not", None: None}
    for one in kept_judged(folder, topic):
        page = one.page
        yield page.url, page.title, str(site_key(page.url)), round(page.probability, 4), page.probability >= _RELEVANT, said[one.label], page.beginning


def _words(folder: Path, topic: str) -> Rows:
    report = topic_of(folder, topic).report
    for word in report.telling if report else ():
        yield word.word, "for it" if word.weight > 0 else "against", round(word.weight, 4), round(word.positive_share, 4), round(word.negative_share, 4)


def _entries(folder: Path, portal: str) -> Rows:
    for entry in desk_of(folder, portal).entries:
        yield (entry.key, entry.kind, entry.verdict or None, entry.title, entry.published, len(entry.sites), len(entry.pages), round(entry.weight, 4),
               entry.relevance, entry.sentence, ", ".join(entry.keywords), entry.pages[0].url)  # fmt: skip


def _sources(folder: Path, portal: str) -> Rows:
    for site in desk_of(folder, portal).sites:
        yield site.key, site.chosen, site.verdict or None, site.stories, round(site.gain, 4), site.relevance


def _desk_stamp(folder: Path, portal: str) -> object:
    desk = desk_of(folder, portal)
    return desk.gathered, hash(desk.entries), hash(desk.sites)


def _stories_stamp(folder: Path, _: str) -> object:
    return when_kept(stories_file(folder))


RESULT_TABLES = {
    "stories": ResultTable(
        _columns(
            ("story", INTEGER, "its number, the weightiest first"), ("title", TEXT, "of its first page that has one"), ("sites", INTEGER, "that tell it"),
            ("pages", INTEGER, "that tell it"), ("first", TIME, "when its first page was published"), ("last", TIME, "when its last page was"),
            ("first_site", TEXT, "the site that had it first"), ("url", TEXT, "its first page"), ("language", TEXT, "of the first page"),
            ("ordered", TEXT, "the weakest word on which a page stands where it stands: dates, links, first seen"), ("told_by", TEXT, "sites, in order"),
        ),
        _stories, _stories_stamp, ("title", "told_by", "url"), ("first_site", "language", "ordered", "sites"),
    ),
    "story-pages": ResultTable(
        _columns(
            ("story", INTEGER, "number of its story"), ("place", INTEGER, "in the story, from 1"), ("url", TEXT, "the address"), ("site", TEXT, "the site"),
            ("title", TEXT, "without the site's name"), ("date", TIME, "when it was published"), ("after", TEXT, "the first page: how much later"),
            ("dated_by", TEXT, "on whose word it is dated"), ("placed_by", TEXT, "what decided its place: dates, links, first seen"),
        ),
        _story_pages, _stories_stamp, ("url", "title"), ("site", "dated_by", "placed_by"),
    ),
    "judged": ResultTable(
        _columns(
            ("url", TEXT, "the address"), ("title", TEXT, "the title"), ("site", TEXT, "the site"),
            ("probability", REAL, "that it belongs to the topic, 0 to 1"),
            ("relevant", BOOLEAN, "whether it belongs rather than not"), ("label", TEXT, "what a person said: relevant, not"),
            ("beginning", TEXT, "of its content"),
        ),
        _judged, judged_stamp, ("url", "title", "beginning"), ("relevant", "label", "site"),
    ),
    "words": ResultTable(
        _columns(
            ("word", TEXT, "the word, folded"), ("speaks", TEXT, "for the topic, or against it"), ("weight", REAL, "above 0: for it"),
            ("positive_share", REAL, "of positive examples that have it"), ("negative_share", REAL, "of negative examples that have it"),
        ),
        _words, lambda folder, topic: when_kept(topic_file(folder, topic)), ("word",), ("speaks",),
    ),
    "entries": ResultTable(
        _columns(
            ("key", TEXT, "of the entry"), ("kind", TEXT, "what becomes of it: published, waiting, hidden"), ("verdict", TEXT, "what the editor decided"),
            ("title", TEXT, "of the story"), ("published", TIME, "when the first page was"), ("sites", INTEGER, "that tell it"),
            ("pages", INTEGER, "that tell it"), ("weight", REAL, "telling sites, each counted less the older"),
            ("relevance", REAL, "to the portal's topic, 0 to 1"), ("sentence", TEXT, "with which its content begins"),
            ("keywords", TEXT, "what it is about"), ("url", TEXT, "its first page"),
        ),
        _entries, _desk_stamp, ("title", "sentence", "keywords", "url"), ("kind", "verdict", "sites"),
    ),
    "sources": ResultTable(
        _columns(
            ("site", TEXT, "the site"), ("chosen", BOOLEAN, "whether the portal follows it"), ("verdict", TEXT, "what the editor decided: pinned, banned"),
            ("stories", INTEGER, "that it tells"), ("gain", REAL, "share of the stories that it has and none before it"),
            ("relevance", REAL, "of its pages to the portal's topic, 0 to 1"),
        ),
        _sources, _desk_stamp, ("site",), ("chosen", "verdict"),
    ),
}  # fmt: skip
