"""What is wrong with a site's pages?

Each check takes the whole input and yields findings as columns: no loop over pages or links is written in Python but where
text is looked at. `audit_links` has the checks of links and redirects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from periplus.analyse import audit_links
from periplus.analyse.audit_input import AuditInput, Finding, Mask, PageTraits, Places, dead, redirecting
from periplus.analyse.audit_table import KINDS_OF_ISSUES
from periplus.model.audit import VERDICTS, Verdict
from periplus.model.graph import REASONS
from periplus.model.visit import Reason

Check = Callable[[AuditInput], Iterator[Finding]]

# BCP 47 as far as search engines heed it: language, script, region; x-default for everybody else
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?|x-default", re.IGNORECASE)
_NO_REGIONS = frozenset({"uk", "eu", "en"})  # ISO 3166 has GB; these are written by mistake


def audit(known: AuditInput) -> list[Finding]:
    """All that is wrong, by kind in the order of the table; kinds without findings are left out. O(u + p log p + m log m).

    A page that is no answer to a reader (a soft 404), asks not to be indexed or names another page as canonical is not
    asked for title, description or text of its own.
    """
    found = [finding for check in CHECKS for finding in check(known) if len(finding)]
    order = {code: place for place, code in enumerate(KINDS_OF_ISSUES)}
    return sorted(found, key=lambda finding: order[finding.code])


def _showable(known: AuditInput) -> Mask:
    """bool[p]: pages that want to be found by themselves."""
    pages = known.pages
    missing = known.urls.verdict[pages.place] == VERDICTS.index(Verdict.MISSING)
    shown: Mask = ~pages.noindex & ~missing & ((pages.canonical < 0) | (pages.canonical == pages.place))
    return shown


def _titles(known: AuditInput) -> Iterator[Finding]:
    pages, limits, shown = known.pages, known.limits, _showable(known)
    yield Finding("title-missing", pages.place[shown & (pages.title == 0)])
    yield _beyond("title-long", pages, shown, pages.title_chars, limits.title_chars)
    yield _shared("title-duplicate", pages, pages.title, shown)
    yield Finding("description-missing", pages.place[shown & (pages.description == 0)])
    yield _beyond("description-long", pages, shown, pages.description_chars, limits.description_chars)
    yield _shared("description-duplicate", pages, pages.description, shown)
    yield Finding("h1-missing", pages.place[shown & (pages.h1s == 0)])
    yield _beyond("h1-several", pages, shown, pages.h1s, 1)


def _beyond(code: str, pages: PageTraits, among: Mask, values: NDArray[np.int32 | np.int64 | np.float64], limit: float) -> Finding:
    """Those whose value is greater than the limit."""
    over = among & (values > limit)
    return Finding(code, pages.place[over], numbers=values[over].astype(np.float64))


def _shared(code: str, pages: PageTraits, keys: NDArray[np.uint64], among: Mask) -> Finding:
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
    return Finding(code, pages.place[rows], related, sizes.astype(np.float64))


def _canonicals(known: AuditInput) -> Iterator[Finding]:
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
    for code, mask in (("canonical-broken", gone), ("canonical-redirect", moved), ("canonical-noindex", hidden), ("canonical-chain", chain)):
        here = mask & ~taken
        yield Finding(code, page[here], named[here])
        taken |= mask
    yield Finding("canonical-elsewhere", page[~taken], named[~taken])


def _sitemap(known: AuditInput) -> Iterator[Finding]:
    urls, pages = known.urls, known.pages
    listed = urls.in_sitemap & urls.own
    if not listed.any():
        return
    yield Finding("robots-sitemap-conflict", np.flatnonzero(listed & (urls.reason == REASONS.index(Reason.ROBOTS))))
    yield Finding("redirect-in-sitemap", np.flatnonzero(listed & redirecting(known)))
    yield Finding("broken-in-sitemap", np.flatnonzero(listed & dead(known)))
    in_list = listed[pages.place]
    yield Finding("noindex-in-sitemap", pages.place[in_list & pages.noindex])
    other = in_list & (pages.canonical >= 0) & (pages.canonical != pages.place)
    yield Finding("canonical-in-sitemap", pages.place[other], pages.canonical[other])
    yield Finding("missing-from-sitemap", pages.place[~in_list & _showable(known)])


def _languages(known: AuditInput) -> Iterator[Finding]:
    pages = known.pages
    yield Finding("language-missing", pages.place[_showable(known) & ~pages.has_language])
    yield Finding("charset-mismatch", pages.place[pages.charset_mismatch])
    rows = known.remarks.hreflangs
    if not rows:
        return
    sources = np.array([row[0] for row in rows], np.int64)
    targets = np.array([row[1] for row in rows], np.int64)
    valid = {language: is_language(language) for language in {row[2] for row in rows}}
    bad = np.array([not valid[row[2]] for row in rows])
    yield Finding("hreflang-bad-language", sources[bad], targets[bad], words=[row[2] for row, wrong in zip(rows, bad.tolist(), strict=True) if wrong])
    yield from _hreflang_pairs(known, sources, targets)


def _hreflang_pairs(known: AuditInput, sources: Places, targets: Places) -> Iterator[Finding]:
    """Each pair once, whatever the languages."""
    count = len(known.urls.url)
    noindex, fetched = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    noindex[known.pages.place], fetched[known.pages.place] = known.pages.noindex, True
    pairs = np.unique(sources * count + targets)
    source, target = pairs // count, pairs % count
    no_page = dead(known)[target] | redirecting(known)[target] | noindex[target]
    yield Finding("hreflang-broken", source[no_page], target[no_page])
    returned = np.isin(target * count + source, pairs)
    alone = fetched[target] & ~returned & ~no_page
    yield Finding("hreflang-no-return", source[alone], target[alone])


def is_language(code: str) -> bool:
    """Whether a hreflang is one that search engines heed."""
    return bool(_LANGUAGE.fullmatch(code)) and code.lower().rpartition("-")[2] not in (_NO_REGIONS if "-" in code else ())


_UNREAD = {
    Reason.TRUNCATED: "partly-read",
    Reason.PARTIAL: "partly-read",
    Reason.NOINDEX: "partly-read",
    Reason.UNREADABLE: "unreadable",
    Reason.NEEDS_SCRIPT: "needs-script",
}


def _reading(known: AuditInput) -> Iterator[Finding]:
    """What could not be read, or not whole: of that, nothing else that is found is sure to be all."""
    for code in dict.fromkeys(_UNREAD.values()):
        rows = [(place, why) for place, reason, why in known.remarks.unread if _UNREAD[reason] == code]
        yield Finding(code, np.array([place for place, _ in rows], np.int64), words=[why for _, why in rows])


def _series(known: AuditInput) -> Iterator[Finding]:
    rows = known.remarks.series
    places, left = (np.array([row[at] for row in rows], np.int64) for at in (0, 2))
    yield Finding("endless-series", places, numbers=left.astype(np.float64), words=[family for _, family, _ in rows])


def _contents(known: AuditInput) -> Iterator[Finding]:
    pages, shown = known.pages, _showable(known)
    yield _shared("duplicate", pages, pages.text, shown)
    yield _beyond("image-without-alt", pages, ~pages.noindex, pages.images_without_alt, 0)
    wanted = np.zeros(len(known.urls.url), np.bool_)
    wanted[pages.place[shown]] = True
    rows = [(member, group.leader, value) for group in known.remarks.near for member, value in zip(group.members, group.similarity, strict=True)]
    kept = [row for row in rows if wanted[row[0]] and wanted[row[1]]]
    members, leaders = np.array([row[0] for row in kept], np.int64), np.array([row[1] for row in kept], np.int64)
    yield Finding("near-duplicate", members, leaders, np.floor(np.array([row[2] for row in kept], np.float64) * 100))


def _measures(known: AuditInput) -> Iterator[Finding]:
    pages, limits, urls = known.pages, known.limits, known.urls
    every = np.ones(len(pages.place), np.bool_)
    yield _beyond("slow-page", pages, every, pages.took_s, limits.slow_s)
    yield _beyond("heavy-page", pages, every, pages.weight_bytes, limits.heavy_bytes)
    yield _beyond("deep-page", pages, every, urls.layer[pages.place], limits.deep_clicks)
    chars = np.fromiter(map(len, urls.url), np.int64, len(urls.url))
    long = np.flatnonzero(urls.own & (chars > limits.url_chars))
    yield Finding("url-too-long", long, numbers=chars[long].astype(np.float64))


CHECKS: tuple[Check, ...] = (_titles, _canonicals, _sitemap, _languages, _reading, _series, _contents, _measures, *audit_links.CHECKS)
