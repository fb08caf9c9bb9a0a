"""What all screens share as long as the server runs, and how values become pages."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from periplus.api.labelling import Sessions
from periplus.api.remembered import Maps, Surveys
from periplus.api.tables import Browser
from periplus.api.watching import SurveyWatchers, Watchers
from periplus.errors import UsageError
from periplus.model.visit import Reason, State
from periplus.model.web import Url
from periplus.present import wording
from periplus.present.draw import STYLE as DRAWING_STYLE
from periplus.settings import VERSION
from periplus.store.job_queue import JobQueue
from periplus.store.sqlite.job_file import folder_queue
from periplus.ui.places import Places
from periplus.ui.safety import Locks
from periplus.urls.canonical import url_id

# As `present.wording.visible`, but white space stays: HTML folds it where it does not matter,
# and stored sources need it
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-"
    r"\udfff\ufeff\ufff9-\ufffb]+"
)


def seen(value: object) -> object:
    """A text without characters that are no sign, or that turn a line round;
    our own markup and what is no text as they are.
    """
    return _UNSEEN.sub("", value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("periplus.ui"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": wording.number, "bytes": wording.size, "count_of": wording.count_of, "utc": wording.utc,
        "iso": wording.iso, "short": wording.short,
        "reason": lambda name: wording.REASON_WORDS.get(Reason(name), name) if name in list(Reason) else name,
        "state": lambda name: wording.STATE_WORDS.get(State(name), name) if name in list(State) else name,
        "within": query, "part": lambda text: quote(str(text), safe=""), "web": web_link, "duration": wording.duration,
        "cut": cut, "page_key": page_key,
    }  # fmt: skip
    made.globals |= {"version": VERSION}
    return made


def page_key(url: str) -> str:
    """A page's number as a form's field holds it; empty for what is no address of one."""
    return f"{url_id(Url(url)) & (1 << 64) - 1:016x}" if url.startswith(("http://", "https://")) else ""


def file_named(name: str, headers: dict[str, str]) -> dict[str, str]:
    """Headers with those of a file to be kept, not opened."""
    return headers | {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def cut(text: object, most: int = 200) -> str:
    """A long text's beginning."""
    full = str(text)
    return full if len(full) <= most else full[: most - 1] + "…"


def query(parameters: Mapping[str, str], **changes: object) -> str:
    """The address's parameters with some changed, None: left out; turning a page is forgotten by any other change."""
    kept = {
        name: text for name, text in parameters.items() if name not in changes and (name != "at" or "at" in changes)
    }
    wanted = kept | {name: str(value) for name, value in changes.items() if value not in (None, "")}
    return "?" + urlencode(wanted)


def web_link(url: str, name: str = "") -> Markup:
    """A link into the web, which learns nothing of us;
    the bare name where the URL is none that browsers should open.
    """
    shown = escape(str(seen(name or url)))
    if not url.startswith(("http://", "https://")):
        return shown
    return Markup('<a href="{}" rel="noopener noreferrer nofollow">{}</a>').format(seen(url), shown)


def address(name: str, path: str) -> str:
    """Of a screen of a collection."""
    return f"/c/{quote(name, safe='')}/{path}"


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
        return Response(body, status, media_type="application/json")
    return HTMLResponse(rendered(request, template, values).encode("utf-8", "replace"), status)


def rendered(request: Request, template: str, values: Mapping[str, object]) -> str:
    """A template with what every page knows: `nonce` and `seal` for scripts and forms, `here` (path), `asked` (the address's parameters)."""  # noqa: E501
    known = request.scope["periplus"]
    everywhere = {
        "nonce": known["nonce"],
        "seal": known["seal"],
        "here": request.url.path,
        "asked": dict(request.query_params),
    }
    return _environment().get_template(template).render(everywhere | {"name": ""} | dict(values))


@cache
def style_sheet() -> bytes:
    """The report's palette and forms, and after them the interface's own."""
    report = files("periplus.present").joinpath("report.css").read_bytes()
    return report + b"\n" + static("ui.css") + DRAWING_STYLE.encode()


@cache
def static(name: str) -> bytes:
    """A file of ours."""
    return files("periplus.ui").joinpath(f"static/{name}").read_bytes()


@dataclass(frozen=True, slots=True)
class AppState:
    """commands: that this program has, by name; works: whether a worker was started with the server."""

    places: Places
    locks: Locks
    commands: frozenset[str]
    works: bool = False
    browser: Browser = field(default_factory=Browser)
    watchers: Watchers = field(default_factory=Watchers)
    maps: Maps = field(default_factory=Maps)
    surveys: Surveys = field(default_factory=Surveys)
    survey_watchers: SurveyWatchers = field(default_factory=SurveyWatchers)
    labelling: Sessions = field(default_factory=Sessions)
    parts: dict[str, tuple[float, str]] = field(default_factory=dict)  # of screens that are pushed: when made, and what
    part_lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def queue(self) -> Iterator[JobQueue]:
        """The queue, for one request: a connection belongs to one thread."""
        queue = folder_queue(self.places.base)
        try:
            yield queue
        finally:
            queue.close()


def house_of(request: Request) -> AppState:
    house = request.app.state.house
    assert isinstance(house, AppState)
    return house


def folder_of(request: Request) -> tuple[str, Path]:
    """(name, folder) of the collection in the address. Raises NoCollection."""
    name = request.path_params["name"]
    return name, house_of(request).places.folder(name)


def job_word(house: AppState, folder: Path) -> str:
    """The collection as a job of this house's queue names it."""
    full = folder.resolve()
    return full.name if full.parent == house.places.base.resolve() else str(full)


def line_or_fault(line: Callable[[], str]) -> tuple[str, str]:
    """(what a form means on a command line, why it means nothing): one of them is empty."""
    try:
        return line(), ""
    except UsageError as error:
        return "", str(error)


def now() -> float:
    return time.time()
