"""What is known of one site, read in one moment: its rows, what the analyses make of them, and the sizes of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from periplus.analyse.linkgraph import distinct_sorted, hierarchical_map, link_graph, places, places_in_sorted, resolved
from periplus.analyse.pagerank import link_score, pagerank, published_rank
from periplus.analyse.sizes import linked_bytes
from periplus.errors import UsageError
from periplus.model.arrays import Ints
from periplus.model.graph import REASONS, LinkGraph, LinkRows, PageRows, SiteReader, UrlFacts, UrlRows
from periplus.model.ports import RunRecord
from periplus.model.results import About, LinkedBytes, PageColumns, Ranking, SiteMap
from periplus.model.visit import STATE_OF, Reason
from periplus.model.web import SiteKey, Url
from periplus.present.wording import REASON_WORDS, count_of
from periplus.settings import Settings, as_values
from periplus.store.sqlite import reading, runs
from periplus.store.sqlite import site_rows as stored_rows
from periplus.store.sqlite.site_rows import FolderSite
from periplus.urls.canonical import url_id
from periplus.urls.scope import site_key
from periplus.values import frozen

# Unless a check was to learn them, only what the crawl fetched has a size, and no check changes a
# map or a report's sizes.


@frozen
class Parts:
    """What a site's pages pull in, by ids, and all sizes that are recorded."""

    links: LinkRows
    sizes: stored_rows.AnyPages


def known_sizes(connection: reading.Connection) -> stored_rows.AnyPages:
    """Type and size of every page, and of what checks asked for if they were to learn sizes;
    what the crawl fetched is believed first.
    """
    pages = stored_rows.any_pages(connection)
    if not stored_rows.are_sizes_requested(connection):
        return pages
    answers = stored_rows.part_sizes(connection)
    for url, media_type, size in zip(pages.ids.tolist(), pages.media_types, pages.sizes.tolist(), strict=True):
        if size or url not in answers:
            answers[url] = stored_rows.ServerAnswer(media_type, size)
    ids = sorted(answers)
    sizes = np.fromiter((answers[url].size_bytes for url in ids), np.int64, len(ids))
    return stored_rows.AnyPages(np.array(ids, np.int64), [answers[url].media_type for url in ids], sizes)


def parts_of(connection: reading.Connection, site: SiteKey) -> Parts | None:
    """None: no check was to learn sizes. Within a snapshot."""
    return (
        Parts(stored_rows.parts(connection, site), known_sizes(connection))
        if stored_rows.are_sizes_requested(connection)
        else None
    )


def linked_with_parts(graph: LinkGraph, facts: PageColumns, parts: Parts) -> LinkedBytes:
    """As `linked_bytes`, and with what each page pulls in: parts are further nodes, without links of their own;
    each target once a page.
    """
    count = len(graph.pages)
    ids = np.fromiter(map(url_id, graph.pages), np.int64, count)
    links = parts.links
    further = distinct_sorted(links.targets[places(ids, links.targets) < 0])
    nodes = np.concatenate([ids, further])
    sizes, types = np.zeros(len(nodes), np.int64), [*facts.media_type, *[""] * len(further)]
    sizes[:count] = facts.size_bytes
    row = places_in_sorted(parts.sizes.ids, nodes)
    for node in np.flatnonzero((sizes == 0) & (row >= 0)).tolist():
        sizes[node], types[node] = parts.sizes.sizes[row[node]], parts.sizes.media_types[row[node]]
    linked = linked_bytes(_extended(graph, nodes, links), sizes, types)
    return LinkedBytes(linked.sizes[:count], linked.unsized[:count])


def _extended(graph: LinkGraph, nodes: Ints, links: LinkRows) -> LinkGraph:
    """The graph with further nodes (nodes: ids, the graph's own first) and links."""
    count = len(nodes)
    sources, targets = places(nodes, links.sources), places(nodes, links.targets)
    own_links = sources >= 0
    own = np.repeat(np.arange(len(graph.pages)), np.diff(graph.offsets)) * count + graph.targets
    pairs = distinct_sorted(np.concatenate([own, sources[own_links] * count + targets[own_links]]))
    offsets = np.searchsorted(pairs, np.arange(count + 1) * count)
    return replace(
        graph,
        pages=(*graph.pages, *[Url("")] * (count - len(graph.pages))),
        offsets=offsets,
        targets=(pairs % max(count, 1)).astype(np.int32),
    )


SCALES = ("normalised", "published")


@frozen
class RankOrder:
    """How pages are ranked.

    scale: scores with sum 1, or the site mapper's own (SPEC A5); rounds: so many of the latter, None: until it settles.
    """

    scale: str = "normalised"
    damping: float = 0.85
    rounds: int | None = None


@frozen
class Start:
    """Where a site's crawl began, and where redirects lead from there."""

    url: Url
    home_id: int
    site: SiteKey  # of the home page


@frozen
class SiteRows:
    """One site as it is stored at one moment. run: the collection's last."""

    start: Start
    home: UrlFacts | None  # None: it was never entered
    run: RunRecord
    running: bool
    urls: UrlRows
    links: LinkRows
    redirects: LinkRows
    pages: PageRows
    statuses: tuple[Ints, Ints]
    parts: Parts | None  # None: no check was to learn sizes of parts


@frozen
class SiteAnalysis:
    """A site's graph and what follows from it. site_map: None where the home page was not fetched."""

    graph: LinkGraph
    ranking: Ranking
    site_map: SiteMap | None
    facts: PageColumns


def site_starts(connection: reading.Connection) -> list[Start]:
    """As `starts_of`, of all runs of a folder's collection."""
    redirects = stored_rows.redirects(connection)
    return starts_of(runs.run_records(connection), redirects, partial(stored_rows.site_of, connection))


def starts_of(
    run_records: Sequence[RunRecord], redirects: LinkRows, site_of: Callable[[int], SiteKey | None]
) -> list[Start]:
    """The first start of each site, in the order in which they were given."""
    starts: dict[SiteKey, Start] = {}
    for text in dict.fromkeys(text for record in run_records for text in record.starts):
        url = Url(text)
        ends, leads = resolved(np.array([url_id(url)], np.int64), redirects)
        home_id = int(ends[0]) if leads[0] else url_id(url)
        site = site_of(home_id) or site_key(url)
        starts.setdefault(site, Start(url, home_id, site))
    return list(starts.values())


SITES_NAMED = 10  # in an error


def chosen_starts(starts: Sequence[Start], site: str) -> Sequence[Start]:
    """The start of the site named; of none named all. Raises UsageError for a site that is not there, and for none."""
    if not starts:
        raise UsageError("the collection has no run yet: `periplus crawl URL` begins one")
    if chosen := [start for start in starts if site in ("", start.site, site_key(start.url), start.url)]:
        return chosen if not site else chosen[:1]
    raise UsageError(f"the collection has no start on the site {site!r}. {_named(starts)}")


def chosen_start(starts: Sequence[Start], site: str) -> Start:
    """The start of the site named, or the only one. Raises UsageError, naming the first sites there are."""
    first, *others = chosen_starts(starts, site)
    if others:
        raise UsageError(f"choose one site with --site. {_named(starts)}")
    return first


def _named(starts: Sequence[Start]) -> str:
    names = [f"\n  {start.site}" for start in starts[:SITES_NAMED]]
    more = len(starts) - len(names)
    rest = f"\n  and {more:,} more: `periplus export sites` lists all" if more else ""
    return f"It holds {count_of(len(starts), 'site')}:{''.join(names)}{rest}"


def read_site(connection: reading.Connection, site: str | Start, now: float, links: LinkRows | None = None) -> SiteRows:
    """Everything that the analyses of a site need; within a snapshot. site: its key, or its start where that is known;
    links: to pages, where they are read already. Raises UsageError for a site that is not there.
    """
    rows = rows_from(FolderSite(connection), site, now, links)
    return replace(rows, parts=parts_of(connection, rows.start.site))


def rows_from(reader: SiteReader, site: str | Start, now: float, links: LinkRows | None = None) -> SiteRows:
    """The same of a collection wherever it is kept, without what a check learned of parts."""
    run_records = reader.runs()
    redirects = reader.redirects()
    start = chosen_start(starts_of(run_records, redirects, reader.site_of), site) if isinstance(site, str) else site
    return SiteRows(
        start=start,
        home=reader.url_facts(start.home_id),
        # a check changes no map
        run=next((run for run in reversed(run_records) if run.kind != "check"), run_records[-1]),
        running=reader.is_being_crawled(now),
        urls=reader.urls(start.site),
        links=reader.links(start.site) if links is None else links,
        redirects=redirects,
        pages=reader.pages(start.site),
        statuses=reader.statuses(start.site),
        parts=None,
    )


def analysed(rows: SiteRows, order: RankOrder) -> SiteAnalysis:
    """Graph, ranks, map and the facts of each page. Raises UsageError for an order that cannot be."""
    graph = link_graph(rows.urls, rows.links, rows.redirects)
    ids = _ids(graph.pages)
    ranking = ranked(graph, order)
    home = int(places(ids, np.array([rows.start.home_id], np.int64))[0])
    site_map = hierarchical_map(graph, home, ranking.scores) if home >= 0 and graph.fetched[home] else None
    return SiteAnalysis(graph, ranking, site_map, _columns(graph, ids, rows, ranking, site_map))


def ranked(graph: LinkGraph, order: RankOrder) -> Ranking:
    if order.scale not in SCALES:
        raise UsageError(f"there is no scale {order.scale!r}: choose {' or '.join(SCALES)}")
    if order.scale == "published":
        return published_rank(graph, damping=order.damping, rounds=order.rounds)
    if order.rounds is not None:
        raise UsageError(
            "rounds are counted on the published scale only; the normalised one is computed until it settles"
        )
    return pagerank(graph, damping=order.damping)


def _ids(pages: Sequence[Url]) -> Ints:
    return np.fromiter(map(url_id, pages), np.int64, len(pages))


def _columns(graph: LinkGraph, ids: Ints, rows: SiteRows, ranking: Ranking, site_map: SiteMap | None) -> PageColumns:
    """What is shown of each page, in the order of graph.pages. Facts of what a URL was earlier are left out."""
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
    """Where the results come from. Parameters: the run's settings that differ from the defaults."""
    defaults = as_values(Settings())
    changed = [(name, _shown(value)) for name, value in rows.run.settings.items() if value != defaults.get(name)]
    if rows.run.state != "done":
        changed.append(("run_state", "running" if rows.running else rows.run.state))
    return About(run_name(rows.run), rows.start.url, now, ranking.damping, ranking.rounds, parameters=tuple(changed))


def run_name(run: RunRecord) -> str:
    return f"{run.kind} {run.id}"


def _shown(value: object) -> str:
    """A setting as its flag takes it."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def why_no_map(rows: SiteRows) -> str:
    """What kept the home page from being fetched, and what to do."""
    home, start = rows.home, rows.start
    if home is None:
        return f"no map: {start.url} was never asked for; the run ended before. Crawl again."
    moved = f", where {start.url} redirects," if home.url != start.url else ""
    sentence = (
        f"no map: {home.url}{moved} was not fetched: "
        f"{REASON_WORDS[home.reason]}{f' ({home.rule})' if home.rule else ''}. "
    )
    match home.reason:
        case Reason.WAITING:
            return sentence + (
                "Try again in a moment." if rows.running else f"Go on with it: periplus crawl {start.url}"
            )
        case Reason.SCOPE:
            return sentence + f"Begin there: periplus crawl {home.url}"
        case Reason.ROBOTS | Reason.ROBOTS_UNREACHABLE:
            return (
                sentence + "Only the site's owner can change that; on hosts of your own, --mine HOST --ignore-robots."
            )
        case Reason.PRIVATE:
            return sentence + "If it is meant: --allow-private."
        case _:
            return sentence + "Check the address, then crawl again. `periplus status` tells more."
