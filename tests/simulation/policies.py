"""Retry policies: as the operator writes them, as the models read them, and what they allow."""

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, cast

from harness.controls.retry_policies import EVERY_JOB, RETRY_POLICIES

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One line of the CSV, every cell filled in."""

    job_id: str
    max_attempts: int
    backoff_minutes: int
    backoff_factor: int
    max_backoff_minutes: int
    retry_on: str

    @classmethod
    def from_cells(cls, cells: Row) -> Self:
        """Read a line of the table of the seed."""
        texts = {each.name: str(cells[each.name]) for each in fields(cls)}
        whole = {name: int(text) for name, text in texts.items() if text.isdecimal()}
        return cls(**{**texts, **whole, "job_id": texts["job_id"]})  # type: ignore[arg-type]

    def retry_at(self, failed: Row) -> datetime | None:
        """Return when a failed step's run starts again by itself, if it does."""
        attempt = cast(int, failed["attempt"])
        if attempt >= self.max_attempts or failed["run_status"] not in self.retry_on.split():
            return None
        minutes = min(
            self.backoff_minutes * self.backoff_factor ** (attempt - 1), self.max_backoff_minutes
        )
        recorded = cast(datetime, failed["recorded_at"])
        ended = cast(datetime | None, failed["ended_at"]) or recorded
        return min(ended, recorded) + timedelta(minutes=minutes)


def policy_of(policies: Iterable[Policy], job_id: object) -> Policy | None:
    """Return the policy of a job: its own row, or the one for all."""
    by_job = {each.job_id: each for each in policies}
    return by_job.get(str(job_id)) or by_job.get(EVERY_JOB)


def draw(chance: random.Random, jobs: Sequence[int]) -> list[Policy]:
    """Draw what an operator may write."""
    named = [EVERY_JOB] * chance.choice((0, 1)) + [
        str(job) for job in jobs if chance.random() < 0.5
    ]
    return [
        Policy(
            job_id=job_id,
            max_attempts=chance.choice((1, 2, 3, 3, 5)),
            backoff_minutes=chance.choice((0, 0, 1, 1, 10)),
            backoff_factor=chance.choice((1, 2, 3)),
            max_backoff_minutes=60,
            retry_on=chance.choice(
                ("FAILED TIMED_OUT SKIPPED", "FAILED TIMED_OUT SKIPPED CANCELED", "FAILED")
            ),
        )
        for job_id in named
    ]


def write(project: Path, policies: Iterable[Policy]) -> None:
    """Save the CSV as an operator does."""
    names = [each.name for each in fields(Policy)]
    with (project / RETRY_POLICIES).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([getattr(each, name) for name in names] for each in policies)


def read(project: Path) -> list[dict[str, str]]:
    """Read the lines of the CSV, as dbt does when it feeds them."""
    path = project / RETRY_POLICIES
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
