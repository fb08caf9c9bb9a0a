"""Is the code written in plain English? Odd phrases are counted per 1,000 words, odd names one by one.

A word counts if it is in a comment, a docstring, another string with a space, or the text of a template. Files are
scanned with one regular expression and not parsed: this takes a second for all of `src`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LITERAL = re.compile(
    r"""(?P<comment>\#[^\n]*)
    | (?P<quote>\"\"\"|'''|"|')(?P<string>(?:\\.|(?!(?P=quote)).)*)(?P=quote)""",
    re.DOTALL | re.VERBOSE,
)
DEFINITION = re.compile(r"^[ ]*(?:async )?(?:def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)
MARKUP = re.compile(r"<[^>]*>|\{[{%#].*?[}%#]\}")
CODE = re.compile(r"`[^`\n]*`|https?://\S+")
WORD = re.compile(r"\S+")
PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words with which the authors of other crawlers do not describe programs, and phrases that make a reader guess what
# a pronoun refers to. A few are right now and then ("the user who ..."): this is why the ceiling is not 0.
ODD_WORDS = _words("""
who whom whoever whomever somebody nobody anybody tell tells told say says said lie lies lay laid stand stands stood
thus hence henceforth meanwhile whatever wherever bring brings brought meet meets met dealt anew aside
wish wishes wished deed deeds desk crew bury buries buried fallen ones
""")
ODD_PHRASES = (
    r"(?:as|than) (?:asked|shown|wanted|meant|known)",
    r"(?:the|of) one",
    r"one (?:that|which)",
    r"others (?:are|is|have|has|go|of|that)",
    r"(?:those|such) (?:are|have|go|of|that)",
    r"(?:let|lets) go of",
    r"(?:speak|speaks|spoke) (?:for|against)",
    r"(?:at|in) hand",
    r"in vain|at ease|sign of|signs of",
)
ODD_STARTS = (
    r"Of (?:a|all|an|each|it|its|one|several|that|the|these|this|those|two|what|which)",
    r"What (?!is|are|does|do|if)[a-z]+",
)
PHRASE = re.compile(
    r"\b(?:" + "|".join([*sorted(ODD_WORDS), *ODD_PHRASES]) + r")\b"
    r"|(?-i:(?:^|(?<=[.;:] ))(?:" + "|".join(ODD_STARTS) + r"))\b",
    re.IGNORECASE | re.MULTILINE,
)

PREPOSITIONS = _words("about above after at before below by for from in into near of off on per to under with within")
PRONOUNS = _words(
    "anybody each either everybody it neither nobody none one ones others some somebody such them these those "
    "what who whoever whom whose"
)
AUXILIARIES = _words("are be can does had has have if is may must needs should was were when")
# Past participles that are no other word of the field: "read", "set", "split" and "left" are not here.
IRREGULAR = _words(
    "begun bought broken brought built caught chosen done drawn driven fallen forgotten found given gone grown heard "
    "held hidden kept known laid lent lost made meant met paid risen said seen sent shown sought spent spoken stood "
    "taken taught thought told torn understood worn written"
)
NOT_REGULAR = _words("bed bleed breed embed exceed feed hundred need proceed red seed shed speed succeed weed")


@dataclass
class Prose:
    """Words of one package, and its odd phrases and names as `file:line: what` in the order of the files."""

    words: int = 0
    phrases: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    @property
    def phrases_per_1000_words(self) -> float:
        return 1000 * len(self.phrases) / max(self.words, 1)


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 3 and word not in NOT_REGULAR)


def is_odd_name(name: str) -> bool:
    """Whether the name is a participle or a pronoun where a noun or a verb belongs.

    The word that counts is the last before the first preposition: `chosen_by` is odd, `chosen_host` is not.
    """
    words = [part.lower() for part in PART.findall(name)]
    if not words or words[0] in AUXILIARIES:
        return False
    end = next((place for place, word in enumerate(words) if place and word in PREPOSITIONS), len(words))
    return is_participle(words[end - 1]) or words[end - 1] in PRONOUNS or words[0] in PRONOUNS - {"one"}


def passages(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each passage of prose; code and addresses are blanked out."""
    if suffix != ".py":
        yield 0, MARKUP.sub(_blank, text)
        return
    for match in LITERAL.finditer(text):
        kind = "comment" if match["comment"] else "string"
        if kind == "comment" or " " in match[kind].strip():
            yield match.start(kind), CODE.sub(_blank, match[kind])


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def add_file(prose: Prose, path: str, text: str) -> None:
    """Adds a file's words and marks to those of its package."""
    for offset, passage in passages(text, Path(path).suffix):
        prose.words += sum(1 for _ in WORD.finditer(passage))
        for match in PHRASE.finditer(passage):
            prose.phrases.append(f"{path}:{_line(text, offset + match.start())}: {match[0]}")
    if path.endswith(".py"):
        code = LITERAL.sub(_blank, text)
        for match in DEFINITION.finditer(code):
            if is_odd_name(name := match[1] or match[2]):
                prose.names.append(f"{path}:{_line(text, match.start(match.lastindex or 0))}: {name}")


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def prose_of(files: Iterable[tuple[str, str]]) -> dict[str, Prose]:
    """Prose of each package (folder). files: path and text of each."""
    packages: dict[str, Prose] = defaultdict(Prose)
    for path, text in files:
        add_file(packages[str(Path(path).parent).removesuffix("/templates")], path, text)
    return dict(packages)
