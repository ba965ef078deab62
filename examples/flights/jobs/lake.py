"""What every job needs: the rows that its events brought, and the Delta tables of the lake.

A job runs in the lake's folder and writes whole days, so that running it again changes nothing.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from harness.toolkit.changes import ChangeEvent

BRONZE, GOLD = "bronze", "gold"


def events_of(found: Iterable[ChangeEvent], table: str) -> list[ChangeEvent]:
    """Return the events of one table, or of one folder of trigger files."""
    return [event for event in found if event.table.split(".")[-1] == table]


def added(found: Iterable[ChangeEvent], table: str) -> pd.DataFrame:
    """Return the rows that the events added to a table, and no others."""
    path = _path(BRONZE, table)
    files = [file for event in events_of(found, table) for file in _files_of(event, path)]
    frames = [pq.read_table(file).to_pandas() for file in files]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame({"date": []})


def _files_of(event: ChangeEvent, path: str) -> list[str]:
    """Return the files that one commit added; at first sight, all that the table then had."""
    version = int(event.snapshot_id or 0)
    files = set(DeltaTable(path, version=version).file_uris())
    if event.prev_snapshot_id is not None:
        files -= set(DeltaTable(path, version=version - 1).file_uris())
    return sorted(files)


def changed_dates(found: Iterable[ChangeEvent], *tables: str) -> list[str]:
    """Return the days of which the events brought rows."""
    found = list(found)
    return sorted({str(date) for table in tables for date in added(found, table)["date"]})


def read(table: str, dates: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table of the bronze layer, or some days of it."""
    # An empty list has no type, so it cannot be compared with a column.
    filters = None if dates is None else [("date", "in", list(dates) or [""])]
    return DeltaTable(_path(BRONZE, table)).to_pandas(filters=filters)


def replace_dates(table: str, frame: pd.DataFrame, dates: Sequence[str]) -> None:
    """Put these days of a table of the gold layer in place of what it had of them."""
    if not dates:
        return
    path = _path(GOLD, table)
    if not DeltaTable.is_deltatable(path):
        write_deltalake(path, _arrow(frame))
        return
    listed = ", ".join(f"'{date}'" for date in dates)
    write_deltalake(path, _arrow(frame), mode="overwrite", predicate=f"date IN ({listed})")


def replace_all(table: str, frame: pd.DataFrame) -> None:
    """Put a table of the gold layer in place of what it was."""
    write_deltalake(_path(GOLD, table), _arrow(frame), mode="overwrite")


def say(line: str) -> None:
    """Write the one line that sums a run up."""
    sys.stdout.write(f"{line}\n")


def reject(reason: str) -> None:
    """End the run as failed: the data must be repaired first."""
    raise SystemExit(f"rejected: {reason}")


def days(dates: Sequence[str]) -> str:
    """Return the days as text: one, or from the first to the last."""
    if not dates:
        return "no day"
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]} ({len(dates)} days)"


def _path(layer: str, table: str) -> str:
    return str(Path.cwd() / layer / table)


def _arrow(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def run(job: Callable[[], None]) -> NoReturn:
    """Run a job as a process, and end it with the exit code of the job.

    Native threads of the Delta reader can abort an ordinary interpreter exit after all work is
    done; the Jobs API would take that for a failure.
    """
    code = 0
    try:
        job()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            sys.stderr.write(f"{stop.code}\n")
    except Exception:
        code = 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
