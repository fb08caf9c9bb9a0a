"""Under which names may anybody read a collection with SQL? Views, each described column by column.

The tables behind them may change with any version; these names stay. Any program that opens SQLite files can use them.
"""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.table import Column, ColumnKind
from periplus.model.visit import STATE_OF, State

TEXT, INTEGER, REAL, BOOLEAN, TIME = ColumnKind
_READ = "u.reason IN ({})".format(
    ", ".join(f"'{reason}'" for reason, state in STATE_OF.items() if state is State.INDEXED or reason == "noindex")
)


@dataclass(frozen=True, slots=True)
class View:
    """One view. source: what stands after FROM; expressions: of each column, in SQL."""

    name: str
    sentence: str
    source: str
    columns: tuple[Column, ...]
    expressions: tuple[str, ...]

    @property
    def statement(self) -> str:
        wanted = ",\n    ".join(
            f"{expression} AS {column.name}" for column, expression in zip(self.columns, self.expressions, strict=True)
        )
        return f"CREATE VIEW {self.name} AS SELECT\n    {wanted}\nFROM {self.source};\n"


def _view(name: str, sentence: str, source: str, *rows: tuple[str, ColumnKind, str, str]) -> View:
    columns = tuple(Column(column, kind, said) for column, kind, _, said in rows)
    return View(name, sentence, source, columns, tuple(expression for _, _, expression, _ in rows))


def _time(expression: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%SZ', nullif({expression}, 0), 'unixepoch')"


def _said(expression: str) -> str:
    """A text that is empty where nothing was said."""
    return f"nullif({expression}, '')"


_OF_URL = "url u JOIN host h ON h.id = u.host_id JOIN site s ON s.id = h.site_id JOIN reason r ON r.name = u.reason"

URLS = _view(
    "urls",
    "Every URL that was ever seen, fetched or not.",
    _OF_URL,
    ("id", INTEGER, "u.id", "64-bit hash of the URL; the same in every collection"),
    ("url", TEXT, "u.text", "the URL in canonical form"),
    ("host", TEXT, "h.key", "host name and port"),
    ("site", TEXT, "s.key", "the site that the host belongs to"),
    ("state", TEXT, "r.state", "indexed, registered, ignored or invalid"),
    ("reason", TEXT, "u.reason", "why it is in its state"),
    ("rule", TEXT, _said("u.rule"), "the rule, limit, failure or redirect target behind the reason"),
    ("depth", INTEGER, "u.depth", "clicks from the start; none where no link leads"),
    ("status", INTEGER, "nullif(u.status, 0)", "HTTP status of the last answer"),
    ("in_sitemap", BOOLEAN, "u.in_sitemap", "whether a sitemap names it"),
    ("first_seen", TIME, _time("u.first_seen"), "when it was first met"),
    ("visited", TIME, _time("u.visited"), "when it was last asked for"),
)
PAGES = _view(
    "pages",
    "Every URL that was asked for, with what came of it.",
    f"{_OF_URL} LEFT JOIN page p ON p.url_id = u.id AND {_READ} WHERE u.visited IS NOT NULL",
    ("id", INTEGER, "u.id", "64-bit hash of the URL"),
    ("url", TEXT, "u.text", "the URL in canonical form"),
    ("site", TEXT, "s.key", "its site"),
    ("state", TEXT, "r.state", "indexed, registered (refused, noindex), ignored (redirects) or invalid"),
    ("status", INTEGER, "nullif(u.status, 0)", "HTTP status; none without an answer"),
    (
        "error_kind",
        TEXT,
        f"CASE WHEN {_READ} THEN NULL ELSE u.reason END",
        "why it is no page: not-found, unreachable, redirect, ...; none for a page",
    ),
    ("redirect_to", TEXT, "CASE u.reason WHEN 'redirect' THEN u.rule END", "where it redirects, one hop"),
    ("content_type", TEXT, _said("p.media_type"), "media type without parameters"),
    ("charset", TEXT, _said("p.charset"), "encoding that the page was read with"),
    ("lang", TEXT, _said("p.language"), "language as declared (BCP 47)"),
    ("size", INTEGER, "p.size", "bytes, after decompression"),
    ("depth", INTEGER, "u.depth", "clicks from the start; none where no link leads"),
    ("title", TEXT, _said("p.title"), "the title"),
    ("meta_desc", TEXT, _said("p.description"), "the meta description"),
    ("h1", TEXT, _said("p.h1"), "the first main heading"),
    ("canonical", TEXT, _said("p.canonical"), "the canonical URL that the page names"),
    ("robots_meta", TEXT, _said("p.robots"), "noindex, nofollow, or both: from meta robots and X-Robots-Tag"),
    ("text_chars", INTEGER, "p.text_chars", "characters of text"),
    (
        "content_hash",
        TEXT,
        _said("lower(hex(p.text_md5))"),
        "MD5 of the text, white space folded; equal for duplicates",
    ),
    ("response_time", REAL, "p.took_s", "seconds from the request to the last byte"),
    ("fetched_at", TIME, _time("u.visited"), "when it was last asked for"),
    ("last_modified", TIME, _time("p.last_modified"), "as the server or the page says"),
    ("etag", TEXT, _said("p.etag"), "the ETag as sent"),
    ("in_sitemap", BOOLEAN, "u.in_sitemap", "whether a sitemap names it"),
)
# docs/decisions/0003
_LAST_SEEN = (
    "max(l.last_seen, coalesce((SELECT f.checked FROM freshness f WHERE f.url_id = l.source"
    " AND f.gone_since IS NULL), 0))"
)
LINKS = _view(
    "links",
    "Links; those of one page that agree in target, kind, position and nofollow are one row.",
    "link l CROSS JOIN url a ON a.id = l.source CROSS JOIN url b ON b.id = l.target"
    " CROSS JOIN host g ON g.id = a.host_id CROSS JOIN host h ON h.id = b.host_id"
    " CROSS JOIN site s ON s.id = g.site_id CROSS JOIN site t ON t.id = h.site_id",
    ("source_url", TEXT, "a.text", "the page with the link"),
    ("target_url", TEXT, "b.text", "where it leads"),
    ("anchor_text", TEXT, "l.anchor", "the words of the first of these links that has words; for images their alt"),
    ("kind", TEXT, "l.kind", "a, image, canonical, redirect, ..."),
    ("position", TEXT, "l.position", "nav, header, main, aside, footer, body or head"),
    ("nofollow", BOOLEAN, "l.nofollow", "whether it asks not to be followed"),
    ("internal", BOOLEAN, "g.site_id = h.site_id", "whether it stays on its site"),
    ("source_site", TEXT, "s.key", "the site of the page"),
    ("target_site", TEXT, "t.key", "the site of the target"),
    ("target_status", INTEGER, "nullif(b.status, 0)", "HTTP status of the target's last answer"),
    ("target_reason", TEXT, "b.reason", "what became of the target"),
    ("fragments", TEXT, _said("l.fragments"), "what stood behind #, separated by blanks"),
    ("times", INTEGER, "l.times", "how many such links the page has"),
    ("first_seen", TIME, _time("l.first_seen"), "when the page first had it"),
    ("last_seen", TIME, _time(_LAST_SEEN), "when the page last had it"),
)
REDIRECTS = _view(
    "redirects",
    "URLs that redirect, one hop a row.",
    f"{_OF_URL} WHERE u.reason = 'redirect'",
    ("url", TEXT, "u.text", "the URL that redirects"),
    ("target_url", TEXT, "u.rule", "where it leads"),
    ("status", INTEGER, "u.status", "301, 302, 303, 307 or 308"),
    ("permanent", BOOLEAN, "u.status IN (301, 308)", "whether links should be changed"),
    ("fetched_at", TIME, _time("u.visited"), "when it was last asked for"),
)
VISITS = _view(
    "visits",
    "Every attempt to fetch a URL, robots.txt and sitemaps included; and what was left without asking.",
    "visit v LEFT JOIN url u ON u.id = v.url_id",
    ("id", INTEGER, "v.id", "counts up"),
    ("run_id", INTEGER, "v.run_id", "the run"),
    ("url", TEXT, "coalesce(v.text, u.text)", "the URL"),
    ("purpose", TEXT, "v.purpose", "page, robots, sitemap, ..."),
    ("started", TIME, _time("v.started"), "when it was asked for"),
    ("took_s", REAL, "v.took_s", "seconds from the request to the last byte"),
    ("outcome", TEXT, "v.outcome", "fetched, redirected, unchanged, failed, or skipped (not asked for)"),
    ("status", INTEGER, "nullif(v.status, 0)", "HTTP status"),
    ("detail", TEXT, _said("v.detail"), "redirect target, failure, or why it was cut or skipped"),
    ("wire_bytes", INTEGER, "v.wire_bytes", "bytes of the body as they travelled"),
    ("address", TEXT, _said("v.address"), "IP address that answered"),
)
HOSTS = _view(
    "hosts",
    "Every host that was met.",
    "host h JOIN site s ON s.id = h.site_id",
    ("id", INTEGER, "h.id", "counts up"),
    ("host", TEXT, "h.key", "host name and port"),
    ("site", TEXT, "s.key", "its site"),
    ("fetched", INTEGER, "h.fetched", "pages asked for, in all runs"),
    ("waiting", INTEGER, "h.pending", "entries of its to-do list"),
    ("delay_s", REAL, "h.delay_s", "seconds between the starts of two requests"),
    ("strikes", INTEGER, "h.strikes", "suspensions in a row"),
    ("waits_for", TEXT, _said("h.waits_for"), "why it may not be asked yet"),
)
SITES = _view(
    "sites",
    "Every site that was met, with sums over its URLs.",
    "site s JOIN host h ON h.site_id = s.id JOIN url u ON u.host_id = h.id JOIN reason r ON r.name = u.reason"
    f" LEFT JOIN page p ON p.url_id = u.id AND {_READ} GROUP BY s.id",
    ("id", INTEGER, "s.id", "counts up"),
    ("name", TEXT, "s.key", "host name without www."),
    (
        "home_page",
        TEXT,
        "min(u.text) FILTER (WHERE u.id IN (SELECT url_id FROM start))",
        "the start on it; none for a site that links led to",
    ),
    ("hosts", INTEGER, "count(DISTINCT h.id)", "hosts that belong to it"),
    (
        "pages_total",
        INTEGER,
        "count(*) FILTER (WHERE r.state <> 'ignored' AND u.reason <> 'resource')",
        "its pages known",
    ),
    ("pages_crawled", INTEGER, "count(p.url_id)", "of them fetched"),
    ("pages_invalid", INTEGER, "count(*) FILTER (WHERE r.state = 'invalid')", "of them dead"),
    ("size", INTEGER, "CAST(total(p.size) AS INTEGER)", "bytes of its pages"),
    ("first_seen", TIME, _time("min(u.first_seen)"), "when it was first met"),
    ("visited", TIME, _time("max(u.visited)"), "when it was last asked"),
)
RUNS = _view(
    "runs",
    "Every run of the collection.",
    "run",
    ("id", INTEGER, "id", "counts up"),
    ("kind", TEXT, "kind", "crawl, import, ..."),
    ("state", TEXT, "state", "running, done, stopped, suspicious or failed"),
    ("note", TEXT, _said("note"), "why it ended so"),
    ("started", TIME, _time("started"), "when it began"),
    ("ended", TIME, _time("ended"), "when it ended"),
    ("fetched", INTEGER, "fetched", "pages asked for"),
    ("wire_bytes", INTEGER, "wire_bytes", "bytes received as bodies"),
    ("start_urls", TEXT, "starts", "JSON list"),
    ("settings", TEXT, "settings", "JSON object of every setting; passwords are not kept"),
)
VIEWS = {view.name: view for view in (URLS, PAGES, LINKS, REDIRECTS, VISITS, HOSTS, SITES, RUNS)}
CREATE_VIEWS = "".join(view.statement for view in VIEWS.values())
DROP_VIEWS = "".join(f"DROP VIEW IF EXISTS {name};\n" for name in VIEWS)
