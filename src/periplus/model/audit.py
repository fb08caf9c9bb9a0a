"""What an audit finds: verdicts on links, kinds of issues, and the issues themselves, as values."""

from __future__ import annotations

from enum import StrEnum

from periplus.values import frozen


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


class Severity(StrEnum):
    """How much an issue matters, gravest first. Users can change the severity of a kind of issue."""

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
    ACCESSIBILITY = "accessibility"
    SECURITY = "security"
    PERFORMANCE = "performance"
    STRUCTURE = "structure"


class CausedBy(StrEnum):
    """What the issues of one kind have in common where one repair mends several of them."""

    PAGE = "page"  # nothing: each page is its own cause
    TARGET = "target"  # the URL that they lead to or name: a missing script
    FRAGMENT = "fragment"  # a place on that URL
    WORDS = "words"  # what is written there: a menu's malformed link
    FOLDER = "folder"  # the folder that they lie in: its pages are made by one template
    HOST = "host"  # its server's settings, named by the root URL: pages sent uncompressed
    GROUP = "group"  # what several pages share, as a title; the group is named by its first page


@frozen
class IssueKind:
    """One row of the table of issues."""

    code: str  # stable: used in --ignore, --severity and --fail-on
    severity: Severity
    category: Category
    title: str  # a few words, the heading of a list
    why: str  # why it matters, one sentence
    remedy: str  # what to do, one sentence
    detail: str = ""  # str.format template of one issue's own sentence: number, limit, position, words
    caused_by: CausedBy = CausedBy.PAGE
    source: str = ""  # the standard that asks for it, with its section; empty: practice


@frozen
class Issue:
    """One thing that is wrong, and where."""

    code: str
    severity: Severity
    url: str  # the page to mend
    detail: str = ""
    related: str = ""  # the other URL that it is about: a link's target, the page with the same title; empty: none
    anchor: str = ""  # of a link: its words
    position: str = ""  # of a link: its part of the page
    cause: str = ""  # what is to be mended once for all issues of the same cause: a URL or words; empty: this page
    line: int = 0  # of the page's source as decoded, from 1, where it is looked up (`api.positions`); 0: not told
    column: int = 0  # in characters, from 1; a tab is one

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same issue in another run: not its wording."""
        return (self.code, self.url, self.related)


@frozen
class Fault:
    """One cause, and the issues of one kind that it makes: one missing script is one fault on 527 pages."""

    code: str
    severity: Severity
    cause: str  # a URL or words
    pages: int  # distinct pages with such an issue
    total: int  # issues: a page may have several
    issues: tuple[Issue, ...]  # all of them, or the first
    detail: str = ""  # what all of its issues say; empty where they differ


@frozen
class KindSum:
    """How many causes of one kind and severity there are, and on how many pages they are met."""

    kind: IssueKind
    severity: Severity
    causes: int
    pages: int


class GradedField(StrEnum):
    """An aspect of a site that gets a grade. The value is public: screens, JSON, `--fail-below`."""

    DISCOVERABILITY = "discoverability"
    ACCESSIBILITY = "accessibility"
    SECURITY = "security"
    PERFORMANCE = "performance"
    MAINTENANCE = "maintenance"


@frozen
class GradePart:
    """One kind of issue, and the points that it takes. pages: with such an issue."""

    code: str
    title: str
    severity: Severity
    pages: int
    points: float


@frozen
class FieldGrade:
    """How good a site is in a field. score: 0 to 100; parts: what takes points, most first."""

    field: GradedField
    score: int
    letter: str
    parts: tuple[GradePart, ...]


class FaultDecision(StrEnum):
    """What a person decided on a cause. The value is what users see and filter by."""

    OPEN = ""
    ACCEPTED = "accepted"  # it is so, and may stay so
    IGNORED = "ignored"  # it is no fault


@frozen
class FaultNote:
    """What a person noted on one cause. An accepted or ignored one is left out of lists, sums and gates."""

    code: str
    cause: str
    decision: FaultDecision = FaultDecision.OPEN
    assignee: str = ""  # who mends it
    words: str = ""
    made: float = 0.0  # seconds since the epoch

    @property
    def is_empty(self) -> bool:
        return self.decision is FaultDecision.OPEN and not self.assignee and not self.words
