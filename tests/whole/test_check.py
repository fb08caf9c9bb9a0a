"""Checks of links, compared with the known faults of a web and with the server log."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import signal
import subprocess
from collections import Counter
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from voyage import Collection, command, crawled, environment, flags_for, plain, served_apart, settings_for, told, until

import periplus
from periplus.analyse.audit import issue_kinds
from periplus.api.checking import CheckOrder, check
from periplus.api.crawling import CrawlOrder, crawl
from periplus.api.grading import baseline_run, new_since, store_issues
from periplus.api.positions import issues_of
from periplus.api.tables import Browser, TableQuery
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.audit import Category, Severity
from periplus.model.visit import Reason
from periplus.urls.canonical import canonical
from testweb import Page, Site, Web, faults, read_log, serve
from testweb.wire import Answer

CONTENT = (
    '<title>Places</title><h1>Places</h1><p id=a>some text</p><a name=old>x</a><p id="café">y</p><p '
    "id=b>1</p><p id=c>2</p><p id=d>3</p>"
)
PLACES = ("a", "b", "c", "d", "a", "old", "TOP")
DEFAULTS = {"recheck_wait_s": 0.3}


def checked(folder, server, start, *, stop=lambda progress: False, head=True, external=True, fragments=True, **values):
    """Checks in this process; returns (end, issues)."""
    settings = settings_for(server, **{**DEFAULTS, **values})
    order = CrawlOrder(folder, (canonical(server.url(start)),), settings)
    end = check(CheckOrder(order, external, fragments, head), stop)
    issues = issues_of(folder, settings, near=False)
    if end.run_id:
        store_issues(folder, end.run_id, issues)
    return end, issues


def of_links(issues):
    """(code, target without host) of issues of links."""
    found = set()
    for issue in issues:
        if issue_kinds()[issue.code].category is Category.LINKS and issue.code != "nofollow-inside":
            what = issue.detail.removeprefix("no ") if issue.code in ("broken-fragment", "missing-text") else ""
            found.add(
                (
                    issue.code,
                    issue.related.partition("test:")[2].partition("/")[2] + what
                    or issue.related
                    or issue.detail.partition(":")[0],
                )
            )
    return found


def get_only(answer, to_head):
    return lambda asked: Answer(to_head, b"") if asked.method == "HEAD" else answer


def truth_table(home: Site, far: Site) -> None:
    """The 33 links of the published comparison of link checkers, from home's first page to far. Both may be one."""
    home.add(Page("/", "Thirty-three links"))

    def link(path: str) -> None:
        if far is not home:
            home.link("/", far.url(path), f"to {path}", target=far.url(path.partition("#")[0]))
        elif path not in {known.href for known in home.pages["/"].links}:  # faults link to themselves
            home.link("/", path, f"to {path}")

    if far is not home:
        far.add(Page("/", "Far away"))
    for code in (404, 410, 403, 500):
        faults.status(far, f"/status/{code}", code)
    faults.passing(far, "/once-503")
    faults.passing(far, "/once-429", 429)
    page = Answer(200, CONTENT.encode())
    far.answer("/head-405", get_only(page, 405))
    far.answer("/head-404", get_only(page, 404))
    faults.redirect_chain(far, "/twelve", 12, "/plain")
    faults.redirect_chain(far, "/moved", 1, "/plain", code=301)
    far.answer("/plain", page)
    far.answer("/soft", Answer(200, b"<title>404 Not Found</title><h1>404 Not Found</h1><p>It is not here.</p>"))
    faults.truncated(far, "/truncated")
    far.answer("/places", page, linked_from=None)
    far.answer("/single", page, linked_from=None)
    for path in (
        "/status/404",
        "/status/410",
        "/status/403",
        "/status/500",
        "/once-503",
        "/once-429",
        "/head-405",
        "/head-404",
        "/twelve",
        "/moved",
        "/plain",
    ):
        link(path)
    link("/soft")
    link("/truncated")
    for fragment in (
        "#top",
        "#",
        "#caf%C3%A9",
        "#old",
        "#A",
        "#missing",
        "#:~:text=some%20text",
        "#:~:text=other%20text",
        "#//",
    ):
        link("/single" + fragment)
    for fragment in (*PLACES, "none"):
        link("/places#" + fragment)
    for href in (
        "mailto:bad@@addr",
        "mailto:good@addr.example",
        "http://[::1/",
        "http://127.0.0.1:1/",
        "http://nonexistent.invalid/",
    ):
        home.link("/", href, href, target=href)


ALWAYS = {
    ("broken-link", "status/404"),
    ("broken-link", "status/410"),
    ("refused-link", "status/403"),
    ("server-error", "status/500"),
    ("broken-fragment", "single#A"),
    ("broken-fragment", "single#missing"),
    ("broken-fragment", "single#//"),
    ("missing-text", "single#:~:text=other%20text"),
    ("broken-fragment", "places#none"),
    ("bad-mailto", "mailto"),
    ("malformed-link", "http"),
    ("broken-link", "http://127.0.0.1:1/"),
    ("broken-link", "http://nonexistent.invalid/"),
}
BY_GET = {("soft-404", "soft"), ("suspect-link", "truncated")}


def test_the_truth_table_holds_within_a_site(tmp_path):
    site = Site("a.test")
    truth_table(site, site)
    with serve(site) as server:
        end, issues = checked(tmp_path, server, "a.test")
        assert (end.state, of_links(issues)) == ("done", ALWAYS | BY_GET)
        assert server.log.count("/places") == 1
    assert not Collection(tmp_path).sane()


@pytest.mark.parametrize("head", [False, True])
def test_the_truth_table_holds_for_links_to_another_site(tmp_path, head):
    """HEAD cannot detect soft 404 pages and truncated bodies."""
    near, far = Site("a.test"), Site("b.test")
    truth_table(near, far)
    with serve(Web([near, far])) as server:
        _, issues = checked(tmp_path, server, "a.test", head=head)
        assert of_links(issues) == (ALWAYS if head else ALWAYS | BY_GET)
        asked = [(entry.method, entry.target) for entry in server.log.of("b.test")]
        assert [row for row in asked if row[1] == "/places"] == [("GET", "/places")]
        assert ("HEAD" in {method for method, _ in asked}) == head
        assert {
            moved.detail.partition("test:")[2].partition("/")[2] for moved in issues if moved.code == "link-to-redirect"
        } == {"plain"}
    assert not Collection(tmp_path).sane()
    states = {
        url.partition("b.test")[2].partition("/")[2]: row.reason
        for url, row in Collection(tmp_path).urls.items()
        if "b.test" in url
    }
    dead = {"status/404": Reason.NOT_FOUND, "status/410": Reason.NOT_FOUND, "status/500": Reason.SERVER_ERROR}
    assert states == dict.fromkeys(states, Reason.SCOPE) | dead  # live targets do not change


def dead_and_external(folder, issues):
    """Dead targets from the issues and from each list of the collection, and the external links."""
    with periplus.open(folder) as collection:
        lists = [{link.target for link in collection.links(broken=True)}]
        external = {link.target for link in collection.links(external=True)}
        lists.append({page.url for page in collection.pages(state="failed")})
        assert sum(tally.urls for tally in collection.status().counts if tally.state == "failed") == len(lists[0])
    browser = Browser()
    for wish in (
        TableQuery(conditions=(("target_state", "failed"),)),
        TableQuery(conditions=(("internal", "no"), ("target_state", "!failed"))),
    ):
        lists.append({row[0] for row in browser.page(folder, "links", wish, ("target",)).rows})
    assert lists.pop() == external
    lists.append({issue.related for issue in issues if issue.code in ("broken-link", "server-error")})
    assert all(found == lists[0] for found in lists), lists
    return {url.rpartition("/")[2] or "nobody" for url in lists[0]}, {url.rpartition("/")[2] for url in external}


def test_a_dead_link_found_by_a_check_is_dead_in_all_lists_and_can_recover(tmp_path):
    """SPEC A7: an invalid URL is an error of the site, never an external link."""
    near, far = Site("a.test"), Site("b.test")
    near.add(Page("/", "Home"))
    replies = {"/gone": Answer(404, b""), "/broken": Answer(500, b""), "/there": Answer(200, b"x")}
    for path in replies:
        far.answer(path, lambda asked: replies[asked.path], linked_from=None)
        near.link("/", far.url(path), path, target=far.url(path))
    near.link("/", "http://nobody.invalid/", "nobody", target="http://nobody.invalid/")

    with serve(Web([near, far])) as server:
        _, issues = checked(tmp_path, server, "a.test")
        assert dead_and_external(tmp_path, issues) == ({"gone", "broken", "nobody"}, {"there"})
        replies["/gone"], replies["/there"] = replies["/there"], replies["/gone"]
        _, issues = checked(tmp_path, server, "a.test")
        assert dead_and_external(tmp_path, issues) == ({"there", "broken", "nobody"}, {"gone"})
        before = server.log.count("/there")
        crawl(
            CrawlOrder(tmp_path, (canonical(server.url("a.test")),), settings_for(server, scope="any", **DEFAULTS)),
            lambda progress: False,
        )
        assert server.log.count("/there") == before + 1, "a crawl of a wider scope asks for what a check found dead"
    assert not Collection(tmp_path).sane()


@pytest.mark.parametrize("kind", ["crawl", "refresh"])
def test_a_recovered_link_is_alive_in_all_lists_and_fetched_by_the_next_run(tmp_path, kind):
    site = Site("a.test")
    site.add(Page("/", "Home"))
    replies = {"/gone": Answer(404, b""), "/back": Answer(500, b""), "/shut": Answer(404, b"")}
    for path in replies:
        site.answer(path, lambda asked: replies[asked.path], linked_from=None)
        site.link("/", path, path)
    with serve(site) as server:
        # without retries: after two failures far enough apart the check would not ask again
        settings = settings_for(server, retries=0, **DEFAULTS)
        order = CrawlOrder(tmp_path, (canonical(server.url("a.test")),), settings)
        crawl(order, lambda progress: False)
        replies |= {"/back": Answer(200, CONTENT.encode()), "/shut": Answer(403, b"")}
        _, issues = checked(tmp_path, server, "a.test")
        assert dead_and_external(tmp_path, issues) == ({"gone"}, set())
        states = {url.rpartition("/")[2]: row.reason for url, row in Collection(tmp_path).urls.items()}
        assert (states["back"], states["shut"]) == (Reason.ALIVE, Reason.REFUSED)
        replies["/back"] = Answer(404, b"")
        _, issues = checked(tmp_path, server, "a.test")
        assert dead_and_external(tmp_path, issues) == ({"gone", "back"}, set())
        replies["/back"] = Answer(200, CONTENT.encode())
        crawl(dataclasses.replace(order, kind=kind), lambda progress: False)
        assert Collection(tmp_path).urls[server.url("a.test", "/back")].reason is Reason.OK
    assert not Collection(tmp_path).sane()


def test_a_missing_page_whose_text_repeats_its_address_is_found(tmp_path):
    """The text differs from that of an impossible URL only by the address, which is longer there."""
    site = Site("a.test")
    site.add(Page("/", "Home"))
    site.routes.prefixes["/"] = lambda asked: Answer(
        200, f"<title>Oops</title><p>Oops. We could not find {asked.path} here.".encode()
    )
    site.answer("/robots.txt", Answer(404, b""), linked_from=None)
    for number in range(3):
        site.link("/", f"/dead{number}.html", "there", target=site.url(f"/dead{number}.html"))
    with serve(site) as server:
        _, issues = checked(tmp_path, server, "a.test")
        assert {path for code, path in of_links(issues) if code == "soft-404"} == {
            f"dead{number}.html" for number in range(3)
        }


CODE_OF = {
    Reason.NOT_FOUND: "broken-link",
    Reason.CLIENT_ERROR: "broken-link",
    Reason.SERVER_ERROR: "server-error",
    Reason.REFUSED: "refused-link",
    Reason.UNREACHABLE: "server-error",
    Reason.TRUNCATED: "suspect-link",
}


def test_every_planted_fault_is_found_and_nothing_else(tmp_path):
    site = faults.faulty_site("a.test")
    with serve(site) as server:
        truth, (_, issues) = server.truth, checked(tmp_path, server, "a.test")
        expected = {(CODE_OF[reason], url) for url, reason in truth.reasons.items() if reason in CODE_OF}
        expected |= {("server-error", server.url("a.test", path)) for path in ("/not-http", "/long-header")}
        expected |= {("broken-link", server.url("a.test", path)) for path in ("/loop", "/self", "/nowhere")}
        expected |= {("suspect-link", server.url("a.test", "/wrong-encoding"))}
        found = {
            (issue.code, issue.related) for issue in issues if issue_kinds()[issue.code].category is Category.LINKS
        }
        assert found == expected
        assert {issue.url for issue in issues if issue.code == "redirect-loop"} == {
            server.url("a.test", path) for path in ("/loop", "/loop/1")
        }
        held = {
            issue.related: (issue.url, issue.anchor, issue.position) for issue in issues if issue.code == "broken-link"
        }
        assert held[server.url("a.test", "/status/404")] == (server.url("a.test", "/"), "The page /status/404", "main")


def three_sites(pages=12):
    """A site with links to two others; the second one disallows some."""
    near, far, strict = Site("a.test"), Site("b.test"), Site("c.test")
    near.add(Page("/", "Home"))
    for site in (far, strict):
        for number in range(pages):
            site.answer(f"/{number}", Answer(200, b"<title>t</title>"), linked_from=None)
            near.link("/", site.url(f"/{number}"), "there", target=site.url(f"/{number}"))
    strict.answer("/robots.txt", Answer(200, b"User-agent: *\nDisallow: /1\n", "text/plain"), linked_from=None)
    return Web([near, far, strict])


def test_other_sites_are_checked_politely_and_their_robots_obeyed(tmp_path):
    with serve(three_sites(6)) as server:
        _, issues = checked(tmp_path, server, "a.test", delay_s=0.1)
        for host in ("b.test", "c.test"):
            assert min(server.log.gaps(host)) >= 0.095
            assert server.log.max_at_once(host) == 1
        assert "/1" not in server.log.targets("c.test")
        assert of_links(issues) == {("refused-link", "1")}
        assert Counter(server.log.targets("b.test")) == Counter(["/robots.txt", *(f"/{number}" for number in range(6))])


def test_a_stopped_check_continues(tmp_path):
    with serve(three_sites()) as server:
        first, _ = checked(
            tmp_path,
            server,
            "a.test",
            delay_s=0.05,
            stop=lambda progress: progress.counts.fetched >= 6 and server.log.count("/2") > 0,
        )
        asked = len(server.log)
        second, issues = checked(tmp_path, server, "a.test", delay_s=0.05)
        assert (first.state, second.state) == ("stopped", "done")
        assert asked < len(server.log)
        repeated = [
            target
            for host in ("b.test", "c.test")
            for target, times in Counter(server.log.targets(host)).items()
            if times > 1
        ]
        assert set(repeated) <= {"/robots.txt"}
        assert {code for code, _ in of_links(issues)} == {"refused-link"}


def test_a_killed_check_loses_nothing(tmp_path):
    with served_apart("linked seed=3 sites=3 pages=25 links_between=12", tmp_path) as served:
        flags = flags_for(served.resolve, delay_s=0.03, recheck_wait_s=0.2)
        words = command("check", served.url("a.test"), "-c", tmp_path / "kept", "-q", *flags)
        before = served.lines()
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        until(
            lambda: any(entry.method == "HEAD" for entry in read_log(served.log_file)) or child.poll() is not None,
            "nothing is checked",
        )
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert served.lines() > before
        done = told("check", served.url("a.test"), "-c", tmp_path / "kept", "--fail-on", "broken", *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        heads = Counter((entry.host, entry.target) for entry in read_log(served.log_file) if entry.method == "HEAD")
        targets = {row[0] for row in Collection(tmp_path / "kept").ask("SELECT text FROM url WHERE reason = 'scope'")}
        assert {f"http://{host}:{served.port}{target}" for host, target in heads} == targets
        assert sum(heads.values()) <= len(heads) + 2  # open requests, one per host
        assert not Collection(tmp_path / "kept").sane()


def going():
    """Answers the first request only, later the page is gone."""
    return lambda asked: Answer(200, b"x") if not asked.times else Answer(404, b"gone")


def test_only_new_issues_count_against_a_baseline(tmp_path):
    near, far = Site("a.test"), Site("b.test")
    near.add(Page("/", "Home"))
    for path, reply in (("/old", Answer(404, b"gone")), ("/going", going())):
        far.answer(path, reply, linked_from=None)
        near.link("/", far.url(path), path, target=far.url(path))
    with serve(Web([near, far])) as server:
        first, before = checked(tmp_path, server, "a.test")
        assert of_links(before) == {("broken-link", "old")}
        second, after = checked(tmp_path, server, "a.test")
        assert of_links(after) == {("broken-link", "old"), ("broken-link", "going")}
        assert second.crawl is None
        assert of_links(new_since(tmp_path, after, baseline_run(tmp_path, str(first.run_id)))) == {
            ("broken-link", "going")
        }
        assert baseline_run(tmp_path, "last") == second.run_id
        with pytest.raises(UsageError, match="runs 2, 3"):
            baseline_run(tmp_path, "99")


def test_grades_and_ignored_issues_are_settings(tmp_path):
    site = faults.faulty_site("a.test")
    with serve(site) as server:
        ignore = ("broken-link /status/4", "suspect-*")
        _, issues = checked(
            tmp_path, server, "a.test", ignore=ignore, severity=("server-error=error", "refused-link=off")
        )
        codes = Counter(issue.code for issue in issues)
        assert codes["broken-link"] == 3
        assert not codes["suspect-link"]
        assert not codes["refused-link"]
        assert {issue.severity for issue in issues if issue.code == "server-error"} == {Severity.ERROR}


def test_links_to_other_sites_are_not_checked_by_default(tmp_path):
    with serve(three_sites(2)) as server:
        _, issues = checked(tmp_path, server, "a.test", external=False)
        assert server.log.hosts() == {"a.test"}
        assert not of_links(issues)


def test_the_command_fails_a_build_and_writes_its_formats(tmp_path):
    site = faults.faulty_site("a.test")
    with serve(site) as server:
        flags = [*flags_for(server.resolve, recheck_wait_s=0.2), "--no-near"]
        done = told(
            "check", server.url("a.test"), "-c", "kept", "-f", "csv", "--fail-on", "broken>2", *flags, cwd=tmp_path
        )
        assert done.returncode == 5, done.stderr
        assert "broken-link, at most 2 allowed" in done.stderr
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        assert {row["code"] for row in rows} >= {"broken-link", "server-error", "refused-link"}
        asked = len(server.log)

        def offline(*words):
            return told("check", "-c", "kept", "--offline", *words, cwd=tmp_path)

        exported = told("export", "issues", "-c", "kept", cwd=tmp_path).stdout
        assert next(csv.DictReader(io.StringIO(exported))).keys() == rows[0].keys(), "the same table by each command"
        assert offline("--fail-on", "broken>99").returncode == 0
        assert offline("--fail-on", "nonsense>1").returncode == 2
        assert offline("--baseline", "last", "--fail-on", "notices").returncode == 0
        suites = ElementTree.fromstring(offline("-f", "junit").stdout)
        assert len(suites) == len(issue_kinds())
        assert offline("-f", "github").stdout.startswith("::error title=Broken links (broken-link)")
        table = offline("--ignore", "* .*", "--no-near")
        assert (table.stdout, table.returncode) == ("", 0)
        start, dead = (re.escape(server.url("a.test", path)) for path in ("/", "/status/404"))
        place = r"\(line \d+, column \d+\)"
        where = rf'{dead}  it answers 404  \(1 page\)\n      on {start} {place}  main  "The page /status/404"'
        assert re.search(where, offline().stdout)
        assert len(server.log) == asked


def test_a_broken_local_network_is_reported_once_and_gives_no_verdicts(tmp_path):
    """Four missing names: a probe decides whether the names or our network are at fault."""
    near, far = Site("a.test"), Site("b.test")
    near.add(Page("/", "Home"))
    far.add(Page("/", "Far"))
    names = [f"http://nobody{number}.invalid/" for number in range(4)]
    for url in (*names, near.url("/gone")):
        near.link("/", url, url, target=url)
    with serve(Web([near, far])) as server:
        end, issues = checked(tmp_path, server, "a.test", net_probe="http://probe.invalid/")
        assert (end.state, end.note.partition(":")[0]) == ("failed", "the local network is down")
        assert "5 of 5 hosts" in end.note
        assert not [issue for issue in issues if ".invalid" in issue.related]
        end, issues = checked(tmp_path, server, "a.test", net_probe=server.url("b.test"))
        assert end.state == "done"
        assert of_links(issues) == {("broken-link", "gone"), *(("broken-link", name) for name in names)}
        assert server.log.count("/robots.txt") == 2, "b.test is asked once, and only for its rules and the probe"
        end, issues = checked(tmp_path, server, "a.test", net_probe="")
        assert len(of_links(issues)) == 5
    assert not Collection(tmp_path).sane()


def hard_to_ask():
    """Other sites with endless redirects, a failing robots.txt, Retry-After, and without HTTP."""
    near, endless, failing, busy = Site("a.test"), Site("b.test"), Site("c.test"), Site("d.test")
    near.add(Page("/", "Home"))
    for site in (endless, busy):
        site.add(Page("/", "Far"))
    failing.answer("/robots.txt", Answer(500, b""), linked_from=None)
    failing.answer("/x", Answer(200, b"x"), linked_from=None)
    faults.redirect_without_end(endless)
    faults.passing(busy, "/wait", 429, times=2, retry_after="1")
    for url in (endless.url("/r"), failing.url("/x"), busy.url("/wait")):
        near.link("/", url, "there", target=url)
    return Web([near, endless, failing, busy])


def test_difficult_targets_end_and_are_not_reported_as_broken(tmp_path):
    with serve(hard_to_ask()) as server:
        end, issues = checked(tmp_path, server, "a.test", redirect_hops=6, host_strikes=2)
        assert (end.state, of_links(issues)) == ("done", {("broken-link", "r")})
        assert len(server.log.targets("b.test")) <= 1 + 2 * (1 + 6)  # robots.txt, and all redirects twice
        assert set(server.log.targets("c.test")) == {"/robots.txt"}
        assert server.log.count("/wait") == 3  # HEAD, the delayed GET, the answered GET


def test_a_check_leaves_the_map_to_the_crawl_before_it(tmp_path):
    with serve(three_sites(2)) as server:
        checked(tmp_path, server, "a.test")
        kept = Collection(tmp_path)
        assert [row[0] for row in kept.ask("SELECT kind FROM run ORDER BY id")] == ["crawl", "check"]
        assert told("map", "-c", tmp_path, cwd=tmp_path).stdout.splitlines()[1].startswith("Crawl 1")


def test_a_missing_start_is_reported(tmp_path):
    site = Site("a.test")
    site.add(Page("/", "Home"))
    faults.status(site, "/dead", 404)
    site.pages["/"].links.clear()
    with serve(site) as server:
        settings = settings_for(server, max_depth=0, **DEFAULTS)
        starts = tuple(canonical(server.url("a.test", path)) for path in ("/", "/dead"))
        check(CheckOrder(CrawlOrder(tmp_path, starts, settings)), lambda progress: False)
        issues = issues_of(tmp_path, settings)
        assert [issue.url for issue in issues if issue.code == "broken-start"] == [starts[1]]


def test_only_the_listed_pages_are_checked(tmp_path):
    site = Site("a.test")
    for path in ("/", "/one", "/two"):
        site.add(Page(path, path))
    site.link("/one", "/two", "two")
    site.link("/two", "/", "home")
    faults.status(site, "/dead", 404)
    site.link("/one", "/dead", "dead")
    with serve(site) as server:
        (tmp_path / "pages.txt").write_text(f"# the pages\n{server.url('a.test', '/one')}\n")
        done = told(
            "check", "-i", "pages.txt", "-c", "kept", *flags_for(server.resolve, recheck_wait_s=0.2), cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert ("GET", "/two") not in {(entry.method, entry.target) for entry in server.log.of("a.test")}
        assert "/dead  it answers 404" in done.stdout


def test_a_check_without_a_url_and_a_later_refresh_use_the_settings_of_the_crawl(tmp_path):
    site = Site("a.test")
    site.add(Page("/", "Home"))
    faults.status(site, "/dead", 404)
    with serve(site) as server:
        crawled = told(
            "crawl", server.url("a.test"), "-o", "kept", *flags_for(server.resolve, max_pages=9), cwd=tmp_path
        )
        assert crawled.returncode == 0, crawled.stderr
        done = told(
            "check",
            "-c",
            "kept",
            "--recheck-wait",
            "0.2",
            "--ignore",
            "h1-missing",
            "-f",
            "csv",
            "--fail-on",
            "broken",
            cwd=tmp_path,
        )
        assert (done.returncode, "it answers 404" in done.stdout) == (5, True), done.stderr
        again = told("refresh", "-c", "kept", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        settings = [
            json.loads(row[0]) for row in Collection(tmp_path / "kept").ask("SELECT settings FROM run ORDER BY id")
        ]
        assert [(kept["max_pages"], kept["recheck_wait_s"], kept["ignore"]) for kept in settings] == [
            (9, 30.0, []),
            (0, 0.2, ["h1-missing"]),
            (9, 30.0, []),
        ]


def test_unchecked_links_are_reported(tmp_path, monkeypatch):
    """The limit of pages whose anchors are checked used to be silent."""
    monkeypatch.setattr("periplus.api.audit.FRAGMENT_PAGES", 1)
    site = Site("places.test")
    site.add(Page("/", "Home"))
    for name in ("a", "b"):
        site.add(Page(f"/{name}.html", name), "/")
        site.link("/", f"/{name}.html#nowhere", "Nowhere")
    with serve(site) as server:
        crawled(tmp_path, server, "places.test")
        settings = settings_for(server)
    said = []
    assert (
        len([issue for issue in issues_of(tmp_path, settings, note=said.append) if issue.code == "broken-fragment"])
        == 1
    )
    assert said == ["Link fragments (#name) were checked on the first 1 target pages only."]
    shown = CliRunner().invoke(
        main, ["check", "-c", str(tmp_path), "--offline", "-f", "jsonl", "-o", str(tmp_path / "issues.jsonl")]
    )
    assert said[0] in plain(shown.output), shown.output
    assert said[0] not in CliRunner().invoke(main, ["check", "-c", str(tmp_path), "--offline", "-q"]).output
