"""Which pages would teach a topic most, and what does it learn from each answer?

The page that it is least sure of is asked for next. After each answer the topic is learned anew: from all answers and, where the first examples are
many, from some of these; from all of them when the session ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from periplus.analyse.topic.judging import Judge
from periplus.analyse.topic.online import learned_on
from periplus.analyse.topic.training import examples_of, learned
from periplus.analyse.topic.words import word_counts
from periplus.api.collection import Collection
from periplus.api.topic_examples import Watch
from periplus.api.topics import add_label, beginning_of, known_examples, relearned, sample_pages, topic_of
from periplus.errors import UsageError
from periplus.model.topic import Example, Judged, Method, Topic
from periplus.model.web import Url

POOL = 600  # pages that are asked for: judged anew after each answer, a quarter of a second
AT_ONCE = 300  # of the first examples that are learned from after each answer: half a second


class _Page(NamedTuple):
    example: Example
    title: str
    counts: Mapping[str, int]


class Labelling:
    """One session. Every answer is kept when it is given."""

    def __init__(self, kept: Collection, name: str, watch: Watch = lambda what, done, total: None) -> None:
        """Raises UsageError for a topic that is not known, and where no page is left."""
        self.answers = 0
        self._kept, self._name = kept, name
        self._topic = topic_of(kept.folder, name)
        self._examples = known_examples(kept.folder, name)
        chosen = {example.name for example in self._examples if example.source != "the collection"}
        self._pool: list[_Page] = []
        for page in sample_pages(kept, POOL + len(chosen)):
            if page.name not in chosen and len(self._pool) < POOL:
                self._pool.append(_Page(page, page.text.partition("\n")[0], word_counts(page.text)))
                watch("reading", len(self._pool), POOL)
        if not self._pool:
            raise UsageError(f"no page of the collection is left that {name!r} could ask for: all are among its examples")
        self._given: list[Example] = []
        self._judge = Judge(self._topic)
        self._asked = -1

    def least_sure(self) -> Judged | None:
        """The page to ask for; None: no one is left."""
        if not self._pool:
            return None
        chances = self._judge.judge_words(page.counts for page in self._pool)
        self._asked = int(abs(chances - 0.5).argmin())
        page = self._pool[self._asked]
        return Judged(Url(page.example.name), page.title, float(chances[self._asked]), beginning_of(page.example.text, page.title))

    def answer(self, positive: bool) -> None:
        """Whether the page asked for belongs to the topic: kept, and learned from."""
        given = self._pool.pop(self._asked).example._replace(positive=positive, source="labelled")
        add_label(self._kept.folder, self._name, given)
        self._given.append(given)
        self.answers += 1
        self._topic = learned_on(self._topic, given) if self._topic.method is Method.ONLINE else self._anew()
        self._judge = Judge(self._topic)

    def skip(self) -> None:
        """The page asked for is not asked for again in this session."""
        self._pool.pop(self._asked)

    def finish(self) -> Topic:
        """The topic learned from everything, and kept."""
        return relearned(self._kept, self._name)

    def _anew(self) -> Topic:
        names = {example.name for example in self._given}
        first = [example for example in self._examples if example.name not in names]
        step = max(len(first) / AT_ONCE, 1.0)
        some = [first[int(at * step)] for at in range(int(len(first) / step))]
        examples = examples_of([*some, *self._given])
        if not examples.labels.any() or examples.labels.all():  # every n-th of them was of one kind
            examples = examples_of([*first, *self._given])
        return learned(self._name, examples, [page.counts for page in self._pool], self._topic.method).topic
