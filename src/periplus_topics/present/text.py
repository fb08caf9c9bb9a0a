"""Topics and keywords in lines for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from periplus.present.wording import visible
from periplus.values import JsonObject
from periplus_topics.model import TellingWord, Topic

LINE_CELLS = 100
MOST_WORDS = 20


def topic_lines(topic: Topic) -> Iterator[str]:
    """For reading, at a terminal."""
    positives = sum(mark.positive for mark in topic.examples)
    yield (
        f"{topic.name} ({topic.method.value}): {positives:,} positive examples, {len(topic.examples) - positives:,} "
        f"negative, {topic.background:,} background pages"
    )
    report = topic.report
    if report is None:
        return
    scores = report.scores
    measures = {
        "F": scores.f,
        "precision": scores.precision,
        "recall": scores.recall,
        "average precision": scores.average_precision,
    }
    yield "  cross-validated   " + "   ".join(f"{name} {value:.3f}" for name, value in measures.items())
    low, high = report.f_interval
    if (low, high) != (0.0, 1.0):
        yield f"  F, 90 % interval   {low:.3f} to {high:.3f}"
    if report.curve:
        yield "  F by positive examples   " + "   ".join(f"{size:,}: {f:.3f}" for size, f in report.curve)
    for source, recall in report.held_out:
        yield f"  trained without {visible(source)}: recall on it {recall:.3f}"
    for side, words in (
        ("for it", [word for word in report.telling if word.weight > 0]),
        ("against", [word for word in report.telling if word.weight < 0]),
    ):
        if words:
            yield from wrap(
                f"{side}: " + ", ".join(visible(word.word) for word in words[:MOST_WORDS]),
                LINE_CELLS,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
    for warning in report.warnings:
        yield from wrap(f"Note: {visible(warning)}", LINE_CELLS, initial_indent="  ", subsequent_indent="    ")


def topic_values(topic: Topic) -> JsonObject:
    """For programs."""
    report, positives = topic.report, sum(mark.positive for mark in topic.examples)
    values: JsonObject = {
        "name": topic.name, "method": topic.method.value, "positive_examples": positives,
        "negative_examples": len(topic.examples) - positives,
        "background_pages": topic.background, "words": len(topic.words),
    }  # fmt: skip
    if report is None:
        return values
    return values | {
        "scores": report.scores._asdict(),
        "f_interval": list(report.f_interval),
        "curve": [{"positives": size, "f": f} for size, f in report.curve],
        "held_out": [{"source": source, "recall": recall} for source, recall in report.held_out],
        "top_words": [_word_values(word) for word in report.telling],
        "warnings": list(report.warnings),
    }


def _word_values(word: TellingWord) -> JsonObject:
    return {**word._asdict(), "weight": round(word.weight, 4)}
