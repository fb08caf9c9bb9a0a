"""The rows of the tables and the counts of `periplus status` are the same URLs."""

from __future__ import annotations

from collections import Counter

import periplus
from stored import page, stored

START = "https://e.org/"
WEB = {
    START: page("Home", "/a", "/gone", "https://x.net/"),
    f"{START}a": page("A", "/"),
    f"{START}gone": 404,
}


def test_the_rows_of_urls_and_pages_are_counted_by_status(tmp_path):
    folder = stored(tmp_path / "e.periplus", WEB, [START])
    with periplus.open(folder) as collection:
        counts = {(tally.state.value, tally.reason.value): tally.urls for tally in collection.status().counts}
        pages = Counter((row["state"], row["reason"]) for row in collection.table("pages").to_dicts())
        urls = Counter((row["state"], row["reason"]) for row in collection.table("urls").to_dicts())
    assert urls == counts
    assert pages == {key: number for key, number in counts.items() if key[0] in ("fetched", "failed")}
