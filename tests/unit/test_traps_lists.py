"""A finite list is read completely, whatever its pages link to."""

from __future__ import annotations

import pytest
from test_traps import MENU, Page, Web, crawl, site


@pytest.mark.parametrize("form", ["/record/{}", "/record?id={}"], ids=["paths", "queries"])
@pytest.mark.parametrize("deeper", ["/print/{}", "/print?id={}", "/record/{}?reply=1"])
def test_a_list_of_empty_records_with_further_links_is_read_completely(form: str, deeper: str) -> None:
    """All records are on one page, so the list is finite, whatever the records link to."""
    records = {form.format(i): i for i in range(200)}

    def part(path: str) -> Page | None:
        if path == "/list":
            return f"{MENU}\nAll records", list(records)
        if path in records:
            return f"{MENU}\nRecord {records[path]}\nNo data", [deeper.format(records[path])]
        return (f"{MENU}\nNo data to print", []) if path.startswith("/print") else None

    assert records.keys() <= set(crawl(Web(site(50, "/list"), part)))
