"""Topics learned from examples, and keywords, as values."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from periplus.model.arrays import Floats32
from periplus.model.web import Url
from periplus.values import frozen


class Method(StrEnum):
    """How a topic's weights are learned."""

    SVM = "svm"  # linear support vector machine over tf-idf; threshold from cross-validation and the background
    ONLINE = "online"  # hashed words, online learning; continues without the earlier examples


class Example(NamedTuple):
    """A positive or negative example of a topic."""

    text: str
    positive: bool
    source: str = ""  # origin: a site, a folder, a search
    name: str = ""  # its URL or file


class ExampleMark(NamedTuple):
    """The stored trace of an example."""

    digest: str  # digest of its text, 32 hexadecimal digits
    positive: bool
    source: str


class TopicScores(NamedTuple):
    """Classification quality on held-out pages; each 0 to 1."""

    precision: float
    recall: float
    f: float
    average_precision: float  # of the ranking, independent of the threshold


class TellingWord(NamedTuple):
    """A word with a large weight for or against a topic."""

    word: str
    weight: float  # positive: for the topic
    positive_share: float  # share of positive examples with the word
    negative_share: float


@frozen
class TopicReport:
    """Quality of a learned topic."""

    scores: TopicScores  # cross-validated
    f_interval: tuple[float, float]  # 90 % confidence interval of F; (0, 1): not measured
    curve: tuple[tuple[int, float], ...]  # (positive examples, F on the other examples)
    held_out: tuple[tuple[str, float], ...]  # (source of positive examples, recall on it after learning without it)
    telling: tuple[TellingWord, ...]  # words for the topic, strongest first, then words against it
    warnings: tuple[str, ...]  # as sentences


@frozen
class Topic:
    """A topic as a linear model over words.

    The score of a text is the mean weight of its words, weighted by inverse document frequency and the logarithm of
    their counts. The probability of belonging to the topic is 1 / (1 + exp(-steepness (score - threshold))).
    """

    name: str
    method: Method
    words: tuple[str, ...]  # v, ascending
    rarities: Floats32  # v: inverse document frequencies
    weights: Floats32  # v
    hashed: Floats32  # weights of hashed words (ONLINE), or empty
    usual: float  # typical score of pages outside the topic; given to pages with hardly any known word
    threshold: float
    steepness: float
    examples: tuple[ExampleMark, ...]
    background: int  # unlabelled pages used for calibration
    report: TopicReport | None


class PageJudgement(NamedTuple):
    """A page with the probability that it belongs to a topic."""

    url: Url
    title: str
    probability: float
    beginning: str  # beginning of its content


class Keyword(NamedTuple):
    """A word or phrase that describes a text, as written there."""

    text: str
    score: float  # higher is better; comparable only within one list
    times: int  # occurrences, in any form
    pages: int  # pages with it, among those analysed


@frozen
class KeywordList:
    """The keywords of one subject, best first."""

    subject: str  # a URL, a site, a query, or the number of pages
    method: str
    language: str  # language of most pages; empty: unknown
    pages: int  # analysed pages
    compared_with: int  # pages of the collection used as the reference corpus
    keywords: tuple[Keyword, ...]
