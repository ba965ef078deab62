"""Watches an installation for alarms: evaluates them after a tick, and has them sent."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from harness.config.observing import AlarmRule
from harness.config.workspace_secrets import secrets_for
from harness.inspect.alarms import (
    Alarm,
    Seen,
    alarm_of_ticks,
    alarms_of,
    alarms_of_tables,
    place_of,
    sensed_upstreams,
)
from harness.inspect.doctor.installation import Patient
from harness.inspect.doctor.state_dir import disk_space
from harness.inspect.doctor.tables import tables
from harness.inspect.rhythm import Rhythm, load_rhythms, save_rhythms, with_arrivals
from harness.inspect.status import Status, read_status
from harness.inspect.tick_summary import is_noteworthy, problems
from harness.observe.notify import Notifier, load_journal
from harness.platform.text import first_line

if TYPE_CHECKING:
    from harness.context import Context
    from harness.tick.report import TickReport

#: What only time brings about is noticed within this time; a tick that did something is evaluated.
_BETWEEN_EVALUATIONS = timedelta(seconds=60)
#: The tables change slowly, and examining them reads each file's end.
_BETWEEN_TABLES = timedelta(hours=1)
#: A service that is stopped has to end soon; what is not recorded by then is sent again.
_SECONDS_AT_END = 5.0
#: A message that is over its time limit is ended within this time.
_SECONDS_TO_KILL = 2.0


class Watch:
    """Evaluates the alarms after each tick that may have changed them.

    Args:
        context: The services.
        notifier: What sends; made from the configuration when it is left out.
    """

    def __init__(self, context: "Context", notifier: Notifier | None = None) -> None:
        settings = context.settings
        self._context, self._settings = context, settings.alarms
        self._notifier = notifier or Notifier(
            settings.alarms,
            installation_name(context),
            context.home.alarms,
            secrets_for(settings, context.environment),
        )
        self._rhythms = load_rhythms(context.home.arrivals)
        self._saved = self._rhythms
        self._current: list[Alarm] | None = None
        self._evaluated_at: datetime | None = None
        self._problems: frozenset[str] = frozenset()
        #: When that became public which was evaluated; `run` publishes after its ticks.
        self._public: int | None = None

    def after(self, report: "TickReport") -> None:
        """Evaluate, where this tick or time may have changed something, and send."""
        now = report.tick.at
        self._notifier.record(lambda journal: replace(journal, failing_tick=None))
        events = (each.upstream_id for each in report.findings.events)
        self._rhythms = with_arrivals(self._rhythms, events, now)
        is_news, self._problems = is_noteworthy(report, self._problems), problems(report)
        public = _written_at(self._context.home.status)
        if self._current is None or is_news or public != self._public or self._is_due(now):
            self._current = self._evaluated(now)
            self._evaluated_at, self._public = now, public
        self._notifier.send(now, self._current)
        if not self._context.is_resident:
            self.wait()

    def failed(self, error: Exception) -> None:
        """Report that the tick failed; everything else stays as it was."""
        now = self._context.clock.now()
        reason = first_line(error, type(error).__name__)
        known = self._notifier.journal.failing_tick
        alarm = Alarm(
            rule=AlarmRule.TICK_FAILING,
            subject="",
            what="ticks fail",
            since=known.since if known else now,
            why=reason,
        )
        self._current = None
        try:
            self._notifier.record(lambda journal: replace(journal, failing_tick=alarm))
        finally:
            # A disk that is full may be why the tick fails.
            self._notifier.send(now)

    def wait(self) -> None:
        """Wait for the messages that are under way, and record how they ended."""
        is_resident, limit = self._context.is_resident, self._settings.timeout_seconds
        self._notifier.wait(_SECONDS_AT_END if is_resident else limit + _SECONDS_TO_KILL)
        self._notifier.collect(self._context.clock.now())
        self._save_rhythms()

    def _is_due(self, now: datetime) -> bool:
        at = self._evaluated_at
        return at is None or not timedelta(0) <= now - at < _BETWEEN_EVALUATIONS

    def _evaluated(self, now: datetime) -> list[Alarm]:
        status = read_status(self._context, every_run=False)
        self._rhythms = self._known(status, now)
        self._save_rhythms()
        self._examine_tables(now)
        journal = self._notifier.journal
        return alarms_of(
            status, self._settings, Seen(rhythms=self._rhythms, recorded=journal.recorded)
        )

    def _known(self, status: Status, now: datetime) -> dict[str, Rhythm]:
        """Return the rhythms of upstreams that are sensed, and begin those that are expected."""
        sensed = sensed_upstreams(status)
        kept = {key: each for key, each in self._rhythms.items() if place_of(key) in sensed}
        places = set(map(place_of, kept))
        for wanted in self._settings.upstreams:
            source, sensor_id = wanted.sensor_source.value, wanted.sensor_id
            place = (source, sensor_id.lower())
            if place in sensed and place not in places:
                # It has had no event since it is watched.
                kept[f"{source}:{sensor_id}:"] = Rhythm(last=now)
        return kept

    def _save_rhythms(self) -> None:
        if self._rhythms != self._saved:
            save_rhythms(self._context.home.arrivals, self._rhythms)
            self._saved = self._rhythms

    def _examine_tables(self, now: datetime) -> None:
        at = self._notifier.journal.tables_at
        if at is not None and timedelta(0) <= now - at < _BETWEEN_TABLES:
            return
        known = {each.key: each for each in self._notifier.journal.tables}
        found = [known.get(each.key, each) for each in examined_tables(self._context, now)]
        self._notifier.record(lambda journal: replace(journal, tables=tuple(found), tables_at=now))


def alarms_now(context: "Context", status: Status) -> list[Alarm]:
    """Return every alarm that holds, for a probe: those too that no tick can send.

    It writes nothing, and reads what ticks have recorded for the alarms.
    """
    settings, journal = context.settings.alarms, load_journal(context.home.alarms)
    no_tick = alarm_of_ticks(status, settings)
    recorded = (*journal.recorded, *([no_tick] if no_tick else []), *journal.undelivered())
    seen = Seen(rhythms=load_rhythms(context.home.arrivals), recorded=recorded)
    return alarms_of(status, settings, seen)


def installation_name(context: "Context") -> str:
    """Return what messages call the installation."""
    return context.settings.alarms.name or context.settings.project.name


def examined_tables(context: "Context", now: datetime) -> list[Alarm]:
    """Return the alarms of the tables and their disk; none in a workspace, which compacts itself.

    Args:
        context: The services.
        now: The present instant.
    """
    patient = Patient(
        project=context.settings.project,
        home=context.home,
        environment=context.environment,
        clock=context.clock,
        settings=context.settings,
    )
    if not patient.is_local:
        return []
    return alarms_of_tables([*tables(patient), *disk_space(patient)], now)


def _written_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None
