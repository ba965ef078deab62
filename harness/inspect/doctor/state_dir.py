"""Checks where the installation is stored: the state directory, its disk, its lock, its version."""

import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError
from harness.inspect.doctor.findings import Finding, attention, broken, ok
from harness.inspect.doctor.installation import Patient
from harness.platform.format import age, size
from harness.platform.mounts import file_system_of, is_network
from harness.platform.spark.metastore import is_engine, other_holder
from harness.store.queries import holder_of
from harness.tick.install import STATE_VERSION, state_version

#: With less room a tick may not be able to write down what it has started.
_BYTES_NEEDED, _BYTES_WANTED = 100_000_000, 1_000_000_000
_FILES_NEEDED, _FILES_WANTED = 1_000, 20_000

_WRITTEN = ("", "warehouse", "metastore", "inbox", "handed_over", "jobs-api", "logs", "target")


def state_directory(patient: Patient) -> Iterator[Finding]:
    """The state directory can be written, and lies on a disk of this machine."""
    folder, about = patient.home.folder, "state directory"
    if not folder.is_dir():
        yield attention(
            about, "is not there yet", where=folder, todo="run `python -m harness init`"
        )
        return
    kind = file_system_of(folder, patient.mounts)
    if is_network(kind):
        yield broken(
            about,
            f"is on a network drive ({kind}), where the lock may hold on one machine only and a "
            "commit may not be whole",
            where=folder,
            todo="stop ticking, move the folder to a local disk and set HEARTBEAT_HOME to it",
        )
    for path in (folder / name for name in _WRITTEN):
        if path.exists() and not path.is_dir():
            what = "has a file where a folder has to be"
            yield broken(about, what, where=path, todo="move it away, and tick again")
    frozen = [path for name in _WRITTEN if _is_frozen(path := folder / name)]
    for path in frozen[:1]:
        more = f", and {len(frozen) - 1} more folders" if len(frozen) > 1 else ""
        yield broken(
            about,
            f"cannot be written by this user{more}",
            where=path,
            todo="make it writable, or run as the user whose folder it is",
        )
    mode = folder.stat().st_mode & 0o777
    if patient.is_local and mode & 0o077:
        yield attention(
            about,
            f"is open to other users of this machine (mode {mode:o}); it holds queries, events and "
            "the token of the local Jobs API",
            where=folder,
            todo=f"run `chmod 700 {folder}`",
        )
    if not frozen and not is_network(kind):
        yield ok(about, f"can be written, on {kind or 'a disk of an unknown kind'}", where=folder)


def _is_frozen(path: Path) -> bool:
    return path.is_dir() and not os.access(path, os.R_OK | os.W_OK | os.X_OK)


def disk_space(patient: Patient) -> Iterator[Finding]:
    """There is room for what ticks write."""
    folder = _nearest(patient.home.folder)
    usage = os.statvfs(folder)
    yield room_left(
        usage.f_bavail * usage.f_frsize, usage.f_favail if usage.f_files else None, folder
    )


def room_left(free: int, files: int | None, folder: Path) -> Finding:
    """Judge how much room there is.

    Args:
        free: Bytes.
        files: How many more files the disk takes; nothing where it has no such limit.
        folder: The folder that is meant.
    """
    room = f"{size(free)} free" + ("" if files is None else f", room for {files:,} files")
    todo = (
        "make room: old files of logs/ may go at once, and `python -m harness maintain` removes "
        "replaced ones"
    )
    entries = _FILES_WANTED if files is None else files
    if free < _BYTES_NEEDED or entries < _FILES_NEEDED:
        return broken("disk", room, where=folder, todo=todo)
    if free < _BYTES_WANTED or entries < _FILES_WANTED:
        return attention("disk", room, where=folder, todo=todo)
    return ok("disk", room)


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def lock(patient: Patient) -> Iterator[Finding]:
    """Who works on the state directory."""
    holder = holder_of(patient.home.folder)
    if holder is None:
        yield ok("lock", "is free")
        return
    now = patient.clock.now()
    yield ok("lock", f"`{holder.command}` is at work (pid {holder.pid}), {age(holder.since, now)}")


def metastore(patient: Patient) -> Iterator[Finding]:
    """Only a tick, or the engine, has Spark's catalog open."""
    if not patient.is_local or not patient.home.metastore.is_dir():
        return
    pid = other_holder(patient.home.metastore)
    if pid is None:
        yield ok("metastore", "is free")
    elif is_engine(patient.home.metastore, pid):
        yield ok("metastore", "is open in the engine")
    elif holder_of(patient.home.folder) is not None:
        yield ok("metastore", "is open, as it is while a process is at work")
    else:
        yield broken(
            "metastore",
            "is open in another process, though no process holds the lock",
            where=f"pid {pid}" if pid else patient.home.metastore,
            todo="end that process (a dbt, a Spark shell, what a killed tick left); "
            "until then no tick starts Spark",
        )


def version(patient: Patient) -> Iterator[Finding]:
    """The state directory was written by a version that this one supports."""
    about, file = "version", patient.home.folder / "version.json"
    try:
        found = state_version(file)
    except StateError as error:
        yield broken(
            about,
            f"cannot be read ({type(error.__cause__).__name__})",
            where=file,
            todo="remove this file: the next tick builds every table and view, and ledgers keep "
            "their rows",
        )
        return
    if found is None:
        if patient.home.folder.is_dir():
            todo = "run `python -m harness init`, or tick: both build what is missing"
            yield attention(about, "nothing is built here yet", where=file, todo=todo)
    elif found > STATE_VERSION:
        yield broken(
            about,
            f"the state directory is of version {found}, but this Heartbeat is for {STATE_VERSION}",
            where=file,
            todo="use the newer Heartbeat, or set HEARTBEAT_HOME to another folder",
        )
    else:
        yield ok(about, f"state version {found}")
