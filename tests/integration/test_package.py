"""The package outside of the checkout: the wheel, installed, ticks in a project that it has created.

Everything is one story, because each process starts a JVM.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness import __version__
from harness.controls.header import COLUMNS

CHECKOUT = Path(__file__).resolve().parents[2]
#: What is of the checkout or of another test; where `make setup` has put its files stays known.
NOT_ITS_OWN = {"HEARTBEAT_HOME", "HEARTBEAT_SCHEMA", "PYTHONPATH"}
JOB = """
import os, pathlib
pathlib.Path("taken").write_text(os.environ["HEARTBEAT_EVENTS"])
"""

Answer = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The package in a Python environment of its own, which borrows the packages of this one."""

    wheel: Path
    environment: Path

    def run(self, folder: Path, command: str, *arguments: str) -> Answer:
        """Run a program of the environment in a folder."""
        own = {name: value for name, value in os.environ.items() if name not in NOT_ITS_OWN}
        programs = f"{self.environment / 'bin'}{os.pathsep}{own.get('PATH', os.defpath)}"
        return subprocess.run(
            [self.environment / "bin" / command, *arguments],
            cwd=folder,
            env={**own, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("package")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *built, str(CHECKOUT)], check=True)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    python = str(environment / "bin" / "python")
    place = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([python, "-c", place], capture_output=True, text=True, check=True)
    borrowed = Path(answer.stdout.strip()) / "borrowed.pth"
    borrowed.write_text(f"{sysconfig.get_path('purelib')}\n")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", str(wheel)], check=True)
    return Installed(wheel=wheel, environment=environment)


@pytest.fixture
def project(installed: Installed, tmp_path: Path) -> Iterator[Path]:
    """A new project with one job on a Delta table, which has its first rows."""
    assert installed.run(tmp_path, "heartbeat", "new", "mine", "--empty").returncode == 0
    folder = tmp_path / "mine"
    write_deltalake(folder / "lake" / "orders", pa.table({"id": [1, 2]}))
    row = f"delta_table,{folder}/lake/orders,streaming,Orders,,,7,daily-revenue,UNPAUSED,TRUE"
    (folder / "seeds" / "heartbeat_controls.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")
    (folder / "job.py").write_text(JOB)
    settings = "jobs: {local: {commands: {7: {command: [python, job.py]}}}}\n"
    (folder / "heartbeat.yml").write_text(f"{settings}engine: {{mode: inline}}\n")
    yield folder
    installed.run(folder, "heartbeat", "jobs-api", "--stop")


def tracked(*parts: str) -> set[str]:
    """The files of the checkout below some paths, without what Python and editors leave."""
    found = [path for part in parts for path in ((CHECKOUT / part), *(CHECKOUT / part).rglob("*"))]
    return {
        path.relative_to(CHECKOUT).as_posix()
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_every_file_that_a_run_needs(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    project = tracked(
        *("macros", "models", "seeds", "tests/dbt", "dbt_project.yml", "selectors.yml"),
        *("heartbeat.yml", "profiles.yml", "log4j2.properties"),
    )
    assert names == tracked("harness") | {f"harness/_project/{name}" for name in project}


def test_the_command_is_there_and_needs_a_project(installed: Installed, tmp_path: Path) -> None:
    version = installed.run(tmp_path, "heartbeat", "--version")
    assert version.stdout == f"heartbeat {__version__}\n"
    assert installed.run(tmp_path, "python", "-m", "harness", "--version").stdout == version.stdout
    answer = installed.run(tmp_path, "heartbeat", "validate")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith(f"error: There is no project in {tmp_path} or above it")
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.long(in_sample=True)
def test_a_tick_in_a_new_project_starts_its_job(installed: Installed, project: Path) -> None:
    checked = installed.run(project, "heartbeat", "validate", "--json")
    assert json.loads(checked.stdout) == {"ok": True, "findings": []}
    # As after a clone: the links are not in version control.
    shutil.rmtree(project / "tests")
    for link in [path for path in project.rglob("*") if path.is_symlink()]:
        link.unlink()

    ticked = installed.run(project, "heartbeat", "tick", "--json")

    assert (ticked.returncode, ticked.stderr) == (0, "")
    assert [job["job"] for job in json.loads(ticked.stdout)["fired"]] == ["7"]
    packaged = (project / "models").resolve()
    assert packaged.is_relative_to(installed.environment.resolve())
    listed = installed.run(
        project, "python", "-m", "dbt.cli.main", "--quiet", "ls", "--selector", "fold"
    )
    assert "heartbeat.state.upstream_state" in listed.stdout.splitlines(), listed
