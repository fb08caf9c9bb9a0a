"""One page of a collection: its facts, and what was kept of it: bytes, text, blocks, header, and canonical XML."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from periplus.document.decode import decode
from periplus.document.understand import canonical_xml
from periplus.errors import UsageError
from periplus.model.page import ALL_PARTS, IS_TEXT, TEXT_PARTS, Blocks, PageSummary, Part
from periplus.model.tables import LINKS, PAGE, Row, row_maker
from periplus.model.visit import Fetched, Headers, Reason, State
from periplus.model.web import Url
from periplus.store.sqlite import listing, page_rows
from periplus.store.sqlite.listing import LinkFilter
from periplus.store.sqlite.page_rows import Contents
from periplus.store.sqlite.reading import Connection
from periplus.urls.canonical import url_id

if TYPE_CHECKING:
    from periplus.api.marks import SiteSample
    from periplus.store.sqlite.inlinks import StoredInlinkIndex  # loads numpy, which `periplus page` does without


_SUMMARISED = [item.name for item in fields(PageSummary) if item.name in PAGE.names]


class PageToWrite(NamedTuple):
    """A page as its Markdown is made. title: stands above a text without a heading of the first level."""

    url: Url
    title: str
    xml: tuple[bytes, str] | None  # canonical XML, and its media type
    blocks: Blocks
    is_shown: list[bool] | None  # of each block; None: all are


class Page:
    """One page of a collection, to be asked while that is open. row: of `model.tables.PAGE`."""

    def __init__(
        self,
        connection: Connection,
        url: Url,
        book: StoredInlinkIndex | None = None,
        samples: dict[int, SiteSample] | None = None,
    ) -> None:
        """book: of the collection's links; without it, every link is looked at for those that lead here,
        and every visit. samples: as of `marks.parts_beside`.

        Raises UsageError for a URL that the collection does not know.
        """
        self.url, self._book, self._samples = url, book, samples
        self._connection, self._id = connection, url_id(url)
        row = page_rows.page_row(connection, self._id)
        if row is None:
            raise UsageError(
                f"the collection does not know {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
            )
        self.row = row
        self._contents = Contents(connection)

    def summary(self) -> PageSummary:
        """What is known, without what was kept."""
        inlinks, outlinks = self._linking(0)[0], page_rows.count_outlinks(self._connection, self._id)
        read = self.row.fetched_at is not None
        duplicates = page_rows.duplicates(self._connection, self._id, self._perhaps_same()) if read else ()
        values = {name: getattr(self.row, name) for name in _SUMMARISED}
        values |= {
            "state": State(self.row.state),
            "reason": Reason(self.row.reason),
            "rendered": bool(self.row.rendered),
        }
        forms = tuple(form for form in ("bytes", "text", "xml", "screenshot") if getattr(self.row, f"has_{form}"))
        return PageSummary(**values, kept=forms, inlinks=inlinks, outlinks=outlinks, duplicates=duplicates)

    def source(self) -> bytes:
        """Its bytes as received, content codings removed. Raises UsageError where none were kept."""
        sent = self._contents.sent(self._id) if self.row.rendered else None
        return sent if sent is not None else self.rendered()

    def rendered(self) -> bytes:
        """Its markup as it was read: of a rendered page, what the browser made of it. Raises as `source`."""
        body = self._contents.body(self._id)
        return self._missing("bytes") if body is None else body

    def screenshot(self) -> bytes:
        """A picture of it, as WebP. Raises UsageError where there is none."""
        picture = self._contents.screenshot(self._id)
        if picture is None:
            raise UsageError(f"there is no picture of {self.url}: `crawl --render auto --screenshots` makes them")
        return picture

    def leads_to(self) -> Url | None:
        """Where a redirect leads, or the page that it is another address of; None: it is neither."""
        target = page_rows.leads_to(self._connection, self._id)
        return None if target is None or target == self.url else Url(target)

    def as_it_was(self, place_of: Callable[[Url, str], str]) -> tuple[bytes, str]:
        """It as a browser is to show it, and its media type: HTML, CSS and SVG in UTF-8, other files as they came.

        Without scripts.
        place_of: the address of what was kept, of a URL and a fragment; URLs of anything else become whole. Raises
        UsageError where no bytes were kept.
        """
        from periplus.document.rewriting import resolved, rewritten_css, rewritten_html, rewritten_xml

        body, media_type = self.rendered(), self.row.media_type or "application/octet-stream"
        if media_type not in ("text/css", "text/html", "application/xhtml+xml", "image/svg+xml"):
            return body, media_type
        text, _ = decode(body, self.row.charset or "", media_type)

        def place(target: Url, fragment: str) -> str:
            if page_rows.is_shown(self._connection, url_id(target)):
                return place_of(target, fragment)
            return f"{target}#{fragment}" if fragment else target

        change = resolved(self.url, place)
        if media_type == "text/css":
            return rewritten_css(text, change("")).encode("utf-8", "replace"), media_type
        if media_type != "text/html":
            return rewritten_xml(text, change), media_type
        return rewritten_html(text, change, with_scripts=False).encode("utf-8", "replace"), media_type

    def blocks(self) -> Blocks:
        """Its blocks in their order. Raises UsageError where there are none."""
        return self._contents.blocks(self._id) or self._missing("text")

    def parts(self) -> tuple[Part, ...]:
        """One part for each block: as it is marked, else judged now beside some other pages of its site.

        None without blocks.
        """
        marked = self._contents.parts(self._id)
        if marked is None:
            from periplus.api.marks import parts_beside  # loads numpy

            return parts_beside(self._connection, self._id, self._samples)
        return marked

    def text(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """The text of some of its parts, a block a line; of a page without content all of it.

        Raises UsageError where there is no text.
        """
        text = self._contents.text(self._id)
        if text is None:
            self._missing("text")
        is_shown = self._shown(parts)
        return text if is_shown is None else text_of(self.blocks(), is_shown)

    def markdown(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """The same as Markdown, of its markup where that was kept, else of its blocks."""
        return markdown_of(self._to_write(parts))

    def markdown_pieces(self, parts: Collection[Part] = TEXT_PARTS) -> list[str]:
        """The same in pieces, a heading, paragraph, list, table or code each."""
        return markdown_pieces(self._to_write(parts))

    def _to_write(self, parts: Collection[Part]) -> PageToWrite:
        blocks, title = self.blocks(), self.row.title or ""
        xml = self.xml() if self.row.has_bytes or self.row.has_xml else None
        return PageToWrite(self.url, title if Part.HEADLINE in parts else "", xml, blocks, self._shown(parts))

    def _shown(self, parts: Collection[Part]) -> list[bool] | None:
        return None if ALL_PARTS.issubset(parts) else shown(self.parts(), parts)

    def headers(self) -> tuple[int, Headers]:
        """(status, header) of the answer that brought it; of the last one where none did.

        Raises UsageError where none is known.
        """
        return page_rows.answer(self._connection, self._id, self.visits()) or self._missing("header")

    def xml(self) -> tuple[bytes, str]:
        """It as canonical XML, and the media type of that: as it was kept, or made of its bytes.

        Raises UsageError where there are none.
        """
        if (stored := self._contents.xml(self._id)) is not None:
            return stored
        fetched = self._fetched()
        if fetched is None:
            self._missing("bytes")
        return canonical_xml(self.url, fetched) or self._missing("text")

    def inlinks(self, limit: int = -1) -> Iterator[Row]:
        """Links to it, with their anchors and the pages that hold them;
        with a book those of the pages of greatest rank first.
        """
        if self._book is None or limit < 0:
            return map(
                row_maker(LINKS.names), listing.links(self._connection, LinkFilter(target=self.url, limit=limit))
            )
        rows = listing.links_between(self._connection, self._linking(limit)[1], self._id)
        return map(row_maker(LINKS.names), islice(rows, limit))

    def visits(self) -> list[int] | None:
        """The numbers of the visits that asked for it; None: there is no book that tells."""
        if self._book is None:
            return None
        from periplus.store.sqlite import inlinks

        return inlinks.visits_of(self._connection, self._book, self.url)

    def _linking(self, most: int) -> tuple[int, list[int]]:
        """(how many other pages link to it, the ids of at most so many); without a book none of them."""
        if self._book is None:
            return page_rows.count_inlinks(self._connection, self._id), []
        from periplus.store.sqlite import inlinks

        return inlinks.linking(self._connection, self._book, self._id, most)

    def _perhaps_same(self) -> list[int] | None:
        if self._book is None:
            return None
        from periplus.store.sqlite import inlinks

        return inlinks.perhaps_same(self._connection, self._book, page_rows.folded_digest(self._connection, self._id))

    def _fetched(self) -> Fetched | None:
        body, answer = self._contents.body(self._id), page_rows.answer(self._connection, self._id, self.visits())
        return Fetched(answer[0], answer[1], body) if body is not None and answer else None

    def _missing(self, what: str) -> NoReturn:
        row = self.row
        if row.fetched_at is None:
            rule = f": {row.rule}" if row.rule else ""
            raise UsageError(f"{self.url} was not fetched ({row.reason}{rule}): its {what} cannot be shown")
        if what == "text":
            raise UsageError(
                f"there is no text of {self.url}: it is {row.media_type or 'of no known type'}, or has "
                "no words, or keep_text is off"
            )
        raise UsageError(
            f"no {what} of {self.url} was kept: the setting keep_bodies says whether, and a further crawl obeys it"
        )


def shown(of_blocks: Sequence[Part], parts: Collection[Part]) -> list[bool] | None:
    """Whether each block is one of the parts. None: all are, as of a page without content whose text is asked for."""
    if Part.CONTENT not in of_blocks and TEXT_PARTS.issubset(parts):
        return None
    return [part in parts for part in of_blocks]


def text_of(blocks: Blocks, is_shown: Sequence[bool]) -> str:
    """The texts of those blocks, a block a line."""
    is_text = blocks.kinds.translate(IS_TEXT)
    return "\n".join(text for text, *yes in zip(blocks.texts(), is_shown, is_text, strict=True) if all(yes))


def markdown_pieces(page: PageToWrite) -> list[str]:
    """Its Markdown in pieces."""
    from periplus.present.markdown import pieces_of_blocks

    pieces = _pieces_of_markup(page)
    return pieces_of_blocks(page.blocks, page.is_shown, page.title) if pieces is None else pieces


def markdown_of(page: PageToWrite) -> str:
    """The same as one text."""
    from periplus.present.markdown import markdown_of_blocks

    pieces = _pieces_of_markup(page)
    if pieces is None:
        return markdown_of_blocks(page.blocks, page.is_shown, page.title)
    return "\n\n".join(pieces) + "\n"


def _pieces_of_markup(page: PageToWrite) -> list[str] | None:
    """None: there is no XHTML."""
    from periplus.present.markdown import pieces_of_xml

    if page.xml is None or page.xml[1] != "application/xhtml+xml":
        return None
    return pieces_of_xml(page.xml[0], page.url, page.title, page.blocks, page.is_shown)
