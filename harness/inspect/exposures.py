"""Writes the dbt project that the documentation is built from: the models, and an exposure per job.

It is a folder of links with one generated file, so that no generated file is ever beside the
models, where it would soon be out of date.
"""

import io
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ruamel.yaml import YAML

from harness.controls.parse import ControlRow
from harness.errors import StateError
from harness.platform.text import escaped

#: What dbt reads of a project.
_LINKED = ("dbt_project.yml", "selectors.yml", "macros", "tests")
_FILE = Path("models") / "jobs" / "_jobs.yml"
#: What begins an expression for dbt, even in a name.
_JINJA = re.compile(r"\{(?=[{%#])")
#: dbt writes names into a script of its page as they are, where a tag would end the script.
_ANGLES = str.maketrans("<>", "\u2039\u203a")
_PLAIN = frozenset(" .,:/-_")
_LONGEST_NAME = 200


def exposures(rows: Iterable[ControlRow], host: str | None) -> str:
    """Return the exposure of each job: its upstreams, and where it is in the workspace.

    Args:
        rows: The controls.
        host: The address of the workspace, where it is known.
    """
    of_jobs: dict[int, list[ControlRow]] = {}
    for row in rows:
        if row.job_id is not None:
            of_jobs.setdefault(row.job_id, []).append(row)
    listed = [_exposure(job_id, own, host) for job_id, own in sorted(of_jobs.items())]
    stream = io.StringIO()
    YAML(typ="safe").dump({"exposures": listed}, stream)
    return stream.getvalue()


def _exposure(job_id: int, rows: Sequence[ControlRow], host: str | None) -> Mapping[str, object]:
    is_paused = all(row.job_state.upper() == "PAUSED" for row in rows)
    name = next((row.trigger_job_name for row in rows if row.trigger_job_name), str(job_id))
    state = "PAUSED: it starts nothing." if is_paused else "UNPAUSED."
    lines = [
        f"Job {job_id}, {state} It starts with a row of trigger_set, when each of its hard"
        " dependencies has an event of its own.",
        "",
        "| upstream | source | dependency | state | what it is |",
        "|---|---|---|---|---|",
        *(_row(row) for row in rows),
    ]
    found: dict[str, object] = {
        "name": f"job_{job_id}",
        "label": _JINJA.sub("{ ", escaped(name)).translate(_ANGLES)[:_LONGEST_NAME],
        "type": "application",
        "owner": {"name": "seeds/heartbeat_controls.csv"},
        "description": "\n".join(lines),
        "tags": ["job"],
        "depends_on": ["ref('trigger_set')"],
    }
    if not host:
        return found
    address = host if "://" in host else f"https://{host}"
    return {**found, "url": f"{address.rstrip('/')}/jobs/{job_id}"}


def _row(row: ControlRow) -> str:
    is_soft = row.dependency_flag.upper() == "FALSE"
    cells = (
        row.sensor_id,
        row.source,
        "soft" if is_soft else "hard",
        row.job_state.upper(),
        row.asset_description,
    )
    return f"| {' | '.join(map(_in_markdown, cells))} |"


def _in_markdown(text: str) -> str:
    """Return text that means itself in a cell: no mark-up, no HTML, no expression of dbt."""
    return "".join(
        each if each.isalnum() or each in _PLAIN else f"&#{ord(each)};" for each in escaped(text)
    )


def link_project(package: Path, project: Path, folder: Path, text: str) -> None:
    """Make the folder that dbt reads.

    Args:
        package: The folder with the models.
        project: The folder with the seeds that operators edit.
        folder: It is emptied.
        text: The exposures of the jobs.

    Raises:
        StateError: It cannot be written.
    """
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (folder / _FILE).parent.mkdir(parents=True)
        (folder / _FILE).write_text(text, encoding="utf-8")
        for each in (*(package / "models").rglob("*.*"), *(package / "seeds").iterdir()):
            # dbt follows no link to a folder below the one with the models.
            name = each.relative_to(package)
            own = project / name
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to((own if own.exists() else each).resolve())
        for name in map(Path, _LINKED):
            (folder / name).symlink_to((package / name).resolve())
    except OSError as error:
        raise StateError(
            f"{folder} cannot be written ({error.strerror or error}): make room or make it writable"
        ) from error
