"""Looks at Delta tables through their logs: two small calls prove that nothing is new."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.errors import LookFailedError
from harness.sense.delta.admit import Admission, needed_key
from harness.sense.delta.current import BareLogSaysTooLittleError
from harness.sense.delta.follow import Finding, follow
from harness.sense.delta.history import (
    TableHistory,
    first_by_history,
    follow_history,
    is_by_history,
)
from harness.sense.delta.lives import Subject, first_sight, in_doubt
from harness.sense.delta.locate import TableLocator, is_path
from harness.sense.delta.log import commit_path
from harness.sense.delta.position import Position, position_from
from harness.sense.storage import FileStat, Storage, Storages, normalized, reason_of
from harness.sense.types import Look, NewRows, Upstream


@dataclass(frozen=True, slots=True)
class _Idle:
    """What an idle look needs, kept so that it need not be made again."""

    text: str
    value: str | None
    storage: Storage
    next_commit: str
    known_commit: str
    fingerprint: FileStat
    answer: Look


class DeltaProbe:
    """Senses ``delta_table`` and ``lmu_delta_table``."""

    def __init__(
        self,
        storages: Storages,
        locator: TableLocator,
        new_rows: NewRows,
        history: TableHistory,
    ) -> None:
        self._storages = storages
        self._locator = locator
        self._history = history
        self._admission = Admission(new_rows)
        self._idle: dict[str, _Idle] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each table is looked at alone."""
        return upstream.upstream_id

    def look(self, group: Sequence[Upstream], *, at: datetime) -> list[Look]:
        """Return one look per upstream; the instant plays no part."""
        return [self._look(upstream) for upstream in group]

    def _look(self, upstream: Upstream) -> Look:
        try:
            return self._idle_answer(upstream) or self._look_closely(upstream)
        except (LookFailedError, OSError) as error:
            reason = reason_of(error)
        return Look(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The Delta table {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _idle_answer(self, upstream: Upstream) -> Look | None:
        idle = self._idle.get(upstream.upstream_id)
        if (
            idle is not None
            and idle.text == upstream.position
            and idle.value == upstream.upstream_value
            and idle.storage.stat(idle.next_commit) is None
            and idle.storage.stat(idle.known_commit) == idle.fingerprint
        ):
            return idle.answer
        return None

    def _look_closely(self, upstream: Upstream) -> Look:
        finding = self._found(upstream)
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

    def _found(self, upstream: Upstream) -> Finding:
        key_name = needed_key(upstream)
        position = None if upstream.position is None else position_from(upstream.position)
        if position is not None and is_by_history(position):
            return follow_history(self._history, upstream, position)
        try:
            if position is None:
                return first_sight(self._subject(upstream, key_name), upstream.on_first_sight)
            return self._since(upstream, position, key_name)
        except BareLogSaysTooLittleError as error:
            try:
                if position is None:
                    return first_by_history(self._history, upstream, key_name)
                return follow_history(self._history, upstream, position)
            except LookFailedError as second:
                raise LookFailedError(f"{error}, and {second}") from second

    def _since(self, upstream: Upstream, position: Position, key_name: str | None) -> Finding:
        storage = self._storages.of(position.path)
        has_more = storage.stat(commit_path(position.path, position.version + 1)) is not None
        known = storage.stat(commit_path(position.path, position.version))
        if known != position.fingerprint:
            return in_doubt(self._subject(upstream, key_name), position)
        if not has_more:
            return Finding(position=position)
        return follow(storage, position, upstream.sensor_id, key_name)

    def _subject(self, upstream: Upstream, key_name: str | None) -> Subject:
        sensor_id = upstream.sensor_id
        path = normalized(sensor_id) if is_path(sensor_id) else self._locator.locate(sensor_id)
        return Subject(
            storage=self._storages.of(path), path=path, sensor_id=sensor_id, key_name=key_name
        )

    def _remember(self, position: Position, answer: Look) -> None:
        self._idle[answer.upstream_id] = _Idle(
            text=answer.position or "",
            value=answer.upstream_value,
            storage=self._storages.of(position.path),
            next_commit=commit_path(position.path, position.version + 1),
            known_commit=commit_path(position.path, position.version),
            fingerprint=position.fingerprint,
            answer=replace(answer, events=(), gap=None),
        )
