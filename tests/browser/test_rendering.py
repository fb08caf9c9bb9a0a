"""Pages made by scripts, rendered in a Chromium that reaches only what the crawl fetches."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from postgres_voyage import crawled_into
from voyage import QUICK, crawled, until

import browser
from interface import client
from periplus.api.collection import Collection as Reader
from periplus.api.crawling import CrawlOrder, crawl, refresh, refresh_order
from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.page import ALL_PARTS
from periplus.model.ports import RunRecord
from periplus.model.visit import Reason
from periplus.settings import Settings, settings_from
from periplus.urls.canonical import canonical
from periplus_browser.chromium import _environment, browser_program
from periplus_postgres.joining import settings_of_run
from periplus_postgres.moving import move
from testweb import Page, Site, Web, serve
from testweb.wire import Answer

needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not browser.PROGRAM, reason="no Chromium here: make test-browser"),
]
SHELL = b"<!DOCTYPE html><html lang=en><title>App</title><div id=root></div><script src=/app.js></script>"
# a router by history, a list from an interface, a component with a shadow root
APP = b"""
const names = {"/app": "Home", "/app/one": "One", "/app/two": "Two"};
customElements.define("x-note", class extends HTMLElement {
    connectedCallback() { this.attachShadow({mode: "open"}).innerHTML = "<p>In the shadow: <slot></slot></p>"; }
});
fetch("/api/items.json").then(answer => answer.json()).then(items => {
    const name = names[location.pathname];
    document.title = name;
    document.getElementById("root").innerHTML = "<h1>" + name + " of the app</h1><x-note>a slotted word</x-note><ul>"
        + items.map(item => `<li><a href="${item.href}">${item.name}</a></li>`).join("") + "</ul>";
});
"""
ITEMS = json.dumps([{"href": "/app/one", "name": "One"}, {"href": "two", "name": "Two"}]).encode()
SCRIPT, DATA = "text/javascript", "application/json"


def app() -> Site:
    site = Site("a.test")
    site.add(Page("/", "Home"))
    for path in ("/app", "/app/one"):
        site.answer(path, Answer(200, SHELL), linked_from="/" if path == "/app" else None)
    site.answer("/two", Answer(200, SHELL.replace(b"/app.js", b"/other.js")), linked_from=None)
    site.answer("/app.js", Answer(200, APP, media_type=SCRIPT), linked_from=None)
    site.answer("/api/items.json", Answer(200, ITEMS, media_type=DATA), linked_from=None)
    return site


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """(the collection of the app, crawled with `auto`; the log of its server)."""
    folder = tmp_path_factory.mktemp("rendered") / "c.periplus"
    with serve(app()) as server:
        collection, end = crawled(folder, server, "a.test", render="auto", screenshots=True)
        assert end.state == "done"
        yield collection, server


class TestAnApp:
    pytestmark = needs_browser

    def test_has_the_text_and_the_links_that_its_scripts_make(self, rendered):
        collection, server = rendered
        url = server.url("a.test", "/app")
        assert collection.titles[url] == "Home"
        followed = {(source, target) for source, target, kind, *_ in collection.links if kind == "a"}
        assert {(url, server.url("a.test", "/app/one")), (url, server.url("a.test", "/two"))} <= followed
        assert collection.urls[server.url("a.test", "/app/one")].reason is Reason.OK
        with Reader(collection.folder) as reader:
            assert "In the shadow: a slotted word" in " ".join(reader.page(url).text(ALL_PARTS).split())

    def test_is_kept_as_sent_and_as_rendered(self, rendered):
        collection, server = rendered
        with Reader(collection.folder) as reader:
            page = reader.page(server.url("a.test", "/app"))
            assert page.source() == SHELL
            assert b"<h1>Home of the app</h1>" in page.parsed_body()
            assert page.row.rendered
            assert page.row.body_digest != page.row.text_digest
            assert page.screenshot()[8:12] == b"WEBP"
            assert not reader.page(server.url("a.test", "/")).row.rendered
            with pytest.raises(UsageError, match="no screenshot"):
                reader.page(server.url("a.test", "/")).screenshot()

    def test_is_reported_in_summaries_tables_and_the_browser(self, rendered):
        collection, server = rendered
        url = server.url("a.test", "/app")
        shown = CliRunner().invoke(main, ["page", url, "-c", str(collection.folder)], catch_exceptions=False).output
        assert "rendered:     in a browser" in shown
        assert "kept:         bytes, text, screenshot" in shown
        (row,) = collection.ask("SELECT requests, refused, part_bytes, sent_size FROM renderings WHERE url = ?", url)
        assert row == (2, 0, json.dumps({"data": len(ITEMS), "script": len(APP)}), len(SHELL))
        assert collection.ask("SELECT count(*) FROM pages WHERE rendered") == [(3,)]
        ui = client(collection.folder.parent)
        address = f"/c/c/page?url={quote(url, safe='')}"
        assert "As sent" in ui.get(address).text
        assert "id=root" in ui.get(f"{address}&view=sent").text
        assert "Home of the app" in ui.get(f"{address}&view=source").text
        assert ui.get(f"{address}&view=screenshot&raw=1").content[8:12] == b"WEBP"
        home = f"/c/c/page?url={quote(server.url('a.test', '/'), safe='')}"
        assert "As sent" not in ui.get(home).text

    def test_has_measurements_of_the_browser_as_columns_of_pages(self, rendered):
        collection, server = rendered
        rows = dict(collection.ask("SELECT url, paint_s FROM pages"))
        assert rows[server.url("a.test", "/")] is None
        # from the second page on all parts of the app are cached
        timed = collection.ask("SELECT url, paint_s, shift FROM pages WHERE paint_s IS NOT NULL")
        assert timed
        assert all(0.0 < paint_s < 60.0 and shift >= 0.0 for _, paint_s, shift in timed)
        words = ["page", timed[0][0], "-c", str(collection.folder)]
        shown = CliRunner().invoke(main, words, catch_exceptions=False).output
        assert "largest contentful paint after" in shown
        address = f"/c/c/page?url={quote(timed[0][0], safe='')}"
        assert "largest contentful paint after" in client(collection.folder.parent).get(address).text

    def test_has_its_screenshots_in_the_report(self, rendered, tmp_path):
        collection, server = rendered
        with Reader(collection.folder) as reader:
            report = reader.report(tmp_path / "report.html").read_text("utf-8")
        pictures = report.partition('id="screenshots"')[2].partition("</section>")[0]
        assert pictures.count('<img src="data:image/webp;base64,UklGR') == 3
        assert f'href="{server.url("a.test", "/app")}"' in pictures
        assert "; img-src data:" in report.partition("</head>")[0]

    def test_pages_with_late_paint_or_shifts_are_issues(self, tmp_path):
        site = Site("a.test")
        site.add(Page("/", "Home"))
        late = b"""<!DOCTYPE html><html lang=en><title>Late</title><body><script>addEventListener("load", () => {
            const end = performance.now() + 2700; while (performance.now() < end);
            document.body.innerHTML = "<h1>At last there is something to be seen here</h1>"; });</script>"""
        moving = b"""<!DOCTYPE html><html lang=en><title>Moving</title><body style="margin: 0"><div id=above></div>
            <div style="height: 600px; background: teal">the text that is read</div><script>
            addEventListener("load", () => setTimeout(() => above.style.height = "500px", 200));</script>"""
        site.answer("/late", Answer(200, late))
        site.answer("/moving", Answer(200, moving))
        with serve(site) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test", render="always")
            issues = {(issue.code, issue.url): issue.detail for issue in issues_of(collection.folder, Settings())}
            assert " s in a browser, more than 2.5: " in issues["slow-paint", server.url("a.test", "/late")]
            assert "more than 0.1: poor" in issues["layout-shift", server.url("a.test", "/moving")]
            pages = {url for code, url in issues if code == "layout-shift"}
            assert pages == {server.url("a.test", "/moving")}

    def test_parts_are_requested_once_and_count_as_visits(self, rendered):
        collection, server = rendered
        for path in ("/app.js", "/api/items.json"):
            assert server.log.count(path) == 1
            assert [row[1] for row in collection.visits(server.url("a.test", path))] == ["part"]

    def test_a_page_whose_script_is_missing_needs_one_still(self, rendered):
        collection, server = rendered
        row = collection.urls[server.url("a.test", "/two")]
        assert row.reason is Reason.NEEDS_SCRIPT

    def test_a_refresh_renders_again_although_the_shell_is_unchanged(self, tmp_path):
        with serve(app()) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test/app", render="auto")
            before = server.log.count("/api/items.json")
            end = refresh(refresh_order(collection.folder, {}), lambda progress: False)
            assert end.end.state == "done"
            assert server.log.count("/api/items.json") == before + 1
            assert collection.titles[server.url("a.test", "/app")] == "Home"
            assert collection.sane() == []


class TestTheWire:
    pytestmark = needs_browser

    def test_robots_txt_applies_to_requests_of_pages(self, tmp_path):
        site = app()
        site.answer("/robots.txt", Answer(200, b"User-agent: *\nDisallow: /api/\n", media_type="text/plain"))
        with serve(site) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test/app", render="always")
            assert server.log.count("/api/items.json") == 0
            assert server.log.count("/app.js") == 1
            (visit,) = collection.visits(server.url("a.test", "/api/items.json"))
            assert visit[2] == "skipped"

    def test_parts_of_another_host_use_its_own_queue(self, tmp_path):
        site, other = Site("a.test"), Site("cdn.test")
        shell = SHELL.replace(b"/app.js", b"http://cdn.test:@PORT@/lib.js")
        site.answer("/", Answer(200, shell), linked_from=None)
        script = b"document.getElementById('root').innerHTML = '<h1>From afar</h1><p>and more words to read</p>'"
        other.answer("/lib.js", Answer(200, script, media_type=SCRIPT), linked_from=None)
        with serve(Web([site, other])) as server:
            collection, end = crawled(tmp_path / "c", server, "a.test", render="auto")
            assert end.state == "done"
            assert server.log.count("/robots.txt") == 2
            with Reader(collection.folder) as reader:
                assert "From afar" in reader.page(server.url("a.test", "/")).text(ALL_PARTS)
            assert collection.sane() == []

    @pytest.mark.parametrize("kind", ["folder", "database"])
    def test_data_of_another_host_is_requested_as_by_the_script(self, tmp_path, request, kind):
        """With its header fields, which the queue does not store."""
        site, other = Site("a.test"), Site("api.test")
        site.add(Page("/", "Home"))
        fetching = b"""<!DOCTYPE html><html lang=en><title>App</title><div id=root></div><script type=module>
            const answer = await fetch("http://api.test:@PORT@/v1/items", {headers: {Accept: "application/json"}});
            root.innerHTML = "<h1>" + (await answer.json()).name + "</h1><a href=/made>made</a>";</script>"""
        site.answer("/app", Answer(200, fetching))
        allows = (("Access-Control-Allow-Origin", "*"),)
        other.answer(
            "/v1/items",
            Answer(200, b'{"name": "From the interface"}', headers=allows, media_type=DATA),
            linked_from=None,
        )
        with serve(Web([site, other])) as server:
            if kind == "folder":
                collection, end = crawled(tmp_path / "c", server, "a.test", render="always")
            else:
                at = request.getfixturevalue("address").text
                collection, end = crawled_into(at, server, "a.test", render="always")
            assert end.state == "done"
            made = server.url("a.test", "/app"), server.url("a.test", "/made")
            assert made in {(source, target) for source, target, *_ in collection.links}
            assert server.log.count("/v1/items") == 1
            rows = "SELECT requests, refused, took_s FROM rendering ORDER BY requests DESC LIMIT 1"
            ((requests, refused, took_s),) = collection.ask(rows)
            assert (requests, refused) == (1, 0)
            assert took_s < 20.0
            assert collection.sane() == []

    @pytest.mark.parametrize("allowed", [False, True])
    def test_json_by_post_goes_only_to_the_own_origin_if_allowed(self, tmp_path, allowed):
        with posting() as (own, asked), posting() as (other, asked_elsewhere):
            page = """<!DOCTYPE html><html lang=en><title>Graph</title><div id=root></div><script>
                const send = (url, type, body) => fetch(url, {method: "POST", headers: {"Content-Type": type}, body})
                    .then(a => a.json()).then(data => root.append(data.text + ". "), () => root.append("refused. "));
                const query = JSON.stringify({query: "{ items { name } }"});
                send("/graphql", "application/json", query); send("/graphql", "application/json", query);
                send("/order", "application/x-www-form-urlencoded", "buy=1"); send("/note", "text/plain", "x");
                send("/large", "application/json", JSON.stringify("x".repeat(70000)));
                send("OTHER/graphql", "application/json", query);
                navigator.sendBeacon("/beacon", "x"); fetch("/item", {method: "DELETE"}).catch(() => 0);
                fetch("/put", {method: "PUT", body: "x"}).catch(() => 0);</script>""".replace("OTHER", other)
            asked.append(page)
            settings = settings_from({**QUICK, "render": "always", "script_posts": allowed, "sitemaps": False})
            order = CrawlOrder(tmp_path / "c", (canonical(own + "/"),), settings)
            assert crawl(order, lambda progress: False).state == "done"
            with Reader(tmp_path / "c") as reader:
                text = reader.page(own + "/").text(ALL_PARTS)
        query = ("POST", "/graphql", "application/json", '{"query":"{ items { name } }"}')
        assert [one for one in asked[1:] if one[0] != "GET"] == ([query] if allowed else [])
        assert asked_elsewhere == []
        assert text.count("from the interface") == (2 if allowed else 0)

    def test_the_host_s_delay_holds_for_parts(self, tmp_path):
        with serve(app()) as server:
            crawled(tmp_path / "c", server, "a.test/app", render="auto", delay_s=0.5)
            assert min(server.log.gaps("a.test")) >= 0.45
            assert server.log.max_at_once("a.test") == 1

    def test_the_browser_sends_nothing_itself(self, tmp_path):
        """A server outside of the crawl gets no request, whatever a page tries."""
        with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", 0))
            port, udp = listener.getsockname()[1], datagrams.getsockname()[1]
            heard: list[bytes] = []

            def listen() -> None:
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    with connection:
                        heard.append(connection.recv(1000))
                        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

            threading.Thread(target=listen, daemon=True).start()
            site = Site("a.test")
            site.answer("/", Answer(200, _escapes(port, udp)), linked_from=None)
            site.answer("/sw.js", Answer(200, b"fetch('/from-worker')", media_type=SCRIPT), linked_from=None)
            with serve(site) as server:
                collection, end = crawled(tmp_path / "c", server, "a.test", render="always")
                assert end.state == "done"
                asked = {url for url, purpose, outcome, *_ in collection.visits() if outcome != "skipped"}
                requested = {server.url("a.test", target) for target in server.log.targets("a.test")}
                assert requested <= asked
                with Reader(collection.folder) as reader:  # the page ended: all attempts were made
                    assert "everything was tried" in reader.page(server.url("a.test", "/")).text(ALL_PARTS)
            # plain requests of the page to that host are sent by the crawl, which obeys robots.txt
            assert [request for request in heard if b"User-Agent: periplus/" not in request] == []
            datagrams.setblocking(False)
            with pytest.raises(BlockingIOError):
                datagrams.recv(1000)


@contextlib.contextmanager
def posting():
    """(origin, list): answers GET / with the first text of the list, and appends other requests to it."""
    asked: list = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            is_page = self.path == "/"
            if not is_page:
                asked.append((self.command, self.path, self.headers.get("Content-Type", ""), body))
            content = (asked[0] if is_page else '{"text": "from the interface"}').encode()
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html" if is_page else "application/json")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler.do_GET)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _escapes(port: int, udp: int) -> bytes:
    return f"""<!DOCTYPE html><html lang=en><title>Escapes</title>
<link rel=dns-prefetch href="http://127.0.0.1:{port}"><link rel=preconnect href="http://127.0.0.1:{port}">
<link rel=prefetch href="http://127.0.0.1:{port}/prefetch"><img src="http://127.0.0.1:{port}/image">
<iframe src="http://127.0.0.1:{port}/frame"></iframe><video src="http://127.0.0.1:{port}/film"></video>
<a id=a ping="http://127.0.0.1:{port}/ping" href="#x">x</a><object data="http://127.0.0.1:{port}/object"></object>
<script type=speculationrules>{{"prerender": [{{"urls": ["http://127.0.0.1:{port}/prerender"]}}]}}</script>
<div id=root></div><script>
const attempts = [
    () => new WebSocket("ws://127.0.0.1:{port}/socket"),
    () => new EventSource("http://127.0.0.1:{port}/events"),
    () => navigator.sendBeacon("http://127.0.0.1:{port}/beacon", "x"),
    () => fetch("http://127.0.0.1:{port}/post", {{method: "POST", body: "x"}}),
    () => window.open("http://127.0.0.1:{port}/popup"),
    () => navigator.serviceWorker.register("/sw.js"),
    () => new SharedWorker("/sw.js"),
    () => document.getElementById("a").click(),
    () => {{
        const frame = document.createElement("iframe");
        document.body.append(frame);
        const peer = new frame.contentWindow.RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{udp}"}}]}});
        peer.createDataChannel("x");
        peer.createOffer().then(offer => peer.setLocalDescription(offer));
    }},
    () => new WebTransport("https://127.0.0.1:{port}/transport"),
    () => new Worker(URL.createObjectURL(new Blob(["new WebSocket('ws://127.0.0.1:{port}/from-worker')"]))),
    () => {{ const form = document.createElement("form"); form.method = "post"; form.target = "_blank";
        form.action = "http://127.0.0.1:{port}/form"; document.body.append(form); form.submit(); }},
    () => {{ const link = document.createElement("a"); link.download = "x";
        link.href = "http://127.0.0.1:{port}/download"; document.body.append(link); link.click(); }},
];
for (const attempt of attempts) try {{ attempt(); }} catch (error) {{ /* the next */ }}
setTimeout(() => document.getElementById("root").innerHTML = "<p>everything was tried</p>", 300);
</script>""".encode()


HOSTILE = {
    "endless loop": "for (;;) {}",
    "endless loop later": "addEventListener('load', () => setTimeout(() => { for (;;) {} }, 50))",
    "endless requests": "let n = 0; const more = () => fetch('/nothing?' + n++).finally(more); more()",
    "endless alerts": "for (;;) alert('here')",
    "endless growth": "const grow = () => { for (let i = 0; i < 2000; i++) document.body.append('x'.repeat(1000), "
    "document.createElement('p')); setTimeout(grow, 0); }; addEventListener('load', grow)",
    "reloads for ever": "location.reload()",
    "hides itself": "Object.defineProperty(Element.prototype, 'outerHTML', {get: () => '<p>nothing</p>'});"
    "Document.prototype.querySelectorAll = () => { for (;;); }; document.body.append('in truth')",
    "nests without end": "let e = document.body; for (let i = 0; i < 300000; i++) { const n = "
    "document.createElement('div'); e.append(n); e = n; }",
    "workers without end": "for (let i = 0; i < 200; i++) new Worker(URL.createObjectURL(new Blob(['for (;;) {}'])))",
    "moves for ever": "location.href = '/?' + Math.random()",
    "dialogs while it is parsed": "setTimeout(() => { for (let i = 0; i < 50; i++) alert(i); }, 50);"
    "setTimeout(() => { for (let i = 0; i < 50; i++) confirm(i); }, 80); const until = Date.now() + 500;"
    "while (Date.now() < until);",
    "grows beyond the limit of its size": "const p = document.createElement('p'); p.textContent = 'x'.repeat(2e6);"
    "document.body.prepend(p)",
}


# each of these burns ten seconds of CPU, and another one ends by the same limit
LIKE_OTHERS = ("endless loop later", "endless growth", "moves for ever")


class TestHostilePages:
    pytestmark = needs_browser

    @pytest.mark.parametrize(
        "name", [pytest.param(name, marks=pytest.mark.real) if name in LIKE_OTHERS else name for name in HOSTILE]
    )
    def test_affect_only_themselves(self, tmp_path, monkeypatch, name):
        from periplus_browser import rendering

        for bound, value in (("OWN_TIME_S", 8.0), ("READ_TIME_S", 4.0), ("MOST_REQUESTS", 20)):
            monkeypatch.setattr(rendering, bound, value)
        site = Site("a.test")
        site.add(Page("/", "Home"))
        head, rest = (
            "<!DOCTYPE html><html lang=en><title>Bad</title><p>as sent</p>",
            '<p>to the end</p><a href="/x">x</a>',
        )
        bad = f'{head}<a href="/good">good</a><script>{HOSTILE[name]}</script>{rest * 500}<a href="/last">last</a>'
        site.answer("/bad", Answer(200, bad.encode()))
        site.answer("/good", Answer(200, SHELL.replace(b"/app.js", b"/good.js")))
        script = b"document.getElementById('root').innerHTML = '<h1>Good</h1><p>and more words to read</p>'"
        site.answer("/good.js", Answer(200, script, media_type=SCRIPT), linked_from=None)
        with serve(site) as server:
            values = {"render": "always", "delay_s": 0.0, "mine": ("a.test",), "inflated_bytes": 1_000_000}
            collection, end = crawled(tmp_path / "c", server, "a.test", **values)
            assert end.state == "done", end
            with Reader(collection.folder) as reader:
                assert "Good" in reader.page(server.url("a.test", "/good")).text(ALL_PARTS)
                text = reader.page(server.url("a.test", "/bad")).text(ALL_PARTS)
                assert "as sent" in text
                assert "to the end" in text
                assert name != "hides itself" or "in truth" in text
            linked = {target for source, target, *_ in collection.links if source == server.url("a.test", "/bad")}
            assert {server.url("a.test", path) for path in ("/good", "/x", "/last")} <= linked, "it has what was sent"
            assert collection.sane() == []

    def test_the_profile_of_a_killed_crawl_is_removed_by_the_next_browser(self, tmp_path, monkeypatch):
        from periplus_browser import chromium as ours

        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(ours, "PROFILE_AGE_S", 0.0)
        script = (
            "import os, signal, sys; from periplus_browser.chromium import Chromium, browser_program;"
            "browser = Chromium(browser_program()); os.kill(os.getpid(), signal.SIGKILL)"
        )
        killed = subprocess.run(
            [sys.executable, "-c", script], env=os.environ | {"TMPDIR": str(tmp_path)}, check=False, timeout=600
        )
        assert killed.returncode == -signal.SIGKILL
        assert len(list(tmp_path.glob("periplus-browser-*"))) == 1
        with (
            contextlib.closing(ours.Chromium(ours.browser_program())) as one,
            contextlib.closing(ours.Chromium(ours.browser_program())) as other,
        ):
            in_use = {Path(browser._folder.name) for browser in (one, other)}
            assert in_use <= set(tmp_path.glob("periplus-browser-*"))

        def next_one_clears() -> bool:
            """A browser without its crawl ends on its own, and may write until then."""
            ours.Chromium(ours.browser_program()).close()
            return list(tmp_path.glob("periplus-browser-*")) == []

        until(next_one_clears, "no profile is left")

    def test_sees_neither_storage_of_another_page_nor_the_environment(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PERIPLUS_SECRET", "not-for-pages")
        site = Site("a.test")
        site.add(Page("/", "Home"))
        page = """<!DOCTYPE html><html lang=en><title>Store</title><p>as sent</p><script>
            const before = localStorage.length + document.cookie.length;
            localStorage.setItem("key", location.pathname); document.cookie = "key=" + location.pathname;
            const databases = indexedDB.databases ? indexedDB.databases() : [];
            indexedDB.open("of" + location.pathname);
            Promise.resolve(databases).then(all => document.body.append(`before: ${before} and ${all.length}`));
            </script>"""
        for number in range(3):
            site.answer(f"/{number}", Answer(200, page.encode()))
        with serve(site) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test", render="always")
            with Reader(collection.folder) as reader:
                for number in range(3):
                    assert "before: 0 and 0" in reader.page(server.url("a.test", f"/{number}")).text(ALL_PARTS)
        assert "not-for-pages" not in str(_environment("folder"))

    def test_a_browser_that_dies_costs_one_more_attempt(self, tmp_path, monkeypatch):
        from periplus_browser.chromium import Chromium

        started: list[Chromium] = []
        begin = Chromium.__init__

        def begun(self, program):
            begin(self, program)
            started.append(self)
            if len(started) == 1:
                threading.Timer(1.0, os.killpg, (self.process.pid, signal.SIGKILL)).start()  # with a shell before it

        monkeypatch.setattr(Chromium, "__init__", begun)
        with serve(app()) as server:
            collection, end = crawled(tmp_path / "c", server, "a.test/app", render="auto", delay_s=1.0)
            assert end.state == "done"
            assert len(started) == 2
            assert collection.titles[server.url("a.test", "/app")] == "Home"


class TestADatabase:
    pytestmark = needs_browser

    @pytest.mark.parametrize("segments", [False, True])
    def test_keeps_what_a_folder_keeps(self, tmp_path, address, segments):
        at = replace(address, segments=str(tmp_path / "segments")) if segments else address
        with serve(app()) as server:
            folder, _ = crawled(tmp_path / "c", server, "a.test", render="auto", screenshots=True)
            stored, end = crawled_into(at.text, server, "a.test", render="auto", screenshots=True)
            assert end.state == "done"
            assert stored.titles == folder.titles
            assert stored.links == folder.links
            assert stored.sane() == []
            find = (
                "SELECT u.text, g.requests, g.refused, g.bounds, g.sent_digest, g.sent_size FROM rendering g"
                " JOIN url u ON u.id = g.url_id ORDER BY 1"
            )
            assert stored.ask(find) == folder.ask(find)
            move(at.text, str(tmp_path / "moved"))
            with Reader(tmp_path / "moved") as reader:
                page = reader.page(server.url("a.test", "/app"))
                assert page.source() == SHELL
                assert b"<h1>Home of the app</h1>" in page.parsed_body()
                assert page.screenshot()[8:12] == b"WEBP"


class TestMore:
    pytestmark = needs_browser

    def test_scrolls_and_presses_the_button_that_loads_more(self, tmp_path):
        site = Site("a.test")
        page = b"""<!DOCTYPE html><html lang=en><title>List</title><ul id=list></ul>
            <button onclick="more()">Load more</button><script>let n = 0; function more() { n++;
            const item = document.createElement("li"); item.innerHTML = `<a href="/item/${n}">item ${n}</a>`;
            document.getElementById("list").append(item); } more()</script>"""
        site.answer("/", Answer(200, page), linked_from=None)
        with serve(site) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test", render="always", scroll=3)
            targets = {row[1] for row in collection.links if row[2] == "a"}
            assert targets == {server.url("a.test", f"/item/{number}") for number in range(1, 5)}

    def test_a_page_with_a_script_redirect_has_its_target_as_link(self, tmp_path):
        site = Site("a.test")
        script = b"<!DOCTYPE html><html lang=en><title>Door</title><p>door</p><script>location.href='/inside'</script>"
        site.answer("/", Answer(200, script), linked_from=None)
        site.answer("/inside", Answer(200, b"<title>Inside</title><p>inside"), linked_from=None)
        with serve(site) as server:
            collection, _ = crawled(tmp_path / "c", server, "a.test", render="always")
            assert collection.urls[server.url("a.test", "/inside")].reason is Reason.OK


class TestAnswersOfAllKinds:
    pytestmark = needs_browser

    def test_are_rendered_with_their_type(self, tmp_path):
        site = Site("a.test")
        site.add(Page("/", "Home"))
        write = "document.body.append('made here: \u017elu\u0165ou\u010dk\u00fd')"
        attached = f"<title>A</title><p>attached</p><script>{write}</script>".encode()
        disposition = (("Content-Disposition", "attachment; filename=a.html"),)
        site.answer("/attached", Answer(200, attached, headers=disposition))
        page = f"""<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title></head>
            <body><p>strict<br/></p><script>{write}</script></body></html>"""
        site.answer("/strict", Answer(200, page.encode(), media_type="application/xhtml+xml"))
        czech = f"<title>C</title><meta charset=windows-1250><p>p\u0159\u00edli\u0161</p><script>{write}</script>"
        site.answer("/czech", Answer(200, czech.encode("windows-1250"), media_type="text/html"))
        moved = "<title>M</title><a href=b>b</a><script>history.pushState({}, '', '/deep/er/')</script>"
        site.answer("/moved", Answer(200, moved.encode()))
        site.answer("/gone", Answer(404, b"<p>gone</p>"))
        site.answer("/note.txt", Answer(200, b"plain", media_type="text/plain"))
        with serve(site) as server:
            collection, end = crawled(tmp_path / "c", server, "a.test", render="always")
            assert end.state == "done"
            with Reader(collection.folder) as reader:
                for path, start in (
                    ("/attached", "attached"),
                    ("/strict", "strict"),
                    ("/czech", "p\u0159\u00edli\u0161"),
                ):
                    text = reader.page(server.url("a.test", path)).text(ALL_PARTS)
                    assert start in text, path
                    assert "made here: \u017elu\u0165ou\u010dk\u00fd" in text, path
                assert not reader.page(server.url("a.test", "/note.txt")).row.rendered
            pairs = {(source, target) for source, target, kind, *_ in collection.links if kind == "a"}
            assert (server.url("a.test", "/moved"), server.url("a.test", "/deep/er/b")) in pairs


def test_no_worker_joins_a_rendering_crawl():
    record = RunRecord(1, "crawl", (), {"render": "auto"}, 0, 0.0, None, "running", "", 0, 0)
    with pytest.raises(UsageError, match="it can have only one worker"):
        settings_of_run(record)


def test_a_missing_browser_is_reported_with_a_remedy(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="--browser /no/such: there is no such program"):
        browser_program("/no/such")
    monkeypatch.setattr("periplus_browser.chromium.MAC_PROGRAMS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt install chromium"):
        browser_program()
