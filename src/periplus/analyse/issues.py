"""The kinds of issues, how grave each is, and whether an audit passes by the user's own measure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from periplus.errors import UsageError
from periplus.model.audit import Category, CausedBy, Grade, Issue, IssueKind

# Codes never change their meaning. A new kind is a row here and a check in `analyse.audit`.

_E, _W, _N = Grade.ERROR, Grade.WARNING, Grade.NOTICE
_C = Category

_ROWS = (
    # links
    (
        "broken-link",
        _E,
        _C.LINKS,
        "Broken links",
        "A reader who follows the link finds nothing.",
        "Correct the link or take it away.",
        "{words}",
    ),
    (
        "broken-resource",
        _E,
        _C.LINKS,
        "Broken parts of pages",
        "An image, style or script is missing from the page.",
        "Correct its address.",
        "{words}",
    ),
    (
        "broken-fragment",
        _W,
        _C.LINKS,
        "Links to places that a page lacks",
        "The reader lands at the page's top.",
        "Name an id that is there.",
        "no #{words}",
    ),
    (
        "missing-text",
        _W,
        _C.LINKS,
        "Links to words that a page lacks",
        "The reader lands at the page's top.",
        "Quote words that are there.",
        "no #{words}",
    ),
    (
        "bad-mailto",
        _E,
        _C.LINKS,
        "Mail links that cannot work",
        "Nobody can write to that address.",
        "Correct the address.",
        "{words}",
    ),
    (
        "malformed-link",
        _E,
        _C.LINKS,
        "Links that are no URL",
        "No browser can follow the link.",
        "Write a whole address.",
        "{words}",
    ),
    (
        "server-error",
        _W,
        _C.LINKS,
        "Links to failing servers",
        "The reader meets an error, perhaps a passing one.",
        "Watch it; replace it if it lasts.",
        "{words}",
    ),
    (
        "soft-404",
        _W,
        _C.LINKS,
        "Links to pages that look missing",
        "The server says 200 but shows an error page.",
        "Look at it; correct the link.",
        "{words}",
    ),
    (
        "suspect-link",
        _N,
        _C.LINKS,
        "Links in doubt",
        "It failed once, was cut short, or its certificate fails.",
        "Check again, or look at it in a browser.",
        "{words}",
    ),
    (
        "refused-link",
        _N,
        _C.LINKS,
        "Links refused to us",
        "The server turns programs away; readers may get through.",
        "Look at it in a browser.",
        "{words}",
    ),
    (
        "nofollow-inside",
        _N,
        _C.LINKS,
        "Own pages linked with nofollow",
        "Search engines may not follow it.",
        "Take nofollow away.",
        "{number:.0f} links",
    ),
    (
        "dead-start",
        _E,
        _C.LINKS,
        "Starts that are not there",
        "What you gave to be read cannot be read.",
        "Correct the address.",
        "",
    ),
    # redirects
    (
        "link-to-redirect",
        _N,
        _C.REDIRECTS,
        "Links to what has moved",
        "Each click takes a detour that may end one day.",
        "Link to the new place.",
        "leads to {also}",
    ),
    (
        "redirect-chain",
        _W,
        _C.REDIRECTS,
        "Chains of redirects",
        "Each hop costs time; some programs give up.",
        "Redirect at once.",
        "{number:.0f} hops to {also}",
    ),
    (
        "redirect-loop",
        _E,
        _C.REDIRECTS,
        "Redirects in a circle",
        "Nobody ever arrives.",
        "Let one of them answer.",
        "leads back to {also}",
    ),
    (
        "redirect-broken",
        _E,
        _C.REDIRECTS,
        "Redirects to nothing",
        "Whoever follows finds nothing.",
        "Redirect to a page that is there.",
        "ends at {also}",
    ),
    # titles and headings
    (
        "title-missing",
        _E,
        _C.TITLES,
        "Pages without a title",
        "Search results and tabs have no name for it.",
        "Give it a title.",
        "",
    ),
    (
        "title-duplicate",
        _W,
        _C.TITLES,
        "Pages with one title",
        "Readers cannot tell them apart.",
        "Name what is special to each.",
        "{number:.0f} pages share it",
    ),
    (
        "title-long",
        _N,
        _C.TITLES,
        "Long titles",
        "Search results cut them.",
        "Say it shorter.",
        "{number:.0f} characters, more than {limit:.0f}",
    ),
    (
        "description-missing",
        _N,
        _C.TITLES,
        "Pages without a description",
        "Search engines choose some text of the page.",
        "Describe it in a sentence.",
        "",
    ),
    (
        "description-duplicate",
        _N,
        _C.TITLES,
        "Pages with one description",
        "It describes none of them.",
        "Describe each.",
        "{number:.0f} pages share it",
    ),
    (
        "description-long",
        _N,
        _C.TITLES,
        "Long descriptions",
        "Search results cut them.",
        "Say it shorter.",
        "{number:.0f} characters, more than {limit:.0f}",
    ),
    (
        "h1-missing",
        _W,
        _C.TITLES,
        "Pages without a main heading",
        "Readers and screen readers find no beginning.",
        "Give it one h1.",
        "",
    ),
    (
        "h1-several",
        _N,
        _C.TITLES,
        "Pages with several main headings",
        "It is not clear what the page is about.",
        "Keep one h1.",
        "{number:.0f} of them",
    ),
    # what search engines are told
    (
        "canonical-elsewhere",
        _N,
        _C.INDEXING,
        "Pages that name another as canonical",
        "They are left out of search.",
        "Check that it is meant.",
        "names {also}",
    ),
    (
        "canonical-broken",
        _E,
        _C.INDEXING,
        "Canonical pages that are not there",
        "Search engines are sent to nothing.",
        "Name a page that is there.",
        "names {also}",
    ),
    (
        "canonical-redirect",
        _W,
        _C.INDEXING,
        "Canonical pages that redirect",
        "Two signals disagree.",
        "Name the redirect's end.",
        "names {also}",
    ),
    (
        "canonical-noindex",
        _E,
        _C.INDEXING,
        "Canonical pages that ask not to be indexed",
        "Both may vanish from search.",
        "Decide for one.",
        "names {also}",
    ),
    (
        "canonical-chain",
        _W,
        _C.INDEXING,
        "Canonical pages that name a third",
        "The signal is likely ignored.",
        "Name the last of them.",
        "names {also}",
    ),
    (
        "robots-sitemap-conflict",
        _W,
        _C.INDEXING,
        "In the sitemap, yet disallowed by robots.txt",
        "Offered and forbidden at once.",
        "Decide for one.",
        "",
    ),
    (
        "noindex-in-sitemap",
        _W,
        _C.INDEXING,
        "In the sitemap, yet not to be indexed",
        "Offered and forbidden at once.",
        "Decide for one.",
        "",
    ),
    (
        "redirect-in-sitemap",
        _N,
        _C.INDEXING,
        "In the sitemap, yet redirected",
        "Search engines are sent on a detour.",
        "List the page itself.",
        "",
    ),
    (
        "canonical-in-sitemap",
        _N,
        _C.INDEXING,
        "In the sitemap, yet not canonical",
        "Two signals disagree.",
        "List the canonical page.",
        "names {also}",
    ),
    (
        "broken-in-sitemap",
        _E,
        _C.INDEXING,
        "In the sitemap, yet not there",
        "Search engines are sent to nothing.",
        "Take it off the sitemap.",
        "",
    ),
    (
        "missing-from-sitemap",
        _N,
        _C.INDEXING,
        "Not in the sitemap",
        "Search engines find it late.",
        "Add it to the sitemap.",
        "",
    ),
    # languages
    (
        "language-missing",
        _W,
        _C.LANGUAGES,
        "Pages that do not say their language",
        "Screen readers may read it wrongly.",
        "Write lang on html.",
        "",
    ),
    (
        "hreflang-no-return",
        _W,
        _C.LANGUAGES,
        "Translations that do not link back",
        "Search engines ignore the link.",
        "Link back.",
        "to {also}",
    ),
    (
        "hreflang-bad-language",
        _W,
        _C.LANGUAGES,
        "Translations in no known language",
        "Search engines ignore the link.",
        "Write a code as en or pt-br.",
        "{words}",
    ),
    (
        "hreflang-broken",
        _W,
        _C.LANGUAGES,
        "Translations that are no page",
        "The link leads nowhere or elsewhere.",
        "Name the page itself.",
        "to {also}",
    ),
    (
        "charset-mismatch",
        _W,
        _C.LANGUAGES,
        "Pages that declare a wrong encoding",
        "Letters may show wrong.",
        "Write UTF-8, and say so.",
        "",
    ),
    # content
    (
        "unreadable",
        _W,
        _C.CONTENT,
        "Pages that cannot be read",
        "Nobody finds what they say.",
        "Repair the file, or send it as what it is.",
        "{words}",
    ),
    (
        "needs-script",
        _W,
        _C.CONTENT,
        "Pages empty until a script fills them",
        "Who runs no scripts sees nothing.",
        "Send the text with the page.",
        "{words}",
    ),
    (
        "partly-read",
        _N,
        _C.CONTENT,
        "Pages read in part",
        "What stands behind the bound is not checked.",
        "Divide the page, or raise the limit.",
        "{words}",
    ),
    (
        "duplicate",
        _W,
        _C.CONTENT,
        "Pages of one text",
        "They compete; readers wonder.",
        "Keep one, or name it canonical.",
        "{number:.0f} pages have it",
    ),
    (
        "near-duplicate",
        _N,
        _C.CONTENT,
        "Pages of nearly one text",
        "They compete in search.",
        "Join them, or tell them apart.",
        "{number:.0f} % alike",
    ),
    (
        "image-without-alt",
        _W,
        _C.CONTENT,
        "Images without a text",
        "Who cannot see them learns nothing.",
        "Write alt, empty for ornaments.",
        "images: {number:.0f}",
    ),
    # security and speed
    (
        "mixed-content",
        _W,
        _C.SECURITY,
        "Insecure parts of secure pages",
        "Browsers block or warn.",
        "Fetch it by https.",
        "",
    ),
    (
        "insecure-form",
        _E,
        _C.SECURITY,
        "Forms that send without encryption",
        "Others can read what is typed.",
        "Send it by https.",
        "",
    ),
    (
        "slow-page",
        _W,
        _C.SPEED,
        "Slow pages",
        "Readers leave.",
        "Find out what the server waits for.",
        "{number:.1f} s, more than {limit:.1f}",
    ),
    (
        "heavy-page",
        _N,
        _C.SPEED,
        "Heavy pages",
        "Slow and dear on a telephone.",
        "Make images smaller.",
        "{number:,.0f} bytes, more than {limit:,.0f}",
    ),
    # structure
    (
        "deep-page",
        _N,
        _C.STRUCTURE,
        "Pages many clicks away",
        "Few readers get there.",
        "Link to it from nearer.",
        "{number:.0f} clicks, more than {limit:.0f}",
    ),
    (
        "orphan",
        _W,
        _C.STRUCTURE,
        "Pages that no link leads to",
        "Readers cannot find it.",
        "Link to it, or take it away.",
        "",
    ),
    (
        "url-too-long",
        _N,
        _C.STRUCTURE,
        "Long URLs",
        "Sitemaps and some programs cannot take them.",
        "Shorten it.",
        "{number:.0f} characters, more than {limit:.0f}",
    ),
    (
        "endless-series",
        _N,
        _C.STRUCTURE,
        "Series of addresses that look endless",
        "What they hold was not read to its end.",
        "See whether a page hides among them: crawl with --trap-window 0.",
        "{number:,.0f} left unread as {words}",
    ),
)
_CAUSED_BY = {
    CausedBy.TARGET: (
        "broken-link", "broken-resource", "server-error", "soft-404", "suspect-link", "refused-link",
        "link-to-redirect", "redirect-broken",
        "canonical-broken", "canonical-redirect", "canonical-noindex", "hreflang-broken", "near-duplicate",
        "mixed-content", "insecure-form",
    ),
    CausedBy.FRAGMENT: ("broken-fragment", "missing-text"),
    CausedBy.WORDS: ("bad-mailto", "malformed-link", "hreflang-bad-language"),
    CausedBy.GROUP: ("title-duplicate", "description-duplicate", "duplicate"),
}  # fmt: skip
_CAUSE_OF = {code: cause for cause, codes in _CAUSED_BY.items() for code in codes}
KINDS_OF_ISSUES: dict[str, IssueKind] = {row[0]: IssueKind(*row, _CAUSE_OF.get(row[0], CausedBy.PAGE)) for row in _ROWS}
"""Every kind by its code, in the order of lists."""


# Verdicts as they are said of links, beside codes, grades and categories
ALIASES = {
    "broken": "broken-link",
    "refused": "refused-link",
    "looks-missing": "soft-404",
    "moved": "link-to-redirect",
    "suspect": "suspect-link",
    "errors": "error",
    "warnings": "warning",
    "notices": "notice",
}
NAMES = frozenset({*KINDS_OF_ISSUES, *Grade, *Category, *ALIASES})
_CONDITION = re.compile(r"([a-z0-9-]+)\s*(?:(>=?)\s*([0-9]{1,12}))?")


@dataclass(frozen=True, slots=True)
class Condition:
    """The audit fails when there are more than `most` issues of this name: a code, a grade or a category."""

    name: str
    most: int


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether the audit failed, and why, in a sentence."""

    failed: bool
    sentence: str


def fail_on(text: str) -> tuple[Condition, ...]:
    """`broken>0,server-error>5` as conditions, any of which fails the audit; a bare name means `>0`, `>=1` the same.

    Empty: none. Raises UsageError, and nothing else, for what is none.
    """
    return tuple(_condition(part.strip()) for part in text.split(",") if part.strip())


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is no condition: write NAME or NAME>NUMBER, as in broken>0,server-error>5")
    name, sign, number = match.groups()
    if name not in NAMES:
        raise UsageError(f"nothing is called {name!r}; choose among {', '.join(sorted(NAMES))}")
    most = int(number or 0) - (sign == ">=")
    if most < 0:
        raise UsageError(f"{text!r} fails always: there are never fewer than 0")
    return Condition(ALIASES.get(name, name), most)


def new_issues(found: Iterable[Issue], baseline: Set[tuple[str, str, str]]) -> list[Issue]:
    """Those that the baseline, the keys of an earlier run's issues, lacks. Wording and grade make no issue new."""
    return [issue for issue in found if issue.key not in baseline]


def gate(conditions: Iterable[Condition], counted: Mapping[str, int], *, baseline: str = "") -> GateResult:
    """counted: issues by code, grade and category, from `audit.counts`, of new issues only where there is a baseline.

    baseline: its name for the sentence; empty: none.
    """
    over = [
        (condition, counted.get(condition.name, 0))
        for condition in conditions
        if counted.get(condition.name, 0) > condition.most
    ]
    since = f", counting what is new since {baseline}" if baseline else ""
    if not over:
        return GateResult(False, f"passed{since}")
    said = "; ".join(
        f"{number:,} {condition.name}, {f'at most {condition.most:,}' if condition.most else 'none'} allowed"
        for condition, number in over
    )
    return GateResult(True, f"failed: {said}{since}")
