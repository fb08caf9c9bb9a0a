"""What goes and what stays when something is deleted, in words?"""

from __future__ import annotations

from dataclasses import dataclass

from periplus.model.deletion import Deletion, DeletionPlan
from periplus.present.wording import count_of, size


@dataclass(frozen=True, slots=True)
class Told:
    """Lines, each about one kind of thing of which there is some."""

    goes: tuple[str, ...]
    stays: tuple[str, ...]


def told(plan: DeletionPlan, wish: Deletion) -> Told:
    """In the order of what matters to the one who deletes."""
    kinds = (
        (plan.pages, count_of(plan.pages, "page") + f", with what was read of {'it' if plan.pages == 1 else 'them'}"),
        (plan.forgotten, count_of(plan.forgotten, "address", "addresses") + " that nothing names any longer"
         + (f", {plan.orphans:,} of them known only from these pages" if plan.orphans else "")),
        (plan.visits, count_of(plan.visits, "visit")),
        (plan.links_from, count_of(plan.links_from, "link") + " on these pages"),
        (plan.links_to, count_of(plan.links_to, "link") + " of other pages to them"),
        (plan.bodies, count_of(plan.bodies, "body", "bodies") + f" that no other page has, {plan.texts:,} with text and blocks"),
        (plan.marks, count_of(plan.marks, "page’s marks", "pages’ marks") + " of content and navigation"),
        (plan.indexed, "up to " + count_of(plan.indexed, "entry", "entries") + " of the search index"),
        (plan.past, count_of(plan.past, "row") + " of history"),
        (wish.run, f"the record of run {wish.run}" + ("" if wish.run_pages else "; its pages stay")),
        (plan.size_bytes, f"{size(plan.size_bytes)} in all; the file keeps its size for what comes next, unless it is shrunk"),
    )  # fmt: skip
    after = "they wait to be fetched again" if wish.again else "they are not asked for until a crawl names them"
    stays = (f"{count_of(plan.staying, 'address', 'addresses')} that other pages link to, or that a start or a sitemap names: {after}",) if plan.staying else ()
    return Told(tuple(line for some, line in kinds if some), stays)
