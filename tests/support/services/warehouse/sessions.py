"""The thrift service of a warehouse: sessions, statements and their results, in front of Spark.

It answers the requests that the connector sends: results come as Arrow, in chunks, never by links to a cloud's storage.
"""

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunningError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from databricks.sql.thrift_api.TCLIService import ttypes

from tests.support.local_rows import frame_of_rows
from tests.support.services.warehouse import information_schema
from tests.support.services.warehouse.dialect import (
    OWN,
    Dialect,
    RefusedError,
    bound,
    setting_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OK = ttypes.TStatus(statusCode=ttypes.TStatusCode.SUCCESS_STATUS)
_STATES = ttypes.TOperationState
#: A client polls without a pause, so the service holds its answer back for as long as this.
_POLL_SECONDS = 0.5
#: A statement that takes longer is reported as running, and polled.
_DIRECT_SECONDS = 5.0
#: Spark has this for tables that are not Delta's alone.
_AS_JSON = re.compile(r"describe\s+table\s+extended\s+(\S+)\s+as\s+json", re.IGNORECASE)
#: The setting in which a runtime of a cluster reports its version.
_VERSION = "spark.databricks.clusterusagetags.sparkversion"

_TYPES: Mapping[str, int] = {
    "boolean": ttypes.TTypeId.BOOLEAN_TYPE,
    "tinyint": ttypes.TTypeId.TINYINT_TYPE,
    "smallint": ttypes.TTypeId.SMALLINT_TYPE,
    "int": ttypes.TTypeId.INT_TYPE,
    "bigint": ttypes.TTypeId.BIGINT_TYPE,
    "float": ttypes.TTypeId.FLOAT_TYPE,
    "double": ttypes.TTypeId.DOUBLE_TYPE,
    "string": ttypes.TTypeId.STRING_TYPE,
    "binary": ttypes.TTypeId.BINARY_TYPE,
    "date": ttypes.TTypeId.DATE_TYPE,
    "timestamp": ttypes.TTypeId.TIMESTAMP_TYPE,
    "timestamp_ntz": ttypes.TTypeId.TIMESTAMP_TYPE,
    "void": ttypes.TTypeId.NULL_TYPE,
    "array": ttypes.TTypeId.ARRAY_TYPE,
    "map": ttypes.TTypeId.MAP_TYPE,
    "struct": ttypes.TTypeId.STRUCT_TYPE,
    "decimal": ttypes.TTypeId.DECIMAL_TYPE,
}


#: What dbt writes into the comment before each statement of the project.
_OF_THE_PROJECT = '"profile_name": "heartbeat"'
#: How statements begin that change a table; the first one is what a session has in place of SQL.
_CHANGES = ("append to", "insert", "update", "merge", "delete", "truncate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A grant that the principal does not have.

    Attributes:
        privilege: ``SELECT``, ``MODIFY``, ``USE CATALOG``, ``USE SCHEMA`` or ``CREATE TABLE``.
        kind: ``Catalog``, ``Schema`` or ``Table``.
        name: Of the object, with its catalog and without backticks.
        containing: Only for statements with this text: until then the grant was there.
    """

    privilege: str
    kind: str
    name: str
    containing: str = ""

    def refuses(self, statement: str) -> bool:
        """Return whether a statement needs the grant."""
        plain = statement.replace("`", "").lower()
        wanted = "MODIFY" if plain.lstrip().startswith(_CHANGES) else "SELECT"
        is_use = self.privilege.startswith(("USE", "CREATE"))
        return (
            self.name.lower() in plain
            and self.containing.lower() in plain
            and (is_use or self.privilege == wanted)
        )

    @property
    def words(self) -> str:
        """The error that a workspace reports."""
        return (
            "[INSUFFICIENT_PERMISSIONS] Insufficient privileges:\n"
            f"User does not have {self.privilege} on {self.kind} '{self.name}'."
        )


@dataclass(slots=True)
class _Session:
    spark: "SparkSession"
    catalog: str


@dataclass(slots=True)
class _Result:
    """The rows of a statement, and how far a client has fetched them."""

    table: pa.Table
    kinds: Sequence[tuple[str, str]]
    changed: int | None = None
    given: int = 0

    def take(self, count: int) -> pa.Table:
        part = self.table.slice(self.given, count)
        self.given += part.num_rows
        return part

    @property
    def has_more(self) -> bool:
        return self.given < self.table.num_rows


@dataclass(slots=True)
class _Operation:
    future: "Future[_Result]"
    handle: Any
    is_cancelled: threading.Event = field(default_factory=threading.Event)


class InvalidHandleError(Exception):
    """A session or an operation is not there, or not any more."""


class Sessions:
    """Implements the service's interface.

    Args:
        spark: The session of the tests; each session of the warehouse has its own settings and temporary views.
        catalog: The name of the one catalog.
        version: The runtime that a cluster reports; nothing: it is a warehouse.
        denied: The grants that are missing; read at each statement.
        most_rows: More than these are never sent in one answer.
    """

    def __init__(
        self,
        spark: "SparkSession",
        catalog: str,
        *,
        version: str | None,
        denied: Sequence[Denied],
        most_rows: int = 10_000,
    ) -> None:
        self._spark = spark
        self._dialect = Dialect(catalog)
        self.version = version
        self._denied = denied
        self._most_rows = most_rows
        self._sessions: dict[bytes, _Session] = {}
        self._operations: dict[bytes, _Operation] = {}
        self._workers = ThreadPoolExecutor(8, thread_name_prefix="warehouse")
        #: The statements that came, in their order, as they came.
        self.statements: list[str] = []
        self.direct_seconds = _DIRECT_SECONDS

    @property
    def open_count(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def end_sessions(self) -> None:
        """End every session, as a restart of the warehouse does."""
        self._sessions.clear()
        self._operations.clear()

    def close(self) -> None:
        """Stop the workers."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    # The names of the methods are the service's.

    def OpenSession(self, req: Any) -> Any:
        try:
            opened = self._opened(req)
        except RefusedError as error:
            return ttypes.TOpenSessionResp(
                status=_failure(error),
                serverProtocolVersion=_PROTOCOL,
                sessionHandle=_session_handle(),
            )
        handle = _session_handle()
        self._sessions[handle.sessionId.guid] = opened
        return ttypes.TOpenSessionResp(
            status=_OK,
            serverProtocolVersion=_PROTOCOL,
            sessionHandle=handle,
            canUseMultipleCatalogs=True,
            initialNamespace=req.initialNamespace,
        )

    def _opened(self, req: Any) -> _Session:
        spark = self._spark.newSession()
        namespace = req.initialNamespace
        if namespace and namespace.catalogName:
            self._dialect.require(namespace.catalogName)
        if namespace and namespace.schemaName:
            schema = namespace.schemaName
            # A schema that is not there yet is no failure: dbt makes it in such a session.
            if spark.catalog.databaseExists(f"{OWN}.`{schema}`"):
                spark.sql(f"use {OWN}.`{schema}`")
        for key, value in (req.configuration or {}).items():
            if name := setting_of(key):
                spark.conf.set(name, value)
        return _Session(spark, self._dialect.catalog)

    def CloseSession(self, req: Any) -> Any:
        try:
            self._session(req.sessionHandle)
        except InvalidHandleError as error:
            return ttypes.TCloseSessionResp(status=_invalid(error))
        del self._sessions[req.sessionHandle.sessionId.guid]
        return ttypes.TCloseSessionResp(status=_OK)

    def ExecuteStatement(self, req: Any) -> Any:
        self.statements.append(req.statement)
        return self._begun(
            req,
            ttypes.TExecuteStatementResp,
            lambda session: self._run(session, req.statement, req.parameters),
        )

    def GetCatalogs(self, req: Any) -> Any:
        rows = [(self._dialect.catalog,)]
        return self._listed(req, ttypes.TGetCatalogsResp, "TABLE_CAT string", lambda _: rows)

    def GetSchemas(self, req: Any) -> Any:
        def rows(session: _Session) -> Iterator[tuple[object, ...]]:
            like = f" like '{_glob(req.schemaName)}'" if req.schemaName else ""
            for row in session.spark.sql(f"show schemas in {OWN}{like}").collect():
                yield row[0], session.catalog

        columns = "TABLE_SCHEM string, TABLE_CATALOG string"
        return self._listed(req, ttypes.TGetSchemasResp, columns, rows)

    def GetTables(self, req: Any) -> Any:
        def rows(session: _Session) -> Iterator[tuple[object, ...]]:
            spark, schema = session.spark, req.schemaName
            views = {row.viewName for row in spark.sql(f"show views in {OWN}.`{schema}`").collect()}
            for row in spark.sql(f"show tables in {OWN}.`{schema}`").collect():
                if not row.isTemporary:
                    kind = "VIEW" if row.tableName in views else "TABLE"
                    yield session.catalog, schema, row.tableName, kind, ""

        columns = "TABLE_CAT string, TABLE_SCHEM string, TABLE_NAME string, TABLE_TYPE string, REMARKS string"
        return self._listed(req, ttypes.TGetTablesResp, columns, rows)

    def GetColumns(self, req: Any) -> Any:
        def rows(session: _Session) -> Iterator[tuple[object, ...]]:
            name = f"{OWN}.`{req.schemaName}`.`{req.tableName}`"
            for place, each in enumerate(session.spark.table(name).schema.fields):
                kind = each.dataType.simpleString().upper()
                yield session.catalog, req.schemaName, req.tableName, each.name, kind, place

        columns = (
            "TABLE_CAT string, TABLE_SCHEM string, TABLE_NAME string, COLUMN_NAME string, TYPE_NAME string, "
            "ORDINAL_POSITION int"
        )
        return self._listed(req, ttypes.TGetColumnsResp, columns, rows)

    def GetOperationStatus(self, req: Any) -> Any:
        try:
            return self._state(self._operation(req.operationHandle), _POLL_SECONDS)
        except InvalidHandleError as error:
            return ttypes.TGetOperationStatusResp(status=_invalid(error))

    def GetResultSetMetadata(self, req: Any) -> Any:
        try:
            return _metadata(self._operation(req.operationHandle).future.result())
        except InvalidHandleError as error:
            return ttypes.TGetResultSetMetadataResp(status=_invalid(error))

    def FetchResults(self, req: Any) -> Any:
        try:
            result = self._operation(req.operationHandle).future.result()
        except InvalidHandleError as error:
            return ttypes.TFetchResultsResp(status=_invalid(error))
        return self._chunk(result, req.maxRows)

    def CancelOperation(self, req: Any) -> Any:
        operation = self._operations.get(req.operationHandle.operationId.guid)
        if operation is not None:
            operation.is_cancelled.set()
        return ttypes.TCancelOperationResp(status=_OK)

    def CloseOperation(self, req: Any) -> Any:
        self._operations.pop(req.operationHandle.operationId.guid, None)
        return ttypes.TCloseOperationResp(status=_OK)

    def _session(self, handle: Any) -> _Session:
        found = self._sessions.get(handle.sessionId.guid)
        if found is None:
            raise InvalidHandleError(
                f"Invalid SessionHandle: SessionHandle [{_shown(handle.sessionId)}]"
            )
        return found

    def _operation(self, handle: Any) -> _Operation:
        found = self._operations.get(handle.operationId.guid)
        if found is None:
            shown = _shown(handle.operationId)
            raise InvalidHandleError(f"Invalid OperationHandle: OperationHandle [{shown}]")
        return found

    def _listed(
        self,
        req: Any,
        response: Callable[..., Any],
        columns: str,
        rows: "Callable[[_Session], Iterator[tuple[object, ...]] | list[tuple[str]]]",
    ) -> Any:
        def run(session: _Session) -> _Result:
            if getattr(req, "catalogName", None):
                self._dialect.require(req.catalogName)
            return _result(frame_of_rows(session.spark, rows(session), columns))

        return self._begun(req, response, run)

    def _begun(
        self, req: Any, response: Callable[..., Any], run: "Callable[[_Session], _Result]"
    ) -> Any:
        try:
            session = self._session(req.sessionHandle)
        except InvalidHandleError as error:
            return response(status=_invalid(error))
        handle = ttypes.TOperationHandle(
            operationId=_identifier(),
            operationType=ttypes.TOperationType.EXECUTE_STATEMENT,
            hasResultSet=True,
        )
        operation = _Operation(self._workers.submit(run, session), handle)
        self._operations[handle.operationId.guid] = operation
        direct = req.getDirectResults and self._direct(operation, req.getDirectResults.maxRows)
        return response(status=_OK, operationHandle=handle, directResults=direct)

    def _direct(self, operation: _Operation, most: int) -> Any:
        state = self._state(operation, self.direct_seconds)
        if state.operationState != _STATES.FINISHED_STATE:
            return ttypes.TSparkDirectResults(operationStatus=state)
        result = operation.future.result()
        fetched = self._chunk(result, most)
        closed = None
        if not fetched.hasMoreRows:
            self._operations.pop(operation.handle.operationId.guid, None)
            closed = ttypes.TCloseOperationResp(status=_OK)
        return ttypes.TSparkDirectResults(
            operationStatus=state,
            resultSetMetadata=_metadata(result),
            resultSet=fetched,
            closeOperation=closed,
        )

    def _state(self, operation: _Operation, patience: float) -> Any:
        answer = ttypes.TGetOperationStatusResp
        if operation.is_cancelled.is_set():
            return answer(status=_OK, operationState=_STATES.CANCELED_STATE)
        try:
            result = operation.future.result(patience)
        except StillRunningError:
            return answer(status=_OK, operationState=_STATES.RUNNING_STATE)
        except RefusedError as error:
            return _failed(str(error), error.sql_state)
        except Exception as error:
            return _failed(self._dialect.reported(_words(error)), _sql_state(error))
        return answer(
            status=_OK,
            operationState=_STATES.FINISHED_STATE,
            hasResultSet=True,
            numModifiedRows=result.changed,
        )

    def _chunk(self, result: _Result, most: int) -> Any:
        offset = result.given
        part = result.take(min(most or self._most_rows, self._most_rows))
        batches = [
            ttypes.TSparkArrowBatch(batch=each.serialize().to_pybytes(), rowCount=each.num_rows)
            for each in part.combine_chunks().to_batches()
        ]
        rows = ttypes.TRowSet(startRowOffset=offset, rows=[], arrowBatches=batches)
        return ttypes.TFetchResultsResp(
            status=_OK,
            hasMoreRows=result.has_more,
            results=rows,
            resultSetMetadata=_metadata(result),
        )

    def _run(self, session: _Session, statement: str, parameters: Sequence[Any] | None) -> _Result:
        if self.version is not None and _VERSION in statement.lower():
            return _result(
                frame_of_rows(session.spark, [(_VERSION, self.version)], "key string, value string")
            )
        understood = self._dialect.understood(bound(statement, parameters or ()))
        self._check_grants(statement)
        if _OF_THE_PROJECT in statement.partition("*/")[0]:
            # As on the local target: Spark analyses each view faster, at each read, and a tick takes half as long.
            session.spark.conf.set("spark.sql.legacy.ctePrecedencePolicy", "LEGACY")
        if understood.information:
            information_schema.provide(
                session.spark, session.catalog, understood.information, statement
            )
        if described := _AS_JSON.fullmatch(understood.text.strip()):
            metadata = information_schema.as_json(session.spark.table(described[1]).schema)
            return _result(frame_of_rows(session.spark, [(metadata,)], "json_metadata string"))
        frame = session.spark.sql(understood.text)
        result = _result(frame)
        if statement.lstrip().lower().startswith(("describe", "desc ", "show")):
            result.table = _in_text(result.table, self._dialect.answered)
        return result

    def _check_grants(self, statement: str) -> None:
        for each in self._denied:
            if each.refuses(statement):
                raise RefusedError(each.words, "42501")


_PROTOCOL = ttypes.TProtocolVersion.SPARK_CLI_SERVICE_PROTOCOL_V8


def _identifier() -> Any:
    return ttypes.THandleIdentifier(guid=uuid.uuid4().bytes, secret=uuid.uuid4().bytes)


def _session_handle() -> Any:
    return ttypes.TSessionHandle(sessionId=_identifier(), serverProtocolVersion=_PROTOCOL)


def _shown(identifier: Any) -> uuid.UUID:
    return uuid.UUID(bytes=identifier.guid)


def _failure(error: RefusedError) -> Any:
    return ttypes.TStatus(
        statusCode=ttypes.TStatusCode.ERROR_STATUS,
        sqlState=error.sql_state,
        errorMessage=str(error),
        displayMessage=str(error),
    )


def _invalid(error: InvalidHandleError) -> Any:
    return ttypes.TStatus(
        statusCode=ttypes.TStatusCode.INVALID_HANDLE_STATUS, errorMessage=str(error)
    )


def _failed(message: str, sql_state: str | None) -> Any:
    return ttypes.TGetOperationStatusResp(
        status=_OK,
        operationState=_STATES.ERROR_STATE,
        sqlState=sql_state,
        errorMessage=message,
        displayMessage=message,
        diagnosticInfo=message,
    )


def _words(error: Exception) -> str:
    cause = getattr(error, "java_exception", None)
    text = str(error if cause is None else cause.getMessage())
    # The plan follows, which only helps who has written the planner.
    return text.partition(";\n'")[0].partition(";\n+-")[0].strip()


def _sql_state(error: Exception) -> str | None:
    found = getattr(error, "sql_state", None)
    if found is None and hasattr(error, "getSqlState"):
        found = error.getSqlState()
    return found


def _glob(pattern: str) -> str:
    return pattern.replace("%", "*")


def _result(frame: "DataFrame") -> _Result:
    kinds = frame.dtypes
    if intervals := [name for name, kind in kinds if kind.startswith("interval")]:
        for name in intervals:
            frame = frame.withColumn(name, frame[name].cast("string"))
    table = frame.toArrow()
    changed = None
    if "num_affected_rows" in table.column_names and table.num_rows == 1:
        changed = table["num_affected_rows"][0].as_py()
    return _Result(table, kinds, changed)


def _in_text(table: pa.Table, change: Callable[[str], str]) -> pa.Table:
    for place, kind in enumerate(table.schema):
        if pa.types.is_string(kind.type):
            cells = [cell and change(cell) for cell in table.column(place).to_pylist()]
            table = table.set_column(place, kind, pa.array(cells, pa.string()))
    return table


def _metadata(result: _Result) -> Any:
    columns = [
        ttypes.TColumnDesc(columnName=name, typeDesc=_described(kind), position=place)
        for place, (name, kind) in enumerate(result.kinds, start=1)
    ]
    return ttypes.TGetResultSetMetadataResp(
        status=_OK,
        schema=ttypes.TTableSchema(columns=columns),
        resultFormat=ttypes.TSparkRowSetType.ARROW_BASED_SET,
        lz4Compressed=False,
        arrowSchema=result.table.schema.serialize().to_pybytes(),
        isStagingOperation=False,
    )


def _described(kind: str) -> Any:
    word = kind.partition("<")[0].partition("(")[0]
    entry = ttypes.TPrimitiveTypeEntry(type=_TYPES.get(word, ttypes.TTypeId.STRING_TYPE))
    if word == "decimal":
        precision, scale = (int(each) for each in kind[len("decimal(") : -1].split(","))
        entry.typeQualifiers = ttypes.TTypeQualifiers(
            qualifiers={
                "precision": ttypes.TTypeQualifierValue(i32Value=precision),
                "scale": ttypes.TTypeQualifierValue(i32Value=scale),
            }
        )
    return ttypes.TTypeDesc(types=[ttypes.TTypeEntry(primitiveEntry=entry)])
