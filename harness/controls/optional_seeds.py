"""Checks the seeds that operators edit beside the controls, before they are loaded into tables."""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.controls import imported_sensors, retry_policies
from harness.controls.imported_sensors import IMPORTED_SENSORS
from harness.controls.retry_policies import RETRY_POLICIES, retry_problems
from harness.controls.triggers.check import trigger_problems
from harness.controls.triggers.parse import COLUMNS, EVENT_TRIGGERS, TriggersFile, parse_triggers

SCHEDULED_JOBS = Path("seeds") / "scheduled_jobs.csv"
SENSOR_ASSETS = Path("seeds") / "sensor_assets.csv"

#: Each seed with its columns; the first ``keys`` of them have to be there, and name one row.
_COLUMNS = {
    SCHEDULED_JOBS: (("job_id", "note"), 1),
    SENSOR_ASSETS: (("sensor_id", "asset"), 2),
    IMPORTED_SENSORS: (imported_sensors.COLUMNS, 1),
}
#: Seeds whose rows are about a control row, and decide nothing about which jobs may start.
ABOUT_SENSORS = frozenset({SENSOR_ASSETS, IMPORTED_SENSORS})
OPTIONAL_SEEDS = (*_COLUMNS, EVENT_TRIGGERS, RETRY_POLICIES)
#: The columns of every optional seed.
SEED_COLUMNS: Mapping[Path, tuple[str, ...]] = {
    **{seed: columns for seed, (columns, _) in _COLUMNS.items()},
    EVENT_TRIGGERS: COLUMNS,
    RETRY_POLICIES: retry_policies.COLUMNS,
}
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedProblem:
    """One thing that is wrong with an optional seed."""

    seed: Path
    #: The line on which the row starts; nothing when it is about the file as a whole.
    line: int | None
    said: str

    def __str__(self) -> str:
        """Return it as one line for a person."""
        where = f"{self.seed}, line {self.line}:" if self.line else f"{self.seed}"
        return f"{where} {self.said}"


def examine_seeds(
    project: Path, names: Mapping[int, str]
) -> tuple[TriggersFile, list[SeedProblem]]:
    """Return the triggers, and everything that is wrong with the optional seeds.

    Args:
        project: The folder with ``dbt_project.yml``.
        names: The jobs of the controls, by their names there.
    """
    problems: list[SeedProblem] = []
    found = TriggersFile()
    for seed in OPTIONAL_SEEDS:
        if not (project / seed).is_file():
            continue
        try:
            text = (project / seed).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            message = f"cannot be read: {error}"
            problems.append(SeedProblem(seed=seed, line=None, said=message))
            continue
        if seed == EVENT_TRIGGERS:
            found = parse_triggers(text)
            messages = trigger_problems(found, names)
        elif seed == RETRY_POLICIES:
            messages = [*retry_problems(text)]
        else:
            messages = [*_problems(seed, text)]
        problems += [SeedProblem(seed=seed, line=line, said=message) for line, message in messages]
    return found, problems


def seed_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Return the line on which each row starts, and its cells; the header is one of them.

    Raises:
        csv.Error: It is no CSV from there on.
    """
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    began = 1
    for cells in lines:
        yield began, cells
        began = lines.line_num + 1


def _problems(seed: Path, text: str) -> Iterator[tuple[int, str]]:
    columns, keys = _COLUMNS[seed]
    seen: dict[tuple[str, ...], int] = {}
    line = 0
    try:
        for line, cells in seed_lines(text or "\n"):
            if line == 1 and tuple(cells) != columns:
                yield 1, f"the header has to be {','.join(columns)}"
                return
            if line == 1 or not any(cells):
                continue
            message = _problem(seed, cells, columns) or _repeated(cells[:keys], line, seen)
            if not message and seed == IMPORTED_SENSORS and cells[1].strip():
                message = _repeated(["sensor_id", cells[1]], line, seen)
            if message:
                yield line, message
    except csv.Error as error:
        yield line + 1, f"it cannot be read as CSV ({error}); check its quotes"


def _problem(seed: Path, cells: list[str], columns: tuple[str, ...]) -> str | None:
    if len(cells) != len(columns):
        return f"{len(cells)} cells; there have to be {len(columns)}: {','.join(columns)}"
    if seed == IMPORTED_SENSORS:
        return imported_sensors.problem_in(cells)
    if seed == SCHEDULED_JOBS:
        return None if is_job(cells[0]) else f"job_id '{cells[0]}' has to be the id of a job"
    empty = [name for name, cell in zip(columns, cells, strict=True) if not cell.strip()]
    return f"{empty[0]} is empty; both columns are needed" if empty else None


def is_job(text: str) -> bool:
    """Return whether a cell is the id of a job."""
    digits = text.strip()
    return digits.isascii() and digits.isdigit() and 0 < int(digits) <= _LARGEST_ID


def _repeated(cells: list[str], line: int, seen: dict[tuple[str, ...], int]) -> str | None:
    key = tuple(cell.strip() for cell in cells)
    earlier = seen.setdefault(key, line)
    return None if earlier == line else f"it repeats line {earlier}; once is allowed"
