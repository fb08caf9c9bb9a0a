"""The interface served by the real command, for a browser."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from voyage import PATIENCE_S, command, environment, until


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def served(folder: Path, *words: str, port: int = 0) -> Iterator[str]:
    """Runs `periplus serve`; its address without the last slash. Ended by Ctrl-C."""
    port = port or free_port()
    process = subprocess.Popen(
        command("serve", folder, "--port", str(port), *words),
        cwd=folder,
        env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _answers(port) or process.poll() is not None, "the server does not begin")
        assert process.poll() is None, "the server has ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        os.kill(process.pid, 2)
        process.wait(PATIENCE_S)


def _answers(port: int) -> bool:
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
