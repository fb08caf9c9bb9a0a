"""Does the README say what is true? Its commands and its lines of Python are run, on a site of the test web."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from voyage import PATIENCE_S, QUICK, told

from testweb import GraphRecipe, graph_site, serve

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
FOLDER = "example.org.periplus"


def block(heading: str) -> str:
    """The first block of code below a heading."""
    found = re.search(rf"## {re.escape(heading)}\n+```\w*\n(.*?)```", README, re.DOTALL)
    assert found, heading
    return found[1]


def test_its_commands_and_its_python_do_what_it_says(tmp_path: Path) -> None:
    with serve(graph_site(GraphRecipe(seed=7, pages=30, page_bytes=1500, host="example.org"))) as server:
        address = server.url("example.org", "/").rstrip("/")
        folder = tmp_path / address.removeprefix("http://").replace(":", "-")
        folder = folder.with_name(folder.name + ".periplus")
        folder.mkdir()
        settings = {**QUICK, "resolve": list(server.resolve)}
        # what these are in JSON they are in TOML
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        (folder / "periplus.toml").write_text("[settings]\n" + "\n".join(lines) + "\n", "utf-8")
        commands = [line for line in block("Five commands").splitlines() if line]
        assert len(commands) == 5
        for command in commands:
            words = shlex.split(command.replace("https://example.org", address))
            assert words[0] == "periplus"
            ran = told(*words[1:], cwd=tmp_path)
            assert ran.returncode == 0, (command, ran.stderr)
            assert words[1] == "crawl" or ran.stdout, command
        program = block("Five lines of Python").replace(FOLDER, folder.name)
        ran = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert len(ran.stdout.splitlines()) == 5
        assert (folder / "report.html").exists()
