"""Copies what a project needs for ticking, so that tests can change it and leave the checkout alone."""

import shutil
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PARTS = (
    "dbt_project.yml",
    "profiles.yml",
    "selectors.yml",
    "log4j2.properties",
    "harness",
    "macros",
    "models",
    "seeds",
    "tests/dbt",
)


def copy_project(target: Path) -> None:
    """Copy the project's parts into a folder that is made for them."""
    for part in PARTS:
        source, copied = PROJECT / part, target / part
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copied)
