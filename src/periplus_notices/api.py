"""Detects changes in a folder of collections and notifies subscribers, by the settings in notices.toml."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
import shlex
import smtplib
import ssl
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

from periplus.acquire.clock import SystemClock
from periplus.acquire.transport import CurlTransport, Wire
from periplus.api.functions import open_collection
from periplus.api.grading import trends
from periplus.api.homes import database_at, is_collection, name_of, snapshot_of
from periplus.errors import InvalidUrl, PeriplusError, UnknownSetting, UsageError
from periplus.features import is_address
from periplus.model.job import Job, JobState
from periplus.model.ports import Clock
from periplus.model.visit import Cause, Request
from periplus.model.web import Url
from periplus.present.text import health_lines
from periplus.present.wording import size
from periplus.settings import SUFFIX, FetchLimits, Identity
from periplus.urls.canonical import canonical
from periplus.values import Place
from periplus_notices import present
from periplus_notices.model import Channel, Delivery, MailSettings, Notice, NoticeKind, NoticeSettings, Subscription
from periplus_notices.store import NoticeStore, facts

# The password comes from a file named in the settings or from the variable PERIPLUS_SMTP_PASSWORD: never from a command
# line, and it is not stored.

FILE = "notices.toml"
PASSWORD = "PERIPLUS_SMTP_PASSWORD"
_PORTS = {"tls": 465, "starttls": 587, "none": 25}
_TABLES: dict[str, dict[str, type]] = {
    "mail": get_type_hints(MailSettings) | {"password_file": str},
    "webhook": {"allow_private": bool, "ca_file": str},
    "interface": {"address": str},
}
del _TABLES["mail"]["password"]  # belongs into a file of its own
READ_S = 60.0
REPORT_BYTES = 5_000_000  # many mail servers reject messages above 10 MB, and base64 adds a third
NO_MAIL = "no mail server is set: name one in notices.toml, see docs/notices.md"
LOOK_EVERY_S = 30.0  # how often an idle runner tries again to send notices
LIMITS = FetchLimits(body_bytes=65_536, inflated_bytes=65_536, total_timeout_s=15.0, first_byte_timeout_s=10.0)
SIGNATURE = "Periplus-Signature"
TIMEOUT_S = 30.0


def notice_settings(folder: Path) -> NoticeSettings:
    """Raises UnknownSetting for an invalid file."""
    content = _read(folder / FILE)
    mail: dict[str, Any] = content.pop("mail")
    password = _password(folder, mail.pop("password_file", ""))
    settings = MailSettings(**mail, password=password)
    if settings.security not in _PORTS:
        raise UnknownSetting(f"{folder / FILE}: security must be tls, starttls or none, not {settings.security!r}")
    if settings.server and not ("@" in settings.sender and settings.sender.isprintable()):
        raise UnknownSetting(f"{folder / FILE}: the table [mail] needs a sender, like periplus@example.org")
    values: dict[str, Any] = content.pop("webhook") | content.pop("interface")
    return NoticeSettings(replace(settings, port=settings.port or _PORTS[settings.security]), **values)


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
    name = noticed_name(collection)
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


def look(folder: Path, place: Place, now: float) -> list[Notice]:
    """Stores notices of what changed in a collection since the last call. place: a folder or a database address.

    Raises NoCollection, StoreError.
    """
    name = noticed_name(place)
    with snapshot_of(place) as reader, reader.limit_reads(READ_S):
        present_facts, run = facts(reader), reader.version()[0]
    with book(folder) as opened:
        made = opened.compare(name, run, present_facts, now)
        if run and any(NoticeKind.REPORT in subscription.kinds for subscription in opened.subscriptions()):
            words = health_lines(trends(place))
            report = opened.note(NoticeKind.REPORT, name, f"run {run}", words, now)
            made += [report] if report is not None else []
        return made


def add_failure(folder: Path, job: int, sentence: str, place: Place | None, now: float, epoch: int) -> Notice | None:
    """Stores a notice that a job failed. sentence: its command and its last message."""
    with book(folder) as opened:
        name = noticed_name(place) if place else ""
        return opened.note(NoticeKind.FAILED, name, f"job {job} {epoch}", [sentence], now)


def noticed_name(place: Place) -> str:
    """Name of a collection in notices: its folder's name, or its address without password. Raises UsageError.

    A text that is no address is such a name, or '' for all collections, and returned as it is.
    """
    if isinstance(place, Path):
        return place.resolve().name
    return database_at(place).plain(place) if is_address(place) else place


def collections_of(folder: Path, command: Sequence[str]) -> list[Place]:
    """Collections named in the words of a command: folders and database addresses."""
    words = [word.partition("=")[2] if word.startswith("--") else word for word in command[1:]]
    places = [word if is_address(word) else folder / word for word in words if word and "\0" not in word]
    return list(dict.fromkeys(place for place in places if isinstance(place, str) or _is_collection(place)))


def _is_collection(path: Path) -> bool:
    return len(path.name) < 250 and is_collection(path)


def deliver(folder: Path, clock: Clock | None = None) -> tuple[int, int]:
    """Sends due notices. Returns (delivered, failed). Raises UnknownSetting."""
    settings, clock = notice_settings(folder), clock or SystemClock()
    counts = [0, 0]
    with book(folder) as opened:
        while taken := opened.take(clock.now()):
            for delivery, fault in _send(taken, settings, clock, folder):
                opened.end_attempt(delivery, fault, clock.now())
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
        canonical(subscription.target), present.webhook_body(notice, settings.address), secret, identity, clock
    )


def _mail(notices: Sequence[Notice], target: str, settings: NoticeSettings, folder: Path | None = None) -> str:
    """Sends one mail; returns an error or ''. folder: contains the collections whose reports are attached."""
    mail: MailSettings = settings.mail
    if not mail.server:
        return NO_MAIL
    letter = EmailMessage()
    letter["Subject"], text = present.letter(notices, settings.address)
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


def _report(place: Place, ending: str) -> bytes | str:
    """The report of a collection as HTML or PDF, or a sentence why there is none."""
    try:
        with open_collection(place) as opened, TemporaryDirectory() as draft:
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
    name = noticed_name(collection)
    with book(folder) as opened:
        newest = opened.notices(collection=name)
    return present.feed(newest, name, address, 0.0)


_log = logging.getLogger(__name__)


class Notifier:
    """Called by a runner after each job, and with None while it is idle.

    Errors do not affect the job: they are logged, and sending is tried again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0.0

    def __call__(self, job: Job | None) -> None:
        if job is None and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LOOK_EVERY_S
        try:
            if job is not None:
                self._look(job)
            deliver(self._folder)
        except PeriplusError as error:
            _log.warning("notices folder=%s error=%s", self._folder, error)

    def _look(self, job: Job) -> None:
        now, folder = time.time(), self._folder
        collections = collections_of(folder, job.order.command)
        if job.state is JobState.FAILED:
            message = f"periplus {shlex.join(job.order.command)}: {job.note}"
            add_failure(folder, job.id, message, collections[0] if collections else None, now, job.epoch)
        for collection in collections:
            with contextlib.suppress(PeriplusError):  # its job has already reported a damaged collection
                look(folder, collection, now)


# A webhook is one POST by the crawler's transport, which refuses private addresses. Redirects are not followed.


def signature(secret: str, body: bytes, at: int) -> str:
    """t: time of signing, seconds since the epoch; v1: HMAC-SHA256 of `t.body`, hexadecimal.

    A receiver that checks t rejects replayed notices.
    """
    mac = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def send_webhook(url: Url, body: bytes, secret: str, identity: Identity, clock: Clock) -> str:
    """POSTs a notice. Returns "" if the server accepted it (status 200 to 299), else the reason."""
    fields = (
        "Content-Type: application/json; charset=utf-8",
        "Expect:",
        f"{SIGNATURE}: {signature(secret, body, int(clock.now()))}",
    )
    transport = CurlTransport(Wire(LIMITS, identity, 1), clock)
    try:
        transport.start(Request(url, body=body, fields=fields))
        answers = transport.wait(LIMITS.total_timeout_s + 1.0)
    finally:
        transport.close()
    if not answers:
        return "timeout"
    answer = answers[0]
    if answer.cause is Cause.PRIVATE:
        return "private address; to allow it, set allow_private = true under [webhook] in notices.toml"
    if answer.cause is not None:
        return f"{answer.cause.value}: {answer.detail}" if answer.detail else answer.cause.value
    return "" if 200 <= answer.status < 300 else f"status {answer.status}"


def send_mail(letter: EmailMessage, settings: MailSettings) -> str:
    """Sends a mail. Returns "" if the server accepted it, else the reason. Server and network errors do not raise."""
    context = ssl.create_default_context(cafile=settings.ca_file or None) if settings.security != "none" else None
    try:
        if settings.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(settings.server, settings.port, timeout=TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(settings.server, settings.port, timeout=TIMEOUT_S)
        try:
            if settings.security == "starttls":
                server.starttls(context=context)
            if settings.user:
                server.login(settings.user, settings.password)
            refused = server.send_message(letter)
        finally:  # the mail was accepted or refused before: the answer to QUIT does not matter
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: invalid address
        return f"{settings.server}:{settings.port}: {type(error).__name__}: {error}".replace(
            settings.password or "\0", "***"
        )
    return f"refused for {', '.join(refused)}" if refused else ""
