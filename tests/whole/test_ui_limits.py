"""Limits and exclusions changed in the interface during a crawl apply; nothing is lost or fetched twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_interface import served
from voyage import PATIENCE_S, QUICK, Collection, until

from periplus.model.visit import Reason
from testweb import GraphRecipe, Server, graph_site, serve

HOST = "a.test"
PAGES = 60
LEFT_OUT = r"7\.html$"


@pytest.fixture(scope="module")
def web() -> Iterator[Server]:
    with serve(graph_site(GraphRecipe(seed=5, pages=PAGES, links_per_page=6, shape="random", host=HOST))) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, web: Server) -> Path:
    values = {**QUICK, "resolve": list(web.resolve), "sitemaps": False, "index": False, "delay_s": 0.04}
    (tmp_path / "demo.periplus").mkdir()
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    (tmp_path / "demo.periplus" / "periplus.toml").write_text(f"[settings]\n{lines}\n")
    return tmp_path


class Visitor:
    """Submits forms without a browser."""

    def __init__(self, address: str) -> None:
        self._place = address.removeprefix("http://")

    def _asked(
        self, where: str, fields: dict[str, str] | None = None, accept: str = "text/html", *, fails: bool = False
    ) -> str:
        headers = {"accept": accept, "content-type": "application/x-www-form-urlencoded"}
        with contextlib.closing(http.client.HTTPConnection(self._place, timeout=PATIENCE_S)) as line:
            line.request("POST" if fields else "GET", where, urlencode(fields or {}), headers)
            answer = line.getresponse()
            said = answer.read().decode()
        assert answer.status == (303 if fields else 200) or (fails and answer.status in (400, 503)), said
        return said

    def press(self, page: str, where: str, **fields: str) -> None:
        self._asked(where, self._sealed(page, fields))

    def refused(self, page: str, where: str, **fields: str) -> str:
        """The refusal of a form; empty if it was accepted."""
        said = self._asked(where, self._sealed(page, fields), "application/json", fails=True)
        return str(json.loads(said)["detail"]) if said else ""

    def _sealed(self, page: str, fields: dict[str, str]) -> dict[str, str]:
        csrf_token = re.search(r'name="csrf_token" value="([^"]+)"', self._asked(page))
        assert csrf_token
        return {"csrf_token": csrf_token[1], **fields}

    def site(self) -> str:
        """The site with most pages."""
        return str(json.loads(self._asked("/c/demo/t/sites?columns=name", accept="application/json"))["rows"][0][0])

    def state(self) -> tuple[str, str, int]:
        """(state of the run, state of the job, pages fetched)."""
        said = json.loads(self._asked("/c/demo/live", accept="application/json"))
        fetched = {word: count for word, count, _ in said["figures"]}.get("fetched", 0)
        return (said["moment"] or {"state": ""})["state"], (said["job"] or {"state": ""})["state"], fetched

    def begins(self, url: str, **fields: str) -> None:
        self.press("/", "/new", url=url, name="demo", preset="map", **fields)

    def goes_on(self, **fields: str) -> None:
        self.press("/c/demo/live", "/c/demo/resume", **fields)

    def sees(self, pages: int) -> None:
        until(lambda: self.state()[2] >= pages, "too few pages come")

    def sees_the_end(self) -> None:
        until(
            lambda: self.state()[0] in ("done", "stopped") and self.state()[1] == "done",
            f"it does not end: {self.state()}",
        )


def asked_for(folder: Path, run: int = 0) -> list[str]:
    """Requested pages of all runs or of one."""
    find = (
        "SELECT u.text FROM visit v JOIN url u ON u.id = v.url_id WHERE v.purpose = 'page'"
        " AND v.outcome <> 'skipped' AND ? IN (0, v.run_id)"
    )
    return [url for (url,) in Collection(folder / "demo.periplus").ask(find, run)]


def test_limits_and_exclusions_changed_during_a_crawl_apply_and_lose_nothing(folder: Path, web: Server) -> None:
    with served(folder) as address:
        visitor = Visitor(address)
        visitor.begins(web.url(HOST), max_pages="12")
        visitor.sees_the_end()
        assert visitor.state() == ("stopped", "done", 12)
        visitor.goes_on(max_pages="-")
        visitor.sees(20)
        visitor.goes_on(exclude=LEFT_OUT)  # while it runs
        until(
            lambda: len(Collection(folder / "demo.periplus").ask("SELECT id FROM run")) == 3, "it does not begin again"
        )
        visitor.sees_the_end()
        urls = Collection(folder / "demo.periplus").urls
        left = {url for url, row in urls.items() if row.reason is not Reason.OK}
        assert asked_for(folder, 3)
        assert not [url for url in asked_for(folder, 3) if re.search(LEFT_OUT, url)], (
            "what waited already is left out too"
        )
        assert left
        assert {(urls[url].reason, urls[url].rule) for url in left} == {(Reason.SCOPE, f"excluded by {LEFT_OUT}")}
        visitor.goes_on(exclude="-")
        visitor.sees_the_end()
    kept = Collection(folder / "demo.periplus")
    assert kept.sane() == []
    assert len(kept.titles) == PAGES
    assert set(Counter(asked_for(folder)).values()) == {1}


def test_during_a_crawl_nothing_is_deleted_and_stop_and_continue_both_work(folder: Path, web: Server) -> None:
    with served(folder) as address:
        visitor = Visitor(address)
        visitor.begins(web.url(HOST))
        visitor.sees(3)
        for fields in ({"what": "everything", "typed": "demo.periplus"}, {"site": visitor.site()}):
            assert "crawl" in visitor.refused("/c/demo/live", "/c/demo/delete", **fields), (
                "nothing is deleted under a crawl"
            )
        visitor.press("/c/demo/live", "/c/demo/stop", now="1")
        visitor.goes_on()
        until(lambda: len(Collection(folder / "demo.periplus").titles) == PAGES, "it does not go on")
    assert set(Counter(asked_for(folder)).values()) == {1}
