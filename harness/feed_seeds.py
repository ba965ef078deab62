"""Checks the seeds that operators edit beside the controls, before they are loaded into tables."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.controls.retry_policies import RETRY_POLICIES, check_retry_policies
from harness.controls.trigger_checks import check_triggers
from harness.controls.triggers import EVENT_TRIGGERS, TriggersFile, read_triggers
from harness.errors import ControlsError

SCHEDULED_JOBS = Path("seeds") / "scheduled_jobs.csv"
SENSOR_ASSETS = Path("seeds") / "sensor_assets.csv"

#: Each seed with its columns; the first ``keys`` of them have to be there, and name one row.
_COLUMNS = {
    SCHEDULED_JOBS: (("job_id", "note"), 1),
    SENSOR_ASSETS: (("sensor_id", "asset"), 2),
}
OPTIONAL_SEEDS = (*_COLUMNS, EVENT_TRIGGERS, RETRY_POLICIES)
_LARGEST_ID = 2**63 - 1


def check_seeds(project: Path, names: Mapping[int, str]) -> TriggersFile:
    """Raise when an optional seed cannot be loaded; one that has only its header is fine.

    Args:
        project: The folder with ``dbt_project.yml``.
        names: The jobs of the controls, by their names there.

    Returns:
        The triggers.

    Raises:
        ControlsError: A file cannot be read, or has another header, a bad or a repeated row.
    """
    problems = [
        problem
        for seed in _COLUMNS
        if (project / seed).is_file()
        for problem in _problems(project, seed)
    ]
    problems += check_retry_policies(project)
    triggers = read_triggers(project)
    problems += check_triggers(triggers, names)
    if problems:
        raise ControlsError("\n".join(["A seed has errors, so nothing moved:", *problems]))
    return triggers


def _problems(project: Path, seed: Path) -> Iterator[str]:
    columns, keys = _COLUMNS[seed]
    try:
        text = (project / seed).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        yield f"{seed} cannot be read: {error}"
        return
    lines = csv.reader(text.splitlines())
    header = next(lines, [])
    if tuple(header) != columns:
        yield f"{seed}, line 1: the header has to be {','.join(columns)}"
        return
    seen: dict[tuple[str, ...], int] = {}
    for cells in lines:
        if not any(cells):
            continue
        said = _problem(seed, cells, columns) or _repeated(cells[:keys], lines.line_num, seen)
        if said:
            yield f"{seed}, line {lines.line_num}: {said}"


def _problem(seed: Path, cells: list[str], columns: tuple[str, ...]) -> str | None:
    if len(cells) != len(columns):
        return f"{len(cells)} cells; there have to be {len(columns)}: {','.join(columns)}"
    if seed == SCHEDULED_JOBS:
        return None if _is_id(cells[0]) else f"job_id '{cells[0]}' has to be the id of a job"
    empty = [name for name, cell in zip(columns, cells, strict=True) if not cell.strip()]
    return f"{empty[0]} is empty; both columns are needed" if empty else None


def _is_id(text: str) -> bool:
    digits = text.strip()
    return digits.isascii() and digits.isdigit() and 0 < int(digits) <= _LARGEST_ID


def _repeated(cells: list[str], line: int, seen: dict[tuple[str, ...], int]) -> str | None:
    key = tuple(cell.strip() for cell in cells)
    earlier = seen.setdefault(key, line)
    return None if earlier == line else f"it repeats line {earlier}; once is allowed"
