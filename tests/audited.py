"""A small site as input of the audit. A test lists pages and links by name; all other properties are free of faults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from periplus.analyse.audit import audit, issue_kinds
from periplus.analyse.audit_input import POSITIONS, AuditInput, AuditUrls, LinkFacts, PageTraits, Remarks, text_keys
from periplus.analyse.issues import IssueTable, KindIssues, by_severity, format_issues, kind_issues, texts
from periplus.analyse.sizes import KINDS
from periplus.analyse.verdicts import RedirectColumns
from periplus.model.audit import VERDICTS, Fault, Issue, Severity, SharedCause, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import LinkKind, Position
from periplus.model.visit import Reason
from periplus.urls.canonical import url_id


def issues(findings, site, rules=None, lookups=None):
    """The findings of `audit` one by one, in order."""
    for kind in kind_issues(findings, site, rules, lookups):
        yield from format_issues(kind, site.urls.url)


PAGE = {
    "title": None,  # its own
    "description": None,
    "text": None,
    "h1s": 1,
    "canonical": "",
    "noindex": False,
    "has_language": True,
    "charset_mismatch": False,
    "took_s": 0.1,
    "weight_bytes": 1000,
    "images_without_alt": 0,
}
URL = {"reason": Reason.OK, "verdict": Verdict.UNCHECKED, "depth": 1, "own": True, "start": False, "in_sitemap": False}


@dataclass
class SmallSite:
    """A name with a scheme is a URL; any other NAME stands for `https://h/NAME`."""

    pages: dict[str, dict] = field(default_factory=dict)  # by name: the values that differ from PAGE and URL
    others: dict[str, dict] = field(default_factory=dict)  # URLs without a page: dead, redirected, external
    links: list[tuple] = field(default_factory=list)  # (from, to, kind, nofollow)
    redirects: dict[str, str] = field(default_factory=dict)
    remarks: dict = field(default_factory=dict)

    def input(self) -> AuditInput:
        facts = {url(name): {**URL, **changes} for name, changes in {**self.pages, **self.others}.items()}
        names = sorted(facts)
        place = {name: row for row, name in enumerate(names)}
        rows = [facts[name] for name in names]
        urls = AuditUrls(
            names,
            np.array([REASONS.index(row["reason"]) for row in rows], np.uint8),
            np.array([VERDICTS.index(row["verdict"]) for row in rows], np.uint8),
            np.array([row["depth"] for row in rows], np.int32),
            *(np.array([row[name] for row in rows], np.bool_) for name in ("own", "start", "in_sitemap")),
        )
        pages = self._pages(place)
        sources = np.array([place[url(name)] for name in self.redirects], np.int64)
        targets = np.array([place[url(name)] for name in self.redirects.values()], np.int64)
        redirects = RedirectColumns(sources, targets, np.full(len(sources), 301, np.int16))
        return AuditInput(urls, pages, self._links(place), redirects, self._remarks(place))

    def _pages(self, place):
        traits = {place[url(name)]: {**PAGE, **values, "name": name} for name, values in self.pages.items()}
        rows = [traits[row] for row in sorted(traits)]
        own = {
            key: [row["name"] if row[key] is None else row[key] for row in rows]
            for key in ("title", "description", "text")
        }
        return PageTraits(
            place=np.array(sorted(traits), np.int64),
            title=text_keys(own["title"]),
            title_chars=np.array([len(text) for text in own["title"]], np.int32),
            description=text_keys(own["description"]),
            description_chars=np.array([len(text) for text in own["description"]], np.int32),
            text=text_keys(own["text"]),
            canonical=np.array([place[url(row["canonical"])] if row["canonical"] else -1 for row in rows], np.int64),
            **{name: np.array([row[name] for row in rows], np.int32) for name in ("h1s", "images_without_alt")},
            **{
                name: np.array([row[name] for row in rows], np.bool_)
                for name in ("noindex", "has_language", "charset_mismatch")
            },
            took_s=np.array([row["took_s"] for row in rows], np.float64),
            weight_bytes=np.array([row["weight_bytes"] for row in rows], np.int64),
        )

    def _links(self, place):
        rows = [(*link, *("a", False)[len(link) - 2 :]) for link in self.links]
        return LinkFacts(
            np.array([place[url(row[0])] for row in rows], np.int64),
            np.array([place[url(row[1])] for row in rows], np.int64),
            np.array([KINDS.index(LinkKind(row[2])) for row in rows], np.uint8),
            np.full(len(rows), POSITIONS.index(Position.MAIN), np.uint8),
            np.array([row[3] for row in rows], np.bool_),
            np.array([place[url(row[1])] for row in rows], np.int64),
        )

    def _remarks(self, place):
        remarks = dict(self.remarks)
        for name, urls in (("mails", 1), ("malformed", 1), ("unread", 1), ("series", 1), ("hreflangs", 2)):
            remarks[name] = [(*(place[url(part)] for part in row[:urls]), *row[urls:]) for row in remarks.get(name, [])]
        remarks["near"] = [
            replace(group, leader=place[url(group.leader)], members=tuple(place[url(name)] for name in group.members))
            for group in remarks.get("near", [])
        ]
        return Remarks(**remarks)

    def found(self) -> set[tuple[str, str, str]]:
        """(code, name of the page, name of the related URL) of each issue."""
        known = self.input()
        return {(issue.code, named(issue.url), named(issue.related)) for issue in issues(audit(known), known)}


def faults(given: Iterable[Issue]) -> list[Fault]:
    """The faults of these issues, each with all of its issues."""
    table = given if isinstance(given, IssueTable) else table_of(list(given))
    return list(table.faults(max(len(table), 1)))


def table_of(given: list[Issue]) -> IssueTable:
    """The issues as columns. Their texts are copied unchanged; causes are derived from the kind of issue."""
    named_urls = {text for issue in given for text in (issue.url, issue.related, issue.cause) if text}
    names = sorted(named_urls)
    place = {text: row for row, text in enumerate(names)} | {"": -1}
    groups: dict[tuple[str, Severity], list[Issue]] = {}
    for issue in given:
        groups.setdefault((issue.code, issue.severity), []).append(issue)
    return IssueTable(
        tuple(by_severity(_columns_of(severity, group, place) for (_, severity), group in groups.items())),
        names,
        np.array([url_id(text) if "://" in text else 0 for text in names], np.int64),
    )


def _columns_of(severity: Severity, group: list[Issue], place: dict[str, int]) -> KindIssues:
    kind, count = issue_kinds()[group[0].code], len(group)
    by_words = kind.caused_by in (SharedCause.WORDS, SharedCause.FRAGMENT)
    related = [issue.related or ("" if by_words or issue.cause == issue.url else issue.cause) for issue in group]
    places = np.array([place[text] for text in related], np.int64)
    positions = [POSITIONS.index(Position(issue.position)) if issue.position else 255 for issue in group]
    words = [issue.cause.removeprefix(f"{issue.related}#") if by_words else issue.detail for issue in group]
    return KindIssues(
        replace(kind, detail="" if by_words else "{words}"),
        severity,
        0.0,
        np.array([place[issue.url] for issue in group], np.int64),
        places,
        places,
        np.array(positions, np.uint8),
        np.zeros(count),
        texts(words, count),
        texts([issue.anchor for issue in group], count),
        *(np.array([getattr(issue, name) for issue in group], np.int32) for name in ("line", "column")),
    )


def url(name: str) -> str:
    return name if "://" in name else "https://h/" + name


def named(text: str) -> str:
    return text.removeprefix("https://h/")
