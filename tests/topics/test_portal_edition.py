"""Selection of a portal's stories: weights, stable keys, editor decisions, topics, limits of the archive."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newsroom import BUOY, DAY, DREDGE, FERRY, LIGHT, NOW, STORIES, story
from periplus.model.web import SiteKey
from periplus_topics.analyse.edition import (
    HALF_LIFE_S,
    RELEVANT,
    WEEK_MOST,
    entry_keys,
    selection,
    weight,
    without_sites,
)
from periplus_topics.model import Decisions, EditorVerdict, EntryKey, Portal

PORTAL = Portal("coast", "The coast", NOW)
NOTHING = Decisions({}, {})
KEYS = dict(zip(("buoy", "dredge", "light", "ferry"), entry_keys(STORIES, {}), strict=True))


def titles(entries):
    return [entry.story.title for entry in entries]


def decided(**verdicts):
    return Decisions({KEYS[name]: verdict for name, verdict in verdicts.items()}, {})


def test_each_site_counts_once_and_its_weight_halves_every_three_days():
    days = HALF_LIFE_S / DAY
    assert weight(story("a", "A", ("x", 0), ("y", days), ("x", 0), ("z", 2 * days)), NOW) == pytest.approx(
        1 + 0.5 + 0.25
    )


def test_a_date_in_the_future_counts_as_now():
    assert weight(story("a", "A", ("x", -5)), NOW) == 1.0


def test_stories_are_sorted_by_weight():
    chosen = selection(PORTAL, STORIES, NOTHING, {}, NOW)
    assert titles(chosen.published) == [BUOY.title, FERRY.title, DREDGE.title, LIGHT.title]
    weights = [entry.weight for entry in chosen.published]
    assert weights == sorted(weights, reverse=True)
    assert (chosen.waiting, chosen.hidden) == ((), ())


def test_the_age_of_a_collection_does_not_change_its_edition():
    later = selection(PORTAL, STORIES, NOTHING, {}, NOW + 3_000 * DAY)
    assert titles(later.published) == titles(selection(PORTAL, STORIES, NOTHING, {}, NOW).published)
    assert later.published[0].weight > 1


def test_pinned_stories_come_first_and_hidden_stories_are_omitted():
    chosen = selection(PORTAL, STORIES, decided(light=EditorVerdict.PINNED, buoy=EditorVerdict.HIDDEN), {}, NOW)
    assert titles(chosen.published) == [LIGHT.title, FERRY.title, DREDGE.title]
    assert titles(chosen.hidden) == [BUOY.title]


def test_with_approval_only_approved_and_pinned_stories_are_published():
    portal = replace(PORTAL, approve=True)
    assert selection(portal, STORIES, NOTHING, {}, NOW).published == ()
    chosen = selection(
        portal,
        STORIES,
        decided(ferry=EditorVerdict.APPROVED, light=EditorVerdict.PINNED, buoy=EditorVerdict.HIDDEN),
        {},
        NOW,
    )
    assert titles(chosen.published) == [LIGHT.title, FERRY.title]
    assert titles(chosen.waiting) == [DREDGE.title]


def test_a_story_off_the_topic_is_omitted_unless_the_editor_approves_it():
    relevance = {page.url: 0.9 if found is not FERRY else RELEVANT - 0.01 for found in STORIES for page in found.pages}
    assert FERRY.title not in titles(selection(PORTAL, STORIES, NOTHING, {}, NOW, relevance).published)
    chosen = selection(PORTAL, STORIES, decided(ferry=EditorVerdict.APPROVED), {}, NOW, relevance)
    assert FERRY.title in titles(chosen.published)
    assert chosen.published[0].relevance == pytest.approx(0.9)


def test_a_story_without_relevance_is_off_the_topic():
    assert selection(PORTAL, STORIES, NOTHING, {}, NOW, {}).published == ()


def test_a_week_of_the_archive_is_limited_except_for_decided_stories():
    many = [
        story(f"s{number}", f"S{number}", ("x.example", 0.5 + number / 1000), ("y.example", 0.5))
        for number in range(WEEK_MOST + 30)
    ]
    last = entry_keys(many, {})[-1]
    chosen = selection(PORTAL, many, Decisions({last: EditorVerdict.APPROVED}, {}), {}, NOW)
    assert len(chosen.published) == WEEK_MOST + 1
    assert chosen.published[-1].key == last


def test_pages_of_a_banned_site_are_removed_from_stories():
    (left,) = without_sites([BUOY], {SiteKey("gazette.example")})
    assert [page.site for page in left.pages] == ["coastwatch.example", "tides.example", "north-pilot.example"]
    assert left.links == ((2, 0),)  # the link to the banned page is removed, the other is renumbered
    assert without_sites([LIGHT], {SiteKey("gazette.example")}) == []  # a story needs two sites
    assert without_sites(STORIES, set()) == list(STORIES)


def test_a_growing_story_keeps_its_key():
    (key,) = entry_keys([DREDGE], {})
    known = {page.url: key for page in DREDGE.pages}
    earlier = story(
        "dredging", "Mud", ("new.example", 4), *[(page.site, (NOW - page.date.when) / DAY) for page in DREDGE.pages]
    )
    assert entry_keys([earlier], known) == (key,) and len(key) == 8
    assert entry_keys([earlier], {}) != (key,)


def test_the_larger_part_of_a_split_story_keeps_the_key():
    key = EntryKey("aaaaaaaa")
    known = {page.url: key for page in BUOY.pages}
    one, three = replace(BUOY, pages=BUOY.pages[:1]), replace(BUOY, pages=BUOY.pages[1:])
    keys = entry_keys([one, three], known)
    assert keys[1] == key
    assert keys[0] != key


@given(st.lists(st.sampled_from(range(6)), min_size=1, max_size=6), st.lists(st.sampled_from(["k1", "k2"]), max_size=6))
@settings(max_examples=30)
def test_keys_are_unique(slugs, known_keys):
    stories = [story(f"s{slug}-{place}", "T", (f"x{slug}", 1), ("y", 1)) for place, slug in enumerate(slugs)]
    known = {found.pages[0].url: EntryKey(key) for found, key in zip(stories, known_keys, strict=False)}
    assert len(set(entry_keys(stories, known))) == len(stories)


def test_weeks_follow_iso_8601():
    chosen = selection(PORTAL, STORIES, NOTHING, {}, NOW)
    assert {entry.story.title: entry.week for entry in chosen.published}[LIGHT.title] == "2026-W19"
    assert chosen.published[0].week == "2026-W20"


@given(
    st.tuples(*[st.sampled_from([None, EditorVerdict.APPROVED, EditorVerdict.PINNED, EditorVerdict.HIDDEN])] * 4),
    st.booleans(),
)
@settings(max_examples=40)
def test_each_story_is_published_waiting_or_hidden_by_its_decision(verdicts, approve):
    decisions = Decisions({key: verdict for key, verdict in zip(KEYS.values(), verdicts, strict=True) if verdict}, {})
    chosen = selection(replace(PORTAL, approve=approve), STORIES, decisions, {}, NOW)
    published, waiting, hidden = (
        {entry.verdict for entry in entries} for entries in (chosen.published, chosen.waiting, chosen.hidden)
    )
    assert len(chosen.published) + len(chosen.waiting) + len(chosen.hidden) == len(STORIES)
    assert EditorVerdict.HIDDEN not in published | waiting
    assert hidden <= {EditorVerdict.HIDDEN}
    assert waiting <= ({None} if approve else set())
    assert not approve or None not in published
