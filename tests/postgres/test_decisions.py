"""Decisions of users are stored with the collection, in a folder or a database, and move with it."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from newsweb import NewsRecipe, news_web
from periplus.api.homes import files_of, home_of, open_reader
from periplus.cli.main import main
from periplus.cli.progress import NO_PROGRESS
from periplus.errors import StoreError, UsageError
from periplus.model.visit import Certificate
from periplus.store import page_notes
from periplus_postgres.connection import connect
from periplus_postgres.moving import into_database, move, silent
from periplus_studies.api import marks_in
from periplus_studies.model import SiteMark, SiteStatus
from periplus_studies.results import mark_sites
from periplus_topics.api import portal as portals
from periplus_topics.api.keywords import keywords
from periplus_topics.api.stories import influence, stored_stories, stories_of
from periplus_topics.api.topical_run import HarvestPoint, harvest_of, note_harvest
from periplus_topics.api.topics import JUDGED, changed_s, stored_judgements, stored_labels, topic_names, topic_of
from periplus_topics.model import Portal
from stored import page, stored

HOME = "https://e.org/"
SEA = "Harbours on this coast have lights, pilots and tides that are printed in the almanac of the year"
LAND = "Bread from rye flour is baked in stone ovens by the baker of the village every morning"
ANSWERS = {HOME: page("Home", *(f"/{kind}{n}" for kind in ("sea", "land") for n in range(6)))} | {
    f"https://e.org/{kind}{n}": page(f"{kind} {n}", "/", f"https://x.example/{kind}{n}", "tel:5")
    + f"<p>{text}, number {n}.</p>" * 3
    for kind, text in (("sea", SEA), ("land", LAND))
    for n in range(6)
}
EXAMPLES = [word for n in range(4) for word in ("-p", f"https://e.org/sea{n}", "-n", f"https://e.org/land{n}")]
WEB = news_web(NewsRecipe(seed=4, sites=9, stories=6, singles=4, days=20))
TRAIN = ("topic", "train", "sea", *EXAMPLES)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Switches to a user with a separate cache."""

    def use(number: int) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache-{number}"))

    monkeypatch.chdir(tmp_path)
    use(1)
    return use


@pytest.fixture(params=["folder", "database"])
def place(request: pytest.FixtureRequest, tmp_path: Path, own) -> Path | str:
    folder = stored(tmp_path / "c.periplus", ANSWERS, [HOME])
    return _in_database(folder, request.getfixturevalue("address")) if request.param == "database" else folder


def _in_database(folder: Path, address) -> str:
    into_database(folder, address.text, silent)
    return str(address.text)


@pytest.fixture
def there(tmp_path: Path, address, own) -> str:
    return _in_database(stored(tmp_path / "c.periplus", ANSWERS, [HOME]), address)


def ran(place: Path | str, *words: str, answers: str = "", code: int = 0) -> str:
    ended = CliRunner(env={NO_PROGRESS: "1"}).invoke(main, [*words, "-c", str(place)], input=answers)
    assert ended.exit_code == code, (words, ended.output, ended.exception)
    return ended.output


def test_a_topic_is_learned_labelled_judged_and_removed(place: Path | str, own, tmp_path: Path) -> None:
    assert "4 examples for, 4 against" in (ran(place, *TRAIN) and ran(place, "topic", "list"))
    assert "2 pages labelled" in ran(place, "topic", "label", "sea", answers="y\nn\nq\n")
    own(2)
    ran(place, "topic", "learn", "sea")
    assert len(topic_of(place, "sea").examples) == 10, "the answers of the first user among them"
    best = ran(place, "topic", "judge", "sea", "--keep").splitlines()[0]
    assert "https://e.org/sea" in best
    assert ran(place, "topic", "show", "sea")
    own(3)
    assert next(stored_judgements(place, "sea")).page.url in best, "all readers of the collection see it"
    assert changed_s(place, "sea", JUDGED) >= changed_s(place, "sea") > 0
    own(1)
    assert len(stored_labels(place, "sea")) == 2
    assert "sea.json" in ran(place, "topic", "remove", "sea")
    own(2)
    assert topic_names(place) == []
    assert not list(tmp_path.glob("cache-*"))


def test_a_topic_of_a_database_is_that_of_its_folder_and_leaves_no_copy(tmp_path: Path, own, address) -> None:
    folder = stored(tmp_path / "c.periplus", ANSWERS, [HOME])
    there = _in_database(folder, address)
    steps = {
        "train": TRAIN,
        "label": ("topic", "label", "sea"),
        "judge": ("topic", "judge", "sea", "--json", "--keep"),
        "learn": ("topic", "learn", "sea"),
        "judge again": ("topic", "judge", "sea", "-n", "-1", "--json"),
        "show": ("topic", "show", "sea", "-f", "json"),
        "list": ("topic", "list", "--json"),
        "remove": ("topic", "remove", "sea"),
    }
    own(1)
    for step, words in steps.items():
        answers = "y\nn\ny\nn\nq\n" if step == "label" else ""
        assert ran(there, *words, answers=answers) == ran(folder, *words, answers=answers) != "", step
        files, others = files_of(there), files_of(folder)
        names = files.names("topics/*")
        assert [(name, files.read(name)) for name in names] == [(name, others.read(name)) for name in names], step
        assert names == others.names("topics/*") and bool(names) == (step != "remove")
    assert not list(tmp_path.glob("cache-*"))


def test_certificates_and_curves_are_shared_and_move(place: Path | str, own, tmp_path: Path) -> None:
    seen, points = Certificate(9.0, True, "expired"), [HarvestPoint(5.0, 10, 4, 0.4), HarvestPoint(6.0, 20, 5, 0.1)]
    home_of(place).change(lambda statements: page_notes.store_certificates(statements, [("e.org", seen)], 7.0))
    for point in points:
        note_harvest(place, "sea", point)
    own(2)
    for one in (place, _moved(place, tmp_path)):
        with open_reader(one) as reader:
            assert page_notes.certificates(reader) == [("e.org", 7.0, seen)]
        assert harvest_of(one, "sea") == points


def _moved(place: Path | str, tmp_path: Path) -> Path:
    move(str(place), str(tmp_path / "back")) if isinstance(place, str) else None
    return tmp_path / "back" if isinstance(place, str) else place


def test_sites_are_marked_by_several(place: Path | str, own) -> None:
    ran(place, "survey", "mark", "e.org", "--status", "out", "--tag", "advertising")
    own(2)
    ran(place, "survey", "mark", "e.org", "--status", "undecided")
    own(1)
    assert marks_in(place) == {"e.org": SiteMark("e.org", SiteStatus.UNDECIDED)}


@pytest.fixture(params=["folder", "database"])
def news(request: pytest.FixtureRequest, tmp_path: Path, own) -> Path | str:
    """A collection with stories."""
    folder = stored(tmp_path / "n.periplus", WEB.pages, WEB.starts, now=WEB.now)
    return _in_database(folder, request.getfixturevalue("address")) if request.param == "database" else folder


def test_a_portal_is_made_edited_published_and_removed_by_two(news: Path | str, own, tmp_path: Path) -> None:
    assert "begun" in ran(news, "portal", "create", "coast", "--title", "The coast", "--sites", "4", "--approve")
    waiting = json.loads(ran(news, "portal", "show", "-f", "json"))["entries"]
    assert len(waiting) > 2 and {entry["verdict"] for entry in waiting} == {None}
    own(2)
    first, second, third = (entry["key"] for entry in waiting[:3])
    ran(news, "portal", "approve", "coast", first, second)
    own(1)
    ran(news, "portal", "hide", third[:5])
    ran(news, "portal", "edit", first, "--words", "The buoy is back.")
    own(2)
    assert "2 stories published" in ran(news, "portal", "build", "-o", str(tmp_path / "public"))
    assert "The buoy is back." in (tmp_path / "public" / "index.html").read_text()
    ran(news, "portal", "change", "--title", "Another coast")
    own(1)
    shown = json.loads(ran(news, "portal", "show", "-f", "json", "-n", "500"))
    decided = {entry["key"]: entry["verdict"] for entry in shown["entries"] if entry["verdict"]}
    assert decided == {first: "approved", second: "approved", third: "hidden"}
    assert "Another coast" in (out := ran(news, "portal", "list")) and "never built" not in out
    assert "index.html" in ran(news, "portal", "build")
    ran(news, "portal", "remove", "coast", "--yes")
    own(2)
    assert "No portal" in ran(news, "portal", "list")


def test_stories_and_portals_are_equal_in_a_folder_and_a_database(tmp_path: Path, address, own) -> None:
    folder = stored(tmp_path / "n.periplus", WEB.pages, WEB.starts, now=WEB.now)
    there = _in_database(Path(shutil.copytree(folder, tmp_path / "moved.periplus")), address)
    in_folder, in_database = _published(folder, tmp_path / "1"), _published(there, tmp_path / "2")
    assert in_folder == in_database
    assert len(in_folder[0].stories) > 2 and len(in_folder[1].entries) == 2
    assert {path.name for path in (tmp_path / "cache-1").rglob("*") if path.is_file()} == {
        "stories.read", "stories.json", "entries.json", "coast.review.json"
    }, "no copy"  # fmt: skip


def _published(place: Path | str, out: Path) -> tuple[Any, ...]:
    """What is found, decided and published."""
    made = Portal("coast", "The coast", 1.0, approve=True)
    portals.create(place, made)
    with pytest.raises(UsageError, match="exists already"):
        portals.create(place, replace(made, title="Another"))
    waiting = portals.edition_of(place, made, WEB.now).waiting
    portals.decide(place, made, "approve", [entry.key for entry in waiting[:3]], WEB.now)
    portals.decide(place, made, "pin", [waiting[0].story.sites[0]], WEB.now)
    portals.decide(place, made, "hide", [waiting[4].key], WEB.now)
    portals.decide(place, made, "reset", [waiting[2].key], WEB.now)
    portals.edit(place, made, waiting[0].key, portals.Edit("Seen.", b"\x89PNG\r\n\x1a\n", "A buoy"), WEB.now)
    edition, _ = portals.build(place, "coast", out, WEB.now)
    portals.edit(place, made, waiting[0].key, portals.Edit("Seen again."), WEB.now + 1)
    review = replace(portals.review_of(place, "coast"), gathered=0.0)
    files = {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    found = keywords(place), influence(place), stored_stories(place), portals.portals(place)
    return stories_of(place), edition, review, files, found


def test_links_of_a_survey_are_deleted_as_chosen_and_no_others(tmp_path: Path, place: Path | str, own) -> None:
    ran(place, "survey", "create", HOME)
    every = _links(place, "external"), _links(place, "bad")
    assert [len(rows) for rows in every] == [12, 12]
    chosen = [row for row in every[0] if "x.example/sea" in row]
    assert "Deleted 6 links" in ran(place, "survey", "links", "--to", "x.example/sea", "--delete", "--yes")
    assert "Deleted 1 link" in ran(place, "survey", "links", "--kind", "bad", "--page", "sea3", "--delete", "--yes")
    own(2)
    assert _links(place, "external") == sorted(set(every[0]) - set(chosen))
    assert _links(place, "bad") == [row for row in every[1] if "sea3" not in row]
    own(1)
    assert len(_links(place, "external")) == 6


def test_the_message_for_a_missing_survey_has_no_password(there: str) -> None:
    hidden = there.replace("//postgres@", "//postgres:s3cret@")
    for words in (("status",), ("add", "x.org"), ("mark", "e.org", "--status", "in")):
        output = ran(hidden, "survey", *words, code=2)
        assert "has no survey" in output and "s3cret" not in output


def _links(place: Path | str, kind: str) -> list[str]:
    return sorted(ran(place, "survey", "links", "--kind", kind, "-f", "csv").splitlines()[1:])


def test_decisions_move_there_and_back(tmp_path: Path, address, own) -> None:
    folder = stored(tmp_path / "c.periplus", ANSWERS, [HOME])
    ran(folder, *TRAIN)
    mark_sites(folder, [SiteMark("e.org", SiteStatus.OUT, ("a", "b"))], 5.0)
    move(str(folder), address.text)
    move(address.text, str(tmp_path / "back"))
    assert "4 examples for, 4 against" in ran(tmp_path / "back", "topic", "list")
    assert marks_in(tmp_path / "back") == marks_in(folder) != {}
    assert _files(tmp_path / "back") == _files(folder) != {}


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "topics").iterdir()}


def test_no_mark_is_lost_between_users(there: str, own) -> None:
    """Two users with separate caches add to earlier marks."""
    for number in (1, 2, 2, 1, 2):
        own(number)
        (times,) = [len(mark.tags) for mark in marks_in(there).values()] or [0]
        mark_sites(there, [SiteMark("e.org", SiteStatus.OUT, ("x",) * (times + 1))], 6.0)
    (mark,) = marks_in(there).values()
    assert len(mark.tags) == 5


def test_a_read_only_user_gets_a_message(there: str, address) -> None:
    role = f"reader_{address.collection}"
    with contextlib.closing(connect(address)) as database:
        database.execute(f"CREATE ROLE {role} LOGIN".encode())
        database.execute(f"GRANT USAGE ON SCHEMA {address.collection} TO {role}".encode())
        database.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.collection} TO {role}".encode())
        database.execute(f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {address.collection} TO {role}".encode())
        try:
            reader = there.replace("//postgres@", f"//{role}@")
            assert "permission denied for table file" in ran(reader, *TRAIN, code=1)
            with pytest.raises(StoreError, match="permission denied for table survey_mark"):
                mark_sites(reader, [SiteMark("e.org", SiteStatus.OUT)], 5.0)
            assert "No topic yet" in ran(reader, "topic", "list")
        finally:
            database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_file_of_another_name_never_leaves_the_database(there: str, tmp_path: Path, address) -> None:
    """A writer to a database must not be able to write to the disks of its readers."""
    with contextlib.closing(connect(address)) as database:
        for name in ("../evil.json", "topics/../../evil.json", "/tmp/evil.json", "topics/a.sh", "topics/.x.json"):
            database.execute("INSERT INTO file VALUES (%s, 'x')", (name,))
    folder = _moved(there, tmp_path)
    assert not list(tmp_path.rglob("*evil*")) and not list((folder / "topics").glob("*"))
