"""Topics of a collection: trained from examples, and used to classify pages."""

from __future__ import annotations

import gzip
import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from periplus.acquire.clock import SystemClock
from periplus.api.collection import Collection
from periplus.api.homes import files_of, home_of, is_collection, open_reader
from periplus.document.understand import understand
from periplus.errors import StoreError, UsageError
from periplus.model.visit import Fetched, Headers
from periplus.model.web import Url, UrlId
from periplus.store.crawl_reads import PageBlocks
from periplus.urls.canonical import canonical, url_id
from periplus.urls.scope import site_key
from periplus.values import Place, Watch, frozen
from periplus_topics.analyse.judging import content_text, topic_text
from periplus_topics.model import Example, PageJudgement, Topic

if TYPE_CHECKING:
    from periplus_topics.analyse.judging import Judge


SEARCH, WORDS = "search:", "words:"
SEARCH_HITS = 200  # search results used: further ones match less and less
BY_WORDS = 30  # pages found by words: enough to start a topic (F .97 with 30 positives)
WORDS_SHARE = 0.5  # least share of the best score: pages that mention a word in passing are no examples
FILE_BYTES = 20_000_000  # read from an example file; books have 1 MB
FILES_MOST = 50_000
PAGE_FILES = "https://files.invalid/"  # base URL for files, so that their extensions are recognised
EXAMPLES, LABELS, JUDGED, HARVEST = "examples.gz", "labels.jsonl", "judged.jsonl", "harvest.jsonl"  # endings of files
BACKGROUND = 2_000  # unselected pages used for the distribution of scores; with more, the median is the same
# unlabelled pages used as negatives per positive example, if no negatives are given; more do not help
AS_NEGATIVES = 5
BEGINNING_CHARS = 300  # shown of a page
_NAME = re.compile(r"\w[\w-]{0,63}")


def examples_from(collection: Collection, specs: Iterable[str], positive: bool, watch: Watch) -> Iterator[Example]:
    """The texts named by the specs, in order. Raises UsageError for a spec without texts."""
    for spec in specs:
        count = 0
        for example in _of_spec(collection, spec, positive):
            count += 1
            watch(spec, count, 0)
            yield example
        if not count:
            raise UsageError(
                f"{spec!r} gives no example: it matches no page with text. See `periplus pages` and `periplus search` "
                "for what the collection has."
            )


def names_files(spec: str) -> bool:
    """Whether the spec names a file or folder, which needs no collection."""
    return not spec.startswith((SEARCH, WORDS)) and "://" not in spec and Path(spec).exists()


def names_many(spec: str) -> bool:
    """Whether the spec selects pages by a search or pattern, not individually."""
    return spec.startswith((SEARCH, WORDS)) or ("*" in spec and not names_files(spec))


def _of_spec(collection: Collection, spec: str, positive: bool) -> Iterator[Example]:
    if spec.startswith(SEARCH):
        yield from _of_pages(collection, _search_urls(collection, spec.removeprefix(SEARCH), SEARCH_HITS), positive)
    elif spec.startswith(WORDS):
        words = spec.removeprefix(WORDS).strip("\"' ").replace(",", " ").split()
        if not words:
            raise UsageError(f'{spec!r} has no words: write words:"harbour ship sailor"')
        yield Example(" ".join(words), positive, WORDS, spec)
        quoted = " OR ".join(f'"{word}"' for word in words if '"' not in word)
        yield from _of_pages(collection, _search_urls(collection, quoted, BY_WORDS, WORDS_SHARE), positive)
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
        yield from _of_pages(collection, [_resolve_url(collection, spec)], positive)


def _search_urls(collection: Collection, query: str, most: int, share: float = 0.0) -> list[str]:
    """URLs of the best results. share: least score relative to the best one."""
    hits = collection.search(query, limit=most).hits
    return [str(hit.url) for hit in hits if hit.score >= share * hits[0].score]


def _resolve_url(collection: Collection, spec: str) -> str:
    """The URL if the collection has it."""
    try:
        return collection.resolve(spec)
    except UsageError:
        raise UsageError(
            f"{spec!r} is neither a file or folder here nor a page of the collection. Examples are a folder, a file, a "
            f"URL, a pattern (https://example.org/films/*),"
            f' {SEARCH}"..." or {WORDS}"..."'
        ) from None


def _of_pages(collection: Collection, urls: Iterable[str], positive: bool) -> Iterator[Example]:
    for page in pages_of(collection, [url_id(canonical(url)) for url in urls]):
        if text := text_of_page(page):
            yield Example(text, positive, site_key(page.url), page.url)


def pages_of(collection: Collection, ids: Iterable[UrlId]) -> Iterator[PageBlocks]:
    """Pages among the ids, read through a connection of its own: the collection's may have a time limit and be busy."""
    with open_reader(collection.place) as reader:
        yield from reader.page_blocks(ids)


def text_of_page(page: PageBlocks) -> str:
    """The text that is classified; empty if there is none."""
    return content_text(page.title, page.blocks, page.parts) if page.blocks else ""


def _of_files(path: Path, positive: bool) -> Iterator[Example]:
    """A file, or all files below a folder except hidden ones, sorted by name."""
    files = (
        [path]
        if path.is_file()
        else sorted(file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))[:FILES_MOST]
    )
    for file in files:
        if text := text_of_file(file):
            yield Example(text, positive, str(path), str(file))


def text_of_file(file: Path) -> str:
    """The text that is classified, from a file of any format. Raises UsageError for an unreadable file."""
    try:
        with file.open("rb") as opened:
            body = opened.read(FILE_BYTES)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    suffix = "".join(sign for sign in file.suffix.lower() if sign.isascii() and (sign.isalnum() or sign == "."))
    document = understand(canonical(f"{PAGE_FILES}example{suffix}"), Fetched(200, Headers(), body))
    return content_text(document.title, document.blocks, None) if document.blocks else ""


# A topic consists of files of its collection: topics/NAME.json (the topic), NAME.examples.gz, NAME.labels.jsonl (each
# answer is appended at once and survives a kill), NAME.judged.jsonl and NAME.harvest.jsonl.


class TopicOrder(NamedTuple):
    """What to train."""

    name: str
    positives: Sequence[str]  # folders, files, URLs, URL patterns, `search:...` or `words:...`
    negatives: Sequence[str] = ()  # likewise; empty: other pages of the collection
    background: int = BACKGROUND


def train_topic(collection: Collection, order: TopicOrder, watch: Watch = lambda what, done, total: None) -> Topic:
    """Trains a topic, stores it in the collection, and returns it with its quality.

    Replaces an existing topic of this name, keeping its labels. Raises UsageError if examples are missing.
    """
    from periplus_topics.analyse.judging import word_counts

    labelled = _labels(collection.place, order.name)
    given = [*examples_from(collection, order.positives, True, watch)]
    for spec in order.negatives:
        examples = examples_from(collection, [spec], False, watch)
        given += _without(given, examples) if names_many(spec) else examples
    seen = _unchosen(collection, [*given, *labelled], order.background)
    if not order.negatives and not any(not example.positive for example in labelled):
        if not seen:
            raise UsageError("the collection has no other pages to use as negative examples: give --negative examples")
        given += seen[: max(AS_NEGATIVES * len(given), AS_NEGATIVES)]
    watch("learning", 0, 0)
    topic = _train(order.name, _with_labels(given, labelled), [word_counts(page.text) for page in seen])
    files, lines = files_of(collection.place), "".join(json.dumps(example._asdict()) + "\n" for example in given)
    files.write(topic_file(order.name, EXAMPLES), gzip.compress(lines.encode("ascii"), 5, mtime=0))
    files.write(topic_file(order.name), topic_text(topic).encode("ascii"))
    return topic


def _train(name: str, given: Sequence[Example], background: Sequence[Mapping[str, int]]) -> Topic:
    from periplus_topics.analyse.training import assess, examples_of, train

    examples = examples_of(given)
    return assess(train(name, examples, background), examples)


def sample_pages(collection: Collection, most: int) -> Iterator[Example]:
    """A reproducible random sample of the collection's pages, chosen by URL id, as negative examples."""
    rows = collection.pages(state="fetched", columns=("url",))
    ids = heapq.nsmallest(max(most, 0), (url_id(Url(row.url)) for row in rows))
    for page in pages_of(collection, ids):
        if text := text_of_page(page):
            yield Example(text, False, "the collection", page.url)


def _unchosen(collection: Collection, chosen: Sequence[Example], most: int) -> list[Example]:
    """Pages of the collection that are not examples."""
    return list(_without(chosen, sample_pages(collection, most + 2 * len(chosen))))[:most]


def _without(chosen: Iterable[Example], examples: Iterable[Example]) -> Iterator[Example]:
    """Examples that are not among the chosen, compared by text and by URL without scheme (http and https versions are
    the same page).
    """
    chosen = list(chosen)
    texts, names = {example.text for example in chosen}, {_without_scheme(example.name) for example in chosen}
    return (example for example in examples if example.text not in texts and _without_scheme(example.name) not in names)


def _without_scheme(name: str) -> str:
    return name.partition("://")[2] or name


def begin(folder: Path, name: str) -> None:
    """Creates an empty collection for a topic, unless there is one.

    Raises UsageError for an invalid topic name, StoreError.
    """
    topic_file(name)
    if not is_collection(folder):
        home_of(folder).prepare("", SystemClock().now())


def topic_file(name: str, ending: str = "json") -> str:
    """Name of a topic's file. Raises UsageError for an invalid name of the topic."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid topic name: use letters, digits, - and _, at most 64")
    return f"topics/{name}.{ending}"


def changed_s(place: Place, name: str, ending: str = "json") -> float:
    """Time of the last change of a topic's file, in seconds since the epoch; 0.0 if there is none."""
    return files_of(place).changed_s(topic_file(name, ending))


def topic_names(place: Place) -> list[str]:
    """Names of the collection's topics."""
    return [Path(file).stem for file in files_of(place).names("topics/*.json")]


def topic_of(place: Place, name: str) -> Topic:
    """A trained topic. Raises UsageError for an unknown topic, StoreError for a damaged one."""
    from periplus_topics.analyse.judging import topic_of_text

    file = topic_file(name)
    text = files_of(place).read(file)
    if text is None:
        names = ", ".join(topic_names(place))
        advice = (
            f"there {'are' if ',' in names else 'is'} {names}" if names else "train one with `periplus topic train`"
        )
        raise UsageError(f"the collection has no topic {name!r}: {advice}")
    return topic_of_text(text, file)


def judge_of(place: Place, name: str) -> Judge:
    """Classifier of a topic: `judge_of(place, "films").judge(texts)` returns a float64 per text, 0 to 1."""
    from periplus_topics.analyse.judging import Judge

    return Judge(topic_of(place, name))


def remove_topic(place: Place, name: str) -> list[str]:
    """Deletes a topic with its examples and labels; returns the files. Raises UsageError for an unknown topic."""
    topic_of(place, name)
    # the topic itself last: after a kill it can be deleted again
    names = [topic_file(name, ending) for ending in (EXAMPLES, LABELS, JUDGED, HARVEST, "json")]
    return list(filter(files_of(place).remove, names))


def judged_pages(
    collection: Collection,
    name: str,
    limit: int,
    watch: Watch = lambda what, done, total: None,
    topic_from: Place | None = None,
) -> list[PageJudgement]:
    """The collection's pages by probability of belonging to a topic, highest first. limit: -1: all.

    topic_from: another collection that has the topic.
    """
    judge = judge_of(topic_from or collection.place, name)
    ids = [url_id(Url(row.url)) for row in collection.pages(state="fetched", columns=("url",))]
    pages = []
    for count, page in enumerate(pages_of(collection, ids), 1):
        pages.append(judge_page(judge, page))
        watch("judging", count, len(ids))
    pages.sort(key=lambda page: (-page.probability, page.url))
    return pages if limit < 0 else pages[:limit]


def judged_page(collection: Collection, name: str, url: str, topic_from: Path | None = None) -> PageJudgement:
    """Classifies one page. topic_from: as in `judged_pages`. Raises UsageError for an unknown page."""
    page_url = collection.resolve(url)
    for page in pages_of(collection, [url_id(page_url)]):
        return judge_page(judge_of(topic_from or collection.place, name), page)
    raise UsageError(f"{page_url} is not a page of the collection: name a fetched page or a file")


def judged_target(collection: Collection, name: str, target: str, topic_from: Path | None = None) -> PageJudgement:
    """Classifies a page by URL, or a file by path. topic_from: as in `judged_pages`.

    Raises UsageError for anything else.
    """
    if "://" in target or not Path(target).is_file():
        return judged_page(collection, name, target, topic_from)
    text = text_of_file(Path(target))
    title = text.partition("\n")[0]
    judge = judge_of(topic_from or collection.place, name)
    return PageJudgement(Url(target), title, float(judge.judge([text])[0]), beginning_of(text, title))


def judge_page(judge: Judge, page: PageBlocks) -> PageJudgement:
    """Classifies a page."""
    text = text_of_page(page)
    return PageJudgement(page.url, page.title, float(judge.judge([text])[0]), beginning_of(text, page.title))


def beginning_of(text: str, title: str) -> str:
    """The beginning of a text of `content_text`, without the title."""
    words = " ".join(text.removeprefix(title).split())
    return words if len(words) <= BEGINNING_CHARS else words[:BEGINNING_CHARS].rpartition(" ")[0] + " ..."


def stored_examples(place: Place, name: str) -> list[Example]:
    """Examples of a topic, updated by later labels."""
    data = files_of(place).read(topic_file(name, EXAMPLES))
    try:
        lines = gzip.decompress(data or b"none").splitlines()  # a missing file is an error like a damaged one
        given = [Example(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, EOFError) as error:
        raise StoreError(f"the examples of {name} cannot be read ({error}): train it again") from None
    return _with_labels(given, _labels(place, name))


def add_label(place: Place, name: str, example: Example) -> None:
    """Stores an answer at once."""
    _note_label(place, name, example._asdict())


def take_back_label(place: Place, name: str, url: str) -> None:
    """Removes a label; also stored at once."""
    _note_label(place, name, {"name": url, "taken_back": True})


def _note_label(place: Place, name: str, label: Mapping[str, object]) -> None:
    files_of(place).append(topic_file(name, LABELS), json.dumps(label).encode("ascii") + b"\n")


def stored_labels(place: Place, name: str) -> list[Example]:
    """The latest label of each page. Raises UsageError for an invalid name."""
    return list({example.name: example for example in _labels(place, name)}.values())


def retrain(collection: Collection, name: str) -> Topic:
    """Trains the topic again on its examples and labels, and stores it."""
    from periplus_topics.analyse.judging import word_counts

    place = collection.place
    old, given = topic_of(place, name), stored_examples(place, name)
    seen = _unchosen(collection, given, old.background)
    topic = _train(name, given, [word_counts(page.text) for page in seen])
    files_of(place).write(topic_file(name), topic_text(topic).encode("ascii"))
    return topic


def _with_labels(given: Sequence[Example], labelled: Sequence[Example]) -> list[Example]:
    """Labels override examples; later labels override earlier ones."""
    by_page = {(example.name, example.text): example for example in labelled}
    texts, names = {example.text for example in labelled}, {example.name for example in labelled}
    return [
        *(example for example in given if example.text not in texts and example.name not in names),
        *by_page.values(),
    ]


def _labels(place: Place, name: str) -> list[Example]:
    labels: list[Example] = []
    for line in (files_of(place).read(topic_file(name, LABELS)) or b"").splitlines(keepends=True):
        if not line.endswith(b"\n"):  # truncated by a kill: ignore that answer
            break
        label = json.loads(line)
        if label.get("taken_back"):
            last = max((at for at, example in enumerate(labels) if example.name == label["name"]), default=len(labels))
            del labels[last : last + 1]
        else:
            labels.append(Example(**label))
    return labels


# Stored classifications: `topics/NAME.judged.jsonl` has the format of `periplus topic judge NAME --json`.


@frozen
class JudgedPage:
    """A classified page with the label that a person gave it since, or None."""

    page: PageJudgement
    label: bool | None


def store_classifications(place: Place, topic: str, pages: Iterable[PageJudgement]) -> None:
    """Replaces the stored classifications of a topic."""
    lines = "".join(json.dumps(page._asdict(), ensure_ascii=False) + "\n" for page in pages)
    files_of(place).write(topic_file(topic, JUDGED), lines.encode("utf-8", "replace"))


def stored_judgements(place: Place, topic: str) -> Iterator[JudgedPage]:
    """The last classification, best pages first, with labels given since; empty if there is none.

    Raises StoreError.
    """
    labels = {example.name: example.positive for example in stored_labels(place, topic)}
    file = topic_file(topic, JUDGED)
    try:
        for line in (files_of(place).read(file) or b"").splitlines():
            page = PageJudgement(**json.loads(line))
            yield JudgedPage(page, labels.get(page.url))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{file} cannot be read ({error}): run `periplus topic judge {topic} --keep` to rebuild it"
        ) from None


def judged_stamp(place: Place, topic: str) -> tuple[float, float]:
    """Changes when pages are classified or labelled."""
    return changed_s(place, topic, JUDGED), changed_s(place, topic, LABELS)
