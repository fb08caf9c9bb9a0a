"""Sessions in which a person labels the pages that teach a topic most.

The page that it is least sure of is asked for next. After each answer the topic is learned anew: from all answers and,
where the first examples are many, from some of these; from all of them when the session ends.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from periplus.analyse.topic.judging import Judge, learned_on, word_counts
from periplus.analyse.topic.training import examples_of, learned
from periplus.api.cache import Remembered
from periplus.api.collection import Collection
from periplus.api.topics import (
    Watch,
    add_label,
    beginning_of,
    relearned,
    sample_pages,
    stored_examples,
    take_back_label,
    topic_file,
    topic_of,
)
from periplus.errors import UsageError
from periplus.model.topic import Example, Judged, Method, Topic, TopicReport
from periplus.model.web import Url

POOL = 600  # pages that are asked for: judged anew after each answer, a quarter of a second
SESSIONS = 4  # that go on at a time, each of some 20 MB
AT_ONCE = 300  # of the first examples that are learned from after each answer: half a second


class _Page(NamedTuple):
    example: Example
    title: str
    counts: Mapping[str, int]


class Labelling:
    """One session. Every answer is kept when it is given."""

    def __init__(self, collection: Collection, name: str, watch: Watch = lambda what, done, total: None) -> None:
        """Raises UsageError for a topic that is not known, and where no page is left."""
        self.answers = 0
        self._folder, self._name = collection.folder, name
        self._topic = topic_of(collection.folder, name)
        self._examples = stored_examples(collection.folder, name)
        chosen = {example.name for example in self._examples if example.source != "the collection"}
        self._pool: list[_Page] = []
        for page in sample_pages(collection, POOL + len(chosen)):
            if page.name not in chosen and len(self._pool) < POOL:
                self._pool.append(_Page(page, page.text.partition("\n")[0], word_counts(page.text)))
                watch("reading", len(self._pool), POOL)
        if not self._pool:
            raise UsageError(
                f"no page of the collection is left that {name!r} could ask for: all are among its examples"
            )
        self._given: list[_Page] = []
        self._judge = Judge(self._topic)
        self._asked = -1
        self._page: Judged | None = None  # that is asked for
        self._again = False  # the last page of the pool was taken back

    def least_sure(self) -> Judged | None:
        """The page to ask for, the same until it is answered; None: no one is left."""
        if self._page is not None or not self._pool:
            return self._page
        chances = self._judge.judge_words(page.counts for page in self._pool)
        self._asked = len(self._pool) - 1 if self._again else int(abs(chances - 0.5).argmin())
        page = self._pool[self._asked]
        self._page = Judged(
            Url(page.example.name), page.title, float(chances[self._asked]), beginning_of(page.example.text, page.title)
        )
        return self._page

    def answer(self, positive: bool) -> None:
        """Whether the page asked for belongs to the topic: kept, and learned from."""
        page = self._asked_for()
        given = page.example._replace(positive=positive, source="labelled")
        add_label(self._folder, self._name, given)
        self._given.append(page._replace(example=given))
        self.answers += 1
        self._topic = learned_on(self._topic, given) if self._topic.method is Method.ONLINE else self._anew()
        self._judge = Judge(self._topic)

    def undo(self) -> None:
        """The last answer of this session is taken back, and its page is asked for next.

        Without one nothing happens.
        """
        if not self._given:
            return
        page = self._given.pop()
        take_back_label(self._folder, self._name, page.example.name)
        self._pool.append(page)
        self.answers -= 1
        self._again, self._page = True, None
        self._topic = self._anew() if self._given else topic_of(self._folder, self._name)
        self._judge = Judge(self._topic)

    @property
    def report(self) -> TopicReport | None:
        """Of the topic as it now is, cross-validated; None: nobody measured."""
        return self._topic.report

    @property
    def given(self) -> tuple[tuple[str, str, bool], ...]:
        """(URL, title, answer) of this session, the last first."""
        return tuple((page.example.name, page.title, page.example.positive) for page in reversed(self._given))

    @property
    def left(self) -> int:
        """Pages that may be asked for."""
        return len(self._pool)

    def skip(self) -> None:
        """The page asked for is not asked for again in this session."""
        self._asked_for()

    def _asked_for(self) -> _Page:
        self._again, self._page = False, None
        return self._pool.pop(self._asked)

    def finish(self, collection: Collection) -> Topic:
        """The topic learned from everything, and kept."""
        return relearned(collection, self._name)

    def _anew(self) -> Topic:
        given = [page.example for page in self._given]
        names = {example.name for example in given}
        first = [example for example in self._examples if example.name not in names]
        step = max(len(first) / AT_ONCE, 1.0)
        some = [first[int(at * step)] for at in range(int(len(first) / step))]
        examples = examples_of([*some, *given])
        if not examples.labels.any() or examples.labels.all():  # every n-th of them was of one kind
            examples = examples_of([*first, *given])
        return learned(self._name, examples, [page.counts for page in self._pool], self._topic.method).topic


@dataclass(slots=True)
class _Session:
    lock: threading.Lock = field(default_factory=threading.Lock)
    stamp: int = -1  # of the topic's file when it began; -1: not begun
    labelling: Labelling | None = None


class Sessions:
    """Sessions that go on, for whoever asks by and by: one a topic, at most SESSIONS, the oldest ends for a new one.

    For many threads: each topic waits for itself alone.
    """

    def __init__(self) -> None:
        self._open: Remembered[tuple[Path, str], _Session] = Remembered(SESSIONS)

    @contextlib.contextmanager
    def of(self, folder: Path, name: str) -> Iterator[Labelling]:
        """The topic's session, for nobody else meanwhile; a new one where there is none,
        or the topic was learned anew since.

        Raises UsageError.
        """
        file = topic_file(folder, name)
        session = self._open.of((folder.resolve(), name), _Session)
        with session.lock:
            stamp = file.stat().st_mtime_ns if file.exists() else 0
            if session.labelling is None or session.stamp != stamp:
                with Collection(folder) as collection:
                    session.labelling = Labelling(collection, name)
                session.stamp = stamp
            yield session.labelling
