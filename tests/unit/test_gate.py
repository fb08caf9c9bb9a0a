"""Conditions under which an audit fails."""

import pytest

from periplus.analyse.grades import Condition, fail_on, gate
from periplus.errors import UsageError
from periplus.model.audit import Issue, Severity


def test_conditions_are_parsed():
    assert fail_on("broken>0, server-error>5") == (Condition("broken-link", 0), Condition("server-error", 5))
    assert fail_on("error") == fail_on("errors>0") == fail_on("error>=1") == (Condition("error", 0),)
    assert fail_on("titles > 3") == (Condition("titles", 3),)
    assert fail_on("") == fail_on(" , ") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        "nonsense>0",
        "broken<3",
        "broken>",
        "broken>-1",
        "broken>=0",
        "broken>1.5",
        "=0",
        ">0",
        "a>0;b",
        "broken>" + "9" * 20,
    ],
)
def test_an_invalid_condition_is_refused(wrong):
    with pytest.raises(UsageError):
        fail_on(wrong)


def test_the_result_of_a_gate_has_its_counts():
    conditions = fail_on("broken>0,server-error>5")
    assert not gate(conditions, {"server-error": 5}).failed
    result = gate(conditions, {"broken-link": 3, "server-error": 6})
    assert result.failed
    assert result.sentence == "failed: 3 broken-link, none allowed; 6 server-error, at most 5 allowed"
    assert (
        gate(conditions, {"broken-link": 1}, baseline="crawl 3").sentence
        == "failed: 1 broken-link, none allowed, counting what is new since crawl 3"
    )
    assert gate(conditions, {}).sentence == "passed"
    assert "since crawl 3" in gate(conditions, {}, baseline="crawl 3").sentence
    assert not gate((), {"broken-link": 3}).failed


def test_wording_and_severity_do_not_identify_an_issue():
    old = Issue("title-long", Severity.NOTICE, "http://h/a", "70 characters")
    again = Issue("title-long", Severity.ERROR, "http://h/a", "71 characters")
    other = Issue("title-long", Severity.NOTICE, "http://h/b")
    assert again.key == old.key != other.key
