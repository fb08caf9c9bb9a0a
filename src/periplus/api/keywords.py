"""Finds keywords of pages, of a site, and of the answers to a query.

Keywords by the words of the pages and those of the whole collection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from periplus.analyse.keywords.choosing import METHODS, Contrast, keywords_of, keywords_of_all
from periplus.analyse.keywords.printable import is_heading
from periplus.analyse.keywords.reading import NOTHING, Counts, Reading, counted, read, together
from periplus.errors import UsageError
from periplus.model.page import BlockKind, Part
from periplus.model.topic import KeywordList
from periplus.model.web import Url
from periplus.store.crawl_reads import PageBlocks
from periplus.store.sqlite import listing, reading, site_rows, text_rows
from periplus.urls.canonical import url_id

# of the collection, spread over its sites and pages, for how rare words are: more change no keyword, and take longer
PAGES_COUNTED = 1_000
PAGES_OF_SUBJECT = 1_000  # of a site
HEADINGS = 2  # times as many are asked for as are wanted: some only name parts of a document
LEAST_OF_SITE = 5  # pages, however many sites there are
_NO_PROSE = frozenset({BlockKind.CODE, BlockKind.ALT, BlockKind.LINK, BlockKind.TITLE})
ANSWERS = 200  # pages that stand for a query


class KeywordFinder:
    """Finds keywords in a collection: method is one of METHODS, watch is called with the number of pages read."""

    def __init__(
        self,
        connection: reading.Connection,
        most: int = 10,
        method: str = "learnt",
        watch: Callable[[int], None] = lambda pages: None,
    ) -> None:
        if method not in METHODS:
            raise UsageError(f"there is no method {method}: choose among {', '.join(METHODS)}")
        self._connection, self._most, self._method, self._watch = connection, most, method, watch
        self._read = 0

    def of_targets(self, targets: Sequence[str]) -> KeywordList:
        """Of a site, of a page, of several pages as one subject, or, without a target,
        of the only site or the whole collection.

        Raises InvalidUrl, and UsageError for what the collection does not know.
        """
        if not targets:
            texts = list(self._texts(spread_pages(self._connection)))
            return self._answered("the whole collection", texts, counted(texts), framed=True)
        sites = {str(name): number for number, name in site_rows.site_names(self._connection).items()}
        if len(targets) == 1 and targets[0] in sites:
            pages = text_rows.pages_of_site(self._connection, sites[targets[0]], PAGES_OF_SUBJECT)
            return self._group(targets[0], pages, framed=True)
        return self._of_pages([listing.resolved(self._connection, text) for text in targets])

    def of_some(self, subject: str, urls: Sequence[Url]) -> KeywordList:
        """What tells these pages of the collection from the others. Raises UsageError where there are none."""
        return self._group(subject, text_rows.pages_of(self._connection, map(url_id, urls)), framed=False)

    def _of_pages(self, urls: Sequence[Url]) -> KeywordList:
        pages = [(url, next(text_rows.pages_of(self._connection, [url_id(url)]), None)) for url in urls]
        for url, page in pages:
            if page is None or not page.blocks:
                raise UsageError(
                    f"the collection has no text of {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
                )
        subject = str(urls[0]) if len(urls) == 1 else f"{len(urls)} pages"
        texts = list(self._texts(page for _, page in pages if page is not None))
        return self._answered(subject, texts, counted(self._texts(spread_pages(self._connection))))

    def _group(self, subject: str, pages: Iterable[PageBlocks], *, framed: bool) -> KeywordList:
        """Keywords that tell these pages from the other ones, where there are any."""
        pages = list(pages)
        own = {page.url_id for page in pages}
        texts = list(self._texts(pages))
        rest = counted(self._texts(page for page in spread_pages(self._connection) if page.url_id not in own))
        return self._answered(subject, texts, together(rest, counted(texts)), rest, framed=framed)

    def _answered(
        self, subject: str, texts: Sequence[Reading], counts: Counts, rest: Counts = NOTHING, *, framed: bool = False
    ) -> KeywordList:
        if not texts:
            raise UsageError(f"there is no text of {subject}: nothing was found or fetched, or keep_text is off")
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
    """Pages of all sites, as many of each that has them; about PAGES_COUNTED in all: they say how rare words are."""
    # those that were only linked to come first, and leave their share
    sites = sorted(site_rows.site_names(connection), reverse=True)
    left = PAGES_COUNTED
    for place, site in enumerate(sites):
        for page in text_rows.pages_of_site(connection, site, max(LEAST_OF_SITE, left // (len(sites) - place))):
            left -= 1
            yield page
        if left <= 0:
            return


def readings(pages: Iterable[PageBlocks], watch: Callable[[], None] = lambda: None) -> Iterator[Reading]:
    """The contents of pages that have words, those with the same text once. watch: called before each is read."""
    seen: set[bytes] = set()
    for page in pages:
        if page.text_md5 not in seen:
            seen.add(page.text_md5)
            watch()
            text = read(content_text(page), page.language_found or page.language.partition("-")[0])
            if text.words:
                yield text


def content_text(page: PageBlocks) -> str:
    """Title and content of a page, its paragraphs parted by empty lines: without navigation where that is known,
    and without code and bare links.
    """
    parts = page.parts if page.parts and Part.CONTENT in page.parts else None
    prose = page.blocks.content(parts, _NO_PROSE)
    title = [page.title] if page.title and page.title not in prose[:3] else []
    return "\n\n".join([*title, *(prose or page.blocks.texts())])
