"""The news web of the demo: complete, dated, with all planted stories found, and its portal."""

import re
from collections import Counter
from datetime import UTC, datetime
from itertools import combinations
from urllib.parse import urljoin, urlsplit

import pytest

from periplus.api.collection import Collection
from periplus_demo import coastnews as demo_news
from periplus_topics.api import portal as portals
from periplus_topics.api.stories import stories_of
from periplus_topics.api.topics import TopicOrder, train_topic
from periplus_topics.model import Portal
from stored import stored

TODAY = datetime(2025, 6, 14, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def coastnews():
    return demo_news


@pytest.fixture(scope="module")
def planted_topics(coastnews):
    """The topic of each story that several sites have, by its slug."""
    sites = {}
    for post in coastnews.posts(TODAY):
        sites.setdefault(post.slug, set()).add(coastnews.SITES[post.site][1])
    several = Counter(post.slug for post in coastnews.posts(TODAY))
    return {slug: (topics - {"both"}).pop() for slug, topics in sites.items() if several[slug] > 1}


@pytest.fixture(scope="module")
def pages(coastnews):
    """HTML by URL of all pages reachable from the starts."""
    web, found, waiting = coastnews.NewsWeb(TODAY), {}, coastnews.starts("")
    while waiting:
        url = waiting.pop()
        if url in found:
            continue
        parts = urlsplit(url)
        answer = web.answer(parts.path, f"http://{parts.netloc}", 0)
        assert answer.status == 200, url
        if answer.media_type.startswith("text/html"):
            found[url] = answer.body.decode()
            waiting += [urljoin(url, link) for link in re.findall(r"href=[\"']([^\"']+)", found[url])]
    return found


@pytest.fixture(scope="module")
def folder(coastnews, pages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("news") / "news.periplus"
    return stored(folder, pages, coastnews.starts(""), now=TODAY.timestamp())


def test_every_post_can_be_reached(coastnews, pages):
    assert len(pages) == len(coastnews.SITES) + len(coastnews.posts(TODAY))
    assert not [url for url, html in pages.items() if re.search(r"\{[\w-]+@\w+\}", html)]  # each link has its address


def test_the_planted_stories_are_found(coastnews, folder, planted_topics):
    truth = {
        coastnews.address(post, ""): post.slug
        for post in coastnews.posts(TODAY)
        if post.slug in planted_topics and post.site != "sennight"
    }
    planted = {pair for pair in combinations(sorted(truth), 2) if truth[pair[0]] == truth[pair[1]]}
    found = stories_of(folder)
    pairs = {pair for story in found.stories for pair in combinations(sorted(page.url for page in story.pages), 2)}
    precision, recall = len(pairs & planted) / len(pairs), len(pairs & planted) / len(planted)
    assert precision == 1.0
    assert 2 * precision * recall / (precision + recall) >= 0.95


def test_a_portal_of_one_topic_has_its_stories_and_no_others(coastnews, folder, planted_topics, tmp_path):
    topic = {"sea": [], "land": []}
    for post in coastnews.posts(TODAY):
        if coastnews.SITES[post.site][1] in topic:
            topic[coastnews.SITES[post.site][1]].append(coastnews.address(post, ""))
    with Collection(folder) as kept:
        train_topic(kept, TopicOrder("sea", topic["sea"][:30], topic["land"]))
    portals.create(folder, Portal("coast", "The Seven Lights", TODAY.timestamp(), topic="sea"))
    edition, _ = portals.build(folder, "coast", tmp_path / "out", TODAY.timestamp())
    shown = [re.search(r"/([\w-]+)\.html", entry.story.pages[0].url)[1] for entry in edition.entries]
    assert sorted(shown) == sorted(slug for slug, topic in planted_topics.items() if topic == "sea")
    assert all(entry.keywords and entry.sentence for entry in edition.entries)
    assert {feed for site in edition.sites for feed in site.feeds} == {
        f"http://{site.key}/feed.xml" for site in edition.sites
    }
