"""Looks at Delta tables through their logs: two small calls prove that nothing is new."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.errors import LookFailedError
from harness.platform.delta_log import BareLogSaysTooLittleError, commit_path
from harness.platform.sql_names import is_path
from harness.platform.storage import FileStat, Storage, Storages, normalized, reason_of
from harness.sense.preprocess.query import needed_key
from harness.sense.probe import Look, NewRows, Upstream
from harness.sense.sources.delta.commits import (
    READING_SECONDS,
    Finding,
    Portion,
    Subject,
    first_sight,
    follow,
    in_doubt,
)
from harness.sense.sources.delta.cursor import Position, position_from
from harness.sense.sources.delta.filter import Admission
from harness.sense.sources.delta.history import TableHistory
from harness.sense.sources.delta.history_probe import (
    first_by_history,
    follow_history,
    is_by_history,
)
from harness.sense.table_locations import Places, TableLocator


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
    answer: Look


class DeltaProbe:
    """Senses ``delta_table`` and ``lmu_delta_table``.

    Args:
        storages: Where the logs are read.
        locator: Knows tables by name.
        new_rows: Answers what the log cannot.
        history: Knows tables whose bare log says too little.
        monotonic: Limits how long one look reads.
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
        """Return the upstream's own id: each table is looked at alone."""
        return upstream.upstream_id

    def look(self, group: Sequence[Upstream], *, at: datetime) -> list[Look]:
        """Return one look per upstream; the instant only says when to ask the catalog again."""
        return [self._look(upstream, at) for upstream in group]

    def _look(self, upstream: Upstream, at: datetime) -> Look:
        try:
            return self._idle_answer(upstream, at) or self._look_closely(upstream, at)
        except (LookFailedError, OSError) as error:
            reason = reason_of(error)
        return Look(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The Delta table {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _idle_answer(self, upstream: Upstream, at: datetime) -> Look | None:
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

    def _look_closely(self, upstream: Upstream, at: datetime) -> Look:
        finding = self._found(upstream, at)
        changes, value = self._admission.admitted(upstream, finding)
        text = finding.position.to_text()
        if text == upstream.position:
            text = upstream.position
        answer = Look(
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
        position = None if upstream.position is None else position_from(upstream.position)
        if position is not None and is_by_history(position):
            return self._by_history(upstream, position)
        try:
            if position is None:
                return first_sight(self._subject(upstream, at), upstream.on_first_sight)
            return self._since(upstream, position, at)
        except BareLogSaysTooLittleError as error:
            return self._by_history(upstream, position, str(error))
        except PermissionError as error:
            if position is not None or is_path(upstream.sensor_id):
                raise
            # A catalog may show a table to those who may not read its files.
            return self._by_history(upstream, position, reason_of(error))

    def _by_history(
        self, upstream: Upstream, position: Position | None, why: str | None = None
    ) -> Finding:
        try:
            if position is None:
                return first_by_history(self._history, upstream, needed_key(upstream))
            return follow_history(self._history, upstream, position, self._portion(upstream))
        except LookFailedError as error:
            if why is None:
                raise
            raise LookFailedError(f"{why}, and {error}") from error

    def _since(self, upstream: Upstream, position: Position, at: datetime) -> Finding:
        storage = self._storages.of(position.path)
        has_more = storage.stat(commit_path(position.path, position.version + 1)) is not None
        known = storage.stat(commit_path(position.path, position.version))
        if known != position.fingerprint or self._is_elsewhere(upstream, position.path, at):
            return in_doubt(self._subject(upstream, at), position)
        if not has_more:
            return Finding(position=position)
        return follow(self._subject_at(upstream, position.path), position)

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
            told=frozenset(int(each) for each in upstream.told_snapshots if each.isdigit()),
            has_time=lambda: self._monotonic() < until,
        )

    def _remember(self, position: Position, answer: Look) -> None:
        self._idle[answer.upstream_id] = _Idle(
            text=answer.position or "",
            value=answer.upstream_value,
            path=position.path,
            storage=self._storages.of(position.path),
            next_commit=commit_path(position.path, position.version + 1),
            known_commit=commit_path(position.path, position.version),
            fingerprint=position.fingerprint,
            answer=replace(answer, events=(), gap=None),
        )
