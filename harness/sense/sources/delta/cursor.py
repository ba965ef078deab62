"""Where the last probe of a Delta table ended, as small JSON text."""

import json
from dataclasses import dataclass
from typing import Any

from harness.platform.delta_log import Commit
from harness.platform.storage import FileStat
from harness.sense.cursor import read_cursor
from harness.sense.sources.delta.schema import Column, Table

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What must be recorded of a table to see at a glance that nothing is new."""

    path: str
    table_id: str
    version: int
    #: The last version reported, or the baseline; ``None`` while there was no data.
    data_version: int | None
    #: Of the newest commit's file.
    fingerprint: FileStat
    digest: str
    #: The table generation: the table's id when it began, and how many generations came before.
    lineage: str
    schema_digest: str
    #: The schema changed after the last event; the next one records it.
    has_new_schema: bool = False
    is_plain: bool
    partition_columns: tuple[Column, ...] = ()
    #: The column that ``upstream_key`` names; its name stands as it was written there.
    key: Column | None = None
    #: The time at which the catalog had altered the table when its history was read; ``None`` where
    #: that time proves nothing.
    altered_ms: int | None = None
    #: The catalog has missed a commit: the table is written without it.
    is_altered_late: bool = False

    def to_text(self) -> str:
        """Return the cursor as text; equal cursors give equal text."""
        record: dict[str, Any] = {
            "v": _VERSION,
            "path": self.path,
            "table": self.table_id,
            "version": self.version,
            "data": self.data_version,
            "file": [self.fingerprint.length, self.fingerprint.mtime_ms, self.digest],
            "lineage": self.lineage,
            "schema": self.schema_digest,
            "new_schema": self.has_new_schema,
            "plain": self.is_plain,
            "partition": [_column_record(column) for column in self.partition_columns],
            "key": _column_record(self.key) if self.key else None,
        }
        if self.altered_ms is not None:
            record["altered"] = self.altered_ms
        if self.is_altered_late:
            record["late"] = True
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


def cursor_from(text: str) -> Cursor:
    """Read a cursor back.

    Raises:
        ProbeFailedError: The text was written by another version, or is none of ours.
    """
    return read_cursor(text, _VERSION, _from_record)


def _from_record(record: dict[str, Any]) -> Cursor:
    length, mtime_ms, digest = record["file"]
    return Cursor(
        path=record["path"],
        table_id=record["table"],
        version=record["version"],
        data_version=record["data"],
        fingerprint=FileStat(length, mtime_ms),
        digest=digest,
        lineage=record["lineage"],
        schema_digest=record["schema"],
        has_new_schema=record["new_schema"],
        is_plain=record["plain"],
        partition_columns=tuple(_column_from(column) for column in record["partition"]),
        key=_column_from(record["key"]) if record["key"] else None,
        altered_ms=record.get("altered"),
        is_altered_late=record.get("late", False),
    )


def first_cursor(path: str, table: Table, commit: Commit, key: Column | None) -> Cursor:
    """Return the cursor at the start of a table's first known generation."""
    return Cursor(
        path=path,
        table_id=table.table_id,
        version=commit.version,
        data_version=None,
        fingerprint=commit.fingerprint,
        digest=commit.digest,
        lineage=f"{table.table_id}/0",
        schema_digest=table.schema_digest,
        is_plain=table.is_plain,
        partition_columns=table.partition_columns,
        key=key,
    )


def _column_record(column: Column) -> list[str]:
    return [column.name, column.physical, column.type]


def _column_from(record: list[str]) -> Column:
    name, physical, kind = record
    return Column(name=name, physical=physical, type=kind)
