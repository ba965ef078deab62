"""Tries in a workspace what Heartbeat assumes of it, and reports what each trial showed.

Nothing of it can be had without a workspace. What has to be written goes into a schema of its own,
which is removed at the end; the ledgers and the jobs are only read.
"""

import base64
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from harness.context import Context
from harness.errors import HeartbeatError
from harness.inspect.doctor.findings import Finding, attention, broken, ok
from harness.platform.sql.port import Row, Sql, read_together
from harness.platform.sql.session import SessionSql
from harness.platform.sql_names import SchemaName, literal

#: A statement of this size is sent; the state of many upstreams needs one.
_LARGE_BYTES = 2**20
_STAMP: dict[str, str | int] = {"txnAppId": "heartbeat-doctor", "txnVersion": 1}
#: What has to be the same wherever statements run, as a column of one query.
_SETTINGS = {
    "time_zone": "current_timezone()",
    # Without ANSI mode a number becomes text.
    "is_ansi": "typeof(coalesce(1, '1')) != 'string'",
    "day": "cast(timestamp '2026-03-01 23:30:00Z' as date)",
}


class NotAsAssumedError(Exception):
    """A trial went another way than Heartbeat assumes; the text is what it showed."""


class SkippedError(Exception):
    """A trial cannot be made here; the text is why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the trials work with."""

    context: Context
    sql: Sql
    scratch: SchemaName

    @property
    def table(self) -> str:
        """The table of the trials."""
        return self.scratch.table("trial")

    def one(self, statement: str) -> Row:
        """Return the only row of a statement."""
        rows = self.sql.run(statement)
        if len(rows) != 1:
            raise NotAsAssumedError(f"{len(rows)} rows instead of one")
        return rows[0]


def login(trial: Trial) -> str:
    """Who is logged in, and where statements run."""
    row = trial.one("select current_user() as name, version() as version")
    kind = "a session" if isinstance(trial.sql, SessionSql) else "a SQL warehouse"
    return f"{row['name']}, through {kind} with Spark {str(row['version']).split(' ')[0]}"


def schema(trial: Trial) -> str:
    """A schema and a table can be made."""
    trial.sql.run(f"create schema {trial.scratch.in_sql}")
    trial.sql.run(
        f"create table {trial.table} (n bigint, at timestamp default current_timestamp(),"
        " content binary) using delta"
        " tblproperties ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    trial.sql.run(f"insert into {trial.table} (n) values (1)")
    if trial.one(f"select at from {trial.table}")["at"] is None:
        raise NotAsAssumedError("a default of a column is not filled in")
    return "with a column that has a default"


def swap(trial: Trial) -> str:
    """An update reports how many rows it has changed."""
    found = trial.sql.run(f"update {trial.table} set n = 2 where n = 1")
    if [row.get("num_affected_rows") for row in found] != [1]:
        raise NotAsAssumedError(f"it answers {found}; the lease costs one statement more")
    return "num_affected_rows"


def large_statement(trial: Trial) -> str:
    """A merge takes a megabyte of text."""
    content = base64.b64encode(bytes(_LARGE_BYTES)).decode()
    trial.sql.run(
        f"merge into {trial.table} as kept using (select 2 as n, unbase64('{content}') as content)"
        " as changed on kept.n = changed.n when matched then update set content = changed.content"
    )
    length = trial.one(f"select max(length(content)) as n from {trial.table}")["n"]
    if length != _LARGE_BYTES:
        raise NotAsAssumedError(f"{length} of {_LARGE_BYTES} bytes arrived")
    return f"{len(content):,} characters"


def together(trial: Trial) -> str:
    """Several tables are read by one statement."""
    query = f"select n, at from {trial.table}"
    found = read_together(trial.sql, {"one": query, "other": f"{query} where n = 0"})
    if [len(found["one"]), len(found["other"])] != [1, 0]:
        raise NotAsAssumedError(f"it answers {found}")
    return "as arrays of structures"


def stamps(trial: Trial) -> str:
    """A second append with the same fencing token counts as done."""
    if not isinstance(trial.sql, SessionSql):
        raise SkippedError("a SQL warehouse cannot append with a fencing token")
    table = trial.scratch.table("stamped")
    trial.sql.run(f"create table {table} (n bigint, names array<string>) using delta")
    for number in (1, 2):
        trial.sql.append(table, [{"n": number, "names": ("a",)}], _STAMP)
    kept = [row["n"] for row in trial.sql.run(f"select n from {table}")]
    if kept != [1]:
        raise NotAsAssumedError(f"both were appended ({kept}): no tick may start a job here")
    return "txnAppId and txnVersion"


def history(trial: Trial) -> str:
    """The history of a table shows the version, the operation and its figures."""
    row = trial.one(f"describe history {trial.table} limit 1")
    missing = {"version", "timestamp", "operation", "operationMetrics"} - row.keys()
    if missing:
        raise NotAsAssumedError(f"it lacks {', '.join(sorted(missing))}")
    return f"version {row['version']}, {row['operation']}"


def altered(trial: Trial) -> str:
    """The catalog's time of a table moves with a commit."""
    catalog = trial.scratch.catalog
    if catalog is None:
        raise SkippedError("there is no catalog with an information_schema")
    tables = SchemaName("information_schema", catalog).table("tables")
    query = (
        f"select last_altered as at from {tables}"
        f" where table_schema = {literal(trial.scratch.name)} and table_name = 'trial'"
    )
    before = trial.one(query)["at"]
    trial.sql.run(f"insert into {trial.table} (n) values (3)")
    after = trial.one(query)["at"]
    if before == after:
        raise NotAsAssumedError(
            f"last_altered stays {before} after a commit; the history of each table is read"
        )
    return f"last_altered went on from {before} to {after}"


def storage(trial: Trial) -> str:
    """Where the files of a managed table are, and whether its log can be read by its path."""
    from deltalake import DeltaTable

    location = str(trial.one(f"describe detail {trial.table}")["location"])
    try:
        version = DeltaTable(location).version()
    except Exception as error:
        raise SkippedError(
            f"{location} refuses ({str(error).splitlines()[0][:120]}); tables are sensed by name"
        ) from error
    return f"{location} can be read: version {version}"


def settings(trial: Trial) -> str:
    """The session and the SQL warehouse of dbt have the same time zone and rules."""
    from harness.context import warehouse_of

    query = ", ".join(f"{value} as {name}" for name, value in _SETTINGS.items())
    own = trial.one(f"select {query}")
    if own["time_zone"] not in ("UTC", "Etc/UTC"):
        raise NotAsAssumedError(f"its time zone is {own['time_zone']}, not UTC")
    if not own["is_ansi"]:
        raise NotAsAssumedError("it is not in ANSI mode")
    if not isinstance(trial.sql, SessionSql):
        return "UTC and ANSI mode; there is no session beside the warehouse"
    warehouse = warehouse_of(trial.context.environment)
    if warehouse is None:
        raise SkippedError("no warehouse is named in DATABRICKS_HTTP_PATH")
    try:
        (other,) = warehouse.run(f"select {query}")
    finally:
        warehouse.close()
    if own != other:
        raise NotAsAssumedError(f"the session has {own}, the warehouse {other}")
    return "UTC and ANSI mode, in both"


def dbt(trial: Trial) -> str:
    """The harness's login is one that dbt can use."""
    from harness.platform.databricks.workspace import login_for_dbt

    given = login_for_dbt(trial.context.environment)
    return "by a token for each invocation" if given else "dbt-databricks supports it"


def jobs(trial: Trial) -> str:
    """The Jobs API answers, and the settings of the jobs can be read."""
    from harness.controls.load import every_job_name

    names = every_job_name(trial.context.settings.project)
    if not names:
        raise SkippedError("the controls have no job")
    declared = {job: trial.context.jobs.declared_parameters(job) for job in sorted(names)[:20]}
    unknown = [names[job] for job, each in declared.items() if each is None]
    if unknown:
        raise NotAsAssumedError(f"the settings of {', '.join(unknown)} cannot be read")
    return f"{len(declared)} of {len(names)} jobs read"


def secrets(trial: Trial) -> str:
    """Every secret of heartbeat.yml can be read."""
    from harness.config.workspace_secrets import secrets_for

    context = trial.context
    references = [reference for _, reference in context.settings.secret_references()]
    if not references:
        raise SkippedError("heartbeat.yml names no secret")
    resolver = secrets_for(context.settings, context.environment)
    for reference in references:
        reference.resolve(resolver)
    return f"{len(references)} of them"


#: In this order: each may need what the ones before have made.
TRIALS: tuple[Callable[[Trial], str], ...] = (
    login,
    schema,
    swap,
    large_statement,
    together,
    stamps,
    history,
    altered,
    storage,
    settings,
    dbt,
    jobs,
    secrets,
)


def examine_workspace(
    context: Context, trials: Iterable[Callable[[Trial], str]] = TRIALS
) -> Iterator[Finding]:
    """Make every trial; one that fails stops no other.

    Args:
        context: The services, in a workspace.
        trials: What to try.
    """
    name = f"heartbeat_doctor_{uuid.uuid4().hex[:8]}"
    scratch = SchemaName(name, context.schema_name.catalog)
    trial = Trial(context=context, sql=context.sql, scratch=scratch)
    try:
        for each in trials:
            yield _finding(each, trial)
    finally:
        with suppress(HeartbeatError):
            trial.sql.run(f"drop schema if exists {scratch.in_sql} cascade")


def _finding(made: Callable[[Trial], str], trial: Trial) -> Finding:
    about = made.__name__.replace("_", " ")
    question = str(made.__doc__).strip().rstrip(".")
    try:
        return ok(about, f"{question}: {made(trial)}")
    except SkippedError as reason:
        return ok(about, f"{question}: not tried, {reason}")
    except NotAsAssumedError as found:
        return attention(about, f"{question}: no, {found}", todo=_TELL)
    except HeartbeatError as error:
        return broken(about, f"{question}: no, {error}", todo="correct that, and try again")
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "")[:200]
        return broken(about, f"{question}: no, {type(error).__name__}: {first}", todo=_TELL)


_TELL = "report it with the whole table: it is an assumption of Heartbeat that does not hold"
