"""How many bytes are known of what pages pull in and link to, when a check was to learn them (`part_sizes`)?

Without that wish only what the crawl fetched has a size, and no check changes a map or a report's sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from periplus.analyse.linked import linked_bytes
from periplus.analyse.linkgraph import distinct_sorted, places, places_in_sorted
from periplus.model.graph import LinkGraph, LinkRows
from periplus.model.results import LinkedBytes, PageColumns
from periplus.model.web import SiteKey, Url
from periplus.store.sqlite import part_rows, reading, site_rows
from periplus.urls.canonical import url_id


@dataclass(frozen=True, slots=True)
class Parts:
    """What a site's pages pull in, by ids, and all sizes that are known."""

    links: LinkRows
    known: site_rows.AnyPages


def known_sizes(connection: reading.Connection) -> site_rows.AnyPages:
    """Type and size of every page, and of what checks asked for if they were to learn sizes; what the crawl fetched is believed first."""
    pages = site_rows.any_pages(connection)
    if not part_rows.are_wished(connection):
        return pages
    told = part_rows.told(connection)
    for url, media_type, size in zip(pages.ids.tolist(), pages.media_types, pages.sizes.tolist(), strict=True):
        if size or url not in told:
            told[url] = part_rows.Told(media_type, size)
    ids = sorted(told)
    sizes = np.fromiter((told[url].size_bytes for url in ids), np.int64, len(ids))
    return site_rows.AnyPages(np.array(ids, np.int64), [told[url].media_type for url in ids], sizes)


def parts_of(connection: reading.Connection, site: SiteKey) -> Parts | None:
    """None: no check was to learn sizes. Within a snapshot."""
    return Parts(part_rows.parts(connection, site), known_sizes(connection)) if part_rows.are_wished(connection) else None


def linked_with_parts(graph: LinkGraph, facts: PageColumns, parts: Parts) -> LinkedBytes:
    """As `linked_bytes`, and with what each page pulls in: parts are further nodes, without links of their own; each target once a page."""
    count = len(graph.pages)
    ids = np.fromiter(map(url_id, graph.pages), np.int64, count)
    links = parts.links
    further = distinct_sorted(links.targets[places(ids, links.targets) < 0])
    nodes = np.concatenate([ids, further])
    sizes, types = np.zeros(len(nodes), np.int64), [*facts.media_type, *[""] * len(further)]
    sizes[:count] = facts.size_bytes
    row = places_in_sorted(parts.known.ids, nodes)
    for node in np.flatnonzero((sizes == 0) & (row >= 0)).tolist():
        sizes[node], types[node] = parts.known.sizes[row[node]], parts.known.media_types[row[node]]
    found = linked_bytes(_extended(graph, nodes, links), sizes, types)
    return LinkedBytes(found.sizes[:count], found.unsized[:count])


def _extended(graph: LinkGraph, nodes: NDArray[np.int64], links: LinkRows) -> LinkGraph:
    """The graph with further nodes (nodes: ids, the graph's own first) and links."""
    count = len(nodes)
    sources, targets = places(nodes, links.sources), places(nodes, links.targets)
    kept = sources >= 0
    own = np.repeat(np.arange(len(graph.pages)), np.diff(graph.offsets)) * count + graph.targets
    pairs = distinct_sorted(np.concatenate([own, sources[kept] * count + targets[kept]]))
    offsets = np.searchsorted(pairs, np.arange(count + 1) * count)
    return replace(graph, pages=(*graph.pages, *[Url("")] * (count - len(graph.pages))), offsets=offsets, targets=(pairs % max(count, 1)).astype(np.int32))
