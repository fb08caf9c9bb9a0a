"""What leaves a collection as rows: whole tables, and answers to questions in SQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from periplus.errors import UsageError
from periplus.model.table import Column, ColumnKind
from periplus.present import issues
from periplus.store.sqlite import reading
from periplus.store.sqlite.reading import Answer, ask
from periplus.store.sqlite.views import PAGES, REDIRECTS, VIEWS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from periplus.api.facts import Start
    from periplus.model.audit import Issue


@contextlib.contextmanager
def asked(folder: Path, question: str, time_limit_s: float = 10.0, most: int = -1) -> Iterator[Answer]:
    """The answer to one SQL statement, to be read within.

    most: rows, -1: all; time_limit_s: 0: none. Raises UsageError, StoreError.
    """
    with contextlib.closing(reading.connect(folder)) as connection:
        answer = ask(connection, question, time_limit_s, most)
        # a generator, closed so that its limit ends before the connection
        with contextlib.closing(answer.rows):  # type: ignore[type-var]
            yield answer


TABLES = (*VIEWS, "issues")
RANKED = (
    Column(
        "final_url",
        ColumnKind.TEXT,
        "where the redirects end that begin here; the URL itself where there are none; none for a loop",
    ),
    Column("inlinks", ColumnKind.INTEGER, "pages of the site that link to it, each counted once, redirects followed"),
    Column("outlinks", ColumnKind.INTEGER, "pages of the site that it links to, each counted once, redirects followed"),
    Column(
        "pagerank",
        ColumnKind.REAL,
        (
            "share of a random surfer's time, summing to 1 over the site's pages; none for "
            "what is no page of a start's site"
        ),
    ),
    Column("link_score", ColumnKind.INTEGER, "the same on a logarithmic scale from 0 to 100"),
)
CHAINS = (
    Column("chain_id", ColumnKind.INTEGER, "the id of the URL that begins the chain; the same in every run"),
    Column("order", ColumnKind.INTEGER, "place in the chain, from 0"),
    Column("url", ColumnKind.TEXT, "the URL"),
    Column("status", ColumnKind.INTEGER, "its HTTP status; 0: not asked"),
    Column("role", ColumnKind.TEXT, "requested, intermediate, final, or loop: it stood in the chain before"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table to be written.

    rows: values a row in the order of columns, streamed; to be read while the collection is open.
    """

    name: str
    columns: tuple[Column, ...]
    rows: Iterator[tuple[object, ...]]


@contextlib.contextmanager
def table(folder: Path, name: str, *, ranks: bool = True) -> Iterator[Table]:
    """One of TABLES, as it stands at one moment.

    ranks: with what is computed for each page, for which a site's links are loaded.

    Raises UsageError, NoCollection, StoreError.
    """
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}: choose among {', '.join(TABLES)}")
    with contextlib.closing(reading.connect(folder)) as connection, reading.reading(), reading.snapshot(connection):
        columns = columns_of(name, ranks=ranks)
        yield Table(name, columns, _rows(connection, name, ranks))


def columns_of(name: str, *, ranks: bool = True) -> tuple[Column, ...]:
    """The columns of an exported table."""
    if name == PAGES.name and ranks:
        return PAGES.columns + RANKED
    return {REDIRECTS.name: CHAINS, "issues": issues.COLUMNS}.get(name) or VIEWS[name].columns


def _rows(connection: reading.Connection, name: str, ranks: bool) -> Iterator[tuple[object, ...]]:
    from periplus.store.sqlite.listing import whole

    if name == PAGES.name and ranks:
        return _ranked_pages(connection)
    if name == REDIRECTS.name:
        return _chains(connection)
    if name == "issues":
        return issue_rows(connection)
    return whole(connection, VIEWS[name])


def _chains(connection: reading.Connection) -> Iterator[tuple[object, ...]]:
    from periplus.analyse.verdicts import RedirectColumns, chain_rows
    from periplus.store.sqlite.listing import redirect_hops, statuses_of, text_of

    hops = RedirectColumns(*redirect_hops(connection))
    ends = set(hops.targets.tolist()) - set(hops.sources.tolist())
    for row in chain_rows(hops, statuses_of(connection, ends)):
        yield row.chain_id, row.order, text_of(connection, row.url_id), row.status, row.role.value


def _ranked_pages(connection: reading.Connection) -> Iterator[tuple[object, ...]]:
    from periplus.store.sqlite.listing import whole

    ends, ranks = _ends(connection), _Ranks(connection)
    for row in whole(connection, PAGES):
        identity = row[0]
        assert isinstance(identity, int)
        yield (*row, ends.get(identity, row[1]), *ranks.of(identity))


def _ends(connection: reading.Connection) -> dict[int, str | None]:
    """Where each redirecting URL's redirects end."""
    from periplus.analyse.verdicts import RedirectColumns, chain_ends
    from periplus.store.sqlite.listing import redirect_hops, text_of

    hops = RedirectColumns(*redirect_hops(connection))
    found = chain_ends(hops)
    rows = zip(hops.sources.tolist(), found.ends.tolist(), found.loops.tolist(), strict=True)
    return {source: None if loop else text_of(connection, end) for source, end, loop in rows}


class _Ranks:
    """What is computed of each page, over all sites of the collection's starts."""

    def __init__(self, connection: reading.Connection) -> None:
        import numpy as np

        from periplus.api.facts import RankOrder, analysed, read_site
        from periplus.urls.canonical import url_id

        self._parts: list[
            tuple[
                NDArray[np.int64], tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.uint8]]
            ]
        ] = []
        for start in _starts(connection):
            facts = analysed(read_site(connection, start.site, 0.0), RankOrder()).facts
            ids = np.fromiter(map(url_id, facts.url), np.int64, len(facts.url))
            order = np.argsort(ids)
            self._parts.append(
                (ids[order], (facts.links_in[order], facts.links_out[order], facts.rank[order], facts.score[order]))
            )

    def of(self, identity: int) -> tuple[object, ...]:
        """(inlinks, outlinks, pagerank, link score); None for what is no page of a start's site."""
        for ids, values in self._parts:
            place = int(ids.searchsorted(identity))
            if place < len(ids) and ids[place] == identity:
                return tuple(value[place].item() for value in values)
        return (None,) * (len(RANKED) - 1)


def issue_rows(connection: reading.Connection) -> Iterator[tuple[object, ...]]:
    """In the columns of `present.issues`."""
    from periplus.analyse.issues import KINDS_OF_ISSUES

    for issue in issues_of_sites(connection):
        yield issues.issue_row(issue, KINDS_OF_ISSUES)


def issues_of_sites(connection: reading.Connection) -> Iterator[Issue]:
    """Of every site of a start."""
    from periplus.api.findings import audited

    for start in _starts(connection):
        yield from audited(connection, start).issues(connection)


def _starts(connection: reading.Connection) -> list[Start]:
    from periplus.api.facts import starts_of
    from periplus.store.sqlite import runs, site_rows

    return starts_of(runs.run_records(connection), connection, site_rows.redirects(connection))
