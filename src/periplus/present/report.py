"""What would a site's owner want to read after a crawl? One page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from urllib.parse import urlsplit

from periplus.model.results import OTHERS, DeadLink, Holder, MapNode, PageColumns, PageFacts, ReportData, Tally
from periplus.model.visit import Reason, State
from periplus.present.markup import Html, bar, left_out, link, table, text
from periplus.present.wording import REASON_WORDS, STATE_WORDS, count_of, labels, number, short, size, utc

SHOWN = 200  # entries of a list: about ten printed pages; whole lists are for the tables
HOLDERS_SHOWN = 50  # pages named with one dead link: a dead link in a menu stands on every page
HOLDERS_OPEN = 5  # of them seen at once
LAYERS_SHOWN = 30
STATES = (State.INDEXED, State.REGISTERED, State.IGNORED, State.INVALID)


def site_report(data: ReportData) -> str:
    """The report as one HTML page: no script, nothing loaded from anywhere, light and dark, fit for paper.

    Lists are shown in data's order and cut at SHOWN, which is said. All text that came from the web is escaped.
    """
    sections = [section for section in _sections(data) if section[2]]
    host = text(urlsplit(data.about.start).netloc or data.about.start)
    nav = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in sections)
    body = "\n".join(f'<section id="{name}"><h2>{title}</h2>\n{content}\n</section>' for name, title, content in sections)
    style = files("periplus.present").joinpath("report.css").read_text("utf-8")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex"><title>{host}: what the crawl found</title>
<style>
{style}</style></head><body>
<header><h1>{host}</h1>
{_head(data)}
<nav>{nav}</nav></header>
<main>
{body}
</main>
{_footer(data)}
</body></html>
"""


def _sections(data: ReportData) -> list[tuple[str, str, Html]]:
    """(id, heading, content); what has no content is left out by the caller."""
    return [
        ("urls", "What became of every URL", _counts(data)),
        ("dead", "Dead links", _dead(data.dead)),
        ("map", "The map", _map(data.tree, data.pages)),
        ("layers", "Clicks from the home page", _layers(data)),
        ("top", "Pages that count most", _top(data.top)),
        ("redirects", "Redirects", _redirects(data)),
        ("duplicates", "Pages of one content", _duplicates(data)),
        ("sites", "Other sites linked to", _tallies([("", "site", data.external)], "pages with a link")),
        ("kinds", "Kinds of pages", _kinds(data)),
    ]


def _urls(data: ReportData, *states: State) -> int:
    return sum(count.urls for count in data.counts if count.state in states)


def _head(data: ReportData) -> Html:
    fetched = _urls(data, State.INDEXED)
    ended = f"Finished {utc(data.finished)}." if data.finished else "The run is not finished: these are the figures so far."
    lines = [f'<p class="soft">Crawled from {link(data.about.start)}. {text(ended)} Run {text(data.about.run)}.</p>']
    if not fetched:
        lines.append('<p class="notice">No page was fetched. The reasons stand below; nothing here says that the site is in order.</p>')
    figures = [
        ("pages fetched", number(fetched), ""),
        ("not fetched", number(_urls(data, State.REGISTERED)), ""),
        ("dead URLs", number(_urls(data, State.INVALID)), "bad" if _urls(data, State.INVALID) else ""),
        ("redirects", number(len(data.redirects)), ""),
        ("layers", number(len(data.layers)), ""),
        ("other sites", number(len(data.external)), ""),
    ]
    cells = "".join(f'<div class="{kind}"><dt>{name}</dt><dd>{value}</dd></div>' for name, value, kind in figures)
    return "\n".join(lines) + f'\n<dl class="figures">{cells}</dl>'


def _counts(data: ReportData) -> Html:
    total = sum(count.urls for count in data.counts)
    rows = [
        (f'<span class="key {count.state}"></span>{STATE_WORDS[count.state]}', REASON_WORDS[count.reason], number(count.urls))
        for state in STATES
        for count in data.counts
        if count.state is state
    ]
    whole = bar([(state, _urls(data, state)) for state in STATES], total, "whole")
    note = f'<p class="note">{count_of(total, "URL")} in all. A page that is refused to us or disallowed by robots.txt is not counted as dead.</p>'
    return note + whole + table(["state", "why", "URLs"], rows, ["w", "", "n"]) if rows else ""


def _dead(dead: Sequence[DeadLink]) -> Html:
    if not dead:
        return '<p class="soft">None was found.</p>'
    note = '<p class="note">URLs that lead nowhere, each with the pages that link to it and the words of the link.</p>'
    return note + "\n".join(map(_dead_link, dead[:SHOWN])) + left_out(len(dead), SHOWN, "dead URL")


def _dead_link(dead: DeadLink) -> Html:
    what = REASON_WORDS[dead.reason] + (f", status {dead.status}" if dead.status else "")
    rows = list(map(_holder, dead.holders[:HOLDERS_SHOWN]))
    holders = f'<ul class="holders">{"".join(rows[:HOLDERS_OPEN])}</ul>'
    if rows[HOLDERS_OPEN:]:
        summary = f"<summary>{count_of(len(dead.holders) - HOLDERS_OPEN, 'more page')} with this link</summary>"
        rest = left_out(len(dead.holders), HOLDERS_SHOWN, "page")
        holders += f'<details class="holders">{summary}<ul class="holders">{"".join(rows[HOLDERS_OPEN:])}</ul>{rest}</details>'
    return f'<div class="deadlink"><p>{link(dead.target)} <span class="chip dead">{what}</span></p>{holders}</div>'


def _holder(holder: Holder) -> Html:
    path = urlsplit(holder.url).path
    page = f"{link(holder.url, holder.title)} <small>{text(path)}</small>" if holder.title else link(holder.url, path)
    anchor = f"<q>{text(holder.anchor)}</q>" if holder.anchor else "<small>no words</small>"
    return f"<li>{page} {anchor}</li>\n"


def _map(tree: MapNode | None, pages: PageColumns) -> Html:
    """Nested lists in <details>, which open without script; written without recursion, since a branch may be deep."""
    if tree is None:
        return '<p class="soft">The home page was not fetched, so there is no map.</p>'
    out: list[Html] = []
    stack: list[Html | tuple[MapNode, str]] = [(tree, labels([pages.url[tree.page]], [pages.title[tree.page]])[0])]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        node, name = item
        row = _map_row(node, name, pages)
        if not node.children:
            out.append(f'<li><div class="leaf">{row}</div></li>\n')
            continue
        out.append(f"<li><details{' open' if node is tree else ''}><summary>{row}</summary><ul>\n")
        stack.append("</ul></details></li>\n")
        named = [child.page for child in node.children if child.page != OTHERS]
        names = labels([pages.url[page] for page in named], [pages.title[page] for page in named], pages.title[node.page])
        stack.extend(reversed(list(zip(node.children, [*names, ""], strict=False))))
    note = "Each page hangs from a page one click nearer to the home page; of several, from the one that counts most. "
    note += "Figures: pages in the branch, and the page's link score from 0 to 100."
    return f'<p class="note">{note}</p><ul class="map">{"".join(out)}</ul>'


def _map_row(node: MapNode, name: str, pages: PageColumns) -> Html:
    if node.page == OTHERS:
        missing = node.pages - node.indexed
        return f'<span class="name soft">{count_of(node.pages, "more page")}{f", {number(missing)} not fetched" if missing else ""}</span>'
    page = pages.page(node.page)
    count = f'<span class="count">{count_of(node.pages, "page")}</span>' if node.pages > 1 else ""
    score = f'<span class="score">{bar([("rank", page.score)], 100)}<b>{page.score}</b></span>'
    return f'<span class="name">{link(page.url, name)}{_chip(page)}</span>{count}{score}'


def _chip(page: PageFacts) -> Html:
    if page.reason is Reason.OK:
        return ""
    return f'<span class="chip{" dead" if page.state is State.INVALID else ""}">{REASON_WORDS[page.reason]}</span>'


def _layers(data: ReportData) -> Html:
    if not data.layers:
        return ""
    widest = max(layer.indexed + layer.registered for layer in data.layers)
    rows = [
        (
            number(layer.layer),
            bar([(State.INDEXED, layer.indexed), (State.REGISTERED, layer.registered)], widest),
            number(layer.indexed),
            number(layer.registered),
        )
        for layer in data.layers[:LAYERS_SHOWN]
    ]
    rest = left_out(len(data.layers), LAYERS_SHOWN, "layer")
    return table(["clicks", "", "fetched", "not fetched"], rows, ["n", "chart", "n", "n"]) + rest


def _top(top: Sequence[PageFacts]) -> Html:
    rows = [
        (
            f"{link(page.url, page.title or short(page.url))}{_chip(page)}<br><small>{text(page.url)}</small>",
            number(page.links_in),
            number(page.links_out),
            size(page.size_bytes),
            number(page.score),
        )
        for page in top[:SHOWN]
    ]
    note = '<p class="note">By PageRank within the site. The link score is its logarithm, from 0 (least) to 100 (most).</p>'
    heads = ["page", "links in", "links out", "size", "score"]
    return note + table(heads, rows, ["", "n", "n wide", "n wide", "n"]) if rows else ""


def _redirects(data: ReportData) -> Html:
    rows = [(link(item.source), link(item.target), str(item.status or ""), number(item.links)) for item in data.redirects[:SHOWN]]
    rest = left_out(len(data.redirects), SHOWN, "redirect")
    return table(["from", "to", "status", "pages linking"], rows, ["", "", "n", "n"]) + rest if rows else ""


def _duplicates(data: ReportData) -> Html:
    rows = [
        (
            "<br>".join(link(url) for url in group.urls[:HOLDERS_SHOWN]) + left_out(len(group.urls), HOLDERS_SHOWN, "URL"),
            number(len(group.urls)),
            size(group.size_bytes),
        )
        for group in data.duplicates[:SHOWN]
    ]
    rest = left_out(len(data.duplicates), SHOWN, "group")
    return table(["same content", "URLs", "size of one"], rows, ["", "n", "n"]) + rest if rows else ""


def _kinds(data: ReportData) -> Html:
    groups = [("Hosts", "host", data.hosts), ("Media types", "media type", data.media)]
    groups += [("Charsets", "charset", data.charsets), ("Languages", "language", data.languages)]
    return _tallies(groups, "pages")


def _tallies(groups: Sequence[tuple[str, str, Sequence[Tally]]], counted: str) -> Html:
    """Small tables side by side: (heading, what is counted by, counts)."""
    parts = []
    for title, by, tallies in groups:
        if tallies:
            sized = any(tally.size_bytes for tally in tallies)
            rows = [(text(tally.name) or "<small>not said</small>", number(tally.pages), size(tally.size_bytes)) for tally in tallies[:SHOWN]]
            cut = slice(None if sized else 2)
            heads, classes = [by, counted, "size"][cut], ["", "n", "n"][cut]
            heading = f"<h3>{title}</h3>" if title else ""
            parts.append(f"<div>{heading}{table(heads, [row[cut] for row in rows], classes)}{left_out(len(tallies), SHOWN, by)}</div>")
    return f'<div class="columns">{"".join(parts)}</div>' if parts else ""


def _footer(data: ReportData) -> Html:
    about = data.about
    facts = [
        ("Report made", utc(about.created)),
        ("PageRank", f"damping {about.damping:g}, {count_of(about.rounds, 'round')}"),
        ("Parent in the map", about.ties),
        *about.parameters,
    ]
    return f"<footer><dl>{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in facts)}</dl></footer>"
