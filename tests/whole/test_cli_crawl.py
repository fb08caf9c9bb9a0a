"""Messages and exit codes of the real command `periplus crawl` in a subprocess."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from voyage import PATIENCE_S, Collection, flags_for, plain, told, told_apart

from periplus.cli.main import main
from testweb import Page, Server, Site, Web, faults, robots, serve
from testweb.words import sentence


def command_web() -> Web:
    """A good site, a refusing one, one with mostly failing pages, one that moved, one that disallows crawling."""
    web = Web([Site(f"{name}.test") for name in ("good", "refuses", "fails", "moved", "forbids", "slow")])
    for site in web.sites.values():
        site.add(Page("/", f"Home of {site.host}", (f"This is {site.host}.",)))
    web.sites["good.test"].add(Page("/1.html", "One", ("Page one.",)), "/")
    faults.status(web.sites["refuses.test"], "/", 403)
    for number in range(3):
        faults.status(web.sites["fails.test"], f"/{number}", 500)
    faults.redirect_away(web.sites["moved.test"], "/", web.sites["good.test"])
    robots.disallow(web.sites["forbids.test"], "User-agent: *\nDisallow: /\n")
    for number in range(200):
        web.sites["slow.test"].add(
            Page(f"/{number}.html", f"Page {number}", (sentence(random.Random(number), f"Page {number}"),)), "/"
        )
    return web


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(command_web()) as serving:
        yield serving


def flags(server: Server, **values: object) -> list[str]:
    return flags_for(server.resolve, **{"delay_s": 0.001, "retry_wait_s": 0.01, **values})


@pytest.mark.parametrize(
    ("host", "code", "words"),
    [
        ("good", 0, "Done — after"),
        ("refuses", 4, "Failed: no page was read; http://refuses.test:PORT/: access refused — after"),
        ("fails", 6, "Suspicious: 3 URLs failed and 1 were read; most often: server error (3)"),
        (
            "forbids",
            4,
            "Failed: no page was read; http://forbids.test:PORT/: disallowed by robots.txt "
            "(robots.txt line 2: Disallow: /)",
        ),
        ("moved", 4, "Failed: no page was read; http://moved.test:PORT/: redirect (http://good.test:PORT/)"),
    ],
)
def test_the_end_has_a_message_and_an_exit_code(
    tmp_path: Path, server: Server, host: str, code: int, words: str
) -> None:
    ran = told("crawl", server.url(f"{host}.test"), "-o", "c", *flags(server), cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert words.replace("PORT", str(server.port)) in plain(ran.stderr) and "Traceback" not in ran.stderr
    end = "Nothing was stored, so c/ was not kept." if code == 4 else "Kept in c/ — next: periplus map -c c"
    assert end in plain(ran.stderr)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no start: give a URL, or a file of URLs with -i"),
        (("http://",), "'http://' is not a URL to crawl; write it like https://example.org/"),
        (("mailto:a@b.test",), "is not a URL to crawl"),
        (("http://a b.test/",), "is not a URL to crawl"),
        (("ftp://a.test/",), "is not a URL to crawl"),
        (("./folder",), "./folder: there is no such file or folder"),
        (("/srv/none/index.html",), "/srv/none/index.html: there is no such file"),
        (("file:///srv/none/",), "there is no such file"),
        (("http://a.test/", "--no-such-flag"), "No such option"),
        (("http://a.test/", "--max-depth", "deep"), "'deep' is not a valid integer"),
        (("http://a.test/", "--max-depth", "-7"), "max_depth must be between -1 and"),
        (("http://a.test/", "--delay", "nan"), "delay_s must be between"),
        (("http://a.test/", "--scope", "galaxy"), "'galaxy' is not one of"),
        (("http://a.test/", "--exclude", "("), "'(' is not a regular expression"),
        (("http://a.test/", "--ignore-robots"), "--mine HOST"),
        (("http://a.test/", "--per-host", "3"), "--mine HOST"),
        (("http://a.test/", "--resolve", "a.test"), "resolve takes HOST:PORT:ADDRESS"),
        (("http://a.test/", "--resolve", "@missing"), "cannot read the resolve file missing"),
        (("-i", "missing.txt"), "missing.txt"),
        (("http://a.test/", "--cookie-file", "missing.txt"), "cannot read the cookie file missing.txt"),
        (("http://a.test/", "--ca-file", "missing.pem"), "cannot read the file of certificate authorities missing.pem"),
    ],
)
def test_an_invalid_command_is_explained_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    """In this process: none of these starts a crawl."""
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["crawl", *words])
    assert (ran.exit_code, ran.stdout) == (2, ""), ran.stderr
    assert said in plain(ran.stderr).replace("│ ", "") and "Traceback" not in ran.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is made"


def test_an_invalid_settings_file_is_explained(tmp_path: Path) -> None:
    for text, said in (
        ("[settings]\nmax_dept = 3\n", "there is no setting 'max_dept'"),
        ("not toml", "is not valid TOML"),
    ):
        (tmp_path / "c").mkdir(exist_ok=True)
        (tmp_path / "c" / "periplus.toml").write_text(text, "utf-8")
        ran = told("crawl", "http://a.test/", "-o", "c", cwd=tmp_path)
        assert ran.returncode == 2 and said in plain(ran.stderr)


def test_an_unusable_folder_is_explained(tmp_path: Path, server: Server) -> None:
    """A file instead of the folder; an invalid database."""
    (tmp_path / "file").write_text("x", "utf-8")
    ran = told("crawl", server.url("good.test"), "-o", "file", *flags(server), cwd=tmp_path)
    assert ran.returncode in (1, 2) and "Traceback" not in ran.stderr and "file" in ran.stderr
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "collection.db").write_bytes(b"no database at all" * 500)
    ran = told("crawl", server.url("good.test"), "-o", "c", *flags(server), cwd=tmp_path)
    assert (
        ran.returncode == 1 and "cannot be read as a collection" in plain(ran.stderr) and "Traceback" not in ran.stderr
    )


def test_progress_is_printed_in_lines_without_a_terminal(tmp_path: Path, server: Server) -> None:
    """A line every few seconds (here: less, to save time) on stderr; -q prints only the end."""
    hurry = "from periplus.cli import main, progress; progress.PLAIN_EVERY_S = 0.5; main.main()"
    words = ["crawl", server.url("slow.test"), "-o", "c", *flags(server, delay_s=0.1, max_time_s=4.0)]
    ran = subprocess.run(
        [sys.executable, "-c", hurry, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    lines = [line for line in ran.stderr.splitlines() if " fetched · " in line]
    assert lines and all("/s" in line and " waiting · " in line for line in lines)
    assert ran.returncode == 0 and "Stopped: max-time 4 s is over" in plain(ran.stderr)
    assert "To continue: periplus crawl" in plain(ran.stderr)


def test_quiet_and_verbose(tmp_path: Path, server: Server) -> None:
    quiet = told_apart("crawl", server.url("good.test"), "-o", "q", "-q", *flags(server), cwd=tmp_path)
    assert len(quiet.stderr.splitlines()) == 3 and "\x1b" not in quiet.stderr
    wordy = told_apart("crawl", server.url("good.test"), "-o", "v", "-vv", *flags(server), cwd=tmp_path)
    assert f"visit url={server.url('good.test', '/1.html')} outcome=fetched" in wordy.stderr


def test_starts_from_standard_input_and_the_folder_named_by_the_site(tmp_path: Path, server: Server) -> None:
    ran = told("crawl", "-i", "-", *flags(server), cwd=tmp_path, given=f"{server.url('good.test')}\n")
    assert ran.returncode == 0, ran.stderr
    assert len(Collection(tmp_path / f"good.test-{server.port}.periplus").titles) == 2
