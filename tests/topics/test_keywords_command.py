"""`periplus keywords` lists keywords of pages, sites and query results."""

import json

import pytest

import periplus
from periplus.errors import UsageError
from stored import stored
from whole.voyage import told

HOME = "https://e.org/"


def html(title, text, *links):
    anchors = "".join(f'<li><a href="{link}">More</a></li>' for link in links)
    return (
        f"<!DOCTYPE html><html lang=en><title>{title}</title><main><h1>{title}</h1><p>{text}</p></main><nav><ul>"
        f"{anchors}</ul></nav>"
    )


SHIPS = (
    "The stone lighthouse of the island guides ships. Every stone lighthouse has a keeper, "
    "and the town pays the keeper."
)
BREAD = "The bakery sells rye bread. Rye bread needs sourdough, and the town likes rye bread."
WEB = {
    HOME: html(
        "Town news", "News of the town and of its people.", *(f"/s{n}" for n in range(6)), *(f"/b{n}" for n in range(6))
    ),
    **{f"{HOME}s{n}": html(f"Ships {n}", f"{SHIPS} Ship number {n} came.", "/") for n in range(6)},
    **{f"{HOME}b{n}": html(f"Bread {n}", f"{BREAD} Loaf number {n} rose.", "/") for n in range(6)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("keywords") / "e.org.periplus", WEB, [HOME])


def words(found):
    return [keyword.text.lower() for keyword in found.keywords]


def test_a_page_is_known_by_its_keywords(folder):
    with periplus.open(folder) as collection:
        found = collection.keywords("e.org/s1", most=5)
        story = collection.keywords(f"{HOME}b1", f"{HOME}b2", most=5)
    assert any("lighthouse" in word for word in words(found))
    assert (found.pages, found.compared_with, found.language) == (1, 13, "en")
    assert any("rye bread" in word for word in words(story))
    assert story.pages == 2


def test_keywords_of_a_query_distinguish_it_from_the_rest(folder):
    with periplus.open(folder) as collection:
        found = collection.keywords(query="lighthouse", most=5)
        assert found.pages == 6
        assert any("lighthouse" in word for word in words(found))
        assert not any("bread" in word or word == "town" for word in words(found))
        assert len(collection.keywords().keywords) == 10
        assert collection.keywords("e.org", method="singlerank").pages == 13


def test_missing_subjects_are_reported(folder):
    with periplus.open(folder) as collection:
        with pytest.raises(UsageError, match="no text of"):
            collection.keywords("https://e.org/nowhere")
        with pytest.raises(UsageError, match="choose among learnt"):
            collection.keywords(method="guessing")
        with pytest.raises(UsageError, match="no text of zzzz"):
            collection.keywords(query="zzzz")


def test_the_command_prints_keywords_and_json(folder, tmp_path):
    said = told("keywords", "-c", folder, f"{HOME}s1", cwd=tmp_path).stdout
    assert "lighthouse" in said
    assert "\x1b" not in said
    found = json.loads(told("keywords", "-c", folder, "--json", "-n", "3", "e.org", cwd=tmp_path).stdout)
    assert found["subject"] == "e.org"
    assert len(found["keywords"]) == 3
    assert {"text", "score", "times", "pages"} == set(found["keywords"][0])
