"""What is known and kept of one page?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from periplus.api.browsing import Wish
from periplus.api.collection import Collection, LinkFilter, open_collection
from periplus.api.page import Page
from periplus.api.placing import place_in
from periplus.errors import UsageError
from periplus.model.page import Block, Part
from periplus.model.web import Url
from periplus.ui import rendering
from periplus.ui.house import folder_of, house_of
from periplus.urls.scope import site_key

VIEWS = {"": "What is known", "place": "Place in the map", "blocks": "Text by blocks", "source": "Source", "xml": "XML", "visits": "Visits"}
LINKS = 300  # of each direction that are named
BLOCKS = 3_000
SOURCE_CHARS = 300_000
READ_S = 10.0
PULLED = ("image", "style", "script", "font", "media", "frame", "embed")
LINK_COLUMNS = ("source", "target", "anchor", "kind", "position", "nofollow", "times", "target_reason", "target_status")
SANDBOX = "default-src 'none'; sandbox"


def page(request: Request) -> Response:
    """One page, seen in one of VIEWS; `raw` gives its source or XML as a file."""
    name, folder = folder_of(request)
    asked = request.query_params
    view, url = asked.get("view", ""), asked.get("url", "")
    if view not in VIEWS or not url:
        raise UsageError(f"name a page with url=, and perhaps a view: {', '.join(filter(None, VIEWS))}")
    with open_collection(folder, time_limit_s=READ_S) as kept:
        found = kept.page(url, house_of(request).browser.books)
        if asked.get("raw"):
            return _raw(found, view)
        summary = found.summary()
        values: dict[str, object] = {
            "title": (summary.page.title if summary.page else "") or "Page",
            "name": name,
            "page": summary,
            "view": view,
            "views": VIEWS,
        }
        values |= _of_view(kept, found, view)
    if view in ("", "place"):
        values |= _place(request, found.url, wait=view == "place")
    if view == "visits":
        values["visits"] = house_of(request).browser.page(folder, "visits", Wish((("url", found.url),), most=100))
    return rendering.answer(request, "page.html", values)


def _of_view(kept: Collection, found: Page, view: str) -> dict[str, object]:
    """What a view adds; where nothing was kept, why."""
    try:
        if view == "blocks":
            return {"blocks": marked(found.blocks()[:BLOCKS], found.parts())}
        if view == "source":
            return _source(found)
        if view == "xml":
            content, media_type = found.xml()
            return {"xml": content.decode("utf-8", "replace")[:SOURCE_CHARS], "xml_type": media_type, "cut": len(content) > SOURCE_CHARS}
    except UsageError as error:
        return {"missing": str(error)}
    if view in ("visits", "place"):
        return {}
    outlinks = [dict(zip(LINK_COLUMNS, row, strict=True)) for row in kept.link_columns(LinkFilter(source=found.url, limit=LINKS), LINK_COLUMNS)]
    pulled = Counter(str(link["kind"]) for link in outlinks if link["kind"] in PULLED)
    return {"inlinks": list(found.inlinks(LINKS)), "outlinks": outlinks, "pulled": dict(pulled.most_common()), "most": LINKS}


def _place(request: Request, url: Url, *, wait: bool) -> dict[str, object]:
    """The page's place in its site's map; without waiting only where the map is at hand."""
    _, folder = folder_of(request)
    maps, site = house_of(request).maps, str(site_key(url))
    try:
        made = maps.of(folder, site) if wait else maps.at_hand(folder, site)
    except UsageError as error:
        return {"place": None, "no_place": str(error)}
    place = place_in(made, url) if made else None
    return {"place": place, "no_place": "" if made is None or place else f"It is no page of the map of {made.key}."}


def marked(blocks: Sequence[Block], parts: Sequence[Part] | None) -> list[dict[str, object]]:
    """Blocks with what they are for; "" where they are not marked."""
    named = [part.value for part in parts[: len(blocks)]] if parts is not None else [""] * len(blocks)
    return [
        {"kind": block.kind.value, "text": block.text, "part": part, "level": block.level, "path": block.path}
        for block, part in zip(blocks, named, strict=True)
    ]


def _source(found: Page) -> dict[str, object]:
    content = found.source()
    facts = found.summary().page
    text = decoded(content, facts.charset if facts else "")
    return {"source": text[:SOURCE_CHARS], "cut": len(text) > SOURCE_CHARS, "headers": found.headers()[1].fields, "size": len(content)}


def decoded(content: bytes, charset: str) -> str:
    """For eyes: in its encoding, or in UTF-8 where Python has no such encoding."""
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _raw(found: Page, view: str) -> Response:
    """As a file that no browser opens by itself."""
    content = found.xml()[0] if view == "xml" else found.source()
    ending = "xml" if view == "xml" else "txt"
    headers = {"content-disposition": f'attachment; filename="page.{ending}"', "content-security-policy": SANDBOX}
    return Response(content, media_type="application/octet-stream", headers=headers)
