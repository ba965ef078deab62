"""Sends one message through Apprise; runs in a process of its own (``delivery``).

It reads a request from its standard input and prints how it ended. No address is printed.
"""

import json
import logging
import sys

#: What pip installs for it.
EXTRA = "alarms"


class _LastWarning(logging.Handler):
    """Keeps what the library logged last, which is its reason for a failure."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.words = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.words = record.getMessage()


def send(request: dict[str, str]) -> str | None:
    """Send a message, and return why it was not sent; nothing when it was.

    Args:
        request: ``url``, ``title``, ``body`` and ``type``, as Apprise has them.
    """
    try:
        from apprise import Apprise, NotifyFormat
    except ModuleNotFoundError:
        return f"the package apprise is missing; pip install 'heartbeat[{EXTRA}]'"
    warnings = _LastWarning()
    logger = logging.getLogger("apprise")
    logger.addHandler(warnings)
    logger.propagate = False
    sender = Apprise()
    if not sender.add(request["url"]):
        return "its address is not a URL that Apprise supports"
    is_sent = sender.notify(
        body=request["body"],
        title=request["title"],
        notify_type=request["type"],
        body_format=NotifyFormat.TEXT,
    )
    return None if is_sent else warnings.words or "the service refused the message without a reason"


def main() -> None:
    """Send what the standard input has."""
    reason = send(json.load(sys.stdin))
    json.dump({"delivered": 0 if reason else 1, "reason": reason}, sys.stdout)


if __name__ == "__main__":
    main()
