"""Registers data-change events, without a JVM and while a tick runs."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.common import (
    AS_JSON,
    interruptible,
    print_json,
    print_line,
    real_clock,
    settings_of_project,
)
from harness.errors import ConfigurationError

TABLE = typer.Option("--table", metavar="NAME", help="The table, as the controls name it.")
FORMAT = typer.Option("--format", metavar="FORMAT", help="DELTA, ICEBERG, HIVE and so on.")
OPERATION = typer.Option(
    "--operation", metavar="TYPE", help="APPEND, DELETE, or UPDATE, which assumes nothing."
)
SNAPSHOT = typer.Option("--snapshot-id", metavar="ID", help="The snapshot, as its format names it.")
PREVIOUS = typer.Option("--prev-snapshot-id", metavar="ID", help="The snapshot before it.")
SNAPSHOT_TS = typer.Option(
    "--snapshot-ts", metavar="MS", help="When it was made: milliseconds since 1970, UTC."
)
PARTITION = typer.Option(
    "--partition",
    metavar="PARTITION",
    help="""The levels: 'EU;7' or '["EU", 7]'; or once for each.""",
)
TAG = typer.Option("--tag", metavar="KEY=VALUE", help="A tag of the event; repeatable.")
EVENT_ID = typer.Option(
    "--event-id", metavar="ID", help="Deduplication key for a change that has no snapshot ID."
)
FILE = typer.Option("--file", metavar="FILE", help="JSON lines, one event each; - is the input.")
REPARTITIONED = typer.Option(
    "--repartitioned", help="A table's partitions have another number of levels from now on."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(emit)


def emit(
    *,
    table: Annotated[str | None, TABLE] = None,
    table_format: Annotated[str | None, FORMAT] = None,
    operation: Annotated[str | None, OPERATION] = None,
    snapshot_id: Annotated[str | None, SNAPSHOT] = None,
    prev_snapshot_id: Annotated[str | None, PREVIOUS] = None,
    snapshot_ts: Annotated[int | None, SNAPSHOT_TS] = None,
    partition: Annotated[list[str] | None, PARTITION] = None,
    tag: Annotated[list[str] | None, TAG] = None,
    event_id: Annotated[str | None, EVENT_ID] = None,
    file: Annotated[str | None, FILE] = None,
    repartitioned: Annotated[bool, REPARTITIONED] = False,
    as_json: Annotated[bool, AS_JSON] = False,
) -> None:
    """Register that a table has changed.

    One event, or a file of them; the next tick ingests them. A snapshot that is registered twice,
    or that a sensor detects as well, is one event. If any event is invalid, none is registered.

    Examples:
        python -m harness emit --table sales.orders --format DELTA --snapshot-id 12

        python -m harness emit --table web.visits --format HIVE --partition 7

        python -m harness emit --file events.jsonl
    """
    from harness.cli.views.events import partition_from
    from harness.platform.format import count
    from harness.toolkit.changes.registration import Place, register_batch

    said = {
        "table": table,
        "table_format": table_format,
        "operation_type": operation,
        "snapshot_id": snapshot_id,
        "prev_snapshot_id": prev_snapshot_id,
        "snapshot_ts": snapshot_ts,
        "partition": partition_from(partition or ()),
        "tags": _tags(tag or ()),
        "event_id": event_id,
    }
    given = {name: value for name, value in said.items() if value is not None}
    if file is not None and given:
        also = _option(next(iter(given)))
        raise ConfigurationError(f"--file holds complete events: leave out --{also} beside it")
    with interruptible("stopped; nothing is registered"):
        place = Place(home=settings_of_project().home, environment=os.environ, clock=real_clock())
        batch = [("the event", given)] if file is None else _lines(file)
        registered = register_batch(batch, place, repartitioned=repartitioned)
    if as_json:
        print_json({"events": registered})
    else:
        print_line(f"{count(registered, 'event')} registered; the next tick ingests it")


def _option(field: str) -> str:
    named = {"table_format": "format", "operation_type": "operation", "tags": "tag"}
    return named.get(field, field).replace("_", "-")


def _tags(given: Iterable[str]) -> dict[str, str] | None:
    tags: dict[str, str] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign:
            raise ConfigurationError(f"--tag {each}: a tag is KEY=VALUE; nothing is registered")
        if tags.setdefault(name, value) != value:
            raise ConfigurationError(f"--tag {name} has two values; nothing is registered")
    return tags or None


def _lines(file: str) -> Iterable[tuple[str, object]]:
    from harness.record.batch_inbox import lines_of

    try:
        content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigurationError(
            f"--file {file} cannot be read ({reason}): name another one, or - for the input"
        ) from error
    return lines_of(content, "standard input" if file == "-" else file)
