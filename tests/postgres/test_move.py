"""A killed crawl moves from its folder into a database, is killed there, and moves back: it continues each time without
loss.
"""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from test_resume import HOSTS, RECIPE, Voyage, assert_whole, undisturbed
from voyage import PATIENCE_S, served_apart, told

from periplus_postgres.address import Address


class Elsewhere(Voyage):
    """The same command on a collection in a database."""

    def __init__(self, voyage: Voyage, address: Address) -> None:
        self.web, self.folder, self._said = voyage.web, voyage.folder, voyage.folder.with_name("elsewhere-said.txt")
        self.words = [word for word in voyage.words if word not in ("-o", str(voyage.folder))] + [
            "-c",
            address.text,
        ]


@pytest.mark.parametrize(
    "has_segments", [pytest.param(False, id="rows", marks=pytest.mark.faults), pytest.param(True, id="segments")]
)
def test_a_crawl_moves_to_a_database_and_back_and_continues(
    tmp_path: Path, address: Address, has_segments: bool
) -> None:
    if has_segments:
        address = replace(address, segments=str(tmp_path / "segments"))
    with served_apart(RECIPE, tmp_path) as web:
        expected = undisturbed(web, tmp_path / "calm", HOSTS)
        voyage = Voyage(web, tmp_path / "killed", *HOSTS)
        voyage.kill_after(45)
        moved = told("move", voyage.folder, address.text, cwd=tmp_path)
        assert moved.returncode == 0 and "Every table was compared" in moved.stderr, moved.stderr
        refused = voyage.start()
        assert refused.wait(PATIENCE_S) == 1 and "this collection moved to postgresql://" in voyage.said

        there = Elsewhere(voyage, address)
        assert there.kill_after(40).returncode == -signal.SIGKILL
        if has_segments:
            swept = told("segments", address.text, "-f", "json", cwd=tmp_path)
            assert swept.returncode == 0 and sum(state["lost"] for state in json.loads(swept.stdout)) == 0, swept.stderr
        there.kill_after(10, signal.SIGTERM)
        back = told("move", address.text, tmp_path / "back", cwd=tmp_path)
        assert back.returncode == 0, back.stderr

        home = Voyage(web, tmp_path / "back", *HOSTS)
        home.finish()
        pages = home.pages()
        assert len(pages) - len(set(pages)) <= 2 * len(HOSTS), "each kill costs what was under way"
        assert_whole(home, expected)
        assert "a.test" in told("map", "-c", home.folder, "--site", web.url("a.test")[7:-1], cwd=tmp_path).stdout
