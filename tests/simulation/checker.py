"""Judges by the Jobs API's records and by the ledgers; it depends on nothing in the steps.

Histories of the simulation and processes that were really killed are held to the same rules.
Each rule is one function that yields complaints. A complaint begins with the name of its rule.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import cast

from harness.decide.triggers import SLOT_TAG
from harness.platform.databricks.api import Outcome
from harness.platform.format import iso
from harness.settle.pull_consumers import REPORTED_BY
from harness.store.inbox import MessageKind
from harness.store.rows import HOLDING, OPEN, Ledger
from tests.simulation.consumers import Pull
from tests.simulation.policies import policy_of
from tests.simulation.record import Attempt, Record, Row, attempt_of, is_registered
from tests.simulation.triggers import NUMBER
from tests.support.trigger_keeper import change_of, lives_of_slots

#: The machine's clock may be wrong by so much, both when a run begins and when it is judged.
_SKEW = timedelta(minutes=20)


def complaints(record: Record) -> list[str]:
    """Return everything that is wrong with what has come to rest."""
    return [f"{rule.__name__}: {each}" for rule in RULES for each in rule(record)]


def one_run_per_attempt(record: Record) -> Iterator[str]:
    for token, runs in record.runs.items():
        if len(runs) > 1:
            yield f"attempt {token} has the runs {[run['run_id'] for run in runs]}"


def no_start_without_an_intent(record: Record) -> Iterator[str]:
    for request in record.starts:
        if not request.was_intended:
            yield f"job {request.job_id} was to start before its intent was in a ledger"
    for token, runs in record.runs.items():
        if token not in record.by_token:
            yield f"no ledger knows the attempt of the runs {[run['run_id'] for run in runs]}"


def one_token_and_one_body(record: Record) -> Iterator[str]:
    sent: dict[str, set[tuple[str | None, str]]] = defaultdict(set)
    for request in record.starts:
        sent[request.attempt_token].add((request.token, request.body))
    for attempt, reported in sent.items():
        if len(reported) > 1:
            yield f"attempt {attempt} was sent in {len(reported)} ways"
    for token, reported in sent.items():
        if any(idempotency_token is None for idempotency_token, _ in reported):
            yield f"attempt {token} was sent without an idempotency token"
    yield from record.warnings


def a_run_is_known_by_its_own_id(record: Record) -> Iterator[str]:
    for token, steps in record.by_token.items():
        made = {run["run_id"] for run in record.runs.get(token, ())}
        reported = {row["run_id"] for row in steps if row["run_id"] is not None}
        if not reported <= made:
            yield f"attempt {token} is said to be {reported}, the API made {made or 'none'}"
        last = steps[-1]
        has_word = last["reported_by"] == "notice" or last["run_status"] in ("PARKED", *_AFTER)
        if made and not reported and not has_word:
            yield f"the run {made} of attempt {token} is nowhere in its {len(steps)} steps: {last}"


def what_is_refused_has_no_run(record: Record) -> Iterator[str]:
    for token, steps in record.by_token.items():
        if "REFUSED" in _statuses(steps) and record.runs.get(token):
            yield f"attempt {token} counts as refused, and the API made a run of it"


def every_start_ends_or_is_parked(record: Record) -> Iterator[str]:
    for attempt, steps in record.attempts.items():
        if steps[-1]["run_status"] in OPEN:
            yield f"attempt {attempt} is {steps[-1]['run_status']} for ever"


def steps_are_legal(record: Record) -> Iterator[str]:
    for attempt, steps in record.attempts.items():
        for before, after in pairwise(["", *_statuses(steps)]):
            if not _is_legal(before, after):
                yield f"attempt {attempt} became {after} after {before or 'nothing'}"


def _is_legal(before: str, after: str) -> bool:
    if not before:
        return after == "INTENDED"
    if before == "INTENDED":
        return after not in _AFTER
    if before == "STARTED":
        # Recorded again when the API has no such run for a while, or its words are not known.
        return after not in ("INTENDED", "REFUSED", *_AFTER)
    return before in HOLDING and after in _AFTER


def steps_have_places_of_their_own(record: Record) -> Iterator[str]:
    places = [(row["tick_number"], row["step_number"]) for row in record.steps]
    if places != sorted(set(places)):
        yield f"the steps are not in the order of their numbers, or share one: {places}"


def a_tick_has_a_number_of_its_own(record: Record) -> Iterator[str]:
    """The newest row of an upstream, or of a control row, is found by the number of its tick."""
    for ledger, key in (
        (Ledger.TICKS, None),
        (Ledger.PROBES, "upstream_id"),
        (Ledger.CONTROLS, "control_id"),
    ):
        numbers: dict[object, list[int]] = defaultdict(list)
        for row in record.ledgers[ledger]:
            numbers[row[key] if key else ledger].append(cast(int, row["tick_number"]))
        for name, found in numbers.items():
            if found != sorted(set(found)):
                yield f"{ledger} has rows of {name} in the ticks {found}"


def no_tick_starts_more_than_its_limit(record: Record) -> Iterator[str]:
    started = Counter(steps[0]["tick_number"] for steps in record.attempts.values())
    for number, count in started.items():
        if count > record.starts_per_tick:
            yield f"tick {number} started {count} jobs, {record.starts_per_tick} are allowed"


def what_ended_ended_so(record: Record) -> Iterator[str]:
    """An end in the ledger is one that the run had, or that its last task reported."""
    for steps in record.by_token.values():
        for row in steps:
            status, run_id = str(row["run_status"]), row["run_id"]
            if status in Outcome.__members__ and row["reported_by"] == "poll" and status != "LOST":
                had = record.outcomes.get(cast(int, run_id), set())
                if Outcome(status) not in had:
                    yield f"run {run_id} counts as {status}, and was {sorted(had)}"
            is_excused = run_id in record.deleted or run_id in record.denied
            if status == "LOST" and not is_excused:
                yield f"run {run_id} counts as lost, and nobody deleted it"


def a_message_ends_only_the_attempt_that_it_names(record: Record) -> Iterator[str]:
    """An operator vouches for one attempt; the report of a run counts where the API reports no end."""
    for attempt, steps in record.attempts.items():
        for before, row in pairwise(steps):
            if row["reported_by"] != "notice" or row["run_status"] in OPEN:
                continue
            made = {cast(int, run["run_id"]) for run in record.runs.get(str(row["token"]), ())}
            has_no_end = before["run_status"] in ("LOST", "PARKED")
            is_own = has_no_end and made & record.noticed
            if not is_own and attempt not in record.vouched:
                yield f"attempt {attempt} became {row['run_status']} by a message about another one"


def a_job_is_released_by_a_later_success(record: Record) -> Iterator[str]:
    """What succeeded before the failed run was decided proves nothing about its events."""
    for (intent, attempt), steps in record.attempts.items():
        released = re.search(r"success of run (\d+)", str(steps[-1]["message"]))
        decided = record.decided.get((intent, attempt))
        if decided and released and steps[-1]["run_status"] == "SUCCEEDED_ELSEWHERE":
            success = record.successes.get(int(released[1]))
            by_poll = steps[-1]["reported_by"] == "poll"
            if by_poll and (not success or success < decided - _SKEW):
                yield f"attempt {attempt} of {intent} was released by a success at {success}"


def what_is_repeated_or_given_up_was_asked_for(record: Record) -> Iterator[str]:
    """A message that is read twice is not about the attempt after the one that it names."""
    kinds = {"RETRY_REQUESTED": MessageKind.RETRY, "RELEASED": MessageKind.RELEASE}
    for attempt, steps in record.attempts.items():
        by_people = [row for row in steps if row["reported_by"] != "policy"]
        for status in kinds.keys() & set(_statuses(by_people)):
            if attempt not in record.asked.get(kinds[status], ()):
                yield f"attempt {attempt} became {status}, and nobody has asked for it"


def a_message_is_applied_at_most_once(record: Record) -> Iterator[str]:
    """However often it comes: no job takes more steps by messages than there were messages."""
    consumed: Counter[tuple[MessageKind, int]] = Counter()
    for row in record.steps:
        kind = _KINDS.get((str(row["reported_by"]), str(row["run_status"])))
        if kind is not None:
            consumed[kind, cast(int, row["job_id"])] += 1
    for (kind, job_id), count in consumed.items():
        sent = record.messages.get((kind, job_id), 0)
        if record.messages and count > sent:
            yield f"job {job_id} took {count} steps by {sent} messages of the kind {kind}"


_KINDS = {
    ("operator", "RETRY_REQUESTED"): MessageKind.RETRY,
    ("operator", "RELEASED"): MessageKind.RELEASE,
    ("notice", "SUCCEEDED"): MessageKind.COMPLETE,
    ("notice", "SUCCEEDED_ELSEWHERE"): MessageKind.COMPLETE,
}


def a_manual_run_counts_if_it_reports_itself_and_has_succeeded(record: Record) -> Iterator[str]:
    for row in record.by_hand:
        run_id = cast(int, row["run_id"])
        if run_id not in record.reported:
            yield f"run {run_id} was counted, and never reported itself"
        elif Outcome.SUCCEEDED not in record.outcomes.get(run_id, set()):
            yield f"run {run_id} was counted, and has not succeeded"
        if row["run_status"] != "SUCCEEDED":
            yield f"run {run_id}, which nobody was to start, is {row['run_status']}"


def a_manual_run_takes_nothing_that_came_after_it_began(record: Record) -> Iterator[str]:
    for row in record.by_hand:
        began = record.reported.get(cast(int, row["run_id"]))
        late = [
            each
            for each in cast(Iterable[str], row["event_ids"])
            if began and record.seen.get(each, began) > began
        ]
        if late:
            yield f"run {row['run_id']} counts for {late}, which came after it had begun"


def a_policy_starts_no_more_and_no_sooner_than_it_says(record: Record) -> Iterator[str]:
    """What counts is the policy that was in force, and the failed run's row in the ledger."""
    newest: dict[Attempt, Row] = {}
    for number, row in enumerate(record.steps):
        attempt = attempt_of(row)
        failed, newest[attempt] = newest.get(attempt), row
        if row["reported_by"] != "policy":
            continue
        fed = [policies for after, policies in record.policies if after <= number]
        policy = policy_of(fed[-1], row["job_id"]) if fed else None
        at = policy.retry_at(failed) if policy and failed else None
        if at is None:
            yield f"attempt {attempt} was wanted again by {policy}, which does not"
        elif cast(datetime, row["recorded_at"]) < at:
            yield f"attempt {attempt} was wanted again at {row['recorded_at']}, before {at}"


def a_job_has_one_start_at_a_time(record: Record) -> Iterator[str]:
    newest: dict[object, tuple[Attempt, str]] = {}
    for row in record.steps:
        if row["reported_by"] == REPORTED_BY:
            # Runs that a job starts by itself may overlap.
            continue
        attempt = attempt_of(row)
        before = newest.get(row["job_id"])
        if before and before[0] != attempt and before[1] in {*OPEN, *HOLDING}:
            yield f"job {row['job_id']} began {attempt} while {before[0]} was {before[1]}"
        newest[row["job_id"]] = (attempt, str(row["run_status"]))


def an_event_is_recorded_once(record: Record) -> Iterator[str]:
    ids = [row["event_id"] for row in record.events]
    if len(ids) != len(set(ids)):
        yield f"{len(ids) - len(set(ids))} events are in the ledger twice"


def every_change_is_an_event(record: Record) -> Iterator[str]:
    recorded: dict[str, set[str]] = defaultdict(set)
    for row in record.sensed:
        recorded[record.name_of(row)] |= record.marks_of(row)
    for name, due in record.due.items():
        if missing := due - recorded[name]:
            yield f"the changes {sorted(missing)} of {name} never became events"


def an_event_is_consumed_once_by_each_job(record: Record) -> Iterator[str]:
    for job_id, consumed in _consumption(record).items():
        for event_id, attempts in consumed.items():
            if len(attempts) > 1:
                yield f"job {job_id} was started by event {event_id} in {attempts}"


def no_event_is_lost(record: Record) -> Iterator[str]:
    consumed = _consumption(record)
    by_table: dict[str, list[Row]] = defaultdict(list)
    for row in filter(record.is_awaited, record.sensed):
        by_table[record.name_of(row)].append(row)
    for job_id, name in record.wanted:
        taken = consumed.get(job_id, {})
        lost = [row["snapshot_id"] for row in by_table[name] if row["event_id"] not in taken]
        if lost:
            yield f"job {job_id} never got the versions {lost} of {name}"


def a_registered_event_is_recorded_once(record: Record) -> Iterator[str]:
    rows = [row for row in record.reported_events if is_registered(row)]
    counts = Counter(cast(Mapping[str, str], row["tags"]).get(NUMBER) for row in rows)
    for number in record.registered:
        if counts[number] != 1:
            yield f"the registered event {number} is in the ledger {counts[number]} times"


def what_was_told_names_no_trigger(record: Record) -> Iterator[str]:
    """The tags with which a trigger passes an event on are those of its copy alone."""
    for row in record.reported_events:
        if SLOT_TAG in cast(Mapping[str, str], row["tags"]):
            yield f"the event {row['event_id']} of {row['upstream_id']} has the tags of a trigger"


def a_trigger_releases_a_change_once(record: Record) -> Iterator[str]:
    """So a trigger of snapshots does; the slots of partitions may wait for the same change.

    A change that one registers and a sensor sees has two rows, and may be released as each comes.
    """
    of_partitions = {each.upstream_id for each in record.triggers if not each.takes_snapshots}
    released = Counter((row["upstream_id"], row["change_id"]) for row in record.copies)
    rows = Counter(row["change_id"] for row in record.reported_events)
    for (name, change_id), count in released.items():
        if count > max(rows[change_id], 1) and name not in of_partitions:
            yield f"{name} released the change {change_id} {count} times"


def what_a_trigger_releases_is_taken(record: Record) -> Iterator[str]:
    consumed = {event_id for each in _consumption(record).values() for event_id in each}
    for row in filter(record.is_awaited, record.copies):
        if row["event_id"] not in consumed:
            yield f"{row['upstream_id']} released {row['snapshot_id']}, and no run took it"


def a_slot_is_released_once(record: Record) -> Iterator[str]:
    """What a slot released starts one intent; an intent may have several attempts."""
    intents: dict[tuple[object, str], set[str]] = defaultdict(set)
    by_event = {row["event_id"]: row for row in record.copies}
    for consumed in _consumption(record).values():
        for event_id in consumed.keys() & by_event.keys():
            row = by_event[event_id]
            intents[row["upstream_id"], _slot_of(row)] |= {
                intent for intent, _ in consumed[event_id]
            }
    for (name, slot), started in intents.items():
        if len(started) > 1:
            yield f"the slot {slot} of {name} started {len(started)} runs"


def a_slot_is_released_with_all_it_waits_for(record: Record) -> Iterator[str]:
    for trigger in record.triggers:
        if trigger.takes_snapshots:
            continue
        for row in record.copies:
            if row["upstream_id"] != trigger.upstream_id:
                continue
            tick, slot = cast(int, row["tick_number"]), datetime.fromisoformat(_slot_of(row))
            if not all(trigger.events_for(slot, _known_at(tick, record))):
                yield f"{trigger.upstream_id} released its slot {slot} in tick {tick} too early"


def a_slot_that_is_satisfied_is_released(record: Record) -> Iterator[str]:
    """Each slot that has opened is released, or waits for something, or has expired without it."""
    consumed = {event_id for each in _consumption(record).values() for event_id in each}
    for trigger in record.triggers:
        # The next slot waits until the run of the last one has succeeded.
        is_next = all(row["event_id"] in consumed for row in record.copies_of(trigger))
        lives = lives_of_slots(trigger, record.probes_of(trigger))
        if lives.opened_number < trigger.number_at(record.ticked_at):
            yield f"{trigger.upstream_id} has not opened the slot due at {record.ticked_at}"
        if trigger.takes_snapshots:
            continue
        released = {(row["tick_number"], _slot_of(row)) for row in record.copies_of(trigger)}
        for slot, ended in lives.ended.items():
            if ended is None:
                if is_next and all(trigger.events_for(slot, record.reported_events)):
                    yield f"the slot {slot} of {trigger.upstream_id} waits, and has all it needs"
                continue
            tick, found = cast(int, ended["tick_number"]), ended["latest_event_tick"]
            is_empty = all(number != tick for number, _ in released)
            # A tick that was killed may have released it, before an earlier one was.
            is_there = any(other == iso(slot) for number, other in released if number <= tick)
            is_released = found == tick and (is_there or is_empty)
            if not is_released and all(trigger.events_for(slot, _known_at(tick, record))):
                yield f"the slot {slot} of {trigger.upstream_id} was given up, and had all it needs"


def a_trigger_of_snapshots_releases_every_change(record: Record) -> Iterator[str]:
    """Between its first evaluation and the newest slot that it opened."""
    for trigger in record.triggers:
        rows = record.probes_of(trigger)
        if not trigger.takes_snapshots or not rows:
            continue
        first, last = cast(int, rows[0]["tick_number"]), lives_of_slots(trigger, rows).opened_tick
        released = {row["change_id"] for row in record.copies_of(trigger)}
        for row in record.reported_events:
            is_due = first < cast(int, row["tick_number"]) <= last
            is_wanted = is_due and any(part.takes(row) for part in trigger.parts)
            if is_wanted and change_of(row) not in released:
                yield f"{trigger.upstream_id} never released {row['event_id']} of {row['table']}"


def _known_at(tick: int, record: Record) -> list[Row]:
    return [row for row in record.reported_events if cast(int, row["tick_number"]) <= tick]


def _slot_of(row: Row) -> str:
    return cast(Mapping[str, str], row["tags"])[SLOT_TAG]


def a_consumer_gets_an_event_until_it_is_processed(record: Record) -> Iterator[str]:
    """Each of its runs gets what no run has reported, also what another run got before."""
    ticks = {row["event_id"]: cast(int, row["tick_number"]) for row in record.events}
    for (job_id, name), pulls in _by_consumer(record).items():
        open_events: set[str] = set()
        for pull in pulls:
            if pull.is_processed:
                through = max(ticks[each] for each in pull.event_ids)
                open_events = {each for each in open_events if ticks[each] > through}
                continue
            if missing := open_events - pull.event_ids:
                yield f"job {job_id} got {missing} of {name} once, and did not process them"
            open_events |= pull.event_ids


def a_consumer_gets_no_event_after_it_is_processed(record: Record) -> Iterator[str]:
    for (job_id, name), pulls in _by_consumer(record).items():
        done: set[str] = set()
        for pull in pulls:
            if pull.is_processed:
                done |= pull.event_ids
            elif again := done & pull.event_ids:
                yield f"job {job_id} got {again} of {name} again after it had processed them"


def a_consumer_gets_every_event(record: Record) -> Iterator[str]:
    for (job_id, name), pulls in _by_consumer(record).items():
        got = {event_id for pull in pulls for event_id in pull.event_ids}
        ours = {str(row["event_id"]) for row in record.sensed if record.name_of(row) == name}
        if missing := ours - got:
            yield f"job {job_id} never got the events {missing} of {name}"


def _by_consumer(record: Record) -> Mapping[tuple[int, str], list[Pull]]:
    pulls: dict[tuple[int, str], list[Pull]] = defaultdict(list)
    for each in record.pulls:
        pulls[each.job_id, each.name].append(each)
    return pulls


def a_run_is_handed_what_its_intent_says(record: Record) -> Iterator[str]:
    for token, steps in record.by_token.items():
        for run in record.runs.get(token, ()):
            payload = json.loads(cast(Mapping[str, str], run["parameters"])["heartbeat_events"])
            if isinstance(payload, dict):
                payload = json.loads(Path(payload["events_file"]).read_text())
            if [each["event_id"] for each in payload] != steps[0]["event_ids"]:
                yield f"run {run['run_id']} was handed other events than its intent has"
            for table in {each["table"] for each in payload}:
                versions = [
                    int(each["snapshot_id"]) for each in payload if _is_version(each, table)
                ]
                if versions != sorted(versions):
                    yield f"run {run['run_id']} was handed {table} out of order: {versions}"


def _is_version(event: Mapping[str, str], table: str) -> bool:
    """Return whether an event is one of a table whose snapshots are numbered as they come."""
    is_released = SLOT_TAG in event["tags"]
    return event["table"] == table and event["table_format"] == "DELTA" and not is_released


def _consumption(record: Record) -> dict[int, dict[str, list[Attempt]]]:
    """Return which attempts have consumed each event, by job; requeued ones do not count."""
    attempts = record.attempts.values()
    taken = [
        *(steps[0] for steps in attempts if "RETRY_REQUESTED" not in _statuses(steps)),
        *record.by_hand,
        # A run that fetches again before they are processed gets newer events, too.
        *(steps[-1] for steps in record.pulled.values() if steps[-1]["run_status"] == "SUCCEEDED"),
    ]
    consumed: dict[int, dict[str, list[Attempt]]] = defaultdict(lambda: defaultdict(list))
    for row in taken:
        for event_id in cast(Iterable[str], row["event_ids"]):
            consumed[cast(int, row["job_id"])][event_id].append(attempt_of(row))
    return consumed


def _statuses(steps: Iterable[Row]) -> list[str]:
    return [str(row["run_status"]) for row in steps]


_AFTER = ("SUCCEEDED_ELSEWHERE", "RETRY_REQUESTED", "RELEASED")

RULES: tuple[Callable[[Record], Iterator[str]], ...] = (
    one_run_per_attempt,
    no_start_without_an_intent,
    one_token_and_one_body,
    a_run_is_known_by_its_own_id,
    what_is_refused_has_no_run,
    every_start_ends_or_is_parked,
    steps_are_legal,
    steps_have_places_of_their_own,
    a_tick_has_a_number_of_its_own,
    no_tick_starts_more_than_its_limit,
    what_ended_ended_so,
    a_message_ends_only_the_attempt_that_it_names,
    a_job_is_released_by_a_later_success,
    what_is_repeated_or_given_up_was_asked_for,
    a_message_is_applied_at_most_once,
    a_manual_run_counts_if_it_reports_itself_and_has_succeeded,
    a_manual_run_takes_nothing_that_came_after_it_began,
    a_policy_starts_no_more_and_no_sooner_than_it_says,
    a_job_has_one_start_at_a_time,
    an_event_is_recorded_once,
    every_change_is_an_event,
    an_event_is_consumed_once_by_each_job,
    no_event_is_lost,
    a_registered_event_is_recorded_once,
    what_was_told_names_no_trigger,
    a_trigger_releases_a_change_once,
    what_a_trigger_releases_is_taken,
    a_slot_is_released_once,
    a_slot_is_released_with_all_it_waits_for,
    a_slot_that_is_satisfied_is_released,
    a_trigger_of_snapshots_releases_every_change,
    a_consumer_gets_an_event_until_it_is_processed,
    a_consumer_gets_no_event_after_it_is_processed,
    a_consumer_gets_every_event,
    a_run_is_handed_what_its_intent_says,
)
