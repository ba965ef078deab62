"""Probes files: a folder's, those that match a pattern, or the markers of their writers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from harness.config.sources import FirstSight
from harness.errors import ProbeFailedError
from harness.platform.storage import Storage, Storages, reason_of
from harness.sense.preprocess.run import Questions, evaluate
from harness.sense.probe import ProbeResult
from harness.sense.sources.file.cursor import Cursor, NewFile, compare, cursor_from, identities_of
from harness.sense.sources.file.events import events_of
from harness.sense.sources.file.listing import Found, Place, data_beside, find, place_of
from harness.sense.sources.file.new_rows import rows_of
from harness.store.work_lists import Upstream


@dataclass(frozen=True, slots=True)
class _Change:
    after: Cursor
    news: list[NewFile]
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class _Idle:
    files: frozenset[Found]
    answer: ProbeResult


class FileProbe:
    """Senses ``file``: one listing per folder and probe.

    A file counts when two probes in a row found it the same, so that one that is being written is
    not taken for data; a marker counts at once, since it is written last.
    """

    def __init__(self, storages: Storages, questions: Questions) -> None:
        self._storages = storages
        self._questions = questions
        self._idle: dict[str, _Idle] = {}

    def group_of(self, upstream: Upstream) -> str:
        """Return the upstream's own id: each place is probed alone."""
        return upstream.upstream_id

    def probe(self, group: Sequence[Upstream], *, at: datetime) -> list[ProbeResult]:
        """Return one probe per upstream; the instant plays no part."""
        return [self._probe(upstream) for upstream in group]

    def _probe(self, upstream: Upstream) -> ProbeResult:
        place = place_of(upstream.sensor_id)
        try:
            return self._probe_closely(upstream, place)
        except (ProbeFailedError, OSError) as error:
            reason = reason_of(error, missing=f"the folder {place.base} does not exist; create it")
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=upstream.position,
            upstream_value=upstream.upstream_value,
            failure=f"The files {upstream.sensor_id} cannot be sensed: {reason}.",
        )

    def _probe_closely(self, upstream: Upstream, place: Place) -> ProbeResult:
        storage = self._storages.of(place.base)
        files = frozenset(
            file for file in find(storage, place) if file.length or place.is_of_markers
        )
        idle = self._idle.get(upstream.upstream_id)
        if idle is not None and idle.answer.position == upstream.position and idle.files == files:
            return replace(idle.answer, upstream_value=upstream.upstream_value)
        before, now = cursor_from(upstream.position), identities_of(files)
        is_baseline = upstream.position is None and upstream.on_first_sight is FirstSight.BASELINE
        after, changes = compare(now, before, at_once=place.is_of_markers or is_baseline)
        answer = self._answer(upstream, storage, place, _Change(after, changes, is_baseline))
        if not after.pending:
            self._idle[upstream.upstream_id] = _Idle(files, replace(answer, events=()))
        return answer

    def _answer(
        self, upstream: Upstream, storage: Storage, place: Place, change: _Change
    ) -> ProbeResult:
        is_change, value = bool(change.news) and not change.is_baseline, upstream.upstream_value
        if change.news and upstream.preprocess_query:
            files = [each.file for each in change.news]
            if place.is_of_markers:
                files = _data_of(storage, files)
            rows = rows_of(files)
            answer = evaluate(self._questions, upstream, rows, is_baseline=change.is_baseline)
            is_change, value = answer.is_change, answer.upstream_value
        return ProbeResult(
            upstream_id=upstream.upstream_id,
            position=change.after.to_text(),
            events=events_of(upstream, change.news, change.after) if is_change else (),
            upstream_value=value,
        )


def _data_of(storage: Storage, markers: Sequence[Found]) -> list[Found]:
    beside = {file for marker in markers for file in data_beside(storage, marker.path)}
    return sorted(file for file in beside if file.length)
