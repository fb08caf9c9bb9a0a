"""What is wrong with a site's links and redirects?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from periplus.analyse.audit_input import AuditInput, Finding, Mask, Places, dead, redirecting
from periplus.analyse.redirects import chain_ends
from periplus.analyse.sizes import KINDS
from periplus.model.audit import VERDICTS, Verdict
from periplus.model.page import LinkKind

# What has checks of its own, or is no invitation to follow: a form's target expects what is typed, a citation is a name.
NOT_FOLLOWED = frozenset({LinkKind.REDIRECT, LinkKind.CANONICAL, LinkKind.ALTERNATE, LinkKind.FORM, LinkKind.CITE, LinkKind.SITEMAP})
_PARTS = frozenset({LinkKind.IMAGE, LinkKind.STYLE, LinkKind.SCRIPT, LinkKind.MEDIA, LinkKind.OBJECT, LinkKind.ICON, LinkKind.FRAME, LinkKind.IFRAME})
_WAYS = frozenset({LinkKind.ANCHOR, LinkKind.AREA, LinkKind.FRAME, LinkKind.IFRAME, LinkKind.REFRESH})  # by which a reader comes to a page
_BLOCKED = _PARTS - {LinkKind.ICON}  # by browsers, or warned of, where a secure page fetches them insecurely (Mixed Content, W3C)
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


def _of_links(known: AuditInput, code: str, rows: Places) -> Finding:
    """A finding for each of these links, by page."""
    rows = rows[np.argsort(known.links.source[rows], kind="stable")]
    return Finding(code, known.links.source[rows], known.links.target[rows], links=rows)


def _targets(known: AuditInput) -> Iterator[Finding]:
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


def _starts(known: AuditInput) -> Iterator[Finding]:
    """What the user gave as a start, and is not there: perhaps no link leads to it."""
    yield Finding("dead-start", np.flatnonzero(known.urls.start & dead(known)))


def _remarks(known: AuditInput) -> Iterator[Finding]:
    """What was found at single links."""
    urls, remarks = known.urls, known.remarks
    for code, fragments in (("broken-fragment", remarks.fragments), ("missing-text", remarks.texts)):
        rows = np.array([row for row, _ in fragments], np.int64)
        kept = urls.own[known.links.source[rows]]
        words = [fragment for (_, fragment), wanted in zip(fragments, kept.tolist(), strict=True) if wanted]
        rows = rows[kept]
        yield Finding(code, known.links.source[rows], known.links.target[rows], links=rows, words=words)
    mails = [(page, f"{text[:200]}: {problem}") for page, text, problem in remarks.mails if urls.own[page]]
    yield Finding("bad-mailto", np.array([page for page, _ in mails], np.int64), words=[text for _, text in mails])
    malformed = [(page, text[:200]) for page, text in remarks.malformed if urls.own[page]]
    yield Finding("malformed-link", np.array([page for page, _ in malformed], np.int64), words=[text for _, text in malformed])


def _nofollow(known: AuditInput) -> Iterator[Finding]:
    """By page, with the number of its nofollow links to own pages."""
    urls, links = known.urls, known.links
    inside = links.nofollow & urls.own[links.source] & urls.own[links.target] & _is_kind(known, _WAYS)
    pages, counts = np.unique(links.source[inside], return_counts=True)
    yield Finding("nofollow-inside", pages, numbers=counts.astype(np.float64))


def _redirects(known: AuditInput) -> Iterator[Finding]:
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
        yield Finding(code, redirects.sources[rows], ends.ends[rows], ends.hops[rows].astype(np.float64))
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


def _orphans(known: AuditInput) -> Iterator[Finding]:
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
    yield Finding("orphan", pages[~reached[pages] & ~missing])


def _security(known: AuditInput) -> Iterator[Finding]:
    """What secure pages fetch or send insecurely."""
    urls, links = known.urls, known.links
    secure = np.fromiter((text.startswith("https:") for text in urls.url), np.bool_, len(urls.url))
    downgrade = urls.own[links.source] & secure[links.source] & ~secure[links.target]
    yield _of_links(known, "mixed-content", np.flatnonzero(downgrade & _is_kind(known, _BLOCKED)))
    yield _of_links(known, "insecure-form", np.flatnonzero(downgrade & _is_kind(known, frozenset({LinkKind.FORM}))))


CHECKS: tuple[Callable[[AuditInput], Iterator[Finding]], ...] = (_targets, _starts, _remarks, _nofollow, _redirects, _orphans, _security)
