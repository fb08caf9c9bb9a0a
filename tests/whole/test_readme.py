"""The commands of the README and the lines of Python of docs/start.md are run, on a site of the test web."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from voyage import PATIENCE_S, QUICK, told_apart

from testweb import GraphRecipe, graph_site, serve

ROOT = Path(__file__).parents[2]
README, START = (ROOT / "README.md").read_text("utf-8"), (ROOT / "docs" / "start.md").read_text("utf-8")
FOLDER = "example.org.periplus"


def commands() -> list[str]:
    """The lines of the README's blocks of code."""
    return "".join(re.findall(r"^```\n(.*?)^```", README, re.DOTALL | re.MULTILINE)).splitlines()


def test_the_install_commands_of_the_documents_are_targets_of_the_makefile() -> None:
    """Periplus is not in a package index, so each page begins with `make` in a clone."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")]
    blocks = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
    lines = [line for page in pages for block in blocks.findall(page.read_text("utf-8")) for line in block.splitlines()]
    targets = {line.split()[1] for line in lines if line.startswith("make ")}
    assert {"demo", "setup"} <= targets
    subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, check=True, capture_output=True)
    assert not [line for line in lines if re.match(r"\W*pip install 'periplus\[all", line)]


def program() -> str:
    """The lines of Python of docs/start.md."""
    (text,) = re.findall(r"^```python\n(.*?)^```", START, re.DOTALL | re.MULTILINE)
    return text


def test_its_commands_and_its_python_run(tmp_path: Path) -> None:
    with serve(graph_site(GraphRecipe(seed=7, pages=30, page_bytes=1500, host="example.org"))) as server:
        address = server.url("example.org", "/").rstrip("/")
        folder = tmp_path / address.removeprefix("http://").replace(":", "-")
        folder = folder.with_name(folder.name + ".periplus")
        folder.mkdir()
        settings = {**QUICK, "resolve": list(server.resolve)}
        # these values are equal in JSON and TOML
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        (folder / "periplus.toml").write_text("[settings]\n" + "\n".join(lines) + "\n", "utf-8")
        own = [command for command in commands() if command.startswith("periplus ")]
        assert commands() == ["make demo", "make setup", ". .venv/bin/activate", *own]
        assert len(own) == 3
        for command in own:
            words = shlex.split(command.replace("https://example.org", address))
            ran = told_apart(*words[1:], cwd=tmp_path)
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
