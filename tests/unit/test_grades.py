"""Grades by field: scores, letters, and gates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audited import table_of
from periplus.analyse.audit import issue_kinds
from periplus.analyse.grades import WEIGHTS, below, field_grades, field_of, grade_line, least_grades, letter_of
from periplus.errors import UsageError
from periplus.model.audit import GradedField, Issue, Severity

E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTICE


def scores(pages_with, pages=100, unmeasured=()):
    return {grade.field.value: grade.score for grade in field_grades(pages_with, pages, unmeasured)}


def test_a_site_without_faults_has_100_points_and_one_without_pages_no_grades():
    assert scores({}) == dict.fromkeys(
        ("discoverability", "accessibility", "security", "performance", "maintenance"), 100
    )
    assert field_grades({("broken-link", E): 1}, 0) == ()
    assert "security" not in scores({}, unmeasured=[GradedField.SECURITY])


def test_an_issue_subtracts_points_by_its_share_of_pages():
    assert scores({("broken-link", E): 100})["maintenance"] == 60
    assert scores({("broken-link", E): 50})["maintenance"] == 80
    assert scores({("broken-link", E): 1}, pages=10_000)["maintenance"] == 96
    assert scores({("csp-missing", N): 100, ("framing-allowed", N): 100})["security"] == 88
    assert scores({("no-such-kind", E): 100}) == scores({})
    [maintenance] = [
        grade
        for grade in field_grades({("broken-link", E): 50, ("duplicate", W): 10}, 100)
        if grade.field == "maintenance"
    ]
    assert [(part.code, part.points, part.pages) for part in maintenance.parts] == [
        ("broken-link", 20.0, 50), ("duplicate", 1.6, 10),
    ]  # fmt: skip


def test_every_kind_of_issue_has_a_field():
    assert {field_of(code) for code in issue_kinds()} == set(GradedField)
    assert (field_of("image-without-alt"), field_of("heading-skipped")) == ("accessibility", "accessibility")


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(sorted(issue_kinds())), st.sampled_from(Severity)), st.integers(0, 2_000), max_size=40
    ),
    st.integers(1, 1_000),
)
def test_points_add_up_to_100_and_more_faults_never_raise_a_score(counts, pages):
    for grade in field_grades(counts, pages):
        missing = sum(part.points for part in grade.parts)
        assert 0 <= grade.score <= 100
        assert grade.score == max(0, round(100 - missing))
        assert grade.letter == letter_of(grade.score)
    more = {kind: count + 1 for kind, count in counts.items()}
    for before, after in zip(field_grades(counts, pages), field_grades(more, pages), strict=True):
        assert after.score <= before.score


def test_scores_have_letters_and_a_summary_line():
    assert [letter_of(score) for score in (100, 90, 89, 80, 70, 60, 50, 49, 0)] == list("AABBCDEFF")
    assert grade_line(field_grades({("broken-link", E): 50}, 100)).endswith("performance A 100, maintenance B 80")
    assert all(weight > least for weight, least in WEIGHTS.values())


def test_a_page_counts_once_per_kind():
    issues = [Issue("broken-link", E, url, related=target) for url in ("a", "b") for target in ("x", "y")]
    assert [(total.kind.code, total.causes, total.pages) for total in table_of(issues).sums()] == [
        ("broken-link", 2, 2)
    ]


def test_a_gate_names_the_grades_below_its_limits():
    assert least_grades("security=B, accessibility=75") == {"security": 80, "accessibility": 75}
    assert least_grades("") == {}
    grades = field_grades({("broken-link", E): 100}, 100)
    assert below(grades, least_grades("maintenance=C,performance=A")) == ["maintenance is D (60), below 70"]
    assert below(field_grades({}, 1, [GradedField.SECURITY]), least_grades("security=A")) == []
    for wrong in ("security", "security=G", "beauty=A", "performance=101", "performance=-1", "=A"):
        with pytest.raises(UsageError, match="is not a grade limit"):
            least_grades(wrong)


def test_ours_a_score_equal_to_the_least_passes():
    grades = field_grades({("broken-link", E): 100}, 100)
    [score] = [grade.score for grade in grades if grade.field == "maintenance"]
    assert below(grades, {GradedField.MAINTENANCE: score}) == []
    assert len(below(grades, {GradedField.MAINTENANCE: score + 1})) == 1
