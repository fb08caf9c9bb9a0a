"""Selects the stories of a portal's edition: their order, keys and lead sentences."""

from __future__ import annotations

import base64
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from periplus.document.digest import without_marks
from periplus.model.page import Block, BlockKind, Part
from periplus.model.web import SiteKey, Url
from periplus.urls.canonical import url_id
from periplus.values import frozen
from periplus_topics.model import Decisions, EditorVerdict, Entry, EntryKey, Portal, Stories, Story

# A publication counts half after three days: eight sites last week weigh as much as two today, so a weekly portal still
# turns over
HALF_LIFE_S = 3 * 86_400.0
RELEVANT = 0.5  # relevance models are calibrated: above this a page is more likely on topic than not
LEAST_SITES = 2  # per story, as in story detection
WEEK_MOST = 40  # stories per week in the archive: more than an editor reads
# 40 bits: among 10,000 stories a collision occurs in one of 20,000 portals; the later story then gets another key
_KEY_BYTES = 5
LEAST_CHARS = 60  # of a paragraph: shorter ones are bylines and dates
ENOUGH_CHARS = 90  # a shorter sentence is followed by the next one
MOST_CHARS = 260  # three lines in a column of a portal
LINKS_MOST = 0.5  # of a paragraph's characters: beyond, it is a list of links
# a paragraph about the page itself; its news follows
_NOTES = re.compile(
    r"\W*(?:updated?|edit(?:ed)?|corrections?|clarification|editor['’]s note)\b[^.:!?]{0,40}:", re.IGNORECASE
)
_ENDS = re.compile(r"[.!?…。！？][\"'”’»)\]]*(?=\s|$)|[。！？]")  # Chinese and Japanese have no blank after a sentence


@frozen
class Selection:
    """The fate of the stories in an edition. Each list by weight, pinned ones first."""

    published: tuple[Entry, ...]
    waiting: tuple[Entry, ...]
    hidden: tuple[Entry, ...]


def without_sites(stories: Iterable[Story], banned: Collection[SiteKey]) -> list[Story]:
    """The stories without pages of these sites; stories left with a single site are dropped."""
    return [left for story in stories if (left := _drop_sites(story, banned)) is not None]


def without_banned_sites(stories: Stories, decided: Decisions) -> Stories:
    """The stories without pages of banned sites."""
    banned = {site for site, verdict in decided.sites.items() if verdict is EditorVerdict.BANNED}
    left = without_sites(stories.stories, banned)
    return replace(stories, stories=tuple(left), posts=tuple(row for row in stories.posts if row[0] not in banned))


def _drop_sites(story: Story, banned: Collection[SiteKey]) -> Story | None:
    places = [place for place, page in enumerate(story.pages) if page.site not in banned]
    if len(places) == len(story.pages):
        return story
    if len({story.pages[place].site for place in places}) < LEAST_SITES:
        return None
    new = {place: number for number, place in enumerate(places)}
    links = tuple((new[source], new[other]) for source, other in story.links if source in new and other in new)
    near = tuple((new[first], new[other], share) for first, other, share in story.near if first in new and other in new)
    return replace(story, pages=tuple(story.pages[place] for place in places), links=links, near=near)


def entry_keys(stories: Sequence[Story], keys_by_url: Mapping[Url, EntryKey]) -> tuple[EntryKey, ...]:
    """A unique key for each story: the key under which most of its pages were published, else a new one from its first
    page.

    If two stories claim a key (a story was split), the story with more of its pages keeps it; ties go to the first.
    """
    wishes = [
        Counter(keys_by_url[page.url] for page in story.pages if page.url in keys_by_url).most_common(1)
        for story in stories
    ]
    order = sorted(range(len(stories)), key=lambda place: -wishes[place][0][1] if wishes[place] else 0)
    keys: dict[int, EntryKey] = {}
    taken = set(keys_by_url.values())
    given: set[EntryKey] = set()
    for place in order:
        wished_key = wishes[place][0][0] if wishes[place] else None
        key = (
            wished_key
            if wished_key is not None and wished_key not in given
            else _new_key(stories[place].pages[0].url, taken)
        )
        given.add(key)
        taken.add(key)
        keys[place] = key
    return tuple(keys[place] for place in range(len(stories)))


def _new_key(url: Url, taken: Collection[EntryKey]) -> EntryKey:
    salt = ""
    while True:
        number = url_id(Url(url + salt)) & (1 << 8 * _KEY_BYTES) - 1
        key = EntryKey(base64.b32encode(number.to_bytes(_KEY_BYTES, "big")).decode("ascii").lower())
        if key not in taken:
            return key
        salt += "#"  # no URL here has a fragment


def weight(story: Story, moment: float) -> float:
    """The weight of a story at a time: the sum over its sites, each by its first page, halved every HALF_LIFE_S."""
    first: dict[SiteKey, float] = {}
    for page in story.pages:
        first[page.site] = min(page.date.when, first.get(page.site, page.date.when))
    return sum(math.exp2(-max(moment - when, 0.0) / HALF_LIFE_S) for when in first.values())


def selection(
    portal: Portal,
    stories: Sequence[Story],
    decisions: Decisions,
    keys_by_url: Mapping[Url, EntryKey],
    now: float,
    relevance: Mapping[Url, float] | None = None,
) -> Selection:
    """The entries of an edition, without their texts.

    stories: without those of banned sites. relevance: of pages to the topic, 0 to 1; pages without a value do not
    count; None: no topic. A story off topic is left out unless the editor approved or pinned it; so are stories beyond
    WEEK_MOST in a week that are not on the front page. With portal.approve only approved and pinned entries are
    published; the rest wait.
    """
    entries = []
    # weights in an old collection are computed as of its newest page
    moment = min(now, max((page.date.when for story in stories for page in story.pages), default=now))
    for key, story in zip(entry_keys(stories, keys_by_url), stories, strict=True):
        verdict, score = decisions.entries.get(key), _relevance(story, relevance)
        if verdict is None and score is not None and score < RELEVANT:
            continue
        entries.append(Entry(key, story, weight(story, moment) * (1.0 if score is None else score), score, verdict))
    entries.sort(
        key=lambda entry: (entry.verdict is not EditorVerdict.PINNED, -entry.weight, -entry.last_update_s, entry.key)
    )
    hidden = tuple(entry for entry in entries if entry.verdict is EditorVerdict.HIDDEN)
    shown = _heaviest([entry for entry in entries if entry.verdict is not EditorVerdict.HIDDEN], portal.stories)
    waits = [portal.approve and entry.verdict not in (EditorVerdict.APPROVED, EditorVerdict.PINNED) for entry in shown]
    published = tuple(entry for entry, waiting in zip(shown, waits, strict=True) if not waiting)
    return Selection(published, tuple(entry for entry, waiting in zip(shown, waits, strict=True) if waiting), hidden)


def _relevance(story: Story, relevance: Mapping[Url, float] | None) -> float | None:
    if relevance is None:
        return None
    scores = [relevance[page.url] for page in story.pages if page.url in relevance]
    return sum(scores) / len(scores) if scores else 0.0


def _heaviest(entries: Iterable[Entry], front: int) -> list[Entry]:
    """The first `front` entries, and the first WEEK_MOST of each week; entries with a verdict are always kept.

    entries: in order.
    """
    of_week: dict[str, int] = defaultdict(int)
    chosen = []
    for place, entry in enumerate(entries):
        of_week[entry.week] += 1
        if place < front or of_week[entry.week] <= WEEK_MOST or entry.verdict is not None:
            chosen.append(entry)
    return chosen


def leading_sentence(blocks: Sequence[Block], parts: Sequence[Part] | None, title: str = "") -> str:
    """The beginning of the first running text of the content: a sentence, or a few short ones; a long one is cut at a
    word.

    parts: one per block; None: everything is content. title: must not be repeated. Returns '' if there is no such text.
    """
    marked = parts if parts is not None and len(parts) == len(blocks) else [Part.CONTENT] * len(blocks)
    plain_title = without_marks(title)
    for block, part in zip(blocks, marked, strict=True):
        is_text = block.kind is BlockKind.PARAGRAPH and part is Part.CONTENT and len(block.text) >= LEAST_CHARS
        if (
            is_text
            and not _NOTES.match(block.text)
            and block.link_chars <= LINKS_MOST * len(block.text)
            and without_marks(block.text) != plain_title
        ):
            return _beginning(block.text[: 2 * MOST_CHARS])
    return ""


def _beginning(text: str) -> str:
    """One or a few sentences, at most MOST_CHARS."""
    end = 0
    for place in _ends(text):
        if place > MOST_CHARS:
            break
        end = place
        if end >= ENOUGH_CHARS:
            break
    if end:
        return text[:end]
    if len(text) <= MOST_CHARS:
        return text
    room = text[:MOST_CHARS]
    return room[: room.rfind(" ")].rstrip(" ,;:–—-") + "…" if " " in room else room + "…"


def _ends(text: str) -> list[int]:
    """Ends of sentences: after a mark not followed by a lower-case letter, and not after an initial (`J. Smith`)."""
    ends = []
    for match in _ENDS.finditer(text):
        follows = text[match.end() :].lstrip()[:1]
        initial = re.search(r"(?:^|\s)\w$", text[: match.start()]) is not None and match[0] == "."
        if not follows.islower() and not initial:
            ends.append(match.end())
    return ends
