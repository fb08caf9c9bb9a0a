"""Log lines on stderr, as text or as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final

from periplus.masking import without_secrets

FORMAT_VARIABLE: Final = "PERIPLUS_LOG_FORMAT"  # in the environment, so that child processes inherit the format
FORMATS = ("text", "json")


class JsonLines(logging.Formatter):
    """One JSON object a line, without secrets.

    Keys: time (UTC), level, logger, message, host (name of this machine), worker (process id), run (number of the
    crawl's run, or null), and error with the traceback if there is one.
    """

    run: int | None = None  # of this process: set on the class

    def format(self, record: logging.LogRecord) -> str:
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
            "host": os.uname().nodename,
            "worker": os.getpid(),
            "run": self.run,
        }
        if record.exc_info:
            values["error"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(values, ensure_ascii=False)


def is_json() -> bool:
    return os.environ.get(FORMAT_VARIABLE) == "json"


def configure(level: int) -> None:
    """Sends log records from a level on to stderr; uncaught exceptions and warnings too if the format is JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if is_json() else logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    )
    logging.basicConfig(handlers=[handler])
    logging.root.setLevel(level)
    if is_json():
        logging.getLogger("periplus.cli").setLevel(logging.INFO)  # what commands print
        logging.captureWarnings(True)
        sys.excepthook = lambda *error: logging.critical("%s: %s", error[0].__name__, error[1], exc_info=error)


def configure_child() -> None:
    """Configures the logs of a child process if their format is JSON: errors and warnings."""
    if is_json():
        configure(logging.WARNING)
