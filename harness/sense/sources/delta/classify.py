"""Determines what one commit did to the data: by its file actions first, by its name second."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.events.event import Operation
from harness.events.partition import Partitions
from harness.platform.delta_log import Commit, FileAction
from harness.sense.sources.delta.schema import Column

#: commitInfo's metrics that are useful to a person, under our names; Spark's, then delta-rs'.
_METRICS = {
    "numOutputRows": "rows_written",
    "num_added_rows": "rows_written",
    "numTargetRowsInserted": "rows_inserted",
    "num_target_rows_inserted": "rows_inserted",
    "numTargetRowsUpdated": "rows_updated",
    "num_target_rows_updated": "rows_updated",
    "numTargetRowsDeleted": "rows_deleted",
    "num_target_rows_deleted": "rows_deleted",
    "numUpdatedRows": "rows_updated",
    "num_updated_rows": "rows_updated",
    "numDeletedRows": "rows_deleted",
    "num_deleted_rows": "rows_deleted",
}
_TEXT_LIMIT = 1000


def operation_of(commit: Commit) -> Operation | None:
    """Return what a commit did to the data, ``None`` when it changed none."""
    if commit.is_cut:
        return Operation.UPDATE
    if not commit.adds and not commit.removes:
        return None
    if not commit.removes:
        return Operation.APPEND
    if not commit.adds or commit.info.get("operation") == "DELETE":
        return Operation.DELETE
    return Operation.DELETE if _only_hides_rows(commit) else Operation.UPDATE


def added_files(commit: Commit) -> tuple[FileAction, ...]:
    """Return the files that may hold new rows.

    A deletion adds none, though it may write the rows that stay into another file; and a path that
    is removed and added again only got another deletion vector.
    """
    if operation_of(commit) is Operation.DELETE:
        return ()
    removed = {file.path for file in commit.removes}
    return tuple(file for file in commit.adds if file.path not in removed)


def _only_hides_rows(commit: Commit) -> bool:
    hidden_before = {file.path: file.deleted_rows or 0 for file in commit.removes}
    hidden_after = {file.path: file.deleted_rows or 0 for file in commit.adds}
    if not hidden_after.keys() <= hidden_before.keys():
        return False
    # A RESTORE can shrink vectors: rows come back, which is no deletion.
    if any(hidden_after[path] < hidden_before[path] for path in hidden_after):
        return False
    return any(hidden_after[path] > hidden_before[path] for path in hidden_after)


def partitions_of(commit: Commit, columns: Sequence[Column]) -> Partitions:
    """Return the partitions that a commit touched."""
    if not columns:
        return Partitions()
    seen = set()
    are_all = not commit.is_cut
    for file in (*commit.adds, *commit.removes):
        values = file.partition
        if values is None or any(column.physical not in values for column in columns):
            are_all = False
            continue
        seen.add(tuple(column.json_value(values[column.physical]) for column in columns))
    return Partitions(values=frozenset(seen), are_all=are_all)


def tags_of(commit: Commit) -> dict[str, str]:
    """Return what the commit records about itself, small enough for an event."""
    info, transaction = commit.info, commit.transaction or {}
    values = {
        "operation": info.get("operation"),
        "user_metadata": info.get("userMetadata"),
        "txn_id": info.get("txnId"),
        "engine": info.get("engineInfo"),
        "writer_timestamp": info.get("timestamp"),
        "app": transaction.get("appId"),
        "app_version": transaction.get("version"),
        **_flags(info),
        **_metrics(info),
    }
    return {key: _short(value) for key, value in values.items() if value is not None}


def _flags(info: Mapping[str, Any]) -> dict[str, str]:
    operation = str(info.get("operation") or "").upper()
    parameters = info.get("operationParameters")
    parameters = parameters if isinstance(parameters, dict) else {}
    flags = {}
    if str(parameters.get("mode")).strip('"').lower() == "overwrite":
        flags["overwrite"] = "true"
    if "REPLACE TABLE" in operation:
        flags["replaced"] = "true"
    return flags


def _metrics(info: Mapping[str, Any]) -> dict[str, str]:
    metrics = info.get("operationMetrics")
    if not isinstance(metrics, dict):
        return {}
    return {ours: str(metrics[theirs]) for theirs, ours in _METRICS.items() if theirs in metrics}


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _TEXT_LIMIT else text[:_TEXT_LIMIT] + "…"
