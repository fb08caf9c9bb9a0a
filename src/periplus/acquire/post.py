"""Sends notices by mail (no other file connects to mail servers) and by webhook (a POST to another program)."""

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

# A webhook is one POST by the crawler's transport, which refuses private addresses. Redirects are not followed.

LIMITS = FetchLimits(body_bytes=65_536, inflated_bytes=65_536, total_timeout_s=15.0, first_byte_timeout_s=10.0)
SIGNATURE = "Periplus-Signature"


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


TIMEOUT_S = 30.0


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
