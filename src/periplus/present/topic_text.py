"""How is a topic shown: how well it was learned, from what, by which words?"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from periplus.model.topic import TellingWord, Topic
from periplus.present.wording import visible

COLUMNS = 100
WORDS_SHOWN = 20


def topic_lines(topic: Topic) -> Iterator[str]:
    """For reading, at a terminal."""
    positives = sum(mark.positive for mark in topic.examples)
    yield (
        f"{topic.name} ({topic.method.value}): {positives:,} examples for it, {len(topic.examples) - positives:,} "
        f"against, {topic.background:,} pages seen"
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
    if report.curve:
        yield "  F by positive examples   " + "   ".join(f"{size:,}: {f:.3f}" for size, f in report.curve)
    for source, recall in report.held_out:
        yield f"  learned without {visible(source)}: recall on it {recall:.3f}"
    for said, words in (
        ("for it", [word for word in report.telling if word.weight > 0]),
        ("against", [word for word in report.telling if word.weight < 0]),
    ):
        if words:
            yield from wrap(
                f"{said}: " + ", ".join(visible(word.word) for word in words[:WORDS_SHOWN]),
                COLUMNS,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
    for warning in report.warnings:
        yield from wrap(f"Note: {visible(warning)}", COLUMNS, initial_indent="  ", subsequent_indent="    ")


def topic_values(topic: Topic) -> dict[str, object]:
    """For programs."""
    report, positives = topic.report, sum(mark.positive for mark in topic.examples)
    values: dict[str, object] = {
        "name": topic.name, "method": topic.method.value, "positive_examples": positives,
        "negative_examples": len(topic.examples) - positives,
        "background_pages": topic.background, "words": len(topic.words),
    }  # fmt: skip
    if report is None:
        return values
    return values | {
        "scores": report.scores._asdict(),
        "curve": [{"positives": size, "f": f} for size, f in report.curve],
        "held_out": [{"source": source, "recall": recall} for source, recall in report.held_out],
        "telling": [_word_values(word) for word in report.telling],
        "warnings": list(report.warnings),
    }


def _word_values(word: TellingWord) -> dict[str, object]:
    return {**word._asdict(), "weight": round(word.weight, 4)}
