"""The rows that one visit brings, the same in every database."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

from periplus.model.frontier import Completion
from periplus.model.page import LINK_KINDS, POSITIONS, Document, Link, LinkKind, Links, Position, Rendering
from periplus.model.visit import Failed, Fetched, Headers, Outcome, Redirected, Skipped, Unchanged, Visit
from periplus.settings import Storage
from periplus.store.bodies import BodyCodec, pack_blocks, pack_headers, pack_sent
from periplus.store.url_state import FIELDS
from periplus.urls.canonical import url_id
from periplus.values import Row, frozen

# Texts, for sqlite3 asks for an adapter first of what is not exactly a str, int or float: 300 ns in place of 70.
_KINDS = tuple(kind.value for kind in LINK_KINDS)
_POSITIONS = tuple(position.value for position in POSITIONS)


@frozen
class PackedBody:
    """A body ready to be stored.

    data: empty when bodies are not kept, read with the text (`BodyCodec.unpack_body`); text: packed, or None; blocks:
    beside the text.

    xml: (packed canonical XML, its media type), where it is kept.
    """

    md5: bytes
    dictionary_id: int | None
    size: int
    data: bytes
    text: bytes | None
    blocks: bytes | None = None
    xml: tuple[bytes, str] | None = None


def outcome_columns(outcome: Outcome) -> tuple[str, int, str]:
    """(kind, status, detail) of an outcome as the visit table holds it."""
    match outcome:
        case Fetched(status=status, cut=cut):
            return "fetched", status, cut.value
        case Redirected(status=status, target=target):
            return "redirected", status, target
        case Unchanged():
            return "unchanged", 304, ""
        case Failed(cause=cause, detail=detail):
            return "failed", 0, f"{cause.value}: {detail}" if detail else cause.value
        case Skipped(reason=reason, rule=rule, line=line):
            return "skipped", 0, f"{reason.value}: line {line}: {rule}" if line else f"{reason.value}: {rule}"


# Rows of links are plain tuples: a named one takes .15 us more to make, of 60 links a page some 9 us of its commit.
LinkValues = Row
LinkKey = tuple[int, str, str, int]  # (target, kind, position, nofollow): names a link of a page


class NewLinks(NamedTuple):
    """The links that a visit found on a page. ids: of their targets, which may agree with others in all that names
    them: of these the last counts.
    """

    shard: int
    source: int
    links: Links
    ids: Sequence[int]

    def link_keys(self) -> set[LinkKey]:
        links = self.links
        kinds, positions = map(_KINDS.__getitem__, links.kinds), map(_POSITIONS.__getitem__, links.positions)
        return set(zip(self.ids, kinds, positions, links.nofollow, strict=True))


class EndedLinks(NamedTuple):
    """The links of a page that were not seen now, if there are any, go to history. kind: those alone; empty: all."""

    shard: int
    source: int
    kind: str


@frozen
class LinkChanges:
    """What a transaction says of links.

    new: of pages that had none; seen: of pages that may have some; ended: of pages among the latter.
    """

    run_id: int
    now: float
    new: Sequence[NewLinks]
    seen: Sequence[NewLinks]
    ended: Sequence[EndedLinks]


class VisitRow(NamedTuple):
    """A row of `visit`. url_id: 0 for what is no page, whose URL is the text; head: packed."""

    run_id: int
    url_id: int
    text: str | None
    purpose: str
    started: float
    took_s: float
    outcome: str
    status: int
    detail: str
    wire_bytes: int
    address: str
    head: bytes | None


def visit_row(run_id: int, url_id: int, visit: Visit) -> VisitRow:
    request = visit.request
    kind, status, detail = outcome_columns(visit.outcome)
    return VisitRow(
        run_id, url_id, None if url_id else request.url, request.purpose.value, visit.started, visit.took_s, kind,
        status, detail, visit.wire_bytes, visit.address,
        pack_headers(getattr(visit.outcome, "headers", Headers())),  # failures and what was not asked for have none
    )  # fmt: skip


class StoredPage(NamedTuple):
    """A row of `page`."""

    url_id: int
    fetched: float
    media_type: str
    size: int  # bytes; of a body that was not read, by its header
    wire_bytes: int
    took_s: float
    charset: str
    charset_source: str
    language: str
    title: str
    description: str
    h1: str
    canonical: str
    robots: str
    cut: str
    last_modified: float
    expires: float
    etag: str
    last_modified_field: str
    text_chars: int
    body_md5: bytes
    text_md5: bytes
    folded_md5: bytes
    body_id: int | None
    h1s: int
    images_without_alt: int
    other_charset: str
    translations: str  # JSON; empty: none
    language_found: str
    parts: bytes | None = None  # content and what is not, once they are told apart
    author: str = ""  # these as `Publication`
    author_source: str = ""
    date_published: str = ""
    date_published_source: str = ""
    date_modified: str = ""
    date_modified_source: str = ""
    types: str = ""

    @property
    def past_fields(self) -> Row:
        """The FIELDS that history keeps."""
        return _PAST_FIELDS(self)


PAGE_COLUMNS = ", ".join(StoredPage._fields)
VISIT_COLUMNS = ", ".join(VisitRow._fields)
LINK_COLUMNS = "source, target, kind, position, nofollow, anchor, fragments, times, first_seen, last_seen"
RENDERING_COLUMNS = (
    "url_id, took_s, requests, refused, part_bytes, bounds, leads_to, paint_s, shift, sent_md5, sent_size, sent,"
    " screenshot"
)
BAD_LINK_COLUMNS = "source, text, kind, position, anchor, why"
_PAST_FIELDS: Callable[[StoredPage], Row] = attrgetter(*FIELDS)


def page_row(completion: Completion, document: Document, body_id: int | None) -> StoredPage:
    visit = completion.visit
    outcome = visit.outcome
    headers = outcome.headers if isinstance(outcome, Fetched) else Headers()
    size = len(outcome.body) if isinstance(outcome, Fetched) else 0
    declared = headers.get("content-length")
    # a body that we did not read: the server's word for its length
    if not size and declared.isascii() and declared.isdigit():
        size = int(declared[:18])
    return StoredPage(
        url_id=completion.task.url_id,
        fetched=visit.started,
        media_type=document.media_type,
        size=size,
        wire_bytes=visit.wire_bytes,
        took_s=visit.took_s,
        charset=document.charset.name,
        charset_source=document.charset.source,
        language=document.language,
        title=document.title,
        description=document.description,
        h1=document.h1,
        canonical=document.canonical,
        robots=document.robots,
        cut=outcome.cut.value if isinstance(outcome, Fetched) else "",
        last_modified=document.last_modified,
        expires=document.expires,
        # what the server says of the bytes that it sent holds for no page that scripts make
        etag="" if completion.rendering else headers.get("etag"),
        last_modified_field="" if completion.rendering else headers.get("last-modified"),
        text_chars=len(document.text),
        body_md5=document.digests.body,
        text_md5=document.digests.text,
        folded_md5=document.digests.folded,
        body_id=body_id,
        h1s=document.h1s,
        images_without_alt=document.images_without_alt,
        other_charset=document.charset.other,
        translations=json.dumps(document.translations) if document.translations else "",
        language_found=document.language_found,
        **document.publication._asdict(),
    )


def rendering_row(shard: int, source: int, rendering: Rendering) -> Row:
    """A row of `rendering`, behind its shard, by RENDERING_COLUMNS."""
    return (
        shard,
        source,
        rendering.took_s,
        rendering.requests,
        rendering.refused,
        json.dumps(dict(rendering.bytes_by_kind)),
        "; ".join(rendering.bounds),
        rendering.leads_to,
        rendering.paint_s,
        rendering.shift,
        rendering.sent_digest,
        rendering.sent_size,
        pack_sent(rendering.sent),
        rendering.screenshot or None,
    )


def link_rows(page: NewLinks, now: float) -> list[LinkValues]:
    """One row per distinct (target, kind, position, nofollow), each behind its shard, by LINK_COLUMNS."""
    links = page.links
    columns = (
        repeat(page.shard),
        repeat(page.source),
        page.ids,
        map(_KINDS.__getitem__, links.kinds),
        map(_POSITIONS.__getitem__, links.positions),
        links.nofollow,
        links.anchors,
        links.fragments,
        links.times,
        repeat(now),
        repeat(now),
    )
    return list(zip(*columns, strict=False))


def page_links(shard: int, source: int, document: Document) -> NewLinks:
    """The links of a page that was read."""
    return NewLinks(shard, source, document.links, list(map(url_id, document.links.targets)))


def redirect_link(shard: int, source: int, redirect: Redirected) -> NewLinks:
    """The one link of a URL that redirects."""
    link = Link(redirect.target, LinkKind.REDIRECT, Position.HEAD, fragments=(redirect.fragment,))
    return NewLinks(shard, source, Links.of([link]), [url_id(redirect.target)])


def packed(completion: Completion, storage: Storage, codec: BodyCodec, dictionary: int | None) -> PackedBody | None:
    """The completion's body and text, compressed; None when there is nothing to keep.

    dictionary: one that the codec knows.
    """
    outcome, document = completion.visit.outcome, completion.document
    if document is None or not isinstance(outcome, Fetched) or not outcome.body:
        return None
    if not (storage.keep_bodies or storage.keep_text or storage.keep_xml):
        return None
    used = dictionary if storage.keep_bodies else None
    words = document.text.encode("utf-8", "replace") if document.text and storage.keep_text else None
    text: bytes | None
    if words and storage.keep_bodies and used is None:
        text, data = codec.pack_page(words, outcome.body)
    else:
        text = codec.pack(words, None) if words else None
        data = codec.pack(outcome.body, used) if storage.keep_bodies else b""
    blocks = pack_blocks(document.blocks) if document.blocks and storage.keep_text else None
    xml = (codec.pack(document.xml[0], None), document.xml[1]) if document.xml and storage.keep_xml else None
    return PackedBody(document.digests.body, used, len(outcome.body), data, text, blocks, xml)


def bad_link_rows(shard: int, source: int, document: Document) -> list[LinkValues]:
    """Each behind its shard, by BAD_LINK_COLUMNS."""
    return [
        (shard, source, link.text, link.kind.value, link.position.value, link.anchor, link.why)
        for link in document.bad_links
    ]
