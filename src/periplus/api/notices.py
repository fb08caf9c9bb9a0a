"""Detects changes in a folder of collections and notifies subscribers, by the settings in notices.toml."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import tomllib
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from tempfile import TemporaryDirectory

from periplus.acquire.clock import SystemClock
from periplus.acquire.post import send_mail, send_webhook
from periplus.api.collection import Collection
from periplus.api.grading import trends
from periplus.api.homes import folder_of, name_of
from periplus.errors import InvalidUrl, PeriplusError, UnknownSetting, UsageError
from periplus.masking import without_secrets
from periplus.model.job import Channel, Delivery, MailSettings, Notice, NoticeKind, NoticeSettings, Subscription
from periplus.model.ports import Clock
from periplus.present import text as present_text
from periplus.present.wording import size
from periplus.settings import SUFFIX, Identity
from periplus.store.database_address import address_of, is_address
from periplus.store.sqlite import notices, reading, schema
from periplus.store.sqlite.notices import NoticeStore
from periplus.urls.canonical import canonical

# The password comes from a file named in the settings or from the variable PERIPLUS_SMTP_PASSWORD: never from a command
# line, and it is not stored.

FILE = "notices.toml"
PASSWORD = "PERIPLUS_SMTP_PASSWORD"
_MAIL: dict[str, type] = {
    "server": str,
    "port": int,
    "security": str,
    "user": str,
    "password_file": str,
    "sender": str,
    "ca_file": str,
}
_WEBHOOK: dict[str, type] = {"allow_private": bool, "ca_file": str}
_TABLES: dict[str, dict[str, type]] = {"mail": _MAIL, "webhook": _WEBHOOK, "interface": {"address": str}}


def notice_settings(folder: Path) -> NoticeSettings:
    """Raises UnknownSetting for an invalid file."""
    content = _read(folder / FILE)
    mail, webhook = content["mail"], content["webhook"]
    security = str(mail.get("security", "starttls"))
    if security not in ("tls", "starttls", "none"):
        raise UnknownSetting(f"{folder / FILE}: security must be tls, starttls or none, not {security!r}")
    settings = MailSettings(
        server=str(mail.get("server", "")), port=_port(mail.get("port"), security), security=security,
        user=str(mail.get("user", "")),
        password=_password(folder, str(mail.get("password_file", ""))), sender=str(mail.get("sender", "")),
        ca_file=str(mail.get("ca_file", "")),
    )  # fmt: skip
    if settings.server and not ("@" in settings.sender and settings.sender.isprintable()):
        raise UnknownSetting(f"{folder / FILE}: the table [mail] needs a sender, like periplus@example.org")
    address = str(content["interface"].get("address", ""))
    return NoticeSettings(settings, webhook.get("allow_private") is True, str(webhook.get("ca_file", "")), address)


def _port(given: object, security: str) -> int:
    return given if isinstance(given, int) else {"tls": 465, "starttls": 587, "none": 25}[security]


def _password(folder: Path, file: str) -> str:
    if not file:
        return os.environ.get(PASSWORD, "")
    try:
        return (folder / file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnknownSetting(f"the password of the mail server cannot be read from {file}: {error}") from None


def _read(path: Path) -> dict[str, dict[str, object]]:
    try:
        content = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnknownSetting(f"{path} is not valid TOML: {error}") from None
    for name, table in content.items():
        if name not in _TABLES or not isinstance(table, dict):
            raise UnknownSetting(
                f"{path}: unknown table {name!r}; allowed are {', '.join(f'[{table}]' for table in _TABLES)}"
            )
        for key, value in table.items():
            if key not in _TABLES[name] or not isinstance(value, _TABLES[name][key]):
                raise UnknownSetting(
                    f"{path}: [{name}] may have {', '.join(_TABLES[name])}, each of its type; "
                    f"{key} = {value!r} is not allowed"
                )
    return {name: content.get(name, {}) for name in _TABLES}


READ_S = 60.0
REPORT_BYTES = 5_000_000  # many mail servers reject messages above 10 MB, and base64 adds a third
NO_MAIL = "no mail server is set: name one in notices.toml, see docs/notices.md"


@contextlib.contextmanager
def book(folder: Path) -> Iterator[NoticeStore]:
    """The store of notices of a folder of collections."""
    opened = NoticeStore(folder)
    try:
        yield opened
    finally:
        opened.close()


def subscribe(folder: Path, target: str, kinds: Sequence[str] = (), collection: str = "") -> tuple[Subscription, str]:
    """Subscribes a mail address or webhook URL to kinds of notices; empty: all kinds.

    collection: only this one, by folder name or address. Also returns the secret that signs webhook requests. Raises
    UsageError.
    """
    chosen = []
    for kind in kinds:
        if kind not in list(NoticeKind):
            raise UsageError(f"unknown kind of notice {kind[:50]!r}: choose among {', '.join(NoticeKind)}")
        chosen.append(NoticeKind(kind))
    channel, plain = _target(target.strip())
    if channel is Channel.MAIL and not notice_settings(folder).mail.server:
        raise UsageError(NO_MAIL)
    name = noticed_name(collection) if is_address(collection) else collection
    with book(folder) as opened:
        return opened.subscribe(channel, plain, tuple(dict.fromkeys(chosen)), name, time.time())


def _target(text: str) -> tuple[Channel, str]:
    if text.startswith(("http://", "https://")):
        with contextlib.suppress(InvalidUrl):
            if "@" in text.partition("://")[2].partition("/")[0]:
                raise UsageError("a webhook URL must not have a user and password: its requests are signed")
            return Channel.WEBHOOK, canonical(text)
    name, at, host = text.rpartition("@")
    if (
        not (name and at and host and text.isascii() and text.isprintable())
        or any(sign in text for sign in " ,;<>\"'()\\")
        or ":" in text
    ):
        raise UsageError(f"{text[:100]!r} is neither a mail address nor a URL")
    return Channel.MAIL, text


def look(folder: Path, place: Path | str, now: float) -> list[Notice]:
    """Stores notices of what changed in a collection since the last call. place: a folder or a database address.

    Raises NoCollection, StoreError.
    """
    collection, name = folder_of(place), noticed_name(place)
    with (
        reading.opened(collection, READ_S) as connection,
        reading.snapshot(connection),
    ):
        facts, run = notices.facts(connection), notices.newest_run(connection)
    with book(folder) as opened:
        made = opened.compare(name, run, facts, now)
        if run and any(NoticeKind.REPORT in subscription.kinds for subscription in opened.subscriptions()):
            words = present_text.health_lines(trends(collection))
            report = opened.note(NoticeKind.REPORT, name, f"run {run}", words, now)
            made += [report] if report is not None else []
        return made


def add_failure(
    folder: Path, job: int, sentence: str, place: Path | str | None, now: float, epoch: int
) -> Notice | None:
    """Stores a notice that a job failed. sentence: its command and its last message."""
    with book(folder) as opened:
        name = noticed_name(place) if place else ""
        return opened.note(NoticeKind.FAILED, name, f"job {job} {epoch}", [sentence], now)


def noticed_name(place: Path | str) -> str:
    """Name of a collection in notices: its folder's name, or its address without password. Raises UsageError."""
    if isinstance(place, Path):
        return place.resolve().name
    return without_secrets(dataclasses.replace(address_of(place), segments="").text)


def collections_of(folder: Path, command: Sequence[str]) -> list[Path | str]:
    """Collections named in the words of a command: folders and database addresses."""
    words = [word.partition("=")[2] if word.startswith("--") else word for word in command[1:]]
    places = [word if is_address(word) else folder / word for word in words if word and "\0" not in word]
    return list(dict.fromkeys(place for place in places if isinstance(place, str) or _is_collection(place)))


def _is_collection(path: Path) -> bool:
    return len(path.name) < 250 and schema.exists(path)


def deliver(folder: Path, clock: Clock | None = None) -> tuple[int, int]:
    """Sends due notices. Returns (delivered, failed). Raises UnknownSetting."""
    settings, clock = notice_settings(folder), clock or SystemClock()
    counts = [0, 0]
    with book(folder) as opened:
        while taken := opened.take(clock.now()):
            for delivery, fault in _send(taken, settings, clock, folder):
                opened.ended(delivery, fault, clock.now())
                counts[bool(fault)] += 1
    return counts[0], counts[1]


def _send(
    taken: Sequence[Delivery], settings: NoticeSettings, clock: Clock, folder: Path
) -> Iterator[tuple[Delivery, str]]:
    """Yields each delivery with its error, or ''. One mail contains all due notices of a subscriber."""
    letters: dict[int, list[Delivery]] = {}
    for delivery in taken:
        if delivery.subscription.channel is Channel.MAIL:
            letters.setdefault(delivery.subscription.id, []).append(delivery)
        else:
            yield delivery, _post(delivery.notice, delivery.subscription, delivery.secret, settings, clock)
    for due in letters.values():
        fault = _mail([delivery.notice for delivery in due], due[0].subscription.target, settings, folder)
        yield from ((delivery, fault) for delivery in due)


def _post(notice: Notice, subscription: Subscription, secret: str, settings: NoticeSettings, clock: Clock) -> str:
    identity = Identity(allow_private=settings.allow_private, ca_file=settings.ca_file)
    return send_webhook(
        canonical(subscription.target), present_text.posted(notice, settings.address), secret, identity, clock
    )


def _mail(notices: Sequence[Notice], target: str, settings: NoticeSettings, folder: Path | None = None) -> str:
    """Sends one mail; returns an error or ''. folder: contains the collections whose reports are attached."""
    mail: MailSettings = settings.mail
    if not mail.server:
        return NO_MAIL
    letter = EmailMessage()
    letter["Subject"], text = present_text.letter(notices, settings.address)
    letter["From"], letter["To"], letter["Date"] = mail.sender, target, formatdate()
    letter["Message-ID"] = make_msgid(f"{notices[0].id}", mail.sender.rpartition("@")[2])
    letter["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses automatic replies
    reports = dict.fromkeys(notice.collection for notice in notices if notice.kind is NoticeKind.REPORT)
    places = {name: name if is_address(name) else folder / name for name in reports} if folder is not None else {}
    pages = {name: _report(place, "html") for name, place in places.items()}
    text += "".join(f"\n{name}: {words}\n" for name, words in pages.items() if isinstance(words, str))
    letter.set_content(text.encode("utf-8", "replace").decode())
    for name, page in pages.items():
        if isinstance(page, bytes):
            plain = name_of(places[name]).removesuffix(SUFFIX)
            letter.add_attachment(page, "text", "html", filename=f"{plain}-report.html")
        # a PDF is attached only if the extra for it is installed
        if isinstance(sheet := _report(places[name], "pdf"), bytes):
            letter.add_attachment(sheet, "application", "pdf", filename=f"{plain}-report.pdf")
    return send_mail(letter, mail)


def _report(place: Path | str, ending: str) -> bytes | str:
    """The report of a collection as HTML or PDF, or a sentence why there is none."""
    try:
        with Collection(folder_of(place)) as opened, TemporaryDirectory() as draft:
            page = opened.report(Path(draft) / f"report.{ending}").read_bytes()
    except (PeriplusError, OSError) as error:
        return f"the report failed: {error}"
    if len(page) > REPORT_BYTES:
        return f"the report is too large to attach ({size(len(page))}): run `periplus report -c {noticed_name(place)}`"
    return page


def test(folder: Path, subscription: int) -> str:
    """Sends a test notice to one subscriber; returns an error, or '' on success.

    Raises UsageError for an unknown subscription.
    """
    settings = notice_settings(folder)
    with book(folder) as opened:
        chosen = next((known for known in opened.subscriptions() if known.id == subscription), None)
        secret = opened.secret_of(subscription)
    if chosen is None:
        raise UsageError(f"no subscription {subscription}; `periplus notices list` shows all")
    now = time.time()
    notice = Notice(0, f"test {now}", NoticeKind.SITES, "", now, ("this is a test: nothing has changed",), 1)
    if chosen.channel is Channel.MAIL:
        return _mail([notice], chosen.target, settings)
    return _post(notice, chosen, secret, settings, SystemClock())


def feed(folder: Path, collection: str = "") -> str:
    """The newest notices as an Atom feed. collection: folder name or address; empty: all collections."""
    try:
        address = notice_settings(folder).address
    except PeriplusError:  # the feed works without valid settings
        address = ""
    name = noticed_name(collection) if is_address(collection) else collection
    with book(folder) as opened:
        newest = opened.notices(collection=name)
    return present_text.feed(newest, name, address, 0.0)
