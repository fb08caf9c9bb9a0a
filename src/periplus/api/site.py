"""A site's hierarchical map, its export formats, its sitemaps, and the stored layout of its link graph."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TextIO

import numpy as np

from periplus.analyse.linkgraph import map_tree
from periplus.analyse.sizes import linked_bytes
from periplus.api.facts import (
    Parts,
    RankOrder,
    SiteAnalysis,
    SiteRows,
    about,
    analyse_site,
    chosen_start,
    linked_bytes_and_resources,
    read_site,
    run_name,
    site_starts,
    why_no_map,
)
from periplus.api.homes import open_reader
from periplus.errors import UsageError
from periplus.extras import extra_needed
from periplus.files import keep_text, kept_text
from periplus.model.graph import LinkGraph
from periplus.model.ports import RunRecord
from periplus.model.results import About, MapNode, PageColumns, PageOverview, Ranking, SiteMap
from periplus.model.tables import SEGMENT_OTHER
from periplus.model.visit import Reason
from periplus.model.web import HostKey, SiteKey, Url
from periplus.present.charts import write_chart
from periplus.present.graphs import GRAPH_FORMATS, write_graph
from periplus.present.map_files import LINKED_BYTES, VALUES, map_text, sitemap_files, write_map_json
from periplus.present.map_xml import USUAL_VALUES, write_map_pdf, write_map_xhtml, write_map_xml
from periplus.present.site_graph import SiteGraph, site_graph
from periplus.present.wording import count_of, number, utc, without_site_name
from periplus.store import site_rows
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.urls.folders import folders_of
from periplus.urls.hosts import host_key
from periplus.values import Place, frozen

if TYPE_CHECKING:
    import networkx

    from periplus.model.results import Segmentation

LAYOUT_FILE = "site.layout"
FORM = 1  # version of the file format


@frozen
class Site:
    """A site's hierarchical map with link graph, ranks and page facts, from one snapshot."""

    key: SiteKey
    run: RunRecord  # the latest run
    running: bool  # a crawl was running at the snapshot
    graph: LinkGraph
    ranking: Ranking
    site_map: SiteMap
    facts: PageColumns
    about: About
    parts: Parts | None  # resources with sizes, if a check was asked for them

    @property
    def depth(self) -> int:
        """The greatest depth."""
        return self.site_map.max_depth

    @property
    def complete_to(self) -> int:
        """The greatest depth to which no page waits to be fetched; -1 while the home page waits."""
        waiting = np.array([reason is Reason.WAITING for reason in self.facts.reason], np.bool_)
        depths = self.site_map.depth[waiting & (self.site_map.depth >= 0)]
        return int(depths.min()) - 1 if depths.size else self.depth

    @property
    def shown_depth(self) -> int:
        """The depth shown by default: -1 (all), or during a crawl the depth that is complete."""
        return self.complete_to if self.running and self.complete_to < self.depth else -1

    def folders(self) -> dict[HostKey, Path]:
        """Local folders that the run served as hosts; empty for most runs."""
        entries = self.run.settings.get("folders")
        return folders_of(entries if isinstance(entries, (list, tuple)) else ())

    def top(self, most: int = 10) -> list[PageOverview]:
        """The fetched pages with the highest rank, in order."""
        rank = np.where(self.graph.fetched, self.facts.rank, -np.inf)
        best = np.argsort(-rank, kind="stable")[: min(most, int(self.graph.fetched.sum()))]
        return [self.facts.page(page) for page in best.tolist()]

    def tree(self, *, max_nodes: int = 60, max_depth: int | None = None) -> MapNode:
        """The map reduced to at most max_nodes pages. max_depth: None: shown_depth; -1: any."""
        depth = self.shown_depth if max_depth is None else max_depth
        return map_tree(
            self.site_map,
            self.facts.rank,
            self.facts.size_bytes,
            self.graph.fetched,
            max_nodes=max_nodes,
            max_depth=depth,
        )

    def text(
        self, *, width: int = 100, max_nodes: int = 60, max_depth: int | None = None, ascii_only: bool = False
    ) -> Iterator[str]:
        """Lines of the map for a terminal: header and tree."""
        yield from self.head()
        yield ""
        facts = replace(self.facts, title=without_site_name(self.facts.title))
        yield from map_text(
            self.tree(max_nodes=max_nodes, max_depth=max_depth), facts, width=width, ascii_only=ascii_only
        )

    def head(self) -> Iterator[str]:
        """Name, size, run and omissions of the map."""
        pages = len(self.site_map.order)
        fetched = int(self.graph.fetched[self.site_map.order].sum())
        yield f"{self.key}: {count_of(pages, 'page')}, {number(fetched)} fetched, depth {self.depth}"
        yield f"{run_name(self.run).capitalize()}, {utc(self.run.started)}: {self._state()}"
        unreached = len(self.facts.url) - pages
        if unreached:
            yield (
                f"Not in the map: {count_of(unreached, 'page')} that no link reaches (from sitemaps or earlier runs)"
            )

    def _state(self) -> str:
        depth = self.complete_to
        if depth < self.depth:
            goes = (
                "running" if self.running else "stopped" if self.run.state in ("running", "stopped") else self.run.state
            )
            return f"{goes}; complete down to depth {depth}"
        if self.running:
            return "running"
        state = "killed" if self.run.state == "running" else self.run.state
        return f"{state}: {self.run.note}" if self.run.note else state

    def _write(self, write: Callable[..., None], out: IO[Any], values: tuple[str, ...], max_depth: int | None) -> None:
        depth = self.shown_depth if max_depth is None else max_depth
        write(self.site_map, self._facts_with(values), self.about, out, values=values, max_depth=depth)

    def write_json(self, out: TextIO, *, values: tuple[str, ...] = (), max_depth: int | None = None) -> None:
        """Writes the whole map as JSON; see `present.map_files`. values: () for all."""
        self._write(write_map_json, out, values or VALUES, max_depth)

    def write_xml(self, out: TextIO, *, values: tuple[str, ...] = (), max_depth: int | None = None) -> None:
        """Writes the whole map as XML; see `present.map_xml`. values: () for all."""
        self._write(write_map_xml, out, values or VALUES, max_depth)

    def write_xhtml(self, out: BinaryIO, *, values: tuple[str, ...] = (), max_depth: int | None = None) -> None:
        """Writes a web page; see `present.map_xml`.

        values: () for the default columns. Raises UsageError above the format's limit.
        """
        self._write(write_map_xhtml, out, values or USUAL_VALUES, max_depth)

    def write_pdf(self, out: BinaryIO, *, values: tuple[str, ...] = (), max_depth: int | None = None) -> None:
        """Writes a PDF; see `present.map_xml`.

        values: () for the default columns. Raises UsageError above the format's limit.
        """
        self._write(write_map_pdf, out, values or USUAL_VALUES, max_depth)

    def __repr__(self) -> str:
        return f"<Site {self.key}: {len(self.site_map.order)} pages>"

    def _repr_html_(self) -> str:
        """The map as a chart, for notebooks."""
        out = io.StringIO()
        self.write_svg(out)
        return out.getvalue()

    def write_svg(
        self,
        out: TextIO,
        *,
        by: str = "rank",
        colour: str = "folder",
        max_nodes: int = 2_000,
        max_depth: int | None = None,
    ) -> None:
        """Writes an icicle by rank, size or pages, coloured by folder or segment; see `present.charts`."""
        facts = replace(self.facts, title=without_site_name(self.facts.title))
        write_chart(self.tree(max_nodes=max_nodes, max_depth=max_depth), facts, out, (by, colour))

    def write_graph(self, out: TextIO, *, format: str = "gexf") -> None:
        """Writes pages and links as gexf, graphml or net (Pajek); see `present.graphs`."""
        if format not in GRAPH_FORMATS:
            raise UsageError(f"unknown graph format {format!r}: choose {', '.join(GRAPH_FORMATS)}")
        write_graph(self.graph, self.facts, self.about, out, format=format)

    def to_networkx(self) -> networkx.DiGraph[Url]:
        """Pages and links as a networkx graph: nodes are URLs with a `title`.

        Raises UsageError if networkx is not installed.
        """
        with extra_needed():
            import networkx
        from scipy.sparse import csr_array

        count = len(self.graph.pages)
        links = csr_array((np.ones(len(self.graph.targets)), self.graph.targets, self.graph.offsets), (count, count))
        numbered = networkx.from_scipy_sparse_array(links, create_using=networkx.DiGraph)
        graph = networkx.relabel_nodes(numbered, dict(enumerate(self.graph.pages)))
        networkx.set_node_attributes(graph, dict(zip(self.graph.pages, self.facts.title, strict=True)), "title")
        return graph

    def with_segments(self, segments: Segmentation | None) -> Site:
        """Adds the segment of each page to its facts; unchanged without segments."""
        if segments is None:
            return self
        column = [segments.of(url_id(url)) or SEGMENT_OTHER for url in self.facts.url]
        return replace(self, facts=replace(self.facts, further=(*self.facts.further, ("segment", column))))

    def without_run(self) -> Site:
        """Removes what identifies the run (name, settings, time), so that equal sites give equal bytes."""
        return replace(self, about=replace(self.about, run="", created=0.0, parameters=()))

    def _facts_with(self, values: tuple[str, ...]) -> PageColumns:
        """The page facts; if requested, with the bytes reachable by one link, including resources whose sizes a check
        fetched.
        """
        if LINKED_BYTES not in values:
            return self.facts
        if self.parts is not None:
            return replace(self.facts, linked=linked_bytes_and_resources(self.graph, self.facts, self.parts))
        return replace(self.facts, linked=linked_bytes(self.graph, self.facts.size_bytes, self.facts.media_type))


def site_of(reader: CollectionReader, key: str, order: RankOrder, now: float) -> Site:
    """The map of the site with this key, or of the only one. Raises UsageError with the reason if there is none."""
    with reader.snapshot():
        rows = read_site(reader, key, now)
    return make_site(rows, analyse_site(rows, order), now)


def make_site(rows: SiteRows, analysis: SiteAnalysis, now: float) -> Site:
    if analysis.site_map is None:
        raise UsageError(why_no_map(rows))
    origin = about(rows, analysis.ranking, now)
    return Site(
        rows.start.site,
        rows.run,
        rows.running,
        analysis.graph,
        analysis.ranking,
        analysis.site_map,
        analysis.facts,
        origin,
        rows.parts,
    )


def write_sitemaps(reader: CollectionReader, site: str, folder: Path) -> list[Path]:
    """Writes sitemaps of fetched, indexable, canonical pages, one URL per content. Returns the files.

    Raises UsageError if no page qualifies, or if a file cannot be written.
    """
    with reader.snapshot():
        start = chosen_start(site_starts(reader), site)
        pages: dict[bytes, tuple[Url, float]] = {}
        for url, changed, content in site_rows.findable_pages(reader, start.site):
            pages.setdefault(content, (url, changed))
        rows = list(pages.values())
    if not rows:
        raise UsageError(f"no page of {start.site} belongs in a sitemap: no indexable page was fetched")
    several = len({host_key(url) for url, _ in rows}) > 1
    written = []
    for file in sitemap_files(rows):
        place = folder / host_key(Url(file.origin + "/")).replace(":", "_") if several else folder
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / file.name).write_bytes(file.body)
        except OSError as error:
            raise UsageError(
                f"{place / file.name} cannot be written: {error.strerror}. Name another folder with -o."
            ) from None
        written.append(place / file.name)
    return written


# Layout of the drawing of a site's link graph, cached in the collection's folder until the site changes.


def layout_key(place: Place, site: SiteKey, under: str) -> tuple[object, ...]:
    """Cache key of a layout. Raises NoCollection, StoreError."""
    with open_reader(place) as reader:
        return FORM, str(site), under, *reader.version()


def stored_graph(place: Place, site: Site, under: str) -> SiteGraph:
    """The drawing of a site's link graph, from the cache if it is current; drawings of the whole site are cached.

    under: only pages whose URL has this prefix. A database and a read-only folder have no cache.
    """
    if under or not isinstance(place, Path):
        return site_graph(site.facts, site.graph, site.site_map, under)
    key, path = repr(layout_key(place, site.key, under)), place / LAYOUT_FILE
    if text := kept_text(path, key):
        with contextlib.suppress(ValueError, TypeError, AttributeError):  # of another form
            return SiteGraph(**{name: _tuple(value) for name, value in json.loads(text).items()})
    graph = site_graph(site.facts, site.graph, site.site_map, under)
    keep_text(path, key, json.dumps(dataclasses.asdict(graph)))
    return graph


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
