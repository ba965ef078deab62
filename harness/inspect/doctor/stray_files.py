"""Checks the small files that processes leave for each other in the state directory."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from harness.events.payload import file_of
from harness.inspect.doctor.findings import Finding, attention, ok
from harness.inspect.doctor.installation import Patient
from harness.platform.format import age, count, size
from harness.platform.json_file import load
from harness.platform.sql_names import SchemaName
from harness.record.batch_inbox import unfinished, waiting
from harness.store.catalog_files import delete_item
from harness.store.inbox import peek
from harness.store.quarantine import Quarantined, quarantined
from harness.store.queries import folded_through, last_decision, runs_now
from harness.tick.checkpoint import load_state

#: A message that is being written is there for milliseconds.
_HALF_WRITTEN_AFTER_SECONDS = 600.0
_PAYLOAD_BYTES = 1_000_000_000
_MOST_NAMED = 3


def inbox(patient: Patient) -> Iterator[Finding]:
    """Every message can be read."""
    folder = patient.home.inbox
    if not folder.is_dir():
        yield ok("inbox", "is empty")
        return
    messages = peek(folder)
    readable = {each.path for each in messages}
    bad = [path for path in sorted(folder.glob("*.json")) if path not in readable and path.exists()]
    bad += sorted(folder.glob("*.unreadable"))
    for item in quarantined(folder)[-_MOST_NAMED:]:
        yield attention(
            "inbox",
            f"{item.name} is quarantined since {age(item.since, patient.clock.now())}: "
            f"{item.reason}",
            where=item.path if patient.is_local else "",
            todo=f"send it again, put right (`complete`, `emit`), then {_removal(patient, item)}",
        )
    if bad:
        yield attention(
            "inbox",
            f"{count(len(bad), 'message')} cannot be read: {_names(bad)}",
            where=folder,
            todo="read it and send it again (`complete`, `emit`), then remove it",
        )
    now = patient.clock.now()
    half = [
        path
        for path in (*folder.glob(".*.part"), *unfinished(folder))
        if _seconds_old(path, now) > _HALF_WRITTEN_AFTER_SECONDS
    ]
    if half:
        yield attention(
            "inbox",
            f"{count(len(half), 'message')} was never finished: {_names(half)}",
            where=folder,
            todo="remove it; its sender died or got an error, so check that job's run",
        )
    since = [each.sent_at for each in messages]
    since += [sent_at for sent_at, _ in waiting(folder)]
    if since:
        waits = age(min(since), now)
        yield ok("inbox", f"{count(len(since), 'message')} for the next tick, since {waits}")
    elif not bad and not half:
        yield ok("inbox", "is empty")


def _removal(patient: Patient, item: Quarantined) -> str:
    if patient.is_local:
        return "remove the file"
    catalog = patient.settings.catalog if patient.settings else None
    return f"run: {delete_item(SchemaName(patient.schema, catalog), item.path.name)}"


def state_file(patient: Patient) -> Iterator[Finding]:
    """What the last tick left for the next one can be used."""
    file = patient.home.state
    if not patient.is_local or not file.exists():
        return
    if load_state(file, patient.store) is not None:
        yield ok("last tick", "has left what the next one starts from")
    elif _can_be_parsed(file):
        yield ok(
            "last tick", "was followed by a change of the tables; the next tick reads them again"
        )
    else:
        yield attention(
            "last tick",
            "what it left cannot be read",
            where=file,
            todo="nothing: the next tick reads the tables instead, and rewrites the file",
        )


def _can_be_parsed(file: Path) -> bool:
    return load(file, lambda content: isinstance(content, dict)) or False


def payload_files(patient: Patient) -> Iterator[Finding]:
    """Lists of events that runs are to read are there, and do not fill the disk."""
    folder = patient.home.payloads
    files = [path for path in folder.glob("*") if path.is_file()]
    vanished = _vanished(patient) if patient.is_local else []
    if vanished:
        yield attention(
            "run payloads",
            f"{count(len(vanished), 'list')} of events that a run is to read is gone: "
            f"{_names(vanished)}",
            where=folder,
            todo="tick: it rewrites the list; a run that has failed meanwhile needs `retry`",
        )
    total = sum(_bytes(path) for path in files)
    if total > _PAYLOAD_BYTES:
        yield attention(
            "run payloads",
            f"{count(len(files), 'list')} of events hold {size(total)}",
            where=folder,
            todo="run `python -m harness maintain`, which removes old ones",
        )
    elif files and not vanished:
        yield ok("run payloads", f"{count(len(files), 'list')} of events, {size(total)}")


def _vanished(patient: Patient) -> list[Path]:
    store = patient.store
    compacted = folded_through(store, last_decision(patient.home.status))
    runs = runs_now(store, folded_through=compacted, only_relevant=True)
    files = [file_of(run.parameters) for run in runs if run.is_open]
    return [path for path in files if path is not None and not path.exists()]


def _names(paths: Iterable[Path]) -> str:
    names = [path.name for path in paths]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _seconds_old(path: Path, now: datetime) -> float:
    try:
        return (now - datetime.fromtimestamp(path.stat().st_mtime, UTC)).total_seconds()
    except OSError:
        return 0.0
