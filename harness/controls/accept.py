"""Puts the seeds that operators edit in force: right rows at once, wrong ones not at all.

dbt loads what is accepted here, never the files of the project themselves, so that an edit during a
tick waits for the next one. Which rows are in force while some are wrong follows one rule: no job
starts without a dependency because the row that names it is wrong.
"""

import contextlib
import csv
import io
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.controls.check import Configured
from harness.controls.findings import Code, Severity
from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import IMPORTED_SENSORS, ImportedSensor, read_imported
from harness.controls.load import CONTROLS, CheckedControls, examine_controls, stop_on_errors
from harness.controls.optional_seeds import (
    ABOUT_SENSORS,
    OPTIONAL_SEEDS,
    SEED_COLUMNS,
    SENSOR_ASSETS,
    is_job,
    seed_lines,
)
from harness.controls.parse import ControlRow, parse_controls
from harness.controls.retry_policies import EVERY_JOB
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.errors import ControlsError, StateError
from harness.platform.files import unwritable, write_atomically
from harness.platform.json_file import load, save
from harness.platform.text import escaped
from harness.store.quarantine import Quarantined, UnreadableFileError, read_regular
from harness.store.rows import Store

log = logging.getLogger(__name__)

SEEDS = (CONTROLS, *OPTIONAL_SEEDS)
#: A seed is read whole.
LARGEST_SEED = 256 * 2**20
_REASONS = "quarantined.json"
#: No row of such a file can be trusted.
_OF_FILE = frozenset(
    {
        Code.NOT_UTF8,
        Code.NUL_BYTE,
        Code.HEADER_MISSING,
        Code.COLUMN_MISSING,
        Code.COLUMN_UNKNOWN,
        Code.COLUMN_REPEATED,
        Code.COLUMN_ORDER,
        Code.UNCLOSED_QUOTE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a seed."""

    line: int
    cells: tuple[str, ...]
    #: The job that it is about, or what stands for one; nothing when that cannot be read.
    job: str | None
    #: What a row that replaces it has, too.
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One row, or one file, that is not put in force."""

    seed: Path
    #: Nothing when it is the file as a whole.
    line: int | None
    reason: str
    #: The jobs that it is about.
    jobs: frozenset[str] = frozenset()
    #: It may be about any other job.
    is_blind: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What is in force, and what is not."""

    checksum: str
    warnings: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]
    has_triggers: bool


class Desk:
    """Accepts the seeds of one project.

    Args:
        project: The folder with ``dbt_project.yml``; only read.
        folder: Keeps what was last accepted, in the same places below it.
        store: Has what was accepted before there was such a folder.
        may_read: Tables that a preprocess query may read besides the new rows.
        configured: What heartbeat.yml has; without it nothing is reported as missing there.
    """

    def __init__(
        self,
        project: Path,
        folder: Path,
        store: Store,
        *,
        may_read: Collection[str] = (),
        configured: Configured | None = None,
    ) -> None:
        self._project = project
        self._folder = folder
        self._store = store
        self._may_read = may_read
        self._configured = configured

    def accept(self, at: datetime, *, allow_mass_removal: bool = False) -> Accepted:
        """Put in force what is right.

        Args:
            at: The instant since which a problem that is new has been there.
            allow_mass_removal: Accept the removal of many control rows.

        Raises:
            ControlsError: Many rows are gone from the file, or nothing was ever accepted and the
                file cannot be read.
            StateError: The state directory cannot be written.
        """
        candidate = self._folder / "candidate"
        checksum, unread = self._copy(candidate)
        checked = examine_controls(
            candidate,
            self._store,
            allow_mass_removal=allow_mass_removal,
            may_read=self._may_read,
            configured=self._configured,
        )
        problems = [*unread, *self._problems(checked, candidate)]
        if not problems:
            # Nothing but a mass removal is left to stop.
            stop_on_errors(checked)
            texts = {seed: _text(candidate / seed) for seed in SEEDS}
        else:
            texts = self._composed(candidate, checked, problems)
        for seed, text in texts.items():
            write_atomically(self._folder / seed, text, is_lasting=True)
        items = self._note(problems, at)
        return Accepted(
            checksum=checksum,
            warnings=tuple(each.message for each in checked.warnings),
            quarantined=items,
            has_triggers=any(seed_rows(EVENT_TRIGGERS, texts[EVENT_TRIGGERS])),
        )

    def _copy(self, candidate: Path) -> tuple[str, list[Problem]]:
        """Copy the seeds, so that all that follows sees the same bytes."""
        problems = []
        digest = sha256()
        for seed in SEEDS:
            data = f"{','.join(_columns(seed))}\n".encode()
            try:
                data = read_seed(self._project / seed)
                digest.update(data)
            except (OSError, UnreadableFileError) as error:
                if seed == CONTROLS or not isinstance(error, FileNotFoundError):
                    problems.append(_file_problem(seed, error))
            try:
                (candidate / seed).parent.mkdir(parents=True, exist_ok=True)
                (candidate / seed).write_bytes(data)
            except OSError as error:
                raise unwritable(candidate / seed, error) from error
        return digest.hexdigest(), problems

    def checksum(self) -> str:
        """Return one checksum of the seeds as they are now; what cannot be read is left out."""
        digest = sha256()
        for seed in SEEDS:
            with contextlib.suppress(OSError, UnreadableFileError):
                digest.update(read_seed(self._project / seed))
        return digest.hexdigest()

    @property
    def quarantined(self) -> tuple[Quarantined, ...]:
        """What is not in force since the seeds were read last."""
        return tuple(quarantined_rows(self._folder))

    def _problems(self, checked: CheckedControls, candidate: Path) -> list[Problem]:
        rows = {row.line: _control(row) for row in checked.controls.rows}
        found = []
        for each in checked.findings:
            if each.severity is Severity.ERROR and each.code is not Code.MASS_REMOVAL:
                row = rows.get(each.line)
                is_row = each.code not in _OF_FILE
                found.append(
                    Problem(
                        seed=CONTROLS,
                        line=each.line if is_row else None,
                        reason=f"line {each.line}: {each.message}",
                        jobs=frozenset({row.job} if row and row.job and is_row else ()),
                        is_blind=not (row and row.job and is_row),
                    )
                )
        for wrong in checked.seed_problems:
            of_seed = seed_rows(wrong.seed, _text(candidate / wrong.seed))
            line = wrong.line if wrong.line != 1 and _is_csv(candidate / wrong.seed) else None
            found.append(
                Problem(
                    seed=wrong.seed,
                    line=line,
                    reason=str(wrong),
                    jobs=_jobs_beside(of_seed, line),
                    is_blind=wrong.seed not in ABOUT_SENSORS and not _is_about_a_job(of_seed, line),
                )
            )
        return found

    def _composed(
        self, candidate: Path, checked: CheckedControls, problems: Sequence[Problem]
    ) -> dict[Path, str]:
        old = {seed: self._in_force(seed) for seed in SEEDS}
        if not old[CONTROLS] and any(p.seed == CONTROLS and p.line is None for p in problems):
            messages = [f"{each.seed}: {each.reason}" for each in problems]
            if len(messages) > 1:
                messages.insert(0, "The controls CSV has errors, so nothing moved:")
            raise ControlsError("\n".join(messages))
        new = {seed: seed_rows(seed, _text(candidate / seed)) for seed in SEEDS}
        merged = in_force(old, new, problems)
        texts = {seed: _as_csv(seed, rows) for seed, rows in merged.items()}
        # What is right on its own may contradict what has stayed in force.
        trial = self._folder / "trial"
        for seed, text in texts.items():
            write_atomically(trial / seed, text)
        again = examine_controls(trial, None, may_read=self._may_read)
        if any(self._problems(again, trial)):
            return {seed: _as_csv(seed, rows) for seed, rows in old.items()}
        return texts

    def _in_force(self, seed: Path) -> list[Row]:
        try:
            return seed_rows(seed, _text(self._folder / seed))
        except FileNotFoundError:
            return self._in_table(seed)

    def _in_table(self, seed: Path) -> list[Row]:
        """Read what a version without this folder, or a process elsewhere, has loaded."""
        try:
            rows = self._store.read(seed.stem)
        except (StateError, KeyError):
            return []
        columns = _columns(seed)
        plain = [
            tuple("" if row.get(name) is None else str(row[name]) for name in columns)
            for row in rows
        ]
        return seed_rows(seed, _text_of(columns, plain))

    def _note(self, problems: Iterable[Problem], at: datetime) -> tuple[Quarantined, ...]:
        """Record what is not in force, each with the instant since which that is so."""
        known = {(each.name, each.reason): each.since for each in quarantined_rows(self._folder)}
        items = []
        for each in problems:
            name = f"{each.seed}:{each.line}" if each.line else str(each.seed)
            reason = escaped(f"{each.reason} {_outcome(each)}")
            items.append(
                Quarantined(
                    name=name,
                    since=known.get((name, reason), at),
                    reason=reason,
                    path=self._project / each.seed,
                )
            )
        content = [
            {
                "name": each.name,
                "since": each.since.isoformat(),
                "reason": each.reason,
                "path": str(each.path),
            }
            for each in items
        ]
        save(self._folder / _REASONS, content)
        for item in items:
            log.warning("%s is quarantined: %s", item.name, item.reason)
        return tuple(items)


def in_force(
    old: Mapping[Path, Sequence[Row]],
    new: Mapping[Path, Sequence[Row]],
    problems: Sequence[Problem],
) -> dict[Path, list[Row]]:
    """Return the rows in force while something is wrong.

    A job with a wrong row, in whichever seed, stays as it was last accepted; one that never was
    waits. While any row is wrong, nothing in force is removed, because what looks removed may be
    what the wrong row was. While it cannot be read which job a wrong row is about, no job that is
    not in force yet is put in force.

    Args:
        old: What was last accepted, by seed.
        new: What the files have now.
        problems: What is wrong with them; not empty.
    """
    held = frozenset(job for each in problems for job in each.jobs)
    known = frozenset(row.job for seed in (CONTROLS, EVENT_TRIGGERS) for row in old[seed])
    is_blind = any(each.is_blind for each in problems)
    result = {}
    for seed in SEEDS:
        wrong = {each.line for each in problems if each.seed == seed}
        right = [
            row
            for row in (() if None in wrong else new[seed])
            if row.line not in wrong and row.job not in held
        ]
        if is_blind and seed not in ABOUT_SENSORS:
            begun = {row.key for row in old[seed]}
            # Of a trigger, a row that cannot be read may be missing.
            is_open = seed != EVENT_TRIGGERS
            right = [row for row in right if row.job in known and (is_open or row.key in begun)]
        result[seed] = _merged(old[seed], right)
    return result


def _merged(old: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Return new rows, and old ones that none of them replaces."""
    owners = {row.key: row.job for row in old}
    rows_of, rows_of_old = Counter(r.key for r in right), Counter(r.key for r in old)
    consumed = [
        row
        for row in right
        # What is in force neither goes to another job nor, as a trigger may, loses a row.
        if owners.get(row.key, row.job) == row.job and rows_of[row.key] >= rows_of_old[row.key]
    ]
    keys = {row.key for row in consumed}
    return [*consumed, *(row for row in old if row.key not in keys)]


def quarantined_rows(folder: Path) -> list[Quarantined]:
    """Return what the last tick that read the seeds did not put in force; never raises."""
    return load(folder / _REASONS, _quarantined_in) or []


def _quarantined_in(content: Any) -> list[Quarantined]:
    return [
        Quarantined(
            name=str(each["name"]),
            since=datetime.fromisoformat(each["since"]),
            reason=str(each["reason"]),
            path=Path(each["path"]),
        )
        for each in content
    ]


def read_seed(path: Path) -> bytes:
    """Read a seed; a link is followed, since it is the operator's, to a regular file.

    Raises:
        OSError: It cannot be read.
        UnreadableFileError: It is no regular file, or too large.
    """
    # `realpath` makes a system call for each part of the path, and ticks read every seed.
    return read_regular(Path(os.path.realpath(path)) if path.is_symlink() else path, LARGEST_SEED)


def seed_rows(seed: Path, text: str) -> list[Row]:
    """Return the rows of a seed that have all their cells."""
    if seed == CONTROLS:
        return [_control(row) for row in parse_controls(text.encode(), seed).rows]
    rows: list[Row] = []
    columns = _columns(seed)
    try:
        for line, cells in seed_lines(text):
            if line > 1 and len(cells) == len(columns) and any(cells):
                rows.append(_optional(seed, line, tuple(map(str.strip, cells))))
    except csv.Error:
        # The check of the file shows where.
        return rows
    return rows


def imported_in_force(folder: Path) -> Mapping[str, ImportedSensor]:
    """Return how far an earlier sensor had come, by control_id, from the seeds in force.

    Args:
        folder: Keeps what was last accepted.
    """
    try:
        text = _text(folder / IMPORTED_SENSORS)
    except OSError:
        return {}
    return read_imported(row.cells for row in seed_rows(IMPORTED_SENSORS, text))


def _control(row: ControlRow) -> Row:
    job = str(row.job_id) if is_job(row.trigger_job_id) else None
    cells = tuple(str(getattr(row, column)) for column in COLUMNS)
    return Row(line=row.line, cells=cells, job=job, key=(row.sensors_key or f"line {row.line}",))


def _optional(seed: Path, line: int, cells: tuple[str, ...]) -> Row:
    named = dict(zip(_columns(seed), cells, strict=True))
    if seed == SENSOR_ASSETS:
        return Row(line=line, cells=cells, job=f"asset of {named['sensor_id']}", key=cells)
    if seed == IMPORTED_SENSORS:
        control_id = named["control_id"]
        return Row(line=line, cells=cells, job=f"import of {control_id}", key=(control_id,))
    job = named["job_id"]
    is_known = is_job(job) or job == EVERY_JOB
    name = str(int(job)) if is_job(job) else job
    key = (named.get("trigger_id", name),)
    return Row(line=line, cells=cells, job=name if is_known else None, key=key)


def _jobs_beside(rows: Sequence[Row], line: int | None) -> frozenset[str]:
    """Return the jobs of a wrong row, and of the rows of the same trigger."""
    keys = {row.key for row in rows if row.line == line}
    return frozenset(row.job for row in rows if row.key in keys and row.job is not None)


def _is_about_a_job(rows: Sequence[Row], line: int | None) -> bool:
    return any(row.line == line and row.job is not None for row in rows)


def _is_csv(path: Path) -> bool:
    try:
        for _ in seed_lines(_text(path)):
            pass
    except csv.Error:
        return False
    return True


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig", errors="replace")


def _columns(seed: Path) -> tuple[str, ...]:
    return COLUMNS if seed == CONTROLS else SEED_COLUMNS[seed]


def _as_csv(seed: Path, rows: Iterable[Row]) -> str:
    return _text_of(_columns(seed), [row.cells for row in rows])


def _text_of(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return stream.getvalue()


def _file_problem(seed: Path, error: Exception) -> Problem:
    reason = f"it cannot be read: {getattr(error, 'strerror', None) or error}"
    return Problem(seed=seed, line=None, reason=reason, is_blind=seed not in ABOUT_SENSORS)


def _outcome(problem: Problem) -> str:
    """Report what is in force instead."""
    if problem.line is None:
        return "(the rows last accepted stay in force, and new jobs wait)"
    if problem.seed in ABOUT_SENSORS:
        return "(the row is left out)"
    if problem.is_blind:
        return "(which job the row is about cannot be read, so new jobs wait; nothing is removed)"
    jobs = ", ".join(sorted(problem.jobs))
    return f"(job {jobs} stays as it was last accepted; if it is new, it waits)"
