"""Time and memory of the results of a survey of a thousand sites with a million pages and ten million links."""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from measure import load, table

from periplus.model.graph import REASONS, LinkRows, UrlRows
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus_studies.analyse import unit_links, web_fragment
from periplus_studies.model import DocumentModel, Unit
from periplus_studies.report import survey_report
from periplus_studies.results import SurveyOrder, SurveyRows, results
from periplus_studies.units import UnitsOfUrls, unit_of, units_of

Value = TypeVar("Value")
SITES, OTHERS = 1_000, 20_000  # in the target set, outside it
ROWS: list[tuple[str, str, str]] = []


def timed(name: str, work: Callable[[], Value]) -> Value:
    """Prints CPU and wall time; other load can triple the latter."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ROWS.append((name, f"{time.process_time() - cpu:.1f} s ({time.perf_counter() - wall:.1f} s)", f"{peak:.0f} MB"))
    return found


def drawn(pages: int, links: int, seed: int) -> tuple[UrlRows, LinkRows, tuple[Unit, ...]]:
    """Sites of equal size; 80 % of links within a site, 5 % between sites, 15 % to pages outside."""
    rng = np.random.default_rng(seed)
    outside = pages // 4
    texts = [f"https://www.site{page % SITES}.example/dir{page % 97}/page{page}.html" for page in range(pages)]
    texts += [f"https://other{page * page % OTHERS}.net/x/{page}" for page in range(outside)]
    ids = rng.integers(-(2**63), 2**63 - 1, len(texts), dtype=np.int64)
    order = np.argsort(ids)
    codes = np.where(np.arange(len(texts)) < pages, REASONS.index(Reason.OK), REASONS.index(Reason.SCOPE)).astype(
        np.uint8
    )
    urls = UrlRows(
        ids[order], [Url(texts[place]) for place in order.tolist()], codes[order], np.full(len(texts), -1, np.int32)
    )
    source = rng.integers(0, pages, links)
    kind = rng.random(links)
    within = (source % SITES + SITES * rng.integers(0, pages // SITES, links)) % pages
    end = np.where(
        kind < 0.8,
        within,
        np.where(kind < 0.85, rng.integers(0, pages, links), rng.integers(pages, pages + outside, links)),
    )
    units = tuple(unit_of(f"https://www.site{site}.example/", f"Site {site}", f"s{site}") for site in range(SITES))
    return urls, LinkRows(ids[source], ids[end]), units


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    given = parser.parse_args()
    urls, links, units = drawn(given.pages, given.links, 1)
    none = np.zeros(0, np.int64)
    timed("sorting them: the baseline", lambda: np.sort(links.sources * 31 + links.targets))
    assigned: UnitsOfUrls = timed("unit of each URL", lambda: units_of(urls.texts, units))
    contents = (urls.ids, np.arange(len(urls.ids), dtype=np.int64))
    fragment = timed(
        "documents and distinct links",
        lambda: web_fragment(urls, links, LinkRows(none, none), contents, assigned, len(units)),
    )
    for model in DocumentModel:
        # bind the loop variable
        timed(f"links between units, by {model.value}", lambda model=model: unit_links(fragment, model))  # type: ignore[misc]
    rows = SurveyRows(urls, assigned, fragment, urls.ids, {}, ())
    found = timed("all results of a survey", lambda: results(rows, SurveyOrder()))
    timed("the report", lambda: survey_report(found))
    print(
        f"{len(fragment.ids):,} documents, {len(fragment.sources):,} links, {len(fragment.units):,} units; CPU "
        f"(wall), peak memory so far ({load()})"
    )
    print(table(("step", "time", "memory"), ROWS))


if __name__ == "__main__":
    main()
