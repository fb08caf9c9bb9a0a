"""Finds keywords of pages, sites and search results, by comparing their words with those of the whole collection."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from itertools import islice
from pathlib import Path

from xxhash import xxh3_64_intdigest

from periplus.api.functions import open_collection
from periplus.errors import StoreError, UsageError
from periplus.model.page import BlockKind, Blocks, Part
from periplus.model.web import SiteKey, Url, UrlId
from periplus.store import column_files
from periplus.store.crawl_reads import PageBlocks
from periplus.store.inlinks import moment_of
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Watch
from periplus_topics import store as portal_rows
from periplus_topics.analyse.edition import leading_sentence
from periplus_topics.analyse.keyword_reading import (
    NOTHING,
    Counts,
    Reading,
    count_texts,
    frame_texts,
    is_heading,
    is_name,
    is_printable,
    read,
    together,
)
from periplus_topics.analyse.keywords import METHODS, Contrast, keywords_of, keywords_of_all
from periplus_topics.api.stories import StoriesState
from periplus_topics.model import Entry, Keyword, KeywordList, Provenance, Story
from periplus_topics.store import write_file

# sampled over all sites and pages, for document frequencies: more pages change no keyword but take longer
SAMPLE_PAGES = 1_000
SUBJECT_PAGES = 1_000  # per site
HEADINGS = 2  # factor of candidates per result: some are headings such as "Introduction"
LEAST_SITE_PAGES = 5  # minimum of pages per site
_NO_PROSE = frozenset({BlockKind.CODE, BlockKind.ALT, BlockKind.LINK, BlockKind.TITLE})
VERSION = 1  # of the cache file and of the code that computes its contents
FRAME_PAGES = 12  # pages of a site compared to find its repeated text
# share of its text that a page has in common with an earlier one, above which it counts as a copy of it
COPY = 0.5
PAGES_READ = 3  # pages of a story used for its sentence and keywords


class KeywordFinder:
    """Finds keywords in a collection. method: one of METHODS. watch: called with the number of pages read."""

    def __init__(
        self,
        reader: CollectionReader,
        most: int = 10,
        method: str = "learnt",
        watch: Callable[[int], None] = lambda pages: None,
    ) -> None:
        if method not in METHODS:
            raise UsageError(f"unknown method {method}: choose among {', '.join(METHODS)}")
        self._reader, self._most, self._method, self._watch = reader, most, method, watch
        self._read = 0

    def target_keywords(self, targets: Sequence[str]) -> KeywordList:
        """Keywords of a site, of a page, or of several pages as one text; without targets, of the only site or the
        whole collection.

        Raises InvalidUrl, and UsageError for an unknown target.
        """
        if not targets:
            texts = list(self._texts(spread_pages(self._reader)))
            return self._keyword_list("the whole collection", texts, count_texts(texts), framed=True)
        sites = {str(name): number for number, name in self._reader.site_names().items()}
        if len(targets) == 1 and targets[0] in sites:
            pages = self._reader.site_blocks(sites[targets[0]], SUBJECT_PAGES)
            return self._group(targets[0], pages, framed=True)
        return self._page_keywords([self._reader.resolve_url(text) for text in targets])

    def group_keywords(self, subject: str, urls: Sequence[Url]) -> KeywordList:
        """Keywords that distinguish these pages from the rest of the collection. Raises UsageError without pages."""
        return self._group(subject, self._reader.page_blocks(map(url_id, urls)), framed=False)

    def _page_keywords(self, urls: Sequence[Url]) -> KeywordList:
        pages = [(url, next(self._reader.page_blocks([url_id(url)]), None)) for url in urls]
        for url, page in pages:
            if page is None or not page.blocks:
                raise UsageError(
                    f"the collection has no text of {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
                )
        subject = str(urls[0]) if len(urls) == 1 else f"{len(urls)} pages"
        texts = list(self._texts(page for _, page in pages if page is not None))
        return self._keyword_list(subject, texts, count_texts(self._texts(spread_pages(self._reader))))

    def _group(self, subject: str, pages: Iterable[PageBlocks], *, framed: bool) -> KeywordList:
        """Keywords that distinguish these pages from all others, if there are others."""
        pages = list(pages)
        own = {page.url_id for page in pages}
        texts = list(self._texts(pages))
        rest = count_texts(self._texts(page for page in spread_pages(self._reader) if page.url_id not in own))
        return self._keyword_list(subject, texts, together(rest, count_texts(texts)), rest, framed=framed)

    def _keyword_list(
        self, subject: str, texts: Sequence[Reading], counts: Counts, rest: Counts = NOTHING, *, framed: bool = False
    ) -> KeywordList:
        if not texts:
            raise UsageError(f"there is no text of {subject}: no page was found or fetched, or keep_text is off")
        if len(texts) == 1 and not rest.texts:
            keywords = keywords_of(texts[0], counts, HEADINGS * self._most, self._method)
        else:
            keywords = keywords_of_all(texts, counts, HEADINGS * self._most, self._method, Contrast(rest, framed))
        language, _ = Counter(text.language for text in texts).most_common(1)[0]
        telling = (keyword for keyword in keywords if not is_heading(keyword.text, language))
        best = tuple(islice(telling, self._most))
        return KeywordList(subject, self._method, language, len(texts), counts.texts, best)

    def _texts(self, pages: Iterable[PageBlocks]) -> Iterator[Reading]:
        return readings(pages, self._count)

    def _count(self) -> None:
        self._read += 1
        self._watch(self._read)


def spread_pages(reader: CollectionReader) -> Iterator[PageBlocks]:
    """A sample of about PAGES_COUNTED pages, spread evenly over all sites, for document frequencies."""
    # sites that were only linked to come first and leave their share to the others
    sites = sorted(reader.site_names(), reverse=True)
    left = SAMPLE_PAGES
    for place, site in enumerate(sites):
        for page in reader.site_blocks(site, max(LEAST_SITE_PAGES, left // (len(sites) - place))):
            left -= 1
            yield page
        if left <= 0:
            return


def readings(pages: Iterable[PageBlocks], watch: Callable[[], None] = lambda: None) -> Iterator[Reading]:
    """Texts of pages with words, without exact duplicates. watch: called before each text."""
    seen: set[bytes] = set()
    for page in pages:
        if page.text_digest not in seen:
            seen.add(page.text_digest)
            watch()
            text = read(content_text(page), page.language_found or page.language.partition("-")[0])
            if text.words:
                yield text


def content_text(page: PageBlocks) -> str:
    """Title and content paragraphs of a page, separated by empty lines; without navigation (where marked), code and
    bare links.
    """
    parts = page.parts if page.parts and Part.CONTENT in page.parts else None
    prose = page.blocks.content(parts, _NO_PROSE)
    title = [page.title] if page.title and page.title not in prose[:3] else []
    return "\n\n".join([*title, *(prose or page.blocks.texts())])


# per story. Up to half of all keywords are dates, counts and the like; half of the printable ones are parts of others.
KEYWORDS, KEYWORDS_PRINTABLE, KEYWORDS_ASKED = 5, 12, 24


Description = tuple[str, Sequence[str], Sequence[tuple[str, float]]]
"""Of a story, as in the cache file: (sentence, keywords, (run, fetched) of each page)."""


def describe_entries(
    folder: Path, reader: CollectionReader, entries: Sequence[Entry], state: StoriesState, watch: Watch
) -> Iterator[Entry]:
    """The entries with their sentences, keywords and provenance.

    Descriptions for one state of the collection are cached in a file of the folder, which is rewritten at the end if
    any was added. state: the state in which the stories were found.
    """
    file = folder / column_files.ENTRIES if moment_of(reader) == state.moment else None
    stored = _load_cache(file, state) if file else {}
    describe = _Describing(reader, {site for entry in entries for site in entry.story.sites})
    descriptions = {}
    for done, entry in enumerate(entries, 1):
        watch("reading stories", done, len(entries))
        key = _key(entry.story)
        descriptions[key] = stored[key] if key in stored else describe.description(entry.story)
        sentence, keywords, pages = descriptions[key]
        provenance = tuple(Provenance(*fields) for fields in pages)
        yield dataclasses.replace(entry, sentence=sentence, keywords=tuple(keywords), provenance=provenance)
    if file and not stored.keys() >= descriptions.keys():
        head = {"version": VERSION, "state": state.digest}
        with contextlib.suppress(StoreError):  # read-only folder: no cache
            write_file(file, json.dumps({**head, "entries": stored | descriptions}))


def _key(story: Story) -> str:
    """Cache key: everything that determines a description, except the state of the collection."""
    text = repr(([page.url for page in story.pages], story.near))
    return f"{xxh3_64_intdigest(text.encode('utf-8', 'replace')):x}"


def _load_cache(file: Path, state: StoriesState) -> dict[str, Description]:
    """Cached descriptions for this state, by `_key`."""
    try:
        whole = json.loads(file.read_text("utf-8"))
        if (whole["version"], whole["state"]) != (VERSION, state.digest):
            return {}
        return {key: (sentence, words, pages) for key, (sentence, words, pages) in whole["entries"].items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


class _Describing:
    """Describes stories. Collection statistics are computed on first use."""

    def __init__(self, reader: CollectionReader, sites: Set[SiteKey]) -> None:
        """sites: of all stories."""
        self._reader, self._sites = reader, sites
        self._frames: dict[int, frozenset[str]] = {}

    @functools.cached_property
    def _counts(self) -> Counts:
        return count_texts(readings(spread_pages(self._reader)))

    @functools.cached_property
    def _site_titles(self) -> dict[SiteKey, str]:
        return _names(self._reader, self._sites)

    def description(self, story: Story) -> Description:
        ids = [UrlId(url_id(page.url)) for page in story.pages]
        titles = {page.url: page.title for page in story.pages}  # site names are no keywords
        rows = self._reader.page_blocks(ids[:PAGES_READ])
        pages = [page._replace(title=titles[page.url]) for page in rows]
        sentences = (leading_sentence(page.blocks, page.parts, page.title) for page in pages)
        copies = {story.pages[later].url for later, _, share in story.near if share >= COPY} | {story.pages[0].url}
        texts = [page for page in pages if page.blocks and page.url in copies]
        bare = readings(_without_frame(page, self._frame(page.site_id)) for page in texts)
        language = (texts[0].language_found or texts[0].language.partition("-")[0]) if texts else ""
        keywords = keywords_of_all(bare, self._counts, KEYWORDS_ASKED)
        return (
            next((sentence for sentence in sentences if sentence), ""),
            _keywords(keywords, language, {self._site_titles[site] for site in story.sites}),
            [(row.run, row.fetched) for row in portal_rows.provenance(self._reader, ids)],
        )

    def _frame(self, site: int) -> frozenset[str]:
        """Texts that the pages of a site repeat."""
        if site not in self._frames:
            pages = self._reader.site_blocks(site, FRAME_PAGES)
            self._frames[site] = frame_texts([page.blocks.texts() for page in pages])
        return self._frames[site]


def _without_frame(page: PageBlocks, frame: frozenset[str]) -> PageBlocks:
    """The page without the repeated texts of its site; unchanged if nothing else would be left."""
    places = [place for place, text in enumerate(page.blocks.texts()) if text not in frame]
    if not places or len(places) == len(page.blocks):
        return page
    parts = tuple(page.parts[place] for place in places) if page.parts else page.parts
    return page._replace(blocks=Blocks.of(page.blocks[place] for place in places), parts=parts)


def _names(reader: CollectionReader, sites: Iterable[SiteKey]) -> dict[SiteKey, str]:
    """Name of each site in lower case without articles, to be excluded from keywords; empty: unknown."""
    homes = ((site, portal_rows.home_of(reader, site)) for site in sites)
    return {site: home.title.casefold().removeprefix("the ") if home else "" for site, home in homes}


def _keywords(keywords: Iterable[Keyword], language: str, names: Container[str]) -> tuple[str, ...]:
    """The best printable keywords. If one contains the other, keeps the proper name, else the longer.

    names: of sites, in lower case.
    """
    printable = (keyword.text for keyword in keywords if is_printable(keyword.text, language))
    texts = [text for text in printable if text.casefold() not in names][:KEYWORDS_PRINTABLE]
    words = [(is_name(text, language), frozenset(text.casefold().split())) for text in texts]
    whole = [
        text
        for text, (named, own) in zip(texts, words, strict=True)
        if not any(
            (other > own and other_named >= named) or (other < own and other_named > named)
            for other_named, other in words
        )
    ]
    return tuple(whole[:KEYWORDS])


def keywords(
    place: Path | str,
    *targets: str,
    query: str | None = None,
    most: int = 10,
    method: str = "learnt",
    watch: Callable[[int], None] = lambda pages: None,
) -> KeywordList:
    """Keywords of a site, of pages or of search results: see `Collection.keywords`. Raises UsageError, NoCollection."""
    with open_collection(place) as collection:
        result: KeywordList = collection.keywords(*targets, query=query, most=most, method=method, watch=watch)
    return result
