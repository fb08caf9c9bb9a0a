"""Screens of topics: training, labelling, classification, topical crawls."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from click.testing import CliRunner

from interface import client, token_of
from periplus.api.collection import Collection
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.store.sqlite.job_file import folder_queue
from periplus_topics.api.labelling import Labelling, Sessions
from periplus_topics.api.topical_run import HarvestPoint, harvest_of, is_due, note_harvest
from periplus_topics.api.topics import (
    TopicOrder,
    stored_examples,
    stored_judgements,
    stored_labels,
    topic_names,
    train_topic,
)
from periplus_topics.screens.topics import crawl_order, examples_of, train_order
from stored import copied, stored
from unit.test_ui_accessible import faults

SEA = ["ship", "harbour", "sailor", "captain", "voyage", "deck", "anchor", "sail", "storm", "crew"]
FOOD = ["recipe", "oven", "butter", "flour", "salt", "sugar", "onion", "garlic", "sauce", "dough"]
TOPIC = "/c/c/topic/sea"
LABEL = f"{TOPIC}/label"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A collection of 16 pages about the sea and 16 about food, classified by a topic trained with four of each."""
    where = tmp_path_factory.mktemp("topics")
    rng = random.Random(7)
    pages = {
        f"https://e.org/{name}/{at}": _html(f"{name} {at}", rng, words)
        for name, words in (("sea", SEA), ("food", FOOD))
        for at in range(16)
    }
    home = "<!DOCTYPE html><title>Home</title>" + "".join(f'<a href="{url}">{url[-2:]}</a>' for url in pages)
    stored(where / "c.periplus", {"https://e.org/": home, **pages}, ["https://e.org/"])
    examples = [[f"https://e.org/{kind}/{at}" for at in range(4)] for kind in ("sea", "food")]
    with Collection(where / "c.periplus") as kept:
        train_topic(kept, TopicOrder("sea", *examples))
    done = CliRunner().invoke(
        main, ["topic", "judge", "sea", "--keep", "-c", str(where / "c.periplus")], catch_exceptions=False
    )
    assert done.exit_code == 0
    return where


def _html(title: str, rng: random.Random, words: list[str]) -> str:
    text = " ".join(rng.choice([*words, "the", "of", "and", "to", "in"]) for _ in range(60))
    return f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1><p>{text}</p>"


@pytest.fixture
def folder(learned, tmp_path):
    """A copy that a test can change."""
    return copied(learned, tmp_path)


def asked_jobs(folder: Path) -> list[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    queue = folder_queue(folder)
    found = [(job.order.command, job.order.then) for job in queue.jobs()]
    queue.close()
    return found


def sent(asking, path: str, at: str = LABEL, /, **form: str):
    return asking.post(path, data={"csrf_token": token_of(asking, at), **form})


@pytest.mark.parametrize(
    "path",
    [
        "/c/c/topics",
        "/c/c/topics?name=x&words=ship",
        TOPIC,
        f"{TOPIC}?show=crawl",
        LABEL,
        "/c/c/t/judged:sea",
        "/c/c/t/words:sea",
    ],
)
def test_each_screen_has_landmarks_labels_and_its_json(folder, path):
    asking = client(folder)
    answer = asking.get(path)
    assert answer.status_code == 200, answer.text
    assert faults(answer.text) == []
    assert isinstance(asking.get(path, headers={"accept": "application/json"}).json(), dict)


def test_a_topic_is_shown_with_its_scores_words_and_best_pages(folder):
    shown = client(folder).get(f"{TOPIC}?format=json").json()
    assert (shown["facts"]["positive_examples"], shown["pages"], shown["stale"]) == (4, 33, False)
    assert {word["word"] for word in shown["for_it"]} & set(SEA)
    assert all("/sea/" in page["url"] for page in shown["best"])
    (row,) = client(folder).get("/c/c/topics?format=json").json()["topics"]
    assert (row["name"], row["positives"], row["labels"], row["fault"]) == ("sea", 4, 0, "")


def test_classified_pages_can_be_filtered_and_downloaded_with_their_labels(folder):
    asking = client(folder)
    first = asking.get(f"{LABEL}?format=json").json()["page"]["url"]
    sent(asking, LABEL, page=first, what="yes")
    rows = asking.get("/c/c/t/judged:sea?format=json&relevant=yes&per=500").json()
    assert rows["count"]["rows"] == 16
    assert asking.get("/c/c/t/judged:sea?label=relevant&format=json").json()["rows"][0][2] == first
    assert len(asking.get("/c/c/t/judged:sea.csv?relevant=yes").text.splitlines()) == 17
    assert asking.get("/c/c/t/judged:none").status_code == 200  # an unknown topic has no rows
    for bad in ("judged:..", "judged:", "words:none", "judged:a/b", "nothing:sea"):
        assert asking.get(f"/c/c/t/{bad}").status_code in (400, 404), bad


def test_a_label_is_stored_immediately_and_another_page_is_shown(folder):
    asking = client(folder)
    first = asking.get(f"{LABEL}?format=json").json()
    assert first["answers"] == 0
    assert sent(asking, LABEL, page=first["page"]["url"], what="no").status_code == 303
    assert [(label.name, label.positive) for label in stored_labels(folder / "c.periplus", "sea")] == [
        (first["page"]["url"], False)
    ]
    second = asking.get(f"{LABEL}?format=json").json()
    assert (second["answers"], second["labels_total"], second["left"]) == (1, 1, first["left"] - 1)
    assert second["page"]["url"] != first["page"]["url"]
    assert 0 <= second["scores"]["f"] <= 1
    low, high = second["f_interval"]
    assert low <= second["scores"]["f"] <= high


def test_a_repeated_label_counts_once(folder):
    asking = client(folder)
    url = asking.get(f"{LABEL}?format=json").json()["page"]["url"]
    for _ in range(2):
        sent(asking, LABEL, page=url, what="yes")
    assert len(stored_labels(folder / "c.periplus", "sea")) == 1


def test_undo_removes_the_last_label_and_shows_the_page_again(folder):
    asking = client(folder)
    urls = []
    for what in ("yes", "no"):
        urls.append(asking.get(f"{LABEL}?format=json").json()["page"]["url"])
        sent(asking, LABEL, page=urls[-1], what=what)
    sent(asking, LABEL, what="undo")
    assert [label.name for label in stored_labels(folder / "c.periplus", "sea")] == urls[:1]
    assert asking.get(f"{LABEL}?format=json").json()["page"]["url"] == urls[1]
    sent(asking, LABEL, page=urls[1], what="skip")
    for _ in range(3):  # one more than the number of labels
        sent(asking, LABEL, what="undo")
    assert stored_labels(folder / "c.periplus", "sea") == []
    assert all(example.source != "labelled" for example in stored_examples(folder / "c.periplus", "sea"))
    assert sent(asking, LABEL, what="perhaps").status_code == 400


def test_undoing_a_label_restores_the_earlier_one(folder):
    collection = folder / "c.periplus"
    with Collection(collection) as kept:
        session = Labelling(kept, "sea")
        url = session.current_page().url
        session.answer(True)
        session.undo()
        assert session.current_page().url == url
        session.answer(False)
        assert [(label.name, label.positive) for label in stored_labels(collection, "sea")] == [(url, False)]
        assert session.finish(kept).report.scores.f > 0


def test_training_uses_the_labels_and_starts_a_new_session(folder):
    asking = client(folder)
    url = asking.get(f"{LABEL}?format=json").json()["page"]["url"]
    sent(asking, LABEL, page=url, what="yes")
    sent(asking, f"{TOPIC}/do", what="learn")
    assert asked_jobs(folder) == [
        (("topic", "learn", "sea", "-c", "c.periplus"), (("topic", "judge", "sea", "-c", "c.periplus", "--keep"),))
    ]
    done = CliRunner().invoke(main, ["topic", "learn", "sea", "-c", str(folder / "c.periplus")], catch_exceptions=False)
    assert "5 positive examples" in done.output
    again = asking.get(f"{LABEL}?format=json").json()
    assert (again["answers"], again["labels_total"]) == (0, 1)
    assert again["page"]["url"] != url
    assert asking.get(f"{TOPIC}?format=json").json()["stale"] is True


def test_a_topic_is_trained_from_words_and_pages_but_never_from_files(folder):
    asking = client(folder)
    form = {
        "name": "ships",
        "words": "ship, harbour",
        "positives": "https://e.org/sea/*\nsearch:deck OR sail",
        "negatives": "e.org/food/1",
    }
    line = asking.get("/c/c/topics", params=form).text
    assert "periplus topic train ships -c c.periplus" in line
    assert asked_jobs(folder) == []
    assert sent(asking, "/c/c/topics", "/c/c/topics", **form).status_code == 303
    ((command, then),) = asked_jobs(folder)
    assert command == (
        "topic", "train", "ships", "-c", "c.periplus", "-p", "words:ship harbour", "-p", "https://e.org/sea/*", "-p",
        "search:deck OR sail",
        "-n", "https://e.org/food/1",
    )  # fmt: skip
    assert then == (("topic", "judge", "ships", "-c", "c.periplus", "--keep"),)
    for bad in (
        {"name": "../x"},
        {"name": "-c"},
        {"words": "", "positives": ""},
        {"positives": "file:///etc/*"},
    ):
        assert sent(asking, "/c/c/topics", "/c/c/topics", **(form | bad)).status_code == 400, bad


@pytest.mark.parametrize(
    "line", ["/etc/passwd", "file:///etc/passwd", "-p", "javascript:alert(1)", "user@host.org", "ftp://e.org/*"]
)
def test_a_line_of_examples_never_becomes_a_file(line):
    """It becomes a URL or is refused."""
    try:
        (spec,) = examples_of(line)
    except UsageError:
        return
    assert spec.startswith(("https://", "http://"))


def test_a_topical_crawl_starts_where_the_collection_started(folder):
    asking = client(folder)
    sent(asking, f"{TOPIC}/do", what="crawl", max_pages="50", least_harvest="10 %", delay="2")
    ((command, then),) = asked_jobs(folder)
    assert command == (
        "topic",
        "crawl",
        "sea",
        "https://e.org/",
        "-c",
        "c.periplus",
        "--max-pages",
        "50",
        "--delay",
        "2",
        "--least-harvest",
        "0.1",
    )
    assert then[0][:2] == ("topic", "judge")
    assert "topic crawl sea" in asking.get(f"{TOPIC}?show=crawl").text
    assert "csrf_token=" not in asking.get(f"{TOPIC}?show=crawl").url.query.decode()
    assert [job["order"]["command"][1] for job in asking.get(f"{TOPIC}?format=json").json()["jobs"]] == ["crawl"]
    for bad in ({"least_harvest": "200"}, {"least_harvest": "x"}, {"max_pages": "-1"}, {"seeds": "javascript:x"}):
        with pytest.raises(UsageError):
            crawl_order("sea", {"max_pages": "5"} | bad, (), "c.periplus")


def test_a_topic_is_deleted_only_by_its_name(folder):
    asking = client(folder)
    assert sent(asking, f"{TOPIC}/do", what="remove", sure="see").status_code == 400
    assert sent(asking, f"{TOPIC}/do", what="remove", sure="sea").status_code == 303
    assert topic_names(folder / "c.periplus") == []
    assert list((folder / "c.periplus" / "topics").iterdir()) == []
    assert asking.get(TOPIC).status_code == 400
    assert asking.get(LABEL).status_code == 400


def test_the_harvest_is_recorded_at_intervals_and_drawn(folder):
    collection = folder / "c.periplus"
    noted = 0
    for pages in range(1, 2_001):
        if is_due(pages, noted):
            noted = pages
            note_harvest(collection, "sea", HarvestPoint(float(pages), pages, pages // 2, 0.5))
    assert 100 <= len(harvest_of(collection, "sea")) <= 200
    note_harvest(collection, "sea", HarvestPoint(1.0, 500, 400, 0.8))  # another run classified the same pages again
    with (collection / "topics" / "sea.harvest.jsonl").open("a") as file:
        file.write('{"when": 1.0, "pa')
    points = harvest_of(collection, "sea")
    assert [point.pages for point in points] == sorted({point.pages for point in points})
    assert points[-1] == HarvestPoint(1.0, 500, 400, 0.8)
    picture = client(folder).get(f"{TOPIC}/harvest.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "400 of 500 pages are on the topic" in picture.text
    assert "400 of 500" in client(folder).get(TOPIC).text


def test_all_classified_pages_are_stored_even_if_few_are_listed(folder):
    collection = folder / "c.periplus"
    done = CliRunner().invoke(
        main, ["topic", "judge", "sea", "--keep", "-n", "2", "--json", "-c", str(collection)], catch_exceptions=False
    )
    assert len(done.stdout.splitlines()) == 2
    kept = [one.page.probability for one in stored_judgements(collection, "sea")]
    assert len(kept) == 33
    assert kept == sorted(kept, reverse=True)
    assert kept[0] == json.loads(done.stdout.splitlines()[0])["probability"]


def test_an_invalid_training_order_is_refused():
    with pytest.raises(UsageError, match="a few words"):
        train_order({"name": "x"}, "c.periplus")
    with pytest.raises(UsageError, match="name"):
        train_order({"name": "", "words": "ship"}, "c.periplus")


def test_different_topics_can_be_labelled_at_the_same_time_and_one_topic_in_turn(folder):
    with Collection(folder / "c.periplus") as kept:
        train_topic(
            kept, TopicOrder("food", *([f"https://e.org/{kind}/{at}" for at in range(4)] for kind in ("food", "sea")))
        )
    sessions, place = Sessions(), folder / "c.periplus"
    with ThreadPoolExecutor(2) as people, sessions.of(place, "sea") as sea:

        def asked(topic: str) -> Labelling:
            with sessions.of(place, topic) as session:
                return session

        assert people.submit(asked, "food").result(60) is not sea
        waits = people.submit(asked, "sea")
        assert not wait([waits], timeout=0).done
    assert waits.result(60) is sea


def test_each_text_is_labelled_once_and_examples_never(tmp_path):
    rng = random.Random(3)
    texts = [_html(name, rng, words) for name, words in (("sea", SEA), ("food", FOOD)) for _ in range(3)]
    pages = {f"https://e.org/{at}": text for at, text in enumerate([*texts, *texts])}
    home = "<!DOCTYPE html><title>Home</title>" + "".join(f'<a href="{url}">{url[-2:]}</a>' for url in pages)
    stored(tmp_path / "c.periplus", {"https://e.org/": home, **pages}, ["https://e.org/"])
    with Collection(tmp_path / "c.periplus") as kept:
        train_topic(kept, TopicOrder("sea", ["https://e.org/0"], ["https://e.org/3"]))
        session = Labelling(kept, "sea")
        assert session.left == 5  # the home page, and one page for each of four texts
        for _ in range(5):
            session.answer("food" not in session.current_page().title)
        assert session.current_page() is None
