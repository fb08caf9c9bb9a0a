"""What stands in the rows that one visit brings?

The same in every database; how they are entered is each one's own business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from periplus.document.understand import canonical_xml
from periplus.model.frontier import Completion
from periplus.model.page import Document, LinkKind, Position
from periplus.model.visit import Failed, Fetched, Headers, Outcome, Redirected, Skipped, Unchanged, Visit
from periplus.settings import Storage
from periplus.store.bodies import BodyCodec, pack_blocks, pack_head
from periplus.urls.canonical import url_id

# Of what is not exactly a str, int or float sqlite3 asks for an adapter first: 300 ns for a bool instead of 70.
# `value` is a call in Python.
_WRITTEN: dict[str, str] = {member: member.value for member in (*LinkKind, *Position)}


@dataclass(frozen=True, slots=True)
class PackedBody:
    """A body ready to be stored.

    data: empty when bodies are not kept; text: its text, packed, or None; blocks: beside the text.

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


def visit_row(run_id: int, visit_url_id: int, visit: Visit) -> tuple[object, ...]:
    request = visit.request
    kind, status, detail = outcome_columns(visit.outcome)
    text = None if visit_url_id else request.url
    head = pack_head(getattr(visit.outcome, "headers", Headers()))  # failures and what was not asked for have none
    said = (kind, status, detail, visit.wire_bytes, visit.address, head)
    return (run_id, visit_url_id, text, request.purpose.value, visit.started, visit.took_s, *said)


def page_row(completion: Completion, document: Document, body_id: int | None, now: float) -> tuple[object, ...]:
    visit = completion.visit
    outcome = visit.outcome
    headers = outcome.headers if isinstance(outcome, Fetched) else Headers()
    size = len(outcome.body) if isinstance(outcome, Fetched) else 0
    declared = headers.get("content-length")
    # a body that we did not read: the server's word for its length
    if not size and declared.isascii() and declared.isdigit():
        size = int(declared[:18])
    robots = ",".join(name for name, said in (("noindex", document.noindex), ("nofollow", document.nofollow)) if said)
    cut = outcome.cut.value if isinstance(outcome, Fetched) else ""
    return (
        completion.task.url_id, now, document.media_type, size, visit.wire_bytes, visit.took_s,
        document.charset.name, document.charset.source, document.language, document.title, document.description,
        document.h1,
        document.canonical, robots, cut, document.last_modified, document.expires, headers.get("etag"),
        headers.get("last-modified"),
        len(document.text), document.digests.body, document.digests.text, document.digests.folded, body_id,
        document.h1s, document.images_without_alt, document.charset.other,
        json.dumps(document.translations) if document.translations else "",
        document.language_found, None,
    )  # fmt: skip


def link_rows(source: int, document: Document, now: float) -> list[tuple[object, ...]]:
    """One row per distinct (target, kind, position, nofollow)."""
    return [
        (
            source,
            url_id(target),
            _WRITTEN[kind],
            _WRITTEN[position],
            int(nofollow),
            anchor,
            " ".join(fragments),
            times,
            now,
            now,
        )
        for target, kind, position, anchor, nofollow, fragments, times in document.links
    ]


def redirect_row(source: int, redirect: Redirected, now: float) -> tuple[object, ...]:
    target = url_id(redirect.target)
    return (source, target, _WRITTEN[LinkKind.REDIRECT], _WRITTEN[Position.HEAD], 0, "", redirect.fragment, 1, now, now)


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
    data = codec.pack(outcome.body, used) if storage.keep_bodies else b""
    text = codec.pack(document.text.encode("utf-8", "replace"), None) if document.text and storage.keep_text else None
    blocks = pack_blocks(document.blocks) if document.blocks and storage.keep_text else None
    written = canonical_xml(completion.visit.request.url, outcome) if storage.keep_xml else None
    xml = (codec.pack(written[0], None), written[1]) if written else None
    return PackedBody(document.digests.body, used, len(outcome.body), data, text, blocks, xml)


def bad_link_rows(source: int, document: Document) -> list[tuple[object, ...]]:
    return [
        (source, link.text, link.kind.value, link.position.value, link.anchor, link.why) for link in document.bad_links
    ]
