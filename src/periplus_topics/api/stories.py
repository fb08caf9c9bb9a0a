"""Finds stories that several sites of a collection share, and the best sites for reading most of them."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from periplus.api.homes import cache_folder, snapshot_of
from periplus.errors import StoreError, UsageError
from periplus.features import is_address
from periplus.model.arrays import Ints, Unsigned8
from periplus.model.page import DateOrigin, PageDate
from periplus.model.web import SiteKey, Url
from periplus.store.column_files import ColumnFile
from periplus.store.inlinks import InlinkIndexVersion, moment_of
from periplus.store.reader import CollectionReader
from periplus.values import Place, Watch, fields_of, frozen
from periplus_topics.analyse.articles import Articles, sampling_of
from periplus_topics.analyse.influence import coverage, fill_budget, future_way, influence_of, most_posts, values_of
from periplus_topics.analyse.stories import find_stories
from periplus_topics.api.story_pages import (
    CandidatePages,
    Readings,
    StoredReadings,
    pages_of,
    read,
    store_readings,
    stored_readings,
)
from periplus_topics.model import (
    Cascades,
    Holdout,
    Influence,
    Objective,
    Order,
    Stories,
    Story,
    StoryPage,
    cascades_of_lines,
    cascades_of_stories,
    halves,
)
from periplus_topics.present.stories import write_stories_json
from periplus_topics.store import write_file

CACHED_COLLECTIONS = 4  # collections whose stories are cached, about 1 kB per page


@frozen
class ReadingRequest:
    """Objective and budget of a choice of sites.

    budget: number of sites; with by_posts, number of posts, or their share if below 1.
    """

    objective: Objective = Objective.DL
    budget: float = 20
    by_posts: bool = False
    for_future: bool = False  # optimise for future stories, estimated from the later half of the known stories


_REQUEST = ReadingRequest()


def stories_of(
    place: Path | str, *, least_sites: int = 2, watch: Callable[[str, int, int], None] = lambda what, done, total: None
) -> Stories:
    """Stories that several sites of a collection share, most important first, as in `periplus stories`.

    Reads only pages that changed since the last call; an interrupted call stores what it has read. least_sites: minimum
    number of sites per story. watch: called with (step, done, total). Raises NoCollection, StoreError.
    """
    return stories_and_state(place, least_sites=least_sites, watch=watch)[0]


class StoriesState(NamedTuple):
    """State of a collection when its stories were found."""

    moment: InlinkIndexVersion
    digest: int  # 64-bit hash that changes with every page and visit


def stories_and_state(
    place: Place, *, least_sites: int = 2, watch: Watch = lambda what, done, total: None
) -> tuple[Stories, StoriesState]:
    """The result of `stories_of`, and the collection's state that it describes."""
    folder = cache_folder(place)
    with snapshot_of(place) as reader:
        pages = pages_of(reader, watch)
        # stories depend on pages, and through the last visit on redirects and feeds
        moment = moment_of(reader)
        key = [least_sites, *moment, *map(list, zip(pages.sites, pages.every, strict=True))]
        state = StoriesState(moment, xxh3_64_intdigest(json.dumps(key).encode()))
        file = stored_readings(folder)
        if file is not None and file.head.get("key") == key:
            return _unpack(file), state
        readings, articles, links = _read(folder, reader, pages, file, watch)
    with _left_to_the_next(folder, readings, 0):
        stories = find_stories(articles, links, least_sites=least_sites, watch=watch)
    store_readings(folder, {"key": key, **_counts(stories)}, readings, {"stories": _pack(stories)})
    return stories, state


def _read(
    folder: Path, reader: CollectionReader, pages: CandidatePages, file: ColumnFile | None, watch: Watch
) -> tuple[Readings, Articles, Ints]:
    """The result of `read` with the readings."""
    stored = StoredReadings(file)
    readings = Readings(stored.sampling, folder)
    with _left_to_the_next(folder, readings, len(stored)):
        articles, links = read(reader, pages, stored, readings, watch)
    if sampling_of(readings.all_runs) < stored.sampling:  # pages were deleted: a larger sample of each fits
        return _read(folder, reader, pages, None, watch)
    return readings, articles, links


@contextlib.contextmanager
def _left_to_the_next(folder: Path, readings: Readings, before: int) -> Iterator[None]:
    """Stores the readings on an interrupt, if there are more than the `before` stored ones."""
    try:
        yield
    except KeyboardInterrupt:
        if len(readings) > before:
            store_readings(folder, {}, readings, {})
        raise


def _pack(stories: Stories) -> Unsigned8:
    """One line of JSON per story."""
    lines = bytearray()
    for story in stories.stories:
        lines += json.dumps(asdict(story)).encode() + b"\n"
    return np.frombuffer(lines, np.uint8)


def _counts(stories: Stories) -> dict[str, object]:
    """All fields except the stories."""
    return fields_of(stories, "pages digests dated posts")


def _unpack(file: ColumnFile) -> Stories:
    """Inverse of `_pack` and `_counts`."""
    head = file.head
    stories = tuple(
        Story(
            pages=tuple(_story_page(page) for page in fields["pages"]),
            links=tuple((citing, cited) for citing, cited in fields["links"]),
            near=tuple((later, earlier, share) for later, earlier, share in fields["near"]),
            disordered=fields["disordered"],
        )
        for fields in map(json.loads, io.BytesIO(file.columns["stories"].tobytes()))
    )
    dated = tuple((DateOrigin(source), pages) for source, pages in head["dated"])
    posts = tuple((SiteKey(site), pages) for site, pages in head["posts"])
    return Stories(stories, head["pages"], tuple(map(Url, head["digests"])), dated, posts)


def _story_page(page: Mapping[str, Any]) -> StoryPage:
    date = page["date"]
    return StoryPage(
        Url(page["url"]), SiteKey(page["site"]), page["title"], page["language"],
        PageDate(date["when"], DateOrigin(date["source"]), date["whole_day"]), Order(page["order"]),
    )  # fmt: skip


def cascades_from(path: Path) -> Cascades:
    """Cascades from a file: one story per line, `site,hours site,hours ...`; may be gzipped. Raises UsageError."""
    import gzip

    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as lines:
            return cascades_of_lines(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as cascades: {error}") from None


def choose_sites(cascades: Cascades | Stories, request: ReadingRequest = _REQUEST) -> Influence:
    """The best sites within the budget, in order of choice, with an upper bound for any choice."""
    given = cascades if isinstance(cascades, Cascades) else cascades_of_stories(cascades)
    cover = coverage(given, request.objective, by_posts=request.by_posts)
    budget = _budget(given, request)
    if not request.for_future:
        return influence_of(given, cover, budget)
    way = future_way(given, request.objective, _budget_of(given, request), by_posts=request.by_posts)
    return influence_of(given, cover, budget, way)


def holdout(cascades: Cascades, request: ReadingRequest = _REQUEST) -> Holdout:
    """Chooses sites from the earlier half of the stories and scores them on the later half."""
    earlier, later = halves(cascades)
    if not len(later.offsets) > 1:
        raise UsageError("a holdout needs at least two stories: omit --holdout")
    chosen = choose_sites(earlier, replace(request, for_future=True))
    cover, past = coverage(later, request.objective), coverage(earlier, request.objective, by_posts=request.by_posts)
    total = cover.total or 1.0
    sites = fill_budget(past, [choice.site for choice in chosen.chosen], _budget(earlier, request))
    hindsight = influence_of(
        later,
        coverage(later, request.objective, by_posts=request.by_posts),
        _budget(later, request),
    )
    busiest = most_posts(earlier, past, _budget(earlier, request))
    return Holdout(
        chosen=chosen,
        stories=len(later.offsets) - 1,
        later=tuple(value / total for value in values_of(cover, sites)),
        costs=tuple(past.costs[list(sites)].tolist()),
        hindsight=hindsight.value,
        most_posts=tuple(value / total for value in values_of(cover, busiest)),
    )


def _budget_of(cascades: Cascades, request: ReadingRequest) -> Callable[[Cascades], float]:
    """The budget for a part of the cascades: the same number of sites, or the same share of posts."""
    if not request.by_posts:
        return lambda part: _budget(part, request)
    share = _budget(cascades, request) / max(float(cascades.posts.sum()), 1.0)
    return lambda part: share * float(part.posts.sum())


def _budget(cascades: Cascades, request: ReadingRequest) -> float:
    if not request.by_posts:
        return float(int(request.budget))
    return request.budget * float(cascades.posts.sum()) if request.budget < 1 else request.budget


def influence(
    source: Path | str | Stories,
    *,
    objective: str = "dl",
    budget: float = 20,
    by_posts: bool = False,
    for_future: bool = False,
) -> Influence:
    """The best sites to read, best first, as in `periplus influence`.

    source: stories, a collection's folder, or a file of cascades (one story per line, `site,hours site,hours ...`).
    objective: `dl` (detection likelihood), `dt` (detection time), `pa` (population affected). budget: number of sites;
    with by_posts, number of posts, or below 1 their share. for_future: optimise for future stories. Raises UsageError.
    """
    if objective not in (choices := [choice.value for choice in Objective]):
        raise UsageError(f"unknown objective {objective!r}: choose among {', '.join(choices)}")
    given: Any = source
    if isinstance(source, (str, Path)):
        is_collection = is_address(str(source)) or Path(source).is_dir()
        given = stories_of(source) if is_collection else cascades_from(Path(source))
    return choose_sites(given, ReadingRequest(Objective(objective), budget, by_posts, for_future))


# Stored stories: `results/stories.json` has the format of `periplus stories --json`.


def stories_file(place: Place) -> Path:
    return cache_folder(place) / "results" / "stories.json"


def store_stories(place: Place, stories: Stories) -> Path:
    """Replaces the stored stories."""
    out = StringIO()
    write_stories_json(stories, out)
    return write_file(stories_file(place), out.getvalue())


def stored_stories(place: Place) -> Stories | None:
    """The stored stories, or None. Raises StoreError for a damaged file."""
    file = stories_file(place)
    try:
        stamp = file.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    return _read_stories(file, stamp)


@lru_cache(maxsize=CACHED_COLLECTIONS)
def _read_stories(file: Path, stamp: int) -> Stories:
    """stamp: mtime of the file, part of the cache key."""
    try:
        whole = json.loads(file.read_text("utf-8"))
        stories = tuple(_story(columns) for columns in whole["stories"])
        dated = tuple((DateOrigin(source), int(pages)) for source, pages in whole["dated_by"].items())
        posts = tuple((SiteKey(site), int(pages)) for site, pages in whole.get("posts", {}).items())
        return Stories(stories, int(whole["pages"]), tuple(map(Url, whole["digests"])), dated, posts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file} cannot be read ({error}): run `periplus stories --keep` to rebuild it") from None


def _moment(date: str) -> float:
    """Seconds since the epoch of an ISO 8601 date; a date without time means 0:00 UTC."""
    when = datetime.fromisoformat(date)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _story(columns: dict[str, list[dict[str, str]]]) -> Story:
    pages = tuple(
        StoryPage(
            Url(page["url"]), SiteKey(page["site"]), page["title"], page["language"],
            PageDate(_moment(page["date"]), DateOrigin(page["dated_by"]),
                bool(page["whole_day"])), Order(page["placed_by"]),
        )
        for page in columns["pages"]
    )  # fmt: skip
    links = tuple((int(citing), int(cited)) for citing, cited in columns["links"])
    near = tuple((int(later), int(earlier), float(share)) for later, earlier, share in columns["copies"])
    return Story(pages, links, near, int(str(columns["disordered_links"])))


def stored_story(place: Place, number: int) -> Story:
    """A stored story by number, from 1. Raises UsageError."""
    latest = stored_stories(place)
    stories = latest.stories if latest else ()
    if not 1 <= number <= len(stories):
        raise UsageError(f"no story {number}: {len(stories) or 'none'} {'were' if latest else 'was'} found")
    return stories[number - 1]
