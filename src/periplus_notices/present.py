"""Notices in words: lines for a terminal, letters, bodies of webhooks, and feeds."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

from periplus.present.markup import characters, environment
from periplus.present.wording import count_of, iso, number, utc, visible
from periplus.values import JsonObject
from periplus_notices.model import Notice, NoticeKind

TITLE_SUBJECT_CHARS = 80  # characters of the subject in a title


class _NoticeWords(NamedTuple):
    """A kind's title in singular and plural, if it counts, and its screen."""

    one: str
    many: str = ""
    screen: str = "jobs"


_NOTICES = {
    NoticeKind.BROKEN: _NoticeWords("{} new broken URL", "{} new broken URLs", "t/links?target_state=failed"),
    NoticeKind.VANISHED: _NoticeWords("{} page vanished", "{} pages vanished", "compare"),
    NoticeKind.SITES: _NoticeWords("{} new site", "{} new sites", "t/sites"),
    NoticeKind.PORTAL: _NoticeWords("the portal has {} new entry", "the portal has {} new entries", "live"),
    NoticeKind.FAILED: _NoticeWords("a job failed"),
    NoticeKind.SUSPICIOUS: _NoticeWords("a crawl ended suspicious", screen="compare"),
    NoticeKind.REPORT: _NoticeWords("status", screen="live"),
}


def title(notice: Notice) -> str:
    """One line, without a dot."""
    words, first = _NOTICES[notice.kind], visible(notice.subjects[0]) if notice.subjects else ""
    form = words.one if notice.count == 1 else words.many or words.one
    collection = f"{_plain_name(notice.collection)}: " if notice.collection else ""
    named = f": {first[:TITLE_SUBJECT_CHARS]}" if notice.count == 1 and first else ""
    return f"{collection}{form.format(number(notice.count))}{named}"


def _plain_name(collection: str) -> str:
    return visible(collection).removesuffix(".periplus")


def lines(notice: Notice) -> list[str]:
    """The subjects, and how many more there are."""
    named = [visible(subject) for subject in notice.subjects]
    return [*named, f"and {notice.count - len(named):,} more"] if notice.count > len(named) else named


def screen(notice: Notice, address: str) -> str:
    """Where the interface shows it; empty where its address is not known."""
    if not address:
        return ""
    path = _NOTICES[notice.kind].screen
    if not notice.collection or path == "jobs":
        return f"{address.rstrip('/')}/jobs"
    name = notice.collection.removesuffix(".periplus")
    if "://" in name:  # an address of a database: the interface calls it by its schema
        name = parse_qs(urlsplit(name).query)["collection"][0]
    return f"{address.rstrip('/')}/c/{quote(name, safe='')}/{path}"


def letter(notices: Sequence[Notice], address: str) -> tuple[str, str]:
    """(subject, text) of a letter with all notices."""
    more = f", and {count_of(len(notices) - 1, 'other notice')}" if len(notices) > 1 else ""
    parts = []
    for notice in notices:
        about = [*lines(notice), *filter(None, [screen(notice, address)])]
        parts.append("\n  ".join([f"{title(notice)} ({utc(notice.made)})", *about]))
    return f"Periplus: {title(notices[0])}{more}", "\n\n".join(parts) + "\n"


def as_values(notice: Notice, address: str = "") -> JsonObject:
    """For programs. `id` is the same in each delivery, so that repeats can be skipped."""
    return {
        "id": notice.key, "kind": notice.kind.value, "collection": notice.collection, "made": iso(notice.made),
        "title": title(notice),
        "count": notice.count, "subjects": list(notice.subjects), "screen": screen(notice, address),
    }  # fmt: skip


def webhook_body(notice: Notice, address: str) -> bytes:
    """The body of a webhook's request."""
    return json.dumps(as_values(notice, address), ensure_ascii=False).encode("utf-8", "replace")


def feed(notices: Sequence[Notice], name: str, address: str, made: float) -> str:
    """An Atom feed (RFC 4287), the newest first.

    name: of the collection, empty: of all; made: when it is empty, its date.
    """
    made_feed = environment(
        "periplus_notices", identity=_identity, iso=iso, title=title, screen=screen, lines=lines, plain_name=_plain_name
    ).get_template("feed.xml")
    updated_s = max((notice.made for notice in notices), default=made)
    return characters(made_feed.render(notices=notices, name=name, address=address, updated_s=updated_s)) + "\n"


def _identity(key: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"periplus notice {key}").urn
