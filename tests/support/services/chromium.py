"""A Chromium of the machine, driven by Playwright, with what its pages complained about."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: It has no network to ask, and as root no sandbox.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


class NoChromiumError(Exception):
    """There is no Chromium here, or nothing to drive it with."""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """Start the browser of the machine, and end it.

    Raises:
        NoChromiumError: There is none, or it does not start.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NoChromiumError("the package playwright is not installed") from error
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        raise NoChromiumError(f"no {_NAMES[0]} is on the path (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        except Error as error:
            reason = str(error).splitlines()[0]
            raise NoChromiumError(f"{path} does not start: {reason}") from error
        try:
            yield browser
        finally:
            browser.close()
