"""The rows of a site from one snapshot, their analyses, and the sizes of page resources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from periplus.analyse.linkgraph import (
    hierarchical_map,
    link_graph,
    places,
    places_in_sorted,
    resolve_redirects,
    sort_distinct,
)
from periplus.analyse.pagerank import link_score, pagerank, published_rank
from periplus.analyse.sizes import linked_bytes
from periplus.errors import UsageError
from periplus.model.arrays import Ints
from periplus.model.graph import REASONS, LinkGraph, LinkRows, PageRows, UrlRows
from periplus.model.ports import RunRecord
from periplus.model.results import About, LinkedBytes, PageColumns, Ranking, SiteMap
from periplus.model.visit import STATE_OF, Reason, UrlFacts
from periplus.model.web import SiteKey, Url
from periplus.present.wording import REASON_WORDS, count_of
from periplus.settings import Settings, as_values
from periplus.store import site_rows as stored_rows
from periplus.store.reader import CollectionReader
from periplus.store.site_arrays import StoredSites
from periplus.store.site_arrays import redirects as all_redirects
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key
from periplus.values import frozen

# Unless a check was asked to fetch resource sizes, only fetched URLs have a size, and no check changes a map or the
# sizes in a report.

SCALES = ("normalised", "published")
MOST_SITES = 10  # in an error message


@frozen
class Parts:
    """Links from pages to their resources, by id, and all known sizes."""

    links: LinkRows
    sizes: stored_rows.AnyPages


def known_sizes(reader: CollectionReader) -> stored_rows.AnyPages:
    """Type and size of every page, and of resources if a check was asked for their sizes. Data of the crawl takes
    precedence.
    """
    pages = stored_rows.any_pages(reader)
    if not stored_rows.are_sizes_requested(reader):
        return pages
    answers = stored_rows.part_sizes(reader)
    for url, media_type, size in zip(pages.ids.tolist(), pages.media_types, pages.sizes.tolist(), strict=True):
        if size or url not in answers:
            answers[url] = stored_rows.ServerAnswer(media_type, size)
    ids = sorted(answers)
    sizes = np.fromiter((answers[url].size_bytes for url in ids), np.int64, len(ids))
    return stored_rows.AnyPages(np.array(ids, np.int64), [answers[url].media_type for url in ids], sizes)


def parts_of(reader: CollectionReader, site: SiteKey) -> Parts | None:
    """None if no check was asked for sizes. Call within a snapshot."""
    return (
        Parts(stored_rows.parts(reader, site), known_sizes(reader)) if stored_rows.are_sizes_requested(reader) else None
    )


def linked_bytes_and_resources(graph: LinkGraph, facts: PageColumns, parts: Parts) -> LinkedBytes:
    """Like `linked_bytes`, including page resources: they are further nodes without links of their own. Each target
    counts once per page.
    """
    count = len(graph.pages)
    ids = np.fromiter(map(url_id, graph.pages), np.int64, count)
    links = parts.links
    further = sort_distinct(links.targets[places(ids, links.targets) < 0])
    nodes = np.concatenate([ids, further])
    sizes, types = np.zeros(len(nodes), np.int64), [*facts.media_type, *[""] * len(further)]
    sizes[:count] = facts.size_bytes
    row = places_in_sorted(parts.sizes.ids, nodes)
    for node in np.flatnonzero((sizes == 0) & (row >= 0)).tolist():
        sizes[node], types[node] = parts.sizes.sizes[row[node]], parts.sizes.media_types[row[node]]
    linked = linked_bytes(_extend_graph(graph, nodes, links), sizes, types)
    return LinkedBytes(linked.sizes[:count], linked.unsized[:count])


def _extend_graph(graph: LinkGraph, nodes: Ints, links: LinkRows) -> LinkGraph:
    """The graph with more nodes and links. nodes: ids, the graph's own first."""
    count = len(nodes)
    sources, targets = places(nodes, links.sources), places(nodes, links.targets)
    own_links = sources >= 0
    own = np.repeat(np.arange(len(graph.pages)), np.diff(graph.offsets)) * count + graph.targets
    pairs = sort_distinct(np.concatenate([own, sources[own_links] * count + targets[own_links]]))
    offsets = np.searchsorted(pairs, np.arange(count + 1) * count)
    return replace(
        graph,
        pages=(*graph.pages, *[Url("")] * (count - len(graph.pages))),
        offsets=offsets,
        targets=(pairs % max(count, 1)).astype(np.int32),
    )


@frozen
class RankOrder:
    """How pages are ranked.

    scale: `normalised` (sum 1) or `published` (the site mapper's own, SPEC A5). rounds: iterations on the published
    scale; None: until convergence.
    """

    scale: str = "normalised"
    damping: float = 0.85
    rounds: int | None = None


@frozen
class Start:
    """The start of a site's crawl, and where its redirects end."""

    url: Url
    home_id: int
    site: SiteKey  # of the home page


@frozen
class SiteRows:
    """The stored data of a site at one moment. run: the collection's last."""

    start: Start
    home: UrlFacts | None  # None: it was never queued
    run: RunRecord
    running: bool
    urls: UrlRows
    links: LinkRows
    redirects: LinkRows
    pages: PageRows
    statuses: tuple[Ints, Ints]
    parts: Parts | None  # None: no check was asked for resource sizes


@frozen
class SiteAnalysis:
    """A site's link graph and its analyses. site_map: None if the home page was not fetched."""

    graph: LinkGraph
    ranking: Ranking
    site_map: SiteMap | None
    facts: PageColumns


def site_starts(reader: CollectionReader) -> list[Start]:
    """Starts of all runs of a collection in a folder, see `starts_of`."""
    return starts_of(reader.runs(), all_redirects(reader), reader.site_of)


def starts_of(
    run_records: Sequence[RunRecord], redirects: LinkRows, site_of: Callable[[int], SiteKey | None]
) -> list[Start]:
    """The first start of each site, in the order of the starts."""
    starts: dict[SiteKey, Start] = {}
    for text in dict.fromkeys(text for record in run_records for text in record.starts):
        url = Url(text)
        ends, leads = resolve_redirects(np.array([url_id(url)], np.int64), redirects)
        home_id = int(ends[0]) if leads[0] else url_id(url)
        site = site_of(home_id) or site_key(url)
        starts.setdefault(site, Start(url, home_id, site))
    return list(starts.values())


def chosen_starts(starts: Sequence[Start], site: str) -> Sequence[Start]:
    """Start of the named site, or all starts without a name. Raises UsageError for an unknown site or no start."""
    if not starts:
        raise UsageError("the collection has no run yet: `periplus crawl URL` starts one")
    if chosen := [start for start in starts if site in ("", start.site, site_key(start.url), start.url)]:
        return chosen if not site else chosen[:1]
    raise UsageError(f"the collection has no start on the site {site!r}. {_site_list(starts)}")


def chosen_start(starts: Sequence[Start], site: str) -> Start:
    """Start of the named site, or the only one. Raises UsageError that lists the first sites."""
    first, *others = chosen_starts(starts, site)
    if others:
        raise UsageError(f"choose one site with --site. {_site_list(starts)}")
    return first


def _site_list(starts: Sequence[Start]) -> str:
    names = [f"\n  {start.site}" for start in starts[:MOST_SITES]]
    more = len(starts) - len(names)
    rest = f"\n  and {more:,} more: `periplus export sites` lists all" if more else ""
    return f"The collection has {count_of(len(starts), 'site')}:{''.join(names)}{rest}"


def read_site(reader: CollectionReader, site: str | Start, now: float, links: LinkRows | None = None) -> SiteRows:
    """All data that the analyses of a site need. Call within a snapshot. site: its key or start. links: page links if
    already loaded. Raises UsageError for an unknown site. Sizes of resources from checks are read from folders only.
    """
    run_records = reader.runs()
    arrays = StoredSites(reader)
    redirects = arrays.redirects()
    start = chosen_start(starts_of(run_records, redirects, reader.site_of), site) if isinstance(site, str) else site
    return SiteRows(
        start=start,
        home=reader.url_facts(start.home_id),
        # checks do not change the map
        run=next((run for run in reversed(run_records) if run.kind != "check"), run_records[-1]),
        running=reader.activity(now).is_running,
        urls=arrays.urls(start.site),
        links=arrays.links(start.site) if links is None else links,
        redirects=redirects,
        pages=arrays.pages(start.site),
        statuses=arrays.statuses(start.site),
        parts=parts_of(reader, start.site),
    )


def analyse_site(rows: SiteRows, order: RankOrder) -> SiteAnalysis:
    """Link graph, ranks, map and page columns. Raises UsageError for an invalid order."""
    graph = link_graph(rows.urls, rows.links, rows.redirects)
    ids = _ids(graph.pages)
    ranking = rank_pages(graph, order)
    home = int(places(ids, np.array([rows.start.home_id], np.int64))[0])
    site_map = hierarchical_map(graph, home, ranking.scores) if home >= 0 and graph.fetched[home] else None
    return SiteAnalysis(graph, ranking, site_map, _columns(graph, ids, rows, ranking, site_map))


def rank_pages(graph: LinkGraph, order: RankOrder) -> Ranking:
    if order.scale not in SCALES:
        raise UsageError(f"unknown scale {order.scale!r}: choose {' or '.join(SCALES)}")
    if order.scale == "published":
        return published_rank(graph, damping=order.damping, rounds=order.rounds)
    if order.rounds is not None:
        raise UsageError("rounds apply to the published scale only; the normalised one is computed until convergence")
    return pagerank(graph, damping=order.damping)


def _ids(pages: Sequence[Url]) -> Ints:
    return np.fromiter(map(url_id, pages), np.int64, len(pages))


def _columns(graph: LinkGraph, ids: Ints, rows: SiteRows, ranking: Ranking, site_map: SiteMap | None) -> PageColumns:
    """Columns of the pages in the order of graph.pages. Ignores data from an earlier state of a URL."""
    count = len(ids)
    reasons = [REASONS[code] for code in rows.urls.reasons[places(rows.urls.ids, ids)].tolist()]
    read = places_in_sorted(rows.pages.ids, ids)
    read[~graph.fetched] = -1
    there = np.flatnonzero(read >= 0)
    titles, media_types = [""] * count, [""] * count
    for page, place in zip(there.tolist(), read[there].tolist(), strict=True):
        titles[page], media_types[page] = rows.pages.titles[place], rows.pages.media_types[place]
    size_bytes = np.zeros(count, np.int64)
    size_bytes[there] = rows.pages.sizes[read[there]]
    status = np.zeros(count, np.int16)
    answered = places(ids, rows.statuses[0])
    status[answered[answered >= 0]] = rows.statuses[1][answered >= 0].clip(max=999)
    return PageColumns(
        url=graph.pages,
        title=titles,
        state=[STATE_OF[reason] for reason in reasons],
        reason=reasons,
        status=status,
        media_type=media_types,
        size_bytes=size_bytes,
        depth=site_map.depth if site_map else np.full(count, -1, np.int32),
        rank=ranking.scores,
        score=link_score(ranking.scores),
        inlinks=np.bincount(graph.targets, minlength=count).astype(np.int64),
        outlinks=np.diff(graph.offsets),
    )


def about(rows: SiteRows, ranking: Ranking, now: float) -> About:
    """Provenance of the results. Parameters: the run's settings that differ from the defaults."""
    defaults = as_values(Settings())
    changed = [(name, _flag_value(value)) for name, value in rows.run.settings.items() if value != defaults.get(name)]
    if rows.run.state != "done":
        changed.append(("run_state", "running" if rows.running else rows.run.state))
    return About(run_name(rows.run), rows.start.url, now, ranking.damping, ranking.rounds, parameters=tuple(changed))


def run_name(run: RunRecord) -> str:
    return f"{run.kind} {run.id}"


def _flag_value(value: object) -> str:
    """A setting as its command-line flag expects it."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def why_no_map(rows: SiteRows) -> str:
    """Why the home page was not fetched, and what to do."""
    home, start = rows.home, rows.start
    if home is None:
        return f"no map: {start.url} was never requested because the run ended too early. Crawl again."
    moved = f", where {start.url} redirects," if home.url != start.url else ""
    sentence = (
        f"no map: {home.url}{moved} was not fetched: "
        f"{REASON_WORDS[home.reason]}{f' ({home.rule})' if home.rule else ''}. "
    )
    match home.reason:
        case Reason.WAITING:
            return sentence + ("Try again in a moment." if rows.running else f"Continue: periplus crawl {start.url}")
        case Reason.SCOPE:
            return sentence + f"Start there: periplus crawl {home.url}"
        case Reason.ROBOTS | Reason.ROBOTS_UNREACHABLE:
            return (
                sentence + "Only the site's owner can change that; for your own hosts use --mine HOST --ignore-robots."
            )
        case Reason.PRIVATE:
            return sentence + "If this is intended, use --allow-private."
        case _:
            return sentence + "Check the address, then crawl again. See `periplus status`."
