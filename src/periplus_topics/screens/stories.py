"""Stories of a collection's sites, the best sites to read, and keywords of pages."""

from __future__ import annotations

import io
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.functions import open_collection
from periplus.errors import PeriplusError, UsageError
from periplus.jobs.presets import choice, whole
from periplus.model.job import JobOrder
from periplus.ui import rendering
from periplus.ui.live import jobs_about
from periplus.ui.state import place_read, state_of
from periplus.values import JsonObject, Place, fields_of
from periplus_topics.api.stories import ReadingRequest, choose_sites, stored_stories, stored_story, stories_file
from periplus_topics.model import Cascades, Influence, Objective, Stories, Story, cascades_of_stories
from periplus_topics.present.stories import (
    GOALS,
    ORDER_WORDS,
    delay,
    format_date,
    verdict_lines,
    write_cascade_svg,
    write_coverage_svg,
    write_influence_csv,
    write_influence_json,
)
from periplus_topics.store import when_stored

MOST_STORIES = 30  # stories on the screen; the table has all
SITES = 20  # sites chosen by default
SITES_MOST = 200
ENTRIES_MOST = 20_000  # (story, site) of which a choice is made while one waits: a second
KEYWORDS = 15
READ_S = 10.0


def stories(request: Request) -> Response:
    """The stories that were found last, and the sites that one would read to see most of them."""
    name, place = place_read(request)
    latest = stored_stories(place)
    values: JsonObject = {
        "title": "Stories", "name": name, "computed_at": when_stored(stories_file(place)),
        "jobs": jobs_about(state_of(request), name, lambda order: order.kind == "stories"), "stories": [],
    }  # fmt: skip
    if latest is not None:
        values |= {
            "stories": [_row(number, story) for number, story in enumerate(latest.stories[:MOST_STORIES], 1)],
            "stories_in_all": len(latest.stories),
            "pages": latest.pages, "sites": len(latest.posts), "digests": list(latest.digests[:MOST_STORIES]),
            **_reading(latest, request.query_params),
        }  # fmt: skip
    return rendering.answer(request, "periplus_topics/stories.html", values)


def _row(number: int, story: Story) -> JsonObject:
    return {
        "number": number,
        "title": story.title,
        "sites": list(story.sites),
        "pages": len(story.pages),
        "first": story.pages[0].date.when,
    }


def find(request: Request) -> Response:
    """Queues a new search for stories."""
    state = state_of(request)
    name, place = place_read(request)
    state.add_job(JobOrder(("stories", "-c", state.folder_word(place), "--keep")))
    return rendering.to_screen(name, "stories")


def _reading(stories: Stories, asked: Mapping[str, str]) -> JsonObject:
    """Values of the choice of sites, or why there is none."""
    objective, most = _objective(asked)
    values: JsonObject = {
        "objective": objective.value,
        "k": most,
        "objectives": {goal.value: GOALS[goal] for goal in Objective},
        "chosen": [],
    }
    try:
        cascades, chosen = _choose_sites(stories, objective, most)
    except UsageError as error:
        return values | {"no_choice": str(error)}
    rows = [
        {
            "site": cascades.sites[choice.site],
            "gain": choice.gain,
            "value": choice.value,
            "stories": len(choice.first_of),
        }
        for choice in chosen.chosen
    ]
    return values | {
        "chosen": rows,
        "verdict": list(verdict_lines(chosen, objective, None)),
        "no_choice": "",
        "missed": len(chosen.missed),
    }


def _objective(asked: Mapping[str, str]) -> tuple[Objective, int]:
    """(what is wanted of the sites, how many). Raises UsageError."""
    return Objective(choice(asked, "objective", list(Objective), Objective.DL)), whole(asked, "k", SITES, 1, SITES_MOST)


def _choose_sites(stories: Stories, objective: Objective, most: int) -> tuple[Cascades, Influence]:
    """Raises UsageError where there is nothing to choose by, or so much that one would wait."""
    entries = sum(len(story.sites) for story in stories.stories)
    if not stories.stories:
        raise UsageError("no story on two sites was found, so there is nothing to choose by")
    if entries > ENTRIES_MOST:
        raise UsageError(
            f"{len(stories.stories):,} this takes too long for the browser: use `periplus influence -k {most} "
            f"--objective {objective}` chooses"
        )
    cascades = cascades_of_stories(stories)
    return cascades, choose_sites(cascades, ReadingRequest(objective, most))


def influence_file(request: Request) -> Response:
    """The choice of sites as a picture, as a table, or whole, as `periplus influence` writes it."""
    name, place = place_read(request)
    latest, ending = stored_stories(place), request.path_params["ending"]
    if latest is None:
        raise UsageError("stories were not computed yet")
    objective, most = _objective(request.query_params)
    cascades, chosen = _choose_sites(latest, objective, most)
    out, file = io.StringIO(newline=""), f"{name}-influence.{ending}"
    match ending:
        case "svg":
            write_coverage_svg(cascades, chosen, objective, None, out)
            return rendering.drawing(out.getvalue())
        case "csv":
            write_influence_csv(cascades, chosen, out)
            return rendering.drawing(out.getvalue(), file)
        case "json":
            write_influence_json(cascades, chosen, objective, None, out)
            return rendering.drawing(out.getvalue(), file)
    raise UsageError(f"there is no such file of a choice: choose svg, csv, json, not {ending[:20]!r}")


def story(request: Request) -> Response:
    """One story: its pages in order, and how it went from site to site."""
    name, place = place_read(request)
    number = _number(request)
    story = stored_story(place, number)
    first = story.pages[0].date
    cited, copied = dict(reversed(story.links)), {later: (earlier, share) for later, earlier, share in story.near}
    rows = [
        {
            **fields_of(page, "url site title"), "date": page.date.when,
            "dated": format_date(page.date, "%d %b %Y", " %H:%M"),
            "dated_by": page.date.source.value,
            "after": delay(page.date, first) if place else "", "links_to": cited[place] + 1 if place in cited else None,
            "copies": copied[place][0] + 1 if place in copied else None,
            "share": copied[place][1] if place in copied else None,
        }
        for place, page in enumerate(story.pages)
    ]  # fmt: skip
    values: JsonObject = {
        "title": story.title,
        "name": name,
        "number": number,
        "sites": list(story.sites),
        "pages": rows,
        "ordered": ORDER_WORDS[story.order],
    }
    return rendering.answer(request, "periplus_topics/story.html", values)


def _number(request: Request) -> int:
    """Number of the story in the list. Raises UsageError."""
    return whole(request.query_params, "n", 0, 1, 10**9)


def picture(request: Request) -> Response:
    """A story's cascade, as an image."""
    out = io.StringIO(newline="")
    write_cascade_svg(stored_story(place_read(request)[1], _number(request)), out)
    return rendering.drawing(out.getvalue())


def keywords(request: Request) -> Response:
    """Keywords of a page, a site, or the results of a query; without any, the form."""
    name, place = place_read(request)
    of, query = request.query_params.get("of", "").split(), request.query_params.get("query", "").strip()
    if of and query:
        raise UsageError("name either pages or a site, or a query")
    values: JsonObject = {
        "title": "Keywords",
        "name": name,
        "of": " ".join(of),
        "query": query,
        "result": None,
        "fault": "",
    }
    if of or query:
        try:
            values["result"] = _keywords(place, of, query)
        except PeriplusError as error:
            if rendering.wants_json(request):
                raise
            values["fault"] = str(error)
    return rendering.answer(request, "periplus_topics/keywords.html", values, 400 if values["fault"] else 200)


def _keywords(place: Place, of: list[str], query: str) -> object:
    with open_collection(place, time_limit_s=READ_S) as collection:
        return collection.keywords(*of, query=query or None, most=KEYWORDS)
