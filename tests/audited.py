"""A small site as an audit sees it: pages and links are told by name, what is not told is sound."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from periplus.analyse.audit import audit, issue_kinds
from periplus.analyse.audit_input import POSITIONS, AuditInput, AuditUrls, LinkFacts, PageTraits, Remarks, text_keys
from periplus.analyse.issues import IssueTable, KindIssues, by_severity, issues, texts
from periplus.analyse.sizes import KINDS
from periplus.analyse.verdicts import RedirectColumns
from periplus.model.audit import VERDICTS, Fault, Issue, Severity, SharedCause, Verdict
from periplus.model.graph import REASONS
from periplus.model.page import LinkKind, Position
from periplus.model.visit import Reason
from periplus.urls.canonical import url_id

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
    """URLs are `https://h/NAME`, or as they are where they have a scheme."""

    pages: dict[str, dict] = field(default_factory=dict)  # name -> what is not as in PAGE and URL
    others: dict[str, dict] = field(default_factory=dict)  # no pages: dead, moved, elsewhere
    links: list[tuple] = field(default_factory=list)  # (from, to, kind, nofollow)
    redirects: dict[str, str] = field(default_factory=dict)
    remarks: dict = field(default_factory=dict)

    def input(self) -> AuditInput:
        facts = {url(name): {**URL, **told} for name, told in {**self.pages, **self.others}.items()}
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
        told = {place[url(name)]: {**PAGE, **values, "name": name} for name, values in self.pages.items()}
        rows = [told[row] for row in sorted(told)]
        own = {
            key: [row["name"] if row[key] is None else row[key] for row in rows]
            for key in ("title", "description", "text")
        }
        return PageTraits(
            place=np.array(sorted(told), np.int64),
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
        told = dict(self.remarks)
        for name, urls in (("mails", 1), ("malformed", 1), ("unread", 1), ("series", 1), ("hreflangs", 2)):
            told[name] = [(*(place[url(part)] for part in row[:urls]), *row[urls:]) for row in told.get(name, [])]
        told["near"] = [
            replace(group, leader=place[url(group.leader)], members=tuple(place[url(name)] for name in group.members))
            for group in told.get("near", [])
        ]
        return Remarks(**told)

    def found(self) -> set[tuple[str, str, str]]:
        """(code, page's name, related name) of every issue."""
        known = self.input()
        return {(issue.code, named(issue.url), named(issue.related)) for issue in issues(audit(known), known)}


def faults(given: Iterable[Issue]) -> list[Fault]:
    """Issues by cause, each with all of its issues."""
    table = given if isinstance(given, IssueTable) else table_of(list(given))
    return list(table.faults(max(len(table), 1)))


def table_of(given: list[Issue]) -> IssueTable:
    """Issues as columns. What they say is taken as it is; causes follow from their kind."""
    named_urls = {text for one in given for text in (one.url, one.related, one.cause) if text}
    names = sorted(named_urls)
    place = {text: row for row, text in enumerate(names)} | {"": -1}
    groups: dict[tuple[str, Severity], list[Issue]] = {}
    for one in given:
        groups.setdefault((one.code, one.severity), []).append(one)
    return IssueTable(
        tuple(by_severity(_columns_of(severity, some, place) for (_, severity), some in groups.items())),
        names,
        np.array([url_id(text) if "://" in text else 0 for text in names], np.int64),
    )


def _columns_of(severity: Severity, some: list[Issue], place: dict[str, int]) -> KindIssues:
    kind, count = issue_kinds()[some[0].code], len(some)
    by_words = kind.caused_by in (SharedCause.WORDS, SharedCause.FRAGMENT)
    related = [one.related or ("" if by_words or one.cause == one.url else one.cause) for one in some]
    places = np.array([place[text] for text in related], np.int64)
    positions = [POSITIONS.index(Position(one.position)) if one.position else 255 for one in some]
    words = [one.cause.removeprefix(f"{one.related}#") if by_words else one.detail for one in some]
    return KindIssues(
        replace(kind, detail="" if by_words else "{words}"),
        severity,
        0.0,
        np.array([place[one.url] for one in some], np.int64),
        places,
        places,
        np.array(positions, np.uint8),
        np.zeros(count),
        texts(words, count),
        texts([one.anchor for one in some], count),
        *(np.array([getattr(one, name) for one in some], np.int32) for name in ("line", "column")),
    )


def url(name: str) -> str:
    return name if "://" in name else "https://h/" + name


def named(text: str) -> str:
    return text.removeprefix("https://h/")
