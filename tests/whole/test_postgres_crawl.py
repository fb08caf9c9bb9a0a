"""Is a crawl that is kept in PostgreSQL the same crawl as one in a folder?"""

from __future__ import annotations

import pytest
from postgres_voyage import crawled_into
from voyage import crawled

from testweb import Web, linked_sites, serve


@pytest.fixture(scope="module")
def web():
    return linked_sites(seed=5, sites=4, pages=12, links_between=20, links_per_page=8)


def test_a_crawl_in_a_database_finds_what_one_in_a_folder_finds(web: Web, tmp_path, address) -> None:
    with serve(web) as server:
        starts = tuple(web.sites)
        folder, end = crawled(tmp_path / "c", server, *starts)
        stored, other = crawled_into(address.text, server, *starts)
        assert (end.state, end.counts) == (other.state, other.counts)
        assert stored.tables == folder.tables
        assert stored.sane() == []
