"""Verdicts on link targets: the 33 links of a published comparison of checkers, and the order of the rules."""

import pytest

from periplus.analyse.verdicts import Attempt, Evidence, Hop, judge, net_seems_down
from periplus.document.links import anchors_of, fragment_verdict
from periplus.model.audit import Verdict
from periplus.model.visit import Cause, Cut, Reason

SPACING_S = 5.0
PAGE = '<title>p</title><p id="a"></p><a name="old"></a><p id="café"></p><p id="b"></p><p id="c"></p><p id="d"></p>'
ANCHORS = anchors_of(PAGE)


def twice(status, cause=None, cut=Cut.NONE):
    return Evidence(attempts=(Attempt(0, status, cause, cut), Attempt(10, status, cause, cut)))


def then(*statuses):
    return Evidence(attempts=[Attempt(10.0 * place, status) for place, status in enumerate(statuses)])


def redirected(*statuses):
    return Evidence(
        attempts=(Attempt(0, 200),), hops=[Hop(status, f"http://h/{place}") for place, status in enumerate(statuses)]
    )


def place(fragment):
    return Evidence(attempts=(Attempt(0, 200),), fragment=fragment_verdict(fragment, ANCHORS, text="some text"))


TRUTH = [  # link, evidence, verdict
    ("404", twice(404), "broken"),
    ("410", twice(410), "broken"),
    ("403", twice(403), "refused"),
    ("500", twice(500), "server-error"),
    ("refused port", twice(0, Cause.CONNECT), "broken"),
    ("503 once, then 200", then(503, 200), "ok"),
    ("429 once, then 200", then(429, 200), "ok"),
    ("HEAD 405, GET 200", then(200), "ok"),
    ("HEAD 404, GET 200", then(200), "ok"),
    ("12 temporary redirects", redirected(*[302] * 12), "ok"),
    ("moved for good", redirected(301), "moved"),
    ("plain page", then(200), "ok"),
    ("soft 404", Evidence(attempts=(Attempt(0, 200),), looks_missing="its title says 404 Not Found"), "looks-missing"),
    ("truncated body", twice(200, cut=Cut.SHORT), "suspect"),
    ("#top", place("top"), "ok"),
    ("#", place(""), "ok"),
    ("#caf%C3%A9", place("caf%C3%A9"), "ok"),
    ("a name", place("old"), "ok"),
    ("#A", place("A"), "broken"),
    ("#missing", place("missing"), "broken"),
    ("text fragment", place(":~:text=some"), "ok"),
    ("no such host", twice(0, Cause.NAME), "broken"),
    ("eight fragments: #a", place("a"), "ok"),
    ("eight fragments: #b", place("b"), "ok"),
    ("eight fragments: #c", place("c"), "ok"),
    ("eight fragments: #d", place("d"), "ok"),
    ("eight fragments: #a again", place("a"), "ok"),
    ("eight fragments: #old", place("old"), "ok"),
    ("eight fragments: #TOP", place("TOP"), "ok"),
    ("eight fragments: #none", place("none"), "broken"),
]


@pytest.mark.parametrize(
    ("evidence", "expected"), [pytest.param(evidence, expected, id=name) for name, evidence, expected in TRUTH]
)
def test_each_link_of_the_table_has_its_verdict(evidence, expected):
    found = judge(evidence, spacing_s=SPACING_S)
    assert found.verdict == expected
    assert found.why
    assert found.ask_again_at == 0


def test_the_truth_table_has_30_links():
    assert len({name for name, _, _ in TRUTH}) == 30


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(Reason.ROBOTS), "refused"),
        (Evidence(Reason.ROBOTS_UNREACHABLE), "not-checked"),
        (Evidence(Reason.SCOPE), "not-checked"),
        (Evidence(Reason.PRIVATE, (Attempt(0, 0, Cause.PRIVATE),)), "not-checked"),
        (twice(401), "refused"),
        (twice(429), "refused"),
        (twice(451), "refused"),
        (twice(999), "refused"),
        (twice(405), "refused"),
        (twice(400), "broken"),
        (twice(408), "server-error"),
        (twice(0, Cause.TIMEOUT), "server-error"),
        (twice(0, Cause.TLS), "suspect"),
        (twice(0, Cause.PROXY), "not-checked"),
        (twice(200, cut=Cut.BODY_LIMIT), "ok"),
        (twice(200, cut=Cut.NOT_WANTED), "ok"),
        (twice(304), "ok"),
        (twice(302), "broken"),
        (twice(777), "suspect"),
        (Evidence(attempts=twice(302).attempts, circle=True), "broken"),
        (redirected(302), "ok"),
        (redirected(302, 301), "ok"),
        (then(200, 404, 404), "broken"),
        (then(404, 403), "refused"),
    ],
)
def test_ours_every_answer_has_one_verdict(evidence, expected):
    assert judge(evidence, spacing_s=SPACING_S).verdict == expected


@pytest.mark.parametrize(
    "evidence",
    [
        then(404),
        then(500),
        then(404, 200, 404),
        Evidence(attempts=(Attempt(0, 0, Cause.NAME), Attempt(1, 0, Cause.NAME))),
    ],
)
def test_ours_a_link_is_broken_only_after_a_second_get_some_time_later(evidence):
    found = judge(evidence, spacing_s=SPACING_S)
    assert found.verdict is Verdict.SUSPECT
    assert found.ask_again_at > evidence.attempts[-1].at


def test_ours_a_cancelled_request_neither_confirms_nor_clears():
    attempts = (Attempt(0, 404), Attempt(10, 0, Cause.CANCELLED))
    assert judge(Evidence(attempts=attempts), spacing_s=SPACING_S).verdict is Verdict.SUSPECT
    assert judge(Evidence(attempts=(*attempts, Attempt(20, 404))), spacing_s=SPACING_S).verdict is Verdict.BROKEN


def test_a_moved_link_has_the_end_of_its_permanent_redirects():
    assert judge(redirected(301, 308), spacing_s=1).better == "http://h/1"
    assert judge(redirected(301, 302), spacing_s=1).better == "http://h/0"
    assert judge(redirected(302, 301), spacing_s=1).better == ""


def test_a_long_redirect_chain_is_valid_with_a_remark():
    assert "12 redirects" in judge(redirected(*[302] * 12), spacing_s=1).why


@pytest.mark.parametrize(
    ("hosts", "silent", "ours"), [(0, 0, False), (2, 2, False), (3, 3, True), (58, 57, True), (10, 8, False)]
)
def test_if_nearly_all_hosts_are_silent_our_network_is_down(hosts, silent, ours):
    assert net_seems_down(hosts, silent) == ours
