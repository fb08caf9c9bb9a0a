"""Runs every command of every tutorial, and compares the output with the tutorial."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tutorials import Step, TutorialFailure, agrees, follow, plain, steps

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
PROGRAM = Path(sys.executable).parent


@pytest.mark.parametrize("name", sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index"))
def test_a_tutorial_works_as_written(name: str, tmp_path: Path) -> None:
    assert len(list(follow(TUTORIALS / f"{name}.md", tmp_path, PROGRAM))) >= 5


def test_each_role_has_a_tutorial_that_the_index_lists() -> None:
    roles = {"webmaster", "webometrician", "editor", "archivist", "administrator", "python"}
    assert {path.stem for path in TUTORIALS.glob("*.md")} == roles | {"index"}
    index = (TUTORIALS / "index.md").read_text("utf-8")
    assert all(f"]({role}.md)" in index for role in roles)


def test_steps_are_read_as_they_are_typed() -> None:
    text = """a
```console
$ cat > x <<END
> 1
> END
$ cat x
1
```
```python
print(2)
```

```text
2
```
```console title="Second terminal"
$ sleep 9
```
"""
    assert steps(text) == [
        Step("shell", "cat > x <<END\n1\nEND", "", 3),
        Step("shell", "cat x", "1", 6),
        Step("python", "print(2)\n", "2\n", 10),
        Step("background", "sleep 9", "", 17),
    ]


def test_only_variable_output_is_ignored() -> None:
    assert plain("Done — after 1 min 3 s\n8 of 9  2026-11-23T01:14:05Z 152 KB") == [
        "Done — after <time>",
        "8 of 9 <date> 152 KB",
    ]
    assert agrees("one\n...\nthree", "one\ntwo\nthree") and agrees("", "anything")
    assert not agrees("one\n...", "two\none")
    assert not agrees("one", "one\ntwo")


@pytest.mark.parametrize("command", ["false", "echo other"])
def test_a_wrong_tutorial_fails(command: str, tmp_path: Path) -> None:
    untrue = tmp_path / "untrue.md"
    untrue.write_text(f"```console\n$ {command}\nthis\n```\n")
    with pytest.raises(TutorialFailure, match=r"untrue\.md, line 2"):
        list(follow(untrue, tmp_path / "reader", PROGRAM))
