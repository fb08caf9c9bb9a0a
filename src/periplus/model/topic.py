"""A topic as it was learned from examples, and keywords: values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from periplus.model.arrays import Floats32
from periplus.model.web import Url
from periplus.values import frozen


class Method(StrEnum):
    """By which rule a topic's weights are learned."""

    # linear support vector machine with a share of the log-odds of words; the threshold by cross-validated F
    CALIBRATED = "calibrated"
    SVM = "svm"  # linear support vector machine over tf-idf, as published
    ONLINE = "online"  # hashed words, one example after the other; learns on without the old examples


class Example(NamedTuple):
    """A text that belongs to a topic, or does not."""

    text: str
    positive: bool
    source: str = ""  # where it comes from: a site, a folder, a search
    name: str = ""  # its URL or file


class ExampleMark(NamedTuple):
    """What a topic remembers of an example."""

    digest: str  # of its text, 32 hexadecimal digits
    positive: bool
    source: str


class TopicScores(NamedTuple):
    """How well pages are judged that were not learned from; each 0 to 1."""

    precision: float
    recall: float
    f: float
    average_precision: float  # of the order, whatever the threshold


class TellingWord(NamedTuple):
    """A word that speaks for a topic, or against it."""

    word: str
    weight: float  # above 0: for it
    positive_share: float  # of positive examples that have it
    negative_share: float


@frozen
class TopicReport:
    """How well a topic was learned."""

    scores: TopicScores  # cross-validated
    f_interval: tuple[float, float]  # where F is in nine cases of ten; 0 to 1: not measured
    curve: tuple[tuple[int, float], ...]  # (positive examples, F on the others)
    held_out: tuple[tuple[str, float], ...]  # (a source of positive examples, recall on it when learned without it)
    telling: tuple[TellingWord, ...]  # those for it, strongest first, then those against it
    warnings: tuple[str, ...]  # sentences


@frozen
class Topic:
    """A topic as numbers and words.

    A text's score is the mean of its words' weights, each counted by its rarity and the logarithm of how often it
    occurs; the page belongs to the topic with the probability 1 / (1 + exp(-steepness (score - threshold))).
    """

    name: str
    method: Method
    words: tuple[str, ...]  # v, ascending
    rarities: Floats32  # v: inverse document frequencies
    weights: Floats32  # v
    hashed: Floats32  # of whole words (online), or none
    usual: float  # score of most pages that do not belong: what a page is given of whose words hardly one is known
    threshold: float
    steepness: float
    examples: tuple[ExampleMark, ...]
    background: int  # unlabelled pages that it was calibrated on
    report: TopicReport | None


class Judged(NamedTuple):
    """A page, and how likely it belongs to a topic."""

    url: Url
    title: str
    probability: float
    beginning: str  # of its content


class Keyword(NamedTuple):
    """A word or phrase that says what a text is about, as the text writes it."""

    text: str
    score: float  # higher is better; comparable within one answer only
    times: int  # that it stands there, in whatever form
    pages: int  # with it, of those that were read


@frozen
class KeywordList:
    """The keywords of one subject, best first."""

    subject: str  # a URL, a site, a query, or how many pages
    method: str
    language: str  # of most of the pages; empty: not known
    pages: int  # that were read
    compared_with: int  # pages of the collection whose words were counted
    keywords: tuple[Keyword, ...]
