"""Reads from the new rows what the log lacks: did the key grow, does the query return a row."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.config.sources import Source
from harness.errors import ProbeFailedError
from harness.events.event import Operation
from harness.platform.delta_log import Commit, FileAction
from harness.platform.sql_names import column_in_sql
from harness.sense.preprocess.query import is_larger, rendered
from harness.sense.probe import NewFile, NewFiles, NewRows
from harness.sense.sources.delta.classify import added_files, operation_of
from harness.sense.sources.delta.commits import Change, Finding
from harness.sense.sources.delta.cursor import Cursor
from harness.sense.sources.delta.schema import Column
from harness.sense.sources.delta.table_identity import Current
from harness.store.work_lists import Upstream

_LONGEST_TAG = 1000


class _LargestValueUnknownError(Exception):
    """Neither the log nor Spark has a version's largest value: the change counts, in doubt."""


class Admission:
    """Lets through what is new data for one upstream."""

    def __init__(self, new_rows: NewRows) -> None:
        self._new_rows = new_rows

    def admitted(
        self, upstream: Upstream, finding: Finding
    ) -> tuple[tuple[Change, ...], str | None]:
        """Return the changes that count, and the largest value of the key after them."""
        changes: tuple[Change, ...] = finding.changes
        query = rendered(upstream)
        value = upstream.upstream_value
        if finding.position.key is not None:
            grown, value = self._grown(upstream, finding, finding.position.key)
            if upstream.source == Source.LMU_DELTA_TABLE:
                changes = grown
        if query is not None and changes and not self._returns_row(finding, changes, query):
            changes = ()
        return changes, value

    def _grown(
        self, upstream: Upstream, finding: Finding, key: Column
    ) -> tuple[tuple[Change, ...], str | None]:
        largest, grown = upstream.upstream_value, []
        if not finding.changes and upstream.position is None:
            return (), self._largest_of_baseline(finding, key)
        for change in finding.changes:
            try:
                value = self._largest_after(finding, change, key)
            except _LargestValueUnknownError as unknown:
                grown.append(_in_doubt(change, str(unknown)))
                continue
            if value is not None and (largest is None or is_larger(value, largest)):
                largest = value
                grown.append(change)
        return tuple(grown), largest

    def _largest_of_baseline(self, finding: Finding, key: Column) -> str | None:
        """A baseline is no event, yet its largest value is the one to outgrow."""
        if finding.position.data_version is None:
            return None
        try:
            if finding.current is None:
                return self._largest_at(finding.position, finding.position.version, key)
            return self._largest_of_table(finding.position, finding.current, key)
        except _LargestValueUnknownError:
            # Nothing to outgrow: the next change counts.
            return None

    def _largest_after(self, finding: Finding, change: Change, key: Column) -> str | None:
        if change.commits:
            return self._largest_of_commits(finding.position, change.commits, key)
        if finding.current is not None:
            return self._largest_of_table(finding.position, finding.current, key)
        return self._largest_at(finding.position, int(change.event.snapshot_id or 0), key)

    def _largest_at(self, cursor: Cursor, version: int, key: Column) -> str | None:
        """Query a table that only Spark can read, as it was at a version."""
        try:
            return self._new_rows.largest(
                _entire_table(replace(cursor, version=version)), column_in_sql(key.name)
            )
        except ProbeFailedError as error:
            raise _LargestValueUnknownError(str(error)) from error

    def _largest_of_table(self, cursor: Cursor, current: Current, key: Column) -> str | None:
        if not current.holds_data:
            return None
        if current.only_appended and not any(commit.rearranges for commit in current.commits):
            files = [file for commit in current.commits for file in commit.adds]
            is_known, value = largest_in_log(files, key)
            if is_known:
                return value
        return self._new_rows.largest(_entire_table(cursor), column_in_sql(key.name))

    def _largest_of_commits(
        self, cursor: Cursor, commits: Sequence[Commit], key: Column
    ) -> str | None:
        if any(commit.is_cut for commit in commits):
            return self._new_rows.largest(_entire_table(cursor), column_in_sql(key.name))
        files = [file for commit in commits for file in added_files(commit)]
        is_known, value = largest_in_log(files, key)
        if is_known:
            return value
        return self._new_rows.largest(_new_files(cursor, commits), column_in_sql(key.name))

    def _returns_row(self, finding: Finding, changes: Sequence[Change], query: str) -> bool:
        commits = [commit for change in changes for commit in change.commits]
        tells_all = all(change.commits for change in changes)
        if not tells_all or any(commit.is_cut for commit in commits):
            return self._new_rows.any_row(_entire_table(finding.position), query)
        if all(operation_of(commit) is Operation.DELETE for commit in commits):
            return False
        return self._new_rows.any_row(_new_files(finding.position, commits), query)


def _in_doubt(change: Change, why: str) -> Change:
    tags = {**change.event.tags, "largest_value_unknown": why[:_LONGEST_TAG]}
    return replace(change, event=replace(change.event, tags=tags))


def _entire_table(cursor: Cursor) -> NewFiles:
    return NewFiles(
        table_path=cursor.path, version=cursor.version, files=None, plain=cursor.is_plain
    )


def _new_files(cursor: Cursor, commits: Sequence[Commit]) -> NewFiles:
    found = [(commit.version, file) for commit in commits for file in added_files(commit)]
    return NewFiles(
        table_path=cursor.path,
        version=commits[-1].version,
        files=tuple(
            NewFile(
                path=file.path, version=version, partition=tuple((file.partition or {}).items())
            )
            for version, file in found
        ),
        plain=cursor.is_plain and all(file.deleted_rows is None for _, file in found),
    )


def largest_in_log(files: Sequence[FileAction], key: Column) -> tuple[bool, str | None]:
    """Return whether the log has the largest value exactly, and that value."""
    largest: str | None = None
    for file in files:
        is_known, value = _largest_of_file(file, key)
        if not is_known:
            return False, None
        if value is not None and (largest is None or is_larger(value, largest)):
            largest = value
    return True, largest


def _largest_of_file(file: FileAction, key: Column) -> tuple[bool, str | None]:
    if file.deleted_rows is not None or not key.has_exact_statistics:
        return False, None
    if file.partition and key.physical in file.partition:
        return True, file.partition[key.physical] or None
    try:
        stats: dict[str, Any] = json.loads(file.stats or "{}")
    except ValueError:
        return False, None
    if stats.get("tightBounds") is False:
        return False, None
    value = (stats.get("maxValues") or {}).get(key.physical)
    if value is not None:
        return True, str(value)
    rows = stats.get("numRecords")
    nulls = (stats.get("nullCount") or {}).get(key.physical)
    return rows is not None and rows == nulls, None
