"""What a check of the controls CSV reports: the codes, one finding, and its text and JSON forms."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

#: A value longer than this is cut in a message; the file has the rest.
SHOWN_CHARACTERS = 60


class Severity(StrEnum):
    """Whether a finding stops."""

    #: Nothing moves until it is put right.
    ERROR = "error"
    #: Reported once per check; nothing stops.
    WARNING = "warning"


class Code(StrEnum):
    """The stable name of what was found; ``docs/reference/controls.md`` explains each."""

    # The file as a whole
    NOT_UTF8 = "not_utf8"
    NUL_BYTE = "nul_byte"
    NO_ROWS = "no_rows"
    MASS_REMOVAL = "mass_removal"
    # The header
    HEADER_MISSING = "header_missing"
    COLUMN_MISSING = "column_missing"
    COLUMN_UNKNOWN = "column_unknown"
    COLUMN_REPEATED = "column_repeated"
    COLUMN_ORDER = "column_order"
    # The shape of a line
    BROKEN_LINE = "broken_line"
    TOO_FEW_CELLS = "too_few_cells"
    TOO_MANY_CELLS = "too_many_cells"
    UNCLOSED_QUOTE = "unclosed_quote"
    MISPLACED_QUOTE = "misplaced_quote"
    CELL_TOO_LONG = "cell_too_long"
    CONTROL_CHARACTER = "control_character"
    # One row
    SOURCE_UNKNOWN = "source_unknown"
    SENSOR_ID_MISSING = "sensor_id_missing"
    SENSOR_ID_SHAPE = "sensor_id_shape"
    SENSOR_ID_WITHOUT_SCHEMA = "sensor_id_without_schema"
    READ_TYPE = "read_type"
    UPSTREAM_KEY_MISSING = "upstream_key_missing"
    UPSTREAM_KEY_SHAPE = "upstream_key_shape"
    UPSTREAM_KEY_UNUSED = "upstream_key_unused"
    QUERY_WITHOUT_ROWS = "query_without_rows"
    QUERY_SYNTAX = "query_syntax"
    QUERY_NOT_ONE_SELECT = "query_not_one_select"
    QUERY_WITHOUT_NEW_DATA = "query_without_new_data"
    QUERY_PLACEHOLDER = "query_placeholder"
    QUERY_READS_MORE = "query_reads_more"
    QUERY_FORBIDDEN = "query_forbidden"
    JOB_ID_MISSING = "job_id_missing"
    JOB_ID_NUMBER = "job_id_number"
    JOB_NAME_MISSING = "job_name_missing"
    JOB_STATE = "job_state"
    DEPENDENCY_FLAG = "dependency_flag"
    # Several rows
    DUPLICATE_ROW = "duplicate_row"
    JOB_WITH_TWO_NAMES = "job_with_two_names"
    JOB_WITH_MIXED_STATES = "job_with_mixed_states"
    JOB_ONLY_SOFT = "job_only_soft"
    JOB_WITHOUT_COMMAND = "job_without_command"
    CONNECTION_MISSING = "connection_missing"
    CATALOG_WITHOUT_FILES = "catalog_without_files"
    TABLE_OF_CATALOG = "table_of_catalog"


#: Codes that never stop. A source that cannot be sensed yet is a warning on a paused row only.
WARNINGS = frozenset(
    {
        Code.NO_ROWS,
        Code.UPSTREAM_KEY_UNUSED,
        Code.JOB_NAME_MISSING,
        Code.JOB_WITH_MIXED_STATES,
        Code.JOB_ONLY_SOFT,
        Code.JOB_WITHOUT_COMMAND,
        Code.SENSOR_ID_WITHOUT_SCHEMA,
        Code.CONNECTION_MISSING,
        Code.CATALOG_WITHOUT_FILES,
        Code.TABLE_OF_CATALOG,
    }
)

#: Printed wherever a person looks for what is not there.
WITHOUT_ROWS = (
    "the controls have no rows, so nothing is probed or started: add a row for each upstream of"
    " each job to seeds/heartbeat_controls.csv, as README.md shows; the next tick loads it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, where it is, and what is allowed."""

    severity: Severity
    code: Code
    #: The line of the file, counted from 1, on which the row starts.
    line: int
    #: The column that it is about; ``None`` when it is about the line or the file.
    column: str | None
    #: One sentence, safe to print: control characters of the file stand escaped.
    message: str


def finding(code: Code, line: int, column: str | None, message: str) -> Finding:
    """Return a finding with the severity that its code always has."""
    severity = Severity.WARNING if code in WARNINGS else Severity.ERROR
    return Finding(severity=severity, code=code, line=line, column=column, message=message)


def has_errors(findings: Iterable[Finding]) -> bool:
    """Return whether anything among the findings stops."""
    return any(each.severity is Severity.ERROR for each in findings)


def shown(text: str) -> str:
    """Return text of the file as a message may show it: quoted, escaped, cut when long."""
    cut = text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
    safe = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in cut
    )
    return f"'{safe}'"


def closest(word: str, allowed: Iterable[str]) -> str | None:
    """Return the legal word that a wrong one resembles, if any does."""
    legal = {each.lower(): each for each in allowed}
    close = get_close_matches(word.strip().lower(), list(legal), n=1, cutoff=0.7)
    return legal[close[0]] if close else None


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``; did you mean x?`` for a word close to a legal one, else nothing."""
    close = closest(word, allowed)
    return f"; did you mean {close}?" if close else ""


def listed(words: Sequence[str], last: str = "or") -> str:
    """Return ``a, b or c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def render_findings(
    findings: Iterable[Finding], file_name: str, *, colour: bool = False
) -> list[str]:
    """Return one plain line per finding: ``file:line: severity: column: message [code]``.

    Args:
        findings: What was found, in the order in which it is to be reported.
        file_name: The name to put before each line number.
        colour: Whether to mark the severity with terminal colours.
    """
    return [_line(each, file_name, colour=colour) for each in findings]


def _line(each: Finding, file_name: str, *, colour: bool) -> str:
    severity: str = each.severity.value
    if colour:
        severity = f"\x1b[{31 if each.severity is Severity.ERROR else 33}m{severity}\x1b[0m"
    column = f"{each.column}: " if each.column else ""
    return f"{file_name}:{each.line}: {severity}: {column}{each.message} [{each.code}]"


def findings_as_json(findings: Iterable[Finding]) -> list[dict[str, str | int | None]]:
    """Return the findings as plain objects for ``--json``."""
    return [
        {
            "severity": each.severity.value,
            "code": each.code.value,
            "line": each.line,
            "column": each.column,
            "message": each.message,
        }
        for each in findings
    ]
