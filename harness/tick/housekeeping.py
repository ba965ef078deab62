"""Keeps the tables of a state directory small in files, so that no tick gets slower over the years.

Compacting writes the same rows into fewer files and removes, after a while, the files that it
replaced. It needs no JVM, so a resident process does it between two ticks; compacting the ledgers
into the current state needs Spark, and is done here only on request.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from harness.config.load import LOCAL_TARGET
from harness.errors import StateError
from harness.platform.json_file import load, save
from harness.store.delta_commits import force_table, version_in
from harness.store.integrity import require_intact
from harness.store.rows import Ledger
from harness.tick.checkpoint import load_state, save_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

    from harness.context import Context
    from harness.store.rows import Store

log = logging.getLogger(__name__)

#: Large enough to be few, small enough for the last one to be rewritten with what has come since.
TARGET_BYTES = 16_000_000
#: The newest rows of a ledger, which each decision reads, are put together more often, and into
#: files so small that doing so costs a tenth of a second.
_NEWEST_BYTES = 1_000_000
_NEWEST_AFTER_COMMITS = 30
#: Counting commits means listing folders: cheap, but not for every second of the year.
_TICKS_BETWEEN_CHECKS = 10
#: Only the thread that ticks appends to them.
_LEDGERS = frozenset(map(str, Ledger))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTable:
    """What became of one table."""

    name: str
    files_before: int
    files_after: int
    #: Replaced files that are old enough to be gone.
    removed: int
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What housekeeping did."""

    tables: tuple[KeptTable, ...] = ()
    has_compacted: bool = False
    #: Run payloads, and the output of local runs.
    removed_files: int = 0

    @property
    def failures(self) -> tuple[KeptTable, ...]:
        """The tables that could not be compacted."""
        return tuple(each for each in self.tables if each.failure)


def maintain(context: "Context") -> Kept:
    """Do all of it: compact the ledgers and every table, remove old files.

    A workspace compacts its tables itself; there only the ledgers and the old files are left to do.

    Raises:
        DecideError: The compaction failed.
        StateError: The state directory is not set up, or cannot be written.
    """
    folder = schema_folder(context)
    if context.target == LOCAL_TARGET and not folder.is_dir():
        raise StateError(
            f"The state directory {context.home.folder} is not set up yet: "
            "run `python -m harness init` first"
        )
    require_intact(folder, context.home.state)
    has_compacted = _compact(context)
    tables = sorted(each.parent for each in folder.glob("*/_delta_log"))
    kept = compact(context, dict.fromkeys(tables, TARGET_BYTES))
    removed = remove_old_files(
        context.home.folder, context.clock.now(), _keep(context), _used(context)
    )
    return Kept(tables=kept, has_compacted=has_compacted, removed_files=removed)


def compact_when_due(
    context: "Context", *, alone: Callable[[], None] = lambda: None
) -> tuple[KeptTable, ...]:
    """Compact the tables that have had enough commits since the last time; cheap when none has.

    Args:
        context: The services.
        alone: Called before a table is compacted to which something else may write: ends that.

    Raises:
        StateError: The state directory cannot be written.
    """
    compacted = _compacted_versions(context)
    due: dict[Path, int] = {}
    for table in sorted(schema_folder(context).glob("*")):
        version = newest_version(context.store, table.name)
        if version is None:
            continue
        commits = version - compacted.get(table.name, -1)
        newest = version - compacted.get(_newest_of(table.name), -1)
        if commits >= context.settings.maintenance.compact_after_commits:
            due[table] = TARGET_BYTES
        elif table.name in _LEDGERS and min(commits, newest) >= _NEWEST_AFTER_COMMITS:
            due[table] = _NEWEST_BYTES
    if not due:
        return ()
    if any(table.name not in _LEDGERS for table in due):
        alone()
    return compact(context, due)


class Housekeeper:
    """Compacts between the ticks of a resident process; most of the time it does nothing.

    Args:
        context: The services.
        alone: Called before a table is compacted: ends what else may write to it.
    """

    def __init__(self, context: "Context", *, alone: Callable[[], None] = lambda: None) -> None:
        self._context, self._alone = context, alone
        self._ticks = 0

    def between_ticks(self) -> None:
        """Check the tables now and then, and compact those that are due.

        Raises:
            StateError: The state directory cannot be written.
        """
        self._ticks += 1
        if self._ticks % _TICKS_BETWEEN_CHECKS == 0:
            compact_when_due(self._context, alone=self._alone)


def compact(context: "Context", tables: Mapping[Path, int]) -> tuple[KeptTable, ...]:
    """Compact tables; one that cannot be compacted stops no other.

    Args:
        context: The services.
        tables: Up to which size the files of each are put together, in bytes.

    Raises:
        StateError: The state directory cannot be written.
    """
    keep_hours = context.settings.maintenance.keep_files_hours
    with _state_kept(context):
        kept = tuple(
            compact_table(table, keep_hours=keep_hours, target_bytes=target_bytes)
            for table, target_bytes in tables.items()
        )
    versions = _compacted_versions(context)
    for each, target_bytes in zip(kept, tables.values(), strict=True):
        names = {_newest_of(each.name), *([each.name] if target_bytes == TARGET_BYTES else [])}
        version = newest_version(context.store, each.name)
        # One that fails is tried again only after as many commits more.
        versions.update({} if version is None else dict.fromkeys(names, version))
    save(_file(context), versions)
    return kept


def compact_table(table: Path, *, keep_hours: int, target_bytes: int = TARGET_BYTES) -> KeptTable:
    """Write the rows of one table into fewer files; those that it replaces go after some hours."""
    from deltalake import DeltaTable

    before = after = 0
    removed: list[str] = []
    try:
        opened = DeltaTable(table)
        before = after = len(opened.file_uris())
        if before > 1:
            opened.optimize.compact(target_size=target_bytes)
        removed = _old_files(opened, table, keep_hours)
        if removed:
            opened.vacuum(keep_hours, dry_run=False, enforce_retention_duration=False)
        opened.update_incremental()
        opened.create_checkpoint()
        # What this stands for goes next, and later the replaced files.
        force_table(table)
        opened.cleanup_metadata()
        after = len(opened.file_uris())
    except Exception as error:
        reason = next(iter(str(error).strip().splitlines()), repr(error))
        log.warning("%s cannot be compacted: %s", table.name, reason)
        return KeptTable(
            name=table.name, files_before=before, files_after=after, removed=0, failure=reason
        )
    log.info("%s: %s files instead of %s", table.name, after, before)
    return KeptTable(name=table.name, files_before=before, files_after=after, removed=len(removed))


def _old_files(opened: "DeltaTable", table: Path, keep_hours: int) -> list[str]:
    """Name the files that can go; those that went before are named by the log for days still."""
    listed = opened.vacuum(keep_hours, dry_run=True, enforce_retention_duration=False)
    return [each for each in listed if (table / unquote(each)).exists()]


def schema_folder(context: "Context") -> Path:
    """Return the folder of the tables."""
    return context.home.warehouse / f"{context.schema}.db"


def newest_version(store: "Store", table: str) -> int | None:
    """Return the number of a table's newest commit."""
    fingerprint = store.fingerprint(table)
    return None if fingerprint is None else version_in(fingerprint)


def remove_old_files(home: Path, now: datetime, keep: timedelta, used: frozenset[str]) -> int:
    """Remove run payloads and the output of local runs; return how many files.

    Args:
        home: The state directory.
        now: The present instant.
        keep: How old a file must be.
        used: Names, without their end, of files that a run may still read.
    """
    removed = 0
    for path in (*home.glob("handed_over/*"), *home.glob("jobs-api/runs/*.log")):
        with suppress(OSError):
            is_old = now.timestamp() - path.stat().st_mtime > keep.total_seconds()
            if is_old and path.stem not in used:
                path.unlink()
                removed += 1
    return removed


def _keep(context: "Context") -> timedelta:
    return timedelta(hours=context.settings.maintenance.keep_files_hours)


def _used(context: "Context") -> frozenset[str]:
    """Name the files of runs that go on, or that may be retried."""
    from harness.store.queries import folded_through, last_decision, runs_now

    store = context.store
    compacted = folded_through(store, last_decision(context.home.status))
    runs = [
        run
        for run in runs_now(store, folded_through=compacted, only_relevant=True)
        if run.is_open or run.holds_job
    ]
    payload = {f"{run.intent_id}-{run.attempt}" for run in runs}
    return frozenset(payload | {str(run.run_id) for run in runs})


def _compact(context: "Context") -> bool:
    """Compact the ledgers' tails into the current state, unless that has just been done."""
    from harness.publish.publish import compact
    from harness.tick.checkpoint import load_from_models

    saved = load_state(context.home.state, context.store)
    if saved is not None and saved.folded_through >= saved.ended_tick_number:
        return False
    state = saved or load_from_models(context)
    if state.is_recovering or state.folded_through >= state.ended_tick_number:
        # A tick was killed: the next one finds out what it has left.
        return False
    through = state.ended_tick_number
    compact(context, state.folded_through, through)
    if saved is not None:
        compacted = replace(saved, folded_through=saved.ended_tick_number)
        save_state(context.home.state, compacted, context.store, confirm=context.lock.confirm)
    return True


@contextmanager
def _state_kept(context: "Context") -> "Iterator[None]":
    """Let what the last tick left count on: compacting changes files and no row."""
    state = load_state(context.home.state, context.store)
    try:
        yield
    finally:
        if state is not None:
            save_state(context.home.state, state, context.store, confirm=context.lock.confirm)


def _file(context: "Context") -> Path:
    return context.home.folder / "maintenance.json"


def _newest_of(table: str) -> str:
    return f"{table}: the newest rows"


def _compacted_versions(context: "Context") -> dict[str, int]:
    """Return the version at which each table, or the newest rows of it, were last compacted."""
    return load(_file(context), _versions_in) or {}


def _versions_in(content: Any) -> dict[str, int]:
    return {str(name): int(version) for name, version in content.items()}
