"""What analyses that take long found last, stored in the collection's folder for whoever looks again.

`results/stories.json` is what `periplus stories --json` says; `topics/NAME.judged.jsonl` what `periplus topic
judge NAME --json` does.
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
from periplus.model.story import DateOrigin, Order, PageDate, Stories, Story, StoryPage
from periplus.model.topic import Judged
from periplus.model.web import SiteKey, Url
from periplus.present.stories import write_stories_json
from periplus.values import frozen

FOLDER = "results"
STORIES = "stories.json"
REMEMBERED = 4  # collections' stories in memory, some 1 kB a page


@frozen
class JudgedPage:
    """A page as it was judged, with what a person said of it since: True, False, or None where nobody did."""

    page: Judged
    label: bool | None


def written(file: Path, text: str) -> Path:
    """The file with this text; it appears when it is whole. Raises StoreError."""
    draft = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(0o700, exist_ok=True)
        draft.touch(0o600)
        draft.write_text(text, "utf-8", "replace")
        draft.replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from None
    return file


def when_stored(file: Path) -> float:
    """When a result was kept, seconds since the epoch; 0.0: there is none."""
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def stories_file(folder: Path) -> Path:
    return folder / FOLDER / STORIES


def store_stories(folder: Path, stories: Stories) -> Path:
    """In place of those that were found before."""
    out = StringIO()
    write_stories_json(stories, out)
    return written(stories_file(folder), out.getvalue())


def stored_stories(folder: Path) -> Stories | None:
    """The stories that were found last; None: nobody looked. Raises StoreError for a damaged file."""
    file = stories_file(folder)
    try:
        stamp = file.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    return _read_stories(file, stamp)


@lru_cache(maxsize=REMEMBERED)
def _read_stories(file: Path, stamp: int) -> Stories:
    """stamp: of the file, so that a newer one is read anew."""
    try:
        whole = json.loads(file.read_text("utf-8"))
        stories = tuple(_story(one) for one in whole["stories"])
        dated = tuple((DateOrigin(source), int(pages)) for source, pages in whole["dated_by"].items())
        posts = tuple((SiteKey(site), int(pages)) for site, pages in whole.get("posts", {}).items())
        return Stories(stories, int(whole["pages"]), tuple(map(Url, whole["digests"])), dated, posts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{file} cannot be read ({error}): `periplus stories --keep` makes it anew") from None


def _moment(date: str) -> float:
    """Seconds since the epoch of an ISO 8601 date; of a day alone its beginning in UTC."""
    when = datetime.fromisoformat(date)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _story(one: dict[str, list[dict[str, str]]]) -> Story:
    pages = tuple(
        StoryPage(
            Url(page["url"]), SiteKey(page["site"]), page["title"], page["language"],
            PageDate(_moment(page["date"]), DateOrigin(page["dated_by"]),
                bool(page["whole_day"])), Order(page["placed_by"]),
        )
        for page in one["pages"]
    )  # fmt: skip
    links = tuple((int(citing), int(cited)) for citing, cited in one["links"])
    near = tuple((int(later), int(earlier), float(share)) for later, earlier, share in one["copies"])
    return Story(pages, links, near, int(str(one["disordered_links"])))


def stored_story(folder: Path, number: int) -> Story:
    """One of the stories kept, from 1. Raises UsageError."""
    latest = stored_stories(folder)
    stories = latest.stories if latest else ()
    if not 1 <= number <= len(stories):
        raise UsageError(f"there is no story {number}: {len(stories) or 'none'} {'were' if latest else 'was'} found")
    return stories[number - 1]


def judged_file(folder: Path, topic: str) -> Path:
    """Raises UsageError for a name that cannot be a topic's."""
    return topic_file(folder, topic).with_suffix(".judged.jsonl")


def store_judged(folder: Path, topic: str, pages: Iterable[Judged]) -> Path:
    """In place of what was judged before."""
    return written(
        judged_file(folder, topic), "".join(json.dumps(one._asdict(), ensure_ascii=False) + "\n" for one in pages)
    )


def judged_pages(folder: Path, topic: str) -> Iterator[JudgedPage]:
    """The pages as they were judged last, best first, with the labels given since; nothing where nobody judged.

    Raises StoreError.
    """
    labels = {example.name: example.positive for example in stored_labels(folder, topic)}
    file = judged_file(folder, topic)
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                page = Judged(**json.loads(line))
                yield JudgedPage(page, labels.get(page.url))
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}): `periplus topic judge {topic} --keep` makes it anew"
        ) from None


def judged_stamp(folder: Path, topic: str) -> tuple[float, float]:
    """Changes when pages are judged or labelled."""
    return when_stored(judged_file(folder, topic)), when_stored(folder / TOPICS / f"{topic}.labels.jsonl")
