"""The package's functions: each does what one command does.

A collection is named by its folder or by its PostgreSQL address; functions that can change a database say so. `watch`
functions are called during long operations; those that return True stop the operation, and finished work is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.api.collection import Collection
from periplus.api.homes import collections_at, database_at, place_at
from periplus.api.rows import Rows
from periplus.errors import NoCollection, UsageError
from periplus.features import is_address
from periplus.model.tables import Column, ColumnKind
from periplus.model.web import SiteKey, Url
from periplus.settings import SETTINGS_FILE, SUFFIX, read_settings, settings_from
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_name
from periplus.values import JsonObject, frozen

if TYPE_CHECKING:  # imported by the functions that need them
    from periplus.api.checking import CheckEnd
    from periplus.api.crawling import CrawlEnd, Progress, RefreshEnd
    from periplus.model.audit import Fault, FieldGrade, Issue
    from periplus.model.collection import DeletionPlan
    from periplus.model.search import SearchResult

__all__ = [
    "CheckResult",
    "check",
    "crawl",
    "delete",
    "export",
    "open_collection",
    "refresh",
    "search_collections",
    "sql",
]

Watch = Callable[["Progress"], bool]


def open_collection(place: Path | str, *, time_limit_s: float = 0.0) -> Collection:
    """Opens a collection in a folder or a database (`postgresql://...`) for reading. A context manager.

    time_limit_s: most CPU seconds of a query; 0: no limit. Raises NoCollection, StoreError.
    """
    if is_address(str(place)):
        opened: Collection = database_at(str(place)).collection(str(place), time_limit_s)
        return opened
    return Collection(Path(place), time_limit_s)


def crawl(
    start: str | Sequence[str], folder: Path | str | None = None, *, watch: Watch | None = None, **settings: object
) -> CrawlEnd:
    """Crawls, or continues a crawl, as `periplus crawl` does.

    start: one URL or several (https if no scheme is given), or local folders and files (`./docs`). folder: by default
    SITE.periplus in the working directory; or the address of a collection in a database. settings: named as in
    docs/settings.md (`max_pages=100`, `delay_s=0.5`); they override the folder's periplus.toml. Raises UsageError,
    UnknownSetting, StoreError.
    """
    from periplus.api.crawling import CrawlOrder
    from periplus.api.crawling import crawl as run

    starts, settings = _starts(start, settings)
    where = Path(site_name(starts[0]) + SUFFIX) if folder is None else folder
    if is_address(str(where)):
        order = CrawlOrder(str(where), starts, settings_from(settings))
    else:
        where = Path(where)
        order = CrawlOrder(where, starts, settings_from(settings, read_settings(where / SETTINGS_FILE)))
    return run(order, watch or _silent)


def refresh(place: Path | str, *, due_only: bool = False, watch: Watch | None = None, **settings: object) -> RefreshEnd:
    """Requests known URLs again and follows new links, as `periplus refresh` does.

    place: a folder or a database address. due_only: only pages that are likely to have changed. settings: override
    those of the last crawl. Raises NoCollection, UsageError if nothing was crawled yet, UnknownSetting, StoreError.
    """
    from periplus.api.crawling import refresh as run
    from periplus.api.crawling import refresh_order

    return run(refresh_order(place_at(place), settings, due_only=due_only), watch or _silent)


@frozen
class CheckResult:
    """The result of a check.

    end: how it ended; None: no request was sent. issues: most severe first. faults: issues grouped by cause. grades: by
    field, computed from these issues.
    """

    end: CheckEnd | None
    issues: tuple[Issue, ...]
    faults: tuple[Fault, ...]
    grades: tuple[FieldGrade, ...] = ()

    def __repr__(self) -> str:
        return f"<CheckResult: {len(self.issues)} issues with {len(self.faults)} causes>"


def check(  # noqa: PLR0913 - the options of a check
    start: str | Sequence[str] = (),
    folder: Path | str | None = None,
    *,
    offline: bool = False,
    external: bool = True,
    fragments: bool = True,
    head: bool = True,
    near: bool | None = None,
    site: str = "",
    watch: Watch | None = None,
    **settings: object,
) -> CheckResult:
    """Finds broken links and other faults, as `periplus check` does.

    start: as for `crawl`; the site is crawled first, or its crawl continued. Without start, folder must contain a
    collection, whose own settings apply. offline: send no requests, use stored responses. external: request URLs of
    other sites too. fragments: check link fragments. head: use HEAD before GET. near: compare texts for near
    duplicates; None: only if the site is small enough. site: only issues of this site. Raises UsageError, NoCollection,
    StoreError.
    """
    from periplus.api.checking import check as run
    from periplus.api.checking import order_for
    from periplus.api.grading import grades_now, store_issues
    from periplus.api.homes import settings_before
    from periplus.api.positions import issues_of

    starts, settings = _starts(start, settings) if start else ((), settings)
    if folder is None and not starts:
        raise UsageError("nothing to check: give a URL, or the folder of a collection")
    place = place_at(folder if folder is not None else site_name(starts[0]) + SUFFIX)
    before = None if starts else settings_before(place)
    files = Path() if isinstance(place, str) else place
    chosen = settings_from(settings, read_settings(files / SETTINGS_FILE, before))
    order = order_for(place, starts, chosen, external=external, fragments=fragments, head=head)
    end = None if offline else run(order, watch or _silent)
    issues = issues_of(place, chosen, site, fragments=fragments, near=near)
    if end is not None and end.run_id:
        store_issues(place, end.run_id, issues)
    return CheckResult(end, tuple(issues), tuple(issues.faults(len(issues))), grades_now(place, issues.sums()))


def export(
    place: Path | str, table: str, path: Path | str, *, format: str = "", ranks: bool = True, segment: str = ""
) -> Path:
    """Writes a table of a collection to a file, as `periplus export` does; returns the file's path.

    place: a folder or a database address. table: `pages`, `links`, `issues`, ... (list in docs/exports.md). format:
    `csv`, `jsonl`, `parquet`, `xlsx`, or one from an installed package; empty: the path's extension. ranks: include
    computed page columns. segment: only rows of its pages. Raises UsageError, NoCollection, StoreError.
    """
    from periplus.api.exporting import export_file

    export_file(place, table, Path(path), format=format, ranks=ranks, segment=segment)
    return Path(path)


def search_collections(  # noqa: PLR0913 - the options of a search
    places: Path | str | Sequence[Path | str] | Mapping[str, Path | str],
    query: str,
    *,
    limit: int = 10,
    page: int = 1,
    facets: bool = False,
    like: Sequence[float] | str | None = None,
    time_limit_s: float = 0.0,
    watch: Callable[[int, int], bool] = lambda done, waiting: False,
) -> SearchResult:
    """Searches one or several collections with one ranking, as `periplus search -c A -c B` does.

    places: a collection's folder or address, a folder that contains collections, or several of these; or a mapping from
    names to collections.
    Scores use the statistics of all collections. A page in several of them is one hit; `Hit.collection` names the one
    that it is shown from. Other arguments as in `Collection.search`, but the URL in `like` must be complete. Raises
    UsageError, NoCollection, StoreError.
    """
    from periplus.api.searching import open_search

    near = url_id(canonical(like)) if isinstance(like, str) else like
    named = (
        places
        if isinstance(places, Mapping)
        else _collections_at([places] if isinstance(places, Path | str) else places)
    )
    with open_search(named, time_limit_s) as search:
        behind = search.catch_up(time.time(), watch)
        return search.find(query, limit, page, facets=facets, behind=behind, like=near)


def _collections_at(places: Sequence[Path | str]) -> Mapping[str, Path | str]:
    """Collections by name. Raises NoCollection for a place without any."""
    if empty := [str(place) for place in places if not collections_at([place], Path())]:
        raise NoCollection(f"no collection in {', '.join(empty)}")
    return collections_at(places, Path())


def sql(folder: Path | str, question: str, *, time_limit_s: float = 10.0, limit: int = -1) -> Rows:
    """Runs one read-only SQL query (tables: docs/sql.md); all rows are held in memory.

    folder: or a database address, whose SQL is PostgreSQL's. time_limit_s: 0: no limit. limit: rows; -1: all. Raises
    UsageError, NoCollection, and StoreError at the time limit.
    """
    from periplus.api.exporting import run_query

    with run_query(place_at(folder), question, time_limit_s, limit) as answer:
        names, rows = answer.columns, list(answer.rows)
    columns = [Column(name, _kind([row[place] for row in rows]), "") for place, name in enumerate(names)]
    return Rows("answer", columns, lambda _: iter(rows))


def delete(  # noqa: PLR0913 - the options of a deletion
    folder: Path | str,
    pages: Sequence[str] = (),
    *,
    site: str = "",
    run: int = 0,
    links_to: bool = False,
    again: bool = False,
    run_pages: bool = True,
    dry_run: bool = False,
    watch: Callable[[int, int], bool] = lambda done, total: False,
) -> DeletionPlan:
    """Deletes pages, a site or a run from a collection, as `periplus delete` does; returns what was deleted.

    pages: URLs. links_to: also delete other pages' links to them. again: queue the deleted URLs again. run_pages: also
    delete pages that only this run fetched. dry_run: only return the plan. watch: called with (URLs done, total).
    Raises UsageError, NoCollection, and StoreError during a crawl.
    """
    from periplus.api import deleting
    from periplus.model.collection import Deletion

    place = place_at(folder)
    ids = deleting.ids_of(place, pages)
    deletion = Deletion(ids, SiteKey(site) if site else None, run, links_to, again, run_pages)
    return deleting.plan(place, deletion) if dry_run else deleting.delete(place, deletion, watch)


def _starts(start: str | Sequence[str], settings: JsonObject) -> tuple[tuple[Url, ...], JsonObject]:
    """Start URLs, and the settings with the local folders among the starts.

    Raises InvalidUrl, and UsageError without a start.
    """
    from periplus.acquire.folders import starts_of

    texts = [start] if isinstance(start, str) else list(start)
    if not texts:
        raise UsageError("no start: give a URL, or a folder")
    starts, local = starts_of(texts)
    return starts, {"scope": "prefix"} | settings | {"folders": local} if local else settings


def _kind(values: Sequence[object]) -> ColumnKind:
    """Column type inferred from values."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int}:
        return ColumnKind.INTEGER
    return ColumnKind.REAL if kinds and kinds <= {int, float} else ColumnKind.TEXT


def _silent(progress: Progress) -> bool:
    return False
