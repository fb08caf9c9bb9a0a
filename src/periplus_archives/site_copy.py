"""Exports fetched pages as files that can be read from disk without a server."""

from __future__ import annotations

import csv
import posixpath
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from periplus.api.homes import snapshot_of
from periplus.document.decode import decode
from periplus.document.rewriting import rewritten_css, rewritten_html, rewritten_xml, url_rewriter
from periplus.errors import StoreError, UsageError
from periplus.model.visit import Reason
from periplus.model.web import Url, UrlId
from periplus.present.markup import macros
from periplus.present.wording import REASON_WORDS, count_of
from periplus.store.reader import CollectionReader
from periplus.store.site_rows import redirect_hops
from periplus.urls.canonical import url_id
from periplus.urls.files import FileNames
from periplus.urls.hosts import host_key
from periplus.urls.scope import site_name
from periplus.values import Place, frozen
from periplus_archives.exchanges import other_addresses, with_bodies

NOT_KEPT_COLUMNS = ("url", "reason", "status", "links")

PAGES = frozenset({"text/html", "application/xhtml+xml"})
SCRIPTS = frozenset({"text/javascript", "application/javascript", "application/x-javascript"})
_HAS_SCRIPTS = re.compile(r"<script|\son[a-z]+\s*=|javascript:", re.IGNORECASE)
OWN = ("index.html", "not-kept.html", "not-kept.csv")
ROWS_MOST = 5_000  # rows in not-kept.html that a browser can display


class MissingTarget(NamedTuple):
    """An address that pages of the copy lead to and that is not in it. status 0: no answer; links: how many."""

    url: str
    reason: Reason | None  # None: never heard of
    status: int
    links: int


def missing_reason(row: MissingTarget) -> str:
    if row.reason is None:
        return "unknown to the crawl"
    words = (
        "fetched, its bytes were not kept" if row.reason in (Reason.OK, Reason.NOINDEX) else REASON_WORDS[row.reason]
    )
    return f"{words} ({row.status})" if row.status >= 400 else words


@frozen
class SiteCopy:
    """Result of an export. parts: styles, scripts, pictures and other files; not_kept: URLs of its hosts without files;
    with_scripts: pages in which scripts may run.
    """

    folder: Path
    pages: int
    parts: int
    not_kept: int
    size_bytes: int
    with_scripts: int = 0


def export_site(
    place: Place,
    target: Path,
    watch: Callable[[int, int], None] = lambda done, count: None,
    *,
    scripts: bool = True,
) -> SiteCopy:
    """Writes every page and resource with a stored body below target, with relative links between them.

    URLs without a stored body stay absolute and are listed in not-kept.html. watch: called with the number of files
    written and the total. A Content-Security-Policy in each page prevents scripts from accessing the web; scripts:
    whether HTML pages keep theirs. SVG and XML cannot have a policy and keep no scripts. Raises UsageError if target is
    not empty or no bodies are stored, StoreError, NoCollection.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} already exists: choose a new or empty folder")
    with snapshot_of(place) as reader:
        try:
            return _Copy(reader, target, scripts).write(watch)
        except OSError as error:
            raise StoreError(
                f"{target} cannot be written: {error.strerror or error}. Is the disk full, or the folder read-only?"
            ) from error


class _Copy:
    """One export."""

    def __init__(self, reader: CollectionReader, target: Path, scripts: bool) -> None:
        self._reader, self._target, self._scripts = reader, target, scripts
        self._with_scripts = 0
        names = FileNames(OWN)
        rows = (row for row in with_bodies(reader) if scripts or row[2] not in SCRIPTS)
        self._files = [(*row, names.of(row[1], row[2])) for row in rows]
        if not self._files:
            raise UsageError(
                "the collection has no stored page bodies: it was crawled without --keep-bodies, or is empty"
            )
        self._paths: dict[UrlId, str] = {row[0]: row[-1] for row in self._files}
        self._hosts = {host_key(row[1]) for row in self._files}
        self._paths |= self._other_paths()
        self._missing: Counter[Url] = Counter()

    def _other_paths(self) -> dict[UrlId, str]:
        """Paths for redirects and aliases, which point to the file of their target."""
        leads = dict(other_addresses(self._reader))
        sources, targets, _ = redirect_hops(self._reader)
        leads |= dict(zip(map(UrlId, sources.tolist()), map(UrlId, targets.tolist()), strict=True))
        paths: dict[UrlId, str] = {}
        for source in leads:
            if source in self._paths:
                continue
            end, met = source, set()
            while end not in self._paths and end in leads and end not in met:
                met.add(end)
                end = leads[end]
            if end in self._paths:
                paths[source] = self._paths[end]
        return paths

    def write(self, watch: Callable[[int, int], None]) -> SiteCopy:
        size = pages = 0
        for done, (page_id, url, media_type, charset, path) in enumerate(self._files):
            watch(done, len(self._files))
            data = self._rewritten(url, path, media_type, charset, self._reader.body(page_id) or b"")
            file = self._target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            size += len(data)
            pages += media_type in PAGES
        not_kept = self._missing_rows()
        self._write_own(not_kept, pages)
        return SiteCopy(self._target, pages, len(self._files) - pages, len(not_kept), size, self._with_scripts)

    def _rewritten(self, url: Url, path: str, media_type: str, charset: str, body: bytes) -> bytes:
        is_xml = media_type.endswith(("/xml", "+xml"))
        if not is_xml and media_type not in ("text/html", "text/css"):
            return body
        text, _ = decode(body, charset, media_type)
        change = url_rewriter(url, partial(self._place, path))
        if media_type == "text/css":
            sheet = rewritten_css(text, change(""))
            return (sheet if sheet.isascii() else f'@charset "utf-8";\n{sheet}').encode("utf-8", "replace")
        policy = _policy(url, self._scripts and not is_xml)
        if is_xml:
            return rewritten_xml(text, change, policy)
        changed = rewritten_html(text, change, policy, with_scripts=self._scripts)
        self._with_scripts += self._scripts and _HAS_SCRIPTS.search(changed) is not None
        return changed.encode("utf-8", "replace")

    def _place(self, path: str, target: Url, fragment: str) -> str:
        """The link from the file at path: relative if the target is in the copy, else absolute."""
        behind = f"#{fragment}" if fragment else ""
        other = self._paths.get(url_id(target))
        if other is None:
            if host_key(target) in self._hosts:
                self._missing[target] += 1
            return target + behind
        if other == path and behind:
            return behind
        return quote(posixpath.relpath(other, posixpath.dirname(path)), safe="/~!$'()*+,;=@&") + behind

    def _missing_rows(self) -> list[MissingTarget]:
        rows = []
        for url in sorted(self._missing):
            (brief,) = self._reader.briefs([url_id(url)])
            reason = Reason(brief.reason) if brief.url else None
            rows.append(MissingTarget(url, reason, brief.status, self._missing[url]))
        return rows

    def _write_own(self, not_kept: list[MissingTarget], pages: int) -> None:
        records = self._reader.runs()
        starts = dict.fromkeys(Url(start) for record in records for start in record.starts)
        there = [(start, quote(self._paths[url_id(start)])) for start in starts if url_id(start) in self._paths]
        there = there or [(self._files[0][1], quote(self._files[0][-1]))]
        title = site_name(there[0][0])
        parts = count_of(len(self._files) - pages, "part")
        counts = f"{count_of(pages, 'page')} and {parts} of {count_of(len(self._hosts), 'host')}"
        ended = max(record.ended or record.started for record in records)
        html: Any = macros("site_copy.html", "periplus_archives")
        (self._target / "index.html").write_text(html.front(title, there, counts, ended, len(not_kept)), "utf-8")
        rows = [(row.url, missing_reason(row), row.links) for row in not_kept[:ROWS_MOST]]
        (self._target / "not-kept.html").write_text(html.missing(title, rows, len(not_kept)), "utf-8")
        with (self._target / "not-kept.csv").open("w", encoding="utf-8", newline="") as out:
            lines = csv.writer(out)
            lines.writerow(NOT_KEPT_COLUMNS)
            lines.writerows(
                (row.url, row.reason.value if row.reason else "", row.status or "", row.links) for row in not_kept
            )


def _policy(url: Url, scripts: bool) -> str:
    """The Content-Security-Policy of a page: allows local files, and images, styles and fonts from its own host.

    `file:` and 'self' are the copy, from disk and from a server. Scripts cannot make requests.
    """
    host = urlsplit(url).netloc
    script_sources = "'self' file: 'unsafe-inline' 'unsafe-eval'" if scripts else "'none'"
    return (
        f"default-src 'self' file: data: blob: http://{host} https://{host} 'unsafe-inline'; connect-src 'none'; "
        f"script-src {script_sources}; "
        "frame-src 'self' file:; object-src 'self' file:; base-uri 'none'"
    )
