"""How is a topic written down, as numbers and words only?

One JSON object. Arrays are base64 of little-endian float32, so that a topic that was read is the one that was written, bit by bit.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from periplus.errors import StoreError
from periplus.model.topic import ExampleMark, Floats32, Method, TellingWord, Topic, TopicReport, TopicScores

VERSION = 1
_ARRAYS = ("rarities", "weights", "hashed")


def topic_text(topic: Topic) -> str:
    """The topic as JSON."""
    report = topic.report
    said = {
        "periplus_topic": VERSION,
        "name": topic.name,
        "method": topic.method.value,
        "usual": topic.usual,
        "threshold": topic.threshold,
        "steepness": topic.steepness,
        "unknown_rarity": topic.unknown_rarity,
        "background": topic.background,
        "report": None
        if report is None
        else {
            "scores": report.scores._asdict(),
            "curve": report.curve,
            "held_out": report.held_out,
            "telling": [word._asdict() for word in report.telling],
            "warnings": report.warnings,
        },
        "examples": [[mark.digest, int(mark.positive), mark.source] for mark in topic.examples],
        "words": topic.words,
    }
    arrays = {name: base64.b64encode(getattr(topic, name).astype("<f4").tobytes()).decode("ascii") for name in _ARRAYS}
    return json.dumps(said | arrays, ensure_ascii=True) + "\n"  # words may hold lone surrogates, which UTF-8 has no form for


def topic_of_text(text: str, where: str) -> Topic:
    """The topic that was written. where: its file, for a message. Raises StoreError for what is none, or of a newer program."""
    try:
        said = json.loads(text)
        version = said["periplus_topic"]
        if version > VERSION:
            raise StoreError(f"{where} was written by a newer Periplus (topics of version {version}; this one reads {VERSION}): upgrade, or train it anew")
        return _topic(said)
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise StoreError(f"{where} is no topic, or damaged ({error}): remove it and train it anew") from None


def _topic(said: dict[str, Any]) -> Topic:
    rarities, weights, hashed = (_array(said[name]) for name in _ARRAYS)
    words = tuple(said["words"])
    if not len(words) == len(rarities) == len(weights):
        raise ValueError(f"{len(words)} words, {len(weights)} weights")
    return Topic(
        name=said["name"],
        method=Method(said["method"]),
        words=words,
        rarities=rarities,
        weights=weights,
        hashed=hashed,
        unknown_rarity=float(said["unknown_rarity"]),
        usual=float(said["usual"]),
        threshold=float(said["threshold"]),
        steepness=float(said["steepness"]),
        examples=tuple(ExampleMark(digest, bool(positive), source) for digest, positive, source in said["examples"]),
        background=int(said["background"]),
        report=None if said["report"] is None else _report(said["report"]),
    )


def _report(said: dict[str, Any]) -> TopicReport:
    return TopicReport(
        TopicScores(**said["scores"]),
        tuple((int(size), float(f)) for size, f in said["curve"]),
        tuple((str(source), float(recall)) for source, recall in said["held_out"]),
        tuple(TellingWord(**word) for word in said["telling"]),
        tuple(said["warnings"]),
    )


def _array(written: str) -> Floats32:
    return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)
