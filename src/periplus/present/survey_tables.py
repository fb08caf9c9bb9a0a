"""Which tables does a survey hand on, with what in each column? For spreadsheets and statistics programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from periplus.errors import UsageError
from periplus.model.campaign import CampaignStanding
from periplus.model.survey import SiteMark
from periplus.model.table import Column, ColumnKind
from periplus.model.webometrics import SurveyResults

Row = tuple[object, ...]
_TEXT, _WHOLE, _REAL, _BOOLEAN = ColumnKind.TEXT, ColumnKind.INTEGER, ColumnKind.REAL, ColumnKind.BOOLEAN
_RUN = (
    Column("run", _TEXT, "the run that the figures come from"),
    Column("model", _TEXT, "what counts as one document: page, directory, host or site; a link is a distinct pair of them"),
)
UNITS = (
    Column("site", _TEXT, "the unit's name"),
    Column("prefixes", _TEXT, "what URLs of the unit begin with"),
    Column("bundle", _TEXT, "the organisation that it belongs to"),
    Column("official", _BOOLEAN, "whether it is the organisation's official site"),
    Column("fetched", _WHOLE, "documents that were fetched"),
    Column("waiting", _WHOLE, "documents that are known and were not fetched"),
    Column("share", _REAL, "fetched / (fetched + waiting)"),
    Column("in_links", _WHOLE, "links from other sites of the target set"),
    Column("in_units", _WHOLE, "how many sites these come from"),
    Column("in_companion", _WHOLE, "links from pages that were fetched outside the target set"),
    Column("out_links", _WHOLE, "links to other sites of the target set"),
    Column("out_units", _WHOLE, "how many sites these lead to"),
    Column("out_companion", _WHOLE, "links to sites outside the target set"),
    Column("out_sites", _WHOLE, "how many sites outside these lead to"),
    Column("self_links", _WHOLE, "links within the site"),
    Column("linking_pages", _WHOLE, "pages that link into the site, its own among them: the numerator of wif"),
    Column("external_linking_pages", _WHOLE, "pages of other sites that link into it: the numerator of external_wif"),
    Column("wif", _REAL, "linking_pages / fetched; empty where fetched is 1 or 0: linking_pages says it all"),
    Column("external_wif", _REAL, "external_linking_pages / fetched; empty as wif is"),
    Column("state", _TEXT, "empty, or why no page of the site was fetched"),
    *_RUN,
)
COMPANIONS = (
    Column("site", _TEXT, "the site outside the target set"),
    Column("class", _TEXT, "private, weak, strong, communicator or global"),
    Column("units", _WHOLE, "different sites of the target set that link to it"),
    Column("pages", _WHOLE, "pages of these that do"),
    Column("links", _WHOLE, "distinct pairs of pages"),
    Column("back", _WHOLE, "sites of the target set that it links to; none where no page of it was fetched"),
    Column("documents", _WHOLE, "pages of it that are known"),
    Column("fetched", _WHOLE, "pages of it that were fetched"),
    Column("strong_gain", _WHOLE, "of communicators: sites that the largest strong component gains by it"),
    Column("pairs_gain", _WHOLE, "of communicators: ordered pairs of sites that come into reach of each other by it"),
    Column("status", _TEXT, "what the user decided: in, out, undecided, discovered"),
    Column("tags", _TEXT, "what the user noted, parted by blanks"),
    Column("run", _TEXT, "the run that the figures come from"),
)
CO_LINKS = (
    Column("kind", _TEXT, "co-inlink: sites that link to both; coupling: sites that both link to"),
    Column("first", _TEXT, "a site of the target set"),
    Column("second", _TEXT, "another one"),
    Column("sites", _WHOLE, "how many sites, global ones left out"),
)
SUFFIXES = (
    Column("direction", _TEXT, "out: linked to from the target set; in: linking to it"),
    Column("suffix", _TEXT, "what the sites' names are registered under; empty for addresses"),
    Column("domain", _TEXT, "the top level domain"),
    Column("country", _BOOLEAN, "whether that is a country's"),
    Column("sites", _WHOLE, "sites outside the target set"),
    Column("links", _WHOLE, "links from or to these"),
    *_RUN,
)
CONNECTIVITY = (
    Column("vertices", _TEXT, "all sites of the target set, official ones, bundles, or all with the communicators"),
    Column("sites", _WHOLE, "vertices"),
    Column("arcs", _WHOLE, "linked ordered pairs"),
    Column("density", _REAL, "arcs of all that could be"),
    Column("reciprocity", _REAL, "share of arcs that are returned"),
    Column("largest_strong", _WHOLE, "vertices in the largest strong component"),
    Column("strong_components", _WHOLE, "strong components"),
    Column("largest_weak", _WHOLE, "vertices in the largest weak component"),
    Column("weak_components", _WHOLE, "weak components"),
)
INTERLINKING = (
    Column("source", _TEXT, "the site of the target set that links"),
    Column("target", _TEXT, "the site that is linked to"),
    Column("links", _WHOLE, "distinct pairs of documents; of a site with itself: its self-links"),
    *_RUN,
)
RECORDS = (
    Column("site", _TEXT, "the unit's name"),
    Column("prefixes", _TEXT, "what URLs of the unit begin with"),
    Column("fetched", _WHOLE, "URLs that were fetched"),
    Column("waiting", _WHOLE, "URLs that are known and were not asked for"),
    Column("robots", _WHOLE, "URLs that robots.txt forbids"),
    Column("refused", _WHOLE, "URLs that the server refused"),
    Column("dead", _WHOLE, "URLs that do not exist or cannot be reached"),
    Column("redirects", _WHOLE, "URLs that redirect"),
    Column("state", _TEXT, "empty, or why no page of the site was fetched"),
)
STANDING = (
    Column("site", _TEXT, "the site's name"),
    Column("prefixes", _TEXT, "the first prefix of each of its units"),
    Column("pages", _WHOLE, "pages that were asked for"),
    Column("links", _WHOLE, "external items that its pages were the first of the site to show"),
    Column("recent", _REAL, "of them a page, over the site's last pages"),
    Column("score", _REAL, "what the rule thinks of it; empty: too early"),
    Column("share", _REAL, "of the known pages, those that were asked for"),
    Column("waiting", _WHOLE, "pages that are known and were not asked for"),
    Column("state", _TEXT, "reading, read, waiting, or why it is not available"),
    Column("tags", _TEXT, "what the user noted, parted by blanks"),
)


def standing_rows(found: CampaignStanding, marks: Mapping[str, SiteMark]) -> Iterator[Row]:
    """Rows of STANDING: most new links first."""
    for row in sorted(found.sites, key=lambda row: (-row.links, -row.pages, row.short)):
        tags = " ".join(tag for prefix in row.prefixes if prefix in marks for tag in marks[prefix].tags)
        counts = (row.pages, row.links, row.recent, row.score, row.share, row.waiting)
        yield (row.name, " ".join(row.prefixes), *counts, row.state, tags)


def survey_table(found: SurveyResults, name: str) -> tuple[tuple[Column, ...], Iterator[Row]]:
    """(columns, rows) of one of TABLES. Raises UsageError for another name."""
    if name not in _TABLES:
        raise UsageError(f"a survey has no table {name!r}: choose among {', '.join(_TABLES)}")
    columns, rows = _TABLES[name]
    return columns, rows(found)


def _units(found: SurveyResults) -> Iterator[Row]:
    states = {record.unit: record.state for record in found.method.units}
    for row in found.figures:
        unit = found.units[row.unit]
        counts = (row.fetched, row.waiting, row.share, row.in_links, row.in_units, row.in_companion, row.out_links, row.out_units)
        further = (row.out_companion, row.out_sites, row.self_links, row.wif.linking, row.external_wif.linking, row.wif.value, row.external_wif.value)
        named = (unit.name, " ".join(unit.prefixes), unit.bundle, unit.official)
        yield (*named, *counts, *further, states.get(row.unit, ""), found.method.run, found.method.model.value)


def _companions(found: SurveyResults) -> Iterator[Row]:
    for site in found.companions:
        gain = (site.gain.largest_strong - site.gain.strong_before, site.gain.pairs - site.gain.pairs_before) if site.gain else (None, None)
        counts = (site.units, site.pages, site.links, site.back, site.documents, site.fetched)
        yield (site.name, site.kind.value, *counts, *gain, site.status.value, " ".join(site.tags), found.method.run)


def _co_links(found: SurveyResults) -> Iterator[Row]:
    for kind, pairs in (("co-inlink", found.co_inlinks), ("coupling", found.couplings)):
        for pair in pairs:
            yield kind, found.units[pair.first].name, found.units[pair.second].name, pair.sites


def _suffixes(found: SurveyResults) -> Iterator[Row]:
    for direction, tallies in (("out", found.suffixes_out), ("in", found.suffixes_in)):
        for tally in tallies:
            yield (direction, *tally, found.method.run, found.method.model.value)


def _connectivity(found: SurveyResults) -> Iterator[Row]:
    for row in found.connectivity:
        sizes = (row.strong[0] if row.strong else 0, len(row.strong), row.weak[0] if row.weak else 0, len(row.weak))
        yield (row.vertices, row.sites, row.arcs, row.density, row.reciprocity, *sizes)


def _interlinking(found: SurveyResults) -> Iterator[Row]:
    """Most links first; self-links among them."""
    matrix = found.matrix
    inside = (matrix.sources < found.chosen) & (matrix.ends < found.chosen)
    rows = zip(matrix.counts[inside].tolist(), matrix.sources[inside].tolist(), matrix.ends[inside].tolist(), strict=True)
    for links, source, end in sorted(rows, key=lambda row: (-row[0], row[1], row[2])):
        yield found.units[source].name, found.units[end].name, links, found.method.run, found.method.model.value


def _records(found: SurveyResults) -> Iterator[Row]:
    for record in found.method.units:
        unit = found.units[record.unit]
        yield (unit.name, " ".join(unit.prefixes), *record[1:])


_TABLES: dict[str, tuple[tuple[Column, ...], Callable[[SurveyResults], Iterator[Row]]]] = {
    "sites": (UNITS, _units),
    "companions": (COMPANIONS, _companions),
    "colinks": (CO_LINKS, _co_links),
    "suffixes": (SUFFIXES, _suffixes),
    "connectivity": (CONNECTIVITY, _connectivity),
    "interlinking": (INTERLINKING, _interlinking),
    "records": (RECORDS, _records),
}
TABLES = tuple(_TABLES)
