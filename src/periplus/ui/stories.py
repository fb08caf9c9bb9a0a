"""Which stories went through a collection's sites, who is worth reading for them, and what are pages about?"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from periplus.analyse.cascades import cascades_of_stories
from periplus.api.collection import open_collection
from periplus.api.results import kept_stories, kept_story, stories_file, when_kept
from periplus.api.stories import ReadingRequest, influence
from periplus.errors import PeriplusError, UsageError
from periplus.model.job import JobOrder
from periplus.model.story import Cascades, Influence, Objective, Stories, Story
from periplus.present.influence import (
    GOALS,
    verdict_lines,
    write_coverage_svg,
    write_influence_csv,
    write_influence_json,
)
from periplus.present.stories import ORDER_WORDS, delay, write_cascade_svg
from periplus.ui import rendering
from periplus.ui.live import jobs_about
from periplus.ui.maps import SANDBOX
from periplus.ui.rendering import folder_of, house_of, job_word, now

SHOWN = 30  # stories on the screen; all of them stand in the table
SITES = 20  # chosen where nobody says how many
SITES_MOST = 200
ENTRIES_MOST = 20_000  # (story, site) of which a choice is made while one waits: a second
KEYWORDS = 15
READ_S = 10.0


def routes() -> list[BaseRoute]:
    return [
        Route("/c/{name}/stories", stories),
        Route("/c/{name}/stories", find, methods=["POST"]),
        Route("/c/{name}/story", story),
        Route("/c/{name}/story.svg", picture),
        Route("/c/{name}/influence.{ending}", influence_file),
        Route("/c/{name}/keywords", keywords),
    ]


def stories(request: Request) -> Response:
    """The stories that were found last, and the sites that one would read to see most of them."""
    name, folder = folder_of(request)
    found = kept_stories(folder)
    values: dict[str, object] = {
        "title": "Stories", "name": name, "found": when_kept(stories_file(folder)),
        "jobs": jobs_about(house_of(request), name, lambda order: order.kind == "stories"), "stories": [],
    }  # fmt: skip
    if found is not None:
        values |= {
            "stories": [_row(number, one) for number, one in enumerate(found.stories[:SHOWN], 1)],
            "stories_in_all": len(found.stories),
            "pages": found.pages, "sites": len(found.posts), "digests": list(found.digests[:SHOWN]),
            **_reading(found, request.query_params),
        }  # fmt: skip
    return rendering.answer(request, "stories.html", values)


def _row(number: int, one: Story) -> dict[str, object]:
    return {
        "number": number,
        "title": one.title,
        "sites": list(one.sites),
        "pages": len(one.pages),
        "first": one.pages[0].date.when,
    }


def find(request: Request) -> Response:
    """Asks for stories to be found anew."""
    house = house_of(request)
    name, folder = folder_of(request)
    with house.queue() as queue:
        queue.add(JobOrder(("stories", "-c", job_word(house, folder), "--keep")), now())
    return RedirectResponse(rendering.address(name, "stories"), 303)


def _reading(found: Stories, asked: Mapping[str, str]) -> dict[str, object]:
    """What the choice of sites says; or why there is none."""
    objective, most = _wish(asked)
    values: dict[str, object] = {
        "objective": objective.value,
        "k": most,
        "objectives": {one.value: GOALS[one] for one in Objective},
        "chosen": [],
    }
    try:
        cascades, chosen = _chosen(found, objective, most)
    except UsageError as error:
        return values | {"no_choice": str(error)}
    rows = [
        {"site": cascades.sites[one.site], "gain": one.gain, "value": one.value, "stories": len(one.first_of)}
        for one in chosen.chosen
    ]
    return values | {
        "chosen": rows,
        "verdict": list(verdict_lines(chosen, objective, None)),
        "no_choice": "",
        "missed": len(chosen.missed),
    }


def _wish(asked: Mapping[str, str]) -> tuple[Objective, int]:
    text, objective = asked.get("k", "") or str(SITES), asked.get("objective", "") or Objective.DL.value
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= SITES_MOST):
        raise UsageError(f"k is a number of sites from 1 to {SITES_MOST}, not {text[:50]!r}")
    if objective not in list(Objective):
        raise UsageError(f"an objective is {', '.join(Objective)}, not {objective[:50]!r}")
    return Objective(objective), int(text)


def _chosen(found: Stories, objective: Objective, most: int) -> tuple[Cascades, Influence]:
    """Raises UsageError where there is nothing to choose by, or so much that one would wait."""
    entries = sum(len(one.sites) for one in found.stories)
    if not found.stories:
        raise UsageError("no story that two sites tell was found, so there is nothing to choose by")
    if entries > ENTRIES_MOST:
        raise UsageError(
            f"{len(found.stories):,} stories take longer than one waits for: `periplus influence -k {most} "
            f"--objective {objective}` chooses"
        )
    cascades = cascades_of_stories(found)
    return cascades, influence(cascades, ReadingRequest(objective, most))


def influence_file(request: Request) -> Response:
    """The choice of sites as a picture, as a table, or whole, as `periplus influence` writes it."""
    name, folder = folder_of(request)
    found, ending = kept_stories(folder), request.path_params["ending"]
    if found is None or ending not in ("svg", "csv", "json"):
        raise UsageError(
            "stories were not looked for yet"
            if found is None
            else f"there is no such file of a choice: choose svg, csv, json, not {ending[:20]!r}"
        )
    objective, most = _wish(request.query_params)
    cascades, chosen = _chosen(found, objective, most)
    out, headers = io.StringIO(newline=""), {"content-security-policy": SANDBOX}
    if ending == "svg":
        write_coverage_svg(cascades, chosen, objective, None, out)
        return Response(out.getvalue(), media_type="image/svg+xml", headers=headers)
    if ending == "csv":
        write_influence_csv(cascades, chosen, out)
    else:
        write_influence_json(cascades, chosen, objective, None, out)
    media_type = "text/csv" if ending == "csv" else "application/json"
    return Response(
        out.getvalue(), media_type=media_type, headers=rendering.file_named(f"{name}-influence.{ending}", headers)
    )


def story(request: Request) -> Response:
    """One story: its pages in order, and how it went from site to site."""
    name, folder = folder_of(request)
    number = _number(request)
    one = kept_story(folder, number)
    first = one.pages[0].date
    cited, copied = dict(reversed(one.links)), {later: (earlier, share) for later, earlier, share in one.near}
    rows = [
        {
            "url": page.url, "site": page.site, "title": page.title, "date": page.date.when,
            "dated_by": page.date.source.value,
            "after": delay(page.date, first) if place else "", "links_to": cited[place] + 1 if place in cited else None,
            "copies": copied[place][0] + 1 if place in copied else None,
            "share": copied[place][1] if place in copied else None,
        }
        for place, page in enumerate(one.pages)
    ]  # fmt: skip
    values: dict[str, object] = {
        "title": one.title,
        "name": name,
        "number": number,
        "sites": list(one.sites),
        "pages": rows,
        "ordered": ORDER_WORDS[one.order],
    }
    return rendering.answer(request, "story.html", values)


def _number(request: Request) -> int:
    text = request.query_params.get("n", "")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UsageError("name a story with n=, its number in the list")
    return int(text)


def picture(request: Request) -> Response:
    """A story's cascade, as an image."""
    out = io.StringIO(newline="")
    write_cascade_svg(kept_story(folder_of(request)[1], _number(request)), out)
    return Response(out.getvalue(), media_type="image/svg+xml", headers={"content-security-policy": SANDBOX})


def keywords(request: Request) -> Response:
    """What a page, a site, or the answers to a query are about; of nothing, the form that asks."""
    name, folder = folder_of(request)
    of, query = request.query_params.get("of", "").split(), request.query_params.get("query", "").strip()
    if of and query:
        raise UsageError("name either pages or a site, or a query")
    values: dict[str, object] = {
        "title": "Keywords",
        "name": name,
        "of": " ".join(of),
        "query": query,
        "found": None,
        "fault": "",
    }
    if of or query:
        try:
            values["found"] = _keywords(folder, of, query)
        except PeriplusError as error:
            if rendering.wants_json(request):
                raise
            values["fault"] = str(error)
    return rendering.answer(request, "keywords.html", values, 400 if values["fault"] else 200)


def _keywords(folder: Path, of: list[str], query: str) -> object:
    with open_collection(folder, time_limit_s=READ_S) as kept:
        return kept.keywords(*of, query=query or None, most=KEYWORDS)
