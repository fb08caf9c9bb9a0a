"""Small collections that are written through the store, from given pages, without fetching.

    stored(folder, {"https://e.org/": page("Home", "/a", "/b"), "https://e.org/a": 404, "https://e.org/b": "/c"}, ["https://e.org/"])

An answer is HTML text, a status (0: a timeout), or the target of a redirect. URLs without an answer stay waiting.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from periplus.document.understand import understand
from periplus.model.frontier import Batch, Candidate, Completion, HostState, Lease, Task
from periplus.model.page import CLICK_KINDS, FOLLOWED_KINDS
from periplus.model.visit import Cause, Failed, Fetched, Headers, Outcome, Reason, Redirected, Visit
from periplus.settings import Settings
from periplus.store.sqlite import schema
from periplus.store.sqlite.frontier import FolderHome, SqliteCrawlStore
from periplus.urls.canonical import canonical, url_id
from periplus.urls.hosts import host_key
from periplus.urls.scope import site_key
from postgres_server import empty_collection

NOW = 1_000_000.0
HTML = Headers((("content-type", "text/html; charset=utf-8"),))
REASONS = {
    404: Reason.NOT_FOUND,
    410: Reason.NOT_FOUND,
    403: Reason.REFUSED,
    500: Reason.SERVER_ERROR,
    0: Reason.UNREACHABLE,
}
Answer = str | int


def page(title: str, *links: str, head: str = "") -> str:
    """HTML with links. The anchor text is the last part of the target."""
    anchors = "".join(f'<a href="{link}">to {link.rpartition("/")[2] or "home"}</a> ' for link in links)
    return f"<!DOCTYPE html><title>{title}</title>{head}<p>{title}</p>{anchors}"


def stored(
    folder: Path,
    answers: Mapping[str, Answer],
    starts: Sequence[str],
    *,
    state: str = "done",
    settings: Settings | None = None,
    now: float = NOW,
) -> Path:
    """Makes a collection in `folder` with one run over these answers.

    state: of the run; `running` leaves it open. now: when it ran.
    """
    settings = settings or Settings()
    urls = [canonical(start) for start in starts]
    if not schema.exists(folder):
        schema.create(folder)
    run_id = FolderHome(folder).begin_run("crawl", urls, settings, now)
    store = SqliteCrawlStore(folder, run_id, settings.budget, settings.storage)
    sites = {site_key(url) for url in urls}
    store.offer([_candidate(url, 0, sites) for url in urls], (), now)
    worker = store.join(os.getpid(), now)
    _walk(store, worker, answers, sites, now)
    store.leave(worker, now)
    store.close()
    if state != "running":
        FolderHome(folder).end_run(run_id, state, "", now + 60)
    return folder


def _walk(store: SqliteCrawlStore, worker: str, answers: Mapping[str, Answer], sites: set[str], now: float) -> None:
    """Commits depth by depth until no URL with an answer is waiting."""
    went_on = True
    while went_on:
        went_on = False
        ready = sorted(host.host_id for host in store.ready(100, 1e9, now))
        for lease in store.lease(worker, ready, now):
            tasks, _ = store.take(lease, 1000, frozenset(), now)
            known = [task for task in tasks if task.request.url in answers]
            done = tuple(_completion(lease, task, answers[task.request.url], sites, now) for task in known)
            store.commit(worker, Batch(done, (HostState(lease, 0.0, 0.5, 1.0, 0, True, "delay", release=True),)), now)
            went_on = went_on or bool(known)


def _completion(lease: Lease, task: Task, answer: Answer, sites: set[str], now: float) -> Completion:
    request, depth = task.request, task.request.depth
    below = None if depth is None else depth + 1
    outcome: Outcome
    if isinstance(answer, int):
        outcome = Fetched(answer, HTML, b"") if answer else Failed(Cause.TIMEOUT)
        return Completion(lease, task, Visit(request, now, 0.1, outcome), REASONS[answer])
    if not answer.startswith("<"):
        target = canonical(answer, request.url)
        visit = Visit(request, now, 0.1, Redirected(301, Headers(), target))
        return Completion(lease, task, visit, Reason.REDIRECT, target, candidates=(_candidate(target, depth, sites),))
    fetched = Fetched(200, HTML, answer.encode())
    document = understand(request.url, fetched, with_xml=True)
    found = [
        _candidate(link.target, below if link.kind in CLICK_KINDS else None, sites)
        if link.kind in FOLLOWED_KINDS
        else Candidate(
            link.target, url_id(link.target), host_key(link.target), site_key(link.target), Reason.RESOURCE, None
        )
        for link in document.links
    ]
    reason = Reason.NOINDEX if document.noindex else Reason.OK
    return Completion(lease, task, Visit(request, now, 0.1, fetched, len(answer)), reason, "", document, tuple(found))


def _candidate(url: str, depth: int | None, sites: set[str]) -> Candidate:
    target = canonical(url)
    reason = Reason.WAITING if site_key(target) in sites else Reason.SCOPE
    return Candidate(target, url_id(target), host_key(target), site_key(target), reason, depth)


def copied(made: Path, folder: Path) -> Path:
    """Copies a collection for a test that changes it, in a hundredth of the time of making it."""
    shutil.copytree(made, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
    return folder


@contextlib.contextmanager
def kept_in(kind: str, made: Path) -> Iterator[Path | str]:
    """A collection in a folder (kind "folder"), or a copy of it moved into a database (kind "database")."""
    if kind == "folder":
        yield made
        return
    with empty_collection() as address:
        from periplus_postgres.moving import move

        move(str(copied(made, made.with_name("moved"))), address)
        yield address
