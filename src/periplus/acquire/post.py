"""How does a letter leave? The one file that speaks to mail servers."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from email.message import EmailMessage

from periplus.model.notice import MailSettings

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
        return f"{settings.server}:{settings.port}: {type(error).__name__}: {error}".replace(settings.password or "\0", "***")
    return f"refused for {', '.join(refused)}" if refused else ""
