"""A collection in a folder, and what can be asked of it."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from periplus.acquire.clock import SystemClock
from periplus.api.extracting import extract_rules_at
from periplus.api.rows import Rows
from periplus.errors import InvalidUrl, UsageError
from periplus.model.duplicates import PUBLISHED, TemplateRules
from periplus.model.frontier import HostRow, TrapTally
from periplus.model.ports import RunRecord
from periplus.model.results import ReportData, SitesReport, StateTally, urls_by_state
from periplus.model.tables import BAD_LINKS, LINKS, SEEN, Table, with_segments
from periplus.model.web import HostKey, SiteKey, Url
from periplus.settings import SETTINGS_FILE, read_settings
from periplus.store.crawl_reads import backlog, state_tallies, traps
from periplus.store.runs import is_paused
from periplus.store.sqlite import listing, reading
from periplus.store.sqlite import runs as collection_runs
from periplus.store.sqlite.listing import LinkFilter, PageFilter
from periplus.store.sqlite.schema import SqliteStatements
from periplus.urls.canonical import url_id
from periplus.urls.folders import address_of_path, as_file_links, folders_of, paths_shown
from periplus.values import Watch, frozen

if TYPE_CHECKING:  # analyses load NumPy and SciPy, crawling libcurl: only when they are asked for
    from periplus.api.inlink_index import InlinkIndexes
    from periplus.api.marks import SiteSample
    from periplus.api.page import Page
    from periplus.api.searching import Search
    from periplus.api.site import Site
    from periplus.api.templates import Templates
    from periplus.document.extraction import ExtractRule
    from periplus.model.comparison import Comparison
    from periplus.model.duplicates import Duplicates
    from periplus.model.search import SearchResult, VectorNote
    from periplus.model.topic import KeywordList

REPORT_FILE = "report.html"


@frozen
class Status:
    """A collection at one moment."""

    folder: Path
    size_bytes: int  # on disk
    running: bool  # a crawl goes on, be it paused
    paused: bool
    runs: tuple[RunRecord, ...]  # oldest first
    counts: tuple[StateTally, ...]
    hosts: int  # met, on whatever site
    hosts_waiting: int
    entries_waiting: int  # pages, each once, and robots.txt, sitemaps and links to check
    busiest: tuple[HostRow, ...]  # with most waiting first
    traps: tuple[TrapTally, ...] = ()  # patterns of URLs that were left out as endless series, the largest first
    store: str = ""  # a collection in a database: its address without password, in place of the folder
    workers: int = 0  # the same: how many are at work, on whatever machine

    @property
    def state(self) -> str:
        """Of the last run, as `state_of` says it; empty: there was none."""
        return self.state_of(self.runs[-1]) if self.runs else ""

    def state_of(self, run: RunRecord) -> str:
        """running, paused, killed (not ended, no worker alive), or how it ended."""
        if self.running:
            return "paused" if self.paused else "running"
        return "killed" if run.state == "running" else run.state


class Collection:
    """Reader of one collection, also during a crawl. A context manager."""

    def __init__(self, folder: Path, time_limit_s: float = 0.0) -> None:
        """time_limit_s: most CPU seconds of a query; 0: no limit.

        Raises NoCollection, StoreError.
        """
        self.folder = folder
        self._connection = reading.connect(folder)
        self._begin(time_limit_s)

    def _begin(self, time_limit_s: float) -> None:
        self._limit_s = time_limit_s
        self._clock = SystemClock()
        self._search: Search | None = None
        self._samples: dict[int, SiteSample] = {}

    def __enter__(self) -> Collection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def place(self) -> Path | str:
        """Its folder, or its address: what changes it takes this."""
        return self.folder

    def __repr__(self) -> str:
        return f"<Collection {self.folder}>"

    def _repr_html_(self) -> str:
        """How many URLs there are in each state, as an HTML table, for notebooks."""
        counts = urls_by_state(self.counts())
        rows = "".join(f"<tr><td>{state}</td><td>{urls}</td></tr>" for state, urls in counts.items())
        return f"<p>{escape(str(self.place))}</p><table>{rows}</table>"

    def close(self) -> None:
        """Lets go of the folder; nothing can be asked afterwards."""
        self._connection.close()

    def _limited(self) -> AbstractContextManager[None]:
        return reading.limited(self._connection, self._limit_s)

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        with self._limited():
            return collection_runs.run_records(self._connection)

    def counts(self) -> list[StateTally]:
        """How many URLs are in which state, for which reason."""
        with self._limited():
            return state_tallies(SqliteStatements(self._connection))

    def status(self, most_hosts: int = 10) -> Status:
        """Sums and state of the collection."""
        now = self._clock.now()
        with self._limited(), reading.snapshot(self._connection):
            statements = SqliteStatements(self._connection)
            work = backlog(statements, most_hosts, now)
            return Status(
                folder=self.folder,
                size_bytes=sum(map(_size, collection_runs.contents(self.folder))),
                running=reading.is_being_crawled(self._connection, now)
                or reading.is_copy_of_running(self._connection, now),
                paused=is_paused(statements),
                runs=tuple(collection_runs.run_records(self._connection)),
                counts=tuple(state_tallies(statements)),
                hosts=work.hosts,
                hosts_waiting=work.hosts_waiting,
                entries_waiting=work.to_fetch,
                busiest=work.busiest,
                traps=tuple(traps(statements)),
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
        """URLs with what is known of each, by depth and URL.

        state, reason: as `periplus status` names them. status: 404, or "4xx" for all of 400 to 499. media_type:
        "text/html", or "image/" for all of them. depth: clicks from the start; -1: any. url: a part of the URL, or a
        regular expression. host: with or without port. segment: of those that periplus.toml names, or `other`. limit:
        rows; -1: all. columns: names of `model.tables.SEEN`, in any order, and `segment` and `x:NAME` where there are
        rules; empty: all. Raises UsageError for a filter that cannot be.
        """
        which = PageFilter(state, reason, str(status), media_type, depth, url, host, limit, segment)
        listing.page_conditions(which)
        table = self._with_segments(SEEN, segment, columns)
        if rules := extract_rules_at(self.folder):
            return self._with_extracts(table, columns, which, rules)
        return self._rows(table, columns, lambda names: listing.pages(self._connection, which, names, table))

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
        """Links with their anchors; by source and target where one of them is given, else as they are stored.

        source, target: URLs of the collection in any spelling. kind: a, image, style, redirect, ...; position: the part
        of the page that the link stands in. nofollow: only links that ask not to be followed. broken: only those whose
        target is dead. external: only those to other sites that are not dead. segment: of the page that holds the link.
        limit: rows; -1: all. columns: names of `model.tables.LINKS`, and `segment` and `target_segment` where there are
        rules; empty: all. Raises UsageError for a filter that cannot be, and for a URL that was never seen.
        """
        ends = [self.resolve(text) if text else "" for text in (source, target)]
        which = LinkFilter(ends[0], ends[1], kind, position, nofollow, broken, external, limit, segment)
        listing.link_conditions(which)
        table = self._with_segments(LINKS, segment, columns)
        return self._rows(table, columns, lambda names: listing.links(self._connection, which, names, table))

    def table(self, name: str) -> Rows:
        """One table whole, as `periplus export` writes it: `pages`, `links`, `issues`, ...: docs/exports.md has all.

        `pages` has what is computed of each page. Raises UsageError for a name that there is not.
        """
        from periplus.api.exporting import export_rows, exported_columns

        def read(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with export_rows(self.folder, name) as exported:
                yield from exported.rows

        return Rows(name, exported_columns(self.folder, name), read)

    def bad_links(self, *, source: str = "", limit: int = -1) -> Rows:
        """Link attributes that are no web address (mailto:, javascript:, malformed), of a page or of all pages.

        Raises UsageError for a page that was never seen.
        """
        page = self.resolve(source) if source else ""
        return self._rows(BAD_LINKS, (), lambda names: listing.bad_links(self._connection, page, limit))

    def __contains__(self, url: str) -> bool:
        """Whether the URL, in any spelling, was ever seen."""
        with self._limited():
            return listing.is_known(self._connection, listing.resolved(self._connection, url))

    def resolve(self, text: str) -> Url:
        """The URL of the collection that a text means: canonical, with the scheme that was seen where it names none.

        Raises InvalidUrl, and UsageError for a URL that was never seen.
        """
        with self._limited():
            try:
                url = listing.resolved(self._connection, text)
            except InvalidUrl:
                raise InvalidUrl(f"{text!r} is no URL; write it in full, like https://example.org/page") from None
            if not listing.is_known(self._connection, url):
                raise UsageError(
                    f"the collection does not know {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
                )
        return url

    def page(self, url: str, indexes: InlinkIndexes | None = None) -> Page:
        """One page with what is known and kept of it, to be asked while the collection is open.

        indexes: that spare looking at every link. Raises InvalidUrl, UsageError.
        """
        from periplus.api.page import Page

        index = indexes.of(self.folder, self._connection) if indexes else None
        with self._limited():
            return Page(self._connection, listing.resolved(self._connection, url), index, self._samples)

    def map(
        self, site: str = "", *, scale: str = "normalised", damping: float = 0.85, rounds: int | None = None
    ) -> Site:
        """The hierarchical map of the collection's site. site: its key, where there are several.

        scale: `normalised` (ranks sum to 1) or `published` (the site mapper's own, on which rounds may be counted).
        Raises UsageError with the reason if there is no map.
        """
        from periplus.api.facts import RankOrder
        from periplus.api.segments import rules_at, segments_of
        from periplus.api.site import site_of

        with _without_collector(), self._limited():
            made = site_of(self._connection, site, RankOrder(scale, damping, rounds), self._clock.now())
            rules = rules_at(self.folder)
            return made.with_segments(segments_of(self._connection, rules) if rules else None)

    def sites(self) -> tuple[SiteKey, ...]:
        """The sites that were crawled, in the order of their starts."""
        from periplus.api.facts import site_starts

        return tuple(start.site for start in site_starts(self._connection))

    def templates(
        self,
        site: str = "",
        *,
        method: str = "",
        rules: TemplateRules = PUBLISHED,
        watch: Watch = lambda what, done, total: None,
    ) -> Templates:
        """Which pages of the site one template made, and what of them is navigation.

        method: `shorkin`, or `site`: the marks stored with the pages; empty: these where there are any. watch: called
        with the progress.

        Pages are marked one by one from the store, so the collection must stay open.
        """
        from periplus.api.templates import site_templates

        with self._limited():
            return site_templates(self._connection, site, method=method, rules=rules, watch=watch)

    def duplicates(
        self, site: str = "", *, near: float = 0.8, watch: Watch = lambda what, done, total: None
    ) -> Duplicates:
        """Groups of pages with equal or nearly equal text, each with its representative page.

        site: its key; empty: all sites. near: share of runs of five words from which two texts are nearly the same; 1:
        only the same ones. Pages are marked first where needed, unless a crawl does so. watch: called
        with the progress.
        """
        from periplus.api import duplicates

        with self._limited():
            if near < 1.0:
                duplicates.mark(self.folder, self._connection, self._clock.now(), watch)
            return duplicates.duplicates(self._connection, site, near, watch)

    def sitemaps(self, folder: Path | str, site: str = "") -> list[Path]:
        """Writes sitemap.xml of the pages worth finding into folder,
        with its parts where one file is not enough; says where.

        Files of a single host are written to folder itself; several hosts have a folder each.
        """
        from periplus.api.site import write_sitemaps

        with self._limited():
            return write_sitemaps(self._connection, site, Path(folder))

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
        """Pages by their words, as `periplus search` finds them; query language: docs/search.md.

        Changes since the last search are indexed first, unless a crawl does so. like: a vector, or the URL of a
        page that has some: others near it are found too, and both orders are fused; the query may be empty then. watch:
        called with (pages indexed, pages to go); True stops indexing. Raises UsageError.
        """
        if self._search is None:
            from periplus.api.searching import Search, SearchedFolder

            weights = read_settings(self.folder / SETTINGS_FILE).searching
            self._search = Search([SearchedFolder("", self.folder, self._connection)], weights)
        target = url_id(self.resolve(like)) if isinstance(like, str) else like
        with self._limited():
            behind = self._search.catch_up(self._clock.now(), watch)
            return self._search.find(query, limit, page, facets=facets, behind=behind, like=target)

    def take_vectors(self, path: Path | str, watch: Callable[[int], None] = lambda rows: None) -> VectorNote:
        """Replaces the collection's vectors by those of a file (formats: docs/vectors.md).

        watch: called with the number of rows read. Raises UsageError, StoreError.
        """
        from periplus.api.embedding import take_in
        from periplus.api.shared_index import require_place

        require_place(self.folder)
        return take_in(self.folder, Path(path), watch)

    def keywords(
        self,
        *targets: str,
        query: str | None = None,
        most: int = 10,
        method: str = "learnt",
        watch: Callable[[int], None] = lambda pages: None,
    ) -> KeywordList:
        """Keywords of a subject, as `periplus keywords` finds them.

        targets: a site, or pages, several as one subject; query: the pages that it finds, against all others; neither:
        the only site, or everything. watch: called with the number of pages read.
        """
        from periplus.api.keywords import ANSWERS, KeywordFinder

        hits = self.search(query, limit=ANSWERS).hits if query is not None else ()
        with self._limited():
            finder = KeywordFinder(self._connection, most, method, watch)
            if query is not None:
                return finder.of_some(query, [hit.url for hit in hits])
            return finder.of_targets(targets)

    def index(self, *, anew: bool = False, watch: Callable[[int, int], bool] = lambda done, waiting: False) -> str:
        """Updates or rebuilds the search index; returns a sentence on its state."""
        from periplus.api.search_index import brought_up

        return brought_up(self.folder, anew, watch)

    def report(self, path: Path | str | None = None, site: str = "", *, near: bool | None = None) -> Path:
        """Writes the report as one HTML file, by default report.html in the collection's folder; returns its path.

        site: its key; empty: the only one, or all of them with a row each.

        path: one that ends in .pdf gets a PDF for paper and mail, with the first causes of each kind. near: compare
        texts for near duplicates; None: where there are not too many pages.
        """
        from periplus.api.facts import RankOrder, site_starts
        from periplus.api.page_notes import take_notes
        from periplus.api.report import report_data, sites_report
        from periplus.api.segments import rules_at
        from periplus.present.report import site_report, sites_page

        target = Path(path) if path is not None else self.folder / REPORT_FILE
        take_notes(self.folder)
        with _without_collector():
            with self._limited():
                rules, now = rules_at(self.folder), self._clock.now()
                if not site and len(site_starts(self._connection)) > 1:
                    data: ReportData | SitesReport = sites_report(self._connection, now, near)
                else:
                    data = report_data(self._connection, site, RankOrder(), now, near, rules)
            if target.suffix.lower() == ".pdf":
                from periplus.present.report_pdf import write_report_pdf

                target.write_bytes(write_report_pdf(data, self.paths_shown()))
            else:
                page = sites_page(data) if isinstance(data, SitesReport) else site_report(data)
                target.write_text(as_file_links(self.folders(), page), "utf-8", errors="replace")
        return target

    def folders(self) -> dict[HostKey, Path]:
        """The local folders that the latest crawl read as hosts; most collections have none."""
        entries = next((run.settings["folders"] for run in reversed(self.runs()) if run.settings.get("folders")), ())
        return folders_of(entries if isinstance(entries, (list, tuple)) else ())

    def paths_shown(self) -> Callable[[str], str]:
        """What puts in any text the paths of local files in place of their addresses, as one sees them from here."""
        return paths_shown(self.folders(), Path.cwd())

    def address_of(self, text: str) -> str:
        """The address of a local file that a crawl read, by its path; anything else as it is."""
        if not text or "://" in text or (text.startswith("/") and not Path(text).exists()):
            return text  # `/a.html` is a path on the site
        return address_of_path(self.folders(), text, Path.cwd()) or text

    def diff(
        self, before: str = "last-1", after: str = "last", *, other: Path | str | None = None, site: str = ""
    ) -> Comparison:
        """What is different in one run, seen from another: each a number, `last`, `last-1`, ...

        other: take `after` from this collection.
        """
        from periplus.api.comparison import compare_runs

        return compare_runs(self.folder, before, after, other=Path(other) if other else None, site=site)

    def _with_extracts(
        self, table: Table, columns: Sequence[str], which: PageFilter, rules: Sequence[ExtractRule]
    ) -> Rows:
        """Pages with what rules of [extract] take from them, as far as a column asks for it."""
        from periplus.api.extracting import extracted_in, with_values
        from periplus.document.extraction import PREFIX, with_extracts

        def read(names: Sequence[str]) -> Iterator[Sequence[object]]:
            asked = [rule for rule in rules if PREFIX + rule.name in names]
            stored = ["id", *(name for name in names if not name.startswith(PREFIX))]
            rows = with_values(
                listing.pages(self._connection, which, stored, table), 0, extracted_in(self._connection, asked)
            )
            order = [*stored[1:], *(PREFIX + rule.name for rule in asked)]
            places = [order.index(name) + 1 for name in names]
            return (tuple(row[place] for place in places) for row in rows)

        return self._rows(with_extracts(table, rules), columns, read)

    def _with_segments(self, table: Table, only: str, columns: Sequence[str]) -> Table:
        """The table with its segments where rules name some, which are looked for as far as a filter or column asks.

        Raises UsageError for a segment that there is not.
        """
        if not only and columns and not {"segment", "target_segment"}.intersection(columns):
            return table
        from periplus.api.segments import require_segment, rules_at, segments_of

        if only or columns:
            require_segment(self.folder, only)
        if not (rules := rules_at(self.folder)):
            return table
        with self._limited():
            segments = segments_of(self._connection, rules)
        reading.name_segments(self._connection, segments.of)
        return with_segments(table)

    def _rows(
        self, table: Table, columns: Sequence[str], read: Callable[[Sequence[str]], Iterator[Sequence[object]]]
    ) -> Rows:
        """Rows that are read within the time limit."""

        def limited(names: Sequence[str]) -> Iterator[Sequence[object]]:
            with self._limited():
                yield from read(names)

        return Rows(table.name, table.select(columns), limited)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """No search for circles of objects within: rows have none,
    and looking at all of a million again and again took a fifth of a map's time.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _size(path: Path) -> int:
    """Bytes of a file, or of the files in a folder; of what vanished meanwhile none: the index replaces its files."""
    with contextlib.suppress(FileNotFoundError):
        return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
    return 0
