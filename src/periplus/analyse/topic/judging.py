"""Judges how likely a text belongs to a topic; reads, writes and updates topics as words and numbers."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from periplus.document.digest import without_marks
from periplus.errors import StoreError
from periplus.model.arrays import Floats, Floats32, Ints
from periplus.model.page import BlockKind, Blocks, Part
from periplus.model.topic import Example, ExampleMark, Method, TellingWord, Topic, TopicReport, TopicScores

# Words are runs of letters and digits that begin with a letter, folded: no case, no diacritics. In scripts that leave
# no gaps between words, every pair of neighbouring signs is one.

WORD_CHARS = 40  # longer runs are no words
TEXT_CHARS = 50_000  # of a page that are judged: its topic is plain by then, and a book shall not take a second

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[^\W\d_{_UNSPACED}][^\W_{_UNSPACED}]+|[{_UNSPACED}]+")
_ASCII_WORDS = re.compile("[a-z][a-z0-9]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_NO_TEXT = (BlockKind.TITLE, BlockKind.ALT)


def word_counts(text: str) -> Mapping[str, int]:
    """How often each word occurs, in the order of the text. Total: any text, lone surrogates too."""
    text = without_marks(text[:TEXT_CHARS])
    if text.isascii():  # folding makes most Latin texts so
        return Counter(_ASCII_WORDS.findall(text))
    words = _WORDS.findall(text)
    return Counter(words if not _HAS_UNSPACED.search(text) else [part for word in words for part in _parts(word)])


def _parts(word: str) -> Iterator[str]:
    """Pairs of neighbours of a run of signs; other words as they are."""
    return map("".join, pairwise(word)) if len(word) > 2 and _HAS_UNSPACED.match(word) else iter((word,))


def bucket(piece: str, buckets: int) -> int:
    """The same on every machine."""
    return crc32(piece.encode("utf-8", "surrogatepass")) % buckets


def content_text(title: str, blocks: Blocks, parts: Sequence[Part] | None) -> str:
    """What of a page is judged: its title and its content; all its text where nothing is marked,
    or nothing as content.
    """
    texts = blocks.content(parts, _NO_TEXT) or blocks.content(None, _NO_TEXT)
    return "\n".join([title, *texts] if title else texts)


# One JSON object. Arrays are base64 of little-endian float32, so that a topic that was read is the one that
# was written, bit by bit.

VERSION = 1
_ARRAYS = ("rarities", "weights", "hashed")


def topic_text(topic: Topic) -> str:
    """The topic as JSON."""
    report = topic.report
    fields = {
        "periplus_topic": VERSION,
        "name": topic.name,
        "method": topic.method.value,
        "usual": topic.usual,
        "threshold": topic.threshold,
        "steepness": topic.steepness,
        "background": topic.background,
        "report": None
        if report is None
        else {
            "scores": report.scores._asdict(),
            "f_interval": report.f_interval,
            "curve": report.curve,
            "held_out": report.held_out,
            "telling": [word._asdict() for word in report.telling],
            "warnings": report.warnings,
        },
        "examples": [[mark.digest, int(mark.positive), mark.source] for mark in topic.examples],
        "words": topic.words,
    }
    arrays = {name: base64.b64encode(getattr(topic, name).astype("<f4").tobytes()).decode("ascii") for name in _ARRAYS}
    # words may hold lone surrogates, which UTF-8 has no form for
    return json.dumps(fields | arrays, ensure_ascii=True) + "\n"


def topic_of_text(text: str, where: str) -> Topic:
    """The topic that was written.

    where: its file, for a message. Raises StoreError for what is none, or of a newer program.
    """
    try:
        fields = json.loads(text)
        version = fields["periplus_topic"]
        if version > VERSION:
            raise StoreError(
                f"{where} was written by a newer Periplus (topics of version {version}; this one reads "
                f"{VERSION}): upgrade, or train it anew"
            )
        return _topic(fields)
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise StoreError(f"{where} is no topic, or damaged ({error}): remove it and train it anew") from None


def _topic(fields: dict[str, Any]) -> Topic:
    rarities, weights, hashed = (_array(fields[name]) for name in _ARRAYS)
    words = tuple(fields["words"])
    if not len(words) == len(rarities) == len(weights):
        raise ValueError(f"{len(words)} words, {len(weights)} weights")
    return Topic(
        name=fields["name"],
        method=Method(fields["method"]),
        words=words,
        rarities=rarities,
        weights=weights,
        hashed=hashed,
        usual=float(fields["usual"]),
        threshold=float(fields["threshold"]),
        steepness=float(fields["steepness"]),
        examples=tuple(ExampleMark(digest, bool(positive), source) for digest, positive, source in fields["examples"]),
        background=int(fields["background"]),
        report=None if fields["report"] is None else _report(fields["report"]),
    )


def _report(fields: dict[str, Any]) -> TopicReport:
    return TopicReport(
        TopicScores(**fields["scores"]),
        _interval(fields["f_interval"]),
        tuple((int(size), float(f)) for size, f in fields["curve"]),
        tuple((str(source), float(recall)) for source, recall in fields["held_out"]),
        tuple(TellingWord(**word) for word in fields["telling"]),
        tuple(fields["warnings"]),
    )


def _interval(fields: Sequence[float]) -> tuple[float, float]:
    low, high = map(float, fields)
    return low, high


def _array(written: str) -> Floats32:
    return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)


REMEMBERED = 200_000  # words: some 30 MB; a crawl meets new ones for ever
# of a page's words: of pages in the examples' language half and more are known, of another's one in twenty
KNOWN_LEAST = 0.2
_TIMES = 1 + np.log(np.arange(1, 1_024))  # 1 + ln of a count
_JUDGING_NO_TEXT = float("-inf")


class Judge:
    """Judges texts, one after another. 2,500 pages of 5,000 characters a second."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._known = _Words(topic)

    def judge(self, texts: Sequence[str]) -> Floats:
        """float64[n], 0 to 1: the chance of each that it belongs to the topic. Total: any texts."""
        return self.judge_words(map(word_counts, texts))

    def judge_words(self, texts: Iterable[Mapping[str, int]]) -> Floats:
        """The same of texts whose words are counted already."""
        distances = self.topic.steepness * (
            np.array([self._score(counts) for counts in texts], dtype=np.float64) - self.topic.threshold
        )
        return np.exp(-np.logaddexp(0.0, -distances))

    def _score(self, counts: Mapping[str, int]) -> float:
        """The weighted mean of its words; of a text without words, for which nothing speaks, below any other."""
        if not counts:
            return _JUDGING_NO_TEXT
        if len(self._known) > REMEMBERED:
            self._known.clear()
        weights = self._known
        parts = np.fromiter(map(weights.__getitem__, counts), np.complex128, len(counts))
        times = np.fromiter(counts.values(), np.int64, len(counts))
        values = _TIMES[np.minimum(times, len(_TIMES)) - 1] * np.abs(parts.imag)
        score = float(values @ parts.real) / max(float(np.sqrt(values @ values)), 1e-12)
        sure = min(float(np.count_nonzero(parts.imag > 0)) / len(counts) / KNOWN_LEAST, 1.0)
        return sure * score + (1 - sure) * self.topic.usual


class _Words(dict[str, complex]):
    """By word, its weight (real) and rarity (imaginary, negative where it is unknown),
    so that an array of both is made at one grasp.
    """

    def __init__(self, topic: Topic) -> None:
        self._places = {word: place for place, word in enumerate(topic.words)}
        self._topic, self._whole = topic, topic.method is Method.ONLINE

    def __missing__(self, word: str) -> complex:
        topic = self._topic
        if (place := self._places.get(word)) is not None:
            weight = complex(topic.weights[place], topic.rarities[place])
        elif self._whole:
            weight = complex(topic.hashed[bucket(word, len(topic.hashed))], 1.0)
        else:
            weight = 0j
        self[word] = weight
        return weight


# Logistic regression on hashed words, one step an example, longer steps at first. Both kinds weigh the same: a step is
# scaled by how rare its kind was.

BUCKETS = 1 << 18  # 1 MB: of 60,000 words a fifth share theirs
ROUNDS = 4  # through the examples at first; of 2, 4, 8 the least that reached the F of the last
STEP, SLOWING = 8.0, 0.02  # a step is STEP / (1 + SLOWING examples seen)
KIND_MOST = 10.0  # times that a step of the rarer kind is longer, at most


class WeightTable(NamedTuple):
    """Weights by bucket."""

    weights: Floats32
    bias: float


class Input(NamedTuple):
    """A text: the buckets of its words and their values, of length 1."""

    places: Ints
    values: Floats32


def input_of(counts: Mapping[str, int]) -> Input:
    """A text as the table takes it."""
    places = np.array([bucket(word, BUCKETS) for word in counts], dtype=np.int64)
    values = 1.0 + np.log(np.array(list(counts.values()), dtype=np.float64))
    return Input(places, (values / max(float(np.sqrt(values @ values)), 1e-12)).astype(np.float32))


def chance(table: WeightTable, text: Input) -> float:
    """That the text belongs to the topic."""
    return 1.0 / (1.0 + exp(-float(np.clip(table.weights[text.places] @ text.values + table.bias, -60, 60))))


def taught(examples: Sequence[tuple[Input, bool]]) -> WeightTable:
    """The table after some rounds through the examples, one of each kind in turn as far as they last."""
    table = WeightTable(np.zeros(BUCKETS, np.float32), 0.0)
    mixed = _mixed(examples)
    positives = sum(label for _, label in mixed)
    for turn in range(ROUNDS):
        for at, (text, label) in enumerate(mixed):
            kind = len(mixed) / (2 * max(positives if label else len(mixed) - positives, 1))
            table = _step(table, text, label, min(kind, KIND_MOST) * STEP / (1 + SLOWING * (turn * len(mixed) + at)))
    return table


def learned_on(topic: Topic, example: Example) -> Topic:
    """The topic after one more example, marked by nothing: it keeps no digest of it."""
    table = _step(
        WeightTable(topic.hashed.copy(), -topic.threshold),
        input_of(word_counts(example.text)),
        example.positive,
        STEP / (1 + SLOWING * len(topic.examples)),
    )
    return replace(topic, hashed=table.weights, threshold=-table.bias)


def _mixed(examples: Sequence[tuple[Input, bool]]) -> list[tuple[Input, bool]]:
    """Both kinds spread evenly, for what came last weighs most."""
    places = {kind: [at for at, (_, label) in enumerate(examples) if label is kind] for kind in (True, False)}
    order = sorted((rank / len(own), at) for own in places.values() for rank, at in enumerate(own))
    return [examples[at] for _, at in order]


def _step(table: WeightTable, text: Input, label: bool, length: float) -> WeightTable:
    pull = float(length * (label - chance(table, text)))
    np.add.at(table.weights, text.places, np.float32(pull) * text.values)
    return WeightTable(table.weights, table.bias + 0.1 * pull)
