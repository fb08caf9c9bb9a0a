"""Audits as JUnit XML, as GitHub workflow commands and as a list."""

import pytest
from lxml import etree

from audited import faults, table_of
from periplus.analyse.audit import issue_kinds
from periplus.model.audit import Issue, Severity
from periplus.present.issues import fault_list, github, junit

NASTY = "\x1b[31m\r\n::error::pwned %0A <b>&\"' ]]> \u202e,:"
ISSUES = [
    Issue(
        "broken-link",
        Severity.ERROR,
        "http://h/a",
        "it answers 404",
        "http://h/gone?a=1&b=2",
        NASTY,
        "nav",
        "http://h/gone?a=1&b=2",
    ),
    Issue("broken-link", Severity.ERROR, "http://h/b", NASTY, "http://h/gone", cause="http://h/gone"),
    Issue("title-long", Severity.NOTICE, "http://h/a", "70 characters, more than 60"),
]


SCRIPT = "http://h/jquery.js"
EVERYWHERE = [
    Issue("broken-resource", Severity.ERROR, f"http://h/{page:03}", "it answers 404", SCRIPT, "", "head", SCRIPT)
    for page in range(527)
]


def listed(issues):
    table = table_of(issues)
    return list(fault_list(table.sums(), table.faults(100)))


def tree(issues):
    return etree.fromstring("".join(junit(faults(issues), issue_kinds(), name="h")).encode())


def test_a_missing_script_is_a_single_fault_in_every_output():
    [case] = tree(EVERYWHERE).findall("testsuite[@name='broken-resource']/testcase")
    assert (case.get("name"), case[0].get("message")) == (SCRIPT, "Broken resources: it answers 404, on 527 pages")
    assert case[0].text.endswith('on http://h/099 Words of the link: "", in head.\nand 427 more')
    [line] = github(faults(EVERYWHERE), issue_kinds())
    assert f"::{SCRIPT}: it answers 404, on 527 pages, as http://h/000" in line
    first, _, heading, _, cause, *pages, rest = listed(EVERYWHERE)
    assert first == "      1  error    broken-resource: Broken resources, on 527 pages"
    assert heading == "ERROR broken-resource: Broken resources (1, on 527 pages)"
    assert (cause, len(pages), rest) == (f"  {SCRIPT}  it answers 404  (527 pages)", 5, "      and 522 more")


def test_totals_by_kind_precede_the_list():
    lines = listed([*ISSUES, *EVERYWHERE])
    assert [line.split()[:3] for line in lines[:3]] == [
        ["2", "error", "broken-link:"],
        ["1", "error", "broken-resource:"],
        ["1", "notice", "title-long:"],
    ]
    assert lines[3] == ""
    assert "  http://h/a  70 characters, more than 60" in lines


def test_junit_has_a_suite_per_kind_and_a_case_per_cause():
    root = tree(ISSUES)
    assert len(root) == len(issue_kinds())
    broken = root.find("testsuite[@name='broken-link']")
    assert (broken.get("tests"), broken.get("failures"), broken.get("skipped")) == ("2", "2", "0")
    assert broken[1].get("name") == "http://h/gone?a=1&b=2"
    assert broken[1][0].tag == "failure"
    assert "in nav" in broken[1][0].text
    assert (
        root.find("testsuite[@name='title-long']/testcase/skipped").get("message")
        == "notice: Long titles: 70 characters, more than 60"
    )


def test_junit_kinds_without_issues_pass():
    root = tree([])
    assert {suite.get("failures") for suite in root} == {"0"}
    assert len(root) == len(root.findall("testsuite/testcase"))


def test_github_commands_have_one_line_each():
    lines = list(github(faults(ISSUES), issue_kinds()))
    assert (
        lines[2]
        == "::notice title=Long titles (title-long)::http://h/a: 70 characters, more than 60. Shorten the title."
    )
    assert lines[1].startswith(
        "::error title=Broken links (broken-link)::http://h/gone?a=1&b=2: it answers 404, on 1 page, as http://h/a "
    )


def test_github_crawled_text_cannot_inject_commands():
    for line in github(faults(ISSUES), issue_kinds()):
        assert line.isprintable()
        assert "%0A" not in line  # a % of a page is written as %25
        assert line.startswith("::")


@pytest.mark.parametrize(("count", "lines", "more"), [(9, 9, ""), (11, 10, "2 more"), (1000, 10, "991 more")])
def test_github_shows_ten_faults_and_counts_the_rest(count, lines, more):
    shown = list(github(faults(ISSUES[2:]) * count, issue_kinds()))
    assert len(shown) == lines
    assert more in shown[-1]


def test_github_notices_do_not_displace_errors():
    assert (
        sum(
            line.startswith("::error")
            for line in github([*faults(ISSUES[2:]) * 100, *faults(ISSUES[:1]) * 20], issue_kinds())
        )
        == 10
    )
