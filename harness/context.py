"""Wires everything together, once: each service is made when it is first needed.

A test replaces one service by setting the attribute. Nothing that needs a JVM, dbt or the network
is made before a step needs it: a tick that finds nothing never gets there.
"""

import logging
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING

from harness.config.load import HOME_VARIABLE, LOCAL_TARGET, Settings, catalog_of, target_of
from harness.config.model import EngineMode, JobsTarget, SendParameters
from harness.config.project import PACKAGE, dbt_project_of
from harness.config.workspace_secrets import secrets_for
from harness.controls.load import every_job_name
from harness.errors import ConfigurationError, StateError
from harness.fire.parameters import DeclaredParameters
from harness.fire.submit import Firing
from harness.platform.clock import Clock, RealClock
from harness.platform.databricks.api import JobsApi
from harness.platform.databricks.rate_limit import TokenBucket
from harness.platform.dbt import PARSED, Dbt
from harness.platform.files import make_private, write_atomically
from harness.platform.spark.metastore import require_free
from harness.platform.sql.port import Row, Sql, SqlError, read_together
from harness.platform.sql.session import SessionSql
from harness.platform.sql.warehouse import WarehousePlace, WarehouseSql
from harness.platform.sql_names import SchemaName
from harness.platform.stopping import Stop
from harness.sense.pool import ProbePool
from harness.sense.probe import QueryBounds
from harness.store.catalog import CatalogStore
from harness.store.catalog_files import CatalogFiles
from harness.store.catalog_inbox import CatalogInbox
from harness.store.inbox import FolderInbox, Inbox
from harness.store.local import LocalStore
from harness.store.public_tables import PublicTable, wanted_rows
from harness.store.queries import LastDecision, LockHolder, holder_of, last_tick_at
from harness.store.rows import Question, Store
from harness.store.state_dir import StateDir
from harness.store.views import Views, unreadable
from harness.store.writer.fencing import FencedStore
from harness.store.writer.lease import Lease, LeaseRow
from harness.store.writer.lease_table import CatalogLeaseTable
from harness.store.writer.lock import ProcessLock, WriterLock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harness.platform.jobs_emulator.runs.job_settings import JobDefinition
    from harness.platform.jobs_emulator.server import Endpoint
    from harness.platform.spark.engine import GivenServer, LocalEngine, Wanted

log = logging.getLogger(__name__)
#: Names the point at which a test crashes this process.
CRASH_VARIABLE = "HEARTBEAT_CRASH_AT"

_LOCAL_REQUESTS_PER_SECOND = 500.0
#: The commands that tick.
_TICKING = frozenset({"tick", "run"})


def wanted_engine(settings: Settings, *, is_resident: bool = False) -> "Wanted":
    """Return the engine that a command of the local target requires.

    Args:
        settings: The configuration.
        is_resident: The process ticks for hours.

    Raises:
        ConfigurationError: ``profiles.yml`` cannot be read.
    """
    from harness.platform.spark.engine import Wanted
    from harness.platform.spark.session import engine_settings

    keys, project = settings.engine, settings.project
    is_inline = keys.mode is EngineMode.INLINE
    return Wanted(
        project=project,
        settings=engine_settings(project, settings.home),
        to_start=engine_settings(project, settings.home, is_resident=is_resident),
        idle_seconds=None if is_inline else 60 * keys.idle_minutes,
    )


def _require_own(scratch: Path, environment: Mapping[str, str]) -> None:
    """Refuse a temporary folder that another user of this machine has put there first.

    Raises:
        StateError: It is not this user's.
    """
    if not environment.get(HOME_VARIABLE) and scratch.lstat().st_uid != os.getuid():
        raise StateError(
            f"The temporary folder {scratch} belongs to another user of this machine: set"
            f" {HOME_VARIABLE} to a folder of your own"
        )


def warehouse_of(environment: Mapping[str, str]) -> WarehouseSql | None:
    """Return the SQL warehouse that is named, if one is."""
    path = environment.get("DATABRICKS_HTTP_PATH")
    if not path:
        return None
    return WarehouseSql(WarehousePlace(http_path=path, catalog=catalog_of(environment)))


def sql_of_workspace(
    environment: Mapping[str, str], session: "Callable[[], SparkSession]"
) -> SessionSql | WarehouseSql:
    """Return what runs statements in a workspace: a session where there is one, else a warehouse.

    Args:
        environment: The variables of the process.
        session: Returns the session; without a warehouse it raises what is missing.
    """
    from harness.platform.spark.session import has_workspace_session

    if has_workspace_session(environment):
        return SessionSql(session)
    return warehouse_of(environment) or SessionSql(session)


@contextmanager
def inbox_of_workspace(environment: Mapping[str, str], clock: Clock) -> Iterator[CatalogInbox]:
    """Give the inbox for leaving messages alone: neither a project nor a state directory is needed.

    A session of a warehouse ends with it; a Spark session is not ours to end.

    Raises:
        ConfigurationError: No catalog is configured.
    """
    from harness.platform.spark.session import workspace_session

    schema = SchemaName(environment.get("HEARTBEAT_SCHEMA", "heartbeat"), catalog_of(environment))
    sql = sql_of_workspace(environment, lambda: workspace_session(environment))
    try:
        yield CatalogInbox(sql, schema, lambda: Path(os.devnull), clock)
    finally:
        if isinstance(sql, WarehouseSql):
            sql.close()


class Context:
    """Every service of one process.

    Args:
        settings: The configuration.
        environment: The variables of the process; dbt and Spark get HEARTBEAT_HOME through them.
        clock: The one clock.
    """

    def __init__(
        self, settings: Settings, environment: Mapping[str, str], clock: Clock | None = None
    ) -> None:
        self.settings = settings
        self.environment = environment
        self.clock = clock or RealClock()
        #: What admits one writer; nothing is held until a command takes it.
        self.lock: WriterLock = ProcessLock(settings.home, command="")
        #: Whether the process is to end, and what it is doing now.
        self.stop = Stop()
        #: The process ticks for hours.
        self.is_resident = False
        #: Ticks are published while the next ones go on.
        self.publishes_aside = False
        self._scratch: TemporaryDirectory[str] | None = None
        self._engine: LocalEngine | GivenServer | None = None
        #: The sessions beside dbt's, by what they are for.
        self._sessions: dict[str, SparkSession] = {}
        self._opening = Lock()
        self._endpoint: Endpoint | None = None

    @property
    def target(self) -> str:
        """The output of ``profiles.yml``: ``local`` or ``databricks``."""
        return target_of(self.environment)

    @cached_property
    def home(self) -> StateDir:
        """The state directory; in a workspace a copy of what lasts, which a reader has for itself.

        Raises:
            StateError: The workspace's table cannot be read.
        """
        if self.files is None:
            return StateDir(folder=self.settings.home)
        self._scratch = TemporaryDirectory(prefix="heartbeat-")
        home = StateDir(folder=Path(self._scratch.name))
        self.files.restore(home, self.files.read())
        return home

    @cached_property
    def files(self) -> CatalogFiles | None:
        """Where a workspace keeps the files of the state directory; nothing on the local target."""
        if self.target == LOCAL_TARGET:
            return None
        return CatalogFiles(self.sql, self.schema_name, self.clock)

    def read_state(
        self, lease: CatalogLeaseTable, watched: Sequence[str]
    ) -> dict[str, list[Row]] | None:
        """Read by one statement what a tick in a workspace begins with; nothing before ``init``.

        Args:
            lease: The row that admits one writer.
            watched: The tables whose contents will be read next.

        Raises:
            StateError: The tables cannot be read.
        """
        assert self.files is not None
        queries = {
            "lease": lease.query,
            "files": self.files.query,
            "messages": self._catalog_inbox.query,
            "contents": self._tables.contents_query(watched),
        }
        try:
            return read_together(self.sql, queries)
        except SqlError as error:
            if error.is_not_there:
                return None
            raise

    def use_own_state(self, found: Mapping[str, list[Row]] | None = None) -> None:
        """Work in the configured folder, as the one writer; in a workspace bring it up to date.

        Args:
            found: What was read already, and has not changed since.

        Raises:
            StateError: The workspace's tables cannot be read, or the folder not be written.
        """
        self.home = StateDir(folder=self.settings.home)
        if self.files is None:
            return
        make_private(self.home.folder)
        _require_own(self.home.folder, self.environment)
        if found is None:
            self.files.restore(self.home, self.files.read())
            return
        self.files.restore(self.home, found["files"])
        self._catalog_inbox.hold(found["messages"])
        self._tables.hold(found["contents"])

    def keep_state(self) -> None:
        """Write what has changed in the state directory to where it lasts.

        Raises:
            StateError: The workspace's table cannot be written.
        """
        epoch = self.lock.epoch if isinstance(self.lock, Lease) else None
        if self.files is not None and epoch is not None:
            self.files.save(self.home, epoch=epoch)

    @cached_property
    def inbox(self) -> Inbox:
        """Where other processes leave messages for the next tick."""
        return FolderInbox(self.home.inbox) if self.files is None else self._catalog_inbox

    @cached_property
    def _catalog_inbox(self) -> CatalogInbox:
        return CatalogInbox(self.sql, self.schema_name, lambda: self.home.inbox, self.clock)

    def holder(self) -> LockHolder | None:
        """Return the process that is at work as the one writer, if any is."""
        if self.files is None:
            return holder_of(self.home.folder)
        row = self._lease_row
        if row is None or not row.is_held or self.clock.now() >= row.expires_at:
            return None
        return LockHolder(pid=row.pid, command=row.command, since=row.since)

    def last_tick_at(self, decision: LastDecision | None) -> datetime | None:
        """Return an instant before which everything is recorded, the newest that is known.

        It is when the last tick began that came to its end; of `run` in a workspace, the last one
        before its lease was renewed.
        """
        if self.files is None:
            return last_tick_at(self.home.folder, decision)
        signs = [decision.tick_at] if decision else []
        if (row := self._lease_row) is not None:
            # What this holder finds has an instant within its lease: what is older is recorded.
            signs += [row.since] if row.command in _TICKING else []
            signs += [row.ticked_at] if row.ticked_at else []
        return max(signs, default=None)

    @cached_property
    def _lease_row(self) -> LeaseRow | None:
        return CatalogLeaseTable(self.sql, self.schema_name).read()

    @property
    def schema_name(self) -> SchemaName:
        """The schema of every table as ``profiles.yml`` has it, in a workspace with its catalog."""
        schema = self.environment.get("HEARTBEAT_SCHEMA", "heartbeat")
        return SchemaName(schema, catalog_of(self.environment))

    @property
    def schema(self) -> str:
        """The same as text for people; part of idempotency tokens too, so it may never change."""
        return str(self.schema_name)

    @cached_property
    def sql(self) -> Sql:
        """What runs statements: the session of the engine or the cluster, else a SQL warehouse.

        Reading needs no Spark where a warehouse is named and the process is on no cluster.
        """
        if self.target == LOCAL_TARGET or "session" in vars(self):
            return SessionSql(lambda: self.session)
        return sql_of_workspace(self.environment, lambda: self.session)

    @cached_property
    def store(self) -> Store:
        """The ledgers; on the local target without a JVM."""
        if self.target == LOCAL_TARGET:
            return LocalStore(self.home.warehouse, self.schema)
        tables = self._tables
        return FencedStore(tables, self.lock) if isinstance(self.lock, Lease) else tables

    @cached_property
    def _tables(self) -> CatalogStore:
        return CatalogStore(self.sql, self.schema_name)

    def tables_of(self, schema: str) -> Store:
        """Return the tables of another schema, for reading.

        Args:
            schema: Its name, in a workspace with its catalog or in that of every table.
        """
        if self.target == LOCAL_TARGET:
            return LocalStore(self.home.warehouse, schema)
        catalog, _, name = schema.rpartition(".")
        return CatalogStore(self.sql, SchemaName(name, catalog or catalog_of(self.environment)))

    def expect(self, questions: Sequence[Question]) -> None:
        """Read what the store is queried for next, where each query costs a round trip."""
        if self.target != LOCAL_TARGET:
            self._tables.expect(questions)

    @cached_property
    def session(self) -> "SparkSession":
        """The Spark session of dbt and of what writes; on the local target others are beside it."""
        from harness.platform.spark.session import prepare_session, workspace_session

        os.environ["HEARTBEAT_HOME"] = str(self.settings.home)
        if self.target != LOCAL_TARGET:
            if isinstance(self.sql, WarehouseSql):
                raise ConfigurationError(
                    f"This command needs a Spark session for the tables of {self.schema}, and"
                    " DATABRICKS_HTTP_PATH names a SQL warehouse, which cannot append to them: run"
                    " it as a job of the workspace, or install databricks-connect and set"
                    " DATABRICKS_SERVERLESS_COMPUTE_ID to auto; the commands that read work through"
                    " the warehouse"
                )
            # Compute of a workspace brings its own session, with settings of its own.
            found = workspace_session(self.environment)
            prepare_session(found, self.environment)
            return found
        make_private(self.home.folder)
        before, begin = self.stop.activity.words, self.stop.activity.begin
        log.info("starting Spark")
        begin("starting Spark")
        session = self._local_session()
        self.stop.check()
        begin(before)
        return session

    def _local_session(self) -> "SparkSession":
        from harness.platform.spark.engine import REMOTE, GivenServer, LocalEngine
        from harness.platform.spark.java import find_java, require_pyspark, use_java

        require_pyspark()
        if given := self.environment.get(REMOTE):
            self._engine = GivenServer(given)
            return self._engine.session()
        home = self.home.folder
        use_java(find_java(self.environment), os.environ)
        self._engine = LocalEngine(
            home,
            wanted_engine(self.settings, is_resident=self.is_resident),
            before_start=lambda: require_free(self.home.metastore, self.clock),
            clock=self.clock,
        )
        return self._engine.session()

    def leave_engine(self) -> None:
        """Drop a session of the engine: it may have died, and the next use opens another."""
        if self._engine is None:
            return
        from harness.platform.spark.engine import forget_session

        vars(self).pop("session", None)
        sessions, self._sessions = self._sessions, {}
        for each in sessions.values():
            forget_session(each)
        self._engine.leave()

    @cached_property
    def dbt(self) -> Dbt:
        """dbt, in this process."""
        dbt = Dbt(
            dbt_project_of(self.settings.project),
            self.home.folder,
            target=self.target,
            before=self._before_dbt,
            before_views=self.keep_state,
        )
        dbt.activity = self.stop.activity
        dbt.accepted = self.home.accepted
        if self.target == LOCAL_TARGET:
            # Two at a time would gain little on one machine, and take the processor from decisions.
            dbt.threads_beside_ticks = 1
            dbt.parsed = Path(sys.prefix) / PARSED
        # What the package brings will do where a deployment has no profile of its own.
        has_own = (self.settings.project / "profiles.yml").is_file()
        dbt.profiles = self.settings.project if has_own else PACKAGE
        if self.target != LOCAL_TARGET:
            from harness.platform.databricks.workspace import login_for_dbt

            dbt.login = lambda: login_for_dbt(self.environment)
        return dbt

    def dbt_of_docs(self, project: Path, home: Path) -> Dbt:
        """Return dbt for a copy of the project that is only documented; needs no lock."""

        def before() -> None:
            if self.target == LOCAL_TARGET:
                _ = self.session

        dbt = Dbt(project, home, target=self.target, before=before)
        dbt.activity, dbt.login = self.stop.activity, self.dbt.login
        dbt.profiles, dbt.parsed = self.dbt.profiles, self.dbt.parsed
        return dbt

    def dbt_of(self, project: Path) -> Dbt:
        """Return dbt for a project of another user, with its own profile and its own session."""
        return Dbt(project, project, target=None, before=self._find_java)

    def _find_java(self) -> None:
        from harness.platform.spark.java import find_java, use_java

        if self.target == LOCAL_TARGET:
            use_java(find_java(self.environment), os.environ)

    def _before_dbt(self) -> None:
        # What dbt writes carries no fencing token.
        self.lock.confirm()
        if self.target != LOCAL_TARGET:
            self._tables.forget()
        _ = self.session

    @cached_property
    def _views(self) -> Views:
        is_local = self.target == LOCAL_TARGET
        quick = SessionSql(self._session_to_read) if is_local else None
        return Views(self.sql, self.schema_name, quick=quick)

    def _session_to_read(self) -> "SparkSession":
        from harness.platform.spark.engine import THROUGH_KERNEL

        return self._session_for("models", THROUGH_KERNEL)

    def _session_to_probe(self) -> "SparkSession":
        """Return the session of operators' queries, which mean the same before dbt and after it.

        dbt's adapter turns ANSI mode off in its session, where it is on in every other one and in a
        workspace.
        """
        if self.target != LOCAL_TARGET:
            return self.session
        return self._session_for("probes", {})

    def _session_for(self, purpose: str, settings: Mapping[str, str]) -> "SparkSession":
        from harness.platform.spark.engine import session_beside

        with self._opening:
            if purpose not in self._sessions:
                self._sessions[purpose] = session_beside(self.session, settings)
            return self._sessions[purpose]

    def rows(self, relation: str) -> list[dict[str, object]]:
        """Read every row of a model."""
        return self._views.rows(relation)

    def show(self, tables: Sequence[PublicTable]) -> None:
        """Bring public tables up to date with their models.

        Raises:
            LockedError: Another process has taken over.
            StateError: The model cannot be read, or the table cannot be written.
        """
        # The commits carry no fencing token.
        self.lock.confirm()
        if self.target == LOCAL_TARGET:
            local = LocalStore(self.home.warehouse, self.schema)
            rows = wanted_rows(tables, self.rows)
            for table in tables:
                local.replace(table, rows[table.name])
            return
        with ThreadPoolExecutor(thread_name_prefix="show") as pool:
            merged = [pool.submit(copy_context().run, self._tables.merge, each) for each in tables]
            for each in merged:
                each.result()

    def publishing(self) -> Executor:
        """Return what publishes: beside other work one thing at a time, else as fast as it goes."""
        workers = 1 if self.publishes_aside else 2
        return ThreadPoolExecutor(max_workers=workers, thread_name_prefix="publish")

    def fill(self, table: str, model: str) -> None:
        """Give a table the rows of a model that has its columns, in this order, and no others.

        Raises:
            LockedError: Another process has taken over.
            StateError: The model cannot be read, or the table cannot be written.
        """
        self.lock.confirm()
        if self.target == LOCAL_TARGET:
            LocalStore(self.home.warehouse, self.schema).fill(table, self.rows(model))
            return
        names = self.schema_name.table(table), self.schema_name.table(model)
        try:
            self.sql.run("insert overwrite {} select * from {}".format(*names))
        except SqlError as error:
            raise unreadable(f"{self.schema}.{table}", error) from error

    @cached_property
    def probe_pool(self) -> ProbePool:
        """Probes upstreams, side by side."""
        from harness.sense.registry import ProbeServices, known_sources
        from harness.sense.schedule import probe_limits

        sensing, connections = self.settings.sensing, self.settings.connections
        limits = probe_limits(sensing, connections)
        services = ProbeServices(
            session=self._session_to_probe,
            trigger_files_root=str(self.settings.trigger_root),
            catalog=catalog_of(self.environment),
            connections=connections,
            secrets=secrets_for(self.settings, self.environment),
            queries=QueryBounds(
                may_read=frozenset(sensing.queries_may_read),
                seconds=max([sensing.look_timeout_seconds, *limits.values()]),
            ),
        )
        return ProbePool(
            known_sources().probes(services),
            threads=sensing.threads,
            deadline_seconds=sensing.look_timeout_seconds,
            limits=limits,
        )

    @cached_property
    def jobs(self) -> JobsApi:
        """The Jobs API: the workspace's, or ours on this machine."""
        from harness.platform.databricks.api import Outcome
        from harness.platform.databricks.client import ClientSettings, DatabricksJobs

        partial = Outcome[self.settings.jobs.success_with_failures.name]
        if self.settings.jobs.target is JobsTarget.DATABRICKS:
            return DatabricksJobs(
                ClientSettings(partial_success=partial), before_page=self.questions.take
            )
        endpoint = self.local_endpoint()
        return DatabricksJobs(
            ClientSettings(
                host=endpoint.host,
                token=endpoint.token,
                workspace="local",
                partial_success=partial,
            ),
            before_page=self.questions.take,
        )

    def local_endpoint(self) -> "Endpoint":
        """Start the local Jobs API if it is not there, and register the jobs of the controls."""
        from harness.platform.jobs_emulator.background import ensure_running, register_jobs

        endpoint = ensure_running(
            self.home.folder, idle_minutes=self.settings.jobs.local.idle_minutes, clock=self.clock
        )
        register_jobs(endpoint, self._local_jobs())
        self._endpoint = endpoint
        return endpoint

    def _local_jobs(self) -> "Iterator[JobDefinition]":
        from harness.platform.jobs_emulator.runs.job_settings import JobDefinition

        local = self.settings.jobs.local
        project = self.settings.project
        names = every_job_name(project)
        for job_id in sorted({*names, *self.settings.local_jobs}):
            job = self.settings.local_jobs.get(job_id)
            command = job.command if job else local.default_command
            if command is None:
                continue
            yield JobDefinition(
                job_id=job_id,
                name=(job and job.name) or names.get(job_id) or str(job_id),
                command=command,
                cwd=str(project / (job.cwd if job and job.cwd else ".")),
                env=job.env if job else {},
                timeout_seconds=job.timeout_seconds if job else None,
                max_concurrent_runs=job.max_concurrent_runs if job else 1,
            )

    def forget_jobs(self) -> None:
        """Register the jobs with the local Jobs API again: the controls have changed."""
        self.__dict__.pop("jobs", None)

    @cached_property
    def _installation_id(self) -> str:
        """A random name that the state directory keeps for its lifetime.

        An intent is named by ticks, and every new folder counts them from one: without this, a
        recreated folder would send the idempotency tokens of the old one and receive its old runs.
        """
        path = self.home.folder / "installation"
        # Intents keep their tokens, so a name that was lost may be replaced by a new one.
        known = path.read_text().strip() if path.is_file() else ""
        if not known:
            known = uuid.uuid4().hex
            write_atomically(path, known, is_lasting=True)
            self.keep_state()
        return known

    def _forget_dead_api(self) -> None:
        """The local Jobs API ends when it has been idle for long; start it again then."""
        from harness.platform.jobs_emulator.background import is_answering

        if self._endpoint is not None and not is_answering(self._endpoint):
            self._endpoint = None
            self.forget_jobs()

    @cached_property
    def starts(self) -> TokenBucket:
        """The rate of starts; our own Jobs API on this machine needs none."""
        return TokenBucket(self.clock, per_second=self._requests_per_second())

    @cached_property
    def questions(self) -> TokenBucket:
        """The rate of read requests: a workspace bears five times as many as starts."""
        return TokenBucket(self.clock, per_second=5 * self._requests_per_second())

    def _requests_per_second(self) -> float:
        if self.settings.jobs.target is JobsTarget.LOCAL:
            return _LOCAL_REQUESTS_PER_SECOND
        return self.settings.jobs.requests_per_second

    @cached_property
    def _declared_parameters(self) -> DeclaredParameters:
        """What jobs declare; a job of ours on this machine accepts whatever it is passed."""
        policy, jobs = self.settings.jobs.parameters, self.settings.jobs
        if jobs.target is JobsTarget.LOCAL and policy is SendParameters.DECLARED:
            policy = SendParameters.ALWAYS
        return DeclaredParameters(policy)

    @property
    def firing(self) -> Firing:
        """What starting and following runs needs."""
        self._forget_dead_api()
        return Firing(
            api=self.jobs,
            origin=f"{self.jobs.workspace}/{self.schema}/{self._installation_id}",
            store=self.store,
            starts=self.starts,
            questions=self.questions,
            payloads=self.home.payloads,
            schema=self.schema,
            parameters=self._declared_parameters,
            crash_point=self.crash_point,
            still_ours=self.lock.check,
            stop=self.stop,
        )

    def crash_point(self, name: str) -> None:
        """Crash this process, or the engine, at once, when a test requests it."""
        wanted = self.environment.get(CRASH_VARIABLE)
        if wanted == name:
            os.kill(os.getpid(), signal.SIGKILL)
        elif wanted == f"engine {name}":
            from harness.platform.spark.engine import engine_folder

            if (record := engine_folder(self.home.folder).record()) is not None:
                os.kill(record.server, signal.SIGKILL)

    def cancel(self) -> None:
        """Cancel what runs in the session, if there is one; callable from any thread."""
        from harness.platform.spark.classic_jvm import cancel_all

        if (session := self.__dict__.get("session")) is not None:
            cancel_all(session)

    def close(self) -> None:
        """End what was started in this process; the local Jobs API goes on on its own."""
        if isinstance(sql := vars(self).get("sql"), WarehouseSql):
            sql.close()
        self.leave_engine()
        if self._scratch is not None:
            self._scratch.cleanup()
