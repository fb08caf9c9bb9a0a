"""The topics of a collection: learned from examples, and the pages that belong to each."""

from __future__ import annotations

import contextlib
import gzip
import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from periplus.analyse.topic.judging import content_text
from periplus.api.collection import Collection
from periplus.api.homes import editing
from periplus.document.understand import understand
from periplus.errors import StoreError, UsageError
from periplus.model.topic import Example, Judged, Method, Topic
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url, UrlId
from periplus.store.crawl_reads import PageBlocks
from periplus.store.sqlite import reading, schema, text_rows
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_key
from periplus.values import Watch

if TYPE_CHECKING:
    from periplus.analyse.topic.judging import Judge


SEARCH, WORDS = "search:", "words:"
SEARCHED = 200  # hits of a search: further ones answer it less and less
BY_WORDS = 30  # as many pages as a topic can be begun with: F .97 with 30 positives
WORDS_SHARE = 0.5  # of the best hit's score: a page with one of the words in passing is no example
FILE_BYTES = 20_000_000  # of an example file that are read: books have 1 MB
FILES_MOST = 50_000
PAGE_FILES = "https://files.invalid/"  # where files seem to lie, for their names' endings


def examples_from(collection: Collection, specs: Iterable[str], positive: bool, watch: Watch) -> Iterator[Example]:
    """The texts named by the specs, in their order. Raises UsageError for a spec without texts."""
    for spec in specs:
        count = 0
        for example in _of_spec(collection, spec, positive):
            count += 1
            watch(spec, count, 0)
            yield example
        if not count:
            raise UsageError(
                f"{spec!r} gives no example: no page with text answers to it. `periplus pages` and "
                "`periplus search` show what there is."
            )


def names_files(spec: str) -> bool:
    """Whether the spec names a file or a folder, for which no collection is needed."""
    return not spec.startswith((SEARCH, WORDS)) and "://" not in spec and Path(spec).exists()


def names_many(spec: str) -> bool:
    """Whether the spec names pages of the collection by what they have in common, not one by one."""
    return spec.startswith((SEARCH, WORDS)) or ("*" in spec and not names_files(spec))


def _of_spec(collection: Collection, spec: str, positive: bool) -> Iterator[Example]:
    if spec.startswith(SEARCH):
        yield from _of_pages(collection, _found(collection, spec.removeprefix(SEARCH), SEARCHED), positive)
    elif spec.startswith(WORDS):
        words = spec.removeprefix(WORDS).strip("\"' ").replace(",", " ").split()
        if not words:
            raise UsageError(f'{spec!r} names no words: write words:"harbour ship sailor"')
        yield Example(" ".join(words), positive, WORDS, spec)
        quoted = " OR ".join(f'"{word}"' for word in words if '"' not in word)
        yield from _of_pages(collection, _found(collection, quoted, BY_WORDS, WORDS_SHARE), positive)
    elif names_files(spec):
        yield from _of_files(Path(spec), positive)
    elif "*" in spec:
        rows = collection.pages(state="fetched", columns=("url",))
        yield from _of_pages(
            collection,
            [row.url for row in rows if fnmatchcase(row.url, spec if "://" in spec else f"*://{spec}")],
            positive,
        )
    else:
        yield from _of_pages(collection, [_known(collection, spec)], positive)


def _found(collection: Collection, query: str, most: int, share: float = 0.0) -> list[str]:
    """URLs of the best hits; share: of the best one's score that a hit needs."""
    hits = collection.search(query, limit=most).hits
    return [str(hit.url) for hit in hits if hit.score >= share * hits[0].score]


def _known(collection: Collection, spec: str) -> str:
    """The URL, if the collection has it."""
    try:
        return collection.resolve(spec)
    except UsageError:
        raise UsageError(
            f"{spec!r} is no file or folder here and no page of the collection. Examples are a folder, a file, a URL, "
            "a pattern (https://example.org/films/*),"
            f' {SEARCH}"..." or {WORDS}"..."'
        ) from None


def _of_pages(collection: Collection, urls: Iterable[str], positive: bool) -> Iterator[Example]:
    for page in pages_of(collection, [url_id(canonical(url)) for url in urls]):
        if text := text_of_page(page):
            yield Example(text, positive, site_key(page.url), page.url)


def pages_of(collection: Collection, ids: Iterable[UrlId]) -> Iterator[PageBlocks]:
    """Those of the URLs that are pages, read by a connection of their own: the collection's may have a time limit,
    and work to do.
    """
    connection = reading.connect(collection.folder)
    try:
        with reading.reading():
            yield from text_rows.pages_of(connection, ids)
    finally:
        connection.close()


def text_of_page(page: PageBlocks) -> str:
    """Its judged text; empty if it has none."""
    return content_text(page.title, page.blocks, page.parts) if page.blocks else ""


def _of_files(path: Path, positive: bool) -> Iterator[Example]:
    """A file, or all below a folder but hidden ones, by their names."""
    files = (
        [path]
        if path.is_file()
        else sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))[:FILES_MOST]
    )
    for file in files:
        if text := text_of_file(file):
            yield Example(text, positive, str(path), str(file))


def text_of_file(file: Path) -> str:
    """Its judged text, in any format. Raises UsageError for an unreadable file."""
    try:
        with file.open("rb") as opened:
            body = opened.read(FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    suffix = "".join(sign for sign in file.suffix.lower() if sign.isascii() and (sign.isalnum() or sign == "."))
    document = understand(canonical(f"{PAGE_FILES}example{suffix}"), Fetched(200, Headers(), body))
    return content_text(document.title, document.blocks, None) if document.blocks else ""


# A topic is two files in the collection's folder `topics`: NAME.json, the topic itself, and NAME.examples.gz,
# what it was learned from; and, where pages were labelled, NAME.labels.jsonl, to which each answer is added at
# once, so that no kill loses one.

FOLDER = "topics"
BACKGROUND = 2_000  # pages of the collection that say how pages score that nobody chose; of more the median is the same
# unlabelled pages to a positive example where no negatives are given: more examples of them say no more
AS_NEGATIVES = 5
BEGINNING_CHARS = 300  # of a page that are shown of it
_NAME = re.compile(r"\w[\w-]{0,63}")


class TopicOrder(NamedTuple):
    """What to learn."""

    name: str
    positives: Sequence[str]  # each a folder, a file, a URL, a pattern of URLs, `search:...` or `words:...`
    negatives: Sequence[str] = ()  # the same; none: pages of the collection that nobody chose
    method: Method = Method.CALIBRATED
    background: int = BACKGROUND


def train_topic(collection: Collection, order: TopicOrder, watch: Watch = lambda what, done, total: None) -> Topic:
    """Learns a topic, stores it in the collection's folder, and returns it with its quality.

    One of that name is replaced; labels given to it stay.

    Raises UsageError where examples are missing.
    """
    from periplus.analyse.topic.judging import word_counts

    file = topic_file(collection.folder, order.name)
    given = [*examples_from(collection, order.positives, True, watch)]
    for spec in order.negatives:
        examples = examples_from(collection, [spec], False, watch)
        given += _without(given, examples) if names_many(spec) else examples
    labelled = list(_labels(file))
    seen = _unchosen(collection, [*given, *labelled], order.background)
    if not order.negatives and not any(not example.positive for example in labelled):
        if not seen:
            raise UsageError(
                "the collection has no other page that could stand for what the topic is not: give --negative examples"
            )
        given += seen[: max(AS_NEGATIVES * len(given), AS_NEGATIVES)]
    watch("learning", 0, 0)
    topic = _learned(order.name, _with_labels(given, labelled), [word_counts(page.text) for page in seen], order.method)
    with editing(collection.place) as folder:
        file = topic_file(folder, order.name)
        file.parent.mkdir(0o700, exist_ok=True)
        _write_examples(file, given)
        _write(file, topic)
    return topic


def _learned(name: str, given: Sequence[Example], background: Sequence[Mapping[str, int]], method: Method) -> Topic:
    from periplus.analyse.topic.training import assessed, examples_of, learned

    examples = examples_of(given)
    return assessed(learned(name, examples, background, method), examples)


def sample_pages(collection: Collection, most: int) -> Iterator[Example]:
    """A reproducible random sample of the collection's pages, chosen by the ids of their URLs.

    As examples of nothing.
    """
    rows = collection.pages(state="fetched", columns=("url",))
    ids = heapq.nsmallest(max(most, 0), (url_id(Url(row.url)) for row in rows))
    for page in pages_of(collection, ids):
        if text := text_of_page(page):
            yield Example(text, False, "the collection", page.url)


def _unchosen(collection: Collection, chosen: Sequence[Example], most: int) -> list[Example]:
    """Pages of the collection that nobody chose."""
    return list(_without(chosen, sample_pages(collection, most + 2 * len(chosen))))[:most]


def _without(chosen: Iterable[Example], examples: Iterable[Example]) -> Iterator[Example]:
    """Those found that are none of the chosen: by no address of the same page (a site that answers by http and by https
    has two), nor with the same text.
    """
    chosen = list(chosen)
    texts, names = {example.text for example in chosen}, {_without_scheme(example.name) for example in chosen}
    return (example for example in examples if example.text not in texts and _without_scheme(example.name) not in names)


def _without_scheme(name: str) -> str:
    return name.partition("://")[2] or name


def begin(folder: Path, name: str) -> None:
    """An empty collection in folder for a topic of this name, unless there is one.

    Raises UsageError for a name that cannot be a topic's, StoreError.
    """
    topic_file(folder, name)
    if not schema.exists(folder):
        schema.create(folder)


def topic_names(folder: Path) -> list[str]:
    """Names of the topics of the collection in folder."""
    return sorted(file.stem for file in (folder / FOLDER).glob("*.json"))


def topic_of(folder: Path, name: str) -> Topic:
    """A learned topic. Raises UsageError for an unknown topic, StoreError for a damaged one."""
    from periplus.analyse.topic.judging import topic_of_text

    file = topic_file(folder, name)
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        names = ", ".join(topic_names(folder))
        advice = f"there {'are' if ',' in names else 'is'} {names}" if names else "`periplus topic train` learns one"
        raise UsageError(f"the collection has no topic {name!r}: {advice}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{file} cannot be read: {error}") from None
    return topic_of_text(text, str(file))


def judge_of(folder: Path, name: str) -> Judge:
    """What judges texts by a topic: `judge_of(folder, "films").judge(texts)` gives a float64 for each, 0 to 1."""
    from periplus.analyse.topic.judging import Judge

    return Judge(topic_of(folder, name))


def remove_topic(place: Path | str, name: str) -> list[Path]:
    """Deletes a topic with its examples and labels; returns the files. Raises UsageError for one that is not known."""
    with editing(place) as folder:
        topic_of(folder, name)
        file = topic_file(folder, name)
        files = [
            one
            for one in (*_files(file), file.with_suffix(".judged.jsonl"), file.with_suffix(".harvest.jsonl"))
            if one.exists()
        ]
        for file in files:
            file.unlink()
    return files


def judged_pages(
    collection: Collection,
    name: str,
    limit: int,
    watch: Watch = lambda what, done, total: None,
    topic_from: Path | None = None,
) -> list[Judged]:
    """The collection's pages that belong to a topic most likely, best first. limit: -1: all.

    topic_from: the folder of another collection that knows the topic.
    """
    judge = judge_of(topic_from or collection.folder, name)
    ids = [url_id(Url(row.url)) for row in collection.pages(state="fetched", columns=("url",))]
    pages = []
    for count, page in enumerate(pages_of(collection, ids), 1):
        pages.append(judged(judge, page))
        watch("judging", count, len(ids))
    pages.sort(key=lambda one: (-one.probability, one.url))
    return pages if limit < 0 else pages[:limit]


def judged_page(collection: Collection, name: str, url: str, topic_from: Path | None = None) -> Judged:
    """One page of the collection; topic_from: as of `judged_pages`. Raises UsageError for one that it does not have."""
    page_url = collection.resolve(url)
    for page in pages_of(collection, [url_id(page_url)]):
        return judged(judge_of(topic_from or collection.folder, name), page)
    raise UsageError(f"{page_url} is no page of the collection: name a page that was fetched, or a file")


def judged_target(collection: Collection, name: str, target: str, topic_from: Path | None = None) -> Judged:
    """A page of the collection by its URL, or a file by its path. topic_from: as of `judged_pages`.

    Raises UsageError for what is neither.
    """
    if "://" in target or not Path(target).is_file():
        return judged_page(collection, name, target, topic_from)
    text = text_of_file(Path(target))
    title = text.partition("\n")[0]
    judge = judge_of(topic_from or collection.folder, name)
    return Judged(Url(target), title, float(judge.judge([text])[0]), beginning_of(text, title))


def judged(judge: Judge, page: PageBlocks) -> Judged:
    """A page with its chance."""
    text = text_of_page(page)
    return Judged(page.url, page.title, float(judge.judge([text])[0]), beginning_of(text, page.title))


def beginning_of(text: str, title: str) -> str:
    """Of a text of `content_text`: a few words of what comes after the title."""
    words = " ".join(text.removeprefix(title).split())
    return words if len(words) <= BEGINNING_CHARS else words[:BEGINNING_CHARS].rpartition(" ")[0] + " ..."


def topic_file(folder: Path, name: str) -> Path:
    """Path of a topic. Raises UsageError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be a topic's name: letters, digits, - and _, at most 64 of them")
    return folder / FOLDER / f"{name}.json"


def stored_examples(folder: Path, name: str) -> list[Example]:
    """Examples of a topic, with later labels."""
    file = topic_file(folder, name)
    try:
        with gzip.open(_files(file)[1], "rt", encoding="ascii") as lines:
            given = [Example(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, EOFError) as error:
        raise StoreError(f"the examples of {name} cannot be read ({error}): train it anew") from None
    return _with_labels(given, list(_labels(file)))


def add_label(place: Path | str, name: str, example: Example) -> None:
    """Keeps an answer at once."""
    _note_label(place, name, example._asdict())


def take_back_label(place: Path | str, name: str, url: str) -> None:
    """A label as if it had not been given; that is kept at once, too."""
    _note_label(place, name, {"name": url, "taken_back": True})


def _note_label(place: Path | str, name: str, label: Mapping[str, object]) -> None:
    with editing(place) as folder, _files(topic_file(folder, name))[2].open("a", encoding="ascii") as file:
        file.write(json.dumps(label) + "\n")


def stored_labels(folder: Path, name: str) -> list[Example]:
    """Labels of pages, the last of each. Raises UsageError for an invalid name."""
    return list({example.name: example for example in _labels(topic_file(folder, name))}.values())


def relearned(collection: Collection, name: str) -> Topic:
    """Learns the topic again from its examples and labels, and stores it."""
    from periplus.analyse.topic.judging import word_counts

    old, given = topic_of(collection.folder, name), stored_examples(collection.folder, name)
    seen = _unchosen(collection, given, old.background)
    topic = _learned(name, given, [word_counts(page.text) for page in seen], old.method)
    with editing(collection.place) as folder:
        _write(topic_file(folder, name), topic)
    return topic


def _with_labels(given: Sequence[Example], labelled: Sequence[Example]) -> list[Example]:
    """A label is the last word on a page; of two the later."""
    by_page = {(example.name, example.text): example for example in labelled}
    texts, names = {example.text for example in labelled}, {example.name for example in labelled}
    return [
        *(example for example in given if example.text not in texts and example.name not in names),
        *by_page.values(),
    ]


def _labels(file: Path) -> Iterator[Example]:
    labels: list[Example] = []
    with contextlib.suppress(FileNotFoundError), _files(file)[2].open(encoding="ascii") as lines:
        for line in lines:
            if not line.endswith("\n"):  # a kill came between: that answer was not given
                break
            one = json.loads(line)
            if one.get("taken_back"):
                last = max(
                    (at for at, example in enumerate(labels) if example.name == one["name"]), default=len(labels)
                )
                del labels[last : last + 1]
            else:
                labels.append(Example(**one))
    yield from labels


def _files(file: Path) -> tuple[Path, Path, Path]:
    """A topic's files: itself, its examples, its labels; what was judged by it lies beside, as .judged.jsonl."""
    return file, file.with_suffix(".examples.gz"), file.with_suffix(".labels.jsonl")


def _write_examples(file: Path, given: Sequence[Example]) -> None:
    lines = "".join(json.dumps(example._asdict()) + "\n" for example in given)
    _replace(_files(file)[1], gzip.compress(lines.encode("ascii"), 5, mtime=0))


def _write(file: Path, topic: Topic) -> None:
    from periplus.analyse.topic.judging import topic_text

    _replace(file, topic_text(topic).encode("ascii"))


def _replace(file: Path, data: bytes) -> None:
    """The file appears when it is whole."""
    draft = file.with_name(file.name + ".part")
    try:
        draft.write_bytes(data)
        draft.replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from None
