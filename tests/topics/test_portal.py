"""A portal of a stored news web: expected stories, decisions of an editor, approval, growth, the command line."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from lxml import etree

from newsweb import DAY, NewsRecipe, news_web
from periplus.api.deleting import delete
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.collection import Deletion
from periplus.store import column_files
from periplus.urls.canonical import url_id
from periplus_topics.api import keywords as portal_entries
from periplus_topics.api import portal as portals
from periplus_topics.model import EditorVerdict, Portal
from stored import stored

WEB = news_web(NewsRecipe(seed=4, sites=9, stories=8, singles=6, days=20))
NOW = WEB.now


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("portal") / "news.periplus"
    return stored(folder, WEB.pages, WEB.starts, now=NOW)


@pytest.fixture
def folder(whole, tmp_path):
    """A copy that a test may change."""
    copy = tmp_path / "news.periplus"
    copy.mkdir()
    for file in whole.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    portals.create(copy, Portal("coast", "The coast", NOW, sites=5))
    return copy


def edition(folder, **changes):
    portal = portals.find_portal(folder)
    if changes:
        portals.change(
            folder, Portal(**({"name": portal.name, "title": portal.title, "created": portal.created} | changes))
        )
    return portals.edition_of(folder, portals.find_portal(folder), NOW)


def run(folder, *words):
    return CliRunner().invoke(main, ["portal", *words, "-c", str(folder)], catch_exceptions=False)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_its_stories_equal_the_expected_ones_with_sources_in_order(folder):
    found = edition(folder)
    assert len(found.entries) == 8
    for entry in found.entries:
        truths = {WEB.story_of.get(page.url) for page in entry.story.pages}
        assert len(truths) == 1, f"{entry.story.title} mixes {truths}"
    first = [entry.story.pages[0].url for entry in found.entries]
    # some sites have no date, or only a day
    assert sum(url in WEB.source_of.values() for url in first) >= 0.7 * len(first)


def test_each_entry_has_a_sentence_of_its_page_and_the_run_it_came_from(folder):
    found = edition(folder)
    for entry in found.entries:
        assert entry.sentence
        assert any(entry.sentence.removesuffix("…") in WEB.pages[page.url] for page in entry.story.pages)
        assert {source.run for source in entry.provenance} == {"crawl 1"}


def test_few_sites_cover_the_stories_and_their_gains_add_up(folder):
    found = edition(folder)
    assert 0 < len(found.sites) <= 5
    assert sum(site.gain for site in found.sites) == pytest.approx(found.covered)
    assert found.covered > 0.8
    assert all(site.home == f"https://{site.key}/" for site in found.sites)


def test_the_same_store_and_time_give_the_same_bytes(folder, tmp_path):
    portals.build(folder, "coast", tmp_path / "one", NOW)
    _, again = portals.build(folder, "coast", tmp_path / "one", NOW)
    portals.build(folder, "coast", tmp_path / "two", NOW)
    assert again.written == 0
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_nothing_unapproved_is_published(folder, tmp_path):
    out = tmp_path / "out"
    portals.build(folder, "coast", out, NOW)
    assert len(list((out / "story").glob("*.html"))) == 8
    found = edition(folder, approve=True)
    assert found.entries == ()
    chosen = found.waiting[3]
    portals.decide(folder, found.portal, "approve", [chosen.key], NOW)
    _, done = portals.build(folder, "coast", out, NOW)
    assert [path.name for path in (out / "story").glob("*.html")] == [f"{chosen.key}.html"]
    assert done.removed >= 7
    everything = b"".join(files_of(out).values()).decode()
    others = [page.url for entry in found.waiting if entry is not chosen for page in entry.story.pages]
    assert not [url for url in others if f'"{url}"' in everything]


def test_an_editor_pins_hides_and_undoes(folder):
    found = edition(folder)
    last, second = found.entries[-1].key, found.entries[1].key
    portals.decide(folder, found.portal, "pin", [last[:5]], NOW)
    portals.decide(folder, found.portal, "hide", [second], NOW + 1)
    after = edition(folder)
    assert after.entries[0].key == last
    assert after.entries[0].verdict is EditorVerdict.PINNED
    assert [entry.key for entry in after.hidden] == [second]
    portals.decide(folder, found.portal, "reset", [last, second], NOW + 2)
    assert [entry.key for entry in edition(folder).entries] == [entry.key for entry in found.entries]


def test_a_banned_site_is_ignored_and_a_pinned_site_comes_first(folder):
    found = edition(folder)
    banned, pinned = (
        found.sites[0].key,
        sorted(
            {page.site for entry in found.entries for page in entry.story.pages} - {site.key for site in found.sites}
        )[0],
    )
    portals.decide(folder, found.portal, "ban", [banned], NOW)
    portals.decide(folder, found.portal, "pin", [f"https://{pinned}/"], NOW)
    after = edition(folder)
    assert not [page for entry in after.entries for page in entry.story.pages if page.site == banned]
    assert banned not in [site.key for site in after.sites]
    assert (after.sites[0].key, after.sites[0].pinned) == (pinned, True)


def test_invalid_decisions_are_refused_and_not_stored(folder):
    found = edition(folder)
    key = found.entries[0].key
    wrong = [
        ("approve", "news1.test", "approve does not apply to sites"),
        ("ban", key, "ban does not apply to entries"),
        ("hide", "nothing", "not an entry or site"),
    ]
    for verb, subject, why in [*wrong, ("hide", "", "matches 8 entries")]:
        with pytest.raises(UsageError, match=why):
            portals.decide(folder, found.portal, verb, [*[key] * (verb == "hide"), subject], NOW)
    assert [entry.verdict for entry in edition(folder).entries] == [None] * 8


def test_a_story_keeps_its_key_when_the_collection_grows(whole, tmp_path):
    first = sorted(WEB.pages)
    late = {url for url in first if WEB.published.get(url, 0) > NOW - 28 * DAY}  # without the last days
    folder = tmp_path / "grown.periplus"
    stored(folder, {url: WEB.pages[url] for url in first if url not in late}, WEB.starts, now=NOW)
    portals.create(folder, Portal("coast", "The coast", NOW))
    before = {page.url: entry.key for entry in edition(folder).entries for page in entry.story.pages}
    stored(folder, WEB.pages, WEB.starts, now=NOW)
    after = {page.url: entry.key for entry in edition(folder).entries for page in entry.story.pages}
    assert len(set(after.values())) > len(set(before.values()))
    assert {url: after[url] for url in before if url in after} == {
        url: key for url, key in before.items() if url in after
    }


def test_all_steps_on_the_command_line(folder, tmp_path):
    out = tmp_path / "public"
    assert run(folder, "create", "second", "--title", "Second", "--period", "12h", "--approve").exit_code == 0
    assert "second" in run(folder, "list").output
    shown = json.loads(run(folder, "show", "second", "-f", "json", "--waiting").stdout)
    assert {entry["kind"] for entry in shown["entries"]} == {"waiting"}
    key = shown["entries"][0]["key"]
    assert run(folder, "approve", key, "-p", "second").exit_code == 0
    built = run(folder, "build", "second", "-o", str(out))
    assert built.stdout.strip() == str(out / "index.html")
    etree.fromstring((out / "index.html").read_bytes())
    shown = run(folder, "show", "second").stdout
    assert key in shown
    assert "\x1b" not in shown  # no colours without a terminal
    assert run(folder, "change", "second", "--no-approve", "--title", "Third").exit_code == 0
    assert "Third" in run(folder, "list").output
    assert run(folder, "remove", "second", "--yes").exit_code == 0
    assert "Third" not in run(folder, "list").output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("create", "coast"), "already"),
        (("create", "../x"), "invalid portal name"),
        (("build", "other"), "unknown portal 'other'"),
        (("change", "coast", "--topic", "none"), None),
    ],
)
def test_errors_have_a_remedy(folder, words, why):
    result = run(folder, *words)
    assert (result.exit_code, why is None or why in result.output) == (2 if why else 0, True)
    if why is None:
        assert "no topic 'none'" in run(folder, "build").output


def test_every_command_takes_the_portal_as_argument_or_with_p(folder):
    assert run(folder, "create", "-p", "second").exit_code == 0
    key = json.loads(run(folder, "show", "-p", "second", "-f", "json").stdout)["entries"][0]["key"]
    for words in (("approve", "second", key), ("hide", key, "--portal", "second"), ("show", "second", "-p", "second")):
        assert run(folder, *words).exit_code == 0, words
    hidden = portals.edition_of(folder, portals.find_portal(folder, "second"), NOW).hidden
    assert [entry.key for entry in hidden] == [key]
    for words in (("show", "coast", "-p", "second"), ("create",), ("remove", "--yes"), ("approve", key)):
        assert run(folder, *words).exit_code == 2, words
    assert run(folder, "remove", "-p", "second", "--yes").exit_code == 0


def test_a_repeated_edition_recomputes_no_description_and_is_equal(folder, monkeypatch):
    """Sentences and keywords are stored until a page changes; decisions of an editor do not change them."""
    described = []
    describe = portal_entries._Describing.description
    monkeypatch.setattr(
        portal_entries._Describing,
        "description",
        lambda self, story: described.append(story.title) or describe(self, story),
    )
    first = edition(folder)
    assert len(described) == len(first.entries)
    described.clear()
    portals.decide(folder, first.portal, "pin", [first.entries[-1].key], NOW)
    again = edition(folder)
    assert {one.key: (one.sentence, one.keywords, one.provenance) for one in again.entries} == {
        one.key: (one.sentence, one.keywords, one.provenance) for one in first.entries
    }
    assert described == []
    (folder / column_files.ENTRIES).unlink()
    assert edition(folder) == again


def test_deleted_pages_are_in_no_description(folder):
    first = edition(folder)
    gone = first.entries[0].story.pages[0].url
    delete(folder, Deletion(pages=(url_id(gone),)))
    assert not (folder / column_files.ENTRIES).exists()
    assert all(page.url != gone for one in edition(folder).entries for page in one.story.pages)
