"""How do URLs that an older version named by their spelling get the id of what all their spellings name? (`urls.canonical.identity`)

The same in SQLite and PostgreSQL, but for the words in which each is asked. A URL of which another spelling has the id already keeps its old one.
"""

from __future__ import annotations

from collections.abc import Iterable

from periplus.model.web import Url
from periplus.urls.canonical import url_id

COLUMNS = (  # that hold ids of URLs
    ("url", "id"), ("start", "url_id"), ("alias", "url_id"), ("alias", "page_id"), ("queue", "url_id"), ("page", "url_id"), ("visit", "url_id"),
    ("link", "source"), ("link", "target"), ("bad_link", "source"), ("url_history", "url_id"), ("page_history", "url_id"), ("link_history", "source"),
    ("link_history", "target"), ("freshness", "url_id"), ("issue", "url_id"), ("issue", "related_id"),
)  # fmt: skip


def new_ids(urls: Iterable[tuple[int, str]]) -> list[tuple[int, int]]:
    """(old id, new one) of those of the URLs, (id, text), whose id is another now. Of several spellings the first gets it."""
    found: dict[int, int] = {}
    for old, text in urls:
        new = url_id(Url(text))
        if new != old:
            found.setdefault(new, old)
    return [(old, new) for new, old in found.items()]
