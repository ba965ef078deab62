"""Probes Delta tables through their logs: two small calls prove that nothing is new."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from harness.errors import ProbeFailedError
from harness.platform.delta_log import IncompleteLogError, commit_path
from harness.platform.sql_names import is_path
from harness.platform.storage import FileStat, Storage, Storages, normalized, reason_of
from harness.sense.preprocess.query import needed_key
from harness.sense.probe import Continued, NewRows, ProbeResult
from harness.sense.sources.delta.commits import (
    READING_SECONDS,
    Finding,
    Portion,
    Subject,
    first_sight,
    follow,
    in_doubt,
    resume,
)
from harness.sense.sources.delta.cursor import Cursor, cursor_from
from harness.sense.sources.delta.filter import Admission
from harness.sense.sources.delta.history import TableHistory
from harness.sense.sources.delta.history_probe import (
    first_by_history,
    follow_history,
    is_by_history,
)
from harness.sense.sources.delta.named_tables import (
    Named,
    NamedTables,
    Refused,
    RememberedHistory,
    with_catalog_time,
)
from harness.sense.table_locations import Places, TableLocator
from harness.store.work_lists import Upstream

#: A table whose files could not be read is tried again by its log after so long.
_LOG_AGAIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class _Idle:
    """What an idle probe needs, kept so that it need not be made again."""

    text: str
    value: str | None
    path: str
    storage: Storage
    next_commit: str
    known_commit: str
    fingerprint: FileStat
    answer: ProbeResult


class DeltaProbe:
    """Senses ``delta_table`` and ``lmu_delta_table``.

    Args:
        storages: Where the logs are read.
        names: Finds tables by name: where their logs are, or, in the catalogs of a workspace, which
            of them may have changed.
        new_rows: Returns what the log lacks.
        history: Reads the history of tables whose bare log is incomplete.
        monotonic: Limits how long one probe reads.
    """

    def __init__(
        self,
        storages: Storages,
        names: TableLocator | NamedTables,
        new_rows: NewRows,
        history: TableHistory,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storages = storages
        self._named = names if isinstance(names, NamedTables) else None
        self._places = None if isinstance(names, NamedTables) else Places(names)
        self._history = history
        self._monotonic = monotonic
        self._admission = Admission(new_rows)
        self._idle: dict[str, _Idle] = {}
        #: When the log of a table that is sensed by its history was tried.
        self._log_tried: dict[str, datetime] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the catalog of a name in a workspace; each other table is probed alone."""
        if self._named is None or is_path(upstream.sensor_id):
            return upstream.upstream_id
        try:
            return f"{self._named.catalog_of(upstream.sensor_id)}:"
        except ProbeFailedError:
            return upstream.upstream_id

    def probe(
        self, group: Sequence[Upstream], *, at: datetime
    ) -> Sequence[ProbeResult | Continued]:
        """Return one probe per upstream; the instant only shows when to query the catalog again."""
        if self._named is None or is_path(group[0].sensor_id):
            return [self._probe(upstream, at) for upstream in group]
        try:
            known = self._named.known(group, at)
        except ProbeFailedError as error:
            return [_failed(upstream, error) for upstream in group]
        results = [self._result(each) for each in known]
        if len(results) == 1:
            return [each.probe() if isinstance(each, Continued) else each for each in results]
        return results

    def _result(self, known: Named | Refused) -> ProbeResult | Continued:
        upstream = known.upstream
        if isinstance(known, Refused):
            return _failed(upstream, ProbeFailedError(known.reason))
        if known.is_idle:
            return ProbeResult(
                upstream_id=upstream.upstream_id,
                position=upstream.position,
                upstream_value=upstream.upstream_value,
            )
        return Continued(
            upstream_id=upstream.upstream_id, probe=partial(self._probe_by_name, known)
        )

    def _probe_by_name(self, known: Named) -> ProbeResult:
        upstream, history = known.upstream, RememberedHistory(self._history)
        try:
            cursor = None if upstream.position is None else cursor_from(upstream.position)
            found = self._by_history(history, upstream, cursor, name=str(known.name))
            cursor = with_catalog_time(found.position, known, history.rows)
            return self._answer(upstream, replace(found, position=cursor))
        except ProbeFailedError as error:
            return _failed(upstream, error)

    def _probe(self, upstream: Upstream, at: datetime) -> ProbeResult:
        try:
            return self._idle_answer(upstream, at) or self._probe_closely(upstream, at)
        except (ProbeFailedError, OSError) as error:
            return _failed(upstream, error)

    def _idle_answer(self, upstream: Upstream, at: datetime) -> ProbeResult | None:
        idle = self._idle.get(upstream.upstream_id)
        if idle is None or (idle.text, idle.value) != (upstream.position, upstream.upstream_value):
            return None
        try:
            is_idle = (
                idle.storage.stat(idle.next_commit) is None
                and idle.storage.stat(idle.known_commit) == idle.fingerprint
                and not self._is_elsewhere(upstream, idle.path, at)
            )
        except PermissionError:
            # The probe itself handles this in another way.
            return None
        return idle.answer if is_idle else None

    def _is_elsewhere(self, upstream: Upstream, path: str, at: datetime) -> bool:
        name = upstream.sensor_id
        if self._places is None or is_path(name):
            return False
        return self._places.is_elsewhere(name, path, at)

    def _probe_closely(self, upstream: Upstream, at: datetime) -> ProbeResult:
        finding = self._found(upstream, at)
        answer = self._answer(upstream, finding)
        if not is_by_history(finding.position):
            self._remember(finding.position, answer)
        return answer

    def _answer(self, upstream: Upstream, finding: Finding) -> ProbeResult:
        changes, value = self._admission.admitted(upstream, finding)
        text = finding.position.to_text()
        if text == upstream.position:
            text = upstream.position
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=text,
            events=tuple(change.event for change in changes),
            upstream_value=value,
            gap=finding.gap,
        )

    def _found(self, upstream: Upstream, at: datetime) -> Finding:
        cursor = None if upstream.position is None else cursor_from(upstream.position)
        if cursor is not None and is_by_history(cursor):
            resumed = self._resumed(upstream, cursor, at)
            return resumed or self._by_history(self._history, upstream, cursor)
        try:
            if cursor is None:
                return first_sight(self._subject(upstream, at), upstream.on_first_sight)
            return self._since(upstream, cursor, at)
        except IncompleteLogError as error:
            why = str(error)
        except PermissionError as error:
            why = reason_of(error)
            if is_path(upstream.sensor_id):
                raise ProbeFailedError(
                    f"{why}; let this identity read it, or name the table as a catalog does"
                ) from error
            # A catalog may show a table to those who may not read its files.
            self._log_tried[upstream.upstream_id] = at
        try:
            return self._by_history(self._history, upstream, cursor)
        except ProbeFailedError as error:
            raise ProbeFailedError(f"{why}, and {error}") from error

    def _resumed(self, upstream: Upstream, cursor: Cursor, at: datetime) -> Finding | None:
        """Go on by the log where its files can be read again; nothing when they cannot."""
        tried = self._log_tried.get(upstream.upstream_id)
        if is_path(upstream.sensor_id) or (tried is not None and at - tried < _LOG_AGAIN):
            return None
        self._log_tried[upstream.upstream_id] = at
        try:
            return resume(self._subject(upstream, at), cursor)
        except (ProbeFailedError, OSError):
            return None

    def _by_history(
        self,
        history: TableHistory,
        upstream: Upstream,
        cursor: Cursor | None,
        *,
        name: str | None = None,
    ) -> Finding:
        if cursor is None:
            return first_by_history(history, upstream, needed_key(upstream), name)
        return follow_history(history, upstream, cursor, self._portion(upstream), name)

    def _since(self, upstream: Upstream, cursor: Cursor, at: datetime) -> Finding:
        storage = self._storages.of(cursor.path)
        has_more = storage.stat(commit_path(cursor.path, cursor.version + 1)) is not None
        known = storage.stat(commit_path(cursor.path, cursor.version))
        if known != cursor.fingerprint or self._is_elsewhere(upstream, cursor.path, at):
            return in_doubt(self._subject(upstream, at), cursor)
        if not has_more:
            return Finding(position=cursor)
        return follow(self._subject_at(upstream, cursor.path), cursor)

    def _subject(self, upstream: Upstream, at: datetime) -> Subject:
        name = upstream.sensor_id
        if self._places is None or is_path(name):
            return self._subject_at(upstream, normalized(name))
        return self._subject_at(upstream, self._places.locate(name, at))

    def _subject_at(self, upstream: Upstream, path: str) -> Subject:
        return Subject(
            storage=self._storages.of(path),
            path=path,
            sensor_id=upstream.sensor_id,
            key_name=needed_key(upstream),
            portion=self._portion(upstream),
        )

    def _portion(self, upstream: Upstream) -> Portion:
        until = self._monotonic() + READING_SECONDS
        return Portion(
            reported=frozenset(int(each) for each in upstream.reported_snapshots if each.isdigit()),
            has_time=lambda: self._monotonic() < until,
        )

    def _remember(self, cursor: Cursor, answer: ProbeResult) -> None:
        self._idle[answer.upstream_id] = _Idle(
            text=answer.position or "",
            value=answer.upstream_value,
            path=cursor.path,
            storage=self._storages.of(cursor.path),
            next_commit=commit_path(cursor.path, cursor.version + 1),
            known_commit=commit_path(cursor.path, cursor.version),
            fingerprint=cursor.fingerprint,
            answer=replace(answer, events=(), gap=None),
        )


def _failed(upstream: Upstream, error: ProbeFailedError | OSError) -> ProbeResult:
    return ProbeResult(
        upstream_id=upstream.upstream_id,
        position=upstream.position,
        upstream_value=upstream.upstream_value,
        failure=f"The Delta table {upstream.sensor_id} cannot be sensed: {reason_of(error)}.",
    )
