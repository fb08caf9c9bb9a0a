"""What the package offers as functions: for each thing that a command does, one call that does the same.

A collection is named by its folder, or by its address in PostgreSQL; what changes one in a database says so. `watch`
functions are called while long work goes on; those that return True stop it, and what is done stays done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from periplus.acquire.folders import starts_of
from periplus.api.collection import Collection
from periplus.api.exporting import asked, export_file
from periplus.api.homes import collections_at, folder_of
from periplus.api.rows import Rows
from periplus.errors import NoCollection, UsageError
from periplus.model.tables import Column, ColumnKind
from periplus.model.web import SiteKey, Url
from periplus.settings import SETTINGS_FILE, SUFFIX, read_settings, settings_from
from periplus.store.postgres.address import is_address
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_name
from periplus.values import JsonObject, frozen

if TYPE_CHECKING:  # loaded by whichever function needs them
    from periplus.api.checking import CheckEnd
    from periplus.api.crawling import CrawlEnd, Progress, RefreshEnd
    from periplus.model.audit import Fault, FieldGrade, Issue
    from periplus.model.collection import DeletionPlan
    from periplus.model.search import SearchResult
    from periplus.model.story import Influence, Stories
    from periplus.model.topic import KeywordList

__all__ = [
    "CheckResult",
    "check",
    "crawl",
    "delete",
    "export",
    "influence",
    "keywords",
    "open_collection",
    "refresh",
    "search_collections",
    "sql",
    "stories",
]

Watch = Callable[["Progress"], bool]


def open_collection(place: Path | str, *, time_limit_s: float = 0.0) -> Collection:
    """The collection in a folder, or at an address (`postgresql://...`), to be read. Use it as a context, or close it.

    time_limit_s: most CPU seconds of a query; 0: no limit. Raises NoCollection, StoreError.
    """
    if is_address(str(place)):
        from periplus.api.database import DatabaseCollection

        return DatabaseCollection(str(place), time_limit_s)
    return Collection(Path(place), time_limit_s)


def crawl(
    start: str | Sequence[str], folder: Path | str | None = None, *, watch: Watch | None = None, **settings: object
) -> CrawlEnd:
    """Crawls, or goes on with a crawl, as `periplus crawl` does.

    start: one URL or several, https where no scheme is named; or folders and files of this machine (`./docs`).
    folder: by default SITE.periplus in the working directory; an address: the collection in that database.
    settings: by their names in docs/settings.md (`max_pages=100`, `delay_s=0.5`), over the folder's periplus.toml.
    Raises UsageError, UnknownSetting, StoreError.
    """
    from periplus.api.crawling import CrawlOrder
    from periplus.api.crawling import crawl as run

    starts, settings = _starts(start, settings)
    where = Path(site_name(starts[0]) + SUFFIX) if folder is None else folder
    if is_address(str(where)):
        order = CrawlOrder(Path(), starts, settings_from(settings), store=str(where))
    else:
        where = Path(where)
        order = CrawlOrder(where, starts, settings_from(settings, read_settings(where / SETTINGS_FILE)))
    return run(order, watch or _silent)


def refresh(place: Path | str, *, due_only: bool = False, watch: Watch | None = None, **settings: object) -> RefreshEnd:
    """Asks again for what a collection holds, and follows what is new, as `periplus refresh` does.

    place: a folder, or an address. due_only: only pages likely to have changed. settings: replace settings of the
    last crawl. Raises NoCollection, UsageError where nothing was crawled yet, UnknownSetting, StoreError.
    """
    from periplus.api.crawling import refresh as run
    from periplus.api.crawling import refresh_order

    where = str(place) if is_address(str(place)) else Path(place)
    return run(refresh_order(where, settings, due_only=due_only), watch or _silent)


@frozen
class CheckResult:
    """The result of a check.

    end: how it ended; None: no request was sent. issues: gravest first; faults: the same by cause; grades: of
    each field, by these issues.
    """

    end: CheckEnd | None
    issues: tuple[Issue, ...]
    faults: tuple[Fault, ...]
    grades: tuple[FieldGrade, ...] = ()

    def __repr__(self) -> str:
        return f"<CheckResult: {len(self.issues)} issues of {len(self.faults)} causes>"


def check(  # noqa: PLR0913 - what a check may be told, written out
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

    start: where to begin, a folder or file of this machine too; the site is crawled first, or further. Without it
    folder must hold a collection; its own settings apply. offline: send no request, use stored answers. external:
    ask for other sites' URLs too. fragments: look for the places that links name. head: HEAD before GET. near: compare
    texts for near duplicates; None: where there are not too many. site: issues of this site only.
    Raises UsageError, NoCollection, StoreError.
    """
    from periplus.api.audit import issues_of, store_issues
    from periplus.api.checking import check as run
    from periplus.api.checking import order_for, settings_before
    from periplus.api.grading import grades_now

    starts, settings = _starts(start, settings) if start else ((), settings)
    if folder is None and not starts:
        raise UsageError("nothing to check: give a URL, or the folder of a collection")
    place = _place(folder if folder is not None else site_name(starts[0]) + SUFFIX)
    before = None if starts else settings_before(place)
    files = Path() if isinstance(place, str) else place
    chosen = settings_from(settings, read_settings(files / SETTINGS_FILE, before))
    order = order_for(place, starts, chosen, external=external, fragments=fragments, head=head)
    end = None if offline else run(order, watch or _silent)
    where = folder_of(place)
    issues = issues_of(where, chosen, site, fragments=fragments, near=near)
    if end is not None and end.run_id:
        store_issues(place, end.run_id, issues)
    return CheckResult(end, tuple(issues), tuple(issues.faults(len(issues))), grades_now(where, issues.sums()))


def stories(
    folder: Path | str, *, least_sites: int = 2, watch: Callable[[str, int, int], None] = lambda what, done, total: None
) -> Stories:
    """Stories of several sites of a collection, the weightiest first, as `periplus stories` finds them.

    least_sites: sites of a story. watch: called with (step, done, total). Raises NoCollection,
    StoreError.
    """
    from periplus.api.stories import stories_of

    return stories_of(folder_of(folder), least_sites=least_sites, watch=watch)


def influence(
    source: Path | str | Stories,
    *,
    objective: str = "dl",
    budget: float = 20,
    by_posts: bool = False,
    for_future: bool = False,
) -> Influence:
    """The sites that one should read, best first, as `periplus influence` chooses them.

    source: stories, a collection's folder, or a file of cascades (a story a line, `site,hours site,hours ...`).
    objective: `dl` (stories that are met), `dt` (how early), `pa` (readers that are left). budget: how many sites; by
    posts how many posts, below 1 their share. for_future: chosen for the stories to come. Raises UsageError.
    """
    from periplus.api.stories import ReadingRequest, cascades_from, stories_of
    from periplus.api.stories import influence as chosen
    from periplus.model.story import Objective

    if objective not in (choices := [one.value for one in Objective]):
        raise UsageError(f"there is no objective {objective!r}: choose among {', '.join(choices)}")
    given: Any = source
    if isinstance(source, (str, Path)):
        is_collection = is_address(str(source)) or Path(source).is_dir()
        given = stories_of(folder_of(source)) if is_collection else cascades_from(Path(source))
    return chosen(given, ReadingRequest(Objective(objective), budget, by_posts, for_future))


def keywords(
    folder: Path | str,
    *targets: str,
    query: str | None = None,
    most: int = 10,
    method: str = "learnt",
    watch: Callable[[int], None] = lambda pages: None,
) -> KeywordList:
    """Keywords of a collection's site, pages or hits: `Collection.keywords`. Raises UsageError, NoCollection."""
    with Collection(folder_of(folder)) as collection:
        return collection.keywords(*targets, query=query, most=most, method=method, watch=watch)


def export(
    place: Path | str, table: str, path: Path | str, *, format: str = "", ranks: bool = True, segment: str = ""
) -> Path:
    """Writes one table of a collection into a file, as `periplus export` does; returns the file's path.

    place: a folder, or an address. table: `pages`, `links`, `issues`, ...: docs/exports.md has all. format: `csv`,
    `jsonl`, `parquet`, `xlsx`, or an installed package's; empty: as the path ends. ranks: with what is computed of each
    page. segment: only rows of its pages. Raises UsageError, NoCollection, StoreError.
    """
    export_file(place, table, Path(path), format=format, ranks=ranks, segment=segment)
    return Path(path)


def search_collections(  # noqa: PLR0913 - what a search may be told, written out
    places: Sequence[Path | str] | Mapping[str, Path | str],
    query: str,
    *,
    limit: int = 10,
    page: int = 1,
    facets: bool = False,
    like: Sequence[float] | str | None = None,
    time_limit_s: float = 0.0,
    watch: Callable[[int, int], bool] = lambda done, waiting: False,
) -> SearchResult:
    """Pages of several collections in one order, as `periplus search -c A -c B` finds them.

    places: folders of collections, or that hold some, and addresses; or collections by names of one's own. What a hit
    scores is counted over all of them, and a page that several have is one hit; `Hit.collection` names where it is
    shown from. All else as of `Collection.search`; like: the URL of a page is written in full. Raises UsageError,
    NoCollection, StoreError.
    """
    from periplus.api.searching import searched

    near = url_id(canonical(like)) if isinstance(like, str) else like
    named = places if isinstance(places, Mapping) else _collections_at(places)
    with searched(named, time_limit_s) as search:
        behind = search.catch_up(time.time(), watch)
        return search.find(query, limit, page, facets=facets, behind=behind, like=near)


def _collections_at(places: Sequence[Path | str]) -> Mapping[str, Path | str]:
    """By name. Raises NoCollection for a place that has none."""
    if empty := [str(place) for place in places if not collections_at([place], Path())]:
        raise NoCollection(f"there is no collection in {', '.join(empty)}")
    return collections_at(places, Path())


def sql(folder: Path | str, question: str, *, time_limit_s: float = 10.0, limit: int = -1) -> Rows:
    """The answer to one SQL statement that only reads: docs/sql.md describes the tables. All its rows are held.

    time_limit_s: longest time for the answer; 0: no limit. limit: rows; -1: all. Raises UsageError, NoCollection,
    and StoreError when the time is over.
    """
    with asked(folder_of(folder), question, time_limit_s, limit) as answer:
        names, rows = tuple(answer.columns), list(answer.rows)
    parts = zip(*rows, strict=True) if rows else ((),) * len(names)
    columns = [Column(name, _kind(values), "") for name, values in zip(names, parts, strict=True)]
    return Rows("answer", columns, lambda _: iter(rows))


def delete(  # noqa: PLR0913 - what a deletion may be told, written out
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
    """Deletes pages, a site or a run from a collection, as `periplus delete` does; returns what went.

    pages: URLs. links_to: other pages' links to them go too. again: such addresses wait to be fetched. run_pages: what
    only this run fetched is deleted too. dry_run: nothing is deleted; the plan is returned. watch: called with
    (addresses done, in all). Raises UsageError, NoCollection, and StoreError while a crawl is at work.
    """
    from periplus.api import deleting
    from periplus.model.collection import Deletion

    place = _place(folder)
    where = folder_of(place)
    ids = deleting.ids_of(where, pages)
    deletion = Deletion(ids, SiteKey(site) if site else None, run, links_to, again, run_pages)
    return deleting.plan(where, deletion) if dry_run else deleting.delete(place, deletion, watch)


def _place(folder: Path | str) -> Path | str:
    """A folder as a Path; an address as a text."""
    return str(folder) if is_address(str(folder)) else Path(folder)


def _starts(start: str | Sequence[str], settings: JsonObject) -> tuple[tuple[Url, ...], JsonObject]:
    """Starts as URLs, and the settings with the local folders among them.

    Raises InvalidUrl, and UsageError where none is named.
    """
    texts = [start] if isinstance(start, str) else list(start)
    if not texts:
        raise UsageError("no start: give a URL, or a folder")
    starts, local = starts_of(texts)
    return starts, {"scope": "prefix"} | settings | {"folders": local} if local else settings


def _kind(values: Sequence[object]) -> ColumnKind:
    """What stands in a column of which only the values are known."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int}:
        return ColumnKind.INTEGER
    return ColumnKind.REAL if kinds and kinds <= {int, float} else ColumnKind.TEXT


def _silent(progress: Progress) -> bool:
    return False
