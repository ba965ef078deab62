"""Reads for people which triggers a job has and what they wait for, from the tables alone."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.platform.clock import instant_from
from harness.store.rows import Ledger, Question, Row, Store, integer
from harness.store.work_lists import EVENT_TRIGGER

#: The table of the seed.
TRIGGERS = "event_triggers"

_STATE = "upstream_state"
_COLUMNS = ("trigger_id", "job_id", "job_name", "dependency_flag", "trigger_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A slot that is open, and what it has not got yet."""

    #: The instant, ISO 8601.
    slot: str
    missing: tuple[str, ...]

    @property
    def in_words(self) -> str:
        """Report it in one phrase."""
        if not self.missing:
            return f"slot {self.slot} has all it needs and waits for the run before it"
        return f"slot {self.slot} waits for {' and '.join(self.missing)}"


def question_of_triggers() -> Question:
    """Return what ``triggers_as_controls`` reads."""
    return Question(table=TRIGGERS, columns=_COLUMNS)


def triggers_as_controls(store: Store, job_id: int | None = None) -> list[Row]:
    """Return every trigger, or those of one job, under the names that a control row has.

    Raises:
        StateError: The table cannot be read.
    """
    rows: dict[str, Row] = {}
    question = question_of_triggers()
    for row in store.read(question.table, columns=question.columns):
        cells = {name: str(row[name] or "").strip() for name in _COLUMNS}
        if not cells["trigger_id"] or job_id not in (None, integer(cells["job_id"])):
            continue
        rows[cells["trigger_id"]] = {
            "control_id": f"trigger:{cells['trigger_id']}_{cells['job_id']}",
            "sensor_source": EVENT_TRIGGER,
            "sensor_id": cells["trigger_id"],
            "upstream_id": f"trigger:{cells['trigger_id']}",
            "job_id": integer(cells["job_id"]),
            "job_name": cells["job_name"],
            "dependency_flag": cells["dependency_flag"].upper() or "TRUE",
            "job_state": cells["trigger_state"].upper() or "UNPAUSED",
        }
    return sorted(rows.values(), key=lambda row: str(row["sensor_id"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingTrigger:
    """A trigger whose newest evaluation failed."""

    trigger_id: str
    since: datetime
    reason: str


def failing_triggers(store: Store, folded_through: int) -> list[FailingTrigger]:
    """Return the triggers in the seed that cannot be evaluated, by their ids.

    Raises:
        StateError: A table cannot be read.
    """
    known = {str(row["upstream_id"]) for row in triggers_as_controls(store)}
    if not known:
        return []
    ours: list[tuple[str, str, object]] = [
        ("upstream_id", ">=", "trigger:"),
        ("upstream_id", "<", "trigger;"),
    ]
    columns = ("upstream_id", "tick_number", "failing_since", "reason")
    begun = ("failing_since", ">", datetime.fromtimestamp(0, UTC))
    newest = {
        row["upstream_id"]: row for row in store.read(_STATE, where=[*ours, begun], columns=columns)
    }
    tail = store.read(
        Ledger.PROBES, where=[*ours, ("tick_number", ">", folded_through)], columns=columns
    )
    newest |= {row["upstream_id"]: row for row in sorted(tail, key=_tick)}
    return [
        FailingTrigger(
            trigger_id=upstream_id.removeprefix("trigger:"),
            since=since,
            reason=str(row["reason"]),
        )
        for upstream_id, row in sorted((str(each), row) for each, row in newest.items())
        if upstream_id in known and isinstance(since := row["failing_since"], datetime)
    ]


def _tick(row: Row) -> int:
    return integer(row["tick_number"])


def waiting_in(cursor: str | None) -> tuple[Waiting, ...]:
    """Return the open slots that a trigger's cursor has, oldest first."""
    place = json.loads(cursor) if cursor else {}
    slots: Sequence[str] = place.get("waiting") or ()
    missing: Sequence[Sequence[str]] = place.get("missing") or [()] * len(slots)
    return tuple(
        Waiting(slot=slot, missing=tuple(each or ()))
        for slot, each in zip(slots, missing, strict=False)
    )


def has_ready_slot(position: str | None) -> bool:
    """Return whether a slot waits for nothing but the run before it, as the position notes it."""
    return position is not None and bool(json.loads(position).get("is_ready"))


def without_slots(position: str, slots: Collection[str]) -> str:
    """Return a trigger's position in which some slots wait no more.

    Args:
        position: What the evaluation of the trigger ended with.
        slots: Instants as the position spells them; those that do not wait in it count for nothing.
    """
    place = json.loads(position)
    kept = [n for n, slot in enumerate(place["waiting"]) if slot not in slots]
    for name in ("waiting", "missing", "expires"):
        if place.get(name):
            place[name] = [place[name][n] for n in kept]
    return json.dumps(place, separators=(",", ":"))


def next_due_at(positions: Iterable[str | None], at: datetime) -> datetime | None:
    """Return when the first trigger is to be evaluated again without a new event, as they note it.

    Args:
        positions: Where the newest evaluations of the triggers ended.
        at: The instant of the newest evaluation; whatever was noted up to it is done with.
    """
    # A thousand triggers note the same hour.
    noted = {json.loads(each).get("next_due_at") for each in positions if each}
    due = (instant_from(each) for each in noted if each)
    return min((each for each in due if each is not None and each > at), default=None)
