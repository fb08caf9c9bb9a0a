"""Active learning of a topic: sessions in which a person labels the most informative pages.

The next page is the one with the most uncertain prediction, or, while under half of the answers are yes, the most
likely one. After each answer the topic is retrained on all answers and on a sample of the first examples; at the end of
the session, on all of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

from periplus.api.cache import LruCache
from periplus.api.collection import Collection
from periplus.api.functions import open_collection
from periplus.api.homes import full_place
from periplus.errors import UsageError
from periplus.model.web import Url
from periplus.values import Place, Watch
from periplus_topics.analyse.judging import Judge
from periplus_topics.analyse.training import (
    examples_of,
    next_question,
    rows_of,
    select_examples,
    space_of,
    train_on_rows,
)
from periplus_topics.api.topics import (
    add_label,
    beginning_of,
    changed_s,
    retrain,
    sample_pages,
    stored_examples,
    take_back_label,
    topic_of,
)
from periplus_topics.model import Example, PageJudgement, Topic, TopicReport

POOL = 600  # candidate pages, scored again after each answer in a tenth of a second
SESSIONS = 4  # concurrent sessions, about 20 MB each
AT_ONCE = 300  # first examples used for training after each answer


class Labelling:
    """One session. Every answer is stored at once.

    The words of all texts are counted once, at the start.
    """

    def __init__(self, collection: Collection, name: str, watch: Watch = lambda what, done, total: None) -> None:
        """Raises UsageError for an unknown topic, and if no candidate page is left."""
        self._place, self._name = collection.place, name
        self._topic = topic_of(self._place, name)
        first = stored_examples(self._place, name)
        chosen = [example for example in first if example.source != "the collection"]
        names, texts = {example.name for example in chosen}, {example.text for example in chosen}
        pages: dict[str, Example] = {}
        for page in sample_pages(collection, POOL + len(chosen)):
            if page.name not in names and page.text not in texts and len(pages) < POOL:
                pages[page.name] = page
                watch("reading", len(pages), POOL)
        sample = _sample([pages.get(example.name, example) for example in first])  # pages with their present text
        self._texts = examples_of([*sample, *pages.values()])
        self._first = _are_of(self._texts.items, sample)
        self._pool = _are_of(self._texts.items, [*pages.values()])  # candidates
        if not self._pool.any():
            raise UsageError(
                f"no unlabelled page is left for {name!r}: all pages of the collection are among its examples"
            )
        # as in `train_topic`: a page used as a negative example counts in both sets
        self._space = space_of(
            [self._texts.counts[place] for which in (self._first, self._pool) for place in np.flatnonzero(which)]
        )
        self._rows = rows_of(self._texts.counts, self._space)
        self._labels = self._texts.labels.copy()
        self._given: list[int] = []  # indices of answered texts
        self._judge = Judge(self._topic)
        self._asked: int | None = None  # index of the current page
        self._page: PageJudgement | None = None

    def current_page(self) -> PageJudgement | None:
        """The current page, the same until it is answered; None if no candidate is left."""
        if self._page is not None or not self._pool.any():
            return self._page
        places = [self._asked] if self._asked is not None else np.flatnonzero(self._pool).tolist()
        chances = self._judge.judge_words(self._texts.counts[place] for place in places)
        at = next_question(chances, self._labels[self._given].tolist())
        self._asked = places[at]
        page = self._texts.items[self._asked]
        title = page.text.partition("\n")[0]
        self._page = PageJudgement(Url(page.name), title, float(chances[at]), beginning_of(page.text, title))
        return self._page

    def answer(self, positive: bool) -> None:
        """Stores the answer for the current page (whether it belongs to the topic) and retrains."""
        place = self._take_current()
        given = self._texts.items[place]._replace(positive=positive, source="labelled")
        add_label(self._place, self._name, given)
        self._labels[place] = positive
        self._given.append(place)
        self._topic = self._anew()
        self._judge = Judge(self._topic)

    def undo(self) -> None:
        """Removes the last answer of this session and makes its page current again; does nothing without answers."""
        if not self._given:
            return
        self._asked, self._page = self._given.pop(), None
        take_back_label(self._place, self._name, self._texts.items[self._asked].name)
        self._pool[self._asked], self._labels[self._asked] = True, self._texts.labels[self._asked]
        self._topic = self._anew() if self._given else topic_of(self._place, self._name)
        self._judge = Judge(self._topic)

    @property
    def answers(self) -> int:
        """Number of answers in this session."""
        return len(self._given)

    @property
    def report(self) -> TopicReport:
        """Cross-validated quality of the present topic."""
        return self._topic.report

    @property
    def history(self) -> tuple[tuple[str, str, bool], ...]:
        """(URL, title, answer) of this session, latest first."""
        items = self._texts.items
        return tuple(
            (items[place].name, items[place].text.partition("\n")[0], bool(self._labels[place]))
            for place in reversed(self._given)
        )

    @property
    def left(self) -> int:
        """Number of candidate pages left."""
        return int(self._pool.sum())

    def skip(self) -> None:
        """Excludes the current page from this session."""
        self._take_current()

    def _take_current(self) -> int:
        """Removes the current page from the candidates and returns its index."""
        place = self._asked
        assert place is not None, "asked() comes before"
        self._pool[place] = False
        self._asked = self._page = None
        return place

    def finish(self, collection: Collection) -> Topic:
        """Trains the topic on all examples and stores it."""
        return retrain(collection, self._name)

    def _anew(self) -> Topic:
        own = self._first.copy()
        own[self._given] = True
        labels = self._labels[own]
        if not labels.any() or labels.all():  # only one class is left
            return self._topic
        return train_on_rows(
            self._name,
            select_examples(self._texts._replace(labels=self._labels), np.flatnonzero(own)),
            self._space,
            self._rows[np.flatnonzero(own)],
            self._rows[np.flatnonzero(self._pool)],
        ).topic


def _sample(examples: Sequence[Example]) -> list[Example]:
    """About AT_ONCE examples, stratified by label; at least one per label."""
    step = max(len(examples) / AT_ONCE, 1.0)
    kinds = [[example for example in examples if example.positive is kind] for kind in (True, False)]
    return [own[int(at * step)] for own in kinds for at in range(ceil(len(own) / step))]


def _are_of(items: Sequence[Example], examples: Sequence[Example]) -> NDArray[np.bool_]:
    texts = {example.text for example in examples}
    return np.array([item.text in texts for item in items], dtype=np.bool_)


@dataclass(slots=True)
class _Session:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: float = -1  # time of the topic's last change at the start; -1: not started
    labelling: Labelling | None = None


class Sessions:
    """Open sessions: one per topic, at most SESSIONS; the oldest is closed for a new one.

    Thread-safe; threads wait only for sessions of the same topic.
    """

    def __init__(self) -> None:
        self._open: LruCache[tuple[Place, str], _Session] = LruCache(SESSIONS)

    @contextlib.contextmanager
    def of(self, place: Place, name: str) -> Iterator[Labelling]:
        """Yields the topic's session under its lock; starts a new one if there is none or the topic was retrained.

        Raises UsageError.
        """
        session = self._open.get_or_make((full_place(place), name), _Session)
        with session.lock:
            stamp = changed_s(place, name)
            if session.labelling is None or session.stamp != stamp:
                with open_collection(place) as collection:
                    session.labelling = Labelling(collection, name)
                session.stamp = stamp
            yield session.labelling
