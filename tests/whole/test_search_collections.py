"""A search over several collections has the ranks and scores of one collection with all pages."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import periplus
from periplus.api.functions import crawl
from periplus.api.homes import collections_at
from periplus.api.search_index import catch_up
from periplus.cli.main import main
from periplus.errors import NoCollection, UsageError
from periplus.retrieval.asking import MatchWindow, Searcher
from periplus.settings import Searching
from periplus_agents import embedding
from periplus_agents.answers import ServedCollections
from periplus_agents.tools import answer_call
from stored import NOW, page, stored

WORDS = ["harbour", "light", "sailor", "storm", "tide", "quay", "rope", "anchor", "chart", "pilot", "buoy", "wreck"]


def site(host: str, pages: int, seed: int) -> dict[str, str]:
    """A site of random words without external links."""
    rng = random.Random(seed)

    def made(number: int, *links: str) -> str:
        text = " ".join(rng.choices(WORDS, range(len(WORDS), 0, -1), k=rng.randint(5, 60)))
        return page(f"{rng.choice(WORDS)} {number}", *links) + f"<p>{host} {text}</p>"

    return {f"https://{host}/": made(0, *(f"/{number}" for number in range(1, pages)))} | {
        f"https://{host}/{number}": made(number, "/", f"/{rng.randrange(pages)}") for number in range(1, pages)
    }


def home(host: str) -> str:
    return f"https://{host}/"


HOSTS = ("north.org", "south.org", "west.org")
SITES = {host: site(host, pages, seed) for seed, (host, pages) in enumerate(zip(HOSTS, (40, 25, 8), strict=True))}


@pytest.fixture
def several(tmp_path):
    return [stored(tmp_path / "each" / f"{host}.periplus", SITES[host], [home(host)]) for host in HOSTS]


@pytest.fixture
def one(tmp_path):
    every = {url: answer for web in SITES.values() for url, answer in web.items()}
    return stored(tmp_path / "all.periplus", every, list(map(home, HOSTS)))


def order(result):
    return [(hit.url, pytest.approx(hit.score, rel=1e-3), hit.missing, hit.twins, hit.near) for hit in result.hits]


@pytest.mark.parametrize(
    "query",
    ["harbour", "wreck buoy", "light sailor storm", '"storm tide"', "harbour site:south.org", "anchor -rope",
     "qu*", "pilot inmenu:harbour", "wreck zeppelin", "buoy text_chars:200.."],
)  # fmt: skip
def test_several_collections_have_the_results_of_one(several, one, query):
    """Except for word proximity, which the engine estimates per segment."""
    for folder in (*several, one):
        (folder / "periplus.toml").write_text("[settings]\nweight_phrase = 0.0\n", "utf-8")
    ours = periplus.search(several, query, limit=30, facets=True)
    with periplus.open(one) as collection:
        theirs = collection.search(query, limit=30, facets=True)
    assert order(ours) == order(theirs)
    assert (ours.total, ours.notes, ours.suggestion) == (theirs.total, theirs.notes, theirs.suggestion)
    assert {facet.name: dict(facet.values) for facet in ours.facets} == {
        facet.name: dict(facet.values) for facet in theirs.facets
    }
    assert all((hit.collection, hit.when) == (hit.site, NOW) for hit in ours.hits), "no page has a date of its own"


def test_a_page_of_several_collections_is_one_hit(tmp_path, several):
    url, host = "https://north.org/3", "north.org"
    stored(tmp_path / "more.periplus", {home("east.org"): page("East", url), url: SITES[host][url]}, [home("east.org")])
    other = tmp_path / "older.periplus"
    stored(other, {url: page("Zeppelin", "/")}, [url])
    with periplus.open(several[0]) as collection:
        total = collection.search("north.org harbour").total
    result = periplus.search([several[0], tmp_path / "more.periplus", other], "north.org harbour", limit=50)
    urls = [hit.url for hit in result.hits]
    assert len(set(urls)) == len(urls) == result.total == total
    hit = next(hit for hit in result.hits if hit.url == url)
    assert (hit.twins, hit.near) == ((), ())
    # of two versions the matching one is shown
    assert [hit.collection for hit in periplus.search([several[0], other], "zeppelin").hits] == ["older"]


def test_a_copied_collection_is_searched_with_its_original(tmp_path, several):
    with periplus.open(several[0]) as collection:
        collection.search("harbour")
    shutil.copytree(several[0], tmp_path / "copy.periplus")
    stored(several[0], SITES["north.org"] | {"https://north.org/new": page("Zeppelin", "/")}, ["https://north.org/new"])
    both = [several[0], tmp_path / "copy.periplus"]
    for query in ("harbour", "zeppelin"):
        assert order(periplus.search(both, query)) == order(periplus.search(both[::-1], query))
    assert periplus.search(both, "zeppelin").total == 1


def test_two_local_folders_with_the_same_name_are_different(tmp_path):
    for name in ("one", "two"):
        docs = tmp_path / name / "docs"
        docs.mkdir(parents=True)
        (docs / "index.html").write_text(f"<title>Harbour {name}</title><p>Lights of {name}</p>", "utf-8")
        crawl([str(docs)], tmp_path / f"{name}.periplus")
    result = periplus.search([tmp_path], "harbour")
    assert {(hit.title, hit.collection) for hit in result.hits} == {("Harbour one", "one"), ("Harbour two", "two")}


def test_a_new_index_is_used_by_the_next_search(several):
    for folder in several[:2]:
        catch_up(folder)
    searcher = Searcher(several, Searching())  # the third has no index yet
    before = searcher.search("harbour", MatchWindow(50), lambda ids: [0.0] * len(ids))
    stored(several[0], SITES["north.org"] | {"https://north.org/new": page("Harbour harbour", "/")},
           ["https://north.org/new"])  # fmt: skip
    for folder in several:
        catch_up(folder)
    assert searcher.search("harbour", MatchWindow(50), lambda ids: [0.0] * len(ids)) == before
    searcher.refresh()
    assert searcher.pages == sum(map(len, SITES.values())) + 1
    with pytest.raises(LookupError):
        Searcher([several[0].parent, several[0].parent.parent], Searching())


def test_pages_near_a_vector_are_from_all_collections(tmp_path, several):
    for number, folder in enumerate(several[:2]):
        host = HOSTS[number]
        (tmp_path / "v.txt").write_text(f"https://{host}/1\nhttps://{host}/2", "utf-8")
        np.save(tmp_path / "v.npy", np.array([[1.0, number], [-1.0, 0.5]]))
        embedding.import_vectors(folder, tmp_path / "v.npy")
    result = periplus.search(several, "", like=[1.0, 0.0], limit=2)
    assert [hit.url for hit in result.hits] == ["https://north.org/1", "https://south.org/1"]
    near = periplus.search(several, "", like="https://north.org/1", limit=1)
    assert [hit.url for hit in near.hits] == ["https://south.org/1"]
    with pytest.raises(UsageError, match="has no vectors"):
        periplus.search([several[2]], "", like=[1.0, 0.0])


def test_the_command_takes_folders_of_collections(several):
    folder = str(several[0].parent)
    each = [word for place in several for word in ("-c", str(place))]
    texts = [CliRunner().invoke(main, ["search", "harbour", *where]).stdout for where in (each, ["-c", folder])]
    assert texts[0].splitlines()[1:] == texts[1].splitlines()[1:]
    assert "north.org · html" in texts[0] or "north.org, html" in texts[0]
    hits = json.loads(CliRunner().invoke(main, ["search", "harbour", "-c", folder, "-f", "json"]).output)["hits"]
    assert {hit["collection"] for hit in hits} <= set(HOSTS)
    empty = CliRunner().invoke(main, ["search", "harbour", "-c", str(several[0]), "-c", str(Path(folder).parent)])
    assert "no collection in" in empty.output
    with pytest.raises(NoCollection):
        periplus.search([several[0], Path(folder).parent], "harbour")


def test_a_call_without_a_collection_searches_all(several):
    served = ServedCollections(lambda: collections_at(several, Path()))
    answer = answer_call(served, "search", {"query": "harbour", "limit": 5})
    hits = periplus.search(several, "harbour", limit=5).hits
    assert [(row["url"], row["collection"]) for row in answer.content] == [(hit.url, hit.collection) for hit in hits]
    rest = answer_call(served, "search", {"query": "harbour", "limit": 5, "cursor": answer.rest})
    assert not {row["url"] for row in rest.content} & {row["url"] for row in answer.content}


def test_collections_with_the_same_name_are_numbered(tmp_path, several):
    other = stored(tmp_path / "north.org.periplus", SITES["north.org"], [home("north.org")])
    assert collections_at([several[0], other, other], tmp_path) == {"north.org": several[0], "north.org 2": other}
