"""One page of a collection: its facts, and its stored body, text, blocks, headers and canonical XML."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

from periplus.document.decode import decode
from periplus.document.understand import canonical_xml
from periplus.errors import UsageError
from periplus.features import service
from periplus.model.page import ALL_PARTS, IS_TEXT, TEXT_PARTS, Blocks, Part
from periplus.model.results import PageSummary
from periplus.model.tables import LINKS, PAGE, Row, row_maker
from periplus.model.visit import Fetched, Headers, Reason, State
from periplus.model.web import Url
from periplus.store.reader import CollectionReader, LinkIndex
from periplus.store.views import LinkFilter
from periplus.urls.canonical import url_id

if TYPE_CHECKING:
    from periplus.api.marks import SiteSample


_SUMMARY_FIELDS = [item.name for item in fields(PageSummary) if item.name in PAGE.names]


class Page:
    """One page of a collection; use it while the collection is open. row: of `model.tables.PAGE`."""

    def __init__(
        self,
        reader: CollectionReader,
        url: Url,
        book: LinkIndex | None = None,
        samples: dict[int, SiteSample] | None = None,
    ) -> None:
        """book: index of the collection's links; without it, incoming links and visits need a scan of all rows.
        samples: as in `marks.parts_beside`.

        Raises UsageError for an unknown URL.
        """
        self.url, self._book, self._samples = url, book, samples
        self._reader, self._id = reader, url_id(url)
        row = reader.page_row(self._id)
        if row is None:
            raise UsageError(
                f"the collection does not know {url}. `periplus pages --url TEXT` finds URLs that contain TEXT."
            )
        self.row = row

    def summary(self) -> PageSummary:
        """The page's facts, without its contents."""
        inlinks, outlinks = self._linking(0)[0], self._reader.count_outlinks(self._id)
        read = self.row.fetched_at is not None
        alike = None
        if read and self._book is not None:
            alike = self._book.perhaps_same(self._reader, self._reader.folded_digest(self._id))
        duplicates = self._reader.duplicates(self._id, alike) if read else ()
        values = {name: getattr(self.row, name) for name in _SUMMARY_FIELDS}
        values |= {
            "state": State(self.row.state),
            "reason": Reason(self.row.reason),
            "rendered": bool(self.row.rendered),
        }
        forms = tuple(form for form in ("bytes", "text", "xml", "screenshot") if getattr(self.row, f"has_{form}"))
        return PageSummary(**values, kept=forms, inlinks=inlinks, outlinks=outlinks, duplicates=duplicates)

    def source(self) -> bytes:
        """The body as received, without content coding. Raises UsageError if it is not stored."""
        sent = self._reader.original_body(self._id) if self.row.rendered else None
        return sent if sent is not None else self.parsed_body()

    def parsed_body(self) -> bytes:
        """The body as parsed: for a rendered page, the browser's DOM. Raises as `source`."""
        body = self._reader.body(self._id)
        return self._missing("bytes") if body is None else body

    def screenshot(self) -> bytes:
        """Screenshot as WebP. Raises UsageError if there is none."""
        picture = self._reader.screenshot(self._id)
        if picture is None:
            raise UsageError(f"no screenshot of {self.url}: `crawl --render auto --screenshots` takes them")
        return picture

    def leads_to(self) -> Url | None:
        """Target of a redirect or alias; None for other URLs."""
        target = self._reader.leads_to(self._id)
        return None if target is None or target == self.url else Url(target)

    def as_it_was(self, place_of: Callable[[Url, str], str]) -> tuple[bytes, str]:
        """(body, media type) for display in a browser, without scripts: HTML, CSS and SVG in UTF-8, other files
        unchanged.

        place_of: maps a URL and a fragment to the address of a stored page; other URLs become absolute. Raises
        UsageError if no body is stored.
        """
        from periplus.document.rewriting import rewritten_css, rewritten_html, rewritten_xml, url_rewriter

        body, media_type = self.parsed_body(), self.row.media_type or "application/octet-stream"
        if media_type not in ("text/css", "text/html", "application/xhtml+xml", "image/svg+xml"):
            return body, media_type
        text, _ = decode(body, self.row.charset or "", media_type)

        def place(target: Url, fragment: str) -> str:
            if self._reader.is_shown(url_id(target)):
                return place_of(target, fragment)
            return f"{target}#{fragment}" if fragment else target

        change = url_rewriter(self.url, place)
        if media_type == "text/css":
            return rewritten_css(text, change("")).encode("utf-8", "replace"), media_type
        if media_type != "text/html":
            return rewritten_xml(text, change), media_type
        return rewritten_html(text, change, with_scripts=False).encode("utf-8", "replace"), media_type

    def blocks(self) -> Blocks:
        """Text blocks in document order. Raises UsageError if there are none."""
        return self._reader.blocks(self._id) or self._missing("text")

    def parts(self) -> tuple[Part, ...]:
        """The part of each block: as stored, else computed from a sample of the site; empty without blocks."""
        marked = self._reader.parts(self._id)
        if marked is None:
            from periplus.api.marks import parts_beside  # imports NumPy

            return parts_beside(self._reader, self._id, self._samples)
        return marked

    def text(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """Text of the given parts, one block per line; the whole text of a page without content.

        Raises UsageError if there is no text.
        """
        text = self._reader.text(self._id)
        if text is None:
            self._missing("text")
        is_shown = self._shown_blocks(parts)
        return text if is_shown is None else text_of(self.blocks(), is_shown)

    def markdown(self, parts: Collection[Part] = TEXT_PARTS) -> str:
        """The same as Markdown, from the stored body if there is one, else from the blocks."""
        pieces = self._pieces_of_markup(parts)
        if pieces is None:
            of_blocks = service("markdown").markdown_of_blocks
            return str(of_blocks(self.blocks(), self._shown_blocks(parts), self._heading(parts)))
        return "\n\n".join(pieces) + "\n"

    def markdown_pieces(self, parts: Collection[Part] = TEXT_PARTS) -> list[str]:
        """The same as a list of headings, paragraphs, lists, tables and code blocks."""
        pieces = self._pieces_of_markup(parts)
        if pieces is None:
            of_blocks = service("markdown").pieces_of_blocks
            return list(of_blocks(self.blocks(), self._shown_blocks(parts), self._heading(parts)))
        return pieces

    def _heading(self, parts: Collection[Part]) -> str:
        """Title that is written above a text without a first-level heading."""
        return (self.row.title or "") if Part.HEADLINE in parts else ""

    def _pieces_of_markup(self, parts: Collection[Part]) -> list[str] | None:
        """Markdown of the page's XHTML; None if it has none."""
        xml, media_type = self.xml() if self.row.has_bytes or self.row.has_xml else (b"", "")
        if media_type != "application/xhtml+xml":
            return None
        of_xml = service("markdown").pieces_of_xml
        return list(of_xml(xml, self.url, self._heading(parts), self.blocks(), self._shown_blocks(parts)))

    def _shown_blocks(self, parts: Collection[Part]) -> list[bool] | None:
        """Whether each block is in the parts; None: all are, also for the text of a page without content."""
        if ALL_PARTS.issubset(parts):
            return None
        of_blocks = self.parts()
        if Part.CONTENT not in of_blocks and TEXT_PARTS.issubset(parts):
            return None
        return [part in parts for part in of_blocks]

    def headers(self) -> tuple[int, Headers]:
        """(status, headers) of the response that delivered the page, else of the last response.

        Raises UsageError if there is none.
        """
        return self._reader.answer(self._id, self.visits()) or self._missing("header")

    def xml(self) -> tuple[bytes, str]:
        """(canonical XML, its media type): as stored, or made from the stored body.

        Raises UsageError if neither is stored.
        """
        if (stored := self._reader.xml(self._id)) is not None:
            return stored
        body, answer = self._reader.body(self._id), self._reader.answer(self._id, self.visits())
        if body is None or not answer:
            self._missing("bytes")
        return canonical_xml(self.url, Fetched(*answer, body)) or self._missing("text")

    def inlinks(self, limit: int = -1) -> Iterator[Row]:
        """Incoming links with anchor texts and source pages; with an index, sources with the highest rank first."""
        if self._book is None or limit < 0:
            return map(row_maker(LINKS.names), self._reader.links(LinkFilter(target=self.url, limit=limit)))
        rows = self._reader.links_between(self._linking(limit)[1], self._id)
        return map(row_maker(LINKS.names), islice(rows, limit))

    def visits(self) -> list[int] | None:
        """Ids of the visits to this URL; None without an index."""
        if self._book is None:
            return None
        return self._book.visits_of(self._reader, self.url)

    def _linking(self, most: int) -> tuple[int, list[int]]:
        """(number of other pages that link here, ids of at most `most` of them); without an index, no ids."""
        if self._book is None:
            return self._reader.count_inlinks(self._id), []
        return self._book.linking(self._reader, self._id, most)

    def _missing(self, what: str) -> NoReturn:
        row = self.row
        if row.fetched_at is None:
            rule = f": {row.rule}" if row.rule else ""
            raise UsageError(f"{self.url} was not fetched ({row.reason}{rule}): its {what} cannot be shown")
        if what == "text":
            raise UsageError(
                f"no text of {self.url}: its type is {row.media_type or 'unknown'}, or it has no words, or "
                "keep_text is off"
            )
        raise UsageError(
            f"no {what} of {self.url} is stored: see the setting keep_bodies, which applies from the next crawl on"
        )


def text_of(blocks: Blocks, is_shown: Sequence[bool]) -> str:
    """Texts of the selected blocks, one per line."""
    is_text = blocks.kinds.translate(IS_TEXT)
    return "\n".join(text for text, *yes in zip(blocks.texts(), is_shown, is_text, strict=True) if all(yes))
