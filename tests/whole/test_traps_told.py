"""URLs left out as endless series are reported at the end of a crawl, in `status`, `check` and the report."""

from __future__ import annotations

import json

from click.testing import CliRunner
from voyage import crawled, settings_for

from periplus.api.positions import issues_of
from periplus.cli.main import main
from periplus.model.visit import Reason
from periplus.present.wording import traps_left
from testweb import GraphRecipe, graph_site, serve, traps


def test_end_status_check_and_report_list_them_with_numbers(tmp_path):
    site = graph_site(GraphRecipe(seed=1, pages=30, page_bytes=1500, host="traps.test"))
    traps.calendar(site)
    with serve(site) as server:
        collection, end = crawled(tmp_path, server, "traps.test", trap_window=5)
        issues = issues_of(tmp_path, settings_for(server), near=False)
    left = sum(reason is Reason.TRAP for reason in collection.reasons.values())
    assert left
    assert sum(tally.urls for tally in end.traps) == left
    (line,) = traps_left(end.traps)
    assert line.startswith(f"{left} addresses were left out as endless series: ")
    assert "--trap-window 0" in line
    assert line in ran("status", "-c", str(tmp_path))
    told = json.loads(ran("status", "-c", str(tmp_path), "-f", "json"))
    assert sum(row["urls"] for row in told["traps"]) == left
    found = [issue for issue in issues if issue.code == "endless-series"]
    assert [f"{tally.urls} left unread as {tally.pattern}" for tally in sorted(end.traps)] == [
        issue.detail for issue in found
    ]
    ran("report", "-c", str(tmp_path))
    assert "Endless URL series" in (tmp_path / "report.html").read_text()


def ran(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout
