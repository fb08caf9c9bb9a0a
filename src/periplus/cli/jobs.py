"""`periplus jobs`, `worker` and `serve`: work that is asked for now, there or in a browser, and done in its turn."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.children import Command
from periplus.cli.crawl import EXIT_INTERRUPT, Period, StopOnSignal, configure_logs
from periplus.cli.options import (
    COLLECTION_VARIABLE,
    FOLDER,
    PLACE,
    WholeNumber,
    format_option,
    log_format_option,
    option,
    output_option,
    place_flag,
    verbose_option,
    write_output,
)
from periplus.cli.progress import say
from periplus.errors import StoreError, UsageError
from periplus.extras import extra_needed
from periplus.features import features, is_address, loaded, service
from periplus.masking import without_secrets
from periplus.present.tables import write_table
from periplus.present.wording import utc
from periplus.values import Place

if TYPE_CHECKING:
    from periplus.model.job import Job, Schedule
    from periplus.ui.users import Users


# `periplus jobs` and `periplus worker`: work that is asked for now and done in its turn, once or every so often.


LARGEST_PORT = 65535
JOIN_EVERY_S = 5  # an idle worker looks for a crawl: each look opens a connection
STALLED_S = 60.0  # a worker without a turn for this time is not healthy: the database may be away
TOKEN = "PERIPLUS_TOKEN"  # in the environment; jobs need not know it
WORKER_GRACE_S = 90.0  # the runner gives a job a minute to store its answers
NICENESS = 5  # where cores are short, crawls go first and readers wait a little: benchmarks/readers.py


def _database_here() -> str:
    """The address of the collection that the environment names; empty where it names a folder, or none."""
    named = os.environ.get(COLLECTION_VARIABLE, "")
    return named if is_address(named) else ""


def _queue_options(command: Callable[..., Any]) -> Callable[..., Any]:
    sentence = (
        "The queue of a collection in PostgreSQL: postgresql://USER@HOST/DATABASE?collection=NAME; by default that of "
        f"{COLLECTION_VARIABLE}. The folder keeps what its jobs print."
    )
    command = click.option("-c", "--collection", "store", default=_database_here, metavar="ADDRESS", help=sentence)(
        command
    )
    sentence = "The folder of collections whose queue is meant. By default the current one."
    return click.option("-d", "--folder", type=FOLDER, default=Path(), help=sentence)(command)


@click.group()
def jobs() -> None:
    """Ask for work, see how far it is, call it off.

    A job is a command of this program, done in its turn by `periplus worker` (or `periplus serve`): greatest priority
    first, then oldest. Jobs and their periods are kept in jobs.db in a folder of collections, or with -c in a
    database, where workers of many machines find them; what they print, in the folder jobs.

    \b
    periplus jobs add crawl https://example.org
    periplus jobs add --every 24h refresh -c example.org.periplus
    periplus jobs list
    periplus worker
    """


@jobs.command(context_settings={"allow_interspersed_args": False})
@_queue_options
@option("-p --priority", "Priority, greatest first; default 0.", click.IntRange(-1_000_000, 1_000_000), 0)
@option("--every", "Repeat with this period: 24h, 90m, 7d.", Period())
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def add(folder: Path, store: str, priority: int, every: float | None, command: tuple[str, ...]) -> None:
    """Queue a command, written as after `periplus`: `periplus jobs add check example.org`.

    Everything after the command's name belongs to that command, also another -c. If an equal job waits or runs already,
    no second job is made. A database password is not stored: the worker needs PGPASSFILE or PGPASSWORD.
    """
    from periplus.jobs.runner import make_order, opened_queue

    order = make_order(command, priority)
    _refuse_unknown_options(order.command)
    if order.command != command:
        say("The password is not stored with the job: its worker needs it in PGPASSFILE or PGPASSWORD.", "yellow")
    with opened_queue(folder, store, make=True) as (queue, clock):
        if every is not None:
            schedule = queue.repeat(order, every, clock.now())
            say(f"Schedule {schedule.id}: next at {utc(schedule.next_at)}.")
        else:
            does = "periplus worker -c ADDRESS" if store else "periplus worker"
            say(f"Job {queue.add(order, clock.now()).id} waits for a worker: `{does}` starts one.")


def _refuse_unknown_options(words: Sequence[str]) -> None:
    """Raises click.NoSuchOption for an option that the command of a job does not know, or that lacks its value."""
    from periplus.cli.main import main

    command: click.Command | None = main
    context, rest = click.Context(main, info_name="periplus"), list(words)
    while isinstance(command, click.Group) and rest:
        command = command.get_command(context, rest[0])
        if command is None:
            raise UsageError(f"{context.command_path} has no command {rest[0]}")
        context = click.Context(command, parent=context, info_name=rest[0], **command.context_settings)
        rest = command.make_parser(context).parse_args(rest[1:])[1]


@jobs.command("list")
@_queue_options
@option("-n --number most", "Jobs to list.", click.IntRange(1, 100_000), 30)
@format_option(("text", "json"))
@output_option
def list_jobs(folder: Path, store: str, most: int, format: str, output: Path | None) -> None:
    """List the jobs, those under way first, and the schedules."""
    from periplus.jobs.runner import opened_queue

    with opened_queue(folder, store) as (queue, _):
        latest, schedules = queue.jobs(most=most), queue.schedules()
    values = {"jobs": list(map(asdict, latest)), "schedules": list(map(asdict, schedules))}
    write_output(output, _lines(latest, schedules), values if format == "json" else None)


@jobs.command()
@_queue_options
@click.argument("job_ids", nargs=-1, required=True, type=WholeNumber(1), metavar="JOB...")
def cancel(folder: Path, store: str, job_ids: tuple[int, ...]) -> None:
    """Cancel jobs. A running job stores its finished requests and stops."""
    from periplus.jobs.runner import opened_queue

    with opened_queue(folder, store) as (queue, clock):
        for job_id in job_ids:
            job = queue.cancel(job_id, clock.now())
            say(f"Job {job.id}: {'stops' if job.cancel_asked and job.state == 'running' else job.state.value}.")


@jobs.command()
@_queue_options
@click.argument("schedule_id", type=WholeNumber(1), metavar="SCHEDULE")
@option("--pause/--resume paused", "Pause the schedule instead of removing it.", bool)
def unschedule(folder: Path, store: str, schedule_id: int, paused: bool | None) -> None:
    """End a schedule, or pause it. Jobs that it made stay."""
    from periplus.jobs.runner import opened_queue

    with opened_queue(folder, store) as (queue, _):
        if paused is None:
            queue.forget(schedule_id)
        else:
            queue.pause(schedule_id, paused=paused)


@jobs.command()
@_queue_options
def run(folder: Path, store: str) -> None:
    """Do the jobs that wait, and end when none is left."""
    _work(folder, store, StopOnSignal())


@click.command()
@_queue_options
@option(
    "--auth",
    "Credentials of the crawl to join: passwords are not stored.",
    str,
    "",
    metavar="USER:PASSWORD",
)
@option("--until-done", "End when no job waits or runs, as `periplus jobs run`.", bool)
@option(
    "--listen",
    "Answer /health and /metrics on this port; other hosts than 127.0.0.1 need PERIPLUS_TOKEN.",
    str,
    "",
    metavar="[HOST:]PORT",
)
@option("-q --quiet", "No progress of a crawl, only the result.", bool)
@verbose_option
def worker(folder: Path, store: str, auth: str, **flags: Any) -> None:
    """Join a crawl in a database; or do jobs as they come.

    With -c, where a crawl goes on there: works on it with its own settings, beside any number of others on any
    machines, and ends with it. Else: does the jobs of the queue until Ctrl-C or a crawl begins there, which it joins,
    or with --until-done until none is left; several workers share one.

    A worker that is killed loses nothing: its hosts are others' when its lease is over, its job is taken
    again after half a minute.

    \b
    periplus worker -c postgresql://me@db/crawls?collection=press
    """
    configure_logs(flags["verbose"])
    stopping = StopOnSignal()
    if flags["listen"]:
        _listen(flags["listen"], stopping, folder, store)
    join = service("joining a crawl") if store else None
    if join:
        join(store, auth, stopping, quiet=flags["quiet"])

    def join_crawl(job: Job | None) -> None:
        if join and int(time.monotonic()) % JOIN_EVERY_S == 0:
            with contextlib.suppress(UsageError):  # this worker lacks something that the crawl needs
                join(store, auth, stopping, quiet=flags["quiet"])

    _work(folder, store, stopping, None if flags["until_done"] else join_crawl)


def _listen(address: str, stopping: StopOnSignal, folder: Path, store: str) -> None:
    """Answers `/health` and `/metrics` beside the work. Healthy: the loop of the work turns."""
    from periplus.api.homes import collections_at
    from periplus.ui import monitoring
    from periplus.ui.safety import Locks, require_locks
    from periplus.ui.users import Users

    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > LARGEST_PORT:
        raise UsageError(f"{address!r} is no port: write 9100, or 0.0.0.0:9100 for other machines")
    names = (os.uname().nodename.lower(),)
    locks = Locks(os.environ.get(TOKEN, ""), names, Users(folder), host.strip("[]") or "127.0.0.1")
    require_locks(locks)
    routes = monitoring.monitoring_routes(
        lambda: time.monotonic() - stopping.polled < STALLED_S, lambda: collections_at([store or folder], folder)
    )
    if not monitoring.serve_beside(routes, locks, int(port)):
        raise StoreError(_no_listening(locks.host, int(port)))


def _no_listening(host: str, port: int) -> str:
    return f"nothing can listen on {host}, port {port}: another program has it, perhaps. Choose another port."


def _work(folder: Path, store: str, stopping: StopOnSignal, watch: Callable[[Job | None], None] | None = None) -> None:
    """Does jobs, and ends the program. watch: as the runner's watchers; None: ends when no job waits or runs."""
    from periplus.jobs.runner import Runner, opened_queue, run_jobs

    watchers = [watcher(folder) for _, watcher in loaded("after_jobs", object).values()]
    with opened_queue(folder, store, waits=True) as (queue, clock):
        say(f"Running the jobs of {without_secrets(store) or folder.resolve()}. Ctrl-C stops.")
        name = f"{os.uname().nodename}:{os.getpid()}"
        runner = Runner(folder, queue, clock, name, stopping.poll, [*watchers, *filter(None, [watch])])
        ended = run_jobs(runner, forever=watch is not None)
    say(f"{ended} job{'' if ended == 1 else 's'} ended.")
    sys.exit(EXIT_INTERRUPT if stopping.asked else 0)


def _lines(latest: Sequence[Job], schedules: Sequence[Schedule]) -> Iterator[str]:
    if not latest and not schedules:
        yield "No jobs: `periplus jobs add COMMAND...` asks for one."
    for job in latest:
        when = utc(job.ended) if job.ended else (utc(job.started) if job.started and job.state == "running" else "")
        share = f" {job.done:,} of {job.total:,}" if job.total and job.state == "running" else ""
        yield (
            f"{job.id:>5}  {job.state.value:<9} {shlex.join(job.order.command)}{share}"
            + (f"  {job.note}" if job.note else "")
            + (f"  ({when})" if when else "")
        )
    for schedule in schedules:
        state = "paused" if schedule.paused else f"next at {utc(schedule.next_at)}"
        yield (
            f"every {schedule.period_s / 3600:g} h  {shlex.join(schedule.order.command)}  "
            f"{state}  (schedule {schedule.id})"
        )


# `periplus serve`: collections in a browser, with a worker for what is asked for there.


@click.command()
@click.argument("given", nargs=-1, type=PLACE, metavar="[FOLDER|ADDRESS]...")
@place_flag("-c --collection", "A further collection, named as in other commands.", many=True)
@option("--host", "Address to listen on. Addresses reachable from other machines need --token.", str, "127.0.0.1")
@option("-p --port", "Port to listen on.", click.IntRange(1, LARGEST_PORT), 8321)
@click.option(
    "--token",
    envvar=TOKEN,
    default="",
    help="Token needed to open the interface. Better in the variable PERIPLUS_TOKEN.",
)
@option(
    "--name names",
    "A further host name of the server, for example behind a proxy.",
    str,
    metavar="HOST",
    many=True,
)
@option(
    "--add-user",
    "Give a user a new token, print it once, and end. The user's old token stops working.",
    str,
    "",
    metavar="NAME",
)
@option("--role", "Role of --add-user; each role includes the ones before.", ("look", "work", "administer"), "look")
@option("--remove-user", "Remove a user's access at once, and end.", str, "", metavar="NAME")
@option("--users", "List the users, and end.", bool)
@option("--no-workers", "Start no worker: jobs wait for a `periplus worker`.", bool)
@option("--open open_it", "Open it in the browser.", bool)
@log_format_option
def serve(given: tuple[Place, ...], host: str, port: int, token: str, names: tuple[str, ...], **flags: Any) -> None:
    """Show collections in a browser, and start and watch crawls there.

    FOLDER is a collection, a folder of collections (default: the current one), or the address of a collection in
    PostgreSQL. Only this machine can connect, unless --host is given. A worker runs beside the server and runs the
    jobs. Both end with Ctrl-C and lose nothing.

    \b
    periplus serve
    periplus serve ~/collections --port 9000 --open
    periplus serve -c 'postgresql://me@db/crawls?collection=press'
    PERIPLUS_TOKEN=... periplus serve --host 0.0.0.0 --name crawls.example.org
    periplus serve --add-user anna --role work      prints a token of her own
    """
    from periplus.cli.main import command_names
    from periplus.store.sqlite.job_file import DATABASE as JOBS
    from periplus.store.sqlite.job_file import remove_empty_file

    with extra_needed():
        from periplus.ui.routes import serve as serve_screens
    from periplus.ui.safety import Locks, require_locks
    from periplus.ui.state import AppState, places
    from periplus.ui.users import Users

    shown = places(dict.fromkeys((*given, *flags["collection"])))
    users = Users(shown.base)
    if flags["add_user"] or flags["remove_user"] or flags["users"]:
        _keep_users(users, flags)
        return
    locks = Locks(token, tuple(name.lower() for name in names), users, host)
    require_locks(locks)
    state = AppState(shown, locks, command_names(), works=not flags["no_workers"])
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    databases = [JOBS, *(name for feature in features().values() for name in feature.files)]
    files = [path for name in databases if not (path := shown.base / name).exists()]
    with contextlib.ExitStack() as stack:
        for path in files:  # files that it made and did not need
            stack.callback(remove_empty_file, path)
        if not flags["no_workers"]:
            stack.enter_context(_worker(shown.base))
        os.nice(NICENESS)
        say(f"{address}  Ctrl-C ends it.")
        if flags["open_it"]:
            webbrowser.open(address)
        if not serve_screens(state, port):
            raise StoreError(_no_listening(host, port))


def _keep_users(users: Users, flags: dict[str, Any]) -> None:
    """Adds, removes and lists users. Running servers apply it at once."""
    from periplus.ui.users import Role

    if flags["remove_user"]:
        users.remove(flags["remove_user"])
        say(f"{flags['remove_user']} can log in no longer.")
    if flags["add_user"]:
        token = users.add(flags["add_user"], Role(flags["role"]))
        say(f"{flags['add_user']} may {flags['role']}. This token is shown once:")
        click.echo(token)
    if flags["users"]:
        rows = [(user.name, user.role.value, utc(user.made)) for user in users.all()]
        write_table(("name", "role", "since"), rows, "table", sys.stdout)


def _worker(folder: Path) -> Command:
    # the collection of the environment has a queue of its own; this worker does the jobs of the interface
    environment = {name: text for name, text in os.environ.items() if name not in (TOKEN, COLLECTION_VARIABLE)}
    words = ("worker", "-d", str(folder))
    return Command(words, WORKER_GRACE_S, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
