"""Runs many commands in one process.

`command_lines.py LINE...` prints exit code and output of each line as JSON.
"""

from __future__ import annotations

import json
import shlex
import sys
import traceback

from click.testing import CliRunner

from periplus.cli.main import main


def answer(line: str) -> tuple[int, str]:
    """(exit code, output with the traceback that a user would see) of a command."""
    ran = CliRunner().invoke(main, shlex.split(line))
    raised = (
        ""
        if ran.exception is None or isinstance(ran.exception, SystemExit)
        else "".join(traceback.format_exception(ran.exception))
    )
    return ran.exit_code, ran.output + raised


if __name__ == "__main__":
    print(json.dumps({line: answer(line) for line in sys.argv[1:]}))
