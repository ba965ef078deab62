"""Reads every row of a Delta table, by its path or its name; small ones, as control tables are."""

from collections.abc import Callable, Mapping, Sequence

from harness.errors import ControlsError
from harness.platform.sql.port import Sql, SqlError
from harness.platform.sql_names import in_sql, is_path, quoted
from harness.platform.storage import is_remote
from harness.platform.text import first_line


def rows_of_table(source: str, sql: Callable[[], Sql]) -> Sequence[Mapping[str, object]]:
    """Return the rows of a table.

    Args:
        source: Its path, or its name in the catalog.
        sql: Reads what is not in a folder of this machine, or needs a feature of Spark's.

    Raises:
        ControlsError: It cannot be read.
    """
    if is_path(source) and not is_remote(source):
        rows = _local_rows(source)
        if rows is not None:
            return rows
    table = f"delta.{quoted(source)}" if is_path(source) else in_sql(source)
    try:
        return sql().read(table)
    except SqlError as error:
        raise _unreadable(source, error.reason) from error


def _local_rows(path: str) -> list[dict[str, object]] | None:
    """Read a folder without a JVM; nothing when the table uses what only Spark reads."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        return list(DeltaTable(path.removeprefix("file:")).to_pyarrow_table().to_pylist())
    except TableNotFoundError as error:
        raise _unreadable(path, "there is neither a Delta table nor a file") from error
    except OSError as error:
        raise _unreadable(path, first_line(error, "no reason is given")) from error
    except DeltaError:
        return None


def _unreadable(source: str, reason: str) -> ControlsError:
    return ControlsError(
        f"{source} cannot be read: {reason.rstrip('.')}; name a CSV export, the path of a Delta"
        " table, or a table of the catalog"
    )
