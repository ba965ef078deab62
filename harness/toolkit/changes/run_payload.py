"""Reads the data-change events that were passed to a run: the one reader for jobs, on every target.

A list that is too long for a job's parameters is passed as a reference: to a file of the state
folder, and, where the job runs on another machine, to the run's row, from which the events are
found in the tables.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from harness.errors import ConfigurationError, StateError
from harness.events.event import ChangeEvent
from harness.platform.spark.session import ON_COMPUTE
from harness.store.rows import Ledger, Store, integer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where a local run finds what a workspace passes as the job parameter `heartbeat_events`.
EVENTS_VARIABLE = "HEARTBEAT_EVENTS"
PARAMETER = "heartbeat_events"

_LONGEST_SHOWN = 60
#: The state directory has its tables, and beside them the lists.
_WAREHOUSE = "warehouse"


def read(payload: str | None = None, *, run_id: str | int | None = None) -> list[ChangeEvent]:
    """Return the data-change events that were passed to this run, in the order of the list.

    Args:
        payload: The text of the job parameter ``heartbeat_events``, from ``dbutils.widgets.get`` or
            from the command line; without it, it is taken from the environment, as local jobs have
            it.
        run_id: The run's own id, ``{{job.run_id}}`` in a task of a workspace, for a job that does
            not declare the parameter: its events are found in the tables.

    Raises:
        ConfigurationError: The run was not started by Heartbeat, or its payload is damaged.
        StateError: Its payload is a reference, and what that names cannot be found or read.
    """
    if run_id is not None:
        return _of_run(run_id)
    text = os.environ.get(EVENTS_VARIABLE, "") if payload is None else payload
    if not text.strip():
        raise ConfigurationError(
            f"This process was not started by Heartbeat: {EVENTS_VARIABLE} is empty; give the text "
            f"of the job parameter {PARAMETER} to read(...)"
        )
    content = _parsed(text)
    if isinstance(content, dict):
        return _by_reference(content, text)
    return _events(content, f"the list of events '{_shown(text)}'")


def _of_run(run_id: str | int) -> list[ChangeEvent]:
    from harness.config.load import load_settings
    from harness.config.project import project_folder
    from harness.context import Context

    try:
        number = integer(run_id)
    except ValueError as error:
        raise ConfigurationError(
            f"'{_shown(str(run_id))}' is not a run id; give read(run_id=...) the value of "
            "{{job.run_id}}"
        ) from error
    context = Context(load_settings(project_folder(os.environ), os.environ), os.environ)
    try:
        listed = _from_tables(
            context.store,
            [("run_id", "=", number)],
            f"No start has the run {number}: if Heartbeat has started it, the response to the start"
            " was lost and the next tick records the run, so read again then",
        )
    finally:
        context.close()
    return _events(listed, f"the list of events in {context.schema}.{Ledger.EVENTS}")


def _by_reference(reference: Mapping[str, object], text: str) -> list[ChangeEvent]:
    try:
        file = Path(str(reference["events_file"]))
        count = integer(reference["event_count"])
        intent_id, attempt = str(reference["intent_id"]), integer(reference["attempt"])
        schema = str(reference["relation"]).rpartition(".")[0] or "heartbeat"
    except (KeyError, ValueError) as error:
        raise _damaged(f"the reference '{_shown(text)}'") from error
    listed = _listed_in(file)
    source = str(file)
    if listed is None:
        with _store(file, schema) as store:
            listed = _from_tables(
                store,
                [("intent_id", "=", intent_id), ("attempt", "=", attempt)],
                f"No run of the intent {intent_id} with the attempt {attempt} is recorded, and its "
                "list of events has vanished: run it again with `python -m harness retry`",
            )
        source = f"{schema}.{Ledger.EVENTS}"
    found = _events(listed, f"the list of events in {source}")
    if len(found) != count:
        raise StateError(
            f"This run received {count} events, and {source} has {len(found)} of them; look for "
            "what has removed the others before you run it again"
        )
    return found


def _listed_in(file: Path) -> object:
    """Return what a file has; nothing when it is not on this machine, or has been removed."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(
            f"The list of events in {file} cannot be read ({error}):"
            " make it readable, and run the job again"
        ) from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"the list of events in {file}") from error


@contextmanager
def _store(file: Path, schema: str) -> Iterator[Store]:
    """Give the tables: those beside the list on this machine, else those of a workspace."""
    warehouse = file.parent.parent / _WAREHOUSE
    if (warehouse / f"{schema}.db").is_dir():
        from harness.store.local import LocalStore

        yield LocalStore(warehouse, schema)
        return
    from harness.context import warehouse_of
    from harness.platform.sql.session import SessionSql
    from harness.platform.sql_names import schema_name
    from harness.store.catalog import CatalogStore

    if (session := _session()) is not None:
        yield CatalogStore(SessionSql(lambda: session), schema_name(schema))
        return
    if (warehouse_sql := warehouse_of(os.environ)) is None:
        raise StateError(
            f"The list of events is not in {file}, and without a Spark session or a SQL warehouse "
            f"(DATABRICKS_HTTP_PATH) the tables of {schema} cannot be read: run the job "
            "where it can reach one of them"
        )
    with closing(warehouse_sql) as sql:
        yield CatalogStore(sql, schema_name(schema))


def _session() -> "SparkSession | None":
    """Return the session that the job has, or that its cluster has; never a new JVM."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    if ON_COMPUTE in os.environ:
        return SparkSession.builder.getOrCreate()
    return SparkSession.getActiveSession()


def _from_tables(
    store: Store, where: list[tuple[str, str, object]], missing: str
) -> list[dict[str, object]]:
    """Return the events that the run's row names.

    Args:
        store: The tables.
        where: The conditions that find the row.
        missing: The message where there is none.

    Raises:
        StateError: There is no such run, or the tables cannot be read.
    """
    from harness.events.payload import payload_of
    from harness.store.rows import Consumed

    columns = ["consumed", "event_ids"]
    # A run that has just begun may not be compacted yet.
    rows = store.read("run_state", where=where, columns=columns)
    rows = rows or store.read(Ledger.RUNS, where=where, columns=columns)
    if not rows:
        raise StateError(missing)
    taken = cast("list[dict[str, object]]", rows[0]["consumed"])
    event_ids = cast("list[str]", rows[0]["event_ids"])
    consumed = [Consumed(**each) for each in taken]  # type: ignore[arg-type]
    return payload_of(consumed, event_ids, store)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"'{_shown(text)}'") from error


def _events(content: object, what: str) -> list[ChangeEvent]:
    if not isinstance(content, list):
        raise _damaged(what)
    try:
        return [ChangeEvent.from_json(each) for each in content]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _damaged(what) from error


def _damaged(what: str) -> ConfigurationError:
    return ConfigurationError(
        f"The payload of this run is damaged: {what} is neither a JSON list of data-change events"
        f" nor a reference to one; pass the job parameter {PARAMETER} as it is"
    )


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
