"""Finds keywords of pages, sites and search results, by comparing their words with those of the whole collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from periplus.errors import UsageError
from periplus.model.page import BlockKind, Part
from periplus.model.web import Url
from periplus.store.crawl_reads import PageBlocks
from periplus.store.sqlite import reading
from periplus.store.sqlite.listing import SqliteReader
from periplus.urls.canonical import url_id
from periplus_topics.analyse.keyword_reading import NOTHING, Counts, Reading, count_texts, is_heading, read, together
from periplus_topics.analyse.keywords import METHODS, Contrast, keywords_of, keywords_of_all
from periplus_topics.model import KeywordList

# sampled over all sites and pages, for document frequencies: more pages change no keyword but take longer
SAMPLE_PAGES = 1_000
SUBJECT_PAGES = 1_000  # per site
HEADINGS = 2  # factor of candidates per result: some are headings such as "Introduction"
LEAST_SITE_PAGES = 5  # minimum of pages per site
_NO_PROSE = frozenset({BlockKind.CODE, BlockKind.ALT, BlockKind.LINK, BlockKind.TITLE})


class KeywordFinder:
    """Finds keywords in a collection. method: one of METHODS. watch: called with the number of pages read."""

    def __init__(
        self,
        connection: reading.Connection,
        most: int = 10,
        method: str = "learnt",
        watch: Callable[[int], None] = lambda pages: None,
    ) -> None:
        if method not in METHODS:
            raise UsageError(f"unknown method {method}: choose among {', '.join(METHODS)}")
        self._connection, self._most, self._method, self._watch = connection, most, method, watch
        self._reader = SqliteReader(connection)
        self._read = 0

    def target_keywords(self, targets: Sequence[str]) -> KeywordList:
        """Keywords of a site, of a page, or of several pages as one text; without targets, of the only site or the
        whole collection.

        Raises InvalidUrl, and UsageError for an unknown target.
        """
        if not targets:
            texts = list(self._texts(spread_pages(self._connection)))
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
        return self._keyword_list(subject, texts, count_texts(self._texts(spread_pages(self._connection))))

    def _group(self, subject: str, pages: Iterable[PageBlocks], *, framed: bool) -> KeywordList:
        """Keywords that distinguish these pages from all others, if there are others."""
        pages = list(pages)
        own = {page.url_id for page in pages}
        texts = list(self._texts(pages))
        rest = count_texts(self._texts(page for page in spread_pages(self._connection) if page.url_id not in own))
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


def spread_pages(connection: reading.Connection) -> Iterator[PageBlocks]:
    """A sample of about PAGES_COUNTED pages, spread evenly over all sites, for document frequencies."""
    # sites that were only linked to come first and leave their share to the others
    reader = SqliteReader(connection)
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
        if page.text_md5 not in seen:
            seen.add(page.text_md5)
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
