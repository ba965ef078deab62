"""All that may happen in the world; each move is drawn from a seed, and described in a few words.

A move that has nothing to work on returns no words.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from harness.platform.jobs_emulator.api.responses import ApiError
from harness.platform.jobs_emulator.runs.database import RunRow
from harness.store.inbox import Message, MessageKind
from tests.simulation.world import World

Weights = Mapping[str, int]


def draw_weights(chance: random.Random) -> dict[str, int]:
    """Draw how often each thing happens in one history: some are full of what others lack."""
    usual = {name: MOVES[name][1] for name in MOVES if name not in _OF_PART}
    weights = {name: weight * chance.choice((0, 1, 1, 4)) for name, weight in usual.items()}
    return weights | {"commit": weights["commit"] or 30}


def draw_weights_of(part: str, chance: random.Random) -> dict[str, int]:
    """Draw the same for what happens only in worlds with some part."""
    return {
        name: MOVES[name][1] * chance.choice((1, 1, 2))
        for name in MOVES
        if _OF_PART.get(name) == part
    }


def move(world: World, chance: random.Random, weights: Weights, *, within: str = "") -> str:
    """Let one thing happen, and return its name; nothing when there was nothing to work on."""
    (name,) = chance.choices([*weights], [*weights.values()])
    reported = MOVES[name][0](world, chance)
    if not reported:
        return ""
    world.note(f"{within}{name} {reported}")
    return name


def _one(runs: list[RunRow], chance: random.Random) -> RunRow | None:
    return chance.choice(runs) if runs else None


def commit(world: World, chance: random.Random) -> str:
    name = chance.choice(sorted(world.machine.sources.all))
    brings = chance.random() < 0.85
    # Sixty events are more than can be passed to a run directly.
    count = chance.choice((1, 1, 1, 1, 1, 2, 2, 4, 4, 60))
    for _ in range(count):
        world.commit(name, brings=brings)
    return f"{name} {count} times {'data' if brings else 'nothing'}"


def forget(world: World, chance: random.Random) -> str:
    name = chance.choice(sorted(world.machine.sources.all))
    world.machine.sources.all[name].forget()
    return name


def wait(world: World, chance: random.Random) -> str:
    seconds = chance.choice((1, 5, 30, 60, 60, 300, 700, 3600))
    world.clock.sleep(seconds)
    return f"{seconds} s"


def long_wait(world: World, chance: random.Random) -> str:
    days = chance.choice((1, 3, 8, 40))
    world.clock.sleep(86_400 * days)
    return f"{days} days"


def clock_jump(world: World, chance: random.Random) -> str:
    seconds = chance.choice((-86_400, -3600, -300, 0, 0, 240, 540, 3600, 86_400))
    world.machine.clock.ahead = timedelta(seconds=seconds)
    world.has_wrong_clock |= abs(seconds) > 600
    return f"to {seconds} s"


def end_run(world: World, chance: random.Random) -> str:
    run = _one(world.workspace.runs(is_over=False), chance)
    if run is None or run.phase.waits:
        return ""
    words = chance.choices(_ENDS, (20, 5, 2, 2, 1, 1, 1, 1, 1, 1, 1))[0]
    world.workspace.put_phase(run.run_id, words)
    return f"{run.run_id} {words}"


def complete(world: World, chance: random.Random) -> str:
    """The last task of a run reports that it is done, and the run ends well soon after."""
    run = _one(world.ours(is_over=False), chance)
    if run is None or run.phase.waits:
        return ""
    what = _notice(world, run, chance)
    if chance.random() < 0.6:
        world.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
        what += " and ends"
    return f"{run.run_id} {what}"


def late_notice(world: World, chance: random.Random) -> str:
    """A notice comes once more, or only after the run was seen to have ended."""
    ended = [
        run
        for run in world.ours(is_over=True)
        if run.phase.result_state == "SUCCESS" or run.run_id in world.noticed
    ]
    run = _one(ended, chance)
    return f"{run.run_id} {_notice(world, run, chance)}" if run else ""


def _notice(world: World, run: RunRow, chance: random.Random) -> str:
    world.noticed.add(run.run_id)
    says = chance.choice(("both", "run", "intent"))
    world.send(
        Message(
            kind=MessageKind.COMPLETE,
            job_id=run.job_id,
            run_id=None if says == "intent" else run.run_id,
            intent_id=None if says == "run" else run.parameters["heartbeat_intent_id"],
            sent_at=world.instant(),
        )
    )
    return f"naming {says}"


def strange_notice(world: World, chance: random.Random) -> str:
    """Somebody reports a run as done that does not exist."""
    job_id = chance.choice([*world.jobs, 7])
    world.send(
        Message(
            kind=MessageKind.COMPLETE,
            job_id=job_id,
            run_id=chance.choice((5, None)),
            intent_id="nobody's",
            sent_at=world.instant(),
        )
    )
    return f"of job {job_id}"


def retry(world: World, chance: random.Random) -> str:
    """An operator wants a failed run again, or discards its events."""
    job_id = chance.choice(world.jobs)
    if job_id not in world.held_jobs():
        return ""
    kind = MessageKind.RELEASE if chance.random() < 0.3 else MessageKind.RETRY
    return f"{kind} {world.ask_for(kind, job_id)}"


def vouch(world: World, chance: random.Random) -> str:
    """An operator says that a held job's work is done, by whatever means."""
    held = world.held_jobs()
    if not held:
        return ""
    job_id = chance.choice(held)
    # Earlier versions named the job alone.
    is_named = chance.random() < 0.8
    world.vouch_for(job_id, is_named=is_named)
    return f"for job {job_id}, naming the {'attempt' if is_named else 'job'}"


def cancel(world: World, chance: random.Random) -> str:
    run = _one(world.workspace.runs(is_over=False), chance)
    if run is None:
        return ""
    world.workspace.engine.cancel(run.run_id)
    if chance.random() < 0.4:
        # It was quicker than the cancel.
        world.workspace.put_phase(run.run_id, {"phase": "SUCCESS"})
        return f"{run.run_id} too late"
    return f"{run.run_id}"


def repair(world: World, chance: random.Random) -> str:
    failed = [run for run in world.ours(is_over=True) if run.phase.result_state != "SUCCESS"]
    run = _one(failed, chance)
    if run is None or run.phase.life_cycle_state == "SKIPPED":
        return ""
    world.workspace.put_phase(run.run_id, {"phase": "RUNNING"})
    return f"{run.run_id}"


def manual_run(world: World, chance: random.Random) -> str:
    job_id = chance.choice(world.jobs)
    run_id = world.workspace.start_by_hand(job_id)
    if run_id is None:
        return ""
    how = chance.choice(("goes on", "SUCCESS", "FAILED"))
    run = world.workspace.engine.run(run_id)
    if how != "goes on" and not run.phase.is_over and not run.phase.waits:
        world.workspace.put_phase(run_id, {"phase": how})
    # Its last task may report that it succeeded, whatever becomes of it.
    if random.Random(run_id).random() < 0.5:
        world.report(job_id, run_id)
        how += ", and reports itself"
    return f"{run_id} {how}"


def delete_run(world: World, chance: random.Random) -> str:
    run = _one(world.ours(is_over=True), chance)
    if run is None:
        return ""
    world.workspace.engine.delete_run(run.run_id)
    world.deleted.add(run.run_id)
    return f"{run.run_id}"


def delete_job(world: World, chance: random.Random) -> str:
    job_id = chance.choice(world.jobs)
    try:
        world.workspace.registry.delete_job(job_id)
    except ApiError:
        world.put_job(job_id)
        return f"{job_id} is there again"
    return f"{job_id} is gone"


def edit(world: World, chance: random.Random) -> str:
    line = chance.choice(world.lines)
    what = chance.choice(("pause", "pause", "remove", "remove", "flag", "spoil", "mend"))
    match what:
        case "pause":
            line.state = "PAUSED" if line.state == "UNPAUSED" else "UNPAUSED"
        case "remove":
            line.is_there = not line.is_there
        case "flag":
            line.flag = "FALSE" if line.flag == "TRUE" else "TRUE"
    world.save_controls()
    if what == "spoil":
        with world.machine.controls_file.open("a") as file:
            file.write("delta_table,half a li")
    return f"{what} {line.sensor_id} of {line.job_id}"


def source_down(world: World, chance: random.Random) -> str:
    name = chance.choice(sorted(world.machine.sources.all))
    source = world.machine.sources.all[name]
    source.is_down = not source.is_down
    return f"{name} {source.is_down}"


def outage(world: World, chance: random.Random) -> str:
    problem = world.workspace.problem
    if problem.is_down or problem.is_forbidden:
        world.workspace.problem = replace(problem, is_down=False, is_forbidden=False)
        return "over"
    is_down = chance.random() < 0.6
    world.workspace.problem = replace(problem, is_down=is_down, is_forbidden=not is_down)
    return "down" if is_down else "forbidden"


def lose_state(world: World, chance: random.Random) -> str:
    world.machine.end_process()
    world.machine.lose_state_file(half=chance.random() < 0.5)
    return "file"


def garbage(world: World, chance: random.Random) -> str:
    """A file that is no message lies in the inbox, or one that was never finished."""
    name = chance.choice((".0.json.part", "0.json", "9.json"))
    world.machine.home.inbox.mkdir(exist_ok=True)
    (world.machine.home.inbox / name).write_text(chance.choice(("", '{"kind": "compl', "[]")))
    return name


def register(world: World, chance: random.Random) -> str:
    if world.producers is None:
        return ""
    sources = world.machine.sources.by_id
    newest = {
        name: (source.newest, source.versions[-1][1])
        for name, source in sources.items()
        if source.versions[-1][0]
    }
    return world.producers.register(chance, newest)


def register_again(world: World, chance: random.Random) -> str:
    """A producer has no confirmation of its batch, and sends it once more."""
    return world.producers.send_again(chance) if world.producers else ""


def register_garbage(world: World, chance: random.Random) -> str:
    return world.producers.send_garbage(chance) if world.producers else ""


def edit_trigger(world: World, chance: random.Random) -> str:
    reported = world.triggers.edit(chance) if world.triggers else ""
    world.save_controls()
    return reported


def wait_for_slot(world: World, chance: random.Random) -> str:
    """Time passes up to the next slot of a trigger, or a little farther."""
    if world.triggers is None:
        return ""
    trigger = chance.choice(world.triggers.all)
    now = world.machine.clock.now()
    at = trigger.slot(trigger.number_at(now) + 1) + timedelta(minutes=chance.choice((0, 1, 130)))
    world.clock.sleep((at - now).total_seconds())
    return f"of {trigger.trigger_id} until {at}"


def sense(world: World, chance: random.Random) -> str:
    """A run of a pull consumer fetches its events."""
    return world.consumers.sense(chance, world.instant()) if world.consumers else ""


def processed(world: World, chance: random.Random) -> str:
    return world.consumers.report(chance, world.instant()) if world.consumers else ""


def repeat_message(world: World, chance: random.Random) -> str:
    return world.repeat(chance)


def stale_request(world: World, chance: random.Random) -> str:
    """An operator answers to what was on the screen some time ago."""
    kind = chance.choice((MessageKind.RETRY, MessageKind.RELEASE))
    reported = world.ask_for_older(kind, chance)
    return reported and f"{kind} {reported}"


def malformed_message(world: World, chance: random.Random) -> str:
    """A script leaves what it takes for a message."""
    job_id, at = chance.choice(world.jobs), world.instant().isoformat()
    right = {"kind": "retry", "job_id": job_id, "sent_at": at}
    wrong = chance.choice(_MALFORMED)
    world.machine.home.inbox.mkdir(exist_ok=True)
    path = world.machine.home.inbox / f"{at[:19].replace(':', '')}-by-hand.json"
    path.write_text(json.dumps({**right, **wrong}) if isinstance(wrong, dict) else wrong)
    return f"{wrong}"


#: Each differs from a message in one thing, or is none at all.
_MALFORMED: tuple[dict[str, object] | str, ...] = (
    {"kind": "frog"},
    {"job_id": "the daily one"},
    {"job_id": None},
    {"sent_at": "yesterday"},
    {"sent_at": None},
    {"attempt": "first"},
    {"run_id": []},
    {"taken": {"upstream_id": "x", "frog": 1}},
    *("null", "7", "[[]]", "\x00", '{"kind": "retry"}', '{"job_id": '),
)


_ENDS: tuple[Mapping[str, object], ...] = (
    {"phase": "SUCCESS"},
    {"phase": "FAILED", "message": "no such column"},
    {"phase": "INTERNAL_ERROR"},
    {"phase": "TIMEDOUT"},
    {"phase": "CANCELED"},
    {"phase": "SUCCESS_WITH_FAILURES"},
    {"phase": "TERMINATING"},
    {"life_cycle_state": "TERMINATED", "result_state": "SOMETHING_NEW"},
    {"life_cycle_state": "WARMING_UP", "state": "WARMING_UP"},
    {"state": "TERMINATED", "code": "SUCCESS", "type": "SUCCESS"},
    {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"},
)

Move = Callable[[World, random.Random], str]
#: Every move, and how often it happens among all.
MOVES: Mapping[str, tuple[Move, int]] = {
    "commit": (commit, 30),
    "forget": (forget, 1),
    "source_down": (source_down, 6),
    "wait": (wait, 18),
    "long_wait": (long_wait, 1),
    "clock_jump": (clock_jump, 2),
    "end_run": (end_run, 22),
    "complete": (complete, 10),
    "late_notice": (late_notice, 3),
    "strange_notice": (strange_notice, 1),
    "vouch": (vouch, 1),
    "retry": (retry, 5),
    "cancel": (cancel, 2),
    "repair": (repair, 3),
    "manual_run": (manual_run, 3),
    "delete_run": (delete_run, 1),
    "delete_job": (delete_job, 2),
    "edit": (edit, 5),
    "outage": (outage, 3),
    "lose_state": (lose_state, 1),
    "garbage": (garbage, 1),
    "register": (register, 14),
    "register_again": (register_again, 3),
    "register_garbage": (register_garbage, 1),
    "edit_trigger": (edit_trigger, 3),
    "wait_for_slot": (wait_for_slot, 10),
    "repeat_message": (repeat_message, 6),
    "stale_request": (stale_request, 5),
    "malformed_message": (malformed_message, 3),
    "sense": (sense, 16),
    "processed": (processed, 12),
}
#: The moves of worlds that have more than tables and jobs, by what they have.
_OF_PART = {
    "register": "triggers",
    "register_again": "triggers",
    "register_garbage": "triggers",
    "edit_trigger": "triggers",
    "wait_for_slot": "triggers",
    "repeat_message": "operators",
    "stale_request": "operators",
    "malformed_message": "operators",
    "sense": "consumers",
    "processed": "consumers",
}
#: What may happen while a tick is at work.
MEANWHILE: Weights = {
    "commit": 8,
    "end_run": 8,
    "complete": 6,
    "cancel": 2,
    "retry": 1,
    "wait": 2,
    "edit": 1,
    "delete_run": 1,
    "manual_run": 1,
}
#: The same in worlds with some part.
MEANWHILE_OF: Mapping[str, Weights] = {
    "triggers": {"register": 6, "register_again": 2},
    "operators": {"repeat_message": 3, "stale_request": 2, "vouch": 1},
    "consumers": {"sense": 4, "processed": 4},
}
