"""Audits as JUnit XML and as GitHub's workflow commands."""

import pytest
from lxml import etree

from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.model.audit import Grade, Issue
from periplus.present.github import github
from periplus.present.junit import junit

NASTY = "\x1b[31m\r\n::error::pwned %0A <b>&\"' ]]> \u202e,:"
ISSUES = [
    Issue("broken-link", Grade.ERROR, "http://h/a", "it answers 404", "http://h/gone?a=1&b=2", NASTY, "nav"),
    Issue("broken-link", Grade.ERROR, "http://h/b", NASTY, "http://h/gone"),
    Issue("title-long", Grade.NOTICE, "http://h/a", "70 characters, more than 60"),
]


def tree(issues):
    return etree.fromstring("".join(junit(issues, KINDS_OF_ISSUES, name="h")).encode())


def test_junit_has_a_suite_a_kind_and_a_case_an_issue():
    root = tree(ISSUES)
    assert len(root) == len(KINDS_OF_ISSUES)
    broken = root.find("testsuite[@name='broken-link']")
    assert (broken.get("tests"), broken.get("failures"), broken.get("skipped")) == ("2", "2", "0")
    assert broken[0].get("name") == "http://h/a -> http://h/gone?a=1&b=2"
    assert broken[0][0].tag == "failure"
    assert "in nav" in broken[0][0].text
    assert root.find("testsuite[@name='title-long']/testcase/skipped").get("message") == "notice: Long titles: 70 characters, more than 60"


def test_junit_what_was_looked_for_and_not_found_has_passed():
    root = tree([])
    assert {suite.get("failures") for suite in root} == {"0"}
    assert len(root) == len(root.findall("testsuite/testcase"))


def test_github_commands_one_a_line():
    lines = list(github(ISSUES, KINDS_OF_ISSUES))
    assert lines[2] == "::notice title=Long titles (title-long)::http://h/a: 70 characters, more than 60. Say it shorter."
    assert lines[0].startswith("::error title=Broken links (broken-link)::http://h/a -> http://h/gone?a=1&b=2 ")


def test_github_crawled_text_cannot_command():
    for line in github(ISSUES, KINDS_OF_ISSUES):
        assert line.isprintable()
        assert "%0A" not in line  # %25 stands for what a page wrote as %
        assert line.startswith("::")


@pytest.mark.parametrize(("count", "lines", "more"), [(9, 9, ""), (11, 10, "2 more"), (1000, 10, "991 more")])
def test_github_says_how_many_it_leaves_out(count, lines, more):
    shown = list(github(ISSUES[2:] * count, KINDS_OF_ISSUES))
    assert len(shown) == lines
    assert more in shown[-1]


def test_github_notices_take_no_place_from_errors():
    assert sum(line.startswith("::error") for line in github([*ISSUES[2:] * 100, *ISSUES[:1] * 20], KINDS_OF_ISSUES)) == 10
