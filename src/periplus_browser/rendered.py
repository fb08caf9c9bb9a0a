"""Decides which pages of a crawl are rendered, and reads rendered pages."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from periplus.acquire.discovery import Discovery
from periplus.acquire.politeness import HeldHost
from periplus.document.headers import media_type as declared_type
from periplus.document.headers import media_type_of
from periplus.model.frontier import Candidate, Completion, Task
from periplus.model.page import HTML_TYPES, Charset, Document
from periplus.model.ports import Clock
from periplus.model.visit import Cut, Fetched, Purpose, Request, Visit
from periplus.model.web import HostKey, Url
from periplus.settings import Settings
from periplus.urls.hosts import host_key
from periplus.urls.url_patterns import ROOT, url_patterns
from periplus.values import frozen
from periplus_browser.chromium import browser_program
from periplus_browser.rendering import PARSING_INCOMPLETE, ClosedOrigins, Renderer, RenderJob, RenderResult

MOST_PATTERNS = 10_000  # URL patterns remembered as in need of a browser


@frozen
class PendingPage:
    """A page that a browser renders. links: candidates from the page as sent, if it was read before."""

    host: HeldHost
    task: Task
    visit: Visit
    links: tuple[Candidate, ...] = ()


class PageRendering:
    """Renders the pages of a worker.

    With `auto`, a page that is empty until a script fills it is rendered, and from then on every page of its host with
    the same URL pattern: the same program makes them, and some may have more HTML but still need the script.
    """

    def __init__(self, settings: Settings, clock: Clock, closed: ClosedOrigins) -> None:
        """Raises UsageError without a browser."""
        self._renderer = Renderer(browser_program(settings.rendering.browser), settings, clock, closed)
        self._always = settings.rendering.render == "always"
        self._patterns: OrderedDict[tuple[HostKey, str], None] = OrderedDict()

    @property
    def is_busy(self) -> bool:
        return self._renderer.is_busy

    @property
    def fds(self) -> Sequence[int]:
        return self._renderer.fds

    def wants(self, visit: Visit) -> bool:
        """Whether a page must be rendered before it is read."""
        return is_renderable(visit) and (self._always or _pattern(visit.request.url) in self._patterns)

    def needs(self, read: Completion) -> bool:
        """Whether a page that was read as sent must be rendered after all."""
        if self._always or read.document is None or not read.document.needs_script or not is_renderable(read.visit):
            return False
        self._patterns[_pattern(read.visit.request.url)] = None
        if len(self._patterns) > MOST_PATTERNS:
            self._patterns.popitem(last=False)
        return True

    def begin(self, host: HeldHost, task: Task, visit: Visit, links: tuple[Candidate, ...] = ()) -> None:
        """links: candidates from the page as sent; they are added to those of the rendered page."""
        assert isinstance(visit.outcome, Fetched)
        self._renderer.begin(RenderJob(visit.request.url, visit.outcome, PendingPage(host, task, visit, links)))

    def advance(self) -> Iterator[tuple[HeldHost, Task, Callable[[Discovery], Completion]]]:
        """The pages that ended since the last call, each with the function that reads it."""
        for rendered in self._renderer.advance():
            page: PendingPage = rendered.job.context
            yield page.host, page.task, partial(completion_of_page, page, rendered)

    def requests(self) -> Iterator[Request]:
        """New requests of pages; pass their visits to `answer`."""
        while self._renderer.requests:
            yield self._renderer.requests.popleft()

    @property
    def pending_requests(self) -> Sequence[Request]:
        """The unanswered requests."""
        return self._renderer.pending_requests

    def answer(self, visit: Visit) -> None:
        self._renderer.answer(visit)

    def close(self) -> None:
        self._renderer.close()


def is_renderable(visit: Visit) -> bool:
    """Whether the answer is a complete HTML page and not an error page."""
    match visit.outcome:
        case Fetched(status=status, headers=headers, body=body, cut=Cut.NONE) if body and 200 <= status < 300:
            if visit.request.purpose is not Purpose.PAGE:
                return False
            return media_type_of(declared_type(headers)[0], body, visit.request.url.partition("?")[0]) in HTML_TYPES
        case _:
            return False


def _pattern(url: Url) -> tuple[HostKey, str]:
    """The narrowest pattern of a URL."""
    return host_key(url), next(iter(url_patterns(url)), ROOT)


def completion_of_page(page: PendingPage, rendered: RenderResult, discovery: Discovery) -> Completion:
    """Reads the rendered page; if rendering failed, the page as sent, with the reason among its bounds."""
    task, visit, rendering = page.task, page.visit, rendered.rendering
    lease = page.host.lease
    if rendering is None:
        read = discovery.of(lease, task, visit)
        bounds: tuple[str, ...] = (f"not rendered: {rendered.why}",)
    else:
        assert isinstance(visit.outcome, Fetched)
        shown = replace(visit, outcome=replace(visit.outcome, body=rendering.html, sent=b""))
        read = replace(discovery.of(lease, task, shown), rendering=rendering)
        bounds = tuple(f"rendered up to a limit: {bound}" for bound in rendering.bounds)
        if PARSING_INCOMPLETE in rendering.bounds:
            sent = discovery.of(lease, task, visit)
            if _has_more(sent.document, read.document):
                read = replace(sent, candidates=(*sent.candidates, *read.candidates))
                bounds = (f"not rendered: {'; '.join(rendering.bounds)}",)
                rendering = None
    if rendered.leads_to:
        read = replace(read, candidates=(*read.candidates, *discovery.of_script(rendered.leads_to, task.request)))
    document = read.document and replace(read.document, bounds=(*read.document.bounds, *bounds))
    if document is not None and rendering is not None:
        document = replace(document, charset=Charset("utf-8", "browser"))
    return replace(read, document=document, candidates=(*page.links, *read.candidates))


def _has_more(sent: Document | None, rendered: Document | None) -> bool:
    """Whether a page as sent has more text than as rendered, or links that are missing there."""
    if sent is None or rendered is None:
        return sent is not None
    return len(sent.text) > len(rendered.text) or not set(sent.links.targets) <= set(rendered.links.targets)
