"""Progress display of commands."""

from __future__ import annotations

import pytest

from periplus.api.crawling import Progress
from periplus.cli import progress as cli_progress
from periplus.cli.progress import crawl_display
from periplus.model.frontier import RunCounts
from periplus.model.job import JobProgress

COUNTS = RunCounts(known=1_009, fetched=1_009)


@pytest.mark.parametrize(
    ("done", "total", "stopped", "line"),
    [
        (812, 1_009, False, "indexing, 812 of 1,009 pages"),
        (0, 0, False, "indexing"),
        (
            812,
            1_009,
            True,
            "Indexing stopped at 812 of 1,009 pages: `periplus index` does the rest, or the next search.",
        ),
        (0, 0, True, "Indexing stopped: `periplus index` does the rest, or the next search."),
    ],
)
def test_indexing_after_a_crawl_is_shown(
    done: int,
    total: int,
    *,
    stopped: bool,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli_progress, "PLAIN_EVERY_S", 1e-9)
    with crawl_display(lambda: stopped, quiet=False) as watch:
        assert watch(Progress(COUNTS, (), 5.0, 1, False, JobProgress(done, total, "indexing"))) is stopped
    assert capsys.readouterr().err == line + "\n"


def test_the_environment_switches_progress_off_for_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_progress, "PLAIN_EVERY_S", 1e-9)
    monkeypatch.setattr(cli_progress, "WATCH_EVERY_S", 1e-9)
    for environment, lines in (({}, 2), ({cli_progress.NO_PROGRESS: "1"}, 0)):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with crawl_display(lambda: False, quiet=False) as watch:
            watch(Progress(COUNTS, (), 5.0, 1, False, JobProgress(1, 9, "indexing")))
        cli_progress.Watch()("reading pages", 1, 9)
        assert len(capsys.readouterr().err.splitlines()) == lines
