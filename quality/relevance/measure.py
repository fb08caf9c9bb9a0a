"""How well does a topic learned from examples classify pages of the same source, and of other sources?

In source: cross-validated F with 2,000 positive examples, and with 30. Out of source: trained on one source, tested
on others; half of the pages of the others are used unlabelled to set the threshold, the other half is tested. Always on
generated texts in three languages; with CORPORA also on labelled texts of which one in five to thirty is relevant
(`subjects`), and on all kinds of sites (`kinds`). Compared with linear models of scikit-learn if PEERS_VENV has them.

    python quality/relevance/measure.py [--json FILE] [--labels]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command sets it

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import corpora
from corpora import Task
from figures import Figure, digest_of, write
from made_sources import TOPICS, Made, made_texts

from periplus_topics.analyse.judging import Judge, word_counts
from periplus_topics.analyse.training import (
    average_precision,
    best_threshold,
    common_words_tell,
    examples_of,
    next_question,
    rows_of,
    scores_of,
    select_examples,
    space_of,
    train,
    train_on_rows,
)
from periplus_topics.model import Example, TopicScores

SEED = 11
MANY, FEW = 2_000, 30  # positive examples
MANY_TASKS = 12  # more tasks than this are not printed one by one
PEERS = Path(os.environ.get("PEERS_VENV", "/tmp/peers-venv")) / "bin" / "python"
PEER = Path(__file__).parent / "peer_linear.py"


def examples(positive: Sequence[str], negative: Sequence[str], source: str = "") -> list[Example]:
    return [*(Example(text, True, source) for text in positive), *(Example(text, False, source) for text in negative)]


def made_tasks() -> list[Task]:
    """Each topic in each language: trained on the archive (with its negatives), tested on three other sources."""
    home, away = made_texts(1, 60, ("archive",)), made_texts(2, 30, ("blog", "paper", "guide"))

    def of(texts: Sequence[Made], language: str, topic: str, belongs: bool) -> list[str]:
        return [made.text for made in texts if made.language == language and (made.topic == topic) is belongs]

    return [
        Task(
            f"{topic} {language}",
            *(of(texts, language, topic, belongs) for texts in (home, away) for belongs in (True, False)),
        )
        for language in TOPICS
        for topic in TOPICS[language]
    ]


def judged_elsewhere(task: Task) -> tuple[TopicScores, float, float, NDArray[np.bool_], NDArray[np.float64]]:
    """(scores on other sources, F in source, best F of any threshold there, truth, probabilities)."""
    texts = [*task.other_positive, *task.other_negative]
    truth = np.arange(len(texts)) < len(task.other_positive)
    order = np.random.default_rng(0).permutation(len(texts))
    seen, asked = order[::2], order[1::2]
    found = train("", examples_of(examples(task.positive, task.negative)), [word_counts(texts[at]) for at in seen])
    chances = Judge(found.topic).judge([texts[at] for at in asked])
    report = found.topic.report
    best = scores_of(truth[asked], (chances > best_threshold(truth[asked], chances)).astype(np.float64)).f
    return scores_of(truth[asked], chances), report.scores.f, best, truth[asked], chances


def out_of_source(name: str, tasks: Sequence[Task]) -> list[Figure]:
    """Means over the tasks."""
    data = digest_of(text for task in tasks for texts in task[1:] for text in texts)
    rows = []
    for task in tasks:
        scores, inside, best, _, _ = judged_elsewhere(task)
        rows.append((scores.f, scores.average_precision, best, inside))
        if len(tasks) < MANY_TASKS:
            print(
                f"{task.name:36} F {scores.f:.3f}  AP {scores.average_precision:.3f}  P {scores.precision:.3f}  "
                f"R {scores.recall:.3f}  best F {best:.3f}   in source {inside:.4f}",
                flush=True,
            )
    mean = np.mean(rows, axis=0)
    print(
        f"{name + ', mean':36} F {mean[0]:.3f}  AP {mean[1]:.3f}  best F {mean[2]:.3f}   in source {mean[3]:.4f}",
        flush=True,
    )
    return [
        Figure(f"{name}, best F less F at the threshold, out of source", float(mean[2] - mean[0])),
        Figure(f"{name}, svm, F out of source", float(mean[0]), 0.95, data),
        Figure(f"{name}, svm, AP out of source", float(mean[1]), 0.985, data),
    ]


def peer_figures(name: str, tasks: Sequence[Task]) -> list[Figure]:
    """Figures of TfidfVectorizer with LinearSVC and logistic regression of scikit-learn, on the same halves."""
    if not PEERS.exists():
        return []
    rows: dict[str, list[tuple[float, float]]] = {}
    for task in tasks:
        texts = [*task.other_positive, *task.other_negative]
        truth = np.arange(len(texts)) < len(task.other_positive)
        asked = np.random.default_rng(0).permutation(len(texts))[1::2]
        given = {
            "texts": task.positive + task.negative,
            "positives": len(task.positive),
            "asked": [texts[at] for at in asked],
        }
        done = subprocess.run([PEERS, PEER], input=json.dumps(given), capture_output=True, text=True, check=False)
        if done.returncode:
            return []
        for machine, values in json.loads(done.stdout).items():
            scores = np.array(values)
            at_zero = scores_of(truth[asked], (scores > 0).astype(np.float64))
            rows.setdefault(machine, []).append((at_zero.f, average_precision(truth[asked], scores)))
            if len(tasks) < MANY_TASKS:
                print(f"{task.name:36} {machine:18} F {at_zero.f:.3f}  AP {rows[machine][-1][1]:.3f}", flush=True)
    figures = []
    for machine, pairs in rows.items():
        f, precision = np.mean(pairs, axis=0)
        print(f"{name + ', mean':36} {machine:18} F {f:.3f}  AP {precision:.3f}")
        figures += [
            Figure(f"{name}, svm, F out of source", float(f), by=machine),
            Figure(f"{name}, svm, AP out of source", float(precision), by=machine),
        ]
    return figures


def in_source(name: str, positive: Sequence[str], negative: Sequence[str]) -> list[Figure]:
    """F with many examples (cross-validated), and with few (on the others); five negatives to a positive of the few."""
    data = digest_of([*positive, *negative])
    positive, negative = (random.Random(SEED).sample(list(texts), len(texts)) for texts in (positive, negative))
    given = examples_of(examples(positive[:MANY], negative))
    of_many = scores_of(given.labels, train("", given).chances).f
    many, few = min(MANY, len(positive)), []
    for start in range(3):  # the standard deviation of one draw is .01
        own = positive[start * FEW : (start + 1) * FEW], negative[start * FEW * 5 : (start + 1) * FEW * 5]
        rest = (
            [text for text in positive if text not in set(own[0])],
            [text for text in negative if text not in set(own[1])],
        )
        chances = Judge(train("", examples_of(examples(*own))).topic).judge([*rest[0], *rest[1]])
        few.append(scores_of(np.arange(len(chances)) < len(rest[0]), chances).f)
    print(
        f"{name}, in source: {many} positives F {of_many:.4f}; {FEW} positives F {np.mean(few):.4f}, "
        f"{min(few):.3f} to {max(few):.3f}"
    )
    return [
        Figure(f"{name}, F of {many} positives", of_many, 0.99, data),
        Figure(f"{name}, F of {FEW} positives", float(np.mean(few)), 0.97, data),
    ]


def speed(texts: Sequence[str], judge: Judge) -> Figure:
    """Pages of 5,000 characters judged per second on one core, with cached and with new words."""
    pages = [(text * (5_000 // max(len(text), 1) + 1))[:5_000] for text in texts]
    begun = time.process_time()
    judge.judge(pages)
    return Figure("pages of 5,000 characters judged a second", len(pages) / (time.process_time() - begun), 1500.0)


def style_figures(tasks: Sequence[Task]) -> None:
    """F of the most frequent words alone, with negatives of the same and of another source: basis of the warning."""
    for task in tasks:
        own = examples_of(examples(task.positive, task.negative))
        other = examples_of(examples(task.positive, task.other_negative))
        told = [common_words_tell(train("", some), some.labels) for some in (own, other)]
        print(
            f"{task.name:36} frequent words alone: negatives of its source F {told[0]:.3f}, of another {told[1]:.3f}",
            flush=True,
        )


BEGUN, LABELS, POOL = 10, 20, 400  # initial positive examples, labels, pool of pages to label
DRAWS = 3  # random draws: F of a single draw is .04 off
Asking = Callable[
    [NDArray[np.float64], list[bool]], int
]  # (probabilities of the remaining pages, answers) -> next page


def labelled(task: Task, asking: Asking) -> TopicScores:
    """Scores on pages of other sources after active learning: trained on few examples, and again after each label."""
    rng = random.Random(3)
    elsewhere = [*((text, True) for text in task.other_positive), *((text, False) for text in task.other_negative)]
    rng.shuffle(elsewhere)
    pool, judged = elsewhere[::2][:POOL], elsewhere[1::2]
    own = [rng.sample(texts, min(most, len(texts)))
           for texts, most in ((task.positive, BEGUN), (task.negative, 5 * BEGUN))]  # fmt: skip
    truth = dict(pool) | {text: kind == 0 for kind in (0, 1) for text in own[kind]}
    begun = {text for texts in own for text in texts}
    texts = examples_of([Example(text, answer) for text, answer in truth.items()])
    space = space_of(texts.counts)
    rows = rows_of(texts.counts, space)
    learned_from = np.array([item.text in begun for item in texts.items])
    answers: list[bool] = []
    while True:
        places, left = np.flatnonzero(learned_from), np.flatnonzero(~learned_from)
        topic = train_on_rows("", select_examples(texts, places), space, rows[places], rows[left]).topic
        if len(answers) == LABELS or not len(left):
            break
        place = left[asking(Judge(topic).judge_words(texts.counts[at] for at in left), answers)]
        learned_from[place] = True
        answers.append(bool(texts.labels[place]))
    return scores_of(np.array([answer for _, answer in judged]), Judge(topic).judge([text for text, _ in judged]))


def label_figures(tasks: Sequence[Task]) -> None:
    """Figures of each strategy of selecting pages to label, on the tasks used to choose ours and on the others."""
    rng = random.Random(SEED)
    ways: dict[str, Asking] = {
        "by chance": lambda chances, answers: rng.randrange(len(chances)),
        "least sure": lambda chances, answers: int(abs(chances - 0.5).argmin()),
        "ours": next_question,
    }
    for half, own in (("chosen on", tasks[::2]), ("others", tasks[1::2])):
        rng.seed(SEED)
        for way, asking in ways.items():
            draws = DRAWS if way == "by chance" else 1
            scores = [labelled(task, asking) for _ in range(draws) for task in own]
            f, precision = np.mean([(one.f, one.average_precision) for one in scores], axis=0)
            print(f"{LABELS} labels, {half:10} {way:12} F {f:.3f}  AP {precision:.3f}", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, help="Write the figures to this file.")
    options.add_argument("--style", action="store_true", help="Print what the warning of a source is tuned on.")
    options.add_argument(
        "--labels", action="store_true", help="Compare strategies of selecting pages to label; minutes."
    )
    given = options.parse_args()
    if given.labels:
        label_figures([*corpora.subject_tasks(), *corpora.kind_tasks()])
        return
    made = made_tasks()
    if given.style:
        style_figures([*made[::4], *(corpora.tasks() if corpora.folder() else [])])
        return
    figures = out_of_source("made", made) + peer_figures("made", made)
    texts = made_texts(3, 110, ("archive",))
    figures += in_source(
        "made films",
        [one.text for one in texts if one.topic == "film"],
        [one.text for one in texts if one.topic != "film"],
    )
    if corpora.folder():
        tasks = corpora.tasks()
        figures += out_of_source("corpora", tasks) + peer_figures("corpora", tasks)
        for name, own in (("subjects", corpora.subject_tasks()), ("kinds", corpora.kind_tasks())):
            figures += out_of_source(name, own) + peer_figures(name, own)
        known = corpora.articles()
        figures += in_source(
            "abstracts",
            corpora.abstracts(),
            [text for own, text in known if not any(one.startswith("IT") for one in own)][:MANY],
        )
        judge = Judge(train("", examples_of(examples(tasks[0].positive[:200], tasks[0].negative[:200]))).topic)
        figures.append(speed([text for _, text in known[:1_000]], judge))
        print(f"{figures[-1].name}: {figures[-1].score:.0f}")
    if given.json:
        write(given.json, figures)


if __name__ == "__main__":
    main()
