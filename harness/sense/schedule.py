"""Probes the upstreams that are due, defers failing ones, limits the time of each."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from harness.config.connections import Connections
from harness.config.load import Settings
from harness.config.model import Sensing
from harness.config.sources import Source
from harness.errors import StateError
from harness.sense.backoff import BackOff, load_back_off, save_back_off
from harness.sense.probe import ProbeResult
from harness.store.work_lists import Upstream

log = logging.getLogger(__name__)


class ProbesAll(Protocol):
    """Probes many upstreams; implemented by the probe pool."""

    def probe_all(
        self,
        upstreams: Sequence[Upstream],
        *,
        at: datetime,
        on_result: Callable[[ProbeResult], None] | None = None,
    ) -> list[ProbeResult]:
        """Return one result per upstream; those that were not probed are missing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """An upstream that this tick did not probe."""

    upstream_id: str
    reason: str
    #: ``None``: the next tick.
    next_probe_at: datetime | None = None
    #: Its last probe failed. Otherwise other probes hang, and no failure of this one is recorded.
    is_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The results of the probes of one tick, and the deferred upstreams."""

    upstreams: tuple[Upstream, ...] = ()
    results: tuple[ProbeResult, ...] = ()
    deferred: tuple[Deferred, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Callbacks of the progress of a sweep."""

    on_plan: Callable[[int], None] | None = None
    on_result: Callable[[ProbeResult], None] | None = None


class Sweeps:
    """Runs the sweeps; their backoff is kept in a file.

    Args:
        settings: How upstreams are probed.
        path: The backoff file.
    """

    def __init__(self, settings: Settings, path: Path) -> None:
        self._settings = settings
        self._path = path
        self._configuration = _checksum(settings.file)

    def probe(
        self,
        wanted: Sequence[Upstream],
        probe_pool: Callable[[], ProbesAll],
        *,
        at: datetime,
        listening: Listening,
        reported: Mapping[str, frozenset[str]] | None = None,
    ) -> Sweep:
        """Probe every upstream that is due.

        Args:
            wanted: The upstreams of the tick.
            probe_pool: Returns the probe pool, if any upstream is due.
            at: The instant of the tick.
            listening: Callbacks of the progress.
            reported: The snapshots that a killed tick has reported already, by upstream.
        """
        before = load_back_off(self._path, self._configuration)
        # The ledgers record which upstreams fail; an older file may differ.
        known = before.without(each.upstream_id for each in wanted if not each.failing_since)
        failing = known.deferred((each.upstream_id for each in wanted), at)
        # When too many probes hang, those not begun are deferred: not the ones that worked.
        trusted_first = sorted(wanted, key=lambda each: each.failing_since is not None)
        upstreams = self._upstreams(trusted_first, reported or {})
        due = [each for each in upstreams if each.upstream_id not in failing]
        if due and listening.on_plan:
            listening.on_plan(len(due))
        results = probe_pool().probe_all(due, at=at, on_result=listening.on_result) if due else []
        after = known.after(results, at, self._settings.sensing.back_off_at_most_seconds)
        self._save(before, after.described(due))
        kept = (
            Deferred(
                upstream_id=each.upstream_id,
                reason=each.reason,
                next_probe_at=each.next_probe(at),
                is_failing=True,
            )
            for each in failing.values()
        )
        return Sweep(
            upstreams=upstreams,
            results=tuple(results),
            deferred=(*kept, *_left_out(due, results)),
        )

    def try_again(self, upstream_ids: Iterable[str]) -> None:
        """Reset the backoff of upstreams, so that the next sweep probes them."""
        before = load_back_off(self._path, self._configuration)
        self._save(before, before.reset(upstream_ids))

    def keep_only(self, upstream_ids: Iterable[str]) -> None:
        """Remove all others: no row in force needs them, or its rows are paused."""
        before = load_back_off(self._path, self._configuration)
        if before.failing:
            self._save(before, before.only(upstream_ids))

    def _save(self, before: BackOff, after: BackOff) -> None:
        if after == before:
            return
        if before.failing and not self._path.exists():
            # The file was removed during the sweep: retry all.
            after = after.reset(after.failing)
        try:
            save_back_off(self._path, after, self._configuration)
        except StateError as error:
            # Nothing is lost: the next tick only probes too often.
            log.warning("the backoff file cannot be written: %s", error)

    def _upstreams(
        self, wanted: Iterable[Upstream], reported: Mapping[str, frozenset[str]]
    ) -> tuple[Upstream, ...]:
        return tuple(
            self._of_sweep(each, reported.get(each.upstream_id, frozenset())) for each in wanted
        )

    def _of_sweep(self, upstream: Upstream, reported: frozenset[str]) -> Upstream:
        first = upstream.on_first_sight
        if upstream.position is None:
            first = self._settings.sensing.first_sight_of(upstream.source, upstream.sensor_id)
        if first is upstream.on_first_sight and reported == upstream.reported_snapshots:
            # An idle sweep of many thousands is faster without a copy of each.
            return upstream
        return replace(upstream, on_first_sight=first, reported_snapshots=reported)


def _left_out(due: Sequence[Upstream], results: Sequence[ProbeResult]) -> Iterable[Deferred]:
    if len(results) == len(due):
        return
    made = {result.upstream_id for result in results}
    for upstream in due:
        if upstream.upstream_id not in made:
            reason = f"too many other probes of {upstream.source} hang"
            yield Deferred(upstream_id=upstream.upstream_id, reason=reason)


def _checksum(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


#: A slow but living cluster may use up its limit in each: topics, ends, starts, messages.
_KAFKA_REQUESTS = 4
#: All queries of a probe share the limit of its database; preprocess queries come on top of it.
_DATABASE_REQUESTS = 2


def probe_limits(sensing: Sensing, connections: Connections) -> dict[str, float]:
    """Return the time limits in seconds of all sources that differ from the project's.

    An abandoned probe has no reason to report, so a connection's own limit has to come
    first: where ``sensing.limits`` has no entry, a source gets time for all requests of a probe.
    """
    usual = sensing.look_timeout_seconds
    limits: dict[str, float] = {}
    for source, seconds in connections.slowest_by_source().items():
        requests = _KAFKA_REQUESTS if source == Source.KAFKA else _DATABASE_REQUESTS
        limits[source] = max(usual, seconds * requests)
    limits.update((str(source), seconds) for source, seconds in sensing.limits.items())
    return limits
