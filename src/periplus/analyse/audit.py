"""Finds what is wrong with a site's pages, links and redirects,
and turns it into issues under the user's own grades.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.audit_input import (
    POSITIONS,
    AuditInput,
    IssueColumns,
    Mask,
    PageTraits,
    Places,
    dead,
    redirecting,
)
from periplus.analyse.issues import KINDS_OF_ISSUES
from periplus.analyse.sizes import KINDS
from periplus.analyse.verdicts import chain_ends
from periplus.errors import UsageError
from periplus.model.audit import VERDICTS, CausedBy, Fault, Grade, Issue, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import LinkKind
from periplus.model.visit import Reason

# What has checks of its own, or is no invitation to follow: a form's target expects what is
# typed, a citation is a name.
NOT_FOLLOWED = frozenset(
    {LinkKind.REDIRECT, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.FORM, LinkKind.CITE, LinkKind.SITEMAP}
)
_PARTS = frozenset(
    {
        LinkKind.IMAGE,
        LinkKind.STYLE,
        LinkKind.SCRIPT,
        LinkKind.MEDIA,
        LinkKind.OBJECT,
        LinkKind.ICON,
        LinkKind.FRAME,
        LinkKind.IFRAME,
    }
)
# by which a reader comes to a page
_WAYS = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH})
# by browsers, or warned of, where a secure page fetches them insecurely (Mixed Content, W3C)
_BLOCKED = _PARTS - {LinkKind.ICON}
_OF_VERDICT = (
    (Verdict.SERVER_ERROR, "server-error"),
    (Verdict.MISSING, "soft-404"),
    (Verdict.SUSPECT, "suspect-link"),
    (Verdict.REFUSED, "refused-link"),
)


def _is_kind(known: AuditInput, kinds: frozenset[LinkKind]) -> Mask:
    table = np.array([kind in kinds for kind in KINDS])
    found: Mask = table[known.links.kind]
    return found


def _of_links(known: AuditInput, code: str, rows: Places) -> IssueColumns:
    """A finding for each of these links, by page."""
    rows = rows[np.argsort(known.links.source[rows], kind="stable")]
    return IssueColumns(code, known.links.source[rows], known.links.target[rows], links=rows)


def _targets(known: AuditInput) -> Iterator[IssueColumns]:
    """Links of own pages by what is thought of their targets."""
    urls, links = known.urls, known.links
    asked = urls.own[links.source] & ~_is_kind(known, NOT_FOLLOWED)
    verdict = urls.verdict[links.target]
    judged_apart = np.isin(verdict, [VERDICTS.index(name) for name, _ in _OF_VERDICT])
    broken, parts = asked & dead(known)[links.target] & ~judged_apart, _is_kind(known, _PARTS)
    yield _of_links(known, "broken-link", np.flatnonzero(broken & ~parts))
    yield _of_links(known, "broken-resource", np.flatnonzero(broken & parts))
    for name, code in _OF_VERDICT:
        yield _of_links(known, code, np.flatnonzero(asked & (verdict == VERDICTS.index(name))))


def _starts(known: AuditInput) -> Iterator[IssueColumns]:
    """What the user gave as a start, and is not there: perhaps no link leads to it."""
    yield IssueColumns("dead-start", np.flatnonzero(known.urls.start & dead(known)))


def _remarks(known: AuditInput) -> Iterator[IssueColumns]:
    """What was found at single links."""
    urls, remarks = known.urls, known.remarks
    for code, fragments in (("broken-fragment", remarks.fragments), ("missing-text", remarks.texts)):
        rows = np.array([row for row, _ in fragments], np.int64)
        kept = urls.own[known.links.source[rows]]
        words = [fragment for (_, fragment), wanted in zip(fragments, kept.tolist(), strict=True) if wanted]
        rows = rows[kept]
        yield IssueColumns(code, known.links.source[rows], known.links.target[rows], links=rows, words=words)
    mails = [(page, f"{text[:200]}: {problem}") for page, text, problem in remarks.mails if urls.own[page]]
    yield IssueColumns("bad-mailto", np.array([page for page, _ in mails], np.int64), words=[text for _, text in mails])
    malformed = [(page, text[:200]) for page, text in remarks.malformed if urls.own[page]]
    yield IssueColumns(
        "malformed-link", np.array([page for page, _ in malformed], np.int64), words=[text for _, text in malformed]
    )


def _nofollow(known: AuditInput) -> Iterator[IssueColumns]:
    """By page, with the number of its nofollow links to own pages."""
    urls, links = known.urls, known.links
    inside = links.nofollow & urls.own[links.source] & urls.own[links.target] & _is_kind(known, _WAYS)
    pages, counts = np.unique(links.source[inside], return_counts=True)
    yield IssueColumns("nofollow-inside", pages, numbers=counts.astype(np.float64))


def _redirects(known: AuditInput) -> Iterator[IssueColumns]:
    """Own URLs that redirect badly, and own pages that link to what has moved."""
    urls, links, redirects = known.urls, known.links, known.redirects
    ends = chain_ends(redirects)
    own = urls.own[redirects.sources]
    for code, mask in (
        ("redirect-loop", ends.loops),
        ("redirect-broken", ~ends.loops & dead(known)[ends.ends]),
        ("redirect-chain", ~ends.loops & (ends.hops >= known.limits.chain_hops)),
    ):
        rows = np.flatnonzero(own & mask)
        rows = rows[np.argsort(redirects.sources[rows])]
        yield IssueColumns(code, redirects.sources[rows], ends.ends[rows], ends.hops[rows].astype(np.float64))
    # Own URLs that redirect are in our hands, whatever the status; others are named when they moved for good.
    # What leads to nothing is a broken link: there is no new place to name.
    moved = ((redirecting(known) & urls.own) | (urls.verdict == VERDICTS.index(Verdict.MOVED))) & ~dead(known)
    asked = urls.own[links.source] & moved[links.target] & ~_is_kind(known, NOT_FOLLOWED)
    yield _of_links(known, "link-to-redirect", np.flatnonzero(asked))


def redirect_ends(known: AuditInput) -> Places:
    """int64[u]: where each URL leads by redirects, itself where it does not redirect."""
    ends = np.arange(len(known.urls.url))
    ends[known.redirects.sources] = chain_ends(known.redirects).ends
    return ends


def _orphans(known: AuditInput) -> Iterator[IssueColumns]:
    """Own pages that no other page leads to, be it over redirects; known from a sitemap or an earlier run."""
    urls, links = known.urls, known.links
    end = redirect_ends(known)[links.target]
    led = _is_kind(known, _WAYS) & (end != links.source)
    reached = np.zeros(len(urls.url), np.bool_)
    reached[end[led]] = True
    starts = redirect_ends(known)[np.flatnonzero(urls.start)]
    reached[starts] = True
    pages = known.pages.place
    missing = urls.verdict[pages] == VERDICTS.index(Verdict.MISSING)
    yield IssueColumns("orphan", pages[~reached[pages] & ~missing])


def _security(known: AuditInput) -> Iterator[IssueColumns]:
    """What secure pages fetch or send insecurely."""
    urls, links = known.urls, known.links
    secure = np.fromiter((text.startswith("https:") for text in urls.url), np.bool_, len(urls.url))
    downgrade = urls.own[links.source] & secure[links.source] & ~secure[links.target]
    yield _of_links(known, "mixed-content", np.flatnonzero(downgrade & _is_kind(known, _BLOCKED)))
    yield _of_links(known, "insecure-form", np.flatnonzero(downgrade & _is_kind(known, frozenset({LinkKind.FORM}))))


CHECKS: tuple[Callable[[AuditInput], Iterator[IssueColumns]], ...] = (
    _targets,
    _starts,
    _remarks,
    _nofollow,
    _redirects,
    _orphans,
    _security,
)


# Each check takes the whole input and yields findings as columns: no loop over pages or links is written in Python but
# where text is looked at.

Check = Callable[[AuditInput], Iterator[IssueColumns]]

# BCP 47 as far as search engines heed it: language, script, region; x-default for everybody else
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?|x-default", re.IGNORECASE)
_NO_REGIONS = frozenset({"uk", "eu", "en"})  # ISO 3166 has GB; these are written by mistake


def audit(known: AuditInput) -> list[IssueColumns]:
    """All that is wrong, by kind in the order of the table; kinds without findings are left out.

    O(u + p log p + m log m).

    A page that is no answer to a reader (a soft 404), asks not to be indexed or names another page as canonical is not
    asked for title, description or text of its own.
    """
    found = [finding for check in AUDIT_CHECKS for finding in check(known) if len(finding)]
    order = {code: place for place, code in enumerate(KINDS_OF_ISSUES)}
    return sorted(found, key=lambda finding: order[finding.code])


def _showable(known: AuditInput) -> Mask:
    """bool[p]: pages that want to be found by themselves."""
    pages = known.pages
    missing = known.urls.verdict[pages.place] == VERDICTS.index(Verdict.MISSING)
    shown: Mask = ~pages.noindex & ~missing & ((pages.canonical < 0) | (pages.canonical == pages.place))
    return shown


def _titles(known: AuditInput) -> Iterator[IssueColumns]:
    pages, limits, shown = known.pages, known.limits, _showable(known)
    yield IssueColumns("title-missing", pages.place[shown & (pages.title == 0)])
    yield _beyond("title-long", pages, shown, pages.title_chars, limits.title_chars)
    yield _shared("title-duplicate", pages, pages.title, shown)
    yield IssueColumns("description-missing", pages.place[shown & (pages.description == 0)])
    yield _beyond("description-long", pages, shown, pages.description_chars, limits.description_chars)
    yield _shared("description-duplicate", pages, pages.description, shown)
    yield IssueColumns("h1-missing", pages.place[shown & (pages.h1s == 0)])
    yield _beyond("h1-several", pages, shown, pages.h1s, 1)


def _beyond(
    code: str, pages: PageTraits, among: Mask, values: NDArray[np.int32 | np.int64 | np.float64], limit: float
) -> IssueColumns:
    """Those whose value is greater than the limit."""
    over = among & (values > limit)
    return IssueColumns(code, pages.place[over], numbers=values[over].astype(np.float64))


def _shared(code: str, pages: PageTraits, keys: NDArray[np.uint64], among: Mask) -> IssueColumns:
    """Pages whose key (not 0) others have too. related: the first of the others; number: how many have it."""
    rows = np.flatnonzero(among & (keys != 0))
    _, first, inverse, counts = np.unique(keys[rows], return_index=True, return_inverse=True, return_counts=True)
    several = counts[inverse] > 1
    heads = rows[first[inverse]][several]
    rows, sizes = rows[several], counts[inverse][several]
    related = pages.place[heads]
    # the first page of a group has the second as its other
    mine = heads == rows
    order = np.lexsort((rows, heads))
    following = np.zeros(len(rows), np.int64)
    following[order[:-1]] = rows[order[1:]]
    related = np.where(mine, pages.place[following] if len(rows) else related, related)
    return IssueColumns(code, pages.place[rows], related, sizes.astype(np.float64))


def _canonicals(known: AuditInput) -> Iterator[IssueColumns]:
    pages = known.pages
    count = len(known.urls.url)
    rows = np.flatnonzero((pages.canonical >= 0) & (pages.canonical != pages.place))
    page, named = pages.place[rows], pages.canonical[rows]
    noindex, third = np.zeros(count, np.bool_), np.full(count, -1, np.int64)
    noindex[pages.place] = pages.noindex
    third[pages.place] = pages.canonical
    gone, moved, hidden = dead(known)[named], redirecting(known)[named], noindex[named]
    chain = (third[named] >= 0) & (third[named] != named)
    taken = np.zeros(len(rows), np.bool_)
    for code, mask in (
        ("canonical-broken", gone),
        ("canonical-redirect", moved),
        ("canonical-noindex", hidden),
        ("canonical-chain", chain),
    ):
        here = mask & ~taken
        yield IssueColumns(code, page[here], named[here])
        taken |= mask
    yield IssueColumns("canonical-elsewhere", page[~taken], named[~taken])


def _sitemap(known: AuditInput) -> Iterator[IssueColumns]:
    urls, pages = known.urls, known.pages
    listed = urls.in_sitemap & urls.own
    if not listed.any():
        return
    yield IssueColumns(
        "robots-sitemap-conflict", np.flatnonzero(listed & (urls.reason == REASONS.index(Reason.ROBOTS)))
    )
    yield IssueColumns("redirect-in-sitemap", np.flatnonzero(listed & redirecting(known)))
    yield IssueColumns("broken-in-sitemap", np.flatnonzero(listed & dead(known)))
    in_list = listed[pages.place]
    yield IssueColumns("noindex-in-sitemap", pages.place[in_list & pages.noindex])
    other = in_list & (pages.canonical >= 0) & (pages.canonical != pages.place)
    yield IssueColumns("canonical-in-sitemap", pages.place[other], pages.canonical[other])
    yield IssueColumns("missing-from-sitemap", pages.place[~in_list & _showable(known)])


def _languages(known: AuditInput) -> Iterator[IssueColumns]:
    pages = known.pages
    yield IssueColumns("language-missing", pages.place[_showable(known) & ~pages.has_language])
    yield IssueColumns("charset-mismatch", pages.place[pages.charset_mismatch])
    rows = known.remarks.hreflangs
    if not rows:
        return
    sources = np.array([row[0] for row in rows], np.int64)
    targets = np.array([row[1] for row in rows], np.int64)
    valid = {language: is_language(language) for language in {row[2] for row in rows}}
    bad = np.array([not valid[row[2]] for row in rows])
    yield IssueColumns(
        "hreflang-bad-language",
        sources[bad],
        targets[bad],
        words=[row[2] for row, wrong in zip(rows, bad.tolist(), strict=True) if wrong],
    )
    yield from _hreflang_pairs(known, sources, targets)


def _hreflang_pairs(known: AuditInput, sources: Places, targets: Places) -> Iterator[IssueColumns]:
    """Each pair once, whatever the languages."""
    count = len(known.urls.url)
    noindex, fetched = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    noindex[known.pages.place], fetched[known.pages.place] = known.pages.noindex, True
    pairs = np.unique(sources * count + targets)
    source, target = pairs // count, pairs % count
    no_page = dead(known)[target] | redirecting(known)[target] | noindex[target]
    yield IssueColumns("hreflang-broken", source[no_page], target[no_page])
    returned = np.isin(target * count + source, pairs)
    alone = fetched[target] & ~returned & ~no_page
    yield IssueColumns("hreflang-no-return", source[alone], target[alone])


def is_language(code: str) -> bool:
    """Whether a hreflang is one that search engines heed."""
    return bool(_LANGUAGE.fullmatch(code)) and code.lower().rpartition("-")[2] not in (
        _NO_REGIONS if "-" in code else ()
    )


_UNREAD = {
    Reason.TRUNCATED: "partly-read",
    Reason.PARTIAL: "partly-read",
    Reason.NOINDEX: "partly-read",
    Reason.UNREADABLE: "unreadable",
    Reason.NEEDS_SCRIPT: "needs-script",
}


def _reading(known: AuditInput) -> Iterator[IssueColumns]:
    """What could not be read, or not whole: of that, nothing else that is found is sure to be all."""
    for code in dict.fromkeys(_UNREAD.values()):
        rows = [(place, why) for place, reason, why in known.remarks.unread if _UNREAD[reason] == code]
        yield IssueColumns(code, np.array([place for place, _ in rows], np.int64), words=[why for _, why in rows])


def _series(known: AuditInput) -> Iterator[IssueColumns]:
    rows = known.remarks.series
    places, left = (np.array([row[at] for row in rows], np.int64) for at in (0, 2))
    yield IssueColumns(
        "endless-series", places, numbers=left.astype(np.float64), words=[pattern for _, pattern, _ in rows]
    )


def _contents(known: AuditInput) -> Iterator[IssueColumns]:
    pages, shown = known.pages, _showable(known)
    yield _shared("duplicate", pages, pages.text, shown)
    yield _beyond("image-without-alt", pages, ~pages.noindex, pages.images_without_alt, 0)
    wanted = np.zeros(len(known.urls.url), np.bool_)
    wanted[pages.place[shown]] = True
    rows = [
        (member, group.leader, value)
        for group in known.remarks.near
        for member, value in zip(group.members, group.similarity, strict=True)
    ]
    kept = [row for row in rows if wanted[row[0]] and wanted[row[1]]]
    members, leaders = np.array([row[0] for row in kept], np.int64), np.array([row[1] for row in kept], np.int64)
    yield IssueColumns(
        "near-duplicate", members, leaders, np.floor(np.array([row[2] for row in kept], np.float64) * 100)
    )


def _measures(known: AuditInput) -> Iterator[IssueColumns]:
    pages, limits, urls = known.pages, known.limits, known.urls
    every = np.ones(len(pages.place), np.bool_)
    yield _beyond("slow-page", pages, every, pages.took_s, limits.slow_s)
    yield _beyond("heavy-page", pages, every, pages.weight_bytes, limits.heavy_bytes)
    yield _beyond("deep-page", pages, every, urls.depth[pages.place], limits.deep_clicks)
    chars = np.fromiter(map(len, urls.url), np.int64, len(urls.url))
    long = np.flatnonzero(urls.own & (chars > limits.url_chars))
    yield IssueColumns("url-too-long", long, numbers=chars[long].astype(np.float64))


AUDIT_CHECKS: tuple[Check, ...] = (
    _titles,
    _canonicals,
    _sitemap,
    _languages,
    _reading,
    _series,
    _contents,
    _measures,
    *CHECKS,
)


# Turns findings into issues, under the user's own grades and without what the user ignores, and groups issues by cause.

_BLOCK = 10_000  # issues put into words at once: bounds memory whatever the number of findings
_LIMITS = {
    "title-long": "title_chars",
    "description-long": "description_chars",
    "slow-page": "slow_s",
    "heavy-page": "heavy_bytes",
    "deep-page": "deep_clicks",
    "url-too-long": "url_chars",
}
_OFF = "off"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Issues of a code (`*` and `?` allowed) whose page or related URL the pattern is found in."""

    code: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class AuditRules:
    """What the user wants otherwise."""

    grades: Mapping[str, Grade] = field(default_factory=dict)
    off: frozenset[str] = frozenset()  # codes that are not reported at all
    ignored: tuple[Ignore, ...] = ()

    def grade(self, code: str) -> Grade:
        return self.grades.get(code, KINDS_OF_ISSUES[code].grade)

    def ignores(self, issue: Issue) -> bool:
        return any(
            fnmatchcase(issue.code, rule.code)
            and (rule.pattern.search(issue.url) or rule.pattern.search(issue.related))
            for rule in self.ignored
        )


def audit_rules(grades: Iterable[str] = (), ignored: Iterable[str] = ()) -> AuditRules:
    """grades: `CODE=error|warning|notice|off`; ignored: `CODE` or `CODE REGEX`. Raises UsageError for what is none."""
    chosen: dict[str, Grade] = {}
    off = set()
    for text in grades:
        code, _, grade = (part.strip() for part in text.partition("="))
        if code not in KINDS_OF_ISSUES:
            raise UsageError(f"there is no issue {code!r}; the codes are: {', '.join(KINDS_OF_ISSUES)}")
        if grade == _OFF:
            off.add(code)
        elif grade in list(Grade):
            chosen[code] = Grade(grade)
        else:
            raise UsageError(f"{text!r}: a grade is {', '.join(Grade)} or {_OFF}")
    return AuditRules(chosen, frozenset(off), tuple(map(_ignore, ignored)))


def _ignore(text: str) -> Ignore:
    code, _, pattern = text.strip().partition(" ")
    if not any(fnmatchcase(known, code) for known in KINDS_OF_ISSUES):
        raise UsageError(f"no issue has the code {code!r}; the codes are: {', '.join(KINDS_OF_ISSUES)}")
    try:
        return Ignore(code, re.compile(pattern.strip()))
    except re.error as error:
        raise UsageError(f"{pattern.strip()!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is too long to keep in columns and is asked for in blocks, for the issues in question only."""

    anchors: Callable[[Places], Iterable[str]] | None = None  # the words of links, given their indices in LinkFacts
    whys: Callable[[Places], Iterable[str]] | None = None  # why a URL has its verdict, given places: "it answers 404"


def issues(
    findings: Iterable[IssueColumns], known: AuditInput, rules: AuditRules | None = None, lookups: Lookups | None = None
) -> Iterator[Issue]:
    """The findings one by one, in their order, in words. Bounded memory."""
    rules, lookups = rules or AuditRules(), lookups or Lookups()
    ends = redirect_ends(known)
    for finding in findings:
        if finding.code in rules.off:
            continue
        for start in range(0, len(finding), _BLOCK):
            block = _part(finding, slice(start, start + _BLOCK))
            for issue in _worded(block, known, ends, lookups):
                graded = dataclasses.replace(issue, grade=rules.grade(issue.code))
                if not rules.ignores(graded):
                    yield graded


def _part(finding: IssueColumns, rows: slice) -> IssueColumns:
    """Some rows of a finding."""
    return rows_of(finding, np.arange(len(finding))[rows])


def rows_of(finding: IssueColumns, rows: Places) -> IssueColumns:
    """Some rows of a finding, in the order given."""
    return IssueColumns(
        finding.code,
        finding.subjects[rows],
        finding.related[rows] if finding.related is not None else None,
        finding.numbers[rows] if finding.numbers is not None else None,
        finding.links[rows] if finding.links is not None else None,
        [finding.words[row] for row in rows.tolist()] if finding.words is not None else None,
    )


def causes(finding: IssueColumns) -> Places:
    """int64[k]: a number for the cause of each row; rows of one cause have the same."""
    related = finding.related if finding.related is not None else finding.subjects
    match KINDS_OF_ISSUES[finding.code].caused_by:
        case CausedBy.PAGE:
            return finding.subjects
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return _numbered(zip(related.tolist(), finding.words or (), strict=True))
        case CausedBy.WORDS:
            return _numbered(finding.words or ())
        case CausedBy.GROUP:
            # the first of a group names the second, the others name the first
            return np.minimum(finding.subjects, related)


def _numbered(values: Iterable[object]) -> Places:
    """The same number for the same value."""
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _cause(kind: CausedBy, page: str, related: str, words: str) -> str:
    """The same as text."""
    match kind:
        case CausedBy.PAGE:
            return page
        case CausedBy.TARGET:
            return related
        case CausedBy.FRAGMENT:
            return f"{related}#{words}"
        case CausedBy.WORDS:
            return words
        case CausedBy.GROUP:
            return min(page, related)


def _worded(finding: IssueColumns, known: AuditInput, ends: Places, lookups: Lookups) -> Iterator[Issue]:
    """ends: where each URL leads by redirects."""
    kind, urls, count = KINDS_OF_ISSUES[finding.code], known.urls, len(finding)
    related = finding.related if finding.related is not None else np.full(count, -1)
    also = ends[related] if finding.code == "link-to-redirect" else related
    anchors = list(lookups.anchors(finding.links)) if finding.links is not None and lookups.anchors else [""] * count
    positions = (
        [POSITIONS[place].value for place in known.links.position[finding.links].tolist()]
        if finding.links is not None
        else [""] * count
    )
    numbers = finding.numbers if finding.numbers is not None else np.zeros(count)
    limit = float(getattr(known.limits, _LIMITS[finding.code])) if finding.code in _LIMITS else 0.0
    words = finding.words if finding.words is not None else _whys(related, known, lookups)
    for row, (page, other, third) in enumerate(
        zip(finding.subjects.tolist(), related.tolist(), also.tolist(), strict=True)
    ):
        named, about = urls.url[third] if third >= 0 else "", urls.url[other] if other >= 0 else ""
        detail = kind.detail.format(number=float(numbers[row]), limit=limit, also=named, words=words[row])
        cause = _cause(kind.caused_by, urls.url[page], about, words[row])
        yield Issue(kind.code, kind.grade, urls.url[page], detail, about, anchors[row], positions[row], cause)


def _whys(related: Places, known: AuditInput, lookups: Lookups) -> Sequence[str]:
    """Why the related URLs are thought ill of: the judgement's own words, else its name, else the crawl's reason."""
    if lookups.whys:
        return list(lookups.whys(related))
    unchecked = VERDICTS.index(Verdict.UNCHECKED)
    verdicts, reasons = known.urls.verdict[related].tolist(), known.urls.reason[related].tolist()
    return [
        VERDICTS[verdict].value if verdict != unchecked else REASONS[reason].value
        for verdict, reason in zip(verdicts, reasons, strict=True)
    ]


def faults(found: Iterable[Issue]) -> list[Fault]:
    """The issues by their cause: gravest first, then by kind as in the table of kinds, then those on most pages."""
    groups: dict[tuple[str, Grade, str], list[Issue]] = {}
    for issue in found:
        groups.setdefault((issue.code, issue.grade, issue.cause or issue.url), []).append(issue)
    made = [
        Fault(code, grade, cause, len({issue.url for issue in issues}), len(issues), tuple(issues))
        for (code, grade, cause), issues in groups.items()
    ]
    grades, codes = list(Grade), {code: place for place, code in enumerate(KINDS_OF_ISSUES)}
    return sorted(made, key=lambda fault: (grades.index(fault.grade), codes[fault.code], -fault.pages, fault.cause))


def counts(found: Iterable[Fault]) -> Counter[str]:
    """Faults by code, by grade and by category, in one table: no two of these names are alike."""
    table: Counter[str] = Counter()
    for fault in found:
        table.update((fault.code, fault.grade.value, KINDS_OF_ISSUES[fault.code].category.value))
    return table
