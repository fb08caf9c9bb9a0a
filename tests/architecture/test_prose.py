"""Plain English: each package has few odd phrases and no more odd names than before; both ceilings may only fall."""

from __future__ import annotations

from pathlib import Path

import pytest
from prose_rules import Prose, is_odd_name, prose_of

SRC = Path(__file__).parents[2] / "src"
PHRASES_PER_1000_WORDS = 5.0
# Packages above the common ceiling. A figure here only falls; delete the line when the package is below the ceiling.
PHRASES_LEFT: dict[str, float] = {}
SLACK_PHRASES = 3.0  # margin below the line of a package before it must be lowered
# Functions, classes and names of modules that are participles or pronouns. New packages have none.
NAMES_LEFT: dict[str, int] = {
    "periplus": 9,
    "periplus/model": 5,
    "periplus_demo": 2,
}
SLACK_NAMES = 10


@pytest.fixture(scope="module")
def packages() -> dict[str, Prose]:
    files = (path for suffix in ("py", "html") for path in sorted(SRC.rglob(f"*.{suffix}")))
    return prose_of((path.relative_to(SRC).as_posix(), path.read_text("utf-8")) for path in files)


def phrase_fault(package: str, prose: Prose, left: float | None) -> str:
    """Why a package fails the ceiling of phrases, with each phrase's file and line, or an empty string."""
    ceiling, rate = left or PHRASES_PER_1000_WORDS, prose.phrases_per_1000_words
    if rate > ceiling:
        return f"{package}: {rate:.1f} odd phrases per 1,000 words, at most {ceiling}:\n" + "\n".join(prose.phrases)
    if left and (rate <= PHRASES_PER_1000_WORDS or rate < left - SLACK_PHRASES):
        return f"{package}: {rate:.1f} odd phrases per 1,000 words: lower its line in PHRASES_LEFT"
    return ""


def name_fault(package: str, prose: Prose, left: int) -> str:
    """Why a package fails the ceiling of names, with each name's file and line, or an empty string."""
    names = len(prose.names)
    if names > left:
        return f"{package}: {names} names are participles or pronouns, at most {left}:\n" + "\n".join(prose.names)
    if names < left - SLACK_NAMES or (left and not names):
        return f"{package}: {names} names are participles or pronouns: lower its line in NAMES_LEFT"
    return ""


def test_each_package_is_written_in_plain_english(packages):
    assert len(packages) > 20 and packages.keys() >= PHRASES_LEFT.keys()
    assert [
        fault for name, prose in packages.items() if (fault := phrase_fault(name, prose, PHRASES_LEFT.get(name)))
    ] == []  # fmt: skip


def test_no_name_is_a_participle_or_a_pronoun(packages):
    assert packages.keys() >= NAMES_LEFT.keys()
    assert [
        fault for name, prose in packages.items() if (fault := name_fault(name, prose, NAMES_LEFT.get(name, 0)))
    ] == []  # fmt: skip


SAMPLE = '''"""Leases hosts. Of two, the later one.

Nobody tells `who asked` what it said.
"""

import re  # http://who.example/

TOLD = "told"
LIMIT_BYTES: int = 1  # whoever comes first


class Found:
    def those_of(self): ...

    def is_found(self): ...

    def lease(self, host): ...
'''


def test_a_mark_has_its_file_and_line():
    prose = prose_of([("a/b.py", SAMPLE), ("a/templates/c.html", "<b class='who'>Who\n</b> {{ who }}")])["a"]
    assert prose.phrases == [
        "a/b.py:1: Of two",
        "a/b.py:3: Nobody",
        "a/b.py:3: tells",
        "a/b.py:3: said",
        "a/b.py:9: whoever",
        "a/templates/c.html:1: Who",
    ]
    assert prose.names == ["a/b.py:8: TOLD", "a/b.py:12: Found", "a/b.py:13: those_of"]
    assert prose.words == 18
    assert "a/b.py:9: whoever" in phrase_fault("a", prose, None)
    assert "a/b.py:12: Found" in name_fault("a", prose, 2)


def test_a_ceiling_follows_a_package_that_improved():
    prose = Prose(1000, ["phrase"] * 10, ["name"] * 3)
    assert [phrase_fault("a", prose, left) for left in (10.0, 13.0)] == ["", ""]
    assert "lower" in phrase_fault("a", prose, 13.1)
    assert "lower" in phrase_fault("a", Prose(1000, ["phrase"]), 6.0)
    assert phrase_fault("a", Prose(), None) == name_fault("a", Prose(), 0) == name_fault("a", prose, 13) == ""
    assert "lower" in name_fault("a", prose, 14) and "lower" in name_fault("a", Prose(), 1)


@pytest.mark.parametrize("name", ["found", "_kept", "chosen_by", "MOST_HELD", "LoginFailed", "what_changed", "each_of"])
def test_an_odd_name_is_a_participle_or_a_pronoun(name):
    assert is_odd_name(name)


@pytest.mark.parametrize("name", ["speed", "is_found", "written_errors", "lease_hosts", "one_page", "SEED", "rows_of"])
def test_a_plain_name_is_a_noun_a_verb_or_a_question(name):
    assert not is_odd_name(name)
