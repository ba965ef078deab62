"""Checks each row on its own: every invalid cell is a finding."""

from collections.abc import Collection, Iterator
from functools import cache

from harness.config.sources import Source
from harness.controls.findings import Code, Finding, did_you_mean, finding, listed, shown
from harness.controls.header import COLUMNS
from harness.controls.identifiers import (
    HAVE_NO_ROWS,
    NEED_UPSTREAM_KEY,
    Problem,
    is_without_schema,
    sensor_id_problem,
    upstream_key_problem,
    uses_upstream_key,
)
from harness.controls.parse import ControlRow
from harness.platform.text import escaped

SOURCES = tuple(source.value for source in Source)

READ_TYPES = ("batch", "streaming")
JOB_STATES = ("PAUSED", "UNPAUSED")
DEPENDENCY_FLAGS = ("TRUE", "FALSE")
LARGEST_BIGINT = 2**63 - 1

_MAY_LACK_SCHEMA = frozenset({Source.DELTA_TABLE, Source.LMU_DELTA_TABLE})

#: Text for people, and SQL: line breaks and tabs belong there.
_FREE_TEXT = frozenset({"asset_description", "preprocess_query"})


class RowChecks:
    """The checks of one row, for a file with these columns.

    Args:
        columns: What the header has.
        may_read: Tables that a query may read besides the new rows.
    """

    def __init__(self, *, columns: Collection[str], may_read: Collection[str] = ()) -> None:
        self._columns = columns
        # A thousand rows may share one query; parsing is the only costly check.
        self._query_problems = cache(lambda query: _query_problems(query, may_read))

    def findings(self, row: ControlRow) -> Iterator[Finding]:
        """Return what is wrong with the row; a column that the file lacks is passed over."""
        unreadable = _with_control_characters(row)
        for column in unreadable:
            yield _control_character(row, column)
        for column, problems in (
            ("sensor_source", _source(row)),
            ("sensor_id", _sensor_id(row)),
            ("sensor_read_type", _read_type(row)),
            ("upstream_key", _upstream_key(row)),
            ("preprocess_query", self._query(row)),
            ("trigger_job_id", _job_id(row)),
            ("trigger_job_name", _job_name(row)),
            ("job_state", _job_state(row)),
            ("dependency_flag", _dependency_flag(row)),
        ):
            if column in self._columns and column not in unreadable:
                for code, message in problems:
                    yield finding(code, row.line, column, message)

    def _query(self, row: ControlRow) -> tuple[Problem, ...]:
        if not row.preprocess_query:
            return ()
        if row.source in HAVE_NO_ROWS:
            message = f"a {row.source} row has no rows to query; leave the cell empty."
            return ((Code.QUERY_WITHOUT_ROWS, message),)
        return tuple(self._query_problems(row.preprocess_query))


def _source(row: ControlRow) -> tuple[Problem, ...]:
    if row.source in SOURCES:
        return ()
    what = f"unknown source {shown(row.sensor_source)}" if row.source else "the source is missing"
    hint = did_you_mean(row.source, SOURCES)
    return ((Code.SOURCE_UNKNOWN, f"{what}{hint or ';'} allowed are {listed(SOURCES)}."),)


def _query_problems(query: str, may_read: Collection[str]) -> list[Problem]:
    # Most files hold no query, and the parser takes a while to load.
    from harness.controls.queries import check_query

    return check_query(query, may_read)


def _sensor_id(row: ControlRow) -> tuple[Problem, ...]:
    if not row.sensor_id:
        message = "the id is missing; name the table, folder, topic or chain to watch."
        return ((Code.SENSOR_ID_MISSING, message),)
    if row.source in _MAY_LACK_SCHEMA and is_without_schema(row.sensor_id):
        message = (
            f"{shown(row.sensor_id)} has no schema, so the session's default schema counts; write"
            f" schema.{escaped(row.sensor_id)[:80]} to fix which table is meant."
        )
        return ((Code.SENSOR_ID_WITHOUT_SCHEMA, message),)
    problem = sensor_id_problem(row.source, row.sensor_id)
    return ((Code.SENSOR_ID_SHAPE, problem),) if problem else ()


def _read_type(row: ControlRow) -> tuple[Problem, ...]:
    if row.sensor_read_type.lower() in READ_TYPES:
        return ()
    return ((Code.READ_TYPE, _not_allowed(row.sensor_read_type, READ_TYPES)),)


def _upstream_key(row: ControlRow) -> tuple[Problem, ...]:
    if row.source in HAVE_NO_ROWS:
        message = f"a {row.source} row has no columns, so the key plays no part; leave it empty."
        return ((Code.UPSTREAM_KEY_UNUSED, message),) if row.upstream_key else ()
    if row.upstream_key:
        problem = upstream_key_problem(row.upstream_key)
        return ((Code.UPSTREAM_KEY_SHAPE, problem),) if problem else ()
    if row.source in NEED_UPSTREAM_KEY:
        message = (
            f"a {row.source} row needs the column that identifies new data, such as LOAD_DATE."
        )
        return ((Code.UPSTREAM_KEY_MISSING, message),)
    if uses_upstream_key(row.preprocess_query):
        message = "the preprocess query uses ?upstream_key or ?upstream_value; name the column."
        return ((Code.UPSTREAM_KEY_MISSING, message),)
    return ()


def _job_id(row: ControlRow) -> tuple[Problem, ...]:
    if not row.trigger_job_id:
        message = f"the job id is missing; allowed is an integer from 1 to {LARGEST_BIGINT}."
        return ((Code.JOB_ID_MISSING, message),)
    if row.job_id is not None and 1 <= row.job_id <= LARGEST_BIGINT:
        return ()
    message = (
        f"{shown(row.trigger_job_id)} is not a job id; write a positive whole number, up to"
        f" {LARGEST_BIGINT}."
    )
    return ((Code.JOB_ID_NUMBER, message),)


def _job_name(row: ControlRow) -> tuple[Problem, ...]:
    if row.trigger_job_name:
        return ()
    message = "the job has no name; name it, so that people recognise it."
    return ((Code.JOB_NAME_MISSING, message),)


def _job_state(row: ControlRow) -> tuple[Problem, ...]:
    if row.job_state.upper() in JOB_STATES:
        return ()
    return ((Code.JOB_STATE, _not_allowed(row.job_state, JOB_STATES)),)


def _dependency_flag(row: ControlRow) -> tuple[Problem, ...]:
    if not row.dependency_flag or row.dependency_flag.upper() in DEPENDENCY_FLAGS:
        return ()
    message = _not_allowed(row.dependency_flag, (*DEPENDENCY_FLAGS, "an empty cell (TRUE)"))
    return ((Code.DEPENDENCY_FLAG, message),)


def _not_allowed(value: str, allowed: tuple[str, ...]) -> str:
    what = f"{shown(value)} is not allowed" if value else "the value is missing"
    hint = did_you_mean(value, allowed) or "."
    return f"{what}; allowed are {listed(allowed)}{hint}"


def _with_control_characters(row: ControlRow) -> list[str]:
    cells = [getattr(row, column) for column in COLUMNS]
    if "".join(cells).isprintable():
        return []
    return [
        column
        for column, cell in zip(COLUMNS, cells, strict=True)
        if not _is_readable(cell, free_text=column in _FREE_TEXT)
    ]


def _is_readable(cell: str, *, free_text: bool) -> bool:
    if cell.isprintable():
        return True
    if not free_text:
        return False
    plain = cell.replace("\n", "").replace("\t", "")
    return escaped(plain) == plain


def _control_character(row: ControlRow, column: str) -> Finding:
    message = (
        f"{shown(getattr(row, column))} has a character that cannot be seen; allowed are visible"
        " characters and plain spaces."
    )
    return finding(Code.CONTROL_CHARACTER, row.line, column, message)
