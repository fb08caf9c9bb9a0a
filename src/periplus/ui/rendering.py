"""How values become pages, JSON, files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from periplus.errors import UsageError
from periplus.features import NavEntry, features
from periplus.model.visit import Reason
from periplus.model.web import Url
from periplus.present import wording
from periplus.present.draw import STYLE as DRAWING_STYLE
from periplus.settings import VERSION
from periplus.ui.users import Role
from periplus.urls.canonical import url_id

PROBLEM = "application/problem+json"  # RFC 9457
RefusedForm = tuple[Mapping[str, str], str]  # a form that was sent, to be mended, and why
# for what we draw of a site's own words
SANDBOX = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
MEDIA = {  # by the ending of a file
    "svg": "image/svg+xml", "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "xhtml": "application/xhtml+xml", "xml": "application/xml", "gexf": "application/xml", "graphml": "application/xml",
    "net": "text/plain; charset=utf-8",
    "json": "application/json", "csv": "text/csv; charset=utf-8", "pdf": "application/pdf",
    "png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
    "atom": "application/atom+xml", "opml": "text/x-opml",
}  # fmt: skip
# As `present.wording.visible`, but white space stays: HTML folds it where it does not matter,
# and stored sources need it
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-"
    r"\udfff\ufeff\ufff9-\ufffb]+"
)


class NavPlace(NamedTuple):
    """One of the five places of a collection."""

    word: str
    screens: tuple[NavEntry, ...]

    def holds(self, path: str) -> bool:
        return path.startswith(tuple(start for screen in self.screens for start in screen.starts))


PLACES = (
    NavPlace("Overview", (
        NavEntry("live", "Overview", starts=("live",)), NavEntry("compare", "Compare runs", starts=("compare",)),
        NavEntry("settings", "Settings", starts=("settings", "delete")),
    )),
    NavPlace("Map", (
        NavEntry("map", "Tree", starts=("map",)), NavEntry("site", "Whole site", starts=("site",)),
        NavEntry("graph", "Links around a page", starts=("graph",)),
    )),
    NavPlace("Pages", (
        NavEntry("t/pages", "Pages", starts=("t/pages", "page", "t/sites")),
        NavEntry("search", "Search", starts=("search",)), NavEntry("t/links", "Links", starts=("t/links",)),
        NavEntry("t/external", "External links", starts=("t/external",)),
    )),
    NavPlace("Faults", (NavEntry("t/faults", "Faults", starts=("t/faults", "t/issues", "fault")),)),
    NavPlace("Study", (
    )),
)  # fmt: skip


def visible(value: object) -> object:
    """A text without characters that are no sign, or that turn a line round;
    our own markup and what is no text as they are.
    """
    return _UNSEEN.sub("", value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("periplus.ui"),
                jinja2.PrefixLoader(
                    {name: jinja2.PackageLoader(name) for row in features().values() if (name := row.templates)}
                ),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": wording.number, "bytes": wording.size, "count_of": wording.count_of, "utc": wording.utc,
        "iso": wording.iso, "short": wording.short,
        "reason": lambda name: wording.REASON_WORDS.get(Reason(name), name) if name in list(Reason) else name,
        "within": query, "part": lambda text: quote(str(text), safe=""), "web": web_link, "duration": wording.duration,
        "cut": cut, "page_key": page_key, "path": path_of, "job_remedy": wording.job_remedy, "filled": filled_fields,
    }  # fmt: skip
    added = [entry for row in features().values() for entry in row.navigation]
    places = (
        NavPlace(place.word, (*place.screens, *(entry for entry in added if entry.place == place.word)))
        for place in PLACES
    )
    made.globals |= {
        "version": VERSION,
        "places_of_a_collection": [place for place in places if place.screens],
        "navigation": [entry for entry in added if not entry.place],
    }
    return made


def page_key(url: str) -> str:
    """A page's number for a form's field; empty for a text that is no URL."""
    return f"{url_id(Url(url)) & (1 << 64) - 1:016x}" if url.startswith(("http://", "https://")) else ""


def filled_fields(form: Mapping[str, str], prefix: str = "") -> list[str]:
    """Names of a form's filled fields with this prefix."""
    return [name for name, text in form.items() if name.startswith(prefix) and text.strip()]


def cut(text: object, most: int = 200) -> str:
    """A long text's beginning."""
    full = str(text)
    return full if len(full) <= most else full[: most - 1] + "…"


def path_of(url: str) -> str:
    """A URL without its origin, at most 120 characters."""
    return cut("/" + url.split("/", 3)[-1], 120) if url.count("/") > 2 else url


def query(parameters: Mapping[str, str], **changes: object) -> str:
    """The address's parameters with some changed, None: left out; turning a page is forgotten by any other change."""
    others = {
        name: text for name, text in parameters.items() if name not in changes and (name != "at" or "at" in changes)
    }
    return "?" + urlencode(others | {name: str(value) for name, value in changes.items() if value not in (None, "")})


def web_link(url: str, name: str = "") -> Markup:
    """A link into the web, which learns nothing of us;
    the bare name where the URL is none that browsers should open.
    """
    shown = escape(str(visible(name or url)))
    if not url.startswith(("http://", "https://")):
        return shown
    return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(visible(url), shown)


def address(name: str, path: str) -> str:
    """Address of a screen of a collection."""
    return f"/c/{quote(name, safe='')}/{path}"


def to_screen(name: str, path: str) -> RedirectResponse:
    """From a form on to a screen of a collection."""
    return RedirectResponse(address(name, path), 303)


def drawing(content: str | bytes, file: str = "") -> Response:
    """Content derived from a site, in a sandbox: a picture, or a download with this name."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    attached = {"content-disposition": f"attachment; filename*=UTF-8''{quote(file, safe='')}"} if file else {}
    return Response(data, media_type=MEDIA[file.rpartition(".")[2] or "svg"], headers=SANDBOX | attached)


def plain(value: object) -> object:
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    item = getattr(value, "item", None)  # NumPy's numbers
    return item() if item else str(value)


def wants_json(request: Request) -> bool:
    return request.query_params.get("format") == "json" or request.headers.get("accept", "").startswith(
        "application/json"
    )


def answer(request: Request, template: str, values: Mapping[str, object], status: int = 200) -> Response:
    """The page, or its values as JSON where that is asked for."""
    if wants_json(request):
        body = json.dumps(plain(values), ensure_ascii=False).encode("utf-8", "replace")
        return Response(body, status, media_type=PROBLEM if template == "error.html" else "application/json")
    return HTMLResponse(render(request, template, values).encode("utf-8", "replace"), status)


def answer_form(
    request: Request,
    template: str,
    values: Mapping[str, object],
    line: Callable[[Mapping[str, str]], str],
    refused: RefusedForm | None = None,
) -> Response:
    """A screen with a form as the address fills it, with the commands that this means, or why it means nothing.

    line: the commands; empty where the form is. A form that was refused is shown again.
    """
    if refused is not None:
        form, fault = refused
        return answer(request, template, {**values, "line": "", "fault": fault, "asked": dict(form)}, 400)
    try:
        return answer(request, template, {**values, "line": line(request.query_params), "fault": ""})
    except UsageError as error:
        return answer(request, template, {**values, "line": "", "fault": str(error)})


def render(request: Request, template: str, values: Mapping[str, object]) -> str:
    """A template with what every page has.

    nonce: of scripts; csrf_token: of forms; here: the path; asked: the address's parameters;
    may_work, may_administer: what the user's role allows, for what only some may send; has_studies: a function, since
    it opens the collection, which the parts of a live screen, sent each second, do not need.
    """
    scope = request.scope["periplus"]
    role: Role | None = scope["role"]
    everywhere = {
        "nonce": scope["nonce"],
        "csrf_token": scope["csrf_token"],
        "here": request.url.path,
        "asked": dict(request.query_params),
        "name": "",
        "may_work": role is not None and role.allows(Role.WORK),
        "may_administer": role is not None and role.allows(Role.ADMINISTER),
        "has_studies": partial(request.app.state.periplus.has_studies, str(values.get("name", ""))),
    }
    return _environment().get_template(template).render(everywhere | dict(values))


@cache
def style_sheet() -> bytes:
    """The report's palette and forms, and after them the interface's own."""
    report = files("periplus.present").joinpath("report.css").read_bytes()
    return report + b"\n" + static("ui.css") + DRAWING_STYLE.encode()


@cache
def static(name: str) -> bytes:
    """A file of ours."""
    return files("periplus.ui").joinpath(f"static/{name}").read_bytes()
