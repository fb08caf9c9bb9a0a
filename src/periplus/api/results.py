"""Stores results of slow analyses in the collection's folder.

`results/stories.json` has the format of `periplus stories --json`, `topics/NAME.judged.jsonl` that of
`periplus topic judge NAME --json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from io import StringIO
from pathlib import Path

from periplus.api.topics import FOLDER as TOPICS
from periplus.api.topics import stored_labels, topic_file
from periplus.errors import StoreError, UsageError
from periplus.files import replace_file
from periplus.model.story import DateOrigin, Order, PageDate, Stories, Story, StoryPage
from periplus.model.topic import PageJudgement
from periplus.model.web import SiteKey, Url
from periplus.present.stories import write_stories_json
from periplus.values import frozen

FOLDER = "results"
STORIES = "stories.json"
CACHED_COLLECTIONS = 4  # collections whose stories are cached, about 1 kB per page


@frozen
class JudgedPage:
    """A classified page with the label that a person gave it since, or None."""

    page: PageJudgement
    label: bool | None


def write_text(file: Path, text: str) -> Path:
    """Writes a text file atomically. Raises StoreError."""
    try:
        file.parent.mkdir(0o700, exist_ok=True)
        replace_file(file, text.encode("utf-8", "replace"))
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from None
    return file


def when_stored(file: Path) -> float:
    """Time when a result was stored, in seconds since the epoch; 0.0: never."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def stories_file(folder: Path) -> Path:
    return folder / FOLDER / STORIES


def store_stories(folder: Path, stories: Stories) -> Path:
    """Replaces the stored stories."""
    out = StringIO()
    write_stories_json(stories, out)
    return write_text(stories_file(folder), out.getvalue())


def stored_stories(folder: Path) -> Stories | None:
    """The stored stories, or None. Raises StoreError for a damaged file."""
    file = stories_file(folder)
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


def stored_story(folder: Path, number: int) -> Story:
    """A stored story by number, from 1. Raises UsageError."""
    latest = stored_stories(folder)
    stories = latest.stories if latest else ()
    if not 1 <= number <= len(stories):
        raise UsageError(f"no story {number}: {len(stories) or 'none'} {'were' if latest else 'was'} found")
    return stories[number - 1]


def judged_file(folder: Path, topic: str) -> Path:
    """Raises UsageError for an invalid topic name."""
    return topic_file(folder, topic).with_suffix(".judged.jsonl")


def store_classifications(folder: Path, topic: str, pages: Iterable[PageJudgement]) -> Path:
    """Replaces the stored classifications of a topic."""
    return write_text(
        judged_file(folder, topic), "".join(json.dumps(page._asdict(), ensure_ascii=False) + "\n" for page in pages)
    )


def judged_pages(folder: Path, topic: str) -> Iterator[JudgedPage]:
    """The last classification, best pages first, with labels given since; empty if there is none.

    Raises StoreError.
    """
    labels = {example.name: example.positive for example in stored_labels(folder, topic)}
    file = judged_file(folder, topic)
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                page = PageJudgement(**json.loads(line))
                yield JudgedPage(page, labels.get(page.url))
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}): run `periplus topic judge {topic} --keep` to rebuild it"
        ) from None


def judged_stamp(folder: Path, topic: str) -> tuple[float, float]:
    """Changes when pages are classified or labelled."""
    return when_stored(judged_file(folder, topic)), when_stored(folder / TOPICS / f"{topic}.labels.jsonl")
