"""Issues of a site's pages, links and redirects."""

from collections import Counter

import numpy as np
import pytest

from audited import SmallSite, faults, issues, table_of
from periplus.analyse.audit import FINDINGS, audit, issue_kinds
from periplus.analyse.audit_input import NoteColumns, folder_causes, session_causes, text_keys
from periplus.analyse.duplicates import NearGroup
from periplus.analyse.grades import counts
from periplus.analyse.issues import Lookups, audit_rules, causes_of, kind_issues
from periplus.document.language import is_language
from periplus.errors import UsageError
from periplus.model.audit import Category, Severity, Verdict
from periplus.model.visit import Reason


def site(pages=(), others=(), links=(), **more):
    """A site whose home page links to every page, so that none is an orphan."""
    pages = {"home": {"start": True, "depth": 0}, **dict(pages)}
    return SmallSite(pages, dict(others), [*(("home", name) for name in pages if name != "home"), *links], **more)


def test_a_sound_site_has_no_issues():
    assert site(pages={"a": {}, "b": {}}).found() == set()


@pytest.mark.parametrize(
    ("traits", "code"),
    [
        ({"title": ""}, "title-missing"),
        ({"title": "t" * 61}, "title-long"),
        ({"description": ""}, "description-missing"),
        ({"description": "d" * 161}, "description-long"),
        ({"h1s": 0}, "h1-missing"),
        ({"h1s": 2}, "h1-several"),
        ({"has_language": False}, "language-missing"),
        ({"charset_mismatch": True}, "charset-mismatch"),
        ({"images_without_alt": 3}, "image-without-alt"),
        ({"took_s": 1.9}, "slow-page"),
        ({"weight_bytes": 3_000_001}, "heavy-page"),
        ({"depth": 7}, "deep-page"),
    ],
)
def test_an_issue_of_a_single_page(traits, code):
    assert site(pages={"a": traits}).found() == {(code, "a", "")}


@pytest.mark.parametrize("traits", [{"h1s": -1}, {"images_without_alt": -1}, {"title": "", "noindex": True}])
def test_ours_unknown_values_and_noindex_pages_have_no_issues(traits):
    assert site(pages={"a": traits}).found() == set()


def test_a_soft_404_is_a_single_issue_of_the_linking_page():
    assert site(pages={"a": {"title": "", "verdict": Verdict.MISSING}}).found() == {("soft-404", "home", "a")}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.TRUNCATED, "partly-read"),
        (Reason.PARTIAL, "partly-read"),
        (Reason.NOINDEX, "partly-read"),
        (Reason.UNREADABLE, "unreadable"),
        (Reason.NEEDS_SCRIPT, "needs-script"),
    ],
)
def test_a_page_that_was_not_or_partly_read_is_an_issue_with_its_reason(reason, code):
    known = site(
        pages={"a": {}}, others={"b": {"reason": reason}}, remarks={"unread": [("b", reason, "body-limit")]}
    ).input()
    (issue,) = issues(audit(known), known)
    assert (issue.code, issue.url, issue.detail) == (code, "https://h/b", "body-limit")


def test_an_abandoned_series_is_a_single_issue_with_its_size():
    known = site(
        pages={"a": {}}, others={"c/1": {"reason": Reason.TRAP}}, remarks={"series": [("c/1", "h/c/*", 1200)]}
    ).input()
    (issue,) = issues(audit(known), known)
    assert (issue.code, issue.url, issue.detail) == ("endless-series", "https://h/c/1", "1,200 left unread as h/c/*")


def test_a_long_url_is_an_issue():
    assert ("url-too-long", "a" * 2048, "") in site(pages={"a" * 2048: {"title": "t", "description": "d"}}).found()


def test_pages_with_the_same_title_name_another_page_with_it():
    found = site(
        pages={
            "a": {"title": "One  name"},
            "b": {"title": "one name"},
            "c": {"title": "One Name", "noindex": True},
            "d": {"title": "one NAME"},
        }
    ).found()
    assert found == {("title-duplicate", "a", "b"), ("title-duplicate", "b", "a"), ("title-duplicate", "d", "a")}


def test_pages_with_the_same_text_are_duplicates_unless_one_is_canonical_for_the_other():
    assert {code for code, _, _ in site(pages={"a": {"text": "x"}, "b": {"text": "x"}}).found()} == {"duplicate"}
    assert {code for code, _, _ in site(pages={"a": {"text": "x"}, "b": {"text": "x", "canonical": "a"}}).found()} == {
        "canonical-elsewhere"
    }
    assert site(pages={"a": {"text": ""}, "b": {"text": ""}}).found() == set()


def test_a_near_duplicate_has_its_similarity():
    near = site(pages={"a": {}, "b": {}}, remarks={"near": [NearGroup("a", ("b",), (0.876,))]})
    known = near.input()
    (issue,) = issues(audit(known), known)
    assert (issue.code, issue.url, issue.related, issue.detail) == (
        "near-duplicate",
        "https://h/b",
        "https://h/a",
        "87 % alike",
    )


@pytest.mark.parametrize(
    ("target", "traits", "code"),
    [
        ("a", {}, "canonical-elsewhere"),
        ("gone", {"reason": Reason.NOT_FOUND}, "canonical-broken"),
        ("gone", {"verdict": Verdict.BROKEN}, "canonical-broken"),
        ("moved", {"reason": Reason.REDIRECT}, "canonical-redirect"),
    ],
)
def test_each_fault_of_a_canonical_url_is_an_issue(target, traits, code):
    others = {target: traits} if target != "a" else {}
    assert site(pages={"a": {}, "b": {"canonical": target}}, others=others).found() == {(code, "b", target)}


def test_canonical_urls_that_conflict_with_their_target_are_issues():
    hidden = site(pages={"a": {"noindex": True}, "b": {"canonical": "a"}})
    chain = site(pages={"a": {"canonical": "home"}, "b": {"canonical": "a"}, "c": {"canonical": "c"}})
    assert hidden.found() == {("canonical-noindex", "b", "a")}
    assert chain.found() == {("canonical-chain", "b", "a"), ("canonical-elsewhere", "a", "home")}


def test_sitemap_entries_that_conflict_with_pages_or_robots_txt_are_issues():
    listed = {"in_sitemap": True}
    found = site(
        pages={
            "home": {"start": True, **listed},
            "a": {"noindex": True, **listed},
            "b": {"canonical": "home", **listed},
            "c": {},
            "d": {"noindex": True},
        },
        others={
            "shut": {"reason": Reason.ROBOTS, **listed},
            "old": {"reason": Reason.REDIRECT, **listed},
            "gone": {"reason": Reason.NOT_FOUND, **listed},
        },
    ).found()
    assert found == {
        ("noindex-in-sitemap", "a", ""),
        ("canonical-in-sitemap", "b", "home"),
        ("canonical-elsewhere", "b", "home"),
        ("missing-from-sitemap", "c", ""),
        ("robots-sitemap-conflict", "shut", ""),
        ("redirect-in-sitemap", "old", ""),
        ("broken-in-sitemap", "gone", ""),
    }


def test_hreflang_links_need_a_link_back_a_page_and_a_valid_language():
    rows = [
        ("a", "b", "de"),
        ("b", "a", "en"),
        ("a", "c", "fr"),
        ("a", "gone", "cs"),
        ("a", "a", "en"),
        ("b", "a", "english"),
        ("c", "c", "fr"),
    ]
    found = site(
        pages={"a": {}, "b": {}, "c": {}}, others={"gone": {"reason": Reason.NOT_FOUND}}, remarks={"hreflangs": rows}
    ).found()
    assert found == {
        ("hreflang-no-return", "a", "c"),
        ("hreflang-broken", "a", "gone"),
        ("hreflang-bad-language", "b", "a"),
        ("hreflang-no-self", "b", ""),
    }


@pytest.mark.parametrize(
    ("code", "right"),
    [
        *((code, True) for code in ("en", "pt-BR", "zh-Hant", "zh-hant-tw", "es-419", "x-default", "uk", "ceb")),
        *((code, False) for code in ("en-UK", "english", "en_GB", "", "en-eu", "default", "en-gb-x")),
    ],
)
def test_language_codes_that_search_engines_accept(code, right):
    assert is_language(code) is right


@pytest.mark.parametrize(
    ("verdict", "kind", "code"),
    [
        ("broken", "a", "broken-link"),
        ("broken", "image", "broken-resource"),
        ("server-error", "a", "server-error"),
        ("looks-missing", "a", "soft-404"),
        ("suspect", "area", "suspect-link"),
        ("refused", "a", "refused-link"),
        ("moved", "a", "link-to-redirect"),
        ("ok", "a", None),
        ("not-checked", "a", None),
        ("broken", "form", None),
        ("broken", "cite", None),
    ],
)
def test_a_link_has_the_issue_of_its_targets_verdict(verdict, kind, code):
    found = site(
        others={"https://far/x": {"own": False, "verdict": Verdict(verdict), "reason": Reason.SCOPE}},
        links=[("home", "https://far/x", kind)],
    ).found()
    assert found == ({(code, "home", "https://far/x")} if code else set())


def test_without_a_verdict_the_crawls_reason_decides():
    found = site(
        others={"gone": {"reason": Reason.NOT_FOUND}, "shut": {"reason": Reason.ROBOTS}},
        links=[("home", "gone"), ("home", "shut")],
    ).found()
    assert found == {("broken-link", "home", "gone")}


def test_broken_links_of_other_sites_are_no_issues():
    others = {
        "https://far/x": {"own": False, "reason": Reason.OK},
        "https://far/y": {"own": False, "reason": Reason.NOT_FOUND},
    }
    assert site(others=others, links=[("https://far/x", "https://far/y")]).found() == set()


def test_an_issue_of_a_link_has_anchor_text_position_and_cause():
    known = site(others={"gone": {"reason": Reason.NOT_FOUND}}, links=[("home", "gone")]).input()
    lookups = Lookups(
        anchors=lambda pages, targets: [f"words {target - page}" for page, target in zip(pages, targets, strict=True)],
        whys=lambda places: ["it answers 404"] * len(places),
    )
    (issue,) = issues(audit(known), known, lookups=lookups)
    assert (issue.anchor, issue.position, issue.detail) == ("words -1", "main", "it answers 404")


def test_remarks_on_links_become_issues():
    remarks = {
        "fragments": [(0, "nowhere")],
        "mails": [("a", "mailto:x@@y", "two @")],
        "malformed": [("a", "http://[")],
    }
    known = site(pages={"a": {}}, remarks=remarks).input()
    found = {(issue.code, issue.detail) for issue in issues(audit(known), known)}
    assert found == {
        ("broken-fragment", "no #nowhere"),
        ("bad-mailto", "mailto:x@@y: two @"),
        ("malformed-link", "http://["),
    }


def test_internal_nofollow_links_are_counted_per_page():
    known = site(
        pages={"a": {}}, links=[("home", "a", "a", True), ("home", "a", "area", True), ("a", "home", "a", False)]
    ).input()
    (issue,) = issues(audit(known), known)
    assert (issue.code, issue.url, issue.detail) == ("nofollow-inside", "https://h/home", "2 links")


def test_redirect_chains_loops_and_links_to_redirects_are_issues():
    moved = {"reason": Reason.REDIRECT}
    redirecting = site(
        pages={"a": {}},
        others={"m1": moved, "m2": moved, "l1": moved, "l2": moved, "d": moved, "gone": {"reason": Reason.NOT_FOUND}},
        links=[("home", "m1")],
        redirects={"m1": "m2", "m2": "a", "l1": "l2", "l2": "l1", "d": "gone"},
    )
    found = redirecting.found()
    assert ("redirect-chain", "m1", "a") in found
    assert ("link-to-redirect", "home", "m1") in found
    assert ("redirect-broken", "d", "gone") in found
    assert {code for code, page, _ in found if page in ("l1", "l2")} == {"redirect-loop"}
    assert len(found) == 5
    known = redirecting.input()
    assert "leads to https://h/a" in {issue.detail for issue in issues(audit(known), known)}


def test_a_missing_start_page_is_an_issue_without_any_link():
    site = SmallSite(pages={"home": {"start": True}}, others={"gone": {"start": True, "reason": Reason.NOT_FOUND}})
    assert ("broken-start", "gone", "") in site.found()


def test_an_orphan_has_no_incoming_link_not_even_through_a_redirect():
    moved = {"reason": Reason.REDIRECT}
    lonely = SmallSite(
        {"home": {"start": True}, "a": {}, "b": {}, "c": {}, "d": {}},
        {"m": moved},
        [("home", "m"), ("b", "b"), ("home", "c", "canonical"), ("d", "home")],
    )
    lonely.redirects = {"m": "a"}
    assert {page for code, page, _ in lonely.found() if code == "orphan"} == {"b", "c", "d"}


def test_insecure_parts_of_secure_pages_are_issues():
    far = {"own": False, "reason": Reason.SCOPE}
    others = {"http://far/i.png": far, "http://far/form": far, "http://far/page": far}
    found = site(
        others=others,
        links=[
            ("home", "http://far/i.png", "image"),
            ("home", "http://far/form", "form"),
            ("home", "http://far/page", "a"),
        ],
    ).found()
    assert found == {("mixed-content", "home", "http://far/i.png"), ("insecure-form", "home", "http://far/form")}


def test_severities_can_be_changed_and_kinds_switched_off():
    known = site(pages={"a": {"title": "", "description": "", "h1s": 0}}).input()
    found = list(issues(audit(known), known, audit_rules(["title-missing=notice", "h1-missing = off"])))
    assert [(issue.code, issue.severity) for issue in found] == [
        ("title-missing", Severity.NOTICE),
        ("description-missing", Severity.NOTICE),
    ]
    assert counts(table_of(found).sums()) == {"title-missing": 1, "description-missing": 1, "notice": 2, "titles": 2}


def test_issues_with_the_same_cause_are_one_fault():
    """A missing script on three pages, a shared title, a missing anchor, a malformed menu link, and no compression."""
    names = ["a", "b", "c"]
    remarks = {
        "fragments": [(6, "nowhere"), (7, "nowhere"), (8, "else")],
        "malformed": [(name, "http://[") for name in names],
        "notes": {"not-compressed": NoteColumns(np.arange(3), np.full(3, 9_000.0), [""] * 3)},
    }
    links = [*((name, "lost.js", "script") for name in names), ("a", "home"), ("b", "home"), ("c", "home")]
    known = site(
        pages={name: {"title": "One"} for name in names},
        others={"lost.js": {"reason": Reason.NOT_FOUND}},
        links=links,
        remarks=remarks,
    ).input()
    found = list(issues(audit(known), known))
    made = faults(found)
    assert {(fault.code, fault.cause, fault.pages, fault.total) for fault in made if fault.code != "orphan"} == {
        ("broken-resource", "https://h/lost.js", 3, 3),
        ("title-duplicate", "https://h/a", 3, 3),
        ("broken-fragment", "https://h/home#nowhere", 2, 2),
        ("broken-fragment", "https://h/home#else", 1, 1),
        ("malformed-link", "http://[", 3, 3),
        ("not-compressed", "https://h/", 3, 3),
    }
    assert counts(table_of(found).sums())["broken-resource"] == 1
    for kind in kind_issues(audit(known), known):
        causes, named = causes_of(kind, known.urls.url), [issue.cause for issue in issues(audit(known), known)]
        assert set(causes.texts(known.urls.url)) <= set(named)


def test_issues_are_ignored_by_code_and_pattern():
    known = site(pages={"a": {"title": "", "description": ""}, "b": {"title": ""}}).input()

    def left(*ignored):
        return {(issue.code, issue.url[-1]) for issue in issues(audit(known), known, audit_rules((), ignored))}

    assert left("title-missing /a$") == {("title-missing", "b"), ("description-missing", "a")}
    assert left("title-*") == {("description-missing", "a")}
    assert left("* /[ab]$") == set()


@pytest.mark.parametrize("wrong", ["no-such=error", "title-missing=grave", "title-missing"])
def test_invalid_severities_are_refused(wrong):
    with pytest.raises(UsageError):
        audit_rules([wrong])


@pytest.mark.parametrize("wrong", ["no-such", "title-missing [", ""])
def test_invalid_ignore_rules_are_refused(wrong):
    with pytest.raises(UsageError):
        audit_rules((), [wrong])


def test_every_kind_of_issue_has_texts_and_a_distinct_name():
    names = [*issue_kinds(), *Severity, *Category]
    assert len(names) == len(set(names))
    for code, kind in issue_kinds().items():
        assert code == kind.code == code.lower()
        assert kind.title and kind.why.endswith(".") and kind.remedy.endswith(".")
        kind.detail.format(number=1.0, limit=1.0, also="", words="")


def test_an_empty_site_has_no_issues():
    known = SmallSite().input()
    assert [len(finding.check(known)) for finding in FINDINGS] == [0] * len(FINDINGS)
    assert audit(known) == {}


def test_text_keys_ignore_case_and_white_space():
    first, second, third, empty = text_keys(["A  b", " a B ", "c", " \n"])
    assert first == second != third
    assert empty == np.uint64(0)


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        (("a/1", "a/2", "a/3", "b/1"), {"pages below https://e.org/a/": 3, "https://e.org/b/1": 1}),
        (("a/1", "a/2", "a/3", "b/1", "b/2"), {"pages below https://e.org/": 5}),
        (("b/1", "b/2"), {"https://e.org/b/1": 1, "https://e.org/b/2": 1}),
    ],
)
def test_ours_an_issue_of_half_of_a_folders_pages_has_the_folder_as_cause(without, expected):
    names = ("a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "b/4", "c", "d")
    urls = [f"https://e.org/{name}" for name in names]
    subjects = np.array([names.index(name) for name in without])
    words = folder_causes(subjects, np.arange(len(names)), urls)
    causes = Counter(cause or urls[page] for cause, page in zip(words, subjects.tolist(), strict=True))
    assert causes == expected


def test_orphans_with_a_session_parameter_have_the_parameter_as_cause():
    urls = ["https://e.org/a?sid=1", "https://e.org/a?x=2", "https://e.org/b?sid=9&y=1"]
    session = "URLs with the session parameter sid"
    assert session_causes(np.arange(3), urls) == [session, "", session]
