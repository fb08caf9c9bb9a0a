"""Responses to a request for robots.txt by RFC 9309, and robots directives of pages."""

import pytest

from periplus.document.robots import DAY_S, Access, RobotsVerdict, page_directives, robots_from_answer
from periplus.model.visit import Cause

# 2.3.1 Access Results


@pytest.mark.parametrize(
    ("status", "cause", "access"),
    [
        (200, "", Access.RULES),
        (204, "", Access.RULES),
        (301, "", Access.ALL),
        (302, "", Access.ALL),
        (401, "", Access.ALL),
        (403, "", Access.ALL),
        (404, "", Access.ALL),
        (410, "", Access.ALL),
        (429, "", Access.NONE),
        (500, "", Access.NONE),
        (503, "", Access.NONE),
        (599, "", Access.NONE),
        (999, "", Access.NONE),
        (0, "", Access.NONE),
        (100, "", Access.NONE),
        *((0, cause, Access.NONE) for cause in Cause),
        (200, Cause.RESET, Access.NONE),
    ],
)
def test_rfc9309_2_3_1_the_status_decides_the_access(status, cause, access):
    answer = robots_from_answer(status, cause, b"user-agent: *\ndisallow: /b")
    assert answer.access is access
    assert robots_from_answer(answer.status, answer.cause, answer.body) == answer
    rules = answer.robots().group_for()
    assert rules.decide("/a").allowed is (access is not Access.NONE)
    assert rules.decide("/b").allowed is (access is Access.ALL)


def test_an_unreachable_robots_txt_has_its_cause():
    assert robots_from_answer(503).robots().group_for().decide("/x") == RobotsVerdict(
        False, "robots.txt is unreachable: status 503", 0
    )
    assert "no-first-byte" in robots_from_answer(0, Cause.FIRST_BYTE).robots().group_for().decide("/x").rule


@pytest.mark.parametrize(
    ("cache_control", "life_s"),
    [
        ("", DAY_S),
        ("public", DAY_S),
        ("max-age=3600", 3600.0),
        ("public, Max-Age = 7200", 7200.0),
        ('max-age="600"', 600.0),
        ("max-age=0", 300.0),
        ("no-cache", 300.0),
        ("no-store, max-age=900", 900.0),
        ("max-age=999999999", DAY_S),
        ("s-maxage=5", DAY_S),
        ("max-age=x", DAY_S),
    ],
)
def test_rfc9309_2_4_a_copy_is_used_for_at_most_a_day(cache_control, life_s):
    assert robots_from_answer(200).life_s(cache_control) == life_s
    assert robots_from_answer(404).life_s(cache_control) == life_s
    assert robots_from_answer(503).life_s(cache_control) == 3600.0


# X-Robots-Tag and meta


@pytest.mark.parametrize(
    ("headers", "metas", "noindex", "nofollow"),
    [
        ([], [], False, False),
        (["noindex"], [], True, False),
        (["NoIndex, NOFOLLOW"], [], True, True),
        (["none"], [], True, True),
        (["all"], [], False, False),
        (["noarchive", "nofollow"], [], False, True),
        (["otherbot: noindex, nofollow"], [], False, False),
        (["periplus: nofollow"], [], False, True),
        (["Periplus: none, otherbot: noarchive"], [], True, True),
        (["otherbot: noindex, periplus: nofollow"], [], False, True),
        (["noindex, otherbot: nofollow"], [], True, False),
        (["*: noindex"], [], True, False),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], [], True, False),
        (["unavailable_after: Wednesday, 25-Jun-10 15:00:00 EST, nofollow"], [], False, True),
        (["otherbot: unavailable_after: 2010-06-25T15:00:00Z, noindex"], [], False, False),
        (["max-snippet: 20, noindex"], [], True, False),
        (["max-image-preview:none"], [], False, False),
        (["periplus: max-image-preview: none"], [], False, False),
        (["", ":", ",", ": noindex"], [], False, False),
        ([], [("robots", "noindex,follow")], True, False),
        ([], [("ROBOTS", "NOINDEX NOFOLLOW")], True, True),
        ([], [("robots", "none")], True, True),
        ([], [("googlebot", "none")], False, False),
        ([], [("Periplus", "nofollow")], False, True),
        ([], [("robots", "index"), ("robots", "noindex")], True, False),
        ([], [("robots", "max-image-preview:none")], False, False),
        ([], [("", ""), ("robots", "")], False, False),
        (["noindex"], [("robots", "nofollow")], True, True),
    ],
)
def test_ours_directives_of_pages_are_parsed(headers, metas, noindex, nofollow):
    assert page_directives(headers, metas) == (noindex, nofollow)
