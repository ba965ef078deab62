"""The contract of the Jobs API once more, with the oldest SDK that is admitted.

The lock has the newest one, with which all other tests run.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
#: Everything that talks to a workspace through the SDK.
CASES = (
    "test_jobs_api.py",
    "test_jobs_api_faults.py",
    "test_jobs_api_network.py",
    "test_jobs_api_server.py",
    "test_workspace_secrets.py",
)


@pytest.fixture(scope="module")
def oldest() -> str:
    """The version, as `pyproject.toml` admits it."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    (wanted,) = (each for each in project["dependencies"] if each.startswith("databricks-sdk"))
    lower = re.search(r">=([\d.]+)", wanted)
    assert lower, wanted
    return lower[1]


@pytest.fixture(scope="module")
def with_oldest(oldest: str) -> dict[str, str]:
    """The environment of a process that has this SDK instead of the installed one."""
    folder = Path(sys.prefix, "share", "heartbeat", "services", f"databricks-sdk-{oldest}")
    if not folder.is_dir():
        _install(oldest, folder)
    return {**os.environ, "PYTHONPATH": str(folder)}


def _install(version: str, folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(
        [
            *(Path(sys.prefix, "bin", "uv"), "pip", "install", "--quiet", "--no-deps"),
            *("--python", sys.executable, "--target", part, f"databricks-sdk=={version}"),
        ],
        env={**os.environ, "UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        why = next(iter(done.stderr.strip().splitlines()), "no reason was given")
        pytest.skip(f"databricks-sdk {version} cannot be had here: {why}.")
    part.rename(folder)


def test_the_oldest_admitted_sdk_keeps_the_contract(
    oldest: str, with_oldest: dict[str, str]
) -> None:
    used = subprocess.run(
        [sys.executable, "-c", "from databricks.sdk import version; print(version.__version__)"],
        env=with_oldest,
        capture_output=True,
        text=True,
        check=True,
    )
    assert used.stdout.strip().startswith(f"{oldest}.")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider"),
            *(Path(__file__).parent / case for case in CASES),
        ],
        cwd=PROJECT,
        env=with_oldest,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert "passed" in done.stdout
