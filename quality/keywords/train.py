"""Trains the shipped weights, and scores them on held-out sets.

    CORPORA=... MANUALS=... python quality/keywords/train.py [--page] [--held-out [SET...]]

Needs catboost and scikit-learn, which are not dependencies of the project. Writes `forests.json` and `tags.json`; with
--held-out it writes nothing and prints the score of each set with weights trained on the other sets (help pages: on
other pages in other languages).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))  # this folder, however the file is started

from gold import Text, sets, stems
from scoring import f1

from periplus_topics.analyse import keyword_measures as phrase_measures
from periplus_topics.analyse import keyword_reading
from periplus_topics.analyse.keyword_measures import measures, page_measures
from periplus_topics.analyse.keyword_reading import (
    NOTHING,
    Candidates,
    Reading,
    candidates,
    count_texts,
    read,
    together,
)

Floats = npt.NDArray[np.float32]
TABLES = Path(phrase_measures.__file__).parent
PASSAGES = {"SemEval2017": 1.0, "Inspec": 1.0, "pak2018": 1.0}
# www: passages with four keywords each, mostly absent from the text: training on it cost SemEval2017 and Inspec up to
# six points. The last two are long texts, not used for training or selection
ONLY_SCORED = ("www", "theses100", "fao30")
# per set of pages; papers have ten times the candidates of news
TEXTS_OF_PAGES = 150
PAGE_TEXTS = {"Russian news": 350, "Nguyen2007": 140, "SemEval2010": 140, "citeulike180": 140}
# lower weights: readers marked about 48 words per text in the first set, mostly single words: at 0.5 phrases ranked
# too low
PAGES = {"500N-KPCrowd": 0.1, "Russian news": 1.0, "wiki20": 1.0}
TAGGED_LANGUAGE = "en"
FOLDS = 4
TREES = {"passage": 150, "page": 150}
WRONG_ONES = 80  # wrong candidates per text: enough for training
TRAITS_SEEN, TRAIT_LEAST = 4, 20  # least number of places; hundredths
TEXTS = 1_000  # per set of passages


class Row(NamedTuple):
    """A text as a training example."""

    text: Text
    reading: Reading
    found: Candidates
    measures: Floats  # [m, n]
    on_pages: list[Floats]  # [m + 1, n] each: alone, in a quarter of its set, in its set, with other sets too
    right: npt.NDArray[np.bool_]  # [n]


IN_SET = 2  # of `Row.on_pages`
PARTS = 4  # of a set: trains with collections of several sizes, including none


def rows(texts: Sequence[Text], others: Sequence[Text] = ()) -> list[Row]:
    """Training rows of a set; its texts are one collection. others: texts of other sets in the same language."""
    readings = [read(text.text, text.language) for text in texts]
    counts = count_texts(readings)
    wide = together(counts, count_texts(read(text.text, text.language) for text in others))
    parts = [count_texts(readings[part::PARTS]) for part in range(PARTS)]
    result = []
    for number, (text, reading) in enumerate(zip(texts, readings, strict=True)):
        found = candidates(reading)
        if len(found.keys):
            written = [
                reading.original_words(int(place), int(size))
                for place, size in zip(found.places[found.first], found.sizes, strict=True)
            ]
            right = np.array([stems(phrase, text.language) in text.keywords for phrase in written])
            on_pages = [page_measures(reading, found, some) for some in (NOTHING, parts[number % PARTS], counts, wide)]
            result.append(Row(text, reading, found, measures(reading, found, counts), on_pages, right))
    return result


Tagger = Callable[[Reading], Floats]


def labels(row: Row) -> npt.NDArray[np.bool_]:
    """bool[words, 3]: whether a keyword begins at, ends at, contains the word."""
    marks = np.zeros((len(row.reading.words), 3), bool)
    for place, count, owner in zip(
        row.found.places.tolist(), row.found.counts.tolist(), row.found.owner.tolist(), strict=True
    ):
        if row.right[owner]:
            marks[place, 0] = marks[place + count - 1, 1] = True
            marks[place : place + count, 2] = True
    return marks


def tag_table(some: Sequence[Row]) -> dict[str, list[int]]:
    """Three logistic regressions over the traits of words."""
    text, linear = import_module("sklearn.feature_extraction.text"), import_module("sklearn.linear_model")
    seen = [word for row in some for word in keyword_reading.traits(row.reading)]
    vectors = text.CountVectorizer(analyzer=lambda traits: traits, min_df=TRAITS_SEEN, binary=True)
    matrix = vectors.fit_transform(seen)
    wanted = np.concatenate([labels(row) for row in some])
    models = [
        linear.LogisticRegression(C=0.15, solver="liblinear", tol=1e-3).fit(matrix, wanted[:, kind])
        for kind in range(3)
    ]
    weights = np.round(np.stack([model.coef_[0] for model in models], 1) * keyword_reading.SCALE).astype(int)
    weights[vectors.vocabulary_["*"]] += np.round(
        np.array([model.intercept_[0] for model in models]) * keyword_reading.SCALE
    ).astype(int)
    return {
        trait: weights[at].tolist()
        for trait, at in sorted(vectors.vocabulary_.items())
        if abs(weights[at]).max() >= TRAIT_LEAST or trait == "*"
    }


def tagger(table: dict[str, list[int]]) -> Tagger:
    def tagged(reading: Reading) -> Floats:
        none = [0, 0, 0]
        return (
            np.array(
                [np.sum([table.get(trait, none) for trait in word], 0) for word in keyword_reading.traits(reading)],
                np.float32,
            )
            / keyword_reading.SCALE
        )

    return tagged


def with_tags(row: Row, tagged: Tagger | None) -> Floats:
    known = tagged is not None and row.text.language == TAGGED_LANGUAGE
    return np.concatenate(
        (row.measures, keyword_reading.tag_measures(tagged(row.reading) if known and tagged else None, row.found))
    )


Example = tuple[Floats, npt.NDArray[np.bool_], float]  # measures, right ones, weight


def passage_examples(some: dict[str, list[Row]]) -> list[Example]:
    """Each text with held-out tags, and with half the weight without tags."""
    named = [(name, row) for name, rows_of in some.items() for row in rows_of]
    english = [row for _, row in named if row.text.language == TAGGED_LANGUAGE]
    place = {id(row): at for at, row in enumerate(english)}
    taggers = [
        tagger(tag_table([row for at, row in enumerate(english) if at % FOLDS != fold])) for fold in range(FOLDS)
    ]
    found: list[Example] = []
    for name, row in named:
        if id(row) in place:
            found.append((with_tags(row, taggers[place[id(row)] % FOLDS]), row.right, PASSAGES[name]))
        found.append((with_tags(row, None), row.right, PASSAGES[name] / 2))
    return found


def page_examples(some: dict[str, list[Row]]) -> list[Example]:
    return [
        (matrix, row.right, PAGES.get(name, 1.0) / len(row.on_pages))
        for name, rows_of in some.items()
        for row in rows_of
        for matrix in row.on_pages
    ]


def grown(examples: Sequence[Example], trees: int) -> object:
    """Trees that separate keywords from other candidates."""
    rng = np.random.default_rng(1)
    columns: list[tuple[Floats, Floats, Floats]] = []
    for matrix, right, weight in examples:
        if right.any():
            taken = np.concatenate((np.flatnonzero(right), rng.permutation(np.flatnonzero(~right))[:WRONG_ONES]))
            columns.append((matrix.T[taken], right[taken].astype(np.float32), np.full(len(taken), weight, np.float32)))
    matrix, right_ones, weights = (np.concatenate(column) for column in zip(*columns, strict=True))
    catboost = import_module("catboost")
    model = catboost.CatBoostClassifier(
        iterations=trees, depth=6, learning_rate=0.1, border_count=64, l2_leaf_reg=5, random_seed=1, rsm=0.5,
        thread_count=2,
        verbose=0, allow_writing_files=False,
    )  # fmt: skip
    return model.fit(catboost.Pool(matrix, right_ones, weight=weights))


def odds(model: object, matrix: Floats) -> Floats:
    # catboost's
    return model.predict(matrix.T, prediction_type="RawFormulaVal")  # type: ignore[attr-defined,no-any-return]


def told(some: Sequence[Row], scores: Sequence[Floats]) -> str:
    """F1 at 5 and at 10, in hundredths."""
    orders = [np.argsort(-score, kind="stable") for score in scores]
    means = [
        100
        * np.mean([f1(row.right[order], len(row.text.keywords), most) for row, order in zip(some, orders, strict=True)])
        for most in (5, 10)
    ]
    return f"{means[0]:.1f}/{means[1]:.1f}"


def held_out(every: dict[str, list[Row]], wanted: Sequence[str]) -> None:
    """Prints a line for each set, trained on the other sets."""
    passages = {name: some for name, some in every.items() if name in PASSAGES}
    pages = {name: some for name, some in every.items() if name not in PASSAGES and name not in ONLY_SCORED}
    for name in wanted or every:
        if name in passages or name == "www":
            rest = {other: some for other, some in passages.items() if other != name}
            model = grown(passage_examples(rest), TREES["passage"])
            tagged = tagger(
                tag_table([row for some in rest.values() for row in some if row.text.language == TAGGED_LANGUAGE])
            )
            some, scores = every[name], [odds(model, with_tags(row, tagged)) for row in every[name]]
        else:
            is_help = name.startswith("help")
            rest = {
                other: [row for row in some if not is_help or not other.startswith("help") or row.text.even]
                for other, some in pages.items()
                if other != name
            }
            some = [row for row in every[name] if not is_help or not row.text.even]
            model = grown(page_examples(rest), TREES["page"])
            print(f"{name:14} alone {told(some, [odds(model, row.on_pages[0]) for row in some])}", end="; in its set ")
            scores = [odds(model, row.on_pages[IN_SET]) for row in some]
        print(f"{name:14} {len(some):5} texts  {told(some, scores)}", flush=True)


def halves(every: dict[str, list[Row]]) -> None:
    """Prints a line for each set: the score of its odd texts with weights trained on the even texts of all sets,
    as for new texts of known kinds.
    """
    even = {name: [row for row in some if row.text.even] for name, some in every.items()}
    passages = {name: some for name, some in even.items() if name in PASSAGES}
    tagged = tagger(
        tag_table([row for some in passages.values() for row in some if row.text.language == TAGGED_LANGUAGE])
    )
    passage = grown(passage_examples(passages), TREES["passage"])
    page = grown(
        page_examples({name: some for name, some in even.items() if name not in PASSAGES and name not in ONLY_SCORED}),
        TREES["page"],
    )
    for name, all_of_set in every.items():
        some = [row for row in all_of_set if not row.text.even]
        scores = [
            odds(passage, with_tags(row, tagged))
            if phrase_measures.is_passage(row.reading)
            else odds(page, row.on_pages[IN_SET])
            for row in some
        ]
        print(f"{name:14} {len(some):5} texts  {told(some, scores)}", flush=True)


def forest_table(model: object) -> dict[str, object]:
    """The table that `periplus_topics.analyse.keyword_measures` reads."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.json"
        model.save_model(str(file), format="json")  # type: ignore[attr-defined]  # catboost's
        stored = json.loads(file.read_text("utf-8"))
    trees = stored["oblivious_trees"]
    return {
        "measures": [[split["float_feature_index"] for split in tree["splits"]] for tree in trees],
        "borders": [[float(f"{split['border']:.5g}") for split in tree["splits"]] for tree in trees],
        "leaves": [[round(value * phrase_measures.SCALE) for value in tree["leaf_values"]] for tree in trees],
        "bias": stored["scale_and_bias"][1][0],
    }


def write(every: dict[str, list[Row]], only_page: bool) -> None:
    """Trains on all sets and writes both tables, or only the forest of pages."""
    passages = {name: some for name, some in every.items() if name in PASSAGES}
    pages = {name: some for name, some in every.items() if name not in PASSAGES and name not in ONLY_SCORED}
    forests: dict[str, object] = json.loads((TABLES / "forests.json").read_text("utf-8"))
    if not only_page:
        english = [row for some in passages.values() for row in some if row.text.language == TAGGED_LANGUAGE]
        _store("tags.json", {TAGGED_LANGUAGE: tag_table(english)})
        forests["passage"] = forest_table(grown(passage_examples(passages), TREES["passage"]))
    _store("forests.json", forests | {"page": forest_table(grown(page_examples(pages), TREES["page"]))})


def _store(name: str, table: dict[str, object]) -> None:
    (TABLES / name).write_text(json.dumps(table, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


def _in(language: str, texts: Sequence[Text]) -> list[Text]:
    return [text for text in texts if text.language == language]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--held-out", nargs="*", metavar="SET", help="score sets that were not learnt from; write nothing"
    )
    arguments.add_argument(
        "--halves",
        action="store_true",
        help="score odd texts after training on even texts of all sets; write nothing",
    )
    arguments.add_argument("--page", action="store_true", help="only the forest of pages, from its own sets")
    given = arguments.parse_args()
    texts_of = {
        name: texts[: TEXTS if name in PASSAGES else PAGE_TEXTS.get(name, TEXTS_OF_PAGES)]
        for name, texts in sets().items()
        if name != "own" and not (given.page and name in (*PASSAGES, "www"))
    }
    every = {
        name: rows(
            texts, [one for other in texts_of if other != name for one in _in(texts[0].language, texts_of[other])]
        )
        for name, texts in texts_of.items()
    }
    if given.halves:
        halves(every)
    elif given.held_out is None:
        write(every, given.page)
    else:
        held_out(every, given.held_out)


if __name__ == "__main__":
    main()
