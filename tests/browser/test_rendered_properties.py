"""A rendering that ended before its page was parsed has at least the content of the response."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from periplus.acquire.discovery import Discovery
from periplus.model.frontier import Task
from periplus.model.page import Rendering
from periplus.model.visit import Fetched, Headers, Request, Visit
from periplus.settings import Scope, Settings
from periplus.urls.canonical import canonical
from periplus.urls.scope import site_scope
from periplus_browser.rendered import PendingPage, completion_of_page
from periplus_browser.rendering import PARSING_INCOMPLETE, RenderJob, RenderResult

HOME = canonical("http://a.test/")
PIECES = st.sampled_from(
    [*(f"<a href=/{n}>to {n}</a>" for n in range(5)), "<p>words", "<div>", "</p>", "<script>1</script>"]
)


@given(
    st.lists(PIECES, max_size=8),
    st.integers(0, 8),
    st.lists(PIECES, max_size=3),
    st.sampled_from(["20 dialogs", "time"]),
)
def test_a_truncated_rendering_has_the_links_and_text_of_the_response(pieces, parsed, made, bound):
    headers = Headers((("content-type", "text/html"),))
    sent, shown = ("".join(some).encode() for some in (pieces, [*pieces[:parsed], *made]))
    request = Request(HOME)
    visit = Visit(request, 1.0, 0.1, Fetched(200, headers, sent))
    task = Task(1, 0, 1, 1, request)
    page = PendingPage(SimpleNamespace(lease=None), task, visit)
    rendering = Rendering(shown, sent, b"", len(sent), 1.0, bounds=(bound, PARSING_INCOMPLETE))
    job = RenderJob(HOME, visit.outcome, page)
    discovery = Discovery(site_scope([HOME], Scope()), Settings())
    kept = completion_of_page(page, RenderResult(job, rendering), discovery)
    plain = Discovery(site_scope([HOME], Scope()), Settings()).of(None, task, visit)
    assert set(plain.document.links.targets) <= set(kept.document.links.targets)
    assert len(plain.document.text) <= len(kept.document.text)
    assert any(bound in one for one in kept.document.bounds)
