"""What is wrong with a site, by all that was seen of it in crawls and checks? One function for the check, the lists and the report.

`api.auditing` reads what the crawl left; here the verdicts on links come to it, with the places that checks looked for on other sites' pages.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from periplus.analyse.audit import audit
from periplus.analyse.audit_input import AuditInput, Finding, Places
from periplus.analyse.audit_issues import AuditRules, Lookups, issues
from periplus.analyse.verdicts import Judgement
from periplus.api.auditing import Audited, AuditOrder
from periplus.api.auditing import audited as stored_audit
from periplus.api.error_pages import missing_pages
from periplus.api.facts import Start
from periplus.api.judging import SETTLED, Seen
from periplus.model.audit import VERDICTS, FragmentVerdict, Issue, Verdict
from periplus.model.duplicates import DuplicateGroup
from periplus.model.graph import REASONS
from periplus.model.page import LinkKind, Position
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.settings import FetchLimits, Manners
from periplus.store.sqlite import checks, graph_rows, reading, runs, site_rows
from periplus.urls.canonical import url_id

CHECK = "check"  # the kind of run that checks links
_SETTLED = np.array([reason in SETTLED for reason in REASONS])
_KINDS = {kind.value: place for place, kind in enumerate(LinkKind)}
_POSITIONS = {position.value: place for place, position in enumerate(Position)}


@dataclass(frozen=True, slots=True)
class SiteAudit:
    """A site with all that was found."""

    known: AuditInput
    findings: Sequence[Finding]
    judgements: Mapping[int, Judgement]  # by place; of those only that are not simply there
    ids: Places  # of the URLs, by place
    duplicates: tuple[DuplicateGroup, ...]  # pages of one text or nearly one
    notes: tuple[str, ...]  # what was not looked at, and why

    def issues(self, connection: reading.Connection, rules: AuditRules | None = None) -> Iterator[Issue]:
        """The findings one by one, in words. Bounded memory."""

        def anchors(links: Places) -> Iterable[str]:
            pairs = zip(self.ids[self.known.links.source[links]].tolist(), self.ids[self.known.links.target[links]].tolist(), strict=True)
            return site_rows.anchors_of(connection, pairs)

        def whys(places: Places) -> Iterable[str]:
            return (self.judgements[place].why if place in self.judgements else "" for place in places.tolist())

        better = {self.known.urls.url[place]: judgement.better for place, judgement in self.judgements.items() if judgement.better}
        for issue in issues(self.findings, self.known, rules, Lookups(anchors, whys)):
            if issue.code == "link-to-redirect" and Url(issue.related) in better:
                issue = dataclasses.replace(issue, detail=f"leads to {better[Url(issue.related)]}")  # noqa: PLW2901  # the end may be a URL that only checks met
            yield issue


def audited(connection: reading.Connection, start: Start, *, spacing_s: float | None = None, near: bool | None = None) -> SiteAudit:
    """Everything that is wrong with a site, by what is stored of it; within a snapshot.

    spacing_s: between two failures that make a link broken; None: as the last check had it. near: compare texts; None: where the site is not too large for it.
    """
    links = site_rows.site_links(connection, start.site)
    begun = [url_id(Url(text)) for run in runs.run_records(connection) for text in run.starts]
    order = AuditOrder(start.site, (UrlId(start.home_id), *dict.fromkeys(begun)), near)
    base = stored_audit(connection, order, links, graph_rows.redirects(connection))
    seen = Seen(connection, site_rows.all_urls(connection), *_check_settings(connection, spacing_s))
    missing = missing_pages(connection, seen, list(site_rows.page_texts(connection, start.site)))
    verdict, judgements = _verdicts(base, seen, missing)
    said, looked_for = base.known.remarks, list(_looked_for(connection, seen, links))
    fragments = [*said.fragments, *((row, fragment) for row, fragment, verdict in looked_for if verdict is FragmentVerdict.MISSING)]
    texts = [*said.texts, *((row, fragment) for row, fragment, verdict in looked_for if verdict is FragmentVerdict.TEXT_MISSING)]
    known = dataclasses.replace(
        base.known,
        urls=dataclasses.replace(base.known.urls, verdict=verdict),
        remarks=dataclasses.replace(said, fragments=fragments, texts=texts),
    )
    return SiteAudit(known, audit(known), judgements, base.ids, base.duplicates, base.notes)


def _check_settings(connection: reading.Connection, spacing_s: float | None) -> tuple[float, int]:
    """(seconds between two failures, redirects that are followed) of the last check."""
    stored = next((run.settings for run in reversed(runs.run_records(connection)) if run.kind == CHECK), {})
    wait, hops = stored.get("recheck_wait_s"), stored.get("redirect_hops")
    usual = wait if isinstance(wait, float) else Manners().recheck_wait_s
    return usual if spacing_s is None else spacing_s, hops if isinstance(hops, int) else FetchLimits().redirect_hops


def _verdicts(base: Audited, seen: Seen, missing: Mapping[int, str]) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], dict[int, Judgement]]:
    """What is thought of each URL, and the judgements that are worth words."""
    urls = base.known.urls
    verdict = np.where(_SETTLED[urls.reason], VERDICTS.index(Verdict.OK), VERDICTS.index(Verdict.UNCHECKED)).astype(np.uint8)
    asked = urls.own.copy()
    asked[base.known.links.target] = True
    asked[base.known.redirects.targets] = True
    asked &= ~_SETTLED[urls.reason] & (urls.reason != REASONS.index(Reason.WAITING))
    asked |= np.isin(base.ids, np.array(list(missing), np.int64))
    judgements = {place: seen.judgement(int(base.ids[place]), missing) for place in np.flatnonzero(asked).tolist()}
    for place, judgement in judgements.items():
        verdict[place] = VERDICTS.index(judgement.verdict)
    return verdict, judgements


def _looked_for(connection: reading.Connection, seen: Seen, links: site_rows.SiteLinks) -> Iterator[tuple[int, str, FragmentVerdict]]:
    """(index of a link, fragment, verdict) of the links to pages that were not kept, or that redirects lead to."""
    looks: dict[int, dict[str, FragmentVerdict]] = {url_id(url): dict(look.fragments) for url, look in checks.looks(connection).items() if look.fragments}
    for source, target, kind, position, fragments in checks.fragments(connection):
        verdicts = looks.get(seen.way(target).end, {})
        for fragment in fragments.split():
            if (verdict := verdicts.get(fragment)) is not None:
                yield from ((row, fragment, verdict) for row in _rows(links, source, target, (_KINDS[kind], _POSITIONS[position])))


def _rows(links: site_rows.SiteLinks, source: int, target: int, what: tuple[int, int]) -> Iterator[int]:
    """Where the first link from one to the other stands, of this kind and position; nowhere if it is another site's."""
    row = int(np.searchsorted(links.sources, source))
    while row < len(links.sources) and links.sources[row] == source:
        if (int(links.targets[row]), int(links.kinds[row]), int(links.positions[row])) == (target, *what):
            yield row
            return
        row += 1
