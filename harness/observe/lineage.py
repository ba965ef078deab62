"""Sends an OpenLineage event for each start and end of a run, with its data-change events.

The ledger of runs is the queue: a file has for each target the last step that it has accepted, and
changes only afterwards. A process that dies in between sends the steps again, with the same run ids
and times; none is lost. A target that fails gets later what it has missed.
"""

import json
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.config.observing import Lineage
from harness.config.secrets import SecretResolver
from harness.config.workspace_secrets import secrets_for
from harness.errors import ConfigurationError
from harness.events.payload import payload_of
from harness.inspect.attention import began
from harness.observe.delivery import Begin, Delivery, ProcessDelivery
from harness.platform.clock import instant_from
from harness.platform.format import age, iso
from harness.platform.json_file import MALFORMED, load, save
from harness.platform.masking import mask, masked
from harness.platform.text import escaped, mapped
from harness.store.queries import step_order
from harness.store.rows import Ledger, Run, RunStatus, Store, integer

if TYPE_CHECKING:
    from pathlib import Path

    from harness.context import Context
    from harness.tick.report import TickReport

log = logging.getLogger(__name__)

VERSION = 1
#: One delivery has so many events at most; the rest follows with the next tick.
_MOST_EVENTS = 500
#: A run names so many of its data-change events; their number, and each table, is always there.
_MOST_CHANGES = 100
#: A resident process ticks each second, and a target that is down is not tried as often.
_BETWEEN_TRIES = timedelta(seconds=30)
#: A service that is stopped has to end soon; what is not recorded by then is sent again.
_SECONDS_AT_END = 5.0
_SECONDS_TO_KILL = 2.0

#: Sends events in a process of its own.
BY_PROCESS: Begin = partial(ProcessDelivery, "harness.observe.send_lineage")

#: What a step of a run is in OpenLineage; a step without a word is nothing new about the run.
_TYPES: Mapping[RunStatus, str] = {
    RunStatus.STARTED: "START",
    RunStatus.ACQUIRED: "START",
    RunStatus.SUCCEEDED: "COMPLETE",
    RunStatus.FAILED: "FAIL",
    RunStatus.TIMED_OUT: "FAIL",
    RunStatus.LOST: "FAIL",
    RunStatus.REFUSED: "FAIL",
    RunStatus.CANCELED: "ABORT",
    RunStatus.SKIPPED: "ABORT",
}
_STARTED = frozenset({RunStatus.STARTED, RunStatus.ACQUIRED})


class Target(StrEnum):
    """Where events are sent."""

    HTTP = "http"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The last step that one target has accepted, and since when the target fails."""

    tick_number: int
    step_number: int = 0
    #: The ledger when nothing after this step was in it.
    fingerprint: str | None = None
    failing_since: datetime | None = None
    tried_at: datetime | None = None

    @property
    def place(self) -> tuple[int, int]:
        """The place of the step among the others."""
        return self.tick_number, self.step_number

    def was_tried_just_before(self, now: datetime) -> bool:
        """Return whether a delivery has just failed; a clock that went back changes nothing."""
        return self.tried_at is not None and timedelta(0) <= now - self.tried_at < _BETWEEN_TRIES


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnderWay:
    """A delivery that was begun, the step of each of its events, and the ledger before it."""

    delivery: Delivery
    places: tuple[tuple[int, int], ...]
    is_all: bool
    fingerprint: str | None
    before: Progress

    def place_after(self, delivered: int) -> tuple[int, int]:
        """Return the last step whose events have all arrived; a step may have two."""
        missing = self.places[delivered]
        arrived = [place for place in self.places[:delivered] if place < missing]
        return arrived[-1] if arrived else self.before.place


class LineageOfRuns:
    """Sends after a tick what the ledger of runs has and a target has not.

    Args:
        context: The services.
        begin: Begins a delivery.
    """

    def __init__(self, context: "Context", begin: Begin = BY_PROCESS) -> None:
        self._context, self._settings, self._begin = context, context.settings.lineage, begin
        self._secrets = secrets_for(context.settings, context.environment)
        self._progress = load_progress(context.home.lineage)
        self._under_way: dict[Target, _UnderWay] = {}
        self._is_known = False

    def after(self, report: "TickReport") -> None:
        """Send the steps of the tick, and those that a target has missed."""
        has_steps = bool(report.started or report.settlement.steps)
        self._send(report.tick.number, report.tick.at, has_steps=has_steps)
        if not self._context.is_resident:
            self.wait()

    def failed(self, error: Exception) -> None:
        """Let the next tick look for the steps that the failed one has recorded."""
        self._is_known = False

    def wait(self) -> None:
        """Wait for what is under way, and record how it ended."""
        is_resident, limit = self._context.is_resident, self._settings.timeout_seconds
        for each in self._under_way.values():
            each.delivery.wait(_SECONDS_AT_END if is_resident else limit + _SECONDS_TO_KILL)
        self._collect(self._context.clock.now())

    def _send(self, number: int, now: datetime, *, has_steps: bool) -> None:
        self._collect(now)
        is_news = has_steps or not self._is_known
        # A fresh process has no record of whether the one before has sent all.
        fingerprint = self._context.store.fingerprint(Ledger.RUNS) if is_news else None
        self._is_known = True
        for target in self._targets():
            if target not in self._progress:
                # What was before the configuration is not sent.
                self._note(target, Progress(tick_number=number - 1))
            progress = self._progress[target]
            if is_news and progress.fingerprint != fingerprint:
                progress = replace(progress, fingerprint=None)
                self._progress[target] = progress
            is_early = progress.was_tried_just_before(now) or target in self._under_way
            if progress.fingerprint is None and not is_early:
                self._start(target, progress, now)

    def _targets(self) -> list[Target]:
        configured = {Target.HTTP: self._settings.url, Target.FILE: self._settings.file}
        return [target for target, place in configured.items() if place is not None]

    def _start(self, target: Target, progress: Progress, now: datetime) -> None:
        store = self._context.store
        fingerprint = store.fingerprint(Ledger.RUNS)
        steps = steps_after(progress.place, store)
        sent = steps[:_MOST_EVENTS]
        pairs = [
            (step.place, event)
            for step in sent
            for event in events_of_step(step.run, self._settings, store)
        ]
        is_all = len(sent) == len(steps)
        if not pairs:
            end = sent[-1].place if sent else progress.place
            self._note(target, _at(end, fingerprint if is_all else None))
            return
        try:
            transport = transport_of(target, self._settings, self._secrets, self._context)
        except ConfigurationError as error:
            self._failed(target, progress, progress.place, str(error).rstrip("."), now)
            return
        request = {"transport": transport, "events": [event for _, event in pairs]}
        places = (*(place for place, _ in pairs), sent[-1].place)
        self._under_way[target] = _UnderWay(
            delivery=self._begin(request, self._settings.timeout_seconds),
            places=places,
            is_all=is_all,
            fingerprint=fingerprint,
            before=progress,
        )

    def _collect(self, now: datetime) -> None:
        for target, sent in list(self._under_way.items()):
            result = sent.delivery.result
            if result is None:
                continue
            del self._under_way[target]
            # Meanwhile the ledger may have grown.
            self._is_known = False
            if result.reason is None:
                self._report_recovery(target, sent.before, now)
                self._note(target, _at(sent.places[-1], sent.fingerprint if sent.is_all else None))
            else:
                place = sent.place_after(result.delivered)
                self._failed(target, sent.before, place, result.reason, now)

    def _failed(
        self,
        target: Target,
        before: Progress,
        place: tuple[int, int],
        reason: str,
        now: datetime,
    ) -> None:
        if before.failing_since is None:
            words = "lineage: events to the %s target were not sent (%s); the next ticks try again"
            log.warning(words, target, reason)
        since = before.failing_since or now
        self._note(target, replace(_at(place, None), failing_since=since, tried_at=now))

    def _report_recovery(self, target: Target, before: Progress, now: datetime) -> None:
        if before.failing_since is not None:
            words = "lineage: the %s target accepts events again, after %s"
            log.warning(words, target, age(before.failing_since, now))

    def _note(self, target: Target, progress: Progress) -> None:
        known, self._progress[target] = self._progress.get(target), progress
        if progress != known:
            save_progress(self._context.home.lineage, self._progress)


def _at(place: tuple[int, int], fingerprint: str | None) -> Progress:
    return Progress(tick_number=place[0], step_number=place[1], fingerprint=fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of the ledger of runs, and its place."""

    place: tuple[int, int]
    run: Run


def steps_after(place: tuple[int, int], store: Store) -> list[Step]:
    """Return the steps of runs after a place of the ledger, in their order.

    Raises:
        StateError: The ledger cannot be read.
    """
    rows = store.read(Ledger.RUNS, where=[("tick_number", ">=", place[0])])
    found = [Step(place=step_order(row), run=Run.from_row(row)) for row in rows]
    return sorted((each for each in found if each.place > place), key=lambda each: each.place)


def events_of_step(run: Run, settings: Lineage, store: Store) -> list[dict[str, object]]:
    """Return what a step of a run is in OpenLineage, as ``send_lineage`` reads it.

    Args:
        run: The run after the step.
        settings: The configuration.
        store: Has the events of the run.

    Raises:
        StateError: The ledgers cannot be read.
    """
    kind = _TYPES.get(run.run_status)
    if kind is None:
        return []
    changes = changes_of(run, store)
    if run.run_status in _STARTED:
        # Every further row of a run that goes on is a poll's.
        kind = "RUNNING" if run.reported_by == "poll" else kind
        return [_event(kind, began(run), run, settings, changes)]
    ended = _event(kind, run.ended_at or run.recorded_at, run, settings, changes)
    if run.reported_by == "poll" or _has_started(run, store):
        return [ended]
    # Refused, or reported by the run alone: OpenLineage requires a start of each run.
    return [_event("START", began(run), run, settings, changes), ended]


def _has_started(run: Run, store: Store) -> bool:
    rows = store.read(
        Ledger.RUNS,
        where=[("tick_number", ">=", run.decided_tick), ("intent_id", "=", run.intent_id)],
        columns=["attempt", "run_status"],
    )
    return any(
        integer(row["attempt"]) == run.attempt and RunStatus(str(row["run_status"])) in _STARTED
        for row in rows
    )


def _event(
    kind: str,
    at: datetime,
    run: Run,
    settings: Lineage,
    changes: Sequence[Mapping[str, object]],
) -> dict[str, object]:
    return {
        "type": kind,
        "at": iso(at),
        "run_id": str(run_uuid(run)),
        "namespace": settings.namespace,
        "job": _fit(run.job_name or str(run.job_id)),
        "facts": {
            "jobId": str(run.job_id),
            "jobRunId": None if run.run_id is None else str(run.run_id),
            "intentId": run.intent_id,
            "attempt": run.attempt,
            "status": run.run_status.value,
            "runPageUrl": run.run_page_url,
            "eventCount": run.event_count,
            "dataChangeEvents": mapped(list(changes[:_MOST_CHANGES]), masked),
        },
        "error": _fit(run.message or "") if kind == "FAIL" else None,
        "inputs": inputs_of(changes, settings),
    }


def run_uuid(run: Run) -> uuid.UUID:
    """Return the id of a run, the same for each of its steps and in each process."""
    name = f"{run.token}/{run.intent_id}/{run.attempt}/{run.job_id}"
    return uuid.uuid5(uuid.NAMESPACE_OID, f"heartbeat/{name}")


def changes_of(run: Run, store: Store) -> Sequence[Mapping[str, object]]:
    """Return the data-change events of a run: from what it was passed, else from the ledger.

    Raises:
        StateError: The ledger cannot be read.
    """
    with suppress(*MALFORMED):
        passed = json.loads(json.loads(run.parameters)["heartbeat_events"])
        if isinstance(passed, list):
            return passed
    return payload_of(run.consumed, run.event_ids, store)


def inputs_of(
    changes: Iterable[Mapping[str, object]], settings: Lineage
) -> list[dict[str, object]]:
    """Return one dataset for each table that changed, with its newest snapshot.

    Args:
        changes: The data-change events of a run, in the order in which they happened.
        settings: The configuration, with the namespaces.
    """
    datasets: dict[tuple[str, str], dict[str, object]] = {}
    for each in changes:
        namespace, name = dataset_of(str(each["table"]), str(each["table_format"]), settings)
        snapshot = each.get("snapshot_id")
        datasets[namespace, name] = {
            "namespace": namespace,
            "name": name,
            "version": None if snapshot is None else _fit(str(snapshot)),
        }
    return list(datasets.values())


def dataset_of(table: str, table_format: str, settings: Lineage) -> tuple[str, str]:
    """Return namespace and name of a dataset, by OpenLineage's rules where a table is a path."""
    table = _fit(table)
    scheme, colon, rest = table.partition("://")
    if colon and scheme.isalnum():
        authority, _, path = rest.partition("/")
        return (f"{scheme}://{authority}", path.strip("/") or "/") if authority else ("file", path)
    if table.startswith("/"):
        return "file", table
    namespaces = {str(name): each for name, each in settings.datasets.items()}
    return namespaces.get(table_format.lower(), settings.namespace), table


def _fit(text: str) -> str:
    return escaped(masked(text))


def transport_of(
    target: Target, settings: Lineage, secrets: SecretResolver, context: "Context"
) -> dict[str, object]:
    """Return the transport of a target, as OpenLineage's client configures it.

    Raises:
        ConfigurationError: The key cannot be fetched.
    """
    if target is Target.FILE:
        path = context.settings.project / (settings.file or "")
        return {"type": "file", "log_file_path": str(path), "append": True}
    transport: dict[str, object] = {
        "type": "http",
        "url": settings.url,
        "endpoint": settings.endpoint,
        "timeout": settings.timeout_seconds,
        # The next tick tries again.
        "retry": {"total": 0},
    }
    if settings.api_key is not None:
        key = settings.api_key.resolve(secrets).get_secret_value()
        mask(key)
        transport["auth"] = {"type": "api_key", "apiKey": key}
    return transport


def load_progress(path: "Path") -> dict[Target, Progress]:
    """Read the file; nothing when it is missing or broken."""
    return load(path, _progress_in) or {}


def save_progress(path: "Path", progress: Mapping[Target, Progress]) -> None:
    """Write the file, whole or not at all; it outlives a power loss.

    Raises:
        StateError: It cannot be written.
    """
    content = {target.value: asdict(each) for target, each in progress.items()}
    saved = {"version": VERSION, "targets": content}
    save(path, saved, default=datetime.isoformat, is_lasting=True)


def _progress_in(content: Any) -> dict[Target, Progress] | None:
    if content["version"] != VERSION:
        return None
    return {
        Target(target): Progress(
            tick_number=int(each["tick_number"]),
            step_number=int(each["step_number"]),
            fingerprint=each["fingerprint"],
            failing_since=instant_from(each["failing_since"]),
            tried_at=instant_from(each["tried_at"]),
        )
        for target, each in content["targets"].items()
    }
