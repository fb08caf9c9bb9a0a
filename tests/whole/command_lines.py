"""What do commands say, many of them in one process?

`command_lines.py LINE...` tells as JSON: each line's exit code and output.
"""

from __future__ import annotations

import json
import shlex
import sys
import traceback

from click.testing import CliRunner

from periplus.cli.main import main


def answer(line: str) -> tuple[int, str]:
    """(exit code, all that it said, with the traceback that a user would have seen) of one command."""
    ran = CliRunner().invoke(main, shlex.split(line))
    raised = (
        ""
        if ran.exception is None or isinstance(ran.exception, SystemExit)
        else "".join(traceback.format_exception(ran.exception))
    )
    return ran.exit_code, ran.output + raised


if __name__ == "__main__":
    print(json.dumps({line: answer(line) for line in sys.argv[1:]}))
