"""Renders pages in browsers: each page in its own context; the crawl's transport answers all of its requests.

States of a page:  waiting -> open -> loading -> settled -> (scrolled -> settled)* -> read; from each of them -> failed.
Invariants:  (1) browsers have no network access of their own;  (2) a page that exceeds its limits is read in its
current state, or fails, without effect on other pages;  (3) if a browser crashes or hangs, its pages are tried once
more;  (4) every page that was begun ends with a `Rendering` or a reason.
The worker decides which pages are rendered, and when a host may be requested.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import signal
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Any

from xxhash import xxh3_128_digest

from periplus.model.page import Rendering
from periplus.model.ports import Clock
from periplus.model.visit import Fetched, Redirected, Request, Visit
from periplus.model.web import Origin, Url
from periplus.settings import Settings
from periplus.urls.hosts import origin_of
from periplus.values import frozen
from periplus_browser.chromium import Chromium, preflight, request_of

log = logging.getLogger(__name__)

PAGES_AT_ONCE = 4  # per browser; a page mostly waits for its network to be idle
QUIET_S = 0.5  # without requests after the load event: the idle network of Playwright and Puppeteer
OWN_TIME_S = 15.0  # time limit of a page, without the time in which its requests are pending
WHOLE_TIME_S = 180.0  # time limit of a page, with the delays of its hosts
PART_TIME_S = 30.0  # time limit of a request, with the delay of its host
DELAYED_S = 0.1  # users do not notice less (web.dev, RAIL); if we delayed a page by more, its timings are not stored
READ_TIME_S = 5.0  # to return its HTML; then its scripts are stopped, and it gets the same time again
MOST_REQUESTS = 150  # per page
MOST_PART_BYTES = 32 << 20  # per page
MOST_DIALOGS = 20
MOST_ATTEMPTS = 2
PARTS_BYTES = 64 << 20  # cache of answers for later pages
PROCESS_BYTES = 1 << 30  # per process; a page of 200 KB of scripts has 30 to 60 MB
LOOK_S = 0.5  # how often memory is checked
PAGES_OF_BROWSER = 500  # then the browser is restarted, because of memory leaks
SCREEN = (1280, 1024)
PARSING_INCOMPLETE = "it was not parsed to its end"  # among the bounds of a rendering: the sent page may have more

# the resources that text depends on; images are fetched for screenshots only, media and sockets never
_TEXT_RESOURCES = frozenset({"Script", "Stylesheet", "XHR", "Fetch"})
_SCREENSHOT_RESOURCES = frozenset({"Image", "Font"})
_PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # a transparent GIF: scripts see no failure
# header fields not passed to the browser: they describe the transfer, set cookies, or start a download
_FIELDS_TO_DROP = frozenset(
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
_KINDS = {"Script": "script", "Stylesheet": "style", "XHR": "data", "Fetch": "data", "Image": "image", "Font": "font"}
_PREPARE = files("periplus.acquire").joinpath("page_prepare.js").read_text("utf-8")
_READ = files("periplus.acquire").joinpath("page_read.js").read_text("utf-8")
_SCROLL = files("periplus.acquire").joinpath("page_scroll.js").read_text("utf-8")


ClosedOrigins = Mapping[Origin, frozenset[Origin]]
"""By origin with a login: the origins whose pages may send requests to it."""


@dataclass(slots=True)
class RenderJob:
    """One page to be rendered. context: returned to the caller with the result."""

    url: Url
    fetched: Fetched
    context: Any
    attempts: int = 0


@frozen
class RenderResult:
    """The result of a job. rendering None: it failed, `why` is the reason. leads_to: URL that a script navigated to."""

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
        self.delayed_s = 0.0  # time that answers waited for their hosts' delays
        self.scrolls = 0
        self.bytes_by_kind: dict[str, int] = {}
        self.bounds: list[str] = []
        self.leads_to = ""
        self.screenshot = b""
        # pending requests: (session, monotonic start) by the id of the paused request
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
                self.active_at, self.loaded = now, True  # if a script navigates away, there is no load event
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
        """Attaches to a frame or worker of the page, to answer its requests too; closes other targets (pop-ups)."""
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
        if is_document:  # 204 keeps the browser on the page (RFC 9110, 15.3.5)
            self.leads_to = asked["url"]
            self._answer(number, session, 204, (), b"")
            return
        if kind == "Preflight":  # always allowed: the browser applies CORS to the answer itself
            self._answer(number, session, 204, preflight(asked["headers"]), b"")
            return
        if kind == "Image" and not self.owner.shows:
            self._answer(number, session, 200, (("content-type", "image/gif"),), base64.b64decode(_PIXEL))
            return
        is_wanted = kind in _TEXT_RESOURCES or (self.owner.shows and kind in _SCREENSHOT_RESOURCES)
        request = request_of(asked) if is_wanted else None
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

    def _on_part(self, number: str, kind: str, visit: Visit | None, is_cached: bool) -> None:
        """The answer to one of its requests; None: it was not sent in time."""
        if self.ended or number not in self.waiting:
            return
        session, since = self.waiting.pop(number)
        now = self.owner.clock.monotonic()
        self.active_at = now
        if not is_cached and visit is not None:
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
        headers = [{"name": name, "value": value} for name, value in fields if name not in _FIELDS_TO_DROP]
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

    # progress of a page ----------------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """Checks time limits; scrolls or reads the page once its network is idle."""
        passed, self.looked_at = now - self.looked_at, now
        for number, (session, since) in list(self.waiting.items()):
            if now - since > PART_TIME_S:
                del self.waiting[number]
                self._refuse(number, session)
        if not self.waiting:
            self.own_s += min(passed, QUIET_S)  # a slow turn of the crawl's loop does not count for the page
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
        """Reads the page in its current state, because of a limit."""
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
        """Uses an isolated world: it sees the page's elements, but not the changes of its scripts to prototypes, which
        old libraries and hostile pages make.
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
            self.stopped = True  # stopping the page's scripts stopped ours too: try again
            self._read_markup()
            return
        if not value["url"].startswith(("http:", "https:")):
            self.fail("the browser showed an error page of its own")
            return
        if value["cut"]:
            self.fail("it grew too large")
            return
        if not value["parsed"]:
            self.bounds.append(PARSING_INCOMPLETE)
        timed = self.delayed_s <= DELAYED_S  # else the timings show our delays, not the page's
        rendering = Rendering(
            html=("\ufeff" + value["html"]).encode("utf-8", "replace"),
            sent=self.job.fetched.body if self.owner.keeps_sent else b"",
            sent_digest=xxh3_128_digest(self.job.fetched.body),
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
        self.end(RenderResult(self.job, rendering, "", self.leads_to))

    def fail(self, why: str) -> None:
        self.end(RenderResult(self.job, None, why, self.leads_to))

    def end(self, rendered: RenderResult | None) -> None:
        """Closes the page. None: it is tried again."""
        if self.ended:
            return
        self.ended = True
        if self.context_id:
            self.browser.dispose(self.context_id)
        self.browser.remove(self)
        if rendered is not None:
            self.owner.rendered.append(rendered)


class _Browser:
    """One browser with its open pages."""

    def __init__(self, chromium: Chromium, now: float) -> None:
        self.chromium = chromium
        self.pages: list[_Page] = []
        self.by_session: dict[str, _Page] = {}
        self.by_target: dict[str, _Page] = {}
        self.begun = 0
        self.closing: dict[str, float] = {}  # contexts being closed, and since when
        self.looked_at = self.now = now

    @property
    def has_room(self) -> bool:
        return len(self.pages) < PAGES_AT_ONCE and self.begun < PAGES_OF_BROWSER

    def dispose(self, context_id: str) -> None:
        self.closing[context_id] = self.now
        forget = {"browserContextId": context_id}
        self.chromium.send("Target.disposeBrowserContext", forget, "", partial(self._on_context_end, context_id))

    def _on_context_end(self, context_id: str, result: Mapping[str, Any]) -> None:
        self.closing.pop(context_id, None)

    def remove(self, page: _Page) -> None:
        self.pages.remove(page)
        self.by_target.pop(page.target_id, None)
        self.by_session = {session: other for session, other in self.by_session.items() if other is not page}

    def exchange(self, now: float) -> None:
        """Passes the browser's events to its pages, and calls `look` of each. Raises BrokenPipeError."""
        self.now = now
        for event in self.chromium.receive():
            page = self.by_session.get(event.get("sessionId", ""))
            if page is not None:
                page.on_event(event["method"], event["params"], event["sessionId"], now)
        for page in list(self.pages):
            page.look(now)
        if any(now - since > 2 * READ_TIME_S for since in self.closing.values()):
            raise BrokenPipeError  # the browser hangs
        if now - self.looked_at >= LOOK_S:
            self.looked_at = now
            self._kill_large_processes()

    def _kill_large_processes(self) -> None:
        """Kills processes over the memory limit: their pages fail, and the browser continues."""
        for size, pid in self.chromium.memory():
            if size > PROCESS_BYTES:
                log.warning("browser process=%d bytes=%d ended", pid, size)
                os.kill(pid, signal.SIGKILL)


@dataclass(slots=True)
class _Part:
    """A pending request, and the callbacks that wait for its answer."""

    callers: list[Callable[[Visit | None, bool], None]] = field(default_factory=list)


class Renderer:
    """Up to `browsers` browsers, started when there are pages. Not thread-safe; no call blocks.

    `begin` queues a page; call `advance` regularly, which returns finished pages; fetch `requests` and pass their
    visits to `answer`.
    """

    def __init__(self, program: str, settings: Settings, clock: Clock, closed: ClosedOrigins) -> None:
        self._closed = closed
        # archives only have answers to GET
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
        self.requests: deque[Request] = deque()  # for the caller to fetch
        self.rendered: list[RenderResult] = []

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs or self.rendered or any(browser.pages for browser in self._browsers))

    @property
    def pending_requests(self) -> Sequence[Request]:
        """The requests that pages wait for."""
        return tuple(self._asked)

    @property
    def fds(self) -> list[int]:
        """Descriptors that become readable when a browser sends a message."""
        return [browser.chromium.fd for browser in self._browsers]

    def refuses(self, request: Request, page: Url) -> bool:
        """Whether a page's request is refused.

        Requests to an origin with a login are refused unless the login names the page's origin: its script could read
        the answer and send it elsewhere. POST is refused unless the user allows it; even then it may only go to the
        page's own origin, and never to an origin with a login.
        """
        asked, own = origin_of(request.url), origin_of(page)
        origins = self._closed.get(asked)
        if request.body:
            return not self._posts or asked != own or origins is not None
        return origins is not None and own not in origins

    def begin(self, job: RenderJob) -> None:
        self._jobs.append(job)

    def advance(self) -> list[RenderResult]:
        """Processes events and starts pages; returns the pages that have ended."""
        now = self.clock.monotonic()
        for running in list(self._browsers):
            try:
                running.exchange(now)
            except (BrokenPipeError, ValueError):  # it ended, hangs, or sent invalid JSON
                self._discard(running)
        while self._jobs and (browser := self._with_room(now)) is not None:
            job = self._jobs.popleft()
            job.attempts += 1
            page = _Page(self, browser, job, now)
            browser.pages.append(page)
            browser.begun += 1
            try:
                page.open()
            except BrokenPipeError:
                self._discard(browser)
        rendered, self.rendered = self.rendered, []
        return rendered

    def _with_room(self, now: float) -> _Browser | None:
        for browser in list(self._browsers):
            if browser.has_room:
                return browser
            if not browser.pages:  # it reached PAGES_OF_BROWSER
                browser.chromium.close()
                self._browsers.remove(browser)
        if len(self._browsers) < self._most:
            self._browsers.append(_Browser(Chromium(self._program), now))
            return self._browsers[-1]
        return None

    def _discard(self, browser: _Browser) -> None:
        """Ends a browser; another one tries each of its pages once more."""
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
                self.rendered.append(RenderResult(page.job, None, "the browser ended"))

    # parts -----------------------------------------------------------------------------------------------------------

    def ask(self, request: Request, then: Callable[[Visit | None, bool], None]) -> None:
        """Calls `then` with the answer: at once with True if it is cached, else with False when it arrives."""
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
        """Passes a visit to the pages that wait for it, and caches it for other pages."""
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
            except BrokenPipeError:  # the next `advance` handles it
                continue

    def close(self) -> None:
        for browser in self._browsers:
            browser.chromium.close()
        self._browsers.clear()
