"""`periplus notices`: notices of changes by mail or by a webhook, and the same as a feed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from periplus.cli.options import PLACE, WholeNumber, format_option, open_output, option, output_option, write_output
from periplus.cli.progress import say
from periplus.present.wording import utc, visible
from periplus.values import Place
from periplus_notices.model import Channel, NoticeKind

if TYPE_CHECKING:
    from periplus_notices.model import Notice, Subscription


def _folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    text = "The folder of collections whose notices are meant. By default the current one."
    return click.option(
        "-d", "--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path(), help=text
    )(command)


_collection_option = option(
    "-c --collection", "Only of this collection: its folder's name, or its address.", str, "", metavar="NAME|ADDRESS"
)


@click.group()
def notices() -> None:
    """Send notices of changes: broken links, vanished pages, new sites, entries of portals, failed jobs, suspicious
    ends.

    After each job its collections are compared with the notices sent before; each change is sent once. The first
    comparison of a collection sends nothing. notices.toml configures mail: docs/notices.md.

    \b
    periplus notices add ops@example.org
    periplus notices add https://example.org/hook --kind broken-links -c example.org.periplus
    periplus notices test 1
    periplus notices list
    """


@notices.command()
@_folder_option
@option("-k --kind kinds", "Only this kind; can be repeated.", [kind.value for kind in NoticeKind], many=True)
@_collection_option
@click.argument("target")
def add(folder: Path, kinds: tuple[str, ...], collection: str, target: str) -> None:
    """Tell TARGET, a mail address or a URL, what changes from now on."""
    from periplus_notices.api import subscribe

    made, secret = subscribe(folder, target, kinds, collection)
    say(f"Subscription {made.id}: `periplus notices test {made.id}` tries it.")
    if made.channel is Channel.WEBHOOK:
        say(
            "Each request is signed in the header Periplus-Signature (t=..., v1=HMAC-SHA256 "
            "of `t.body`) with this secret:"
        )
        click.echo(secret)


@notices.command()
@_folder_option
@click.argument("subscription", type=WholeNumber(1))
def remove(folder: Path, subscription: int) -> None:
    """Tell a subscriber nothing more; the numbers are in the list."""
    from periplus_notices.api import book

    with book(folder) as notice_book:
        notice_book.unsubscribe(subscription)


@notices.command("list")
@_folder_option
@option("-n --number most", "Notices to list.", click.IntRange(1, 1000), 20)
@format_option(("text", "json"))
@output_option
def list_notices(folder: Path, most: int, format: str, output: Path | None) -> None:
    """List the subscriptions, how their notices fared, and the newest notices."""
    from periplus_notices.api import book
    from periplus_notices.present import as_values

    with book(folder) as notice_book:
        subscriptions, standing = notice_book.subscriptions(), notice_book.standing()
        latest = notice_book.notices(most=most)
    rows = [asdict(subscription) | _delivery_counts(standing.get(subscription.id)) for subscription in subscriptions]
    values = {"subscriptions": rows, "notices": list(map(as_values, latest))}
    write_output(output, _lines(subscriptions, standing, latest), values if format == "json" else None)


def _delivery_counts(counts: tuple[int, int, int, str] | None) -> dict[str, object]:
    return dict(zip(("sent", "waiting", "given_up", "fault"), counts or (0, 0, 0, ""), strict=True))


def _lines(
    subscriptions: list[Subscription], standing: dict[int, tuple[int, int, int, str]], latest: list[Notice]
) -> Iterator[str]:
    from periplus_notices.present import lines, title

    if not subscriptions:
        yield "No subscribers: `periplus notices add` adds a mail address or a URL."
    for subscription in subscriptions:
        sent, waiting, given_up, fault = standing.get(subscription.id, (0, 0, 0, ""))
        what = ", ".join(subscription.kinds) or "everything"
        yield f"{subscription.id:>4}  {subscription.channel.value:<7} {subscription.target}  {what}" + (
            f", {subscription.collection}" if subscription.collection else ""
        )
        yield f"      {sent} sent, {waiting} waiting, {given_up} given up" + (
            f"; last fault: {visible(fault)}" if fault else ""
        )
    for notice in latest:
        yield f"{utc(notice.made)}  {title(notice)}"
        if notice.count > 1:
            yield from (f"      {line}" for line in lines(notice))


@notices.command()
@_folder_option
@click.argument("subscription", type=WholeNumber(1))
def test(folder: Path, subscription: int) -> None:
    """Send a test notice at once, and print whether it arrived."""
    from periplus_notices.api import test as send

    fault = send(folder, subscription)
    say(f"It did not arrive: {visible(fault)}" if fault else "It arrived.")
    sys.exit(1 if fault else 0)


@notices.command()
@_folder_option
@click.argument("collections", nargs=-1, type=PLACE, metavar="[FOLDER|ADDRESS]...")
def send(folder: Path, collections: tuple[Place, ...]) -> None:
    """Compare collections as after a job, by default all of the folder, and send what is due: for crawls that run
    without the queue.
    """
    from periplus.settings import SUFFIX
    from periplus_notices.api import deliver, look, noticed_name

    for collection in collections or sorted(folder.glob(f"*{SUFFIX}")):
        for notice in look(folder, collection, time.time()):
            say(f"{notice.kind.value}: {notice.count:,} in {noticed_name(collection)}")
    arrived, failed = deliver(folder)
    say(f"{arrived} sent, {failed} failed.")
    sys.exit(1 if failed else 0)


@notices.command()
@_folder_option
@_collection_option
@output_option
def feed(folder: Path, collection: str, output: Path | None) -> None:
    """Write the newest notices as an Atom feed; `periplus serve` has it at /feeds/all.atom."""
    from periplus_notices.api import feed as made

    with open_output(output, exact=True) as out:
        out.write(made(folder, collection))
