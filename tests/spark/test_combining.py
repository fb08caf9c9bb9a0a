"""Datasets of several collections of the same web are combined into the dataset of a single collection."""

from __future__ import annotations

from datetime import timedelta

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datasets import chance_dataset, write_dataset
from periplus.errors import UsageError
from periplus.model.visit import STATE_OF, Reason
from periplus_spark import combining
from periplus_spark.combining import combine
from periplus_spark.dataset import TABLES
from periplus_spark.files import manifest_in


def tables_of(folder):
    return {
        note.name: [row for part in note.parts for row in pq.read_table(folder / note.name / part.name).to_pylist()]
        for note in manifest_in(folder).tables
    }


def share_of(whole, number, parts):
    """The dataset of a collection that crawls a share of the hosts. URLs of other hosts are known from links only."""
    hosts = {row["host"]: row for row in whole["hosts"]}
    own = {row["url"] for row in whole["urls"] if hosts[row["host"]]["site"] % parts == number}
    links = [row for row in whole["links"] if row["source"] in own]
    redirects = [row for row in whole["redirects"] if row["source"] in own]
    named = own | {row["target"] for row in links + redirects}
    urls = [
        row
        if row["url"] in own
        else row
        | {"state": STATE_OF[Reason.SCOPE].value, "reason": "scope", "depth": None, "status": None, "visited": None}
        | {"is_start": False, "first_seen": row["first_seen"] + timedelta(seconds=5)}
        for row in whole["urls"]
        if row["url"] in named
    ]
    kept_hosts = sorted({row["host"] for row in urls})
    sites = sorted({hosts[host]["site"] for host in kept_hosts})
    number_of = {row["url"]: at for at, row in enumerate(urls)}
    renumbered = {"host": kept_hosts.index, "site": sites.index}
    renumbered |= dict.fromkeys(("url", "source", "target"), number_of.__getitem__)
    shares = {"hosts": [hosts[host] for host in kept_hosts], "urls": urls, "redirects": redirects, "links": links}
    shares |= {name: [row for row in whole[name] if row["url"] in own] for name in ("pages", "texts")}
    return {
        name: [{key: renumbered.get(key, lambda value: value)(value) for key, value in row.items()} for row in rows]
        for name, rows in shares.items()
    }


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), parts=st.integers(1, 4), urls=st.integers(0, 30), rows=st.integers(1, 9))
def test_shares_of_a_web_are_combined_into_the_whole_web(tmp_path_factory, seed, parts, urls, rows):
    folder = tmp_path_factory.mktemp("shares")
    whole = tables_of(chance_dataset(folder / "chance", seed, urls, sites=5, links=4 * urls))
    read = {row["url"] for row in whole["pages"]}
    whole["links"] = [row for row in whole["links"] if row["source"] in read]  # a crawl knows links of read pages only
    whole["urls"] = [row | {"visited": row["first_seen"] if row["url"] in read else None} for row in whole["urls"]]
    shares = [write_dataset(folder / f"share{number}", share_of(whole, number, parts), 2) for number in range(parts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combining, "ROWS", dict.fromkeys(TABLES, rows))  # small blocks, cut at every place
        combine(shares, folder / "all", 5.0)
    assert {name: tables_of(folder / "all")[name] for name in TABLES} == whole


def test_a_url_in_two_collections_takes_page_and_links_of_the_later_visit(tmp_path):
    def visited(name, when, target, depth):
        texts = sorted(["https://e.org/", target])
        home = texts.index("https://e.org/")
        plain = {"host": 0, "site": 0, "reason": "ok", "in_sitemap": False, "is_start": False, "first_seen": when}
        urls = [plain | {"url": at, "id": at, "text": text, "depth": depth + at} for at, text in enumerate(texts)]
        urls[home] |= {"visited": when, "is_start": name == "old"}
        tables = {
            "hosts": [{"host": 0, "name": "e.org:443", "site": 0, "site_name": "e.org"}],
            "urls": urls,
            "redirects": [],
            "pages": [{"url": home, "title": name}],
            "links": [{"source": home, "target": 1 - home, "kind": "a", "position": "main", "nofollow": False}],
        }
        return write_dataset(tmp_path / name, tables)

    shares = [visited("new", 2000, "https://e.org/b", 4), visited("old", 1000, "https://e.org/a", 0)]
    combine(shares, tmp_path / "all", 5.0)
    rows = tables_of(tmp_path / "all")
    assert [row["text"] for row in rows["urls"]] == ["https://e.org/", "https://e.org/a", "https://e.org/b"]
    assert [(row["url"], row["title"]) for row in rows["pages"]] == [(0, "new")]
    assert [(row["source"], row["target"]) for row in rows["links"]] == [(0, 2)]
    home = rows["urls"][0]
    assert (home["depth"], home["is_start"], home["first_seen"].timestamp()) == (0, True, 1.0)
    assert home["visited"].timestamp() == 2.0


def test_the_folder_of_a_combined_dataset_is_never_overwritten(tmp_path):
    shares = [chance_dataset(tmp_path / str(seed), seed, texts=seed > 1) for seed in (1, 2)]
    combine(shares, tmp_path / "all", 5.0)
    assert "texts" not in tables_of(tmp_path / "all"), "a table that one dataset lacks"
    assert combine(shares, tmp_path / "all", 9.0).made == 5.0
    with pytest.raises(UsageError, match="contains another dataset"):
        combine(shares[:1], tmp_path / "all", 9.0)
