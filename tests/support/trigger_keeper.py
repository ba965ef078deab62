"""What triggers make of events, in Python: what the SQL of ``queue_trigger_evaluations`` has to agree with.

The models join tables of slots with tables of partitions. Here a trigger is evaluated alone: it
opens its slots one by one, and finds the events of each among all that there are. Instants are in
UTC, and steps are lengths of time: calendars are tested where the models are.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Self, cast

Row = Mapping[str, object]
#: Where an event stands: tick and id.
Place = tuple[int, str]

_MOST_WAITING = 1000
_PATTERNS = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy-MM-dd HH": "%Y-%m-%d %H"}
_UNITS = {"HOURS": timedelta(hours=1), "DAYS": timedelta(days=1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One row of a trigger: a table, and which of its events count."""

    table: str
    #: A value for each level, or a pattern of the slot between braces; ``None`` for any.
    partition: str | None = None
    #: ``name=value``, or nothing.
    tag: str | None = None

    def wanted_in(self, slot: datetime) -> str:
        """Return the partition that a slot waits for."""
        assert self.partition is not None
        levels = (level.strip() for level in self.partition.split(";"))
        return ";".join(_rendered(level, slot) for level in levels)

    def takes(self, event: Row) -> bool:
        """Return whether an event is of this table and has the tags."""
        if event["table"] != self.table:
            return False
        name, _, value = (self.tag or "").partition("=")
        return self.tag is None or cast(Mapping[str, str], event["tags"]).get(name) == value

    def in_words(self, slot: datetime) -> str:
        """Describe what a slot waits for."""
        tags = f" with {self.tag}" if self.tag else ""
        return f"partition {self.wanted_in(slot)} of {self.table}{tags}"


def _rendered(level: str, slot: datetime) -> str:
    found = re.fullmatch(r"\{'?([^']*)'?\}", level)
    return slot.strftime(_PATTERNS[found[1]]) if found else level


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """One trigger, all its rows together."""

    trigger_id: str
    kind: str
    job_id: int
    job_name: str
    parts: tuple[Part, ...]
    start: datetime
    step: timedelta
    expires: timedelta | None
    missed: str
    flag: str
    state: str

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> Self:
        """Read the rows of the seed's table that have one id."""
        cells = {name: str(value or "") for name, value in rows[0].items()}
        return cls(
            trigger_id=cells["trigger_id"],
            kind=cells["trigger_type"],
            job_id=int(cells["job_id"]),
            job_name=cells["job_name"],
            parts=tuple(
                Part(
                    table=str(row["table"]),
                    partition=cast(str | None, row["partition"]) or None,
                    tag=cast(str | None, row["tags"]) or None,
                )
                for row in rows
            ),
            start=datetime.fromisoformat(cells["start_timestamp"]),
            step=int(cells["frequency"]) * _UNITS[cells["frequency_unit"]],
            expires=_length(cells["expires_after"]),
            missed=cells["missed_slots"] or "LATEST",
            flag=cells["dependency_flag"] or "TRUE",
            state=cells["trigger_state"] or "UNPAUSED",
        )

    @property
    def upstream_id(self) -> str:
        return f"trigger:{self.trigger_id}"

    @property
    def takes_snapshots(self) -> bool:
        return self.kind == "SNAPSHOT"

    def slot(self, number: int) -> datetime:
        """Return the instant of a slot."""
        return self.start + number * self.step

    def number_at(self, at: datetime | None) -> int:
        """Return the newest slot that is due at an instant; -1 when none is."""
        return -1 if at is None or at < self.start else (at - self.start) // self.step

    @property
    def pace_key(self) -> int:
        """Name how the slots lie."""
        text = f"{self.start}|{self.step}|{self.missed}|{self.expires}"
        return int.from_bytes(sha256(text.encode()).digest()[:7])

    def events_for(self, slot: datetime, events: Iterable[Row]) -> list[list[Row]]:
        """Return the events that a slot of partitions waits for, for each part of it."""
        events = list(events)
        return [
            [
                event
                for event in events
                if part.takes(event) and part.wanted_in(slot) in _partitions(event)
            ]
            for part in self.parts
        ]


def _length(text: str) -> timedelta | None:
    if not text:
        return None
    amount, unit = text.split()
    return int(amount) * _UNITS[unit]


def _partitions(event: Row) -> set[str]:
    tags = cast(Mapping[str, str], event["tags"] or {})
    if event["partition"] is not None:
        levels = [[json.loads(each) for each in cast(Sequence[str], event["partition"])]]
    else:
        levels = json.loads(tags.get("partitions", "[]"))
    return {";".join(map(str, each)) for each in levels}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The input of an evaluation: its instant and tick, and every event that is no copy."""

    looked_at: datetime
    look_tick: int
    events: Sequence[Row]
    #: An earlier evaluation has read the events up to this tick.
    folded_through: int


@dataclass(slots=True)
class _Slot:
    instant: datetime
    missing: list[str] | None
    is_new: bool
    is_ready: bool = False
    events: Sequence[Place] = ()
    has_changed: bool = False


@dataclass(slots=True)
class _Openings:
    opened: Sequence[datetime]
    opened_through: datetime | None
    skipped: int


def answer(
    trigger: Trigger, cursor: str | None, question: Question, *, may_release: bool
) -> dict[str, object] | None:
    """Return the result of a trigger, as a row of ``queue_trigger_evaluations``.

    Args:
        trigger: It is not paused.
        cursor: Where its last evaluation ended.
        question: The present.
        may_release: The run of its last slot has succeeded.
    """
    place = json.loads(cursor) if cursor else {}
    if _is_idle(trigger, place, question, may_release=may_release):
        return None
    openings = _open(trigger, place, question.looked_at)
    slots = [] if trigger.takes_snapshots else _slots(trigger, place, openings, may_release)
    for each in slots:
        _decide(trigger, each, question)
    released, waiting, expired = _sort_out(trigger, slots, question, may_release=may_release)
    next_due_at = min(
        [
            trigger.slot(trigger.number_at(question.looked_at) + 1),
            *(
                each.instant + trigger.expires
                for each in waiting
                if each.missing and trigger.expires is not None
            ),
        ]
    )
    note = {
        "opened_through": _text(openings.opened_through),
        "waiting": [_text(each.instant) for each in waiting],
        "missing": [each.missing for each in waiting] if slots else None,
        "looked_through": question.look_tick,
        "next_due_at": _text(next_due_at),
        "pace_key": trigger.pace_key,
        "is_ready": any(not each.missing for each in waiting) or None,
    }
    matched = [(each.instant, place) for each in released for place in each.events]
    has_outcome = bool(released or expired) or any(each.has_changed for each in slots)
    if trigger.takes_snapshots:
        is_new = cursor is None
        began, changes = _changes(trigger, place.get("looked_through"), question)
        has_outcome = is_new or bool(openings.opened)
        if openings.opened:
            matched = [(openings.opened[0], each) for each in changes]
        else:
            consumed = began if is_new else place.get("looked_through")
            note["looked_through"] = question.look_tick if consumed is None else consumed
    is_repaced = place.get("pace_key") != trigger.pace_key
    is_due_otherwise = place.get("next_due_at") != note["next_due_at"]
    if not (has_outcome or openings.skipped or is_repaced or is_due_otherwise):
        return None
    return {
        "upstream_id": trigger.upstream_id,
        "position": json.dumps({name: value for name, value in note.items() if value is not None}),
        "matched": [
            {"slot": slot, "tick_number": tick, "event_id": event_id}
            for slot, (tick, event_id) in matched
        ],
        "reason": _missed(expired, openings) or None,
    }


def _is_idle(
    trigger: Trigger, place: Mapping[str, object], question: Question, *, may_release: bool
) -> bool:
    due = _instant(place.get("next_due_at"))
    if due is None or due <= question.looked_at or place["pace_key"] != trigger.pace_key:
        return False
    tables = {part.table for part in trigger.parts}
    tail = (e for e in question.events if cast(int, e["tick_number"]) > question.folded_through)
    return not any(e["table"] in tables for e in tail) and not (
        may_release and bool(place.get("is_ready"))
    )


def _open(trigger: Trigger, place: Mapping[str, object], at: datetime) -> _Openings:
    opened_through = _instant(place.get("opened_through"))
    newest, before = trigger.number_at(at), trigger.number_at(opened_through)
    due = max(newest - before, 0)
    if not due:
        return _Openings([], opened_through, 0)
    if trigger.missed == "ALL" and not trigger.takes_snapshots:
        room = max(_MOST_WAITING - len(cast(Sequence[str], place.get("waiting", ()))), 0)
        last = min(newest, before + room)
        through = trigger.slot(last) if last >= 0 else opened_through
        return _Openings([trigger.slot(n) for n in range(before + 1, last + 1)], through, 0)
    if trigger.missed == "NONE" and due > 1:
        return _Openings([], trigger.slot(newest), due)
    return _Openings([trigger.slot(newest)], trigger.slot(newest), due - 1)


def _slots(
    trigger: Trigger, place: Mapping[str, object], openings: _Openings, may_release: bool
) -> list[_Slot]:
    texts = cast(Sequence[str], place.get("waiting", ()))
    missing = cast(Sequence[list[str]], place.get("missing", ()))
    waiting = [
        _Slot(cast(datetime, _instant(text)), list(missed), is_new=False)
        for text, missed in zip(texts, missing, strict=True)
    ]
    satisfied = next((each for each in waiting if not each.missing), None)
    if satisfied is not None:
        satisfied.is_ready = may_release
    return [*waiting, *(_Slot(instant, None, is_new=True) for instant in openings.opened)]


def _decide(trigger: Trigger, slot: _Slot, question: Question) -> None:
    """Find a slot's events, where anything can have changed."""
    found = trigger.events_for(slot.instant, question.events)
    in_tail = any(
        cast(int, event["tick_number"]) > question.folded_through
        for events in found
        for event in events
    )
    if not (slot.is_new or slot.is_ready or in_tail):
        return
    missing = sorted(
        part.in_words(slot.instant)
        for part, events in zip(trigger.parts, found, strict=True)
        if not events
    )
    slot.has_changed = missing != slot.missing
    slot.missing = missing
    slot.events = sorted({place for events in found for place in _newest_of_changes(events)})


def _sort_out(
    trigger: Trigger, slots: Iterable[_Slot], question: Question, *, may_release: bool
) -> tuple[list[_Slot], list[_Slot], list[_Slot]]:
    """Return which slots are released, which go on to wait, and which are discarded."""
    in_order = sorted(slots, key=lambda each: each.instant)
    satisfied = [each for each in in_order if not each.missing]
    released = satisfied[:1] if may_release else []
    overdue = [
        each
        for each in in_order
        if each.missing
        and trigger.expires is not None
        and each.instant + trigger.expires <= question.looked_at
    ]
    waiting = [each for each in in_order if each not in released and each not in overdue]
    return released, waiting, overdue


def _changes(
    trigger: Trigger, looked_through: object, question: Question
) -> tuple[int | None, list[Place]]:
    """Return after which tick a trigger of snapshots takes changes, and the changes."""
    tables = {part.table for part in trigger.parts}
    ticks = [cast(int, e["tick_number"]) for e in question.events if e["table"] in tables]
    if looked_through is None and not ticks:
        return None, []
    after = cast(int, looked_through) if looked_through is not None else max(ticks) - 1
    came = [
        event
        for event in question.events
        if cast(int, event["tick_number"]) > after
        and any(part.takes(event) for part in trigger.parts)
    ]
    return (after if came else None), sorted(_newest_of_changes(came))


def change_of(event: Row) -> str:
    """Name the change that an event is about."""
    return str(event["change_id"] or event["event_id"])


def _newest_of_changes(events: Iterable[Row]) -> list[Place]:
    newest: dict[str, Place] = {}
    for event in events:
        place = cast(int, event["tick_number"]), str(event["event_id"])
        newest[change_of(event)] = max(place, newest.get(change_of(event), place))
    return list(newest.values())


def _missed(expired: Iterable[_Slot], openings: _Openings) -> str:
    words = [
        f"the slot {_text(each.instant)} expired without {' and '.join(each.missing or ())}"
        for each in expired
    ]
    if openings.skipped:
        slots = "slot was" if openings.skipped == 1 else "slots were"
        words.append(
            f"{openings.skipped} missed {slots} left out; the newest that was due is"
            f" {_text(openings.opened_through)}"
        )
    return "; ".join(words)


def _text(at: datetime | None) -> str | None:
    return None if at is None else f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _instant(text: object) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text))


@dataclass(slots=True)
class Lives:
    """What became of the slots of a trigger."""

    #: The row of the evaluation at which each slot was gone; ``None``: it waits.
    ended: dict[datetime, Row | None]
    #: The newest slot that came due, and the tick of the evaluation that opened one last.
    opened_number: int = -1
    opened_tick: int = -1


def lives_of_slots(trigger: Trigger, rows: Iterable[Row]) -> Lives:
    """Follow the slots of a trigger through the rows that its evaluations have left."""
    lives = Lives({})
    for row in rows:
        place = json.loads(str(row["position"]))
        through = trigger.number_at(_instant(place.get("opened_through")))
        waiting = {_instant(text) for text in place.get("waiting", ())}
        if through > lives.opened_number:
            opened = _opened(trigger, range(lives.opened_number + 1, through + 1))
            lives.ended.update((trigger.slot(number), None) for number in opened)
            lives.opened_number = through
            if opened:
                lives.opened_tick = cast(int, row["tick_number"])
        for slot, ended in lives.ended.items():
            if ended is None and slot not in waiting:
                lives.ended[slot] = row
    return lives


def _opened(trigger: Trigger, came: Sequence[int]) -> Sequence[int]:
    """Return which of the slots that came due at once are opened."""
    if trigger.missed == "ALL" and not trigger.takes_snapshots:
        return came
    return () if trigger.missed == "NONE" and len(came) > 1 else came[-1:]
