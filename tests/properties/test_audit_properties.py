"""Properties of audits on generated input."""

from __future__ import annotations

import random
from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from audited import SmallSite, issues
from periplus.analyse.audit import audit
from periplus.analyse.grades import fail_on
from periplus.analyse.verdicts import Attempt, Evidence, judge, says_missing
from periplus.document.links import fragment_verdict
from periplus.errors import UsageError
from periplus.model.audit import Verdict
from periplus.model.visit import Cause, Cut, Reason
from periplus.urls.mailto import mailto_problem

NAMES = ["p0", "p1", "p2", "p3", "p4"]
GONE = ["x0", "x1"]
names, targets = st.sampled_from(NAMES), st.sampled_from(NAMES + GONE)
traits = st.fixed_dictionaries(
    {
        "title": st.sampled_from(["", "one", "two", "ONE"]),
        "noindex": st.booleans(),
        "canonical": st.sampled_from(["", *NAMES, *GONE]),
        "text": st.sampled_from(["", "a", "b"]),
        "in_sitemap": st.booleans(),
    }
)


@st.composite
def sites(draw):
    pages = {name: draw(traits) for name in NAMES}
    pages["p0"]["start"] = True
    links = draw(
        st.lists(
            st.tuples(names, targets, st.sampled_from(["a", "image", "canonical", "form"])), max_size=15, unique=True
        )
    )
    hreflangs = draw(st.lists(st.tuples(names, targets, st.just("en")), max_size=8))
    return SmallSite(
        pages,
        {"x0": {"reason": Reason.NOT_FOUND}, "x1": {"reason": Reason.TLS}},
        links,
        remarks={"hreflangs": hreflangs},
    )


def twin(site):
    """Reference implementation of some checks: exactly the expected issues of these kinds."""
    found, titles, texts = set(), defaultdict(set), defaultdict(set)
    for name, page in site.pages.items():
        if page["noindex"] or page["canonical"] not in ("", name):
            continue
        if not page["title"]:
            found.add(("title-missing", name))
        titles[page["title"].lower()].add(name)
        texts[page["text"]].add(name)
    for code, groups in (("title-duplicate", titles), ("duplicate", texts)):
        found |= {(code, name) for key, group in groups.items() if key and len(group) > 1 for name in group}
    for source, target, kind in site.links:
        if target in GONE and kind in ("a", "image"):
            found.add(("broken-link" if kind == "a" else "broken-resource", source, target))
    reached = {target for source, target, kind in site.links if kind == "a" and source != target} | {"p0"}
    found |= {("orphan", name) for name in NAMES if name not in reached}
    pairs = {(source, target) for source, target, _ in site.remarks["hreflangs"]}
    for source, target in pairs:
        if target in GONE or site.pages[target]["noindex"]:
            found.add(("hreflang-broken", source, target))
        elif (target, source) not in pairs:
            found.add(("hreflang-no-return", source, target))
    return found


@settings(max_examples=50)
@given(site=sites())
def test_the_array_code_equals_the_reference(site):
    expected = twin(site)
    codes = {
        "title-missing",
        "title-duplicate",
        "duplicate",
        "broken-link",
        "broken-resource",
        "orphan",
        "hreflang-broken",
        "hreflang-no-return",
    }
    by_pair = {"broken-link", "broken-resource", "hreflang-broken", "hreflang-no-return"}
    found = {
        (code, page, other) if code in by_pair else (code, page) for code, page, other in site.found() if code in codes
    }
    assert found == expected


@settings(max_examples=60)
@given(site=sites(), seed=st.integers(0, 1000))
def test_the_order_of_links_changes_nothing(site, seed):
    before = site.found()
    random.Random(seed).shuffle(site.links)
    random.Random(seed).shuffle(site.remarks["hreflangs"])
    assert site.found() == before


@settings(max_examples=60)
@given(site=sites())
def test_no_issue_names_itself_or_comes_twice(site):
    known = site.input()
    found = [(issue.key, issue.position) for issue in issues(audit(known), known)]
    assert len(found) == len(set(found))
    assert all(url != related for (code, url, related), _ in found if code not in ("hreflang-broken",))


STATUS = st.sampled_from([0, 200, 301, 304, 403, 404, 429, 500, 999])
ATTEMPT = st.builds(Attempt, st.floats(0, 100), STATUS, st.sampled_from([None, *Cause]), st.sampled_from(list(Cut)))


@settings(max_examples=66)
@given(attempts=st.lists(ATTEMPT, max_size=5), reason=st.sampled_from(list(Reason)), spacing_s=st.floats(0.1, 50))
def test_a_verdict_is_total_and_a_single_failure_is_not_broken(attempts, reason, spacing_s):
    attempts = sorted(attempts, key=lambda attempt: attempt.at)
    found = judge(Evidence(reason, attempts), spacing_s=spacing_s)
    assert found.why
    if found.verdict in (Verdict.BROKEN, Verdict.SERVER_ERROR):
        assert attempts[-1].at - attempts[0].at >= spacing_s
    assert (found.ask_again_at > 0) <= (found.verdict is Verdict.SUSPECT)


@settings(max_examples=66)
@given(
    text=st.text(max_size=40) | st.text(alphabet='a@.,;"%?&= :/\\[]#2é\ud800', max_size=30),
    anchors=st.frozensets(st.text(max_size=5), max_size=4),
)
def test_questions_about_texts_are_total(text, anchors):
    mailto_problem("mailto:" + text)
    says_missing(text)
    fragment_verdict(text, anchors, text=text)
    try:
        fail_on(text)
    except UsageError:
        return


@given(name=st.text(min_size=1, max_size=8))
def test_an_existing_anchor_is_found_in_any_encoding(name):
    from urllib.parse import quote

    if ":~:" not in name and not any("\ud800" <= sign <= "\udfff" for sign in name):
        assert fragment_verdict(quote(name), frozenset({name})) == "found"
