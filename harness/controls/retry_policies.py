"""Checks ``seeds/retry_policies.csv``: whose failed runs start again automatically, and when."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.controls.cells import LARGEST_BIGINT
from harness.controls.findings import did_you_mean, listed, shown

RETRY_POLICIES = Path("seeds") / "retry_policies.csv"

COLUMNS = (
    "job_id",
    "max_attempts",
    "backoff_minutes",
    "backoff_factor",
    "max_backoff_minutes",
    "retry_on",
)
#: Stands for all jobs without a row of their own.
EVERY_JOB = "*"
#: What a run may have ended as to be started again. Of what was refused the parameters are wrong;
#: of what is parked or lost it is unknown whether it does not run yet.
OUTCOMES = ("FAILED", "TIMED_OUT", "SKIPPED", "CANCELED")

_MOST_ATTEMPTS = 100
_MINUTES_OF_A_YEAR = 525_600
_LARGEST_FACTOR = 10

_WHOLE = re.compile(r"[1-9][0-9]{0,18}")
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")


def retry_problems(text: str) -> Iterator[tuple[int, str]]:
    """Return line and sentence of everything that is wrong with the text of the file."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    first: dict[str, int] = {}
    began = 1
    try:
        if tuple(next(lines, [])) != COLUMNS:
            yield 1, f"the header has to be {','.join(COLUMNS)}"
            return
        began = lines.line_num + 1
        for cells in lines:
            if any(cells):
                yield from ((began, message) for message in _of_line(cells, began, first))
            began = lines.line_num + 1
    except csv.Error as error:
        yield began, f"it cannot be read as CSV ({error}); check its quotes"


def _of_line(cells: list[str], line: int, first: dict[str, int]) -> Iterator[str]:
    if len(cells) != len(COLUMNS):
        yield f"{len(cells)} cells; there have to be {len(COLUMNS)}: {','.join(COLUMNS)}"
        return
    row = dict(zip(COLUMNS, map(str.strip, cells), strict=True))
    earlier = first.setdefault(row["job_id"], line)
    if earlier != line:
        yield f"job_id: it repeats line {earlier}; one row for each job is allowed"
    for column, problem in _of_cells(row):
        if problem:
            yield f"{column}: {problem}"


def _of_cells(row: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    yield "job_id", _job_problem(row["job_id"])
    yield "max_attempts", _attempts_problem(row["max_attempts"])
    yield "backoff_minutes", _number_problem(row["backoff_minutes"], 0, _MINUTES_OF_A_YEAR)
    yield "backoff_factor", _number_problem(row["backoff_factor"] or "2", 1, _LARGEST_FACTOR)
    yield "max_backoff_minutes", _longest_problem(row)
    for word in row["retry_on"].split():
        yield "retry_on", _outcome_problem(word)


def _job_problem(job_id: str) -> str | None:
    if job_id == EVERY_JOB or (_WHOLE.fullmatch(job_id) and int(job_id) <= LARGEST_BIGINT):
        return None
    return (
        f"{shown(job_id)} is not a job id; allowed is an integer from 1 to {LARGEST_BIGINT}, or"
        f" {EVERY_JOB} for all jobs without a row of their own"
    )


def _attempts_problem(attempts: str) -> str | None:
    if _WHOLE.fullmatch(attempts) and int(attempts) <= _MOST_ATTEMPTS:
        return None
    return (
        f"{shown(attempts)} is not a number of attempts; allowed is an integer from 1 (never again"
        f" by itself) to {_MOST_ATTEMPTS}"
    )


def _number_problem(number: str, least: int, largest: int) -> str | None:
    if _NUMBER.fullmatch(number) and least <= float(number) <= largest:
        return None
    return f"{shown(number)} is not allowed; allowed is a number from {least} to {largest}"


def _longest_problem(row: Mapping[str, str]) -> str | None:
    longest, first = row["max_backoff_minutes"], row["backoff_minutes"]
    if not longest:
        return None
    problem = _number_problem(longest, 0, _MINUTES_OF_A_YEAR)
    if problem or not _NUMBER.fullmatch(first) or float(longest) >= float(first):
        return problem
    return f"{shown(longest)} is less than backoff_minutes, the first wait; allowed is no less"


def _outcome_problem(word: str) -> str | None:
    if word.upper() in OUTCOMES:
        return None
    return (
        f"{shown(word)} is not allowed; allowed are {listed(OUTCOMES, 'and')}, with spaces between"
    ) + did_you_mean(word, OUTCOMES)
