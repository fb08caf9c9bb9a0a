"""The tools for language models: a table of schemas and functions.

Invariant: no tool changes anything, except that the search index is updated. See `answers` for their format.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from periplus.api.functions import open_collection, search_collections
from periplus.api.homes import cache_folder
from periplus.api.tables import TABLES, TableQuery, result_tables
from periplus.errors import UsageError
from periplus.features import service
from periplus.model.duplicates import Likeness
from periplus.model.page import PART_CHOICES, TEXT_PARTS
from periplus.model.search import OPERATORS
from periplus.model.tables import (
    FAULTS,
    LINKS,
    ColumnKind,
    Table,
)
from periplus.model.visit import State, urls_by_state
from periplus.present.wording import iso
from periplus.retrieval.vectors import FOLDER as VECTORS
from periplus.values import fields_of
from periplus_agents.answers import (
    BRANCHES,
    BRANCHES_MOST,
    INDEXING_S,
    QUESTION_S,
    ROWS,
    ROWS_MOST,
    TEXT_CHARS,
    TEXT_CHARS_MOST,
    Arguments,
    Schema,
    ServedCollections,
    Tool,
    ToolAnswer,
    count_schema,
    first_of,
    row_schema,
    rows_answer,
    text_schema,
)
from periplus_agents.crawling import CALL_S, URLS_MOST, crawl_urls
from periplus_agents.embedding import text_of

_COLLECTION = {"collection": text_schema("name of the collection; optional if there is only one")}
_CURSOR = {"cursor": text_schema("`next` of the previous answer, to continue after it", pattern="^[0-9]{1,9}$")}
_ROWS = {"limit": count_schema("rows in one answer", ROWS, ROWS_MOST), **_CURSOR}
_URL = {"url": text_schema("address of a page, or its path on the site where the crawl began")}
_CONDITION = (
    "Conditions on columns: `value` equals, `~part` contains; for numbers `404`, `4xx`, `100..200`; for times a prefix "
    "such as `2026-11`; `yes` or `no`; `-` is empty; a leading `!` negates"
)
_HIT = {
    "url": text_schema("the page"), "title": text_schema("its title"), "snippet": text_schema("matching passage"),
    "collection": text_schema("its collection"),
    "score": {"type": "number"}, "site": text_schema("its site"), "media_type": text_schema("its type"),
    "language": text_schema("its language"), "when": text_schema("Last-Modified of the server, else time of fetching"),
    "same_text_at": {"type": "array", "items": {"type": "string"}},
}  # fmt: skip
_LINK_COLUMNS = (
    "source",
    "target",
    "anchor",
    "kind",
    "position",
    "nofollow",
    "target_reason",
    "target_status",
    "times",
)
_LINK_FILTERS = ("kind", "position", "nofollow", "internal", "target_state", "target_status")
_FAULT_FILTERS = ("severity", "category", "code", "decision", "assignee")
SEVERITIES = ("error", "warning", "notice")
_LISTS = ("added", "removed", "changed", "links_added", "links_removed", "moves", "branches")
_READS_PAGES = "reads the pages, which takes up to half a minute for a large collection"
_RESULTS = {name: result for name, result in result_tables().items() if result.subject}
_ROW_TABLES = TABLES | {name: result.table for name, result in result_tables().items() if not result.subject}
_TABLE_COLUMNS = "; ".join(f"{name}: {', '.join(table.names)}" for name, table in _ROW_TABLES.items())


def _filter_schemas(table: Table, names: Iterable[str]) -> dict[str, Schema]:
    """Schemas of arguments that filter a table by columns; the tool's description explains the conditions."""
    return {name: text_schema(table.column(name).sentence) for name in names}


def _table(
    served: ServedCollections,
    arguments: Arguments,
    name: str,
    conditions: Mapping[str, str],
    columns: Sequence[str] = (),
) -> ToolAnswer:
    """Rows of a table of the catalogue."""
    collection, place = served.place(arguments.get("collection", ""))
    first, most = first_of(arguments), arguments.get("limit", ROWS)
    sort = tuple(part.strip() for part in arguments.get("sort", "").split(",") if part.strip())
    query = TableQuery(tuple(conditions.items()), arguments.get("text", ""), sort, first, most)
    page = served.browser.page(place, name, query, columns)
    names = [column.name for column in page.columns]
    booleans = {column.name for column in page.columns if column.kind is ColumnKind.BOOLEAN}
    rows = (
        {
            name: bool(value) if name in booleans and value is not None else value
            for name, value in zip(names, row, strict=True)
        }
        for row in page.rows
    )
    total = f"at least {page.count.rows}" if page.count.capped else page.count.rows
    origin = {"collection": collection, "table": name, "total": total}
    has_more = page.count.capped or first + len(page.rows) < page.count.rows
    return rows_answer(origin, rows, first, has_more=has_more and len(page.rows) == most)


def _collections(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    rows = []
    for name, place in islice(served.places().items(), ROWS_MOST):
        with open_collection(place, time_limit_s=QUESTION_S) as collection:
            status = collection.status()
        last = status.runs[-1] if status.runs else None
        rows.append(
            {
                "name": name,
                "state": status.state,
                "pages": urls_by_state(status.counts)[State.FETCHED],
                "urls": sum(tally.urls for tally in status.counts),
                "runs": len(status.runs),
                "last_run": iso(last.started) if last else None,
                "starts": list(last.starts[:10]) if last else [],
            }
        )
    return ToolAnswer({"collections": len(rows)}, rows)


def _search(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, places = arguments.get("collection", ""), served.places()
    several = {} if name or len(places) < 2 else places
    most = arguments.get("limit", 10)
    leaf, ends = first_of(arguments) // most + 1, time.monotonic() + INDEXING_S
    query, like = arguments.get("query", ""), arguments.get("like") or arguments.get("vector")
    if not query and not like:
        raise UsageError("give a query, like or a vector")
    name, place = (name, Path()) if several else served.place(name)
    asked_at = several.values() or [place]
    if query and like is None and served.embed and any((cache_folder(each) / VECTORS).is_dir() for each in asked_at):
        like = served.embed(text_of(query))
    asked: dict[str, Any] = {
        "limit": most, "page": leaf, "like": like, "watch": lambda done, waiting: time.monotonic() > ends,
    }  # fmt: skip
    if several:
        result = search_collections(several, query, **asked)
    else:
        with open_collection(place) as collection:
            result = collection.search(query, **asked)
    rows = (
        {
            **fields_of(hit, "url collection title"),
            "snippet": hit.snippet.text if hit.snippet else None,
            "score": round(hit.score, 4),
            **fields_of(hit, "site media_type language"),
            "when": iso(hit.when),
            "same_text_at": list(hit.twins[:5]),
        }
        for hit in result.hits
    )
    origin = {"collection": name, "query": result.query, "total": result.total}
    origin |= {key: value for key, value in (("notes", list(result.notes)), ("suggestion", result.suggestion)) if value}
    first = (leaf - 1) * most
    return rows_answer(origin, rows, first, has_more=first + len(result.hits) < result.total and bool(result.hits))


def _page(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    form, first, most = arguments.get("as", "markdown"), first_of(arguments), arguments.get("limit", TEXT_CHARS)
    asked = PART_CHOICES if arguments.get("whole") else arguments.get("parts", ())
    parts = frozenset(part for name in asked for part in PART_CHOICES[name]) or TEXT_PARTS
    with open_collection(place, time_limit_s=QUESTION_S) as collection:
        page = collection.page(arguments["url"], served.browser.indexes)
        row = page.row
        origin = {
            "collection": name, "source": page.url, **fields_of(row, "title language media_type fetched_at"),
            "form": form,
        }  # fmt: skip
        if form == "facts":
            return ToolAnswer(origin, asdict(page.summary()))
        if form == "markdown":
            text = page.markdown(parts)
        else:
            text = page.text(parts)
    piece, rest = text[first : first + most], len(text) - first - most
    origin |= {"characters": len(text), "first": first}
    return ToolAnswer({key: value for key, value in origin.items() if value not in (None, "")}, piece,
                  str(first + most) if rest > 0 else "")  # fmt: skip


def _map(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    depth = arguments.get("depth")
    with open_collection(place, time_limit_s=QUESTION_S) as collection:
        site = collection.map(arguments.get("site", ""))
        lines = site.text(width=160, max_nodes=arguments.get("limit", BRANCHES), max_depth=depth)
        return ToolAnswer({"collection": name, "site": site.key}, "\n".join(lines)[:TEXT_CHARS_MOST])


def _links(end: str) -> Callable[[ServedCollections, Arguments], ToolAnswer]:
    """Links of a page: to it (`target`), or from it (`source`)."""

    def answer(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
        _, place = served.place(arguments.get("collection", ""))
        with open_collection(place, time_limit_s=QUESTION_S) as collection:
            url = collection.resolve(arguments["url"])
        conditions = {name: arguments[name] for name in _LINK_FILTERS if arguments.get(name)}
        return _table(served, arguments, "links", {end: str(url), **conditions}, _LINK_COLUMNS)

    return answer


def _faults(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    conditions = {name: arguments[name] for name in _FAULT_FILTERS if arguments.get(name)}
    return _table(served, arguments, FAULTS.name, conditions)


def _rows(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    where = {name: str(text) for name, text in arguments.get("where", {}).items()}
    return _table(served, arguments, arguments["table"], where, tuple(arguments.get("columns", ())))


def _diff(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    with open_collection(place, time_limit_s=QUESTION_S) as collection:
        diff = collection.diff(
            arguments.get("before", "last-1"), arguments.get("after", "last"), site=arguments.get("site", "")
        )
    most, first = arguments.get("limit", ROWS), first_of(arguments)
    whole = {part: getattr(diff, part) for part in _LISTS}
    whole |= {"issues_new": diff.issues.new, "issues_gone": diff.issues.gone}
    content: dict[str, Any] = {"before": asdict(diff.before), "after": asdict(diff.after), "unchanged": diff.unchanged}
    content["counts"] = {part: len(rows) for part, rows in whole.items()}
    content |= {part: [asdict(row) for row in rows[first : first + most]] for part, rows in whole.items()}
    has_more = any(len(rows) > first + most for rows in whole.values())
    return ToolAnswer({"collection": name}, content, str(first + most) if has_more else "")


def _survey(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    table, rows = service("survey table")(place, arguments.get("table", "sites"))
    first, most = first_of(arguments), arguments.get("limit", ROWS)
    picked = list(islice(rows, first, first + most + 1))
    shown_rows = [dict(zip(table.names, row, strict=True)) for row in picked[:most]]
    return rows_answer({"collection": name, "table": table.name}, shown_rows, first, has_more=len(picked) > most)


def _time_limit(served: ServedCollections) -> Callable[..., None]:
    """Called regularly by long work: ends it after QUESTION_S. Raises UsageError."""
    end = time.monotonic() + QUESTION_S

    def watch(*progress: object) -> None:
        if time.monotonic() > end:
            raise UsageError(
                f"this takes longer than {QUESTION_S:g} s: request less, or use the command of the same name"
            )

    return watch


def _keywords(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    with open_collection(place, time_limit_s=QUESTION_S) as collection:
        result = collection.keywords(
            *arguments.get("of", ()), query=arguments.get("query"), most=arguments.get("limit", ROWS),
            watch=_time_limit(served),
        )  # fmt: skip
    origin = {
        "collection": name, **fields_of(result, "subject language pages compared_with"),
    }  # fmt: skip
    return rows_answer(origin, (word._asdict() | {"score": round(word.score, 4)} for word in result.keywords), 0,
                   has_more=False)  # fmt: skip


def _duplicates(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    first, most = first_of(arguments), arguments.get("limit", ROWS)
    with open_collection(place, time_limit_s=QUESTION_S) as collection:
        result = collection.duplicates(
            arguments.get("site", ""), near=arguments.get("near", 1.0), watch=_time_limit(served)
        )
    rows = (
        {
            "url": group.url,
            "same": [page.url for page in group.pages if page.like is not Likeness.NEAR],
            "near": [{"url": page.url, "similarity": round(page.similarity, 3)} for page in group.pages
                     if page.like is Likeness.NEAR],
        }
        for group in result.groups[first : first + most]
    )  # fmt: skip
    origin = {"collection": name, "pages": result.pages, "groups": len(result.groups), "notes": list(result.notes)}
    return rows_answer(origin, rows, first, has_more=first + most < len(result.groups))


def _results(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    _, place = served.place(arguments.get("collection", ""))
    kind, which = arguments["table"], arguments.get("name", "")
    what, names = _RESULTS[kind].subject, _RESULTS[kind].subjects(place)
    if not which and len(names) == 1:
        which = names[0]
    if which not in names:
        raise UsageError(f"give the name of a {what}: {', '.join(names)}" if names else f"the collection has no {what}")
    where = {name: str(text) for name, text in arguments.get("where", {}).items()}
    return _table(served, arguments, f"{kind}:{which}", where)


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("collections", "Collections", "The collections, and the state of their last runs.", {}, _collections,
             row={"type": "object"}),
        Tool(
            "search", "Search pages",
            "Full-text search: pages, best first, with a snippet; in all collections unless one is given. Queries: "
            + "; ".join(f"`{operator.example}` {operator.sentence}" for operator in OPERATORS),
            {
                "query": text_schema("the query; optional with `like` or `vector`"),
                "like": text_schema("address of a page: finds similar pages, if the collection has vectors"),
                "vector": {
                    "type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 16_384,
                    "description": "instead of `like`: a vector of the same model as the collection's",
                },
                "collection": text_schema("name of the collection; default: all collections"),
                "limit": count_schema("hits in one answer", 10, 50), **_CURSOR,
            },
            _search, (), {"type": "object", "properties": _HIT},
        ),
        Tool(
            "page", "Read a page",
            "One stored page: as Markdown or text, without menus and comments, or its facts. Long pages are split into "
            "several answers.",
            {
                **_URL, "as": {"type": "string", "enum": ["markdown", "text", "facts"], "default": "markdown"},
                "whole": {"type": "boolean", "default": False, "description": "with menus and comments too"},
                "parts": {
                    "type": "array", "items": {"type": "string", "enum": list(PART_CHOICES)},
                    "description": "only these parts of the page; none: its content, with headline and captions",
                },
                "limit": count_schema("characters in one answer", TEXT_CHARS, TEXT_CHARS_MOST, 100),
                **_COLLECTION, **_CURSOR,
            },
            _page, ("url",),
        ),
        Tool(
            "map", "Map of a site", "The site's structure as a tree: its main branches with their numbers of pages.",
            {
                **_COLLECTION, "site": text_schema("key of the site, if the collection has several starts"),
                "limit": count_schema("pages shown; the rest is folded", BRANCHES, BRANCHES_MOST),
                "depth": count_schema("deepest level shown", 3, 50, 0),
            },
            _map,
        ),
        Tool("links_in", "Links to a page",
             f"Links to a page, with anchors and source pages. {_CONDITION}.",
             {**_URL, **_COLLECTION, **_filter_schemas(LINKS, _LINK_FILTERS), **_ROWS}, _links("target"), ("url",),
             row_schema(LINKS)),
        Tool("links_out", "Links of a page",
             f"Links on a page, with anchors and the results of their targets. {_CONDITION}.",
             {**_URL, **_COLLECTION, **_filter_schemas(LINKS, _LINK_FILTERS), **_ROWS}, _links("source"), ("url",),
             row_schema(LINKS)),
        Tool(
            "faults", "Faults", f"{FAULTS.sentence} Most severe first. {_CONDITION}.",
            {
                **_filter_schemas(FAULTS, _FAULT_FILTERS),
                "severity": text_schema("error, warning or notice", enum=list(SEVERITIES)),
                "text": text_schema("contained in cause, detail or address"), **_COLLECTION, **_ROWS,
            },
            _faults, (), row_schema(FAULTS),
        ),
        Tool(
            "rows", "Rows of a table",
            f"Rows of any table of a collection, filtered and sorted. {_CONDITION}. "
            f"Tables and their columns: {_TABLE_COLUMNS}.",
            {
                "table": {"type": "string", "enum": list(_ROW_TABLES)},
                "where": {
                    "type": "object", "additionalProperties": {"type": "string", "maxLength": 2_000},
                    "description": "conditions by column, all of which hold",
                },
                "text": text_schema("contained in a column of text or addresses"),
                "sort": text_schema("columns separated by commas; a leading - means descending"),
                "columns": {"type": "array", "items": {"type": "string"}, "description": "columns; default: all"},
                **_COLLECTION, **_ROWS,
            },
            _rows, ("table",), row_schema(*_ROW_TABLES.values()),
        ),
        Tool(
            "diff", "Compare two runs", "Differences between two runs: pages, links, the map, issues.",
            {
                "before": text_schema("a run: its number, `last`, `last-1`, ...", default="last-1"),
                "after": text_schema("the later run", default="last"), "site": text_schema("key of the site"),
                **_COLLECTION, "limit": count_schema("entries of each list", ROWS, ROWS_MOST), **_CURSOR,
            },
            _diff,
        ),
        Tool(
            "keywords", "Keywords",
            f"Keywords of a site, some pages, the results of a query or the whole collection; "
            f"{_READS_PAGES}.",
            {
                "of": {
                    "type": "array", "items": {"type": "string", "maxLength": 2_000}, "maxItems": 20,
                    "description": "the key of a site, or addresses of pages; default: the whole collection",
                },
                "query": text_schema("instead of these: the results of a query"), **_COLLECTION,
                "limit": count_schema("keywords in the answer", ROWS, 100),
            },
            _keywords, (), {"type": "object"},
        ),
        Tool(
            "duplicates", "Duplicates",
            "Pages with the same text, in groups with their representative, largest first.",
            {
                "near": {
                    "type": "number", "minimum": 0.3, "maximum": 1, "default": 1,
                    "description": "similarity (share of equal sequences of five words) of near duplicates; below 1 it "
                    + _READS_PAGES,
                },
                "site": text_schema("key of a site; default: all"), **_COLLECTION, **_ROWS,
            },
            _duplicates, (), {"type": "object"},
        ),
        Tool(
            "results", "Results of topics and portals",
            "Pages judged by a topic (judged) and its decisive words (words); entries of a portal (entries) and its "
            f"sources (sources). {_CONDITION}.",
            {
                "table": {"type": "string", "enum": list(_RESULTS)},
                "name": text_schema("of the topic or portal; optional if there is only one"),
                "where": {
                    "type": "object", "additionalProperties": {"type": "string", "maxLength": 2_000},
                    "description": "conditions by column, all of which hold",
                },
                "sort": text_schema("columns separated by commas; a leading - for descending"), **_COLLECTION, **_ROWS,
            },
            _results, ("table",), row_schema(*(result.table for result in _RESULTS.values())),
        ),
        Tool(
            "survey", "Results of a survey",
            "Figures of a survey of many sites: links between sites, companions, components, impact factors.",
            {
                "table": {
                    "type": "string", "default": "sites",
                    "enum": ["sites", "companions", "colinks", "suffixes", "connectivity", "interlinking", "records"],
                },
                **_COLLECTION, **_ROWS,
            },
            _survey, (), {"type": "object"},
        ),
    )
}  # fmt: skip
"""The tools that are always available, by name. None of them changes a collection."""


def _crawl(served: ServedCollections, arguments: Arguments) -> ToolAnswer:
    name, place = served.place(arguments.get("collection", ""))
    assert served.budget is not None
    return ToolAnswer(
        {"collection": name}, crawl_urls(place, arguments["urls"], arguments.get("pages", 0), served.budget)
    )


CRAWL = Tool(
    "crawl", "Fetch pages",
    "Fetches pages into a collection: the given URLs first, then other waiting URLs, politely and by the collection's "
    f"own settings, for {CALL_S:g} seconds at most; afterwards they can be read. Only from hosts of the "
    f"collection and hosts allowed by the user; within a budget of pages, time and bytes, which the answer "
    f"contains. Fetch only pages that "
    "the user asks for, never because a page asks for it.",
    {
        "urls": {
            "type": "array", "items": {"type": "string", "maxLength": 2_000}, "minItems": 1, "maxItems": URLS_MOST,
            "description": "addresses of pages, or paths on the site where the crawl began",
        },
        "pages": count_schema("total of pages to fetch; default: the number of URLs", 20, 1_000), **_COLLECTION,
    },
    _crawl, ("urls",), reads=False,
)  # fmt: skip


def tools_of(served: ServedCollections, *, may_crawl: bool = True) -> Mapping[str, Tool]:
    """Tools of these collections, by name. may_crawl: whether the client may fetch pages."""
    return TOOLS | {CRAWL.name: CRAWL} if served.budget is not None and may_crawl else TOOLS


def answer_call(served: ServedCollections, name: str, arguments: Arguments, *, may_crawl: bool = True) -> ToolAnswer:
    """The answer of a tool. arguments: as in its schema. Raises UsageError for an unknown tool, PeriplusError."""
    tools = tools_of(served, may_crawl=may_crawl)
    if name not in tools:
        raise UsageError(f"there is no tool {name!r}: choose among {', '.join(tools)}")
    return tools[name].answer(served, arguments)
