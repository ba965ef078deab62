"""Publishes after the firing: the public tables, the decisions that changed, the tick's own row.

Nothing that starts a job waits for this.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from harness.config.load import LOCAL_TARGET, Settings
from harness.decide import triggers
from harness.platform.files import unwritable
from harness.platform.json_file import load, save
from harness.settle.retry_policy import planned_retries
from harness.store.delta_commits import force_table
from harness.store.public_tables import PUBLIC_TABLES, PublicTable
from harness.store.rows import Blocker, DecisionRow, Ledger, Tick, TickRow, integer
from harness.store.state_dir import StateDir
from harness.store.work_lists import PlannedRetry, StateView

log = logging.getLogger(__name__)

#: After so many ticks with new data their ledger rows are compacted into the current-state tables.
COMPACT_AFTER_TICKS = 30
#: The reason of a job whose failed run starts again automatically.
BACKING_OFF = "backing_off"
#: The tables that they are compacted into; the selector `compact` names the same.
_COMPACTED = ("upstream_state", "run_state", "dependency_state", "event_partitions")


class Builds(Protocol):
    """The part of dbt that a step needs."""

    def build(self, selector: str, variables: Mapping[str, object] | None = None) -> None:
        """Build what a selector names."""
        ...


class Services(triggers.Services, Protocol):
    """What publishing needs of the services."""

    @property
    def dbt(self) -> Builds:
        """Builds models."""
        ...

    @property
    def settings(self) -> Settings:
        """The configuration."""
        ...

    @property
    def home(self) -> StateDir:
        """The state folder."""
        ...

    @property
    def target(self) -> str:
        """The output of ``profiles.yml``."""
        ...

    @property
    def schema(self) -> str:
        """The schema of every table."""
        ...

    def show(self, tables: Sequence[PublicTable]) -> None:
        """Bring public tables up to date with their models."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What the tick made public."""

    blockers: Mapping[int, tuple[Blocker, ...]]
    job_names: Mapping[int, str]
    changed: tuple[DecisionRow, ...]
    has_compacted: bool
    #: Ledger rows up to this tick are in the current-state tables.
    folded_through: int
    #: The failed runs that start again automatically.
    retries: tuple[PlannedRetry, ...] = ()
    #: A job waits for the next tick because this one has started as many as it may.
    is_limited: bool = False


def publish(
    services: Services,
    state: StateView,
    tick: Tick,
    counts: Mapping[str, int],
) -> Publication:
    """Publish, and return what became public.

    Raises:
        DecideError: dbt did not succeed in compacting; the next tick publishes again.
        StateError: A table cannot be read or written; the next tick publishes again.
    """
    began = time.perf_counter()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="publish") as pool:
        reading = pool.submit(copy_context().run, _blockers, services)
        services.show(PUBLIC_TABLES)
        names, blockers = reading.result()
        backs_off = any(each.blocker == BACKING_OFF for one in blockers.values() for each in one)
        retries = planned_retries(services.rows, state.runs) if backs_off else ()
    services.crash_point("after_publish")
    changed = _changed(read_status(services.home.status), names, blockers, tick)
    services.store.append(Ledger.DECISIONS, changed)
    # A tick that is killed may have its number used again: its own rows stay in the tail.
    through = tick.number - 1
    has_compacted = through - state.folded_through >= COMPACT_AFTER_TICKS
    if has_compacted:
        compact(services, state.folded_through, through, with_triggers=bool(state.triggers))
    folded_through = through if has_compacted else state.folded_through
    services.crash_point("before_end")
    row = TickRow(
        tick_number=tick.number,
        tick_id=tick.id,
        tick_at=tick.at,
        folded_through=folded_through,
        seconds=round(time.perf_counter() - began, 3),
        **counts,
    )
    services.store.append(Ledger.TICKS, [row])
    _write_status(services.home.status, tick, names, blockers)
    return Publication(
        blockers=blockers,
        job_names=names,
        changed=tuple(changed),
        has_compacted=has_compacted,
        folded_through=folded_through,
        retries=retries,
        is_limited=any(
            each.blocker == "over_start_limit" for found in blockers.values() for each in found
        ),
    )


def compact(
    services: Services, compacted_through: int, through: int, *, with_triggers: bool
) -> None:
    """Compact ledger rows up to a tick into the current-state tables, and update the views.

    Args:
        services: What publishing needs.
        compacted_through: The tick up to which the rows are compacted already.
        through: The tick up to which they are to be.
        with_triggers: The views of the triggers are there, and are to know, too.

    Raises:
        DecideError: dbt did not succeed; the views go on reading the ledgers' tail.
        StateError: The disk does not take the tables.
    """
    limit = services.settings.jobs.starts_per_tick
    variables = {
        "fold_after": compacted_through,
        "folded_through": through,
        "starts_per_tick": limit,
    }
    services.dbt.build("fold", variables)
    if with_triggers:
        services.dbt.build("trigger_views", variables)
    if services.target == LOCAL_TARGET:
        _make_lasting(services.home.warehouse / f"{services.schema}.db")


def _make_lasting(schema: Path) -> None:
    """Force the compacted tables to disk: earlier rows of the ledgers are no longer read."""
    for name in _COMPACTED:
        try:
            force_table(schema / name)
        except OSError as error:
            raise unwritable(schema / name, error) from error


def _blockers(services: Services) -> tuple[dict[int, str], dict[int, tuple[Blocker, ...]]]:
    names: dict[int, str] = {}
    blockers: dict[int, tuple[Blocker, ...]] = {}
    for row in services.rows("job_blockers"):
        job_id = integer(row["job_id"])
        since = row["since"]
        names[job_id] = str(row["job_name"])
        blocker = Blocker(
            blocker=str(row["blocker"]),
            reason=str(row["reason"]),
            waits_for=str(row["waits_for"]),
            since=since.astimezone(UTC) if isinstance(since, datetime) else None,
        )
        blockers[job_id] = (*blockers.get(job_id, ()), blocker)
    return names, blockers


def _changed(
    before: Mapping[int, tuple[str, ...]],
    names: Mapping[int, str],
    blockers: Mapping[int, tuple[Blocker, ...]],
    tick: Tick,
) -> list[DecisionRow]:
    """Return the jobs whose reasons differ from those that people could read so far."""
    now = {job_id: _reported(found) for job_id, found in blockers.items()}
    return [
        DecisionRow(
            tick_number=tick.number,
            recorded_at=tick.at,
            job_id=job_id,
            job_name=names.get(job_id, ""),
            blockers=blockers.get(job_id, ()),
        )
        for job_id in sorted({*before, *now})
        if before.get(job_id) != now.get(job_id)
    ]


def _reported(blockers: Iterable[Blocker]) -> tuple[str, ...]:
    return tuple(f"{each.blocker}: {each.reason}" for each in blockers)


def read_status(path: Path) -> Mapping[int, tuple[str, ...]]:
    """Read what was last made public about each job; nothing when there is no such file."""
    return load(path, _reasons_in) or {}


def _reasons_in(content: Any) -> Mapping[int, tuple[str, ...]]:
    return {
        int(job["job_id"]): tuple(f"{e['blocker']}: {e['reason']}" for e in job["blockers"])
        for job in content["jobs"]
    }


def _write_status(
    path: Path,
    tick: Tick,
    names: Mapping[int, str],
    blockers: Mapping[int, tuple[Blocker, ...]],
) -> None:
    content = {
        "tick_id": tick.id,
        "tick_number": tick.number,
        "tick_at": tick.at.isoformat(),
        "jobs": [
            {
                "job_id": str(job_id),
                "job_name": names[job_id],
                "blockers": [asdict(each) for each in found],
            }
            for job_id, found in blockers.items()
        ],
    }
    save(path, content, default=str)
