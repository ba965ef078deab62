"""Sets logging up: a rotating file with the tick's id in each line, and warnings on the console.

Text from outside cannot forge a line, since control characters are escaped, and no registered
secret leaves the process in any of its usual spellings. What belongs to a row of a ledger is
recorded there; the log is for the person who wants to know how it came about.
"""

import contextlib
import logging
import logging.handlers
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from harness.errors import StateError
from harness.platform.files import make_private
from harness.platform.masking import masked
from harness.platform.text import escaped, json_text

#: The tick that the running code belongs to; a dash outside of ticks.
_tick_id: ContextVar[str] = ContextVar("tick_id", default="-")

#: Libraries that log at INFO what only their developers need.
_CHATTY = ("py4j", "databricks", "urllib3", "requests", "dbt", "pyspark")

_COLOURS = {logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "31"}


@contextmanager
def log_as_tick(tick_id: str) -> Iterator[None]:
    """Put this tick's id into every line that is logged inside the block."""
    token = _tick_id.set(tick_id)
    try:
        yield
    finally:
        _tick_id.reset(token)


class FileFormatter(logging.Formatter):
    """Writes ``instant tick level logger message``; a stack trace's lines get that head too."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text, each line of it complete in itself."""
        tick_id = escaped(_tick_id.get())
        head = f"{_instant(record)} {tick_id} {record.levelname} {record.name}"
        message = escaped(masked(record.getMessage()))
        lines = [f"{head} {message}", *(f"{head} | {line}" for line in _trace_lines(record))]
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """Writes one JSON object for each record, stack trace included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        trace = "\n".join(_trace_lines(record))
        content = {
            "at": _instant(record),
            "tick": _tick_id.get(),
            "level": record.levelname,
            "logger": record.name,
            "message": masked(record.getMessage()),
        }
        return json_text(content | ({"trace": trace} if trace else {}))


def _instant(record: logging.LogRecord) -> str:
    instant = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return instant.replace("+00:00", "Z")


class ConsoleFormatter(logging.Formatter):
    """Writes ``warning: message`` on one line."""

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, without its stack trace."""
        level = record.levelname.lower()
        if self._colour and record.levelno in _COLOURS:
            level = f"\x1b[{_COLOURS[record.levelno]}m{level}\x1b[0m"
        return f"{level}: {escaped(masked(record.getMessage()))}"


def _trace_lines(record: logging.LogRecord) -> list[str]:
    if not record.exc_info:
        return []
    text = masked(logging.Formatter().formatException(record.exc_info))
    return [escaped(line) for line in text.split("\n")]


class _QuietMixin:
    """A log that cannot be written (a full disk) is lost; the tick goes on."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing."""


class _RotatingHandler(_QuietMixin, logging.handlers.RotatingFileHandler):
    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


class _AppendingHandler(_QuietMixin, logging.handlers.WatchedFileHandler):
    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """When a log file is full, and how many full ones are kept."""

    max_bytes: int = 5_000_000
    keep: int = 5


def set_up_logging(
    home: Path,
    *,
    is_writer: bool,
    is_json: bool = False,
    console: TextIO | None = None,
    rotation: Rotation | None = None,
) -> None:
    """Send every record to ``<home>/logs/heartbeat.log`` and our own warnings to the console.

    Calling it again replaces what an earlier call set up.

    Args:
        home: The state directory.
        is_writer: This process holds the lock, so it may rotate the file; others only append.
        is_json: Each line is a JSON object, in the file and on the console.
        console: Where warnings go; the standard error stream when not given.
        rotation: When the file is full.

    Raises:
        StateError: The file cannot be opened.
    """
    path, full = home / "logs" / "heartbeat.log", rotation or Rotation()
    file_handler: logging.FileHandler
    try:
        make_private(home)
        path.parent.mkdir(exist_ok=True)
        if is_writer:
            file_handler = _RotatingHandler(
                path, maxBytes=full.max_bytes, backupCount=full.keep, encoding="utf-8"
            )
        else:
            file_handler = _AppendingHandler(path, encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StateError(
            f"The log {path} cannot be written ({reason}): make room or make it writable"
        ) from error
    file_handler.setFormatter(JsonFormatter() if is_json else FileFormatter())
    console_handler = _console_handler(console or sys.stderr)
    if is_json:
        console_handler.setFormatter(JsonFormatter())
    _install(file_handler, console_handler)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


def _console_handler(stream: TextIO) -> logging.Handler:
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.WARNING)
    handler.addFilter(logging.Filter("harness"))
    colour = stream.isatty() and "NO_COLOR" not in os.environ
    handler.setFormatter(ConsoleFormatter(colour=colour))
    return handler


def _install(*handlers: logging.Handler) -> None:
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    for handler in list(root.handlers):
        if isinstance(handler.formatter, FileFormatter | ConsoleFormatter | JsonFormatter):
            root.removeHandler(handler)
            handler.close()
    for handler in handlers:
        root.addHandler(handler)


def silence_pyspark_queries() -> None:
    """Stop PySpark from printing each failed statement to the console as JSON.

    The error itself is raised as well, and reported in one sentence. To be called once PySpark is
    imported: its loggers are of a class of its own.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
