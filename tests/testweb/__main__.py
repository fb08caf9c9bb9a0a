"""Serves a recipe in a separate process: `python -m testweb 'graph seed=1 pages=500' --port-file F --log-file L`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from pathlib import Path

from testweb.recipes import RECIPES, web_of
from testweb.server import serve


def main() -> None:
    parser = argparse.ArgumentParser(prog="testweb", description=__doc__)
    parser.add_argument(
        "recipe", help="a name and its parameters, as in 'graph seed=1 pages=500'; names: " + ", ".join(RECIPES)
    )
    parser.add_argument(
        "--port-file",
        type=Path,
        help='JSON: {"port": 40000, "pid": 123, "resolve": [...]}, written when the web is served',
    )
    parser.add_argument("--log-file", type=Path, help="one JSON line per request")
    parser.add_argument("--truth-file", type=Path, help="the truth as JSON, with the real port")
    arguments = parser.parse_args()
    leave = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: leave.set())
    signal.signal(signal.SIGINT, lambda *_: leave.set())
    sink = arguments.log_file.open("a", encoding="utf-8") if arguments.log_file else None
    with serve(web_of(arguments.recipe), log_sink=sink) as server:
        if arguments.truth_file:
            arguments.truth_file.write_text(server.truth.as_json(), "utf-8")
        told = json.dumps({"port": server.port, "pid": os.getpid(), "resolve": server.resolve})
        if arguments.port_file:
            draft = arguments.port_file.with_suffix(".draft")
            draft.write_text(told, "utf-8")
            draft.replace(arguments.port_file)  # atomic: complete or missing
        print(told, flush=True)
        leave.wait()
    if sink is not None:
        sink.close()


if __name__ == "__main__":
    main()
