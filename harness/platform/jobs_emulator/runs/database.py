"""Keeps the jobs, runs and tokens of the local Jobs API, in memory or in a lasting file."""

import json
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from harness.platform.jobs_emulator.runs.states import Phase

_VERSION = 1
#: The column ``script`` is unused; the files of earlier versions have it, and it is not null.
_SCHEMA = """
create table if not exists facts (name text primary key, value text not null);
create table if not exists jobs (
    job_id integer primary key, settings text not null, created_ms integer not null
);
create table if not exists runs (
    seq integer primary key autoincrement, run_id integer not null unique, job_id integer not null,
    token text, phase text not null, is_over integer not null, waits integer not null,
    parameters text not null, script text not null, created_ms integer not null,
    began_ms integer, ended_ms integer, pid integer, born text
);
create index if not exists runs_going_on on runs (is_over) where is_over = 0;
create index if not exists runs_of_job on runs (job_id, seq);
create table if not exists tokens (
    job_id integer not null, token text not null, run_id integer not null, digest text not null,
    used_ms integer not null, primary key (job_id, token)
);
create table if not exists repairs (
    seq integer primary key autoincrement, repair_id integer not null, run_id integer not null
);
"""
_RUN_COLUMNS = (
    *("seq", "run_id", "job_id", "token", "phase", "parameters"),
    *("created_ms", "began_ms", "ended_ms", "pid", "born"),
)
#: Past what a double can hold exactly, so that a client that makes a float of an id is detected.
_SMALLEST_ID = 2**53
_LARGEST_ID = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job as it was registered."""

    job_id: int
    settings: Mapping[str, object]
    created_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run; ``seq`` orders the runs, for their ids do not."""

    run_id: int
    job_id: int
    token: str | None
    phase: Phase
    created_ms: int
    seq: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)
    began_ms: int | None = None
    ended_ms: int | None = None
    pid: int | None = None
    #: Distinguishes the process from a later one that got the same number.
    born: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """What an idempotency token stands for."""

    run_id: int
    digest: str
    used_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list; ``before`` is the ``seq`` at which the last page ended."""

    job_id: int | None = None
    is_over: bool | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    before: int | None = None


class Store:
    """A SQLite database under a lock that the caller holds.

    Args:
        path: The file; in memory when not given.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._connection = sqlite3.connect(
            str(path) if path else ":memory:", isolation_level=None, check_same_thread=False
        )
        if path is not None:
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = full")
        self._settle_version()
        self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _settle_version(self) -> None:
        (found,) = self._connection.execute("pragma user_version").fetchone()
        if found not in (0, _VERSION):
            message = f"the file is of version {found}, this program reads version {_VERSION}"
            raise sqlite3.DatabaseError(message)
        self._connection.execute(f"pragma user_version = {_VERSION}")

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Make everything inside durable together, or not at all."""
        self._connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    def fact(self, name: str, default: str) -> str:
        """Return a lasting fact about this API, and settle it at first observation."""
        self._connection.execute("insert or ignore into facts values (?, ?)", (name, default))
        found = self._connection.execute("select value from facts where name = ?", (name,))
        return str(found.fetchone()[0])

    def new_id(self) -> int:
        """Return an id that was never given out: large, odd and in no order."""
        while True:
            candidate = _SMALLEST_ID + secrets.randbelow(_LARGEST_ID - _SMALLEST_ID) | 1
            if self.job(candidate) is None and self.run(candidate) is None:
                return candidate

    def put_job(self, job: JobRow) -> None:
        """Add a job, or replace its settings."""
        self._connection.execute(
            "insert into jobs values (?, ?, ?)"
            " on conflict (job_id) do update set settings = excluded.settings",
            (job.job_id, json.dumps(job.settings), job.created_ms),
        )

    def delete_job(self, job_id: int) -> None:
        """Forget a job; its runs stay."""
        self._connection.execute("delete from jobs where job_id = ?", (job_id,))

    def job(self, job_id: int) -> JobRow | None:
        """Return one job."""
        return next(self._jobs("where job_id = ?", (job_id,)), None)

    def jobs(self) -> Iterator[JobRow]:
        """Return all jobs, newest first."""
        return self._jobs("order by created_ms desc, job_id", ())

    def _jobs(self, where: str, values: tuple[object, ...]) -> Iterator[JobRow]:
        statement = f"select job_id, settings, created_ms from jobs {where}"
        for job_id, settings, created_ms in self._connection.execute(statement, values).fetchall():
            yield JobRow(job_id=job_id, settings=json.loads(settings), created_ms=created_ms)

    def add_run(self, run: RunRow) -> RunRow:
        """Add a run and return it with its place in the order."""
        cursor = self._connection.execute(
            "insert into runs (run_id, job_id, token, phase, is_over, waits, parameters, script,"
            " created_ms, began_ms, ended_ms) values (?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?)",
            (
                run.run_id,
                run.job_id,
                run.token,
                json.dumps(asdict(run.phase)),
                run.phase.is_over,
                run.phase.waits,
                json.dumps(run.parameters),
                run.created_ms,
                run.began_ms,
                run.ended_ms,
            ),
        )
        return replace(run, seq=cursor.lastrowid or 0)

    def save_run(self, run: RunRow) -> None:
        """Write what may change of a run."""
        self._connection.execute(
            "update runs set phase = ?, is_over = ?, waits = ?,"
            " began_ms = ?, ended_ms = ?, pid = ?, born = ? where run_id = ?",
            (
                json.dumps(asdict(run.phase)),
                run.phase.is_over,
                run.phase.waits,
                run.began_ms,
                run.ended_ms,
                run.pid,
                run.born,
                run.run_id,
            ),
        )

    def delete_run(self, run_id: int) -> None:
        """Forget a run; its token stays taken."""
        self._connection.execute("delete from runs where run_id = ?", (run_id,))

    def forget_runs(self, *, before_ms: int) -> list[int]:
        """Forget the runs that ended before an instant, with their tokens and repairs.

        Returns:
            The ids of the runs.
        """
        old = "select run_id from runs where is_over = 1 and coalesce(ended_ms, created_ms) < ?"
        found = [int(each) for (each,) in self._connection.execute(old, (before_ms,)).fetchall()]
        with self.one_commit():
            for table in ("tokens", "repairs", "runs"):
                self._connection.execute(
                    f"delete from {table} where run_id in ({old})", (before_ms,)
                )
        return found

    def run(self, run_id: int) -> RunRow | None:
        """Return one run."""
        return next(self._runs("where run_id = ?", (run_id,)), None)

    def runs_going_on(self, job_id: int | None = None) -> list[RunRow]:
        """Return the runs that are not over, oldest first."""
        if job_id is None:
            return list(self._runs("where is_over = 0 order by seq", ()))
        return list(self._runs("where is_over = 0 and job_id = ? order by seq", (job_id,)))

    def runs_waiting(self) -> list[RunRow]:
        """Return the runs in the queue, oldest first."""
        return list(self._runs("where is_over = 0 and waits = 1 order by seq", ()))

    def count_going_on(self, job_id: int | None = None, *, waiting_too: bool = True) -> int:
        """Count the runs that are not over, of a job or of all."""
        found = self._connection.execute(
            "select count(*) from runs where is_over = 0"
            " and (? is null or job_id = ?) and (? or waits = 0)",
            (job_id, job_id, waiting_too),
        )
        return int(found.fetchone()[0])

    def runs(self, wanted: RunFilter, limit: int) -> list[RunRow]:
        """Return the newest runs that a filter admits."""
        conditions = {
            "job_id = ?": wanted.job_id,
            "is_over = ?": wanted.is_over,
            "created_ms >= ?": wanted.from_ms,
            "created_ms <= ?": wanted.to_ms,
            "seq < ?": wanted.before,
        }
        requested = {text: value for text, value in conditions.items() if value is not None}
        where = f"where {' and '.join(requested)}" if requested else ""
        return list(self._runs(f"{where} order by seq desc limit ?", (*requested.values(), limit)))

    def _runs(self, where: str, values: tuple[object, ...]) -> Iterator[RunRow]:
        statement = f"select {', '.join(_RUN_COLUMNS)} from runs {where}"
        for row in self._connection.execute(statement, values).fetchall():
            named = dict(zip(_RUN_COLUMNS, row, strict=True))
            named["phase"] = Phase(**json.loads(named["phase"]))
            named["parameters"] = json.loads(named["parameters"])
            yield RunRow(**named)

    def add_repair(self, run_id: int) -> int:
        """Record a repair of a run and return its id."""
        repair_id = self.new_id()
        values = (repair_id, run_id)
        self._connection.execute("insert into repairs (repair_id, run_id) values (?, ?)", values)
        return repair_id

    def repairs(self, run_id: int) -> list[int]:
        """Return the ids of a run's repairs, oldest first."""
        found = "select repair_id from repairs where run_id = ? order by seq"
        return [int(each) for (each,) in self._connection.execute(found, (run_id,)).fetchall()]

    def put_token(self, job_id: int, token: str, row: TokenRow) -> None:
        """Record what a token stands for."""
        self._connection.execute(
            "insert or replace into tokens values (?, ?, ?, ?, ?)",
            (job_id, token, row.run_id, row.digest, row.used_ms),
        )

    def token(self, job_id: int, token: str) -> TokenRow | None:
        """Return what a token stands for."""
        found = self._connection.execute(
            "select run_id, digest, used_ms from tokens where job_id = ? and token = ?",
            (job_id, token),
        ).fetchone()
        return TokenRow(run_id=found[0], digest=found[1], used_ms=found[2]) if found else None
