"""A generated news web: its stories are found, its digests left out; commands show stories and choose sites."""

import gzip
import json
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lxml import etree

from newsweb import DATED, NewsRecipe, NewsWeb, news_web
from periplus.cli.main import main
from periplus.model.page import DateOrigin
from periplus_topics.api.stories import ReadingRequest, choose_sites, holdout, stories_of
from periplus_topics.model import Objective, Stories, cascades_of_stories
from stored import stored

SOURCES = {"json-ld": "json-ld", "meta": "meta", "time": "time", "url": "url", "none": "first seen"}


@pytest.fixture(scope="module")
def web() -> NewsWeb:
    return news_web(NewsRecipe(seed=5, sites=16, stories=20, singles=30))


@pytest.fixture(scope="module")
def folder(web: NewsWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("news") / "news.periplus", web.pages, web.starts, now=web.now)


@pytest.fixture(scope="module")
def found(folder: Path) -> Stories:
    return stories_of(folder)


def run(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [words[0], "-c", str(folder), *words[1:]], catch_exceptions=False)


def test_stories_are_the_planted_ones(web: NewsWeb, found: Stories) -> None:
    pairs = {pair for story in found.stories for pair in combinations(sorted(str(page.url) for page in story.pages), 2)}
    planted = {
        (one, other) for one, other in combinations(sorted(web.story_of), 2) if web.story_of[one] == web.story_of[other]
    }
    right = len(pairs & planted)
    assert 2 * right / (len(pairs) + len(planted)) >= 0.95
    assert web.digests <= set(found.digests)


def test_pages_are_dated_by_the_source_of_their_site(web: NewsWeb, found: Stories) -> None:
    assert set(web.dated.values()) == set(DATED)
    for page in (page for story in found.stories for page in story.pages):
        assert page.date.source.value == SOURCES.get(web.dated[page.url], "text")
        if page.date.source is not DateOrigin.FIRST_SEEN:
            assert 0 <= web.published[page.url] - page.date.when < (86_400 if page.date.whole_day else 60)


def test_dated_sources_come_first(web: NewsWeb, found: Stories) -> None:
    sources = set(web.source_of.values())
    for story in found.stories:
        clear = all(page.date.source is not DateOrigin.FIRST_SEEN and not page.date.whole_day for page in story.pages)
        assert not clear or story.pages[0].url in sources


def test_the_list_the_story_and_its_picture_are_written(folder: Path, found: Stories, tmp_path: Path) -> None:
    listed = run(folder, "stories", "-n", "3")
    assert listed.exit_code == 0
    assert found.stories[0].title in listed.output
    assert "more stories" in listed.output
    assert found.digests[0] in listed.output
    one = run(folder, "stories", "--story", "1")
    assert all(page.url in one.output for page in found.stories[0].pages)
    picture = tmp_path / "cascade.svg"
    assert run(folder, "stories", "--story", "1", "-f", "svg", "-o", str(picture)).exit_code == 0
    drawn = etree.parse(picture)
    assert len(drawn.findall(".//{*}a")) == len(found.stories[0].pages)
    read = json.loads(run(folder, "stories", "--json").stdout)
    assert len(read["stories"]) == len(found.stories)
    assert read["stories"][0]["pages"][0]["dated_by"] == found.stories[0].pages[0].date.source.value


@pytest.mark.parametrize(
    "words",
    [
        ("stories", "-f", "svg"),
        ("stories", "--story", "999"),
        ("stories", "--json", "--story", "1"),
        ("influence", "--budget", "5"),
    ],
)
def test_impossible_options_are_refused_with_a_remedy(folder: Path, words: tuple[str, ...]) -> None:
    refused = run(folder, *words)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("periplus: ")


def test_influence_of_the_planted_web_is_proved_optimal(folder: Path) -> None:
    cascades = cascades_of_stories(stories_of(folder))
    for objective in Objective:
        found = choose_sites(cascades, ReadingRequest(objective, 4))
        assert found.value >= 0.997 * found.lp_bound
        assert found.value > found.most_posts[-1]
    ahead = holdout(cascades, ReadingRequest(budget=4))
    assert 0 < ahead.later[-1] <= ahead.hindsight <= 1
    assert ahead.stories == 10


def test_influence_is_written_in_every_format(folder: Path, tmp_path: Path) -> None:
    text = run(folder, "influence", "-k", "3", "--holdout").output
    assert "3 sites of" in text
    assert "No choice within the budget can exceed" in text
    assert "in hindsight" in text
    read = json.loads(run(folder, "influence", "-k", "3", "--holdout", "--json").stdout)
    assert len(read["chosen"]) == 3
    assert 1 <= len(read["holdout"]["by_sites"]) <= 3
    assert (
        run(folder, "influence", "-k", "3", "-f", "csv").stdout.splitlines()[0]
        == "rank,site,gain,value,cost,stories_added"
    )
    out = tmp_path / "i.svg"
    posts = ("--cost", "posts", "--budget", "0.3", "--holdout")
    assert run(folder, "influence", *posts, "-f", "svg", "-o", str(out)).exit_code == 0
    assert "news" in out.read_text("utf-8")
    etree.parse(out)


def test_a_file_of_cascades_needs_no_collection(tmp_path: Path) -> None:
    plain, packed, bad = tmp_path / "c.txt", tmp_path / "c.gz", tmp_path / "bad.txt"
    plain.write_text("a,0 b,1\nb,3 c,4\n", "utf-8")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    bad.write_text("a,0\nb\n", "utf-8")
    results = [
        CliRunner().invoke(main, ["influence", "-k", "1", "--json", "--cascades", str(path)])
        for path in (plain, packed)
    ]
    assert results[0].stdout == results[1].stdout
    assert json.loads(results[0].stdout)["chosen"][0]["site"] == "b"
    refused = CliRunner().invoke(main, ["influence", "--cascades", str(bad)])
    assert (refused.exit_code, "line 2" in refused.stderr) == (2, True)
    bad.write_text("", "utf-8")
    assert CliRunner().invoke(main, ["influence", "--cascades", str(bad)]).exit_code == 2
