"""What does a notice say: in a line, in a letter, as JSON, in a feed?"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from urllib.parse import quote

from periplus.model.notice import Notice, NoticeKind
from periplus.present.lines import visible
from periplus.present.wording import count_of, iso, utc
from periplus.present.xml_text import escaped

NAMED_IN_TITLE = 80  # signs of the one subject that a title names
_SCREENS = {
    NoticeKind.DEAD: "t/dead", NoticeKind.VANISHED: "compare", NoticeKind.SITES: "t/sites", NoticeKind.PORTAL: "live", NoticeKind.SUSPICIOUS: "t/runs",
}  # fmt: skip


def title(notice: Notice) -> str:
    """One line, without a dot."""
    count, first = notice.count, visible(notice.subjects[0]) if notice.subjects else ""
    said = {
        NoticeKind.DEAD: count_of(count, "new dead address", "new dead addresses"),
        NoticeKind.VANISHED: f"{count_of(count, 'page')} vanished",
        NoticeKind.SITES: count_of(count, "new site"),
        NoticeKind.PORTAL: f"the portal has {count_of(count, 'new entry', 'new entries')}",
        NoticeKind.FAILED: "a job failed",
        NoticeKind.SUSPICIOUS: "a crawl ended suspicious",
    }[notice.kind]
    named = f": {first[:NAMED_IN_TITLE]}" if count == 1 and first else ""
    return f"{visible(notice.collection).removesuffix('.periplus')}: {said}{named}" if notice.collection else f"{said}{named}"


def lines(notice: Notice) -> list[str]:
    """The subjects, and how many more there are."""
    named = [visible(subject) for subject in notice.subjects]
    return [*named, f"and {notice.count - len(named):,} more"] if notice.count > len(named) else named


def screen(notice: Notice, address: str) -> str:
    """Where the interface shows it; empty where its address is not known."""
    path = _SCREENS.get(notice.kind, "jobs") if notice.collection else "jobs"
    if not address:
        return ""
    return f"{address.rstrip('/')}/" + (f"c/{quote(notice.collection.removesuffix('.periplus'), safe='')}/{path}" if path != "jobs" else path)


def letter(notices: Sequence[Notice], address: str) -> tuple[str, str]:
    """(subject, text) of a letter that tells them all."""
    subject = title(notices[0]) + (f", and {count_of(len(notices) - 1, 'other notice')}" if len(notices) > 1 else "")
    parts = []
    for notice in notices:
        more = screen(notice, address)
        parts.append("\n".join([f"{title(notice)} ({utc(notice.made)})", *(f"  {line}" for line in lines(notice)), *([f"  {more}"] if more else [])]))
    return f"Periplus: {subject}", "\n\n".join(parts) + "\n"


def as_values(notice: Notice, address: str = "") -> dict[str, object]:
    """For programs. `id` is the same in each delivery: who has seen it needs not look again."""
    return {
        "id": notice.key, "kind": notice.kind.value, "collection": notice.collection, "made": iso(notice.made), "title": title(notice),
        "count": notice.count, "subjects": list(notice.subjects), "screen": screen(notice, address),
    }  # fmt: skip


def posted(notice: Notice, address: str) -> bytes:
    """The body of a webhook's request."""
    return json.dumps(as_values(notice, address), ensure_ascii=False).encode("utf-8", "replace")


def feed(notices: Sequence[Notice], name: str, address: str, made: float) -> str:
    """An Atom feed (RFC 4287), the newest first. name: of the collection, empty: of all; made: when it is empty, its date."""
    entries = "".join(_entry(notice, address) for notice in notices)
    here = escaped(address.rstrip("/") or "urn:periplus")
    of = f": {visible(name).removesuffix('.periplus')}" if name else ""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<id>{_identity("feed " + name)}</id>
<title>Periplus{escaped(of)}</title>
<updated>{iso(max((notice.made for notice in notices), default=made))}</updated>
<author><name>Periplus</name></author>
<generator>Periplus</generator>
<link rel="alternate" type="text/html" href="{here}"/>
{entries}</feed>
"""


def _entry(notice: Notice, address: str) -> str:
    more = screen(notice, address)
    link = f'<link rel="alternate" type="text/html" href="{escaped(more)}"/>\n' if more else ""
    return f"""<entry>
<id>{_identity(notice.key)}</id>
<title>{escaped(title(notice))}</title>
<updated>{iso(notice.made)}</updated>
{link}<category term="{notice.kind.value}"/>
<content type="text">{escaped(chr(10).join(lines(notice)))}</content>
</entry>
"""


def _identity(key: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"periplus notice {key}").urn
