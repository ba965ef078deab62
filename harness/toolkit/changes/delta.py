"""Reads the rows that changed between two versions of a Delta table.

It takes the cheapest way that holds. If the log has nothing but appends, the files that they added;
else the change data feed, if it covers all; else both versions are compared, and where the old one
is gone all rows are new.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import ProbeFailedError
from harness.platform.delta_log import list_log
from harness.platform.spark.session import message_of
from harness.platform.sql_names import in_sql, is_path
from harness.platform.storage import Storage, Storages, normalized
from harness.sense.new_rows import by_partition, plain, rows_of, union
from harness.sense.probe import NewFile, NewFiles
from harness.sense.sources.delta.schema import Table
from harness.sense.sources.delta.table_identity import current_of
from harness.sense.table_locations import SparkTableLocator
from harness.toolkit.changes.answer import (
    Changed,
    Question,
    Range,
    compared,
    full_table,
    incremental,
    nothing,
)
from harness.toolkit.changes.chain import Chain, Fault
from harness.toolkit.changes.delta_log import (
    Commit,
    LogGoneError,
    gone_since,
    has_new_schema,
    missing,
    missing_of_feed,
    read_commits,
)
from harness.toolkit.changes.net_changes import check_columns, gained, of_log, why_not_compared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

#: New files of more partitions than this are not picked out one by one.
_MOST_PARTITIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What the log has of the range, and of what came after it."""

    storage: Storage
    path: str
    since: int
    until: int
    commits: tuple[Commit, ...]
    later: tuple[Commit, ...]
    #: Its files are ordinary Parquet files.
    is_plain: bool

    @property
    def range(self) -> Range:
        return Range(since=str(self.since), until=str(self.until))


def changed(question: Question) -> Changed:
    """Return the rows that the events of a Delta table describe."""
    chain = question.chain
    path = _path(question)
    storage = _storage(question, path)
    table = _table(storage, path)
    if table is not None and not {table.table_id}.issuperset(chain.table_ids):
        now = _now(question)
        return full_table(question, now, None, "the table is another one than when the events came")
    if chain.since is None or chain.until is None:
        return _full_table(question, storage, path, chain.why or "the events have no range")
    since, until = int(chain.since), int(chain.until)
    try:
        commits = read_commits(storage, path, after=since, until=until)
    except LogGoneError as error:
        return _full_table(question, storage, path, str(error))
    except (ProbeFailedError, OSError) as error:
        return _without_log(question, since, until, f"its log cannot be read: {error}")
    span = _Span(
        storage=storage,
        path=path,
        since=since,
        until=until,
        commits=tuple(each for each in commits if each.version <= until),
        later=tuple(each for each in commits if each.version > until),
        is_plain=table is not None and table.is_plain,
    )
    return _of_span(question, span)


def _of_span(question: Question, span: _Span) -> Changed:
    try:
        new = _at(question, span.until)
    except _errors() as error:
        return _full_table(question, span.storage, span.path, _cannot_be_had(span.until, error))
    if not any(commit.changes_data for commit in span.commits):
        return nothing(new, span.range)
    check_columns(new.schema, question.keys)
    why = _fault(question, span, new)
    if why is None:
        frame, why = _change_by_change(question, span, new)
        if frame is not None:
            return incremental(frame, span.range)
    return _compared(question, span, new, why or "")


def _fault(question: Question, span: _Span, new: "DataFrame") -> str | None:
    """Report why changes cannot be read one by one; the log takes precedence over the events."""
    chain = question.chain
    why = chain.why
    if chain.fault is Fault.GAP:
        lost = _untold(chain, span.commits)
        why = chain.marked if lost is None else f"no event covers version {lost}"
    if why is not None:
        return why
    if any(commit.schema is not None for commit in span.commits):
        if has_new_schema(span.commits):
            return "the schema changed on the way"
        try:
            is_same = _at(question, span.since).schema == new.schema
        except _errors() as error:
            return _cannot_be_had(span.since, error)
        return None if is_same else "the schema changed on the way"
    return None


def _untold(chain: Chain, commits: Sequence[Commit]) -> int | None:
    """Return the first version that changed data and that no event covers."""
    reported = [
        (int(event.prev_snapshot_id or -1), int(event.snapshot_id or 0)) for event in chain.events
    ]
    for commit in commits:
        is_reported = any(before < commit.version <= last for before, last in reported)
        if commit.changes_data and not is_reported:
            return commit.version
    return None


def _change_by_change(
    question: Question, span: _Span, new: "DataFrame"
) -> "tuple[DataFrame | None, str | None]":
    """Return the changed rows, or why they cannot be read without comparing."""
    why_not_files = None
    if all(commit.only_appends for commit in span.commits):
        frame, why_not_files = _appended(question, span, new)
        if frame is not None:
            return frame, None
    lost = missing_of_feed(span.storage, span.commits)
    if lost is not None:
        return None, f"{lost} was removed by VACUUM"
    try:
        return _feed(question, span, new), None
    except _errors() as error:
        log.debug("%s: no change data feed: %s", question.name, error)
    return None, why_not_files or (
        "rows were changed or deleted, and its change data feed does not cover that"
    )


def _appended(
    question: Question, span: _Span, new: "DataFrame"
) -> "tuple[DataFrame | None, str | None]":
    files = [file for commit in span.commits for file in commit.added if file.changes_data]
    new_files = [
        NewFile(path=file.path, version=span.until, partition=file.partition) for file in files
    ]
    groups = by_partition(new_files)
    if any(file.has_vector for file in files) or not span.is_plain:
        return None, "its files cannot be read without its log"
    if len(groups) > _MOST_PARTITIONS:
        return None, f"the appended files are in {len(groups)} partitions"
    lost = missing(span.storage, files)
    if lost is not None:
        return None, f"{lost} was removed by VACUUM"
    parts = [plain(question.session, span.path, new.schema, group) for group in groups]
    return gained(union(parts)), None


def _table(storage: Storage, path: str) -> Table | None:
    """Return the table as the log describes it now; ``None`` when the log is not sufficient."""
    try:
        return current_of(storage, path, list_log(storage, path)).table
    except (ProbeFailedError, OSError):
        return None


def _feed(question: Question, span: _Span, new: "DataFrame") -> "DataFrame":
    reader = (
        question.session.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", span.since + 1)
        .option("endingVersion", span.until)
    )
    name = question.name
    rows = reader.load(span.path) if is_path(name) else reader.table(in_sql(name))
    # Delta looks for the feed only when it reads it.
    rows.head(1)
    return of_log(rows, new.schema, question.keys)


def _compared(question: Question, span: _Span, new: "DataFrame", why: str) -> Changed:
    gone = gone_since((*span.commits, *span.later))
    lost = missing(span.storage, gone)
    if lost is not None:
        why = f"{why}, and {lost} of version {span.since} was removed by VACUUM"
        return _full_table(question, span.storage, span.path, why)
    lost = missing(span.storage, gone_since(span.later))
    if lost is not None:
        why = f"{why}, and {lost} of version {span.until} was removed by VACUUM"
        return _full_table(question, span.storage, span.path, why)
    return _without_log(question, span.since, span.until, why)


def _without_log(question: Question, since: int, until: int, why: str) -> Changed:
    try:
        new = _at(question, until)
    except _errors() as error:
        why = f"{why}, and {_cannot_be_had(until, error)}"
        return full_table(question, _now(question), None, why)
    try:
        old = _at(question, since)
    except _errors() as error:
        return full_table(question, new, str(until), f"{why}, and {_cannot_be_had(since, error)}")
    differs = why_not_compared(old.schema, new.schema)
    if differs is not None:
        return full_table(question, new, str(until), f"{why}, and {differs}")
    where = Range(since=str(since), until=str(until))
    return compared(question, (old, new), where, why)


def _full_table(question: Question, storage: Storage, path: str, why: str) -> Changed:
    """Return all rows at the end of the range, or of now where that end is gone."""
    until = question.chain.until
    if until is not None and _is_there(storage, path, int(until)):
        try:
            return full_table(question, _at(question, int(until)), until, why)
        except _errors() as error:
            log.debug("%s: %s", question.name, error)
    return full_table(question, _now(question), None, why)


def _is_there(storage: Storage, path: str, version: int) -> bool:
    try:
        # Its own commit reports that those after it are not cleaned away either.
        _, *later = read_commits(storage, path, after=version - 1, until=version)
        return missing(storage, gone_since(later)) is None
    except (ProbeFailedError, OSError):
        return False


def _at(question: Question, version: int) -> "DataFrame":
    files = NewFiles(table_path=question.name, version=version, files=None, plain=False)
    return rows_of(files)(question.session)


def _now(question: Question) -> "DataFrame":
    if is_path(question.name):
        return question.session.read.format("delta").load(question.name)
    return question.session.table(in_sql(question.name))


def _path(question: Question) -> str:
    if is_path(question.name):
        return normalized(question.name)
    return SparkTableLocator(lambda: question.session).locate(question.name)


def _storage(question: Question, path: str) -> Storage:
    return Storages().of(path)


def _cannot_be_had(version: int, error: Exception) -> str:
    return f"version {version} cannot be read any more: {message_of(error)}"


def _errors() -> tuple[type[Exception], ...]:
    from harness.platform.spark.errors import SPARK_ERRORS

    return SPARK_ERRORS
