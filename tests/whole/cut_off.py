"""Cuts a process off from a server: a network namespace with one link that can be taken down.

Other connections use a Unix socket, which is shared between namespaces: `python cut_off.py FROM TO` forwards
connections, each end `tcp:PORT` of 127.0.0.1 or `unix:PATH`. Needs root and `ip`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

HERE, THERE = "10.231.77.1", "10.231.77.2"  # the two ends of the link


class Island:
    """A namespace with one link to the rest."""

    def __init__(self) -> None:
        self.name = f"periplus-{os.getpid()}"
        self._link = f"pp{os.getpid()}"

    def make(self) -> None:
        _ip("netns", "add", self.name)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("addr", "add", f"{HERE}/24", "dev", self._link)
        _ip("link", "set", self._link, "up")
        for words in (
            ("addr", "add", f"{THERE}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", self.name, *words)

    def cut(self) -> None:
        _ip("link", "set", self._link, "down")

    def mend(self) -> None:
        _ip("link", "set", self._link, "up")

    def start(self, *words: object, **more: object) -> subprocess.Popen[bytes]:
        """Starts a process in it; its id is that of the program, since `ip netns exec` calls exec."""
        return subprocess.Popen(["ip", "netns", "exec", self.name, *map(str, words)], start_new_session=True, **more)

    def drop(self) -> None:
        subprocess.run(["ip", "link", "del", self._link], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def can_cut() -> bool:
    """Whether this machine allows to create namespaces and links."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    island = Island()
    try:
        island.make()
    except (subprocess.CalledProcessError, OSError):
        return False
    finally:
        island.drop()
    return True


@contextlib.contextmanager
def island() -> Iterator[Island]:
    made = Island()
    try:
        made.make()
        yield made
    finally:
        made.drop()


@contextlib.contextmanager
def passed_on(made: Island, port: int, folder: Path) -> Iterator[None]:
    """Forwards 127.0.0.1:port from inside to outside, independent of the link."""
    path = folder / "way"
    outside = subprocess.Popen([sys.executable, __file__, f"unix:{path}", f"tcp:{port}"], stdout=subprocess.PIPE)
    inside = made.start(sys.executable, __file__, f"tcp:{port}", f"unix:{path}", stdout=subprocess.PIPE)
    try:
        for process in (outside, inside):
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in (outside, inside):
            process.kill()
            process.wait()
            process.stdout.close()


def _pass_on(source: str, target: str) -> None:
    kind, _, place = source.partition(":")
    if kind == "tcp":
        server = socket.create_server(("127.0.0.1", int(place)))
    else:
        server = socket.socket(socket.AF_UNIX)
        server.bind(place)
        server.listen(64)
    print("ready", flush=True)
    while True:
        near = server.accept()[0]
        far = _connected(target)
        threading.Thread(target=_pump, args=(near, far), daemon=True).start()
        threading.Thread(target=_pump, args=(far, near), daemon=True).start()


def _connected(target: str) -> socket.socket:
    kind, _, place = target.partition(":")
    if kind == "tcp":
        return socket.create_connection(("127.0.0.1", int(place)))
    far = socket.socket(socket.AF_UNIX)
    far.connect(place)
    return far


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    _pass_on(sys.argv[1], sys.argv[2])
