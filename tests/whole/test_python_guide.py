"""Every example of docs/python.md runs unchanged, on a local site."""

from __future__ import annotations

import json
import re
from pathlib import Path

from test_scope_and_limits import chain
from voyage import QUICK

from testweb import serve

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def test_every_example_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "example.periplus").mkdir()
    with serve(chain(4)) as server:
        settings = {**QUICK, "resolve": tuple(server.resolve)}
        lines = [f"{name} = {_toml(value)}" for name, value in settings.items()]
        (tmp_path / "example.periplus" / "periplus.toml").write_text("[settings]\n" + "\n".join(lines) + "\n")
        start = server.url("a.test", "").rstrip("/")
        names: dict[str, object] = {}
        for example in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.S):
            exec(
                compile(example.replace("https://example.org", start), str(GUIDE), "exec"),
                names,
            )
    said = capsys.readouterr().out
    assert "done 4" in said and "'ok': 4" in said and "<CheckResult: " in said
    assert (tmp_path / "links.csv").read_text().count("\n") > 3


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, (tuple, frozenset)) else value)
