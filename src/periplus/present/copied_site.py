"""The two pages that a copy of a site on disk has of its own: where to begin, and what is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from periplus.model.visit import Reason
from periplus.present.wording import REASON_WORDS, count_of, number, utc, visible

_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .75rem .25rem 0;vertical-align:top;"
    "border-bottom:1px solid #8886}td:first-child{overflow-wrap:anywhere}td.n{text-align:right}"
)
NOT_KEPT_COLUMNS = ("url", "reason", "status", "links")


class MissingTarget(NamedTuple):
    """An address that pages of the copy lead to and that is not in it. status 0: no answer; links: how many."""

    url: str
    reason: Reason | None  # None: never heard of
    status: int
    links: int


def front_page(title: str, starts: Sequence[tuple[str, str]], counts: str, ended: float, not_kept: int) -> str:
    """starts: (URL, path of its file); counts: what the copy holds, in words; ended: when it was fetched last."""
    items = "".join(f'<li><a href="{escape(path)}">{_text(url)}</a></li>' for url, path in starts)
    missing = count_of(not_kept, "address", "addresses")
    others = f'<p><a href="not-kept.html">{missing}</a> that its pages link to are not in this copy.</p>'
    whole = "<p>All pages of these hosts that its pages link to are in this copy.</p>"
    body = f"<h1>{_text(title)}</h1><p>A copy for reading without a server: {counts}, fetched until {utc(ended)}.</p>"
    return _page(title, body + f"<ul>{items}</ul>" + (others if not_kept else whole))


def not_kept_page(title: str, rows: Iterable[MissingTarget], count: int, shown: int) -> str:
    """rows: the rows shown, of count in all; not-kept.csv beside it has all."""
    lines = "".join(
        f'<tr><td><a href="{escape(row.url)}">{_text(row.url)}</a></td><td>{_text(missing_reason(row))}</td>'
        f'<td class="n">{number(row.links)}</td></tr>'
        for row in rows
    )
    more = f" The first {number(shown)} of them; all are in" if count > shown else " They are listed in"
    addresses = count_of(count, "address", "addresses")
    body = (
        f'<p><a href="index.html">{_text(title)}</a></p><h1>Missing pages</h1><p>Pages of this copy link to '
        f"{addresses} of its hosts that the copy lacks; these links lead to the web.{more} "
        f'<a href="not-kept.csv">not-kept.csv</a> too.</p>'
        f"<table><thead><tr><th>Address</th><th>Why</th><th>Links</th></tr></thead><tbody>{lines}</tbody></table>"
    )
    return _page("Missing pages", body)


def missing_reason(row: MissingTarget) -> str:
    if row.reason is None:
        return "unknown to the crawl"
    words = (
        "fetched, its bytes were not kept" if row.reason in (Reason.OK, Reason.NOINDEX) else REASON_WORDS[row.reason]
    )
    return f"{words} ({row.status})" if row.status >= 400 else words


def _text(value: str) -> str:
    return escape(visible(value))


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\"><meta name=\"viewport\" "
        f'content="width=device-width"><title>{_text(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n'
    )
