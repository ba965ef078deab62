"""What the wheel is to contain: all that a project outside of the checkout needs."""

import tomllib
from pathlib import Path

from ruamel.yaml import YAML

from harness import __version__

ROOT = Path(__file__).resolve().parents[2]
#: Besides the folders that dbt_project.yml names.
FILES = {
    "dbt_project.yml",
    "heartbeat.yml",
    "log4j2.properties",
    "profiles.yml",
    "selectors.yml",
}
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
DBT_PROJECT = YAML(typ="safe").load((ROOT / "dbt_project.yml").read_text())


def test_each_folder_of_the_dbt_project_is_in_the_wheel() -> None:
    paths = [path for key, paths in DBT_PROJECT.items() if key.endswith("-paths") for path in paths]
    expected = {name: f"harness/_project/{name}" for name in {*paths, *FILES}}
    assert BUILD["targets"]["wheel"]["force-include"] == expected


def test_the_dbt_project_has_the_version_of_the_package() -> None:
    assert DBT_PROJECT["version"] == __version__
