"""Probes Delta tables through their logs: two small calls prove that nothing is new."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.errors import ProbeFailedError
from harness.platform.delta_log import IncompleteLogError, commit_path
from harness.platform.sql_names import is_path
from harness.platform.storage import FileStat, Storage, Storages, normalized, reason_of
from harness.sense.preprocess.query import needed_key
from harness.sense.probe import NewRows, ProbeResult
from harness.sense.sources.delta.commits import (
    READING_SECONDS,
    Finding,
    Portion,
    Subject,
    first_sight,
    follow,
    in_doubt,
)
from harness.sense.sources.delta.cursor import Cursor, cursor_from
from harness.sense.sources.delta.filter import Admission
from harness.sense.sources.delta.history import TableHistory
from harness.sense.sources.delta.history_probe import (
    first_by_history,
    follow_history,
    is_by_history,
)
from harness.sense.table_locations import Places, TableLocator
from harness.store.work_lists import Upstream


@dataclass(frozen=True, slots=True)
class _Idle:
    """What an idle look needs, kept so that it need not be made again."""

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
        locator: Knows tables by name.
        new_rows: Answers what the log cannot.
        history: Knows tables whose bare log says too little.
        monotonic: Limits how long one probe reads.
    """

    def __init__(
        self,
        storages: Storages,
        locator: TableLocator,
        new_rows: NewRows,
        history: TableHistory,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storages = storages
        self._places = Places(locator)
        self._history = history
        self._monotonic = monotonic
        self._admission = Admission(new_rows)
        self._idle: dict[str, _Idle] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each table is probed alone."""
        return upstream.upstream_id

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream; the instant only shows when to ask the catalog again."""
        return [self._probe(upstream, at) for upstream in group]

    def _probe(self, upstream: Upstream, at: datetime) -> ProbeResult:
        try:
            return self._idle_answer(upstream, at) or self._probe_closely(upstream, at)
        except (ProbeFailedError, OSError) as error:
            reason = reason_of(error)
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The Delta table {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _idle_answer(self, upstream: Upstream, at: datetime) -> ProbeResult | None:
        idle = self._idle.get(upstream.upstream_id)
        if (
            idle is not None
            and idle.text == upstream.position
            and idle.value == upstream.upstream_value
            and idle.storage.stat(idle.next_commit) is None
            and idle.storage.stat(idle.known_commit) == idle.fingerprint
            and not self._is_elsewhere(upstream, idle.path, at)
        ):
            return idle.answer
        return None

    def _is_elsewhere(self, upstream: Upstream, path: str, at: datetime) -> bool:
        name = upstream.sensor_id
        return not is_path(name) and self._places.is_elsewhere(name, path, at)

    def _probe_closely(self, upstream: Upstream, at: datetime) -> ProbeResult:
        finding = self._found(upstream, at)
        changes, value = self._admission.admitted(upstream, finding)
        text = finding.position.to_text()
        if text == upstream.position:
            text = upstream.position
        answer = ProbeResult(
            upstream_id=upstream.upstream_id,
            position=text,
            events=tuple(change.event for change in changes),
            upstream_value=value,
            gap=finding.gap,
        )
        if not is_by_history(finding.position):
            self._remember(finding.position, answer)
        return answer

    def _found(self, upstream: Upstream, at: datetime) -> Finding:
        cursor = None if upstream.position is None else cursor_from(upstream.position)
        if cursor is not None and is_by_history(cursor):
            return self._by_history(upstream, cursor)
        try:
            if cursor is None:
                return first_sight(self._subject(upstream, at), upstream.on_first_sight)
            return self._since(upstream, cursor, at)
        except IncompleteLogError as error:
            return self._by_history(upstream, cursor, str(error))
        except PermissionError as error:
            if cursor is not None or is_path(upstream.sensor_id):
                raise
            # A catalog may show a table to those who may not read its files.
            return self._by_history(upstream, cursor, reason_of(error))

    def _by_history(
        self, upstream: Upstream, cursor: Cursor | None, why: str | None = None
    ) -> Finding:
        try:
            if cursor is None:
                return first_by_history(self._history, upstream, needed_key(upstream))
            return follow_history(self._history, upstream, cursor, self._portion(upstream))
        except ProbeFailedError as error:
            if why is None:
                raise
            raise ProbeFailedError(f"{why}, and {error}") from error

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
        path = normalized(name) if is_path(name) else self._places.locate(name, at)
        return self._subject_at(upstream, path)

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
