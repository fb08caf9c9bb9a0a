"""Tables of stored results: stories, topics and portals."""

from __future__ import annotations

from pathlib import Path

from periplus.api.tables import ResultTable, Rows
from periplus.model.tables import Table, columns_of
from periplus.present.wording import iso
from periplus.urls.scope import site_key
from periplus_topics.api.portal import portals, review_of
from periplus_topics.api.stories import stored_stories, stories_file
from periplus_topics.api.topics import judged_stamp, stored_judgements, topic_file, topic_names, topic_of
from periplus_topics.present.stories import delay
from periplus_topics.store import when_stored

_RELEVANT = 0.5  # probability from which a page counts as relevant
STORIES = Table(
    "stories",
    "Stories published by several sites, those with the greatest weight first.",
    columns_of("""
        story integer: number of the story, by descending weight
        title text searched: title of its first page that has one
        sites integer facet: number of sites with the story
        pages integer: number of pages with the story
        first time: publication of its first page
        last time: publication of its last page
        first_site text facet: the first site with the story
        url text searched: URL of its first page
        language text facet: language of its first page
        ordered text facet: weakest evidence used to order its pages: dates, links, first seen
        told_by text searched: sites with the story, in order
    """),
)
STORY_PAGES = Table(
    "story-pages",
    "Each page of each story, in order.",
    columns_of("""
        story integer: number of the story
        place integer: position in the story, from 1
        url text searched: the address
        site text facet: the site
        title text searched: title without the site's name
        date time: when it was published
        after text: delay after the first page
        dated_by text facet: source of the date
        placed_by text facet: evidence for its position: dates, links, first seen
    """),
)
TOPIC_JUDGEMENTS = Table(
    "judged",
    "Probability that each page belongs to the topic, from the last classification.",
    columns_of("""
        url text searched: the address
        title text searched: the title
        site text facet: the site
        probability real: probability that it belongs to the topic, 0 to 1
        relevant boolean facet: whether the probability is above one half
        label text facet: label set by a user: relevant, not
        beginning text searched: beginning of its content
    """),
)
WORDS = Table(
    "words",
    "The words that best distinguish the topic’s pages from other pages.",
    columns_of("""
        word text searched: the word, folded
        speaks text facet: whether it indicates the topic or the opposite
        weight real: weight; positive values indicate the topic
        positive_share real: share of positive examples with the word
        negative_share real: share of negative examples with the word
    """),
)
ENTRIES = Table(
    "entries",
    "Candidate entries of the portal, as last collected, with the editor's decisions.",
    columns_of("""
        key text: key of the entry
        kind text facet: status: published, waiting, hidden
        verdict text facet: the editor's decision
        title text searched: title of the story
        published time: publication of the first page
        sites integer facet: number of sites with the story
        pages integer: number of pages with the story
        weight real: number of sites with the story, discounted by age
        relevance real: relevance to the portal's topic, 0 to 1
        sentence text searched: first sentence of its content
        keywords text searched: keywords of the story
        url text searched: URL of its first page
    """),
)
PORTAL_SITES = Table(
    "sources",
    "Sites that published the portal’s stories.",
    columns_of("""
        site text searched: the site
        chosen boolean facet: whether the portal follows it
        verdict text facet: the editor's decision: pinned, banned
        stories integer: number of stories on the site
        gain real: share of the stories found on this site but on none listed before it
        relevance real: relevance of its pages to the portal's topic, 0 to 1
    """),
)


def _stories(folder: Path, _: str) -> Rows:
    stored = stored_stories(folder)
    for number, story in enumerate(stored.stories if stored else (), 1):
        first = story.pages[0]
        last = max(page.date.when for page in story.pages)
        yield (number, story.title, len(story.sites), len(story.pages), iso(first.date.when), iso(last),
            str(first.site), str(first.url), first.language,
               story.order.value, ", ".join(story.sites))  # fmt: skip


def _story_pages(folder: Path, _: str) -> Rows:
    stored = stored_stories(folder)
    for number, story in enumerate(stored.stories if stored else (), 1):
        for place, page in enumerate(story.pages, 1):
            after = delay(page.date, story.pages[0].date) if place > 1 else ""
            yield (
                number,
                place,
                page.url,
                page.site,
                page.title,
                iso(page.date.when),
                after,
                page.date.source.value,
                page.order.value,
            )


def _judged_rows(folder: Path, topic: str) -> Rows:
    labels = {True: "relevant", False: "not", None: None}
    for judged in stored_judgements(folder, topic):
        page = judged.page
        yield (
            page.url,
            page.title,
            str(site_key(page.url)),
            round(page.probability, 4),
            page.probability >= _RELEVANT,
            labels[judged.label],
            page.beginning,
        )


def _words(folder: Path, topic: str) -> Rows:
    for word in topic_of(folder, topic).report.telling:
        yield (
            word.word,
            "for it" if word.weight > 0 else "against",
            round(word.weight, 4),
            round(word.positive_share, 4),
            round(word.negative_share, 4),
        )


def _entries(folder: Path, portal: str) -> Rows:
    for entry in review_of(folder, portal).entries:
        yield (entry.key, entry.kind, entry.verdict or None, entry.title, entry.published, len(entry.sites),
            len(entry.pages), round(entry.weight, 4),
               entry.relevance, entry.sentence, ", ".join(entry.keywords), entry.pages[0].url)  # fmt: skip


def _sources(folder: Path, portal: str) -> Rows:
    for site in review_of(folder, portal).sites:
        yield site.key, site.chosen, site.verdict or None, site.stories, round(site.gain, 4), site.relevance


def _review_stamp(folder: Path, portal: str) -> object:
    review = review_of(folder, portal)
    return review.gathered, hash(review.entries), hash(review.sites)


def _stories_stamp(folder: Path, _: str) -> object:
    return when_stored(stories_file(folder))


def portal_names(folder: Path) -> list[str]:
    return [portal.name for portal, _ in portals(folder)]


RESULTS = {
    result.table.name: result
    for result in (
        ResultTable(STORIES, _stories, _stories_stamp),
        ResultTable(STORY_PAGES, _story_pages, _stories_stamp),
        ResultTable(TOPIC_JUDGEMENTS, _judged_rows, judged_stamp, "topic", topic_names),
        ResultTable(WORDS, _words, lambda folder, topic: when_stored(topic_file(folder, topic)), "topic", topic_names),
        ResultTable(ENTRIES, _entries, _review_stamp, "portal", portal_names),
        ResultTable(PORTAL_SITES, _sources, _review_stamp, "portal", portal_names),
    )
}
