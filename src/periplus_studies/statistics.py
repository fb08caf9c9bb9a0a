"""Statistics of survey figures: rank correlation, intervals of totals from samples, and columns from outside files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from periplus.analyse.linkgraph import count_values, sort_distinct
from periplus.errors import UsageError
from periplus.model.arrays import Floats
from periplus.urls.canonical import canonical
from periplus.values import frozen
from periplus_studies.harvest import CONFIDENCE_Z, harvest_rows, richness
from periplus_studies.model import Estimate, OutsideColumn, Unit, WebFragment
from periplus_studies.units import UnitChoice, unit_finder

LEAST_PAIRS = 4  # for an interval: its variance is divided by n - 3
SITE_COLUMN = "site"
# rankings print ties and bands: `=12`, `201-300`, `1001+`
_BAND = re.compile(r"=?\s*(\d+(?:\.\d+)?)\s*(?:[-–]\s*(\d+(?:\.\d+)?)|\+)?")


@frozen
class Correlation:
    """A rank correlation with its 95 % interval, which needs LEAST_PAIRS pairs. rho: None if a column is constant."""

    pairs: int
    rho: float | None
    low: float | None = None
    high: float | None = None


def ranks(values: Floats) -> Floats:
    """Ranks from 1 for the smallest value; equal values share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], np.float64)


def spearman(first: Floats, second: Floats) -> Correlation:
    """Spearman's rank correlation of the pairs without NaN.

    The interval is Fisher's transformation with the variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright 2000.
    """
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = ranks(first[both]), ranks(second[both])
    pairs = len(first)
    if pairs < 2 or not (np.ptp(first) and np.ptp(second)):
        return Correlation(pairs, None)
    rho = float(np.corrcoef(first, second)[0, 1].clip(-1, 1))
    if pairs < LEAST_PAIRS or abs(rho) > 1 - 1e-12:
        return Correlation(pairs, rho)
    spread = CONFIDENCE_Z * np.sqrt((1 + rho**2 / 2) / (pairs - 3))
    return Correlation(pairs, rho, *(float(np.tanh(np.arctanh(rho) + way * spread)) for way in (-1, 1)))


def wilson(hits: Floats, sample: Floats, population: Floats) -> tuple[Floats, Floats]:
    """Wilson's score interval of a share in a finite population of which a part is sampled at random.

    The sample counts as sample (population - 1) / (population - sample) draws (Kish 1965). A whole sample has no error.
    """
    share, z2 = hits / np.maximum(sample, 1), CONFIDENCE_Z**2
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(population > sample, z2 * (population - sample) / (sample * (population - 1)), 0.0)
    middle, half = share + error / 2, np.sqrt(error * (share * (1 - share) + error / 4))
    return (middle - half) / (1 + error), (middle + half) / (1 + error)


def wif_estimates(fragment: WebFragment, documents: Floats, *, own: bool) -> tuple[Estimate, ...]:
    """Impact factors of the target units on all known documents, with 95 % intervals, as if those read were a random
    sample of each unit's.

    documents: of each unit, read or not. own: whether the unit's own pages count. Each source unit is a stratum with
    Wilson's interval for a finite population; the intervals are added as by Zou, Huang and Zhang 2009. Below the
    estimate the product of both sides of Wilson's interval is added, which is the variance: the sum is less skew than
    its parts. Pages outside the target set are counted as they are.
    """
    size, chosen = len(fragment.units), fragment.chosen
    read = np.bincount(fragment.unit[fragment.fetched], minlength=size).astype(np.float64)
    documents = np.where((np.arange(size) < chosen) & (read > 0), np.maximum(documents, read), read)
    pages = sort_distinct(fragment.sources * size + fragment.unit[fragment.ends])
    pairs, hits = count_values(fragment.unit[pages // size].astype(np.int64) * size + pages % size)
    source, unit = pairs // size, pairs % size
    counts = (unit < chosen) & (own | (source != unit))
    source, unit, hits = source[counts], unit[counts], hits[counts]
    low, high = wilson(hits, read[source], documents[source])
    linking = hits / read[source]
    # units without a link count with the interval of no hit
    _, none = wilson(np.zeros(size), np.maximum(read, 1), np.maximum(documents, 1))
    none = (none * documents) ** 2
    above = (documents[source] * (high - linking)) ** 2 - none[source]
    sums = (
        np.bincount(unit, weights, minlength=size)[:chosen]
        for weights in (
            documents[source] * linking,
            documents[source] ** 2 * (linking - low) * (high - linking),
            above,
            hits,
        )
    )
    total, below, above, seen = sums
    above = above + none.sum() - (0 if own else none[:chosen])
    sizes = np.maximum(documents[:chosen], 1)
    rows = (total, np.maximum(total - np.sqrt(np.maximum(below, 0)), seen), total + np.sqrt(np.maximum(above, 0)))
    return tuple(Estimate(*row) for row in zip(*((row / sizes).tolist() for row in rows), strict=True))


def density_estimate(fragment: WebFragment, documents: Floats) -> Estimate | None:
    """Density of the target set on all known documents, with a 95 % interval: linked pairs are estimated as the items
    of a harvest are. None: too few sites were read.
    """
    chosen, page = fragment.chosen, np.cumsum(fragment.fetched & fragment.is_target) - 1
    source, end = fragment.unit[fragment.sources].astype(np.int64), fragment.unit[fragment.ends]
    arcs = (source < chosen) & (end < chosen) & (source != end)
    site = fragment.unit[fragment.fetched & fragment.is_target]
    pairs = page[fragment.sources[arcs]], source[arcs] * chosen + end[arcs]
    rows = harvest_rows([""] * chosen, np.ceil(documents[:chosen]).astype(np.int64), site, pairs)
    total, possible = richness(rows).total, max(chosen * (chosen - 1), 1)
    return total and Estimate(*(min(value / possible, 1.0) for value in (total.value, total.low, total.high)))


def outside_columns(text: str, units: Sequence[Unit]) -> tuple[tuple[OutsideColumn, ...], tuple[str, ...]]:
    """Reads a CSV with the column `site` and columns of numbers: (columns, sentences on what was not used).

    A site is a unit's name, short name, prefix or any of its addresses. `=12` is 12, `201-300` is 250.5, `1001+` is
    1001. Raises UsageError with the line number.
    """
    lines = text.lstrip("\ufeff").splitlines()
    mark = max(",;\t", key=lines[0].count) if lines else ","
    table = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=mark)
    heads = {head.strip().lower(): head for head in table.fieldnames or ()}
    if SITE_COLUMN not in heads or len(heads) < 2:
        raise UsageError(f"the file needs a line of names with `{SITE_COLUMN}` and a column of numbers")
    names = [name for name in table.fieldnames or () if name != heads[SITE_COLUMN]]
    columns, unknown, lines_of = {name: [np.nan] * len(units) for name in names}, [], dict[int, int]()
    texts, place_of = dict[str, str](), _site_finder(units)
    for number, row in enumerate(table, 2):
        site = (row[heads[SITE_COLUMN]] or "").strip()
        place = place_of(site)
        if place is None:
            unknown.append(site)
            continue
        if lines_of.setdefault(place, number) != number:
            raise UsageError(f"line {number}: {site} is on line {lines_of[place]} too")
        for name in names:
            value = (row[name] or "").strip()
            try:
                columns[name][place] = _number(value)
            except ValueError:
                texts.setdefault(name, f"column {name} is not used: {value!r} on line {number} is no number")
    usable = tuple(OutsideColumn(name, tuple(values)) for name, values in columns.items() if name not in texts)
    if not lines_of or not usable:
        raise UsageError("; ".join(texts.values()) or f"none of the survey's sites is in the file, only {unknown[:3]}")
    missing = [f"{len(unknown)} of its sites are not in the survey: {', '.join(unknown[:5])}"] if unknown else []
    return usable, (*texts.values(), *missing)


def _number(text: str) -> float:
    """Raises ValueError."""
    if match := _BAND.fullmatch(text):
        first, last = match.groups()
        return (float(first) + float(last or first)) / 2
    return float(text) if text else np.nan


def _site_finder(units: Sequence[Unit]) -> Callable[[str], int | None]:
    names: Mapping[str, int] = {
        name.lower(): place
        for place, unit in reversed(list(enumerate(units)))
        for name in (*unit.prefixes, unit.short, unit.name)
    }
    of_url = unit_finder(units, UnitChoice(platforms=()))

    def place(site: str) -> int | None:
        if site.lower() in names:
            return names[site.lower()]
        try:
            unit = of_url(canonical(site if "://" in site else f"https://{site}"))
        except UsageError:
            return None
        return unit if isinstance(unit, int) else None

    return place
