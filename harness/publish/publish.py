"""Publishes after the firing: the public tables, the decisions that changed, the ticks' own rows.

Reading the models and writing the public tables may run beside the next ticks, in threads of the
publisher. Ledgers, state directory and the compaction belong to the thread that ticks: it records
what a publication came to once that is done. Nothing that starts a job waits for any of this.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from harness.config.load import LOCAL_TARGET, Settings
from harness.controls.edits import PublishedTable
from harness.decide import triggers
from harness.platform.files import unwritable
from harness.platform.json_file import load, save
from harness.settle.retry_policy import planned_retries
from harness.store.delta_commits import force_table
from harness.store.public_tables import PUBLIC_TABLES, PublicTable
from harness.store.rows import Blocker, DecisionRow, Ledger, Run, Tick, TickRow, integer
from harness.store.state_dir import StateDir
from harness.store.work_lists import PlannedRetry, StateView

log = logging.getLogger(__name__)

#: After so many ticks with new data their ledger rows are compacted into the current-state tables
#: where they are many, and in a workspace, whose tables nothing here rewrites.
COMPACT_AFTER_TICKS = 30
#: After so many at the latest: their rows lie in few files meanwhile.
COMPACT_ALWAYS_AFTER_TICKS = 300
#: More than a decision should have to read each time.
_MANY_ROWS = 10_000
#: So many ticks wait for a pause in which they are published; after that they are without one.
_MOST_WAITING = 10
#: After so many publications in a row that were in vain the next one is waited for.
_MOST_IN_VAIN = 5
#: The reason of a job whose failed run starts again automatically.
BACKING_OFF = "backing_off"
OVER_START_LIMIT = "over_start_limit"
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
        """The state directory."""
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
    """What was made public."""

    #: The newest tick that is public now.
    tick: Tick
    blockers: Mapping[int, tuple[Blocker, ...]]
    job_names: Mapping[int, str]
    changed: tuple[DecisionRow, ...]
    has_compacted: bool
    #: Ledger rows up to this tick are in the current-state tables.
    folded_through: int
    #: The failed runs that start again automatically.
    retries: tuple[PlannedRetry, ...] = ()
    #: A job may start, and waits for the next tick: this one started as many as it may, by what
    #: was public when it decided.
    has_ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpublished:
    """A tick that has decided and is not public yet; it has no row of its own until it is."""

    tick: Tick
    #: What it did, under the names of ``ledger_ticks``.
    counts: Mapping[str, int]
    #: An earlier one was not public when it decided, so that the limit counted its starts, too.
    is_beside_others: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Why each job may not run now, as the models have it."""

    names: Mapping[int, str]
    blockers: Mapping[int, tuple[Blocker, ...]]
    retries: tuple[PlannedRetry, ...]
    #: A job may start in the next tick.
    has_ready: bool


@dataclass(slots=True, kw_only=True)
class _Pass:
    """A publication under way: what it publishes, and its parts."""

    ticks: tuple[Unpublished, ...]
    began: float
    reading: Future[Reasons]
    #: Names the contents of the control table afterwards.
    showing: Future[str | None]
    #: The tick up to which ledger rows are merged into the current state, where that is due.
    merging: Future[int | None] | None
    #: A later tick has recorded something while the reasons were read: they may be of its middle.
    is_disturbed: bool = False

    @property
    def parts(self) -> tuple[Future[Any], ...]:
        parts = self.reading, self.showing
        return parts if self.merging is None else (*parts, self.merging)

    def results(self) -> str | None:
        """Return what names the contents of the control table, once every part has succeeded."""
        for part in self.parts:
            part.result()
        return self.showing.result()


class Publisher:
    """Publishes ticks in their order, one publication at a time, each of all ticks that wait.

    Only ``launch`` hands something to other threads; all else is for the thread that ticks.

    Args:
        services: What publishing needs.
        published: The control table, in which edits of others are found.
        executor: Runs the parts of a publication.
    """

    def __init__(self, services: Services, published: PublishedTable, executor: Executor) -> None:
        self._services, self._published, self._executor = services, published, executor
        self._waiting: tuple[Unpublished, ...] = ()
        self._pass: _Pass | None = None
        #: How many publications in a row were disturbed.
        self._in_vain = 0
        #: What a disturbed publication has merged; the one that repeats it takes it over.
        self._merged: Future[int | None] | None = None
        self._thread = threading.get_ident()
        self._may_begin = threading.Event()
        self._may_begin.set()

    @property
    def is_at_work(self) -> bool:
        """True while a publication is under way or not recorded yet."""
        return self._pass is not None

    @property
    def is_behind(self) -> bool:
        """True while some tick is not public."""
        return bool(self._waiting)

    @property
    def is_pressed(self) -> bool:
        """True when so many ticks are not public that no pause is waited for."""
        return len(self._waiting) >= _MOST_WAITING

    @property
    def is_done(self) -> bool:
        """True when a publication has ended and is to be recorded."""
        return self._pass is not None and all(part.done() for part in self._pass.parts)

    @property
    def has_read(self) -> bool:
        """True unless a publication still reads the reasons."""
        return self._pass is None or self._pass.reading.done()

    def add(self, tick: Tick, counts: Mapping[str, int]) -> None:
        """Let a tick wait for its publication."""
        added = Unpublished(tick=tick, counts=counts, is_beside_others=self.is_behind)
        self._waiting = (*self._waiting, added)

    def disturb(self) -> None:
        """Note that rows were recorded while the reasons were read, so that they count for nothing.

        A job may have looked eligible whose start had merely not come yet.
        """
        if self._pass is not None:
            self._pass.is_disturbed = True

    def launch(self, state: StateView) -> None:
        """Begin to publish what waits, unless a publication is under way.

        After several in a row that were disturbed one is waited for until it has read, so that
        steady new data does not put the reasons off for ever.

        Args:
            state: The state of this process.
        """
        if self._pass is not None or not self._waiting:
            return
        services = self._services
        self._pass = _Pass(
            ticks=self._waiting,
            began=time.perf_counter(),
            reading=self._submit(_reasons, services, state.runs, self._waiting),
            showing=self._submit(self._show),
            merging=self._merged or self._merging(state.folded_through),
        )
        if self._in_vain >= _MOST_IN_VAIN:
            self._pass.reading.exception()

    def _merging(self, folded_through: int) -> Future[int | None] | None:
        # A tick that is killed may have its number used again: the rows of those without a row of
        # their own stay in the tail.
        through = self._waiting[0].tick.number - 1
        if through - folded_through < COMPACT_AFTER_TICKS:
            return None

        def merge() -> int | None:
            if not _is_due(self._services, folded_through, through):
                return None
            _merge(self._services, folded_through, through)
            return through

        return self._submit(merge)

    def _submit(self, part: Callable[..., Any], *arguments: object) -> Future[Any]:
        # The log names the tick in threads, too.
        return self._executor.submit(copy_context().run, self._begun, part, *arguments)

    def _begun(self, part: Callable[..., Any], *arguments: object) -> Any:
        if threading.get_ident() != self._thread:
            self._may_begin.wait()
        return part(*arguments)

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Let no part begin, which would take the processor from a decision; one goes on."""
        self._may_begin.clear()
        try:
            yield
        finally:
            self._may_begin.set()

    def _show(self) -> str | None:
        self._services.crash_point("within_publish")
        self._services.show(PUBLIC_TABLES)
        return self._published.fingerprint()

    def wait(self) -> None:
        """Wait until the publication under way has ended, however it did."""
        self._may_begin.set()
        for part in self._pass.parts if self._pass is not None else ():
            part.exception()

    def record(self, state: StateView) -> Publication | None:
        """Record a publication that has ended; nothing where it was disturbed and is repeated.

        Raises:
            DecideError: dbt did not succeed in compacting; the next tick publishes again.
            StateError: A table cannot be read or written; the next tick publishes again.
        """
        ended, self._pass = self._pass, None
        assert ended is not None
        shown = ended.results()
        self._in_vain = self._in_vain + 1 if ended.is_disturbed else 0
        self._merged = ended.merging if ended.is_disturbed else None
        publication = None
        if not ended.is_disturbed:
            publication = _record(self._services, state, ended)
            self._waiting = self._waiting[len(ended.ticks) :]
        self._published.note(shown)
        return publication

    def abandon(self) -> None:
        """Drop every tick that waits, once no part is at work any more."""
        ended, self._pass = self._pass, None
        self._waiting, self._in_vain, self._merged = (), 0, None
        for part in [part for part in ended.parts if not part.cancel()] if ended else ():
            part.exception()

    def close(self) -> None:
        """End the threads, after what is at work in them."""
        self.abandon()
        self._executor.shutdown()


def _record(services: Services, state: StateView, ended: _Pass) -> Publication:
    seconds = round(time.perf_counter() - ended.began, 3)
    services.crash_point("after_publish")
    newest, reasons = ended.ticks[-1].tick, ended.reading.result()
    names, blockers = reasons.names, reasons.blockers
    changed = _changed(read_status(services.home.status), names, blockers, newest)
    services.store.append(Ledger.DECISIONS, changed)
    merged_through = None if ended.merging is None else ended.merging.result()
    if merged_through is not None:
        _shorten_tail(services, merged_through)
    folded_through = state.folded_through if merged_through is None else merged_through
    services.crash_point("before_end")
    rows = [
        TickRow(
            tick_number=each.tick.number,
            tick_id=each.tick.id,
            tick_at=each.tick.at,
            folded_through=folded_through,
            seconds=seconds,
            **each.counts,
        )
        for each in ended.ticks
    ]
    services.store.append(Ledger.TICKS, rows)
    _write_status(services.home.status, newest, names, blockers)
    return Publication(
        tick=newest,
        blockers=blockers,
        job_names=names,
        changed=tuple(changed),
        has_compacted=merged_through is not None,
        folded_through=folded_through,
        retries=reasons.retries,
        has_ready=reasons.has_ready,
    )


def compact(services: Services, compacted_through: int, through: int) -> None:
    """Compact ledger rows up to a tick into the current-state tables, which shortens the tail.

    Args:
        services: What publishing needs.
        compacted_through: The tick up to which the rows are compacted already.
        through: The tick up to which they are to be.

    Raises:
        DecideError: dbt did not succeed; the views go on reading the ledgers' tail.
        StateError: The disk does not take the tables.
    """
    _merge(services, compacted_through, through)
    _shorten_tail(services, through)


def _is_due(services: Services, compacted_through: int, through: int) -> bool:
    if services.target != LOCAL_TARGET or through - compacted_through >= COMPACT_ALWAYS_AFTER_TICKS:
        return True
    tail, column = [("tick_number", ">", compacted_through)], ("tick_number",)
    read = services.store.read
    ledgers = (Ledger.EVENTS, Ledger.PROBES, Ledger.RUNS)
    return sum(len(read(each, where=tail, columns=column)) for each in ledgers) >= _MANY_ROWS


def _merge(services: Services, compacted_through: int, through: int) -> None:
    """Compact ledger rows into the current-state tables; the views read them in the tail, too."""
    services.dbt.build("fold", {"fold_after": compacted_through, "folded_through": through})
    if services.target == LOCAL_TARGET:
        _make_lasting(services.home.warehouse / f"{services.schema}.db")


def _shorten_tail(services: Services, through: int) -> None:
    """Let the views read the tail from a later tick on; no other thread may read them meanwhile."""
    services.dbt.build("tail", {"folded_through": through})


def _make_lasting(schema: Path) -> None:
    """Force the compacted tables to disk: earlier rows of the ledgers are no longer read."""
    for name in _COMPACTED:
        try:
            force_table(schema / name)
        except OSError as error:
            raise unwritable(schema / name, error) from error


def _reasons(services: Services, runs: Sequence[Run], ticks: Sequence[Unpublished]) -> Reasons:
    names, blockers = _blockers(services)
    found = {each.blocker for one in blockers.values() for each in one}
    retries = planned_retries(services.rows, runs) if BACKING_OFF in found else ()
    has_ready = OVER_START_LIMIT in found
    if not has_ready and any(each.is_beside_others for each in ticks):
        # The starts of the others count no longer where these have become public meanwhile.
        has_ready = bool(services.rows("trigger_set"))
    return Reasons(names=names, blockers=blockers, retries=retries, has_ready=has_ready)


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
