"""What a topical crawl learns: weights of evidence, and the value of pages that similar pages lead to."""

from __future__ import annotations

import random

import numpy as np
import pytest

from periplus.model.web import Url
from periplus_topics.schedule.learning import PULL, ROWS, EvidenceWeights, LeadTally, chances_of, fit_from
from periplus_topics.schedule.policy import Pointer, TopicalPages, expected_relevance
from periplus_topics.schedule.queue import PageQueue


@pytest.mark.parametrize("seed", range(8))
def test_the_weights_minimize_the_loss(seed):
    rng = np.random.default_rng(seed)
    rows, start = rng.normal(0, 3, (200, 5)), rng.normal(0, 1, 5)
    labels = rng.random(200) < chances_of(rows @ rng.normal(0, 1, 5))
    weights = fit_from(start, rows, labels)
    slope = rows.T @ (chances_of(rows @ weights) - labels) + PULL * (weights - start)
    assert np.abs(slope).max() < 0.05


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_weights_stay_finite_for_any_evidence(scale):
    rng = np.random.default_rng(1)
    for labels in (np.zeros(50, np.bool_), np.ones(50, np.bool_), rng.random(50) < 0.5):
        assert np.isfinite(fit_from(np.full(4, 9.0), rng.normal(0, 1, (50, 4)) * scale, labels)).all()


def test_the_sample_of_pages_covers_the_whole_crawl():
    weights = EvidenceWeights(np.zeros(2))
    taken = [read for read in range(20 * ROWS) if weights.takes(read)]
    for read in range(20 * ROWS):
        if weights.takes(read):
            weights.book(read, np.array([1.0, read / (20 * ROWS)]), read % 3 == 0)
    assert len(weights._rows) < ROWS < len(taken)
    assert weights._rows[0][1] == 0.0
    assert weights._rows[-1][1] > 0.95


def test_a_trait_predicts_how_many_good_pages_a_page_leads_to():
    """Trait 1: lists with ten pages of value 0.9. Trait 2: items without links. Trait 3: both."""
    tally = LeadTally(8)
    for _ in range(30):
        tally.book(np.array([1, 3]))
        for size in range(10):
            tally.credit(np.array([1, 3]), size, 1.0, 0.9)
        tally.book(np.array([2, 3]))
    sizes, worths = tally.expected_worth(np.array([[1, 3], [2, 3], [3, 8], [8, 8]], np.int32), 0.3)
    assert sizes[0] > 6
    assert sizes[1] < 1 < sizes[3] < sizes[0]
    assert worths[0] > 0.7
    assert worths[3] == pytest.approx(0.3)


def item(host, page):
    return Url(f"https://h{host}.test/item/{page}")


def listed(host, page):
    return Url(f"https://h{host}.test/list?page={page}")


def test_a_list_off_the_topic_has_the_value_of_similar_lists():
    """After 5 lists of good pages and a list of bad pages, a list of the first kind precedes a bad page and a list of
    the second kind.
    """
    queue = PageQueue(expected_relevance)
    queue.start([listed(0, 0)])
    for page in range(6):
        kind = "bad" if page == 5 else "good"
        items = [item(9 * (page == 5), 100 * page + number) for number in range(10)]
        following = listed(0, page + 1) if page < 5 else Url("https://h0.test/other?page=1")
        links = [Pointer(one, f"{kind} one", 0.25) for one in items]
        queue.read(listed(0, page), 0.02, [*links, Pointer(following, f"{kind} pages", 0.25)])
        for one in items[:8]:
            queue.read(one, 0.02 if page == 5 else 0.95, ())
    seen = queue.seen
    lists = [listed(0, 9), Url("https://h0.test/other?page=9")]
    queue.read(
        Url("https://h0.test/map"), 0.02, [Pointer(lists[0], "good pages", 0.25), Pointer(lists[1], "bad pages", 0.25)]
    )
    good, bad, other = expected_relevance(seen, np.array([seen.number_of[url] for url in (*lists, item(9, 509))]))
    assert good > bad
    assert good > other


def test_a_page_gets_credit_for_pages_at_most_two_links_away():
    seen = TopicalPages()
    chain = [Url(f"https://a.test/{name}") for name in ("top", "middle", "list", "item")]
    for page, following in zip(chain, [*chain[1:], None], strict=True):
        seen.book(page, 0.5, [Pointer(following, "", 0.1)] if following else ())
    assert [seen.led_to[seen.number_of[page]] for page in chain] == [2.0, 2.0, 1.0, 0.0]


def test_pages_that_link_to_the_same_page_share_its_credit():
    seen = TopicalPages()
    a, b, both = (Url(f"https://a.test/{name}") for name in ("a", "b", "both"))
    for source in (a, b):
        seen.book(source, 0.1, [Pointer(both, "", 0.1)])
    seen.book(both, 0.9, ())
    assert seen.led_to[seen.number_of[a]] == 0.5
    assert seen.led_to[seen.number_of[b]] == 0.0


def test_learning_from_stored_pages_restores_the_same_state():
    """An interrupted crawl resumes with the same knowledge."""
    rng = random.Random(4)
    history = [
        (item(rng.randrange(4), page), rng.random() ** 2,
         [Pointer(item(rng.randrange(4), rng.randrange(900)), rng.choice(("one", "list", "")), 0.3) for _ in range(5)])
        for page in range(150)
    ]  # fmt: skip
    first, again = PageQueue(expected_relevance), PageQueue(expected_relevance)
    first.start([item(0, 0)])
    again.start([item(0, 0)])
    for url, worth, links in history:
        first.peek("h1.test:443")
        first.read(url, worth, links)
        again.read(url, worth, links)
    waiting = np.flatnonzero(first.seen.waits[: len(first.seen)])
    assert (expected_relevance(first.seen, waiting) == expected_relevance(again.seen, waiting)).all()
    assert not np.array_equal(first.seen.weights.values, first.seen.weights.start)
