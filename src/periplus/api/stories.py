"""Finds the stories that several sites of a collection tell, and the few sites that one reads to see most of them."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

from periplus.analyse.articles import Articles, sampling_of
from periplus.analyse.cascades import cascades_of_lines, cascades_of_stories, halves
from periplus.analyse.influence import coverage, filled, future_way, influence_of, most_posts, values_of
from periplus.analyse.stories import find_stories
from periplus.api.story_pages import (
    CandidatePages,
    Readings,
    Stored,
    pages_of,
    read,
    store_readings,
    stored_readings,
)
from periplus.errors import UsageError
from periplus.model.arrays import Ints, Unsigned8
from periplus.model.story import (
    Cascades,
    DateOrigin,
    Holdout,
    Influence,
    Objective,
    Order,
    PageDate,
    Stories,
    Story,
    StoryPage,
)
from periplus.model.web import SiteKey, Url
from periplus.store.column_files import ColumnFile
from periplus.store.sqlite import reading
from periplus.store.sqlite.inlinks import InlinkIndexVersion, moment_of
from periplus.values import Watch, frozen

SEED = 1  # of the exchanges by chance: equal cascades give equal choices


@frozen
class ReadingRequest:
    """What one wants of the sites to be read.

    budget: sites, or by posts the share of all posts when it is below 1, else posts.
    """

    objective: Objective = Objective.DL
    budget: float = 20
    by_posts: bool = False
    for_future: bool = False  # of the stories to come, as the later ones of these show how


_WISH = ReadingRequest()


def stories_of(folder: Path | str, *, least_sites: int = 2, watch: Watch = lambda what, done, total: None) -> Stories:
    """The stories in a collection of several sites, the weightiest first. Only pages that changed since the last call
    are read; a call that is broken off leaves what it has read to the next one. Raises NoCollection, StoreError.
    """
    return stories_and_state(folder, least_sites=least_sites, watch=watch)[0]


class StoriesState(NamedTuple):
    """Of a collection when its stories were found."""

    moment: InlinkIndexVersion
    digest: int  # 64 bits that change with any page of the collection, and with any visit


def stories_and_state(
    folder: Path | str, *, least_sites: int = 2, watch: Watch = lambda what, done, total: None
) -> tuple[Stories, StoriesState]:
    """What `stories_of` returns, and for which state of the collection that holds."""
    place = Path(folder)
    with reading.moment(place) as connection:
        pages = pages_of(connection, watch)
        # all that stories are made from: pages, and by the last visit redirects and feeds
        moment = moment_of(connection)
        key = [least_sites, *moment, *map(list, zip(pages.sites, pages.every, strict=True))]
        state = StoriesState(moment, xxh3_64_intdigest(json.dumps(key).encode()))
        file = stored_readings(place)
        if file is not None and file.head.get("key") == key:
            return _unpacked(file), state
        readings, articles, links = _read(place, connection, pages, file, watch)
    with _left_to_the_next(place, readings, 0):
        stories = find_stories(articles, links, least_sites=least_sites, watch=watch)
    store_readings(place, {"key": key, **_counts(stories)}, readings, {"stories": _packed(stories)})
    return stories, state


def _read(
    place: Path, connection: reading.Connection, pages: CandidatePages, file: ColumnFile | None, watch: Watch
) -> tuple[Readings, Articles, Ints]:
    """What `read` returns, and the readings."""
    stored = Stored(file)
    readings = Readings(stored.sampling, place)
    with _left_to_the_next(place, readings, len(stored)):
        articles, links = read(connection, pages, stored, readings, watch)
    if sampling_of(readings.all_runs) < stored.sampling:  # pages were deleted, and there is room for more of each
        return _read(place, connection, pages, None, watch)
    return readings, articles, links


@contextlib.contextmanager
def _left_to_the_next(place: Path, readings: Readings, before: int) -> Iterator[None]:
    """Stores what was read when the work is broken off, if that is more than is stored: so many pages before."""
    try:
        yield
    except KeyboardInterrupt:
        if len(readings) > before:
            store_readings(place, {}, readings, {})
        raise


def _packed(stories: Stories) -> Unsigned8:
    """A line of JSON a story."""
    lines = bytearray()
    for story in stories.stories:
        lines += json.dumps(asdict(story)).encode() + b"\n"
    return np.frombuffer(lines, np.uint8)


def _counts(stories: Stories) -> dict[str, object]:
    """All but the stories themselves."""
    return {"pages": stories.pages, "digests": stories.digests, "dated": stories.dated, "posts": stories.posts}


def _unpacked(file: ColumnFile) -> Stories:
    """What `_packed` and `_counts` took apart."""
    head = file.head
    stories = tuple(
        Story(
            pages=tuple(_story_page(page) for page in one["pages"]),
            links=tuple((citing, cited) for citing, cited in one["links"]),
            near=tuple((later, earlier, share) for later, earlier, share in one["near"]),
            disordered=one["disordered"],
        )
        for one in map(json.loads, io.BytesIO(file.columns["stories"].tobytes()))
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
    """The cascades in a file: a story a line, `site,hours site,hours ...`; perhaps gzipped. Raises UsageError."""
    import gzip

    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8") as lines:
            return cascades_of_lines(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as cascades: {error}") from None


def influence(cascades: Cascades | Stories, request: ReadingRequest = _WISH) -> Influence:
    """The sites of most value within the budget, in the order of choice, with the bounds that no choice can pass."""
    given = cascades if isinstance(cascades, Cascades) else cascades_of_stories(cascades)
    cover = coverage(given, request.objective, by_posts=request.by_posts)
    future = (
        future_way(given, request.objective, _budget_of(given, request), by_posts=request.by_posts)
        if request.for_future
        else None
    )
    return influence_of(given, cover, _budget(given, request), random.Random(SEED), future=future)


def holdout(cascades: Cascades, request: ReadingRequest = _WISH) -> Holdout:
    """Chosen for the stories to come by the earlier half, scored on the later half: what a reader may expect."""
    earlier, later = halves(cascades)
    if not len(later.offsets) > 1:
        raise UsageError("a holdout needs two stories at least: leave --holdout out")
    chosen = influence(earlier, replace(request, for_future=True))
    cover, past = coverage(later, request.objective), coverage(earlier, request.objective, by_posts=request.by_posts)
    total = cover.total or 1.0
    sites = filled(past, [one.site for one in chosen.chosen], _budget(earlier, request))
    hindsight = influence_of(
        later,
        coverage(later, request.objective, by_posts=request.by_posts),
        _budget(later, request),
        random.Random(SEED),
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
    """The budget of a part of the cascades: as many sites, or the same share of the posts."""
    if not request.by_posts:
        return lambda part: _budget(part, request)
    share = _budget(cascades, request) / max(float(cascades.posts.sum()), 1.0)
    return lambda part: share * float(part.posts.sum())


def _budget(cascades: Cascades, request: ReadingRequest) -> float:
    if not request.by_posts:
        return float(int(request.budget))
    return request.budget * float(cascades.posts.sum()) if request.budget < 1 else request.budget
