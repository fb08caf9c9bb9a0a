"""Computed data of collections in databases, and the version of a collection that it belongs to."""

import contextlib
import os
import time

import pytest
from click.testing import CliRunner
from postgres_voyage import crawled_into

from periplus.api.crawling import refresh, refresh_order
from periplus.cli.main import main
from periplus.errors import StoreError
from periplus_postgres.caches import UNUSED_S, cache_folder, forget
from periplus_postgres.connection import connect
from periplus_postgres.copying import version
from periplus_studies.model import SiteMark, SiteStatus
from periplus_studies.results import mark_sites
from postgres_server import empty_collection
from testweb import GraphRecipe, graph_site, serve

RECIPE = GraphRecipe(seed=3, pages=60, links_per_page=6, shape="random", page_bytes=2000, host="a.test")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Switches to another cache folder."""

    def use(name):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    monkeypatch.chdir(tmp_path)
    use("cache")
    return use


def test_folders_that_are_not_used_are_deleted(address, cache):
    beside = cache_folder(address).parent
    forget(address)
    homes = {name: beside / name for name in ("forgotten", "lately")}
    ages_s = {"forgotten": UNUSED_S + 60, "lately": 60}
    for name, home in homes.items():
        home.mkdir(parents=True)
        (home / "x").write_bytes(b"x" * 2000)
        os.utime(home, (time.time() - ages_s[name],) * 2)
    assert cache_folder(address).is_dir()
    assert {name for name, home in homes.items() if home.exists()} == {"lately"}


def test_an_unwritable_cache_is_reported(address, cache, tmp_path):
    (tmp_path / "file").write_text("")
    cache("file")
    with pytest.raises(StoreError, match=r"cannot be stored in .*Name another folder in XDG_CACHE_HOME"):
        cache_folder(address)


def test_a_database_is_read_with_the_rules_of_the_calling_folder(address, cache, tmp_path):
    with serve(graph_site(RECIPE)) as server:
        crawled_into(address.text, server, "a.test", delay_s=0.0, max_pages=3)
    (tmp_path / "periplus.toml").write_text('[segments]\nfirst = "/"\n')
    ran = CliRunner().invoke(main, ["pages", "--columns", "url,segment", "--segment", "first", "-c", address.text])
    assert ran.exit_code == 0 and "first" in ran.output, ran.output
    (tmp_path / "periplus.toml").unlink()
    ran = CliRunner().invoke(main, ["pages", "--segment", "first", "-c", address.text])
    assert ran.exit_code == 2


def test_the_version_changes_with_this_collection_alone(address, cache):
    """A crawl, a refresh and a deletion change it; decisions, other collections and readers do not."""

    def version_now():
        with contextlib.closing(connect(address)) as database:
            return version(database)

    text, site = address.text, graph_site(RECIPE)
    with serve(site) as server, empty_collection() as other:
        known = [version_now()]
        for change in (
            lambda: crawled_into(text, server, "a.test", delay_s=0.0, max_pages=1),
            lambda: crawled_into(text, server, "a.test", delay_s=0.0, max_pages=2),
            lambda: refresh(refresh_order(text, {}), lambda progress: False),
        ):
            change()
            known.append(version_now())
            crawled_into(other, server, "a.test", delay_s=0.0, max_pages=len(known))
            assert version_now() == known[-1], "another collection changed"
        assert len({*known}) == 4
        before = known[-1]
        for words in (["status"], ["pages"], ["search", "the"], ["report"]):
            assert CliRunner().invoke(main, [words[0], "-c", text, *words[1:]]).exit_code == 0
        assert version_now() == before
        mark_sites(text, [SiteMark("e.org", SiteStatus.OUT)], 2.5)
        assert version_now() == before
        page = server.url("a.test")
        assert CliRunner().invoke(main, ["delete", "-c", text, "--yes", page]).exit_code == 0
        assert version_now() != before
