"""Reaches a Databricks workspace through the databricks-sdk: one HTTP request per call.

The SDK would wait and retry for minutes, and follow every redirect. The caller has the deadline,
and needs the exact number of requests that were sent.
"""

import json
import logging
import os
import re
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import Clock as SdkClock
from databricks.sdk.config import Config, ConfigAttribute
from databricks.sdk.errors import PermissionDenied, Unauthenticated
from databricks.sdk.errors.base import DatabricksError
from requests import TooManyRedirects

from harness import __version__
from harness.errors import ConfigurationError
from harness.platform.masking import mask, masked
from harness.platform.text import storable

logger = logging.getLogger(__name__)

_PAST_ANY_DEADLINE = 86_400.0
#: How long a host may take at the start to answer at all.
_SECONDS_TO_SHOW_UP = 5.0
_LONGEST_MESSAGE = 500
_LONGEST_PLACE = 100


def bounded_config(
    *, host: str | None = None, token: str | None = None, http_timeout_seconds: float = 25.0
) -> "BoundedConfig":
    """Return how to reach a workspace; what is left out, the SDK finds in its own environment.

    Raises:
        ValueError: There are no credentials that the SDK can use.
        OSError: A file of the SDK's cannot be read.
    """
    config = BoundedConfig(
        host=host,
        token=token,
        auth_type="pat" if token else None,
        http_timeout_seconds=http_timeout_seconds,
        retry_timeout_seconds=1,
        clock=OneRequestClock(),
        product="heartbeat",
        product_version=__version__,
    )
    for setting in config.attributes():
        if setting.sensitive:
            mask(str(getattr(config, setting.name) or ""))
    return config


def login_for_dbt(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what dbt's profile has to find in the environment for one invocation.

    dbt-databricks accepts a token and a service principal's secret; of every other login of the SDK
    (a profile, a cloud's own, that of the task) it gets a token, which is new for each invocation.

    Args:
        environment: The variables of the process.

    Raises:
        ConfigurationError: There is no login.
    """
    if any(environment.get(name) for name in ("DATABRICKS_TOKEN", "DATABRICKS_CLIENT_SECRET")):
        return {}
    try:
        config = bounded_config()
        kind, _, token = config.authenticate().get("Authorization", "").partition(" ")
    except (ValueError, OSError) as error:
        raise ConfigurationError(
            f"There is no login for dbt: {words_of(error)}; log in as the Databricks SDK does it,"
            " such as by `databricks auth login` or DATABRICKS_HOST with DATABRICKS_CLIENT_ID and"
            " DATABRICKS_CLIENT_SECRET"
        ) from error
    if kind != "Bearer" or not token:
        raise ConfigurationError(
            f"There is no login for dbt: the login '{config.auth_type}' of the Databricks SDK has"
            " no token; use OAuth"
        )
    mask(token)
    # dbt hides what has this prefix, and takes it in profiles.yml alone.
    return {"DBT_ENV_SECRET_HEARTBEAT_TOKEN": token, "DATABRICKS_HOST": str(config.host)}


def workspace_client(config: "BoundedConfig") -> WorkspaceClient:
    """Return a client that sends one request per call, and follows no answer elsewhere."""
    client = WorkspaceClient(config=config)
    # The SDK has no setting for it. A 307 would have a start sent twice, under one call.
    client.api_client._api_client._session.max_redirects = 0
    return client


def is_about_login(error: BaseException) -> bool:
    """Return whether it is the login that a workspace did not take; a page to log in counts."""
    return isinstance(error, Unauthenticated | PermissionDenied | TooManyRedirects)


def described(error: BaseException) -> str:
    """Put an error into one short line, without the client's configuration that the SDK appends."""
    if isinstance(error, TooManyRedirects):
        return (
            f"the answer sends the request elsewhere ({_place_of(error)}), perhaps to log in; see "
            "that DATABRICKS_HOST is the workspace's own address and the login is still good"
        )
    if isinstance(error, json.JSONDecodeError):
        return "the answer is not JSON; perhaps it is the page of a login or of a proxy"
    line = words_of(error)
    code = getattr(error, "error_code", None)
    if code:
        line = f"{code}: {line}"
    elif not isinstance(error, DatabricksError):
        line = f"{type(error).__name__}: {line}"
    return line[:_LONGEST_MESSAGE]


def _place_of(error: TooManyRedirects) -> str:
    """Return where a client was sent, without the query, which may hold a secret."""
    location = error.response.headers.get("Location", "") if error.response is not None else ""
    parts = urlsplit(location)
    return storable(masked(f"{parts.hostname or ''}{parts.path}"))[:_LONGEST_PLACE]


def words_of(error: BaseException) -> str:
    """Return the message of an error, in one short line."""
    text = re.split(r"\. Config: |\. Env: ", str(error), maxsplit=1)[0]
    # Masked before it is cut off: half a secret would not be recognized.
    words = storable(masked(" ".join(text.split())))
    return words[:_LONGEST_MESSAGE] or type(error).__name__


class OneRequestClock(SdkClock):
    """Ends the SDK's retry loop after its first request: waiting moves the clock past any deadline.

    Each thread has its own offset, so that one thread's wait does not end another's first request.
    """

    def __init__(self) -> None:
        self._thread = threading.local()

    def time(self) -> float:
        """Return seconds that only ever grow, ahead by what this thread has waited."""
        return time.monotonic() + self._ahead()

    def sleep(self, seconds: float) -> None:
        """Move on past any deadline, without waiting."""
        self._thread.ahead = self._ahead() + seconds + _PAST_ANY_DEADLINE

    def _ahead(self) -> float:
        ahead: float = getattr(self._thread, "ahead", 0.0)
        return ahead


class BoundedConfig(Config):
    """The SDK's configuration, without its minutes of waiting for a host that is not there."""

    #: Names the workspace by what is configured, never by what a host answered.
    identity = ""
    #: Whether anything answered at the host when this was made.
    is_there = True

    @classmethod
    def attributes(cls) -> Iterable[ConfigAttribute]:
        """Return the SDK's own settings, which it would look for on this very class."""
        return Config.attributes()

    def _resolve_host_metadata(self) -> None:
        self.identity = f"{self.host}#{self.workspace_id}" if self.workspace_id else str(self.host)
        if self.host and _is_here(self.host):
            _keep_proxies_out(str(urlsplit(self.host).hostname))
        self.is_there = bool(self.host) and _shows_up(str(self.host))
        if self.is_there:
            super()._resolve_host_metadata()


def _is_here(host: str) -> bool:
    return urlsplit(host).hostname in ("127.0.0.1", "localhost", "::1")


def _keep_proxies_out(hostname: str) -> None:
    """Go to this machine directly: a proxy that the environment names cannot reach our loopback."""
    for name in ("no_proxy", "NO_PROXY"):
        known = [part for part in os.environ.get(name, "").split(",") if part]
        if hostname not in known:
            os.environ[name] = ",".join([*known, hostname])


def _shows_up(host: str) -> bool:
    """Return whether the host answers at all, in a way that the SDK would not wait on."""
    url = f"{host}/.well-known/databricks-config"
    if not url.startswith(("http://", "https://")):
        return False
    try:
        # `urlopen` would keep the proxies that the environment named when it was first called.
        urllib.request.build_opener().open(url, timeout=_SECONDS_TO_SHOW_UP).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code not in (429, 503)
    except urllib.error.URLError as error:
        # A certificate that Python does not trust may be fine for the SDK, which brings its own.
        return isinstance(error.reason, ssl.SSLError)
    except (OSError, ValueError) as error:
        logger.warning("the workspace at %s does not answer: %s", host, error)
        return False
    return True
