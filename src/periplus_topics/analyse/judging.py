"""Scores how likely a text belongs to a topic; reads, writes and updates topics."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from periplus.document.digest import without_marks
from periplus.errors import StoreError
from periplus.model.arrays import Floats, Floats32
from periplus.model.page import BlockKind, Blocks, Part
from periplus.values import fields_of
from periplus_topics.model import ExampleMark, TellingWord, Topic, TopicReport, TopicScores

# Words are runs of letters and digits that begin with a letter, without case and diacritics. In scripts without gaps
# between words, every pair of adjacent characters is a word.

WORD_CHARS = 40  # longer runs are not words
TEXT_CHARS = 50_000  # judged per page: enough to decide, and a book must not take a second

_SCRIPTS_WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[^\W\d_{_SCRIPTS_WITHOUT_SPACES}][^\W_{_SCRIPTS_WITHOUT_SPACES}]+|[{_SCRIPTS_WITHOUT_SPACES}]+")
_ASCII_WORDS = re.compile("[a-z][a-z0-9]+")
_HAS_UNSPACED = re.compile(f"[{_SCRIPTS_WITHOUT_SPACES}]")
_NO_TEXT = (BlockKind.TITLE, BlockKind.ALT)
VERSION = 1
_ARRAYS = ("rarities", "weights")
WORD_CACHE_SIZE = 200_000  # words in the cache: about 30 MB; a crawl never stops finding new ones
# Share of a page's words: at least half are known on pages in the examples' language, one in twenty in other languages
KNOWN_LEAST = 0.2
_TIMES = 1 + np.log(np.arange(1, 1_024))  # 1 + ln of a count
_JUDGING_NO_TEXT = float("-inf")


def word_counts(text: str) -> Mapping[str, int]:
    """Word frequencies, in text order. Total: accepts any text, including lone surrogates."""
    text = without_marks(text[:TEXT_CHARS])
    if text.isascii():  # after folding, most Latin texts are ASCII
        return Counter(_ASCII_WORDS.findall(text))
    words = _WORDS.findall(text)
    return Counter(words if not _HAS_UNSPACED.search(text) else [part for word in words for part in _parts(word)])


def _parts(word: str) -> Iterator[str]:
    """Bigrams of a run in an unspaced script; other words unchanged."""
    return map("".join, pairwise(word)) if len(word) > 2 and _HAS_UNSPACED.match(word) else iter((word,))


def content_text(title: str, blocks: Blocks, parts: Sequence[Part] | None) -> str:
    """The text that is judged: title and content; or all text if no block is marked as content."""
    texts = blocks.content(parts, _NO_TEXT) or blocks.content(None, _NO_TEXT)
    return "\n".join([title, *texts] if title else texts)


# One JSON object. Arrays are base64 of little-endian float32, so that a topic survives writing and reading bit by bit.


def topic_text(topic: Topic) -> str:
    """The topic as JSON."""
    report = topic.report
    fields = {
        "periplus_topic": VERSION,
        **fields_of(topic, "name usual threshold steepness background"),
        "report": {
            "scores": report.scores._asdict(),
            **fields_of(report, "f_interval curve held_out"),
            "telling": [word._asdict() for word in report.telling],
            "warnings": report.warnings,
        },
        "examples": [[mark.digest, int(mark.positive), mark.source] for mark in topic.examples],
        "words": topic.words,
    }
    arrays = {name: base64.b64encode(getattr(topic, name).astype("<f4").tobytes()).decode("ascii") for name in _ARRAYS}
    # words may contain lone surrogates, which UTF-8 cannot encode
    return json.dumps(fields | arrays, ensure_ascii=True) + "\n"


def topic_of_text(text: str | bytes, where: str) -> Topic:
    """Parses a topic.

    where: its file, for messages. Raises StoreError if it is invalid or from a newer version.
    """
    try:
        fields = json.loads(text)
        version = fields["periplus_topic"]
        if version > VERSION:
            raise StoreError(
                f"{where} was written by a newer Periplus (topics of version {version}; this one reads "
                f"{VERSION}): upgrade, or train it again"
            )
        return _topic(fields)
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise StoreError(f"{where} is not a topic, or damaged ({error}): remove it and train it again") from None


def _topic(fields: dict[str, Any]) -> Topic:
    rarities, weights = (_array(fields[name]) for name in _ARRAYS)
    words = tuple(fields["words"])
    if not len(words) == len(rarities) == len(weights):
        raise ValueError(f"{len(words)} words, {len(weights)} weights")
    return Topic(
        name=fields["name"],
        words=words,
        rarities=rarities,
        weights=weights,
        usual=float(fields["usual"]),
        threshold=float(fields["threshold"]),
        steepness=float(fields["steepness"]),
        examples=tuple(ExampleMark(digest, bool(positive), source) for digest, positive, source in fields["examples"]),
        background=int(fields["background"]),
        report=_report(fields["report"]),
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


class Judge:
    """Scores texts: 2,500 pages of 5,000 characters per second."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self._known = _Words(topic)

    def judge(self, texts: Sequence[str]) -> Floats:
        """float64[n], 0 to 1: the probability that each text belongs to the topic. Total: accepts any texts."""
        return self.judge_words(map(word_counts, texts))

    def judge_words(self, texts: Iterable[Mapping[str, int]]) -> Floats:
        """As `judge`, for texts whose words are already counted."""
        distances = self.topic.steepness * (
            np.array([self._score(counts) for counts in texts], dtype=np.float64) - self.topic.threshold
        )
        return np.exp(-np.logaddexp(0.0, -distances))

    def _score(self, counts: Mapping[str, int]) -> float:
        """Weighted mean over the words; -inf for a text without words."""
        if not counts:
            return _JUDGING_NO_TEXT
        if len(self._known) > WORD_CACHE_SIZE:
            self._known.clear()
        weights = self._known
        parts = np.fromiter(map(weights.__getitem__, counts), np.complex128, len(counts))
        times = np.fromiter(counts.values(), np.int64, len(counts))
        values = _TIMES[np.minimum(times, len(_TIMES)) - 1] * np.abs(parts.imag)
        score = float(values @ parts.real) / max(float(np.sqrt(values @ values)), 1e-12)
        sure = min(float(np.count_nonzero(parts.imag > 0)) / len(counts) / KNOWN_LEAST, 1.0)
        return sure * score + (1 - sure) * self.topic.usual


class _Words(dict[str, complex]):
    """Cache by word: weight (real part) and rarity (imaginary part, 0 if unknown), so that both fit one array."""

    def __init__(self, topic: Topic) -> None:
        self._places = {word: place for place, word in enumerate(topic.words)}
        self._topic = topic

    def __missing__(self, word: str) -> complex:
        topic = self._topic
        if (place := self._places.get(word)) is not None:
            weight = complex(topic.weights[place], topic.rarities[place])
        else:
            weight = 0j
        self[word] = weight
        return weight
