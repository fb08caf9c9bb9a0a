"""Cache of pages read for stories: only changes are read again, and the result is that of a full computation."""

from pathlib import Path

import numpy as np
import pytest

from newsweb import NewsRecipe, NewsWeb, news_web
from periplus.api.deleting import delete
from periplus.model.collection import Deletion
from periplus.store import column_files
from periplus.store.column_files import STORIES as FILE
from periplus.store.reader import CollectionReader
from periplus.store.sqlite import schema
from periplus.urls.canonical import url_id
from periplus_topics.analyse import articles, stories
from periplus_topics.api.stories import stories_of
from periplus_topics.api.story_pages import VERSION, Readings, StoredReadings, stored_readings
from stored import stored

LATE = 3  # stories and sites of the second run


@pytest.fixture(scope="module")
def web() -> NewsWeb:
    return news_web(NewsRecipe(seed=3, sites=10, stories=12, singles=20))


@pytest.fixture
def folder(web: NewsWeb, tmp_path: Path) -> Path:
    return stored(tmp_path / "news.periplus", web.pages, web.starts[LATE:], now=web.now)


@pytest.fixture
def read_urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages read so far, in order."""
    urls: list[str] = []
    read = CollectionReader.page_blocks

    def noted(*asked, **named):
        for page in read(*asked, **named):
            urls.append(page.url)
            yield page

    monkeypatch.setattr(CollectionReader, "page_blocks", noted)
    return urls


def without_cache(folder: Path):
    (folder / FILE).unlink()
    return stories_of(folder)


def test_a_second_call_reads_no_page_and_has_the_same_result(folder, read_urls):
    first = stories_of(folder)
    assert len(read_urls) == first.pages
    read_urls.clear()
    assert stories_of(folder) == first
    assert stories_of(folder, least_sites=4).stories == tuple(story for story in first.stories if len(story.sites) >= 4)
    assert read_urls == []


def test_after_a_run_only_new_and_neighbouring_pages_are_read(web, folder, read_urls):
    before = stories_of(folder)
    read_urls.clear()
    stored(folder, web.pages, web.starts[:LATE], now=web.now)
    after = stories_of(folder)
    assert after.pages > before.pages
    assert after.pages - before.pages <= len(read_urls) < after.pages / 2
    assert without_cache(folder) == after


def test_a_changed_page_is_read_again(folder, read_urls):
    first = stories_of(folder)
    page = first.stories[0].pages[0]
    read_urls.clear()
    with schema.writing(folder) as connection:
        connection.execute(
            "UPDATE page SET title = 'Else' WHERE url_id = (SELECT id FROM url WHERE text = ?)", (page.url,)
        )
    changed = stories_of(folder)
    assert page.url in read_urls
    assert len(read_urls) < first.pages / 4
    assert "Else" in {page.title for story in changed.stories for page in story.pages}
    assert without_cache(folder) == changed


def test_an_invalid_old_or_truncated_cache_is_rebuilt(folder, monkeypatch):
    first = stories_of(folder)
    whole = (folder / FILE).read_bytes()
    for spoilt in (
        b"",
        b"{}\n",
        whole[: len(whole) // 2],
        whole.replace(b'"version": %d,' % VERSION, b'"version": 0,'),
    ):
        (folder / FILE).write_bytes(spoilt)
        assert stored_readings(folder) is None
        assert stories_of(folder) == first
        assert (folder / FILE).read_bytes() == whole


def test_a_killed_writer_leaves_the_old_cache_and_its_temporary_file_is_deleted(folder):
    first = stories_of(folder)
    draft = folder / f"{FILE}.1.new"
    draft.write_bytes(b"half")
    assert stories_of(folder) == first
    (folder / FILE).unlink()
    assert stories_of(folder) == first
    assert not draft.exists()


@pytest.mark.parametrize("at", [("reading pages", 20), ("reading pages", 50), ("comparing pages", 0)])
def test_an_interrupted_call_leaves_its_readings_to_the_next(folder, read_urls, at):
    def broken(what, done, total):
        assert 0 <= done <= total or what == "listing pages"
        if (what, done) == at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stories_of(folder, watch=broken)
    stages = []
    read_urls.clear()
    after = stories_of(folder, watch=lambda what, done, total: stages.append(what))
    assert len(read_urls) < after.pages
    assert at[0] == "reading pages" or read_urls == []
    assert list(dict.fromkeys(stages)) == [
        "listing pages", "reading pages", "comparing pages", "comparing words", "telling stories apart",
        "ordering stories",
    ]  # fmt: skip
    assert without_cache(folder) == after


def test_the_result_does_not_depend_on_block_sizes(folder, monkeypatch):
    whole = stories_of(folder)
    for name, few in {"ROWS_AT_ONCE": 7, "PAIRS_AT_ONCE": 5, "PAGES_AT_ONCE": 3}.items():
        monkeypatch.setattr(stories, name, few)
    assert without_cache(folder) == whole


def test_without_a_writable_cache_the_result_is_the_same(folder, monkeypatch):
    def refused(*_):
        raise OSError("read-only")

    with monkeypatch.context() as patch:
        patch.setattr(column_files, "write", refused)
        first = stories_of(folder)
    assert not (folder / FILE).exists()
    assert stories_of(folder) == first


def test_shingles_are_thinned_and_stay_thinned(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(articles, "SHINGLES_IN_ALL", 4_000)
    first = stories_of(folder)
    file = stored_readings(folder)
    assert file is not None
    every = int(file.columns["runs"].sum())
    sampling = file.head["sampling"]
    assert every / sampling <= 4_000 < 2 * every / sampling
    assert (file.columns["shingles"] % np.uint64(sampling) == 0).all()
    readings = Readings(sampling, tmp_path)
    for place in range(len(file.columns["ids"])):
        readings.add(StoredReadings(file)[place])
    assert {name: values.tolist() for name, values in readings.columns().items()} == {
        name: values.tolist() for name, values in file.columns.items() if name != "stories"
    }
    monkeypatch.setattr(articles, "SHINGLES_IN_ALL", 32_000_000)  # as if most pages had been deleted
    with schema.writing(folder) as connection:
        connection.execute("UPDATE page SET title = title || '!'")
    stories_of(folder)
    again = stored_readings(folder)
    assert again is not None
    assert again.head["sampling"] == 1
    assert len(again.columns["shingles"]) == every
    assert first.stories


def test_a_deletion_deletes_the_cache_since_it_has_urls(folder):
    page = stories_of(folder).stories[0].pages[0].url
    delete(folder, Deletion(pages=(url_id(page),)))
    assert not (folder / FILE).exists()
    assert page not in {page.url for story in stories_of(folder).stories for page in story.pages}
