"""What an audit finds: verdicts on links, kinds of issues, and the issues themselves, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What is to be thought of a link's target. The value is what users see and filter by: stable."""

    OK = "ok"
    MOVED = "moved"  # permanently: the link should name the new place
    BROKEN = "broken"  # alarmed
    SERVER_ERROR = "server-error"  # its server fails: may pass
    REFUSED = "refused"  # to us, perhaps not to others: never alarmed
    MISSING = "looks-missing"  # answers 200 with an error page, a soft 404
    SUSPECT = "suspect"  # cut short, TLS, or failed once and not asked again yet
    UNCHECKED = "not-checked"


VERDICTS = tuple(Verdict)
"""A verdict's place here stands for it in arrays."""


class FragmentVerdict(StrEnum):
    """Whether a fragment leads anywhere on its page."""

    FOUND = "found"
    TOP = "top"  # empty, or `top`: always there
    MISSING = "missing"
    TEXT_MISSING = "text-missing"  # the place is there, the words of its `:~:text=` are not
    UNKNOWN = "unknown"  # no HTML, or a script decides


class Grade(StrEnum):
    """How much an issue matters, gravest first. Users may grade a kind of issue otherwise."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Category(StrEnum):
    """What an issue is about."""

    LINKS = "links"
    REDIRECTS = "redirects"
    TITLES = "titles"
    INDEXING = "indexing"  # canonical, robots, sitemap
    LANGUAGES = "languages"
    CONTENT = "content"
    SECURITY = "security"
    SPEED = "speed"
    STRUCTURE = "structure"


@dataclass(frozen=True, slots=True)
class IssueKind:
    """One row of the table of issues."""

    code: str  # stable: users ignore, re-grade and gate by it
    grade: Grade
    category: Category
    title: str  # a few words, the heading of a list
    why: str  # why it matters, one sentence
    remedy: str  # what to do, one sentence
    detail: str = ""  # str.format template of one issue's own sentence: number, limit, position, words


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong, and where."""

    code: str
    grade: Grade
    url: str  # the page to mend
    detail: str = ""
    related: str = ""  # the other URL that it is about: a link's target, the page with the same title; empty: none
    anchor: str = ""  # of a link: its words
    position: str = ""  # of a link: the part of the page that it stands in

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same issue in another run: not its wording."""
        return (self.code, self.url, self.related)
