"""Rows that a visit adds, the same in every database."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from periplus.model.frontier import Completion
from periplus.model.page import LINK_KINDS, POSITIONS, Document, Link, LinkKind, Links, Position, Rendering
from periplus.model.visit import Failed, Fetched, Headers, Outcome, Redirected, Skipped, Unchanged, Visit
from periplus.settings import Storage
from periplus.store.bodies import BodyCodec, pack_blocks, pack_headers, pack_original
from periplus.urls.canonical import url_id
from periplus.values import Row, frozen

# Plain str, since sqlite3 first looks for an adapter for subclasses: 300 ns instead of 70.
_KINDS = tuple(kind.value for kind in LINK_KINDS)
_POSITIONS = tuple(position.value for position in POSITIONS)
_NO_HEADERS = Headers()
LINK_COLUMNS = "source, target, kind, position, nofollow, anchor, fragments, times, first_seen, last_seen"
# Bodies from this size on are kept as sent. A page of 8 KB then takes 7 % more room, one of 100 KB 15 %; smaller pages
# share more with their text.
SENT_BYTES = 8_192
RENDERING_COLUMNS = (
    "url_id, took_s, requests, refused, part_bytes, bounds, leads_to, paint_s, shift, sent_digest, sent_size, sent,"
    " screenshot"
)
BAD_LINK_COLUMNS = "source, text, kind, position, anchor, why"


@frozen
class PackedBody:
    """A body ready to be stored.

    data: empty if bodies are not stored; read together with the text (`BodyCodec.unpack_body`); text: compressed, or
    None; blocks: the text's blocks; xml: (compressed canonical XML, media type), if stored.
    """

    digest: bytes
    dictionary_id: int | None
    size: int
    data: bytes
    text: bytes | None
    blocks: bytes | None = None
    xml: tuple[bytes, str] | None = None


def outcome_columns(outcome: Outcome) -> tuple[str, int, str]:
    """(kind, status, detail) of an outcome, for the table of visits."""
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


# Plain tuples: a named tuple takes 0.15 us longer, which adds 9 us to the commit of a page with 60 links.
LinkValues = Row
LinkKey = tuple[int, str, str, int]  # (target, kind, position, nofollow): identifies a link of a page


class NewLinks(NamedTuple):
    """Links found by a visit on a page. ids: of the targets. If several links have the same key, the last counts."""

    shard: int
    source: int
    links: Links
    ids: Sequence[int]

    def link_keys(self) -> set[LinkKey]:
        links = self.links
        kinds, positions = map(_KINDS.__getitem__, links.kinds), map(_POSITIONS.__getitem__, links.positions)
        return set(zip(self.ids, kinds, positions, links.nofollow, strict=True))


class EndedLinks(NamedTuple):
    """A page whose unseen links are closed and go to the history. kind: only links of this kind; empty: all."""

    shard: int
    source: int
    kind: str


@frozen
class LinkChanges:
    """The link changes of a transaction.

    new: of pages without stored links; seen: of pages that may have some; ended: of pages in `seen`.
    """

    run_id: int
    now: float
    new: Sequence[NewLinks]
    seen: Sequence[NewLinks]
    ended: Sequence[EndedLinks]


class VisitRow(NamedTuple):
    """A row of `visit`. url_id: 0 for requests other than pages, whose URL is in `text`; head: compressed."""

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
        pack_headers(getattr(visit.outcome, "headers", _NO_HEADERS)),  # failures and skipped URLs have none
    )  # fmt: skip


VISIT_COLUMNS = ", ".join(VisitRow._fields)


def page_row(completion: Completion, document: Document, body_id: int | None) -> dict[str, object]:
    """A row of `page`, by column."""
    visit = completion.visit
    outcome = visit.outcome
    headers = outcome.headers if isinstance(outcome, Fetched) else _NO_HEADERS
    size = len(outcome.body) if isinstance(outcome, Fetched) else 0
    declared = headers.get("content-length")
    # for a body that was not read, use the declared length
    if not size and declared.isascii() and declared.isdigit():
        size = int(declared[:18])
    return dict(
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
        # validators describe the bytes sent by the server, not the rendered page
        etag="" if completion.rendering else headers.get("etag"),
        last_modified_field="" if completion.rendering else headers.get("last-modified"),
        text_chars=len(document.text),
        body_digest=document.digests.body,
        text_digest=document.digests.text,
        folded_digest=document.digests.folded,
        body_id=body_id,
        h1s=document.h1s,
        images_without_alt=document.images_without_alt,
        other_charset=document.charset.other,
        translations=json.dumps(document.translations) if document.translations else "",
        language_found=document.language_found,
        parts=None,  # not classified yet
        **document.publication._asdict(),
    )


def rendering_row(shard: int, source: int, rendering: Rendering) -> Row:
    """A row of `rendering`: the shard, then RENDERING_COLUMNS."""
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
        pack_original(rendering.sent),
        rendering.screenshot or None,
    )


def link_rows(page: NewLinks, now: float) -> list[LinkValues]:
    """One row per link: the shard, then LINK_COLUMNS."""
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
    """Links of a fetched page."""
    links = document.links
    return NewLinks(shard, source, links, links.ids.tolist() or list(map(url_id, links.targets)))


def redirect_link(shard: int, source: int, redirect: Redirected) -> NewLinks:
    """The link of a redirecting URL."""
    link = Link(redirect.target, LinkKind.REDIRECT, Position.HEAD, fragments=(redirect.fragment,))
    return NewLinks(shard, source, Links.of([link]), [url_id(redirect.target)])


def pack_completion(
    completion: Completion, storage: Storage, codec: BodyCodec, dictionary: int | None, *, as_sent: bool = False
) -> PackedBody | None:
    """Compresses the body and text of a completion; None if there is nothing to store.

    dictionary: id of a dictionary in the codec, or None. as_sent: large bodies in gzip format are kept as sent by the
    server.
    """
    outcome, document = completion.visit.outcome, completion.document
    if document is None or not isinstance(outcome, Fetched) or not outcome.body:
        return None
    if not (storage.keep_bodies or storage.keep_text or storage.keep_xml):
        return None
    words = document.utf_8_text() if document.text and storage.keep_text else None
    is_large = as_sent and storage.keep_bodies and len(outcome.body) >= SENT_BYTES
    data, text = outcome.sent if is_large else b"", None
    used = dictionary if storage.keep_bodies and not data else None
    if words and storage.keep_bodies and used is None and not data:
        text, data = codec.pack_page(words, outcome.body)
    else:
        text = codec.pack(words, None) if words else None
        data = data or (codec.pack(outcome.body, used) if storage.keep_bodies else b"")
    blocks = pack_blocks(document.blocks) if document.blocks and storage.keep_text else None
    xml = (codec.pack(document.xml[0], None), document.xml[1]) if document.xml and storage.keep_xml else None
    return PackedBody(document.digests.body, used, len(outcome.body), data, text, blocks, xml)


def bad_link_rows(shard: int, source: int, document: Document) -> list[LinkValues]:
    """Rows of `bad_link`: the shard, then BAD_LINK_COLUMNS."""
    return [
        (shard, source, link.text, link.kind.value, link.position.value, link.anchor, link.why)
        for link in document.bad_links
    ]


class PageLink(NamedTuple):
    """A stored link of a page."""

    target: int
    kind: str
    position: str
    nofollow: int
    anchor: str
    fragments: str  # separated by spaces
    times: int
    first_seen: float
    last_seen: float

    @property
    def key(self) -> LinkKey:
        return self[:4]


StoredLinks = dict[LinkKey, PageLink]
