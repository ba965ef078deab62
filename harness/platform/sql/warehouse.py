"""Runs statements in a SQL warehouse, through the official connector and the SDK's own logins.

From a laptop, an Airflow worker or a task: no Spark and no Java. The connector waits for a
warehouse that is starting, and sends a request again whose answer was lost. A session that has
ended, and a login that has, are replaced here once: what was refused for them never ran.
"""

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from harness import __version__
from harness.errors import ConfigurationError
from harness.platform.sql.port import Row, SqlError, SqlSetupError, StatementCounter, rows_of
from harness.platform.sql.refusals import WHO, refused

if TYPE_CHECKING:
    from databricks.sql.client import Connection

log = logging.getLogger(__name__)

#: A classic warehouse may take this long to start.
START_SECONDS = 600
#: The longest pause between two checks of whether it has started, and so each of them.
_PAUSE_SECONDS = 10
_ATTEMPTS = 60
#: The first runtime with Spark 4.0, which the models need.
_OLDEST_RUNTIME = (17, 3)
_VERSION = "set spark.databricks.clusterUsageTags.sparkVersion"
_ENDED = re.compile(
    r"Invalid SessionHandle|closed connection|session.*(?:ended|expired|closed)", re.IGNORECASE
)
_LOGIN = (401, 403)
#: The connector's words when it has waited for as long as it may.
_OUT_OF_TIME = "max retry duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehousePlace:
    """Where a warehouse is.

    Attributes:
        http_path: Its path, such as ``/sql/1.0/warehouses/0123456789abcdef``, or its id alone.
        catalog: The catalog that unqualified names are in.
        host: The workspace; nothing: the SDK's own environment names it.
        start_seconds: For how long a warehouse that is starting is waited for.
    """

    http_path: str
    catalog: str | None = None
    host: str | None = None
    start_seconds: float = START_SECONDS

    @property
    def path(self) -> str:
        """The path, whichever way it is given."""
        return self.http_path if "/" in self.http_path else f"/sql/1.0/warehouses/{self.http_path}"

    @property
    def is_cluster(self) -> bool:
        """Whether it is a cluster's path, which may have any runtime."""
        return "/warehouses/" not in self.path and "/endpoints/" not in self.path


class WarehouseSql:
    """Statements of one session of a warehouse, which is opened at the first one.

    Args:
        place: Where it is.
    """

    def __init__(self, place: WarehousePlace) -> None:
        self._place = place
        self._counter = StatementCounter()
        self._alone = threading.Lock()
        self._connection: Connection | None = None
        #: Why there was no token for the last request; the connector's own error hardly states it.
        self._login_error: Exception | None = None

    @property
    def statement_count(self) -> int:
        """How many statements were sent."""
        return self._counter.count

    def run(self, statement: str) -> list[Row]:
        """Run a statement and return all of its rows.

        Raises:
            ConfigurationError: There is no login.
            SqlError: It failed, or the warehouse cannot be reached.
        """
        connection = self._connected()
        try:
            return self._executed(connection, statement)
        except Exception as error:
            if not _is_over(error):
                raise self._reported(error) from error
            log.info("the session of the warehouse is opened again: %s", error)
        connection = self._connected(instead_of=connection)
        try:
            return self._executed(connection, statement)
        except Exception as error:
            raise self._reported(error) from error

    def read(self, table: str) -> list[Row]:
        """Return all rows of a table or view.

        Raises:
            ConfigurationError: There is no login.
            SqlError: It failed, or the warehouse cannot be reached.
        """
        return self.run(f"select * from {table}")

    def append(
        self, table: str, rows: Sequence[Row], options: Mapping[str, str | int] | None = None
    ) -> None:
        """Refuse: no statement of a warehouse keeps out a writer that has lost the lease.

        Raises:
            SqlError: Always.
        """
        raise SqlError(
            f"A SQL warehouse cannot append to {table}: it has no appends that keep out a process"
            " which has lost the lease",
            remedy="run this command in a Spark session, as a job or with Databricks Connect; a"
            " warehouse serves the commands that read",
        )

    def close(self) -> None:
        """End the session, if there is one."""
        with self._alone:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _executed(self, connection: "Connection", statement: str) -> list[Row]:
        self._counter.add()
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return rows_of(cursor.fetchall_arrow())

    def _connected(self, *, instead_of: "Connection | None" = None) -> "Connection":
        with self._alone:
            if self._connection is not None and self._connection is instead_of:
                self._connection = None
                instead_of.close()
            if self._connection is None:
                self._connection = self._open()
            return self._connection

    def _open(self) -> "Connection":
        config = self._config()
        place = self._place
        # A view's dates are those of UTC, as on every other engine.
        zone = "spark.sql.session.timeZone" if place.is_cluster else "timezone"
        try:
            connection = _connection_type()(
                server_hostname=str(config.host).removeprefix("https://"),
                http_path=place.path,
                credentials_provider=lambda: lambda: self._headers(config),
                catalog=place.catalog,
                session_configuration={zone: "UTC"},
                user_agent_entry=f"heartbeat/{__version__}",
                enable_telemetry=False,
                use_cloud_fetch=False,
                _retry_delay_max=_PAUSE_SECONDS,
                _retry_stop_after_attempts_count=_ATTEMPTS,
                _retry_stop_after_attempts_duration=place.start_seconds,
            )
        except Exception as error:
            raise self._reported(error) from error
        if place.is_cluster:
            try:
                self._require_runtime(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _headers(self, config: Any) -> dict[str, str]:
        self._login_error = None
        try:
            headers: dict[str, str] = config.authenticate()
        except Exception as error:
            self._login_error = error
            raise
        return headers

    def _config(self) -> Any:
        from harness.platform.databricks.workspace import bounded_config

        try:
            config = bounded_config(host=self._place.host)
        except (ValueError, OSError) as error:
            raise ConfigurationError(
                f"There is no login for the SQL warehouse: {_first_line(error)}; log in as the"
                " Databricks SDK does it, such as by `databricks auth login` or DATABRICKS_HOST"
                " with DATABRICKS_CLIENT_ID and DATABRICKS_CLIENT_SECRET"
            ) from error
        if not config.is_there:
            raise SqlError(
                f"No workspace answers at {config.host}",
                remedy="check DATABRICKS_HOST, the network and the proxy",
            )
        return config

    def _require_runtime(self, connection: "Connection") -> None:
        rows = self._executed(connection, _VERSION)
        text = str([*rows[0].values()][-1]) if rows else ""
        found = re.match(r"(\d+)\.(\d+|x)", text)
        if found is None:
            return
        minor = 99 if found[2] == "x" else int(found[2])
        if (int(found[1]), minor) < _OLDEST_RUNTIME:
            raise SqlSetupError(
                f"The cluster at {self._place.path} has Databricks Runtime {text}, which is too"
                " old",
                remedy="use 17.3 or later, or a SQL warehouse",
            )

    def _principal(self) -> str | None:
        with suppress(Exception):
            return str(self._executed(self._connected(), WHO)[0]["name"])
        return None

    def _reported(self, error: Exception) -> Exception:
        """Return what to raise: errors of the connector as a sentence, all others as they are."""
        from databricks.sql import exc
        from urllib3.exceptions import HTTPError

        if not isinstance(error, exc.Error | HTTPError):
            return error
        if isinstance(error, exc.ServerOperationError):
            return refused(str(error), principal=self._principal)
        if self._login_error is not None:
            return SqlError(
                f"The workspace refuses the login: {_first_line(self._login_error)}",
                remedy="log in again, or renew the secret of the service principal",
            )
        return self._of_request(error)

    def _of_request(self, error: Exception) -> SqlError:
        """Return the sentence for a request that was not served."""
        from urllib3.exceptions import HTTPError

        code, where, words = _http_code(error), self._place.path, _first_line(error)
        if isinstance(error, HTTPError) or code == 503 or _OUT_OF_TIME in str(error):
            return SqlError(
                f"The SQL warehouse {where} has not started within"
                f" {self._place.start_seconds:.0f} s, or cannot be reached",
                remedy="start it in the workspace, and check the network",
            )
        if code == 404:
            return SqlSetupError(
                f"There is no SQL warehouse {where}",
                remedy="set DATABRICKS_HTTP_PATH to the path that its connection details show",
            )
        sentences = {
            400: (
                f"The SQL warehouse {where} does not run: {words}",
                "start it in the workspace, or have the right to start it granted (CAN USE)",
            ),
            **dict.fromkeys(
                _LOGIN,
                (
                    f"The workspace refuses the login ({code}): {words}",
                    "log in again, and see that this principal has CAN USE on the warehouse"
                    f" {where}",
                ),
            ),
        }
        if code not in sentences:
            return refused(str(error))
        reason, remedy = sentences[code]
        return SqlError(reason, remedy=remedy)


def _is_over(error: Exception) -> bool:
    """Return whether a session or a login has ended, so that the statement was not run."""
    return _http_code(error) in _LOGIN or bool(_ENDED.search(str(error)))


def _http_code(error: Exception) -> int | None:
    context = getattr(error, "context", None)
    code = context.get("http-code") if isinstance(context, dict) else None
    return code if isinstance(code, int) else None


def _first_line(error: Exception) -> str:
    from harness.platform.databricks.workspace import words_of

    return words_of(error).removeprefix("Error during request to server: ").strip(": .")


@cache
def _connection_type() -> "type[Connection]":
    """Return the connector's connection, but one that the garbage collector leaves alone.

    The connector's own closes its session then, in any thread, and for ten minutes where the
    warehouse does not answer. One that is not closed ends when it has been idle.
    """
    from databricks.sql.client import Connection

    class _Connection(Connection):
        def __del__(self) -> None:
            pass

    return _Connection
