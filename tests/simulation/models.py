"""The models in Python, over a store in memory: decisions by the keeper of single events.

The keeper's results are compared with the SQL by the random pasts of ``tests/integration/decide``.
The rest only picks newest rows, as the work lists of the models do.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import cast

from harness.store.rows import HOLDING, OPEN, REQUEUING, Ledger, RunStatus
from harness.store.work_lists import EVENT_TRIGGER
from tests.simulation.policies import Policy, policy_of
from tests.simulation.triggers import triggers_of
from tests.support.keeper import Keeper, Range
from tests.support.memory_store import MemoryStore
from tests.support.trigger_keeper import Question, Trigger, answer

CONTROLS = "heartbeat_controls"
POLICIES = "retry_policies"
TRIGGERS = "event_triggers"
SCHEDULED = "scheduled_jobs"

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One control row, cleaned; it is named by its upstream, as the keeper has it."""

    control_id: str
    name: str
    source: str
    sensor_id: str
    read_type: str
    key: str | None
    job_id: int
    job_name: str
    state: str
    flag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on one job."""

    job_id: int
    job_name: str
    keeper: Keeper
    blockers: Sequence[str]
    consumed: Sequence[Mapping[str, object]]
    oldest: int | None
    decided_tick: int
    previous: tuple[str, int] | None


class Models:
    """Every model that a tick reads.

    Args:
        store: The ledgers, and the table of the seed.
        keeper_of: Applies a job's past to a keeper.
    """

    def __init__(
        self,
        store: MemoryStore,
        keeper_of: "Callable[[Mapping[str, set[int]], Sequence[Row]], Keeper] | None" = None,
    ) -> None:
        self._store = store
        self._keeper_of = keeper_of or keeper_of_steps
        #: The limit of starts that the decision was last built with.
        self.starts_per_tick = 1
        #: The tick up to which the views of the triggers take events as compacted.
        self.folded_through = -1
        #: The ticks up to this one count as ended, whether they have a row of their own or not.
        self.ended_through = -1

    def rows(self, relation: str) -> list[Row]:
        """Return every row of a model."""
        readers = {
            "queue_upstreams": self._upstreams,
            "queue_runs_to_follow": self._runs_to_follow,
            "queue_retries": self._retries,
            "queue_control_changes": self._control_changes,
            "queue_trigger_evaluations": self.trigger_looks,
            "trigger_set": self._trigger_set,
            "job_blockers": self._job_blockers,
        }
        return readers[relation]()

    def controls(self) -> list[Control]:
        """Return the control rows of the seed."""
        # Half a line has no job: the CSV was saved while it was being fed.
        whole = (row for row in self._store.read(CONTROLS) if row["trigger_job_id"])
        return [_control(row) for row in whole]

    def triggers(self) -> list[Trigger]:
        """Return the triggers of the seed."""
        return triggers_of(self._store.read(TRIGGERS))

    def dependencies(self) -> list[Control]:
        """Return what jobs depend on: the control rows, and the triggers."""
        return [*self.controls(), *map(_dependency, self.triggers())]

    def newest_runs(self) -> dict[int, Row]:
        """Return the newest step of each job."""
        return {cast(int, row["job_id"]): row for row in self._steps()}

    def _steps(self) -> list[Row]:
        return sorted(self._store.read(Ledger.RUNS), key=_place)

    def _probes(self) -> dict[str, Row]:
        return {str(row["upstream_id"]): row for row in self._store.read(Ledger.PROBES)}

    def _upstreams(self) -> list[Row]:
        probes, consumed = self._probes(), self._taken()
        needed: dict[str, list[Control]] = {}
        for control in self.dependencies():
            if control.state != "PAUSED":
                needed.setdefault(control.name, []).append(control)
        return [
            {
                "upstream_id": name,
                "sensor_source": controls[0].source,
                "sensor_id": controls[0].sensor_id,
                "sensor_read_type": controls[0].read_type,
                "upstream_key": controls[0].key,
                "preprocess_query": None,
                "job_ids": sorted({each.job_id for each in controls}),
                **{column: probes.get(name, {}).get(column) for column in _LOOKED_AT},
                "taken": consumed.get(name),
            }
            for name, controls in needed.items()
        ]

    def _taken(self) -> dict[str, list[Row]]:
        newest: dict[tuple[int, str], Row] = {}
        for row in self._steps():
            for each in cast(Iterable[Row], row["consumed"]):
                newest[cast(int, row["job_id"]), str(each["upstream_id"])] = each
        consumed: dict[str, list[Row]] = {}
        for (job_id, name), each in newest.items():
            ticks = {"from_tick": each["from_tick"], "through_tick": each["through_tick"]}
            consumed.setdefault(name, []).append({"job_id": job_id, **ticks})
        return consumed

    def _runs_to_follow(self) -> list[Row]:
        # A pull consumer reports by itself; the Jobs API is not queried.
        followed = (OPEN | HOLDING) - {RunStatus.ACQUIRED}
        return [row for row in self.newest_runs().values() if row["run_status"] in followed]

    def retries(self) -> dict[int, datetime]:
        """Return when the failed runs of jobs start again by themselves."""
        lines = [Policy.from_cells(row) for row in self._store.read(POLICIES)]
        known = {each.job_id for each in self.dependencies()}
        newest = self.newest_runs()
        instants = {
            job_id: policy.retry_at(row)
            for job_id, row in newest.items()
            if job_id in known and row["run_status"] in HOLDING
            if (policy := policy_of(lines, job_id)) is not None
        }
        return {job_id: at for job_id, at in instants.items() if at is not None}

    def _retries(self) -> list[Row]:
        newest = self.newest_runs()
        return [
            {"job_id": job_id, "retry_at": at}
            | {name: newest[job_id][name] for name in ("intent_id", "attempt")}
            for job_id, at in self.retries().items()
        ]

    def _control_changes(self) -> list[Row]:
        now = {each.control_id: _change(each) for each in self.controls()}
        recorded: dict[str, Row] = {}
        for row in self._store.read(Ledger.CONTROLS):
            recorded[str(row["control_id"])] = row
        there = {key: row for key, row in recorded.items() if row["change"] != "removed"}
        changes = []
        for key, row in now.items():
            if key not in there:
                changes.append(row | {"change": "added"})
            elif any(row[column] != there[key][column] for column in row):
                changes.append(row | {"change": "changed"})
        gone = [row | {"change": "removed"} for key, row in there.items() if key not in now]
        return [*changes, *gone]

    def events(self) -> list[Row]:
        """Return every event that is no copy of a trigger's."""
        rows = self._store.read(Ledger.EVENTS)
        return [row for row in rows if not str(row["upstream_id"]).startswith("trigger:")]

    def trigger_looks(self) -> list[Row]:
        """Return the result of each trigger at the newest evaluation."""
        results = self._store.read(Ledger.TRIGGER_EVALUATIONS)
        newest = max(results, key=lambda row: cast(int, row["tick_number"]))
        question = Question(
            looked_at=cast(datetime, newest["looked_at"]),
            look_tick=cast(int, newest["tick_number"]),
            events=self.events(),
            folded_through=self.folded_through,
        )
        probes = self._probes()
        answers = []
        for trigger in self.triggers():
            if trigger.state == "PAUSED":
                continue
            probe = probes.get(trigger.upstream_id, {})
            may_release = self.may_release(
                trigger, cast(int | None, probe.get("latest_event_tick"))
            )
            cursor = cast(str | None, probe.get("position"))
            answers.append(answer(trigger, cursor, question, may_release=may_release))
        return [each for each in answers if each is not None]

    def may_release(self, trigger: Trigger, latest: int | None) -> bool:
        """Return whether the run of what a trigger released last has succeeded."""
        if latest is None:
            return True
        newest = None
        for step in self._steps():
            for each in cast(Iterable[Row], step["consumed"]):
                if step["job_id"] == trigger.job_id and each["upstream_id"] == trigger.upstream_id:
                    newest = step, each
        if newest is None:
            return False
        step, taken = newest
        status = step["run_status"]
        consumed = taken["from_tick" if status in REQUEUING else "through_tick"]
        return latest <= cast(int, consumed) and status not in OPEN and status not in HOLDING

    def event_ticks(self) -> dict[str, set[int]]:
        """Return the ticks in which each upstream had events."""
        ticks: dict[str, set[int]] = {}
        for row in self._store.read(Ledger.PROBES):
            if row["latest_event_tick"] is not None:
                known = ticks.setdefault(str(row["upstream_id"]), set())
                known.add(cast(int, row["latest_event_tick"]))
        return ticks

    def verdicts(self) -> list[Verdict]:
        """Decide on every job of the controls, the limit of starts left aside."""
        ticks, steps, probes = self.event_ticks(), self._steps(), self._probes()
        by_job: dict[int, list[Control]] = {}
        for control in self.dependencies():
            by_job.setdefault(control.job_id, []).append(control)
        verdicts = []
        scheduled = {cast(int, row["job_id"]) for row in self._store.read(SCHEDULED)}
        for job_id in sorted(scheduled & by_job.keys()):
            verdicts.append(_left_alone(job_id, by_job.pop(job_id)[0].job_name))
        for job_id, controls in by_job.items():
            past = [row for row in steps if row["job_id"] == job_id]
            keeper = self._keeper_of(ticks, past)
            new = keeper.news(controls)
            consumed = {name: keeper.range_of(name, each) for name, each in sorted(new.items())}
            newest = past[-1] if past else None
            verdicts.append(
                Verdict(
                    job_id=job_id,
                    job_name=controls[0].job_name,
                    keeper=keeper,
                    blockers=keeper.blockers(controls),
                    consumed=[_consumed(name, taken) for name, taken in consumed.items()],
                    oldest=_oldest(probes, consumed),
                    decided_tick=cast(int, newest["decided_tick"])
                    if newest and newest["run_status"] in OPEN | HOLDING
                    else -1,
                    previous=(str(newest["intent_id"]), cast(int, newest["attempt"]))
                    if newest
                    else None,
                )
            )
        return verdicts

    def _limited(self) -> list[tuple[Verdict, Sequence[str]]]:
        """Apply the limit of starts: those with older events first."""
        verdicts = self.verdicts()
        public = [int(str(r["tick_number"])) for r in self._store.read(Ledger.TICKS)]
        ended = max([*public, self.ended_through])
        started = sum(verdict.decided_tick > ended for verdict in verdicts)
        ordered = sorted(
            verdicts, key=lambda each: (bool(each.blockers), each.oldest or 0, each.job_id)
        )
        return [
            (verdict, verdict.blockers or ["over_start_limit"])
            if verdict.blockers or started + place > self.starts_per_tick
            else (verdict, ())
            for place, verdict in enumerate(ordered, start=1)
        ]

    def _trigger_set(self) -> list[Row]:
        limit = {"starts_per_tick": self.starts_per_tick}
        return [_start(verdict) | limit for verdict, blockers in self._limited() if not blockers]

    def _job_blockers(self) -> list[Row]:
        retries = self.retries()
        return [
            {
                "job_id": verdict.job_id,
                "job_name": verdict.job_name,
                "blocker": "backing_off"
                if name == "last_run_failed" and verdict.job_id in retries
                else name,
                "reason": name,
                "waits_for": name,
                "since": None,
            }
            for verdict, blockers in self._limited()
            for name in blockers
        ]


_LOOKED_AT = (
    *("position", "upstream_value", "latest_event_tick", "latest_event_at", "recent_events"),
    *("failing_since", "reason"),
)


def keeper_of_steps(ticks: Mapping[str, set[int]], steps: Sequence[Row]) -> Keeper:
    """Apply a job's past: an intent consumes its events, whatever becomes of it."""
    keeper = Keeper(all_events={name: set(each) for name, each in ticks.items()})
    keeper.arrive(-1, 2**62)
    attempt = None
    for row in steps:
        if attempt != (row["intent_id"], row["attempt"]):
            attempt = (row["intent_id"], row["attempt"])
            keeper.take(events_taken(ticks, row), str(row["run_status"]))
        else:
            keeper.become(str(row["run_status"]))
    return keeper


def events_taken(ticks: Mapping[str, set[int]], step: Row) -> dict[str, set[int]]:
    """Return the ticks whose events a step's run consumes, by upstream."""
    consumed = {}
    for each in cast(Iterable[Mapping[str, int]], step["consumed"]):
        name = str(each["upstream_id"])
        known = ticks.get(name, set())
        consumed[name] = {t for t in known if each["from_tick"] < t <= each["through_tick"]}
    return consumed


def _oldest(probes: Mapping[str, Row], consumed: Mapping[str, Range]) -> int | None:
    """Return the oldest waiting tick, from the newest probe rows as the SQL does."""
    oldest = []
    for name, (after, through) in consumed.items():
        recent = cast(Iterable[Mapping[str, int]], probes[name]["recent_events"])
        waiting = [e["tick_number"] for e in recent if after < e["tick_number"] <= through]
        assert waiting, f"the newest probe row of {name} has lost since when events wait"
        oldest.append(min(waiting))
    return min(oldest, default=None)


def _consumed(name: str, consumed: Range) -> Mapping[str, object]:
    return {"upstream_id": name, "from_tick": consumed[0], "through_tick": consumed[1]}


def _left_alone(job_id: int, job_name: str) -> Verdict:
    """Return the decision on a pull consumer."""
    return Verdict(
        job_id=job_id,
        job_name=job_name,
        keeper=Keeper(all_events={}),
        blockers=["on_own_schedule"],
        consumed=(),
        oldest=None,
        decided_tick=-1,
        previous=None,
    )


def _start(verdict: Verdict) -> Row:
    intent, attempt = verdict.previous or ("", 0)
    if not verdict.keeper.is_retry:
        text = f"{verdict.job_id}|{json.dumps(verdict.consumed)}"
        intent, attempt = hashlib.sha256(text.encode()).hexdigest()[:32], 0
    return {
        "job_id": verdict.job_id,
        "job_name": verdict.job_name,
        "intent_id": intent,
        "attempt": attempt + 1,
        "consumed": [dict(each) for each in verdict.consumed],
    }


def _control(row: Mapping[str, object]) -> Control:
    sensor_id, job_id = str(row["sensor_id"]), int(str(row["trigger_job_id"]))
    key = str(row["upstream_key"])
    digest = _digest(f"{row['sensor_read_type']}|{key}|")
    return Control(
        control_id=f"{re.sub('[^A-Za-z0-9]', '_', sensor_id)}_{job_id}",
        name=f"{row['sensor_source']}:{sensor_id}:{digest}",
        source=str(row["sensor_source"]),
        sensor_id=sensor_id,
        read_type=str(row["sensor_read_type"]),
        key=key or None,
        job_id=job_id,
        job_name=str(row["trigger_job_name"]),
        state=str(row["job_state"]),
        flag=str(row["dependency_flag"]),
    )


@cache
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _dependency(trigger: Trigger) -> Control:
    return Control(
        control_id=f"{trigger.upstream_id}_{trigger.job_id}",
        name=trigger.upstream_id,
        source=EVENT_TRIGGER,
        sensor_id=trigger.trigger_id,
        read_type="batch",
        key=None,
        job_id=trigger.job_id,
        job_name=trigger.job_name,
        state=trigger.state,
        flag=trigger.flag,
    )


def _change(control: Control) -> Row:
    return {
        "control_id": control.control_id,
        "upstream_id": control.name,
        "sensor_source": control.source,
        "sensor_id": control.sensor_id,
        "sensor_read_type": control.read_type,
        "asset_description": None,
        "upstream_key": control.key,
        "preprocess_query": None,
        "job_id": control.job_id,
        "job_name": control.job_name,
        "job_state": control.state,
        "dependency_flag": control.flag,
    }


def _place(row: Mapping[str, object]) -> tuple[int, int]:
    return int(str(row["tick_number"])), int(str(row["step_number"]))
