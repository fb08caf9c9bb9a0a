"""The commands of the README and the lines of Python of docs/start.md are run, on a site of the test web."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from voyage import PATIENCE_S, QUICK, told

from testweb import GraphRecipe, graph_site, serve

ROOT = Path(__file__).parents[2]
README, START = (ROOT / "README.md").read_text("utf-8"), (ROOT / "docs" / "start.md").read_text("utf-8")
FOLDER = "example.org.periplus"


def commands() -> list[str]:
    """The lines of the README's second block of code: the first installs."""
    install, begin = re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert install == "pip install 'periplus[all]'\n"
    return begin.splitlines()


def program() -> str:
    """The lines of Python of docs/start.md."""
    (text,) = re.findall(r"^```python\n(.*?)^```", START, re.DOTALL | re.MULTILINE)
    return text


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
        assert len(commands()) == 3
        for command in commands():
            words = shlex.split(command.replace("https://example.org", address))
            assert words[0] == "periplus"
            ran = told(*words[1:], cwd=tmp_path)
            assert ran.returncode == 0, (command, ran.stderr)
            assert words[1] == "crawl" or ran.stdout, command
        ran = subprocess.run(
            [sys.executable, "-c", program().replace(FOLDER, folder.name)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert len(ran.stdout.splitlines()) == 5
        assert (folder / "report.html").exists()
