"""A crawl with a regular expression that would backtrack for ever in other engines."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from voyage import PATIENCE_S, command, flags_for, served_apart, told, until

ENDLESS = "(a|a|L+)+(L+)+(L+)+$x"


@pytest.mark.parametrize("flag", ["--include", "--exclude"])
def test_a_crawl_with_an_endless_expression_ends(tmp_path: Path, flag: str) -> None:
    (docs := tmp_path / "docs").mkdir()
    name = "L" * 200
    (docs / "index.html").write_text(f"<title>a</title><p>A page of words.<p><a href={name}>b</a>")
    (docs / name).write_text("<title>b</title><p>Another page of other words.")
    ran = told("crawl", "./docs", "-o", "C", flag, ENDLESS, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ("1 fetched" if flag == "--include" else "2 fetched") in ran.stderr + ran.stdout


def test_sigterm_ends_a_crawl_with_an_endless_expression(tmp_path: Path) -> None:
    recipe = "linked seed=5 sites=1 pages=400 links_per_page=3"
    with served_apart(recipe, tmp_path) as web:
        flags = flags_for(web.resolve, delay_s=0.05, exclude=(ENDLESS,))
        began = subprocess.Popen(command("crawl", web.url("a.test"), "-o", "C", *flags), cwd=tmp_path)
        until(lambda: web.lines() > 3 or began.poll() is not None, "nothing is asked")
        began.send_signal(signal.SIGTERM)
        assert began.wait(PATIENCE_S) == 130
