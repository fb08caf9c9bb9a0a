"""Properties of influence on any cascades: submodular values, lazy equals plain greedy, bounds hold.

And dates are total.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.document.dates import feed_dates
from periplus.document.publication import DateEvidence, page_date
from periplus.model.web import Url
from periplus_topics.analyse.influence import best_of, bound_at, coverage, gains, lazy_greedy, value_of
from periplus_topics.model import Cascades, Objective, cascades_of_lines

EVENTS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 99)), min_size=1, max_size=5)
CASCADES = st.lists(EVENTS, min_size=1, max_size=12)


def made(stories: list[list[tuple[int, int]]]) -> Cascades:
    return cascades_of_lines(" ".join(f"s{site},{hours}" for site, hours in events) for events in stories)


@settings(max_examples=60)
@given(CASCADES, st.sampled_from(Objective), st.data())
def test_values_are_monotone_and_submodular(
    stories: list[list[tuple[int, int]]], objective: Objective, data: st.DataObject
) -> None:
    cascades = made(stories)
    cover = coverage(cascades, objective)
    every = range(cover.site_count)
    small = data.draw(st.sets(st.sampled_from(every)))
    large = small | data.draw(st.sets(st.sampled_from(every)))
    site = data.draw(st.sampled_from(every))
    assert value_of(cover, sorted(large)) >= value_of(cover, sorted(small)) - 1e-9
    added = [value_of(cover, sorted(some | {site})) - value_of(cover, sorted(some)) for some in (small, large)]
    assert added[0] >= added[1] - 1e-9
    assert (
        gains(cover, best_of(cover, sorted(small)))[site] == np.float64(added[0]).round(12)
        or abs(gains(cover, best_of(cover, sorted(small)))[site] - added[0]) < 1e-9
    )


@settings(max_examples=40)
@given(CASCADES, st.sampled_from(Objective), st.integers(1, 5), st.booleans())
def test_choices_keep_to_the_budget_and_below_every_bound(
    stories: list[list[tuple[int, int]]], objective: Objective, budget: int, by_posts: bool
) -> None:
    cover = coverage(made(stories), objective, by_posts=by_posts)
    sites = lazy_greedy(cover, budget, by_ratio=by_posts).sites
    assert float(cover.costs[list(sites)].sum()) <= budget
    assert bound_at(cover, best_of(cover, sites), budget)[0] >= value_of(cover, sites) - 1e-9


TEXTS = st.text(max_size=200) | st.from_regex(
    r"[0-9]{1,4}[-/. ][0-9A-Za-z]{1,9}[-/. ,]{1,2}[0-9]{1,4}( [0-9:+Zz]{0,9})?", fullmatch=True
)


@settings(max_examples=50)
@given(TEXTS, TEXTS, st.sampled_from(["", "en", "en-us", "cs", "x-?"]), st.floats(0, 4e9))
def test_any_page_has_a_date(text: str, other: str, language: str, seen: float) -> None:
    quoted = text.replace('"', "")
    source = (
        f'<meta name=date content="{quoted}"><time datetime="{quoted}">{other}</time><script '
        f'type=application/ld+json>{{"datePublished":"{quoted}"}}</script>'
    )
    for html in (source, text):
        found = page_date(
            DateEvidence(Url(f"https://e.org/{quoted}"), html, other, (text, other), language, first_seen=seen)
        )
        assert found.when == found.when >= 0


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_feed_or_none(body: bytes) -> None:
    assert isinstance(feed_dates(b"<feed><entry>" + body, Url("https://e.org/f")), dict)
