"""Compares the final states of two runs, of one collection or of two."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from periplus.analyse.comparison import changed_links, compare
from periplus.analyse.linkgraph import hierarchical_map, link_graph, places, places_in_sorted, resolve_redirects
from periplus.analyse.pagerank import pagerank
from periplus.api.facts import Start, chosen_start, chosen_starts, run_name, starts_of
from periplus.api.homes import snapshot_of
from periplus.errors import UsageError
from periplus.model.arrays import Ints
from periplus.model.audit import Issue, Severity
from periplus.model.comparison import FIELDS, Comparison, RunView
from periplus.model.graph import REASONS, LinkGraph, LinkRows, UrlRows
from periplus.model.page import HTML_TYPES
from periplus.model.ports import RunRecord
from periplus.model.results import SiteMap
from periplus.model.visit import BROKEN_REASONS, FETCHED_REASONS, Reason
from periplus.model.web import SiteKey, Url
from periplus.store import past_states, site_rows
from periplus.store.past_states import PastUrls, RunEnd
from periplus.store.reader import CollectionReader
from periplus.urls.canonical import url_id
from periplus.values import Place, frozen

# issues that follow from a page's own fields
_ABSENT = {"title-missing": "title", "description-missing": "description", "h1-missing": "h1"}


def compare_runs(
    place: Place, before: str = "last-1", after: str = "last", *, other: Place | None = None, site: str = ""
) -> Comparison:
    """Differences of `after` from `before`.

    before, after: a run's number, `last`, or `last-N`. other: the collection that `after` belongs to; None: the same.
    site: its key, if there are several. Raises NoCollection, StoreError, UsageError.
    """
    with _run_ends(place, before, after, other) as (first, second):
        return _compare_ends(first, chosen_start(first.starts, site), second, chosen_start(second.starts, site))


def compare_sites(
    place: Place, before: str = "last-1", after: str = "last", *, other: Place | None = None, site: str = ""
) -> Iterator[tuple[SiteKey, Comparison]]:
    """Like `compare_runs`, for each site that both collections have; or for the given or only site."""
    with _run_ends(place, before, after, other) as (first, second):
        starts, others = chosen_starts(first.starts, site), chosen_starts(second.starts, site)
        theirs = {start.site: start for start in others}
        pairs = [(start, theirs[start.site]) for start in starts if start.site in theirs]
        if len(starts) == len(others) == 1:
            pairs = [(starts[0], others[0])]
        if not pairs:
            raise UsageError("the two collections have no site in common")
        for start, their in pairs:
            yield start.site, _compare_ends(first, start, second, their)


@frozen
class _End:
    """Final state of a run, for all sites."""

    reader: CollectionReader
    record: RunRecord
    moment: RunEnd
    past: past_states.UrlPast
    moved: LinkRows
    starts: Sequence[Start]


def _end(reader: CollectionReader, run: str) -> _End:
    records = reader.runs()
    record = chosen_run(records, run)
    moment = RunEnd.after(reader, record.id)
    past = past_states.url_past(reader, moment)
    moved = past_states.redirects(reader, moment, past)
    starts = starts_of(records, moved, reader.site_of)
    return _End(reader, record, moment, past, moved, starts)


@contextlib.contextmanager
def _run_ends(place: Place, before: str, after: str, other: Place | None) -> Iterator[tuple[_End, _End]]:
    with snapshot_of(place) as first, snapshot_of(other or place) as second:
        yield _end(first, before), _end(second, after)


def _compare_ends(first: _End, start: Start, second: _End, their: Start) -> Comparison:
    views = _view(first, start), _view(second, their)
    came, went = changed_links(views[0].links, views[1].links)
    ids = {*np.concatenate([came.sources, came.targets, went.sources, went.targets]).tolist()}
    texts: dict[int, Url] = {
        identity: url for end in (first, second) for identity, url in past_states.texts_of(end.reader, ids)
    }
    return compare(*views, texts)


def chosen_run(records: Sequence[RunRecord], text: str) -> RunRecord:
    """The run that a user names. Raises UsageError that lists the runs."""
    if not records:
        raise UsageError("the collection has no run yet: `periplus crawl URL` starts one")
    if len(records) == 1:
        choices = f"run {records[0].id} is the only one, a comparison needs two; `periplus refresh` adds another"
    else:
        choices = f"choose among {', '.join(str(record.id) for record in records[-20:])}, last, last-1"
    named = {f"last-{back}": record for back, record in enumerate(reversed(records))}
    named |= {"last": records[-1]} | {str(record.id): record for record in records}
    if text in named:
        return named[text]
    raise UsageError(f"no run {text!r}: {choices}")


def _view(end: _End, start: Start) -> RunView:
    reader, record, moment, past, moved = end.reader, end.record, end.moment, end.past, end.moved
    urls = past_states.site_urls(reader, start.site, moment, past)
    links = _distinct_fetched_links(past_states.page_links(reader, start.site, moment), urls.rows)
    graph = link_graph(urls.rows, links, moved)
    site_map = _map(graph, start.home_id)
    fields, kinds = _fields(graph, site_map, urls, past_states.site_pages(reader, start.site, moment))
    dead = past_states.ids_at(reader, BROKEN_REASONS, past)
    issues = [*_absent(graph, fields, kinds), *_broken_issues(reader, links, moved, dead)]
    reasons = dict(zip(urls.rows.texts, (REASONS[code].value for code in urls.rows.reasons.tolist()), strict=True))
    return RunView(run_name(record), record.started, record.state, graph, site_map, fields, links, issues, reasons)


def _distinct_fetched_links(links: LinkRows, urls: UrlRows) -> LinkRows:
    """Distinct links of fetched pages."""
    fetched = np.sort(urls.ids[np.isin(urls.reasons, [REASONS.index(reason) for reason in FETCHED_REASONS])])
    fetched_links = places_in_sorted(fetched, links.sources) >= 0
    sources, targets = links.sources[fetched_links], links.targets[fetched_links]
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    first = site_rows.first_of_pairs(sources, targets)
    return LinkRows(sources[first], targets[first])


def _map(graph: LinkGraph, home_id: int) -> SiteMap | None:
    ids = np.fromiter(map(url_id, graph.pages), np.int64, len(graph.pages))
    home = int(places(ids, np.array([home_id], np.int64))[0])
    return hierarchical_map(graph, home, pagerank(graph).scores) if home >= 0 and graph.fetched[home] else None


def _fields(
    graph: LinkGraph, site_map: SiteMap | None, urls: PastUrls, pages: dict[int, tuple[object, ...]]
) -> tuple[dict[str, list[object]], list[bool]]:
    """(FIELDS of the graph's pages, whether each is HTML)."""
    ids = [url_id(url) for url in graph.pages]
    place = places(urls.rows.ids, np.array(ids, np.int64))
    blank = ("", "", 0, 0, b"") + ("",) * (len(past_states.PAST_FIELDS) - 5)
    past = [dict(zip(past_states.PAST_FIELDS, pages.get(identity, blank), strict=True)) for identity in ids]
    columns: dict[str, list[object]] = {
        name: [page[name] for page in past] for name in FIELDS if name in past_states.PAST_FIELDS
    }
    columns["type"] = [page["media_type"] for page in past]
    columns["text"] = [f"{page['text_chars']:,} characters ({bytes(page['text_digest']).hex()[:6]})" for page in past]  # type: ignore[call-overload]
    columns["status"] = urls.statuses[place].tolist()
    columns["reason"] = [REASONS[code].value for code in urls.rows.reasons[place].tolist()]
    if site_map is not None:
        # pages that no link leads to have no depth
        columns["depth"] = ["" if depth < 0 else depth for depth in site_map.depth.tolist()]
    return {name: columns[name] for name in FIELDS if name in columns}, [
        page["media_type"] in HTML_TYPES for page in past
    ]


def _absent(graph: LinkGraph, fields: dict[str, list[object]], html: list[bool]) -> Iterator[Issue]:
    """Pages without a title, description or h1."""
    fetched = np.flatnonzero(np.array(html, np.bool_) & graph.fetched).tolist()
    for code, field in _ABSENT.items():
        for at in fetched:
            if not fields[field][at] and fields["reason"][at] != Reason.NOINDEX:
                yield Issue(code, Severity.WARNING, graph.pages[at])


def _broken_issues(reader: CollectionReader, links: LinkRows, moved: LinkRows, dead: Ints) -> Iterator[Issue]:
    """Links to dead URLs, directly or through redirects."""
    ends, leads = resolve_redirects(links.targets, moved)
    hit = ~leads | (places_in_sorted(dead, ends) >= 0)
    sources, targets = links.sources[hit].tolist(), links.targets[hit].tolist()
    texts = dict(past_states.texts_of(reader, {*sources, *targets}))
    for source, target in zip(sources, targets, strict=True):
        yield Issue("broken-link", Severity.ERROR, texts[source], related=texts[target])
