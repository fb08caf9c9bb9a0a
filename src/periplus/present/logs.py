"""Log lines on stderr, as text or as JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import Final

from periplus.masking import without_secrets

# in the environment, so that child processes inherit the format
FORMAT_VARIABLE: Final = "PERIPLUS_LOG_FORMAT"
LEVEL_VARIABLE: Final = "PERIPLUS_LOG_LEVEL"
TEXT, JSON = FORMATS = ("text", "json")
_TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class JsonLines(logging.Formatter):
    """One JSON object a line, without secrets.

    Keys: time (UTC), level, logger, message, host (name of this machine), worker (process id), run (number of the
    crawl's run, or null), and error with the traceback if there is one.
    """

    run: int | None = None

    def format(self, record: logging.LogRecord) -> str:
        values: dict[str, object] = {
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
    return os.environ.get(FORMAT_VARIABLE) == JSON


def configure(level: int) -> None:
    """Sends log records from a level on to stderr; uncaught exceptions and warnings too if the format is JSON."""
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines() if is_json() else logging.Formatter(_TEXT_FORMAT))
        root.addHandler(handler)
    root.setLevel(level)
    if is_json():
        logging.getLogger("periplus.cli").setLevel(min(level, logging.INFO))  # what commands print
        os.environ[LEVEL_VARIABLE] = str(level)
        logging.captureWarnings(True)
        sys.excepthook = _log_exception


def configure_child() -> None:
    """Configures the logs of a child process as those of its parent, if their format is JSON."""
    if is_json():
        configure(int(os.environ[LEVEL_VARIABLE]))


def enter_run(run_id: int) -> None:
    """Adds the number of a run to further lines."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, JsonLines):
            handler.formatter.run = run_id


def _log_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("periplus").critical("%s: %s", kind.__name__, error, exc_info=(kind, error, trace))
