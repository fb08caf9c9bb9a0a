"""The reader of one collection, and the value of `periplus status`."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from periplus.acquire.clock import SystemClock
from periplus.api.homes import files_state, index_feed, place_at, reader_of
from periplus.api.rows import Rows
from periplus.errors import InvalidUrl, UsageError
from periplus.features import parts, service
from periplus.files import keep_text, kept_text
from periplus.model.duplicates import PUBLISHED_RULES, TemplateRules
from periplus.model.frontier import HostRow, TrapTally, WorkerRow
from periplus.model.ports import RunRecord
from periplus.model.tables import ALL_URLS, BAD_LINKS, LINKS, Table
from periplus.model.visit import StateTally, urls_by_state
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import SETTINGS_FILE, VERSION, read_settings
from periplus.store.reader import CollectionReader
from periplus.store.views import LinkFilter, PageFilter, link_conditions, page_conditions
from periplus.urls.canonical import url_id
from periplus.urls.folders import address_of_path, as_file_links, folders_of, path_formatter
from periplus.values import Watch, frozen

if TYPE_CHECKING:  # analyses import NumPy and SciPy, crawling libcurl: imported on first use
    from periplus.api.inlink_index import InlinkIndexes
    from periplus.api.marks import SiteSample
    from periplus.api.page import Page
    from periplus.api.page_notes import SourceFacts
    from periplus.api.searching import Search
    from periplus.api.site import Site
    from periplus.api.templates import Templates
    from periplus.model.comparison import Comparison
    from periplus.model.duplicates import Duplicates
    from periplus.model.results import ReportData, SitesReport
    from periplus.model.search import SearchResult, VectorNote

REPORT_FILE = "report.html"
KEYWORD_HITS = 200  # search results that represent a query
REPORT_TEXT = "report.read"  # the last report as it was written, see files.keep_text


@frozen
class Status:
    """State of a collection."""

    folder: Path
    size_bytes: int  # on disk
    running: bool  # a crawl runs or is paused
    paused: bool
    runs: tuple[RunRecord, ...]  # oldest first
    counts: tuple[StateTally, ...]
    hosts: int  # known hosts of all sites
    hosts_waiting: int
    entries_waiting: int  # queued pages, robots.txt files, sitemaps and links to check
    busiest: tuple[HostRow, ...]  # hosts with the most queued URLs first
    traps: tuple[TrapTally, ...] = ()  # URL patterns excluded as endless series, largest first
    store: str = ""  # database address without the password, used instead of the folder
    workers: int = 0  # database only: workers running on all machines
    crew: tuple[WorkerRow, ...] = ()  # registered workers
    lag_s: float = 0.0  # how long ago a host without a worker could have been requested again, at most

    @property
    def state(self) -> str:
        """State of the last run (see `state_of`); empty without runs."""
        return self.state_of(self.runs[-1]) if self.runs else ""

    def state_of(self, run: RunRecord) -> str:
        """running, paused, killed (not finished, but no worker alive), or the state in which the run ended."""
        if self.running:
            return "paused" if self.paused else "running"
        return "killed" if run.state == "running" else run.state


class StoredCollection:
    """What a collection has stored: runs, URLs, links and tables."""

    _reader: CollectionReader
    _store = ""  # address without the password, of a database

    def __init__(self, folder: Path, time_limit_s: float = 0.0) -> None:
        """time_limit_s: most CPU seconds of a query; 0: no limit.

        Raises NoCollection, StoreError.
        """
        self.folder = folder
        self._reader = reader_of(folder)
        self._begin(time_limit_s)

    def _begin(self, time_limit_s: float) -> None:
        self._limit_s = time_limit_s
        self._clock = SystemClock()
        self._search: Search | None = None
        self._samples: dict[int, SiteSample] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def place(self) -> Path | str:
        """The folder or the database address; functions that change the collection take it."""
        return self.folder

    def __repr__(self) -> str:
        return f"<Collection {self.folder}>"

    def _repr_html_(self) -> str:
        """How many URLs there are in each state, as an HTML table, for notebooks."""
        counts = urls_by_state(self.counts())
        rows = "".join(f"<tr><td>{state}</td><td>{urls}</td></tr>" for state, urls in counts.items())
        return f"<p>{escape(str(self.place))}</p><table>{rows}</table>"

    def close(self) -> None:
        """Closes the collection; later calls fail."""
        self._reader.close()

    def _limit_reads(self) -> AbstractContextManager[None]:
        return self._reader.limit_reads(self._limit_s)

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        with self._limit_reads():
            return self._reader.runs()

    def counts(self) -> list[StateTally]:
        """Number of URLs by state and reason."""
        with self._limit_reads():
            return self._reader.counts()

    def status(self, most_hosts: int = 10) -> Status:
        """Totals and state of the collection. most_hosts: in `busiest`; 0: none, and no `traps`, which scan URLs."""
        reader = self._reader
        with self._limit_reads(), reader.snapshot():
            activity = reader.activity(self._clock.now())
            work = reader.backlog(most_hosts, activity.now)
            return Status(
                folder=self.folder if isinstance(self.place, Path) else Path(),
                size_bytes=activity.size_bytes,
                running=activity.is_running,
                paused=reader.is_paused(),
                runs=tuple(reader.runs()),
                counts=tuple(reader.counts()),
                hosts=work.hosts,
                hosts_waiting=work.hosts_waiting,
                entries_waiting=work.to_fetch,
                busiest=work.busiest,
                traps=tuple(reader.traps()) if most_hosts else (),
                store=self._store,
                workers=activity.workers,
                crew=reader.workers(activity.now),
                lag_s=work.lag_s,
            )

    def pages(  # noqa: PLR0913 - the filters, written out
        self,
        *,
        state: str = "",
        reason: str = "",
        status: str | int = "",
        media_type: str = "",
        depth: int = -1,
        url: str = "",
        host: str = "",
        segment: str = "",
        limit: int = -1,
        columns: Sequence[str] = (),
    ) -> Rows:
        """The collection's URLs with the fields of each, ordered by depth and URL.

        state, reason: as in `periplus status`. status: 404, or "4xx" for 400 to 499. media_type: "text/html", or
        "image/" for all image types. depth: clicks from the start; -1: any. url: substring of the URL, or a regular
        expression. host: with or without port. segment: name from periplus.toml, or `other`. limit: rows; -1: all.
        columns: names of `model.tables.ALL_URLS` in any order, plus `segment` and `x:NAME` where rules define
        them; empty: all. Raises UsageError for an invalid filter.
        """
        which = PageFilter(state, reason, str(status), media_type, depth, url, host, limit, segment)
        page_conditions(which)
        table = self._with_segments(ALL_URLS, segment, columns)
        if parts("page_columns"):
            from periplus.api.page_columns import extended_pages, extra_columns

            if extras := extra_columns(self.place):
                extended = table.with_columns(chain.from_iterable(extra.columns for extra in extras))
                return self._rows(
                    extended, columns, lambda names: extended_pages(self._reader, which, names, table, extras)
                )
        return self._rows(table, columns, lambda names: self._reader.pages(which, names, table))

    def links(  # noqa: PLR0913 - the filters, written out
        self,
        *,
        source: str = "",
        target: str = "",
        kind: str = "",
        position: str = "",
        nofollow: bool = False,
        broken: bool = False,
        external: bool = False,
        segment: str = "",
        limit: int = -1,
        columns: Sequence[str] = (),
    ) -> Rows:
        """Links with their anchor texts; ordered by source and target if one of them is given, else in stored order.

        source, target: URLs of the collection in any spelling. kind: a, image, style, redirect, ...; position: part of
        the page that contains the link. nofollow: only nofollow links. broken: only links to dead targets. external:
        only links to other sites that are not dead. segment: of the source page. limit: rows; -1: all. columns: names
        of `model.tables.LINKS`, plus `segment` and `target_segment` where rules define segments; empty: all. Raises
        UsageError for an invalid filter or an unknown URL.
        """
        ends = [self.resolve(text) if text else "" for text in (source, target)]
        which = LinkFilter(ends[0], ends[1], kind, position, nofollow, broken, external, limit, segment)
        link_conditions(which)
        table = self._with_segments(LINKS, segment, columns)
        return self._rows(table, columns, lambda names: self._reader.links(which, names, table))

    def table(self, name: str) -> Rows:
        """A whole table as `periplus export` writes it: `pages`, `links`, `issues`, ... (list in docs/exports.md).

        `pages` includes the computed columns. Raises UsageError for an unknown name.
        """
        from periplus.api.exporting import export_rows, exported_columns

        def read(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with export_rows(self.place, name) as (_, rows):
                yield from rows

        return Rows(name, exported_columns(self.place, name), read)

    def bad_links(self, *, source: str = "", limit: int = -1) -> Rows:
        """Links that are not web addresses (mailto:, javascript:, malformed), of one page or of all pages.

        Raises UsageError for an unknown page.
        """
        page = self.resolve(source) if source else ""
        return self._rows(BAD_LINKS, (), lambda names: self._reader.bad_links(page, limit))

    def __contains__(self, url: str) -> bool:
        """Whether the collection knows the URL, in any spelling."""
        with self._limit_reads():
            return self._reader.is_known(self._reader.resolve_url(url))

    def resolve(self, text: str) -> Url:
        """The collection's URL for a text: canonical, with the stored scheme if the text has none.

        Raises InvalidUrl, and UsageError for an unknown URL.
        """
        with self._limit_reads():
            try:
                url = self._reader.resolve_url(text)
            except InvalidUrl:
                raise InvalidUrl(f"{text!r} is not a URL; write it in full, like https://example.org/page") from None
            if not self._reader.is_known(url):
                raise UsageError(
                    f"the collection does not know {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
                )
        return url

    def folders(self) -> dict[HostKey, Path]:
        """Local folders that the latest crawl served as hosts; empty for most collections."""
        entries = next((run.settings["folders"] for run in reversed(self.runs()) if run.settings.get("folders")), ())
        return folders_of(entries if isinstance(entries, (list, tuple)) else ())

    def path_shortener(self) -> Callable[[str], str]:
        """A function that replaces addresses of local files in a text by paths relative to the current directory."""
        return path_formatter(self.folders(), Path.cwd())

    def address_of(self, text: str) -> str:
        """Address of a crawled local file, given its path; any other text unchanged."""
        if not text or "://" in text or (text.startswith("/") and not Path(text).exists()):
            return text  # `/a.html` is a path on the site
        return address_of_path(self.folders(), text, Path.cwd()) or text

    def _with_segments(self, table: Table, only: str, columns: Sequence[str]) -> Table:
        """The table with segment columns if rules define segments; computed only if a filter or column needs them.

        Raises UsageError for an unknown segment.
        """
        if not only and columns and not {"segment", "target_segment"}.intersection(columns):
            return table
        from periplus.api.page_segments import require_segment, rules_at, segments_of, with_segments

        if only or columns:
            require_segment(self.place, only)
        if not (rules := rules_at(self.place)):
            return table
        with self._limit_reads():
            segments = segments_of(self._reader, rules)
        self._reader.name_segments(segments)
        return with_segments(table)

    def _rows(
        self, table: Table, columns: Sequence[str], read: Callable[[Sequence[str]], Iterator[Sequence[object]]]
    ) -> Rows:
        """Rows read within the time limit."""

        def read_in_time(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with self._limit_reads():
                yield from read(names)

        return Rows(table.name, table.select(columns), read_in_time)


class Collection(StoredCollection):
    """Reads one collection, also during a crawl. A context manager."""

    def page(self, url: str, indexes: InlinkIndexes | None = None) -> Page:
        """One page with its stored fields. Use it while the collection is open.

        indexes: speeds up incoming links, which otherwise need a scan of all links. Raises InvalidUrl, UsageError.
        """
        from periplus.api.page import Page

        index = indexes.of(self.folder, self._reader) if indexes and not self._store else None
        with self._limit_reads():
            return Page(self._reader, self._reader.resolve_url(url), index, self._samples)

    def map(
        self, site: str = "", *, scale: str = "normalised", damping: float = 0.85, rounds: int | None = None
    ) -> Site:
        """The hierarchical map of a site. site: its key, if the collection has several.

        scale: `normalised` (PageRank sums to 1) or `published` (scale of the published site mapper, which allows a
        number of rounds). Raises UsageError with the reason if there is no map.
        """
        from periplus.api.facts import RankOrder
        from periplus.api.page_segments import rules_at, segments_of
        from periplus.api.site import site_of

        with _without_collector(), self._limit_reads():
            made = site_of(self._reader, site, RankOrder(scale, damping, rounds), self._clock.now())
            rules = rules_at(self.place)
            return made.with_segments(segments_of(self._reader, rules) if rules else None)

    def sites(self) -> tuple[SiteKey, ...]:
        """The crawled sites, in the order of their starts."""
        from periplus.api.facts import site_starts

        return tuple(start.site for start in site_starts(self._reader))

    def templates(
        self,
        site: str = "",
        *,
        method: str = "",
        rules: TemplateRules = PUBLISHED_RULES,
        watch: Watch = lambda what, done, total: None,
    ) -> Templates:
        """Groups the site's pages by template and marks the navigation in them.

        method: `shorkin`, or `site` for the marks stored with the pages; empty: `site` if there are any. watch: called
        with the progress.

        Pages are marked on demand, so the collection must stay open.
        """
        from periplus.api.templates import site_templates

        with self._limit_reads():
            return site_templates(self._reader, site, method=method, rules=rules, watch=watch)

    def duplicates(
        self, site: str = "", *, near: float = 0.8, watch: Watch = lambda what, done, total: None
    ) -> Duplicates:
        """Groups of pages with equal or nearly equal text, each with its representative page.

        site: its key; empty: all sites. near: least share of common five-word shingles for near duplicates; 1: exact
        duplicates only. In a folder, computes missing content marks first, unless a crawl is doing so. watch: called
        with the progress.
        """
        from periplus.api import duplicates

        with self._limit_reads():
            if near < 1.0 and not self._store:
                duplicates.mark(self.folder, self._reader, self._clock.now(), watch)
            return duplicates.duplicates(self._reader, site, near, watch)

    def sitemaps(self, folder: Path | str, site: str = "") -> list[Path]:
        """Writes sitemap.xml of the indexable pages into folder, split into parts if needed; returns the paths.

        The files of a single host are written to folder itself; several hosts get a subfolder each.
        """
        from periplus.api.site import write_sitemaps

        with self._limit_reads():
            return write_sitemaps(self._reader, site, Path(folder))

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        page: int = 1,
        facets: bool = False,
        like: Sequence[float] | str | None = None,
        watch: Callable[[int, int], bool] = lambda done, waiting: False,
    ) -> SearchResult:
        """Full-text search as in `periplus search`; query language: docs/search.md.

        Indexes changes since the last search first, unless a crawl does so. like: a vector, or the URL of a page with a
        vector: adds its nearest pages and fuses both rankings; the query may then be empty. watch: called with (pages
        indexed, pages left); True stops indexing. Raises UsageError.
        """
        target = url_id(self.resolve(like)) if isinstance(like, str) else like
        with self._opened_search() as search:
            behind = search.catch_up(self._clock.now(), watch)
            return search.find(query, limit, page, facets=facets, behind=behind, like=target)

    @contextlib.contextmanager
    def _opened_search(self) -> Iterator[Search]:
        if self._search is None:
            from periplus.api.searching import FollowedPlace, Search

            weights = read_settings(self.folder / SETTINGS_FILE).searching
            with index_feed(self.folder, self._reader) as feed:
                self._search = Search([FollowedPlace("", self.folder, feed)], weights)
        with self._limit_reads():
            yield self._search

    def take_vectors(self, path: Path | str, watch: Callable[[int], None] = lambda rows: None) -> VectorNote:
        """Replaces the collection's vectors by those in a file (formats: docs/vectors.md).

        watch: called with the number of rows read. Raises UsageError, StoreError.
        """
        embedding = service("embedding")
        embedding.require_place(self.place)
        note: VectorNote = embedding.import_vectors(self.place, Path(path), watch)
        return note

    def keywords(
        self,
        *targets: str,
        query: str | None = None,
        most: int = 10,
        method: str = "learnt",
        watch: Callable[[int], None] = lambda pages: None,
    ) -> Any:
        """Keywords of a topic, as in `periplus keywords`.

        targets: a site, or pages that are treated as one text. query: use the pages it finds, compared with all others.
        Neither: the only site, or the whole collection. watch: called with the number of pages read.
        """
        hits = self.search(query, limit=KEYWORD_HITS).hits if query is not None else ()
        with self._limit_reads():
            finder = service("keywords")(self._reader, most, method, watch)
            if query is not None:
                return finder.group_keywords(query, [hit.url for hit in hits])
            return finder.target_keywords(targets)

    def index(self, *, anew: bool = False, watch: Callable[[int, int], bool] = lambda done, waiting: False) -> str:
        """Updates or rebuilds the search index; returns a sentence about its state."""
        from periplus.api.searching import brought_up

        return brought_up(self.place, anew, watch)

    def report(self, path: Path | str | None = None, site: str = "", *, near: bool | None = None) -> Path:
        """Writes the report as one HTML file, by default report.html in the collection's folder, for a database in the
        current directory; returns its path.

        site: its key; empty: the only site, or a report with a row for each of them. path: a name ending in .pdf writes
        a PDF with the first causes of each kind of issue. near: compare texts for near duplicates; None: only if the
        site is small enough.
        """
        from periplus.api.page_notes import take_notes

        target = Path(path or (REPORT_FILE if self._store else self.folder / REPORT_FILE))
        facts = take_notes(self.place)
        with _without_collector():
            if target.suffix.lower() == ".pdf":
                from periplus.present.report_pdf import write_report_pdf

                target.write_bytes(write_report_pdf(self._report_data(site, near, facts), self.path_shortener()))
            else:
                page = as_file_links(self.folders(), self._report_page(site, near, facts))
                target.write_text(page, "utf-8", errors="replace")
        return target

    def _report_page(self, site: str, near: bool | None, facts: SourceFacts) -> str:
        """The report as HTML. That of the whole collection is kept in its folder until something changes."""
        from periplus.api.page_segments import rules_at

        def key_now() -> str:
            """Everything that the report depends on."""
            running = self._reader.activity(self._clock.now()).is_running
            packages = [row.package for row in parts("findings").values()]
            return repr((VERSION, packages, files_state(self.folder), near, rules_at(self.folder), running))

        is_kept = not site and not self._store  # in the collection's folder
        key = key_now() if is_kept else ""
        if is_kept and (page := kept_text(self.folder / REPORT_TEXT, key)):
            return page
        from periplus.model.results import ReportData
        from periplus.present.report import site_report, sites_page

        data = self._report_data(site, near, facts)
        page = site_report(data) if isinstance(data, ReportData) else sites_page(data)
        if is_kept and key_now() == key:
            keep_text(self.folder / REPORT_TEXT, key, page)
        return page

    def _report_data(self, site: str, near: bool | None, facts: SourceFacts) -> ReportData | SitesReport:
        from periplus.api.facts import site_starts
        from periplus.api.page_segments import rules_at
        from periplus.api.report import report_data, sites_report

        with self._limit_reads():
            now = self._clock.now()
            if not site and len(site_starts(self._reader)) > 1:
                return sites_report(self._reader, now, near)
            return report_data(self._reader, site, now, near, rules_at(self.place), facts=facts)

    def diff(
        self, before: str = "last-1", after: str = "last", *, other: Path | str | None = None, site: str = ""
    ) -> Comparison:
        """Differences between two runs of a site. before, after: a run number, `last`, `last-1`, ...

        other: the collection that `after` belongs to; None: this one.
        """
        from periplus.api.comparison import compare_runs

        return compare_runs(self.place, before, after, other=place_at(other) if other else None, site=site)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Disables the cyclic garbage collector: rows form no cycles, and repeated scans of a million of them took a fifth
    of a map's time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
