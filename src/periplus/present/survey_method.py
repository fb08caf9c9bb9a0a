"""How was a survey made, so that its figures can be set beside others? The method sheet."""

from __future__ import annotations

from periplus.model.webometrics import SurveyResults
from periplus.present.markup import Html, table, text
from periplus.present.paged import Column, PagedTable, paged
from periplus.present.wording import number, utc


def method_sheet(found: SurveyResults) -> Html:
    """Runs, parameters, counts, and what became of each unit's URLs, exclusions by robots.txt among it."""
    method = found.method
    counts = [
        ("sites in the target set", number(found.chosen)),
        ("documents", number(method.documents)),
        ("distinct links", number(method.links)),
        ("pages merged for equal content", number(method.merged)),
        ("URLs forbidden by robots.txt", number(sum(record.robots for record in method.units))),
        ("sites without a page", number(sum(1 for record in method.units if record.state))),
        ("made", utc(method.created)),
    ]
    said = [*method.runs, *counts, *method.parameters]
    facts = table(["", ""], [[text(name), text(value)] for name, value in said], ["w", ""])
    columns = [Column("site"), Column("prefixes", wide=True), Column("fetched", "n"), Column("waiting", "n"), Column("robots.txt", "n")]
    columns += [Column("refused", "n"), Column("dead", "n"), Column("redirects", "n", wide=True), Column("bundle", wide=True), Column("state")]
    rows = (
        (
            found.units[record.unit].name,
            " ".join(found.units[record.unit].prefixes),
            record.fetched,
            record.waiting,
            record.robots,
            record.refused,
            record.dead,
            record.redirects,
            found.units[record.unit].bundle + ("" if found.units[record.unit].official else " (not official)"),
            record.state or "read",
        )
        for record in method.units
    )
    return facts + f"<h3>What became of each site's URLs</h3>{paged(PagedTable('record-rows', columns, rows, len(method.units)))}"
