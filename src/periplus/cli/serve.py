"""`periplus serve`: collections in a browser, with a worker for what is asked for there."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import click

from periplus.cli.progress import say
from periplus.errors import StoreError, UsageError
from periplus.model.job import PIPES

TOKEN = "PERIPLUS_TOKEN"  # in the environment; jobs need not know it
WORKER_GRACE_S = 90.0  # the runner gives a job a minute to store what it has in hand
NICENESS = 5  # where cores are short, crawls go first and readers wait a little: benchmarks/readers.py


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on. Any but this machine's own needs --token.")
@click.option("-p", "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port to listen on.")
@click.option("--token", envvar=TOKEN, default="", help="Whoever opens the interface must know this. Better in the variable PERIPLUS_TOKEN.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A further host name under which browsers may reach it, as behind a proxy.")
@click.option("--no-workers", is_flag=True, help="Only show: what is asked for waits until some `periplus worker` does it.")
@click.option("--open", "open_it", is_flag=True, help="Open it in the browser.")
def serve(folders: tuple[Path, ...], host: str, port: int, token: str, names: tuple[str, ...], **wish: bool) -> None:
    """Show collections in a browser, and start and watch crawls there.

    FOLDER is a collection, or a folder that holds some; by default the current one. Only this machine can reach it, unless --host
    says otherwise. A worker runs beside it and does what is asked for; both end with Ctrl-C, and lose nothing.

    \b
    periplus serve
    periplus serve ~/collections --port 9000 --open
    PERIPLUS_TOKEN=... periplus serve --host 0.0.0.0 --name crawls.example.org
    """
    from periplus.cli.main import command_names
    from periplus.ui.app import house_at
    from periplus.ui.app import serve as run
    from periplus.ui.places import places
    from periplus.ui.safety import needs_token

    if needs_token(host) and len(token) < 8:
        raise UsageError(f"{host} can be reached by others: give a --token of at least 8 signs, or listen on 127.0.0.1")
    shown = places(folders)
    house = house_at(shown, token, tuple(name.lower() for name in names), command_names(), works=not wish["no_workers"])
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    with contextlib.ExitStack() as stack:
        if not wish["no_workers"]:
            stack.enter_context(_worker(shown.base))
        os.nice(NICENESS)
        say(f"{address}  Ctrl-C ends it.")
        if wish["open_it"]:
            webbrowser.open(address)
        if not run(house, host, port):
            raise StoreError(f"nothing can listen on {host}, port {port}: another program has it, perhaps. Choose another with --port.")


@contextlib.contextmanager
def _worker(folder: Path) -> Iterator[None]:
    """A worker as a process of its own, which ends with this one, however that ends: at the end of a pipe."""
    alive_read, alive_write = os.pipe()
    environment = {name: text for name, text in os.environ.items() if name != TOKEN} | {PIPES: f"-1,{alive_read}"}
    worker = subprocess.Popen(
        [sys.executable, "-m", "periplus.cli", "worker", "-d", str(folder)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(alive_read,), env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(alive_read)
    try:
        yield
    finally:
        os.close(alive_write)
        try:
            worker.wait(WORKER_GRACE_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
