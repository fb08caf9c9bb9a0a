"""Values of an audit: verdicts on links, kinds of issues, and issues."""

from __future__ import annotations

from enum import StrEnum

from periplus.values import frozen


class Verdict(StrEnum):
    """Verdict on a link's target. The value is what users see and filter by: stable."""

    OK = "ok"
    MOVED = "moved"  # permanently: the link should be updated
    BROKEN = "broken"  # reported as broken
    SERVER_ERROR = "server-error"  # may be temporary
    REFUSED = "refused"  # to crawlers, perhaps not to visitors: not reported as broken
    MISSING = "looks-missing"  # answers 200 with an error page, a soft 404
    SUSPECT = "suspect"  # truncated, TLS error, or failed once and not retried yet
    UNCHECKED = "not-checked"


VERDICTS = tuple(Verdict)
"""Arrays hold the index of a verdict in this tuple."""


class FragmentVerdict(StrEnum):
    """Whether a fragment exists on its page."""

    FOUND = "found"
    TOP = "top"  # empty, or `top`: always exists
    MISSING = "missing"
    TEXT_MISSING = "text-missing"  # the anchor exists, but not the text of its `:~:text=`
    UNKNOWN = "unknown"  # not HTML, or decided by a script


class Severity(StrEnum):
    """How much an issue matters, gravest first. Users can change the severity of a kind of issue."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Category(StrEnum):
    """Subject of an issue."""

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


class SharedCause(StrEnum):
    """What issues of one kind share if one fix resolves several of them."""

    PAGE = "page"  # nothing: each page is its own cause
    TARGET = "target"  # the URL that they lead to or name: a missing script
    FRAGMENT = "fragment"  # a place on that URL
    WORDS = "words"  # what is written there: a menu's malformed link
    FOLDER = "folder"  # the folder that they lie in: its pages are made by one template
    HOST = "host"  # its server's settings, named by the root URL: pages sent uncompressed
    GROUP = "group"  # what several pages share, as a title; the group is named by its first page


@frozen
class IssueKind:
    """A kind of issue."""

    code: str  # stable: used in --ignore, --severity and --fail-on
    severity: Severity
    category: Category
    title: str  # a few words, used as a heading
    why: str  # why it matters, one sentence
    remedy: str  # what to do, one sentence
    detail: str = ""  # str.format template for the detail of one issue: number, limit, position, text
    caused_by: SharedCause = SharedCause.PAGE
    source: str = ""  # standard and section that require it; empty: common practice


@frozen
class Issue:
    """One problem of one page."""

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
        """Identity of the issue across runs; independent of its wording."""
        return (self.code, self.url, self.related)


@frozen
class Fault:
    """One cause and its issues of one kind: one script missing on 527 pages is one fault."""

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
    """An aspect of a site that gets a grade. The value is public (screens, JSON, `--fail-below`)."""

    DISCOVERABILITY = "discoverability"
    ACCESSIBILITY = "accessibility"
    SECURITY = "security"
    PERFORMANCE = "performance"
    MAINTENANCE = "maintenance"


@frozen
class GradePart:
    """Points subtracted for one kind of issue. pages: number of pages affected."""

    code: str
    title: str
    severity: Severity
    pages: int
    points: float


@frozen
class FieldGrade:
    """Grade of a site in one field. score: 0 to 100; parts: subtracted points, largest first."""

    field: GradedField
    score: int
    letter: str
    parts: tuple[GradePart, ...]


class FaultDecision(StrEnum):
    """A user's decision on a cause. The value is what users see and filter by."""

    OPEN = ""
    ACCEPTED = "accepted"  # a known problem that is tolerated
    IGNORED = "ignored"  # not a problem


@frozen
class FaultNote:
    """A user's note on one cause. Accepted and ignored causes are left out of lists, totals and gates."""

    code: str
    cause: str
    decision: FaultDecision = FaultDecision.OPEN
    assignee: str = ""  # person who fixes it
    words: str = ""
    made: float = 0.0  # seconds since the epoch

    @property
    def is_empty(self) -> bool:
        return self.decision is FaultDecision.OPEN and not self.assignee and not self.words
