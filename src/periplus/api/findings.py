"""What does a site's owner want to know: dead links, redirects, other sites, duplicates, tallies? Gathered for the report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.hierarchy import map_tree
from periplus.analyse.linkgraph import FETCHED, distinct_sorted, places_in_sorted, resolved
from periplus.api.facts import RankOrder, SiteAnalysis, SiteRows, about, analysed, read_site, starts_of
from periplus.model.graph import REASONS, LinkRows
from periplus.model.results import DeadLink, Duplicates, Holder, LayerTally, PageFacts, Redirect, ReportData, SiteMap, StateTally, Tally
from periplus.model.visit import Reason, State
from periplus.model.web import Url
from periplus.present.wording import without_site_name
from periplus.store.sqlite import graph_rows, reading, runs
from periplus.store.sqlite.listing import reasons_of

TOP_PAGES = 200  # as many as the report shows
DEAD = [reason for reason in reasons_of(State.INVALID) if reason not in (Reason.BUG, Reason.PRIVATE)]  # those are our doing
MAP_NODES = 400  # of the report's map: it opens branch by branch


def report_data(connection: reading.Connection, site: str, order: RankOrder, now: float) -> ReportData:
    """Everything that the report of a site shows. Raises UsageError for a site that is not there."""
    with reading.snapshot(connection):
        rows = read_site(connection, site, now)
        found = _with_short_titles(analysed(rows, order))
        links = _from_fetched(rows)
        ended = rows.run.ended if not rows.running else None
        return ReportData(
            about=about(rows, found.ranking, now),
            finished=ended or 0.0,
            counts=_counts(connection, rows),
            pages=found.facts,
            tree=map_tree(found.site_map, found.facts.rank, found.facts.size_bytes, found.graph.indexed, max_nodes=MAP_NODES) if found.site_map else None,
            layers=layer_tallies(found.site_map, found.graph.indexed) if found.site_map else (),
            top=_top(found),
            dead=dead_links(connection, rows, links),
            redirects=_redirects(connection, rows, links),
            hosts=graph_rows.tallies(connection, rows.start.site, "host"),
            external=external_sites(connection, rows, links),
            media=graph_rows.tallies(connection, rows.start.site, "media_type"),
            charsets=graph_rows.tallies(connection, rows.start.site, "charset"),
            languages=graph_rows.tallies(connection, rows.start.site, "language"),
            duplicates=_duplicates(connection, rows),
        )


def _with_short_titles(found: SiteAnalysis) -> SiteAnalysis:
    return replace(found, facts=replace(found.facts, title=without_site_name(found.facts.title)))


def _counts(connection: reading.Connection, rows: SiteRows) -> tuple[StateTally, ...]:
    """Of all URLs, those outside included; only of the site's own where the collection has several sites."""
    alone = len(starts_of(runs.run_records(connection), connection, rows.redirects)) == 1
    return tuple(reading.counts(connection, None if alone else rows.start.site))


def _from_fetched(rows: SiteRows) -> LinkRows:
    """The links of the pages that are fetched now: not those of a page that is gone since."""
    fetched = np.isin(rows.urls.reasons, [REASONS.index(reason) for reason in FETCHED])
    kept = places_in_sorted(np.sort(rows.urls.ids[fetched]), rows.links.sources) >= 0
    return LinkRows(rows.links.sources[kept], rows.links.targets[kept])


def layer_tallies(site_map: SiteMap, indexed: NDArray[np.bool_]) -> tuple[LayerTally, ...]:
    """How many pages each layer holds."""
    reached = site_map.layer >= 0
    total = np.bincount(site_map.layer[reached])
    fetched = np.bincount(site_map.layer[reached & indexed], minlength=len(total))
    return tuple(LayerTally(layer, own, pages - own) for layer, (pages, own) in enumerate(zip(total.tolist(), fetched.tolist(), strict=True)))


def _top(found: SiteAnalysis) -> tuple[PageFacts, ...]:
    fetched = np.flatnonzero(found.graph.indexed)
    best = fetched[np.argsort(-found.facts.rank[fetched], kind="stable")][:TOP_PAGES]
    return tuple(map(found.facts.page, best.tolist()))


def dead_links(connection: reading.Connection, rows: SiteRows, links: LinkRows) -> tuple[DeadLink, ...]:
    """URLs that lead nowhere, at once or by redirects, with the pages that link to them; most pages first.

    Named as the pages write them: where a redirect leads nowhere, the URL that redirects. Dead URLs of the site without any
    link (from a sitemap, or a start) stand last.
    """
    dead = graph_rows.url_ids(connection, DEAD)
    ends, known = resolved(links.targets, rows.redirects)
    hit = ~known | (places_in_sorted(dead, ends) >= 0)
    holders: dict[int, list[int]] = defaultdict(list)
    end_of: dict[int, int] = {}
    for source, target, end, leads in zip(links.sources[hit].tolist(), links.targets[hit].tolist(), ends[hit].tolist(), known[hit].tolist(), strict=True):
        holders[target].append(source)
        end_of[target] = end if leads else target
    behind = {end for target, end in end_of.items() if end != target}
    for url_id in graph_rows.url_ids(connection, DEAD, rows.start.site).tolist():
        if url_id not in behind:
            holders.setdefault(url_id, [])
            end_of.setdefault(url_id, url_id)
    found = [_dead_link(connection, target, end_of[target], sources) for target, sources in holders.items()]
    return tuple(sorted(found, key=lambda link: (-len(link.holders), link.target)))


def _dead_link(connection: reading.Connection, target: int, end: int, sources: list[int]) -> DeadLink:
    what, last = _known(connection, target), _known(connection, end)
    held = [
        Holder(_known(connection, source).url, graph_rows.title_of(connection, source), graph_rows.anchor_of(connection, source, target)) for source in sources
    ]
    reason = Reason.BAD_ANSWER if last.reason is Reason.REDIRECT else last.reason  # a circle of redirects
    return DeadLink(what.url, reason, last.status, tuple(sorted(held, key=lambda holder: holder.url)))


def _known(connection: reading.Connection, url_id: int) -> graph_rows.UrlFacts:
    """What is known of a URL that a link names; each has its row."""
    return graph_rows.url_facts(connection, url_id) or graph_rows.UrlFacts(Url("?"), Reason.BUG, 0, "")


def _redirects(connection: reading.Connection, rows: SiteRows, links: LinkRows) -> tuple[Redirect, ...]:
    """The site's URLs that redirect, those with most pages still linking there first."""
    moved = graph_rows.url_ids(connection, [Reason.REDIRECT], rows.start.site)
    place = places_in_sorted(moved, links.targets)
    counts = np.bincount(place[place >= 0], minlength=len(moved)).tolist()
    known = [_known(connection, url_id) for url_id in moved.tolist()]
    found = [Redirect(facts.url, Url(facts.rule), facts.status, count) for facts, count in zip(known, counts, strict=True)]
    return tuple(sorted(found, key=lambda redirect: (-redirect.links, redirect.source)))


def external_sites(connection: reading.Connection, rows: SiteRows, links: LinkRows) -> tuple[Tally, ...]:
    """Other sites that pages link to, most pages first. What is known to be dead is an error of the site, not a link out (SPEC A7)."""
    ids, sites = graph_rows.sites_of_urls(connection)
    order = np.argsort(ids)
    ids, sites = ids[order], sites[order]
    ends, known = resolved(links.targets, rows.redirects)
    place = places_in_sorted(ids, ends)
    leads = known & (place >= 0) & (places_in_sorted(graph_rows.url_ids(connection, DEAD), ends) < 0)
    names = graph_rows.site_names(connection)
    own = next((number for number, name in names.items() if name == rows.start.site), 0)
    leads[leads] = sites[place[leads]] != own
    pairs = distinct_sorted(sites[place[leads]] * len(ids) + places_in_sorted(ids, links.sources[leads]))  # one for a site and a page
    numbers, pages = np.unique(pairs // max(len(ids), 1), return_counts=True)
    found = [Tally(names[number], count) for number, count in zip(numbers.tolist(), pages.tolist(), strict=True)]
    return tuple(sorted(found, key=lambda tally: (-tally.pages, tally.name)))


def _duplicates(connection: reading.Connection, rows: SiteRows) -> tuple[Duplicates, ...]:
    """Pages of one content, what is repeated most often first."""
    groups = groupby(graph_rows.shared_bodies(connection, rows.start.site), key=lambda row: row[:2])
    found = [Duplicates(tuple(url for _, _, url in group), size) for (_, size), group in groups]
    return tuple(sorted(found, key=lambda one: (-len(one.urls), one.urls[0])))
