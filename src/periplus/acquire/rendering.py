"""Renders pages in browsers: each in a context of its own, every request of it answered by the crawl's transport.

States of a page:  waiting -> open -> loading -> settled -> (scrolled -> settled)* -> read; from each of them -> failed.
Always:  (1) a browser is asked for nothing that `Renderer` was not given, and reaches nothing else;  (2) a page that
takes longer or asks for more than its bounds is read as it stands, or fails, alone;
(3) a browser that dies or falls silent costs its pages one more attempt;  (4) every page that was begun ends, as a
`Rendering` or a reason.
Not its business: which pages are rendered, and when a host may be asked: see `worker`.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import re
import signal
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from periplus.acquire.browser import Chromium
from periplus.document.digest import body_digest
from periplus.errors import InvalidUrl
from periplus.model.page import Rendering
from periplus.model.ports import Clock
from periplus.model.visit import Fetched, Purpose, Redirected, Request, Visit
from periplus.model.web import Origin, Url
from periplus.settings import Settings
from periplus.urls.canonical import canonical
from periplus.urls.hosts import origin_of

log = logging.getLogger(__name__)

PAGES_AT_ONCE = 4  # of one browser: a page waits for its own quiet most of the time
QUIET_S = 0.5  # without a request after the load event: what Playwright and Puppeteer take for an idle network
OWN_TIME_S = 15.0  # of one page, while none of its requests waits for us
WHOLE_TIME_S = 180.0  # with what its host's delay costs it
PART_TIME_S = 30.0  # that one request may wait for its host's turn
DELAYED_S = 0.1  # what a reader takes for at once (web.dev, RAIL): less than that in all is no delay of ours
READ_TIME_S = 5.0  # to hand over what it shows; then its scripts are stopped, and once more so long
MOST_REQUESTS = 150  # of one page
MOST_PART_BYTES = 32 << 20  # of one page
MOST_DIALOGS = 20
MOST_POST_BYTES = 64 << 10  # of one request; queries of GraphQL have some 1 to 10 KB
MOST_ATTEMPTS = 2
PARTS_BYTES = 64 << 20  # of answers that are kept for the pages to come
PROCESS_BYTES = 1 << 30  # of one page's process; a page of 200 KB of scripts has 30 to 60 MB
LOOK_S = 0.5  # how often that is looked at
PAGES_OF_BROWSER = 500  # then it is started anew: what leaks goes
SCREEN = (1280, 1024)
NOT_PARSED = "it was not parsed to its end"  # among the bounds of a rendering: the sent page may have more

# what a page shows and says is made of these; pictures stand for themselves, and films and sockets are nobody's text
_ASKED = frozenset({"Script", "Stylesheet", "XHR", "Fetch"})
_SHOWN = frozenset({"Image", "Font"})
_PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a transparent GIF: no script meets a failure
# of an answer: what holds for the bytes as they travelled, and what would keep it or set it apart
_DROPPED = frozenset(
    [
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "set-cookie",
        "alt-svc",
        "content-disposition",
    ]
)
# of a script's own request, what an answer may hang on
_PASSED = {"accept": "Accept", "authorization": "Authorization", "x-requested-with": "X-Requested-With"}
_JSON = re.compile(r"application/(json|graphql(-response)?\+json)\s*(;[ -~]*)?", re.IGNORECASE)
_KINDS = {"Script": "script", "Stylesheet": "style", "XHR": "data", "Fetch": "data", "Image": "image", "Font": "font"}
_PREPARE = files("periplus.acquire").joinpath("page_prepare.js").read_text("utf-8")
_READ = files("periplus.acquire").joinpath("page_read.js").read_text("utf-8")
_SCROLL = files("periplus.acquire").joinpath("page_scroll.js").read_text("utf-8")


ClosedOrigins = Mapping[Origin, frozenset[Origin]]
"""Of each origin at which one is signed in, those whose pages may ask there."""


@dataclass(slots=True)
class RenderJob:
    """One page to be rendered. context: the caller's own, handed back with the result."""

    url: Url
    fetched: Fetched
    context: Any
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """A job's end. rendering None: there is none, and why says why. leads_to: where a script went on to, or nowhere."""

    job: RenderJob
    rendering: Rendering | None
    why: str = ""
    leads_to: str = ""


class _Page:
    """One page in one browser."""

    def __init__(self, owner: Renderer, browser: _Browser, job: RenderJob, now: float) -> None:
        self.owner, self.browser, self.job = owner, browser, job
        self.context_id = self.target_id = self.session = ""
        self.began = self.active_at = now
        self.own_s, self.looked_at = 0.0, now
        self.loaded = self.document_given = False
        self.reading_since = math.inf
        self.stopped = self.ended = False
        self.dialogs = self.requests = self.part_bytes = self.refused = 0
        self.delayed_s = 0.0  # that answers came later than their servers gave them
        self.scrolls = 0
        self.bytes_by_kind: dict[str, int] = {}
        self.bounds: list[str] = []
        self.leads_to = ""
        self.screenshot = b""
        # requests under way: (id of the paused request, session) by request, and since when
        self.waiting: dict[str, tuple[str, float]] = {}

    # opening ---------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.send_root("Target.createBrowserContext", {"disposeOnDetach": True}, self._on_context)

    def _on_context(self, result: Mapping[str, Any]) -> None:
        self.context_id = result.get("browserContextId", "")
        deny = {"behavior": "deny", "browserContextId": self.context_id}
        self.send_root("Browser.setDownloadBehavior", deny)
        target = {"url": "about:blank", "browserContextId": self.context_id, "width": SCREEN[0], "height": SCREEN[1]}
        self.send_root("Target.createTarget", target, self._on_target)

    def _on_target(self, result: Mapping[str, Any]) -> None:
        self.target_id = result.get("targetId", "")
        self.browser.by_target[self.target_id] = self
        self.send_root("Target.attachToTarget", {"targetId": self.target_id, "flatten": True}, self._on_session)

    def _on_session(self, result: Mapping[str, Any]) -> None:
        self.session = result.get("sessionId", "")
        self.browser.by_session[self.session] = self
        width, height = SCREEN
        self.send("Page.enable")
        self.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        self.send("Target.setAutoAttach", attach)
        self.send("Network.setBypassServiceWorker", {"bypass": True})
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", screen)
        if self.owner.user_agent:
            self.send("Emulation.setUserAgentOverride", {"userAgent": self.owner.user_agent})
        self.send("Page.addScriptToEvaluateOnNewDocument", {"source": _PREPARE, "runImmediately": True})
        self.send("Page.navigate", {"url": self.job.url})

    def send(
        self,
        method: str,
        parameters: Mapping[str, Any] | None = None,
        then: Callable[[Mapping[str, Any]], None] | None = None,
        session: str = "",
    ) -> None:
        self.browser.chromium.send(method, parameters, session or self.session, then and self._while_open(then))

    def send_root(
        self, method: str, parameters: Mapping[str, Any], then: Callable[[Mapping[str, Any]], None] | None = None
    ) -> None:
        self.browser.chromium.send(method, parameters, "", then and self._while_open(then))

    def _while_open(self, then: Callable[[Mapping[str, Any]], None]) -> Callable[[Mapping[str, Any]], None]:
        def answer(result: Mapping[str, Any]) -> None:
            if not self.ended:
                then(result)

        return answer

    # events ----------------------------------------------------------------------------------------------------------

    def on_event(self, method: str, event: Mapping[str, Any], session: str, now: float) -> None:
        match method:
            case "Fetch.requestPaused":
                self.active_at = now
                self._on_request(event, session, now)
            case "Page.loadEventFired":
                self.active_at, self.loaded = now, True
            case "Page.frameStoppedLoading" if event.get("frameId") == self.target_id and self.document_given:
                self.active_at, self.loaded = now, True  # without that event, where a script leads elsewhere
            case "Page.javascriptDialogOpening":
                self.dialogs += 1
                self.send("Page.handleJavaScriptDialog", {"accept": False}, session=session)
                if self.dialogs == MOST_DIALOGS:
                    self._cut(f"{MOST_DIALOGS} dialogs", now)
            case "Target.attachedToTarget":
                self._on_child(event)
            case "Inspector.targetCrashed":
                self.fail("its process ended: it took too much memory, or crashed")
            case _:
                pass

    def _on_child(self, event: Mapping[str, Any]) -> None:
        """A frame or worker of the page has its own session, whose requests are answered alike; others never begin."""
        child, kind = event["sessionId"], event["targetInfo"]["type"]
        if kind in ("iframe", "worker"):
            self.browser.by_session[child] = self
            self.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, session=child)
            self.send("Runtime.runIfWaitingForDebugger", session=child)
        else:
            self.send_root("Target.closeTarget", {"targetId": event["targetInfo"]["targetId"]})

    def _on_request(self, event: Mapping[str, Any], session: str, now: float) -> None:
        number, kind, asked = event["requestId"], event.get("resourceType", ""), event["request"]
        is_document = kind == "Document" and event.get("frameId") == self.target_id
        if is_document and not self.document_given and asked["url"].partition("#")[0] == self.job.url:
            self.document_given = True
            fetched = self.job.fetched
            self._answer(number, session, fetched.status, fetched.headers.fields, fetched.body)
            return
        if is_document:  # it stays where it is: no content, no navigation (RFC 9110, 15.3.5)
            self.leads_to = asked["url"]
            self._answer(number, session, 204, (), b"")
            return
        if kind == "Preflight":  # what the answer itself allows is judged when it comes
            self._answer(number, session, 204, _preflight(asked["headers"]), b"")
            return
        if kind == "Image" and not self.owner.shows:
            self._answer(number, session, 200, (("content-type", "image/gif"),), base64.b64decode(_PIXEL))
            return
        is_wanted = kind in _ASKED or (self.owner.shows and kind in _SHOWN)
        request = _request_of(asked) if is_wanted else None
        if request is None or self.owner.refuses(request, self.job.url):
            self._refuse(number, session, counted=is_wanted)
            return
        self.requests += 1
        if self.requests > MOST_REQUESTS or self.part_bytes > MOST_PART_BYTES:
            bound = f"{MOST_REQUESTS} requests" if self.requests > MOST_REQUESTS else f"{MOST_PART_BYTES >> 20} MiB"
            self._cut(bound, now)
            self._refuse(number, session)
            return
        self.waiting[number] = (session, now)
        self.owner.ask(request, partial(self._on_part, number, kind))

    def _on_part(self, number: str, kind: str, visit: Visit | None, was_at_hand: bool) -> None:
        """The answer to one of its requests; None: it was not asked for in time."""
        if self.ended or number not in self.waiting:
            return
        session, since = self.waiting.pop(number)
        now = self.owner.clock.monotonic()
        self.active_at = now
        if not was_at_hand and visit is not None:
            self.delayed_s += max(0.0, now - since - visit.took_s)
        match visit.outcome if visit is not None else None:
            case Fetched(status=status, headers=headers, body=body):
                self.part_bytes += len(body)
                name = _KINDS.get(kind, "other")
                self.bytes_by_kind[name] = self.bytes_by_kind.get(name, 0) + len(body)
                self._answer(number, session, status, headers.fields, body)
            case Redirected(status=status, headers=headers):
                self._answer(number, session, status, headers.fields, b"")
            case _:
                self._refuse(number, session)

    def _answer(self, number: str, session: str, status: int, fields: Sequence[tuple[str, str]], body: bytes) -> None:
        headers = [{"name": name, "value": value} for name, value in fields if name not in _DROPPED]
        parameters = {
            "requestId": number,
            "responseCode": status,
            "responseHeaders": headers,
            "body": base64.b64encode(body).decode(),
        }
        self.send("Fetch.fulfillRequest", parameters, session=session)

    def _refuse(self, number: str, session: str, *, counted: bool = True) -> None:
        self.refused += counted
        self.send("Fetch.failRequest", {"requestId": number, "errorReason": "BlockedByClient"}, session=session)

    # the way of a page -----------------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Does what the time asks for."""
        passed, self.looked_at = now - self.looked_at, now
        for number, (session, since) in list(self.waiting.items()):
            if now - since > PART_TIME_S:
                del self.waiting[number]
                self._refuse(number, session)
        if not self.waiting:
            self.own_s += min(passed, QUIET_S)  # a turn of the loop that took long is not the page's
        if self.reading_since < math.inf:
            self._hurry(now)
        elif self.own_s > OWN_TIME_S or now - self.began > WHOLE_TIME_S:
            self._cut("time", now)
        elif self.loaded and not self.waiting and now - self.active_at >= QUIET_S:
            if self.scrolls < self.owner.scroll:
                self.scrolls += 1
                self.active_at = now
                self.send("Runtime.evaluate", {"expression": _SCROLL, "userGesture": False})
            else:
                self._read(now)

    def _cut(self, bound: str, now: float) -> None:
        """Reads the page as it stands."""
        if self.reading_since == math.inf:
            self.bounds.append(bound)
            self._read(now)

    def _read(self, now: float) -> None:
        if not self.session or not self.document_given:
            self.fail("the browser did not open it in time")
            return
        self.reading_since = now
        if self.owner.shows:
            self.send("Runtime.evaluate", {"expression": "window.scrollTo(0, 0)"})
            self.send("Page.captureScreenshot", {"format": "webp", "quality": 60}, self._on_screenshot)
        else:
            self._read_markup()

    def _on_screenshot(self, result: Mapping[str, Any]) -> None:
        self.screenshot = base64.b64decode(result.get("data", ""))
        self._read_markup()

    def _read_markup(self) -> None:
        """In a world of its own, which sees the page's elements and none of what its scripts put into their prototypes:
        older libraries change what arrays and elements do, and a hostile page all of it.
        """
        self.send("Page.createIsolatedWorld", {"frameId": self.target_id}, self._on_world)

    def _on_world(self, result: Mapping[str, Any]) -> None:
        expression = {
            "expression": f"({_READ})({self.owner.most_chars})",
            "returnByValue": True,
            "contextId": result.get("executionContextId", 0),
        }
        self.send("Runtime.evaluate", expression, self._on_read)

    def _hurry(self, now: float) -> None:
        if now - self.reading_since <= READ_TIME_S:
            return
        if self.stopped:
            self.fail("its scripts do not end")
            return
        self.stopped, self.reading_since = True, now
        if not self.bounds:
            self.bounds.append("time")
        self.send("Runtime.terminateExecution")

    def _on_read(self, result: Mapping[str, Any]) -> None:
        value = result.get("result", {}).get("value")
        if not isinstance(value, dict):
            if self.stopped or result.get("exceptionDetails") is None:
                self.fail("it could not be read: " + ("its scripts do not end" if self.stopped else "it is too large"))
                return
            self.stopped = True  # a script of it was stopped, and this with it: once more
            self._read_markup()
            return
        if not value["url"].startswith(("http:", "https:")):
            self.fail("the browser showed a page of its own in its place")
            return
        if value["cut"]:
            self.fail("it grew too large")  # the sent page has more
            return
        if not value["parsed"]:
            self.bounds.append(NOT_PARSED)
        timed = self.delayed_s <= DELAYED_S  # else it tells our delay, not the page's
        rendering = Rendering(
            html=("\ufeff" + value["html"]).encode("utf-8", "replace"),
            sent=self.job.fetched.body if self.owner.keeps_sent else b"",
            sent_digest=body_digest(self.job.fetched.body),
            sent_size=len(self.job.fetched.body),
            took_s=self.owner.clock.monotonic() - self.began,
            requests=self.requests,
            refused=self.refused,
            bytes_by_kind=tuple(sorted(self.bytes_by_kind.items())),
            bounds=tuple(dict.fromkeys(self.bounds)),
            leads_to=self.leads_to,
            paint_s=value["lcp"] if timed else None,
            shift=value["cls"] if timed else None,
            screenshot=self.screenshot,
        )
        self.end(Rendered(self.job, rendering, "", self.leads_to))

    def fail(self, why: str) -> None:
        self.end(Rendered(self.job, None, why, self.leads_to))

    def end(self, rendered: Rendered | None) -> None:
        """Closes it. None: it is tried again."""
        if self.ended:
            return
        self.ended = True
        if self.context_id:
            self.browser.dispose(self.context_id)
        self.browser.remove(self)
        if rendered is not None:
            self.owner.rendered.append(rendered)


def _preflight(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What lets the request itself be made: the browser asks first what a server of another origin allows."""
    given = {name.lower(): value for name, value in headers.items()}
    return (
        ("access-control-allow-origin", given.get("origin", "*")),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-headers", given.get("access-control-request-headers", "*")),
        ("access-control-allow-methods", "GET, HEAD"),
    )


def _request_of(asked: Mapping[str, Any]) -> Request | None:
    """What a page asks for, as our transport asks it; None: it is not ours to ask. By POST it is JSON, and not much."""
    body = _json_sent(asked) if asked["method"] == "POST" else b""
    if asked["method"] not in ("GET", "POST") or (asked["method"] == "POST" and not body):
        return None
    try:
        url = canonical(asked["url"])
    except InvalidUrl:
        return None
    if not url.startswith(("http://", "https://")):
        return None
    headers = {name.lower(): value for name, value in asked["headers"].items()}
    if "sec-purpose" in headers or headers.get("accept") == "text/event-stream":
        return None  # what may be needed later, and what never ends
    fields = [f"{shown}: {headers[name]}" for name, shown in _PASSED.items() if headers.get(name, "*/*") != "*/*"]
    if "origin" in headers:
        fields.append(f"Origin: {headers['origin']}")
    if body:
        fields.append(f"Content-Type: {headers['content-type']}")
    return Request(url, Purpose.PART, fields=tuple(fields), body=body)


def _json_sent(asked: Mapping[str, Any]) -> bytes:
    """The body of a request that asks for data by JSON; empty: it is no such request."""
    given = next((value for name, value in asked["headers"].items() if name.lower() == "content-type"), "")
    body = b"".join(base64.b64decode(entry.get("bytes", "")) for entry in asked.get("postDataEntries", ()))
    return body if _JSON.fullmatch(given) and len(body) <= MOST_POST_BYTES else b""


class _Browser:
    """One browser with the pages that it has open."""

    def __init__(self, chromium: Chromium, now: float) -> None:
        self.chromium = chromium
        self.pages: list[_Page] = []
        self.by_session: dict[str, _Page] = {}
        self.by_target: dict[str, _Page] = {}
        self.begun = 0
        self.closing: dict[str, float] = {}  # contexts that were told to go, and when
        self.looked_at = self.now = now

    @property
    def has_room(self) -> bool:
        return len(self.pages) < PAGES_AT_ONCE and self.begun < PAGES_OF_BROWSER

    def dispose(self, context_id: str) -> None:
        self.closing[context_id] = self.now
        forget = {"browserContextId": context_id}
        self.chromium.send("Target.disposeBrowserContext", forget, "", partial(self._on_disposed, context_id))

    def _on_disposed(self, context_id: str, result: Mapping[str, Any]) -> None:
        self.closing.pop(context_id, None)

    def remove(self, page: _Page) -> None:
        self.pages.remove(page)
        self.by_target.pop(page.target_id, None)
        self.by_session = {session: one for session, one in self.by_session.items() if one is not page}

    def exchange(self, now: float) -> None:
        """Takes what the browser says to its pages, and lets each do what is due. Raises BrokenPipeError."""
        self.now = now
        for event in self.chromium.receive():
            page = self.by_session.get(event.get("sessionId", ""))
            if page is not None:
                page.on_event(event["method"], event["params"], event["sessionId"], now)
        for page in list(self.pages):
            page.look(now)
        if any(now - since > 2 * READ_TIME_S for since in self.closing.values()):
            raise BrokenPipeError  # it does not even close a page
        if now - self.looked_at >= LOOK_S:
            self.looked_at = now
            self._end_giants()

    def _end_giants(self) -> None:
        """Ends the processes that hold too much: their pages fail, and the browser goes on."""
        for size, pid in self.chromium.memory():
            if size > PROCESS_BYTES:
                log.warning("browser process=%d bytes=%d ended", pid, size)
                os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class _Part:
    """A request under way, and who waits for its answer."""

    callers: list[Callable[[Visit | None, bool], None]] = field(default_factory=list)


class Renderer:
    """Up to `browsers` browsers, started as there are pages. Not thread-safe; nothing here waits.

    begin a page; `advance` now and again; give `answer` what `requests` brought; take what ended from `advance`.
    """

    def __init__(self, program: str, settings: Settings, clock: Clock, closed: ClosedOrigins) -> None:
        self._closed = closed
        # an archive has what was answered to GET
        self._posts = settings.rendering.script_posts and not settings.past.from_archive
        self._program, self.clock, self.user_agent = program, clock, settings.identity.user_agent
        self._most, self.scroll = settings.rendering.browsers, settings.rendering.scroll
        self.shows, self.keeps_sent = settings.rendering.screenshots, settings.storage.keep_bodies
        self.most_chars = settings.limits.inflated_bytes
        self._jobs: deque[RenderJob] = deque()
        self._browsers: list[_Browser] = []
        self._parts: OrderedDict[Request, Visit] = OrderedDict()
        self._parts_bytes = 0
        self._asked: dict[Request, _Part] = {}
        self.requests: deque[Request] = deque()  # to be fetched: whoever takes one gives `answer` what came
        self.rendered: list[Rendered] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs or self.rendered or any(browser.pages for browser in self._browsers))

    @property
    def asked(self) -> Sequence[Request]:
        """What pages wait for."""
        return tuple(self._asked)

    @property
    def fds(self) -> list[int]:
        """What becomes readable when a browser says something."""
        return [browser.chromium.fd for browser in self._browsers]

    def refuses(self, request: Request, page: Url) -> bool:
        """Whether a page is refused what it asks for.

        It is where one is signed in, and the page is of an origin that the login does not name: its script would read
        the answer, and take it elsewhere. And what is sent by POST, unless the user lets it be sent to the page's own
        origin; never where one is signed in.
        """
        asked, own = origin_of(request.url), origin_of(page)
        origins = self._closed.get(asked)
        if request.body:
            return not self._posts or asked != own or origins is not None
        return origins is not None and own not in origins

    def begin(self, job: RenderJob) -> None:
        self._jobs.append(job)

    def advance(self) -> list[Rendered]:
        """Does what there is to do, and returns the pages that have ended."""
        now = self.clock.monotonic()
        for one in list(self._browsers):
            try:
                one.exchange(now)
            except (BrokenPipeError, ValueError):  # gone, silent, or it says what nobody understands
                self._bury(one)
        while self._jobs and (browser := self._with_room(now)) is not None:
            job = self._jobs.popleft()
            job.attempts += 1
            page = _Page(self, browser, job, now)
            browser.pages.append(page)
            browser.begun += 1
            try:
                page.open()
            except BrokenPipeError:
                self._bury(browser)
        rendered, self.rendered = self.rendered, []
        return rendered

    def _with_room(self, now: float) -> _Browser | None:
        for one in list(self._browsers):
            if one.has_room:
                return one
            if not one.pages:  # it has had its pages
                one.chromium.close()
                self._browsers.remove(one)
        if len(self._browsers) < self._most:
            self._browsers.append(_Browser(Chromium(self._program), now))
            return self._browsers[-1]
        return None

    def _bury(self, browser: _Browser) -> None:
        """Ends a browser; each of its pages is tried once more, by another one."""
        if browser not in self._browsers:
            return
        self._browsers.remove(browser)
        browser.chromium.close()
        log.warning("browser ended pages=%s", " ".join(page.job.url for page in browser.pages))
        for page in browser.pages:
            page.ended = True
            if page.job.attempts < MOST_ATTEMPTS:
                self._jobs.append(page.job)
            else:
                self.rendered.append(Rendered(page.job, None, "the browser ended"))

    # parts -----------------------------------------------------------------------------------------------------------

    def ask(self, request: Request, then: Callable[[Visit | None, bool], None]) -> None:
        """Calls `then` with the answer and True, where it was at hand; else once it has come, with False."""
        if (visit := self._parts.get(request)) is not None:
            self._parts.move_to_end(request)
            then(visit, True)
            return
        part = self._asked.get(request)
        if part is None:
            part = self._asked[request] = _Part()
            self.requests.append(request)
        part.callers.append(then)

    def answer(self, visit: Visit) -> None:
        """What came of a request; kept for other pages."""
        request = visit.request
        size = len(visit.outcome.body) if isinstance(visit.outcome, Fetched) else 0
        if size <= PARTS_BYTES // 4:
            self._parts[request] = visit
            self._parts_bytes += size
        while self._parts_bytes > PARTS_BYTES:
            _, oldest = self._parts.popitem(last=False)
            self._parts_bytes -= len(oldest.outcome.body) if isinstance(oldest.outcome, Fetched) else 0
        part = self._asked.pop(request, None)
        for then in part.callers if part is not None else ():
            try:
                then(visit, False)
            except BrokenPipeError:  # the next `advance` sees it
                continue

    def close(self) -> None:
        for browser in self._browsers:
            browser.chromium.close()
        self._browsers.clear()
