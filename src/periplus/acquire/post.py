"""Sends notices: by mail, as the one file that speaks to mail servers, and as a POST to another program."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import smtplib
import ssl
from email.message import EmailMessage

from periplus.acquire.transport import CurlTransport, Wire
from periplus.model.job import MailSettings
from periplus.model.ports import Clock
from periplus.model.visit import Cause, Request
from periplus.model.web import Url
from periplus.settings import FetchLimits, Identity

# A webhook is one POST by our own transport: the rule on private addresses holds, nothing is followed.

LIMITS = FetchLimits(body_bytes=65_536, inflated_bytes=65_536, total_timeout_s=15.0, first_byte_timeout_s=10.0)
SIGNATURE = "Periplus-Signature"


def signature(secret: str, body: bytes, at: int) -> str:
    """t: when it was signed, seconds since the epoch; v1: HMAC-SHA256 of `t.body`, hexadecimal.

    Who checks t takes no old notice twice.
    """
    mac = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def send_webhook(url: Url, body: bytes, secret: str, identity: Identity, clock: Clock) -> str:
    """Empty: the server took it, with a status of 200 to 299; else why not."""
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
        return "no answer in time"
    answer = answers[0]
    if answer.cause is Cause.PRIVATE:
        return "a private address: allow_private = true in the table [webhook] of notices.toml allows it"
    if answer.cause is not None:
        return f"{answer.cause.value}: {answer.detail}" if answer.detail else answer.cause.value
    return "" if 200 <= answer.status < 300 else f"status {answer.status}"


TIMEOUT_S = 30.0


def send_mail(letter: EmailMessage, settings: MailSettings) -> str:
    """Empty: the server took it; else why not. Raises nothing for what a server or network does."""
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
        finally:  # what it says to our good-bye, when it has taken the letter or refused it, changes nothing
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except (smtplib.SMTPException, OSError, ValueError) as error:  # ValueError: an address that is none
        return f"{settings.server}:{settings.port}: {type(error).__name__}: {error}".replace(
            settings.password or "\0", "***"
        )
    return f"refused for {', '.join(refused)}" if refused else ""
