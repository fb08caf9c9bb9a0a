"""Topics learned from examples: quality, files, warnings, commands."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from json_keys import keys_of, undocumented
from periplus.cli.main import main
from periplus.errors import StoreError, UsageError
from periplus.model.page import Block, BlockKind, Blocks, Part
from periplus_topics.analyse.judging import (
    Judge,
    content_text,
    topic_of_text,
    topic_text,
    word_counts,
)
from periplus_topics.analyse.training import (
    assess,
    average_precision,
    background_of,
    best_threshold,
    examples_of,
    f_interval,
    next_question,
    rows_of,
    scores_of,
    space_of,
    train,
    usual_threshold,
)
from periplus_topics.api.topics import judge_of, stored_examples, topic_of
from periplus_topics.model import Example
from stored import stored

SEA = [
    "ship",
    "harbour",
    "sailor",
    "captain",
    "voyage",
    "deck",
    "anchor",
    "sail",
    "storm",
    "crew",
    "cargo",
    "lighthouse",
    "tide",
    "fleet",
    "mast",
]
FOOD = [
    "recipe",
    "oven",
    "butter",
    "flour",
    "salt",
    "sugar",
    "onion",
    "garlic",
    "sauce",
    "dough",
    "soup",
    "bread",
    "cheese",
    "tomato",
    "spoon",
]
COMMON = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "that",
    "it",
    "was",
    "with",
    "for",
    "on",
    "as",
    "by",
    "at",
    "from",
    "this",
    "which",
    "had",
    "not",
    "be",
]


def text(rng: random.Random, words: list[str]) -> str:
    return " ".join(rng.choice(words) if rng.random() < 0.2 else rng.choice(COMMON) for _ in range(60))


def some_examples(number: int = 20, seed: int = 1) -> list[Example]:
    rng = random.Random(seed)
    return [
        Example(text(rng, words), words is SEA, "", f"{at}{words[0]}") for words in (SEA, FOOD) for at in range(number)
    ]


@pytest.fixture(scope="module")
def topic():
    examples = examples_of(some_examples())
    return assess(train("sea", examples), examples)


def test_a_topic_classifies_new_texts(topic):
    others = some_examples(seed=2)
    chances = Judge(topic).judge([example.text for example in others])
    assert scores_of(np.array([example.positive for example in others]), chances).f > 0.95
    assert topic.report.scores.f > 0.95


def test_a_topic_is_the_same_after_writing_and_reading(topic):
    written = topic_text(topic)
    read = topic_of_text(written, "here")
    assert topic_text(read) == written
    texts = [example.text for example in some_examples(seed=3)]
    assert (Judge(read).judge(texts) == Judge(topic).judge(texts)).all()
    json.loads(written)


def test_the_order_of_examples_does_not_matter():
    examples = some_examples()
    reordered = [*examples[::-1], examples[0]]
    assert topic_text(train("a", examples_of(examples)).topic) == topic_text(train("a", examples_of(reordered)).topic)


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(), max_size=80), max_size=4))
def test_any_text_has_a_probability(texts):
    chances = Judge(_TOPIC).judge(texts)
    assert chances.shape == (len(texts),)
    assert ((chances >= 0) & (chances <= 1)).all()


_TOPIC = train("sea", examples_of(some_examples(6))).topic


@settings(max_examples=20)
@given(st.lists(st.tuples(st.text(st.characters(), min_size=1, max_size=30), st.booleans()), min_size=2, max_size=8))
def test_any_examples_give_a_topic_or_are_refused(given_texts):
    try:
        found = train("x", examples_of([Example(words, positive) for words, positive in given_texts]))
    except UsageError:
        return
    assert topic_text(topic_of_text(topic_text(found.topic), "")) == topic_text(found.topic)


def test_texts_without_words_do_not_belong():
    assert (Judge(_TOPIC).judge(["", "12 34", "...", "\ud800"]) == 0).all()


def test_texts_without_known_words_do_not_belong():
    others = ["loď připlula do přístavu a námořníci šli na palubu", "корабль вошёл в гавань", "海港船员", "qqqq"]
    assert (Judge(_TOPIC).judge(others) < 0.5).all()


def test_case_and_diacritics_are_ignored():
    assert word_counts("Příliš ŽLUŤOUČKÝ") == word_counts("prilis zlutoucky") == {"prilis": 1, "zlutoucky": 1}
    assert word_counts("режиссёр") == word_counts("РЕЖИССЕР")


def test_scripts_without_spaces_are_split_into_pairs_of_characters():
    assert word_counts("海港船 ship") == {"海港": 1, "港船": 1, "ship": 1}


def test_the_judge_equals_weights_times_rows():
    found = train("sea", examples_of(some_examples()))
    texts = [example.text for example in some_examples(seed=9)]
    rows = rows_of([word_counts(text) for text in texts], found.space)
    distances = found.topic.steepness * (rows @ found.topic.weights.astype(np.float64) - found.topic.threshold)
    assert np.allclose(Judge(found.topic).judge(texts), 1 / (1 + np.exp(-distances)), atol=1e-6)


def test_rows_are_tf_idf():
    space = space_of([{"a": 2, "b": 1}, {"a": 1}, {"a": 1, "b": 1, "c": 1}])
    assert list(space.places) == ["a", "b"]  # c occurs in one text
    assert space.rarities.tolist() == pytest.approx([1.0, np.log(4 / 3) + 1])
    (row,) = rows_of([{"a": 2, "b": 1}], space).toarray()
    plain = np.array([1 + np.log(2), np.log(4 / 3) + 1])
    assert row == pytest.approx(plain / np.linalg.norm(plain))
    (other,) = rows_of([{"a": 2, "b": 1, "c": 5}], space).toarray()
    assert other == pytest.approx(row)


def test_the_threshold_follows_f_where_positives_are_rare():
    """It is far above the middle if a tenth of many negatives scores like the weakest positives."""
    rng = np.random.default_rng(3)
    labels = np.arange(1_000) < 50
    scores = np.where(labels, rng.normal(3.0, 1.0, 1_000), rng.normal(0.0, 1.0, 1_000))
    best = scores_of(labels, (scores >= best_threshold(labels, scores)).astype(np.float64)).f
    middle = float(np.median(scores[labels]) + np.median(scores[~labels])) / 2
    seen = np.concatenate([rng.normal(3.0, 1.0, 20), rng.normal(0.0, 1.0, 400)])
    background = background_of(labels, scores, seen)
    for threshold in (usual_threshold(labels, scores), background.threshold()):
        assert scores_of(labels, (scores >= threshold).astype(np.float64)).f > best - 0.03
        assert threshold > middle


def _mixed(rng: np.random.Generator, positives: int, negatives: int):
    """(labels, scores) of two overlapping classes."""
    labels = np.arange(positives + negatives) < positives
    return labels, rng.normal(np.where(labels, 2.5, 0.0), 1.0)


def test_threshold_and_expected_f_follow_the_share_of_positives_in_the_background():
    """A fifth of the examples is positive, and one page in sixteen of those that are judged."""
    rng = np.random.default_rng(5)
    labels, scores = _mixed(rng, 200, 800)
    truth, seen = _mixed(rng, 250, 3_750)
    background = background_of(labels, scores, seen)
    threshold = background.threshold()
    assert background.chances.mean() == pytest.approx(1 / 16, abs=0.02)
    field = scores_of(truth, (seen > threshold).astype(np.float64))
    precision, recall = background.precision_recall(threshold)
    assert 2 * precision * recall / (precision + recall) == pytest.approx(field.f, abs=0.05)
    assert field.f > scores_of(truth, (seen > best_threshold(labels, scores)).astype(np.float64)).f + 0.03


def test_without_background_negatives_are_assumed_to_be_more_frequent_than_among_the_examples():
    labels, scores = _mixed(np.random.default_rng(6), 200, 800)
    assert usual_threshold(labels, scores, 3.0) > usual_threshold(labels, scores) + 0.1
    repeated, more = np.repeat(labels, np.where(labels, 1, 3)), np.repeat(scores, np.where(labels, 1, 3))
    counted, weighed = (
        scores_of(kinds, (values > 1.7).astype(np.float64), rarity)
        for kinds, values, rarity in ((repeated, more, 1.0), (labels, scores, 3.0))
    )
    assert weighed[:3] == pytest.approx(counted[:3])


def test_training_warns_without_background_only():
    examples, pages = examples_of(some_examples()), [word_counts(example.text) for example in some_examples(60, 2)]
    warnings = [
        assess(train("sea", examples, background), examples).report.warnings for background in ([], pages[:99], pages)
    ]
    assert [any("as background" in line for line in lines) for lines in warnings] == [True, True, False]


def test_the_interval_of_f_contains_f_and_narrows_with_examples():
    rng = np.random.default_rng(4)
    few, many = ((np.arange(size) < size // 4) for size in (40, 1_000))
    intervals = []
    for labels in (few, many):
        chances = np.clip(np.where(labels, 0.7, 0.3) + rng.normal(0, 0.25, len(labels)), 0, 1)
        low, high = f_interval(int(labels.sum()), scores_of(labels, chances))
        assert 0 <= low <= scores_of(labels, chances).f <= high <= 1
        intervals.append(high - low)
    assert intervals[1] < intervals[0] / 2


@pytest.mark.parametrize(("positives", "recall", "alarms"), [(30, 0.9, 0.02), (10, 0.8, 0.04), (10, 0.97, 0.005)])
def test_the_interval_of_f_contains_the_true_f_in_nine_cases_of_ten(positives, recall, alarms):
    """Also if all examples are classified correctly, which is common with few examples."""
    rng = np.random.default_rng(1)
    labels = np.arange(6 * positives) < positives
    truth = 2 * recall / (recall + 5 * alarms + 1)
    hits = 0
    for _ in range(1_000):
        right = rng.random(len(labels)) < np.where(labels, recall, alarms)
        low, high = f_interval(positives, scores_of(labels, right.astype(np.float64)))
        hits += low <= truth <= high
    assert 870 <= hits <= 970


def test_the_interval_is_not_empty_if_all_examples_are_correct():
    labels = np.arange(60) < 10
    low, high = f_interval(10, scores_of(labels, labels.astype(np.float64)))
    assert 0.8 < low < 0.9
    assert high == 1.0


def test_content_is_classified_without_navigation():
    rows = (
        Block(BlockKind.TITLE, "Title", ""),
        Block(BlockKind.LINK, "menu", ""),
        Block(BlockKind.PARAGRAPH, "message", ""),
        Block(BlockKind.ALT, "image", ""),
    )
    blocks = Blocks.of(rows)
    marks = (Part.CONTENT, Part.NAVIGATION, Part.CONTENT, Part.CONTENT)
    assert content_text("Title", blocks, marks) == "Title\nmessage"
    assert (
        content_text("Title", blocks, None)
        == content_text("Title", blocks, (Part.NAVIGATION,) * 4)
        == "Title\nmenu\nmessage"
    )


def test_average_precision_agrees_with_its_definition():
    truth, scores = np.array([True, False, True, False, True]), np.array([0.9, 0.8, 0.7, 0.6, 0.1])
    assert average_precision(truth, scores) == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 3)
    assert average_precision(truth, np.zeros(5)) == pytest.approx(3 / 5)  # for any order of equal scores
    assert average_precision(np.zeros(2, np.bool_), np.ones(2)) == 0.0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=20))
def test_the_best_threshold_maximizes_f(pairs):
    truth, scores = np.array([pair[0] for pair in pairs]), np.array([float(pair[1]) for pair in pairs])

    def f(threshold: float) -> float:
        return scores_of(truth, (scores >= threshold).astype(np.float64)).f

    assert f(best_threshold(truth, scores)) == pytest.approx(max(f(score) for score in scores))


def test_a_text_that_is_positive_and_negative_is_refused():
    with pytest.raises(UsageError, match="is both a positive and a negative example"):
        examples_of([Example("a ship", True, "", "x.txt"), Example("a ship", False)])


def test_one_kind_of_examples_is_not_enough():
    with pytest.raises(UsageError, match="no negative example"):
        train("x", examples_of([Example("a ship", True)]))


@pytest.mark.parametrize("damaged", ["", "{}", "[]", '{"periplus_topic": 1}', '{"periplus_topic": "x"}', "null"])
def test_a_damaged_topic_is_refused_with_its_file(damaged):
    with pytest.raises(StoreError, match="here is not a topic, or damaged"):
        topic_of_text(damaged, "here")


def test_a_topic_of_a_newer_program_is_refused():
    with pytest.raises(StoreError, match="newer Periplus"):
        topic_of_text('{"periplus_topic": 99}', "here")


def test_negatives_of_another_source_are_noticed():
    rng = random.Random(5)
    style = ["posted", "reply", "writes", "article"], ["chapter", "index", "section", "page"]

    def styled(words: list[str], own: list[str]) -> str:
        return text(rng, words) + " " + " ".join(own)

    apart = [Example(styled(words, style[words is FOOD]), words is SEA) for words in (SEA, FOOD) for _ in range(20)]
    alike = [Example(styled(words, style[0]), words is SEA) for words in (SEA, FOOD) for _ in range(20)]
    warned, calm = (
        assess(train("x", examples), examples).report.warnings for examples in map(examples_of, (apart, alike))
    )
    assert any("posted" in warning and "chapter" in warning for warning in warned)
    assert not any("few of the other" in warning for warning in calm)


def test_a_source_with_other_content_is_named():
    rng = random.Random(6)
    kitchens = ["oven", "pan", "stove", "kettle", "grill", "mixer", "blender", "fridge", "knife", "bowl"]
    given_examples = [
        *(Example(text(rng, SEA), True, "ships.org") for _ in range(12)),
        *(Example(text(rng, kitchens), True, "kitchens.org") for _ in range(12)),
        *(Example(text(rng, FOOD), False, "food.org") for _ in range(24)),
    ]
    examples = examples_of(given_examples)
    report = assess(train("x", examples), examples).report
    assert dict(report.held_out).keys() == {"ships.org", "kitchens.org"}
    assert any("trained without" in warning for warning in report.warnings)


def html(title: str, words: str) -> str:
    return f"<!DOCTYPE html><title>{title}</title><p>{words}</p>"


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A collection of 16 pages about the sea and 16 about food, and folders with examples."""
    where = tmp_path_factory.mktemp("topics")
    rng = random.Random(7)
    pages = {
        f"https://e.org/{name}/{at}": html(f"{name} {at}", text(rng, words))
        for name, words in (("sea", SEA), ("food", FOOD))
        for at in range(16)
    }
    home = "<!DOCTYPE html><title>Home</title>" + "".join(f'<a href="{url}">{url[-2:]}</a>' for url in pages)
    stored(where / "c.periplus", {"https://e.org/": home, **pages}, ["https://e.org/"])
    for name, words in (("sea", SEA), ("food", FOOD)):
        (where / name).mkdir()
        for at in range(8):
            (where / name / f"{at}.txt").write_text(text(rng, words))
    return where


def run(collected, *arguments: str, keys: str = ""):
    return CliRunner().invoke(main, ["topic", *arguments, "-c", str(collected / "c.periplus")], input=keys)


def trained(collected, name: str, *more: str):
    done = run(collected, "train", name, "-p", str(collected / "sea"), "-n", str(collected / "food"), *more)
    assert done.exit_code == 0, done.output
    return done


def test_a_topic_from_folders_classifies_the_pages_of_a_collection(collected):
    shown = json.loads(trained(collected, "sea", "--json").stdout)
    assert (shown["positive_examples"], shown["negative_examples"]) == (8, 8)
    assert {word["word"] for word in shown["top_words"]} & set(SEA)
    assert undocumented(keys_of(shown)) == []
    judged = [json.loads(line) for line in run(collected, "judge", "sea", "-n", "-1", "--json").stdout.splitlines()]
    assert all("/sea/" in page["url"] for page in judged[:16])
    assert all(page["probability"] >= 0.5 for page in judged[:16])
    assert all(page["probability"] < 0.5 for page in judged[16:])
    assert "sea" in run(collected, "list").stdout
    assert "for it: " in run(collected, "show", "sea").stdout
    chance = judge_of(collected / "c.periplus", "sea").judge(["ship harbour crew"])
    assert chance.dtype == np.float64
    assert chance[0] > 0.5


def test_examples_can_be_pages_patterns_and_searches(collected):
    one = run(
        collected,
        "train",
        "by_pages",
        "-p",
        "https://e.org/sea/*",
        "-n",
        "https://e.org/food/1",
        "-n",
        "e.org/food/2",
        "--json",
    )
    assert json.loads(one.stdout)["positive_examples"] == 16
    few = run(collected, "train", "by_words", "-p", "words:harbour sailor", "-n", "search:oven OR dough", "--json")
    assert few.exit_code == 0, few.output
    best = json.loads(run(collected, "judge", "by_words", "-n", "1", "--json").stdout)
    assert "/sea/" in best["url"]


def test_a_file_and_a_page_can_be_classified(collected):
    trained(collected, "both")
    found = run(
        collected, "judge", "both", "https://e.org/sea/3", str(collected / "food" / "1.txt"), "--json"
    ).stdout.splitlines()
    assert [json.loads(line)["probability"] >= 0.5 for line in found] == [True, False]


def test_pages_can_be_labelled_and_labels_are_stored(collected):
    trained(collected, "asked")
    done = run(collected, "label", "asked", keys="y\nn\ns\nq\n")
    assert done.stdout.count("90 % interval") == 3  # after each answer, and at the end
    assert done.exit_code == 0, done.output
    assert "2 pages labelled" in done.stdout
    folder = collected / "c.periplus"
    labelled = [example for example in stored_examples(folder, "asked") if example.source == "labelled"]
    assert [example.positive for example in labelled] == [True, False]
    assert len(topic_of(folder, "asked").examples) == 18
    trained(collected, "asked")  # labels are kept by a new training
    assert len(topic_of(folder, "asked").examples) == 18
    assert run(collected, "label", "asked", keys="x\n").exit_code == 2
    assert "Nothing was labelled" in run(collected, "label", "asked", keys="").stderr


def test_the_next_page_to_label_is_the_least_certain_or_the_most_likely():
    chances = np.array([0.1, 0.45, 0.9])
    asked = [next_question(chances, answers) for answers in ([], [True], [False], [False, True], [False, True, False])]
    assert asked == [1, 1, 2, 1, 2]


def test_a_topic_can_be_labelled_and_shown(collected):
    trained(collected, "answered")
    assert "1 page labelled" in run(collected, "label", "answered", "-n", "1", keys="y\n").stdout
    assert "answered" in run(collected, "show", "answered").stdout


def test_removing_a_topic_deletes_its_files(collected):
    trained(collected, "gone")
    assert run(collected, "remove", "gone").stdout.count("Deleted") == 2
    refused = run(collected, "show", "gone")
    assert (refused.exit_code, "no topic 'gone'" in refused.stderr) == (2, True)


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The same collection, with each page under http and https."""
    where = tmp_path_factory.mktemp("twins")
    rng = random.Random(8)
    both = {
        f"e.org/{name}/{at}": html(f"{name} {at}", text(rng, words))
        for name, words in (("sea", SEA), ("food", FOOD))
        for at in range(8)
    }
    pages = {f"{scheme}://{place}": page for place, page in both.items() for scheme in ("http", "https")}
    home = "<!DOCTYPE html><title>Home</title>" + "".join(f'<a href="{url}">{url[-2:]}</a>' for url in pages)
    stored(where / "c.periplus", {"https://e.org/": home, **pages}, ["https://e.org/"])
    return where


@pytest.mark.parametrize(
    ("examples", "negatives"),
    [
        (("-p", "https://e.org/sea/*"), 9),  # the rest of the collection, without aliases of the positive pages
        (("-p", "https://e.org/sea/*", "-n", "http://e.org/*"), 8),
        (("-p", "e.org/sea/*", "-n", "search:ship OR oven"), 4),  # pages that contain "oven"
    ],
)
def test_a_page_under_http_and_https_is_one_page(twins, examples, negatives):
    done = run(twins, "train", "sea", *examples, "--json")
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert (shown["positive_examples"], shown["negative_examples"]) == (8, negatives)


def test_folders_of_examples_need_no_collection(collected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["topic", "train", "sea", "-p", str(collected / "sea"), "-n", str(collected / "food")]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["sea.periplus"]
    judged = CliRunner().invoke(main, ["topic", "judge", "sea", str(collected / "sea" / "0.txt"), "--json"])
    assert judged.exit_code == 0, judged.output
    assert (
        CliRunner().invoke(main, [*words, "-c", "other.periplus"]).exit_code == 0
        and (tmp_path / "other.periplus" / "topics" / "sea.json").exists()
    )
    alone = CliRunner().invoke(main, [*words[:5], "-c", "third.periplus"])
    assert alone.exit_code == 2 and not (tmp_path / "third.periplus").exists(), (
        "what it is not would be pages of a collection"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "../x", "-p", "sea"), "is not a valid topic name"),
        (("train", "x", "-p", "no/such/folder"), "is neither a file or folder here nor a page"),
        (("train", "x", "-p", "https://e.org/zzz*"), "gives no example"),
        (("train", "x", "-p", "words:"), "has no words"),
        (("judge", "none"), "has no topic 'none'"),
        (
            ("train", "x", "-p", "https://e.org/sea/1", "-n", "https://e.org/sea/1"),
            "is both a positive and a negative example",
        ),
    ],
)
def test_an_impossible_request_is_refused_with_advice(collected, arguments, message):
    done = run(collected, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
