"""What `setup` does for real: it fetches jars, writes one, archives Java's classes, parses the project."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import StateError
from harness.platform.dbt import PARSED, Dbt
from harness.platform.spark.setup import (
    ARCHIVE,
    DEFAULTS,
    JARS,
    archive_classes,
    can_use,
    fetch_jars,
    parse_project,
)
from tests.conftest import PROJECT
from tests.support.copied import copy_project

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession


def test_spark_carries_no_settings_of_yarn_and_mapreduce(spark: "SparkSession") -> None:
    hadoop = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    # The first job of Hadoop's loads them into every configuration.
    job = hadoop.mapred.JobConf()
    kept = {setting.getKey().partition(".")[0] for setting in job.iterator()}
    assert "hadoop" in kept
    assert kept.isdisjoint({"yarn", "mapreduce", "mapred"})


#: `make setup` does the same for each environment.
@pytest.mark.long
def test_packages_that_cannot_be_had_are_named_and_the_jars_stay(tmp_path: Path) -> None:
    profile = (PROJECT / "profiles.yml").read_text()
    (tmp_path / "profiles.yml").write_text(profile.replace("delta-spark_4.1_2.13:4", "no-such:0"))
    jar = tmp_path / "jars" / "old.jar"
    jar.parent.mkdir()
    jar.touch()
    with pytest.raises(StateError, match=r"unresolved dependency: io\.delta#no-such"):
        fetch_jars(tmp_path, jar.parent)
    assert jar.exists()


@pytest.mark.long
def test_an_engine_leaves_an_archive_of_classes_that_java_can_use(tmp_path: Path) -> None:
    archive, jars = tmp_path / ARCHIVE.name, Path(sys.prefix) / JARS
    defaults = Path(sys.prefix) / DEFAULTS
    assert archive_classes(PROJECT, jars, archive)
    assert [each.name for each in tmp_path.iterdir()] == [archive.name]
    assert can_use(PROJECT, archive, defaults)
    assert not can_use(PROJECT, archive, tmp_path / "another.jar")
    part = tmp_path / "part.jsa"
    shutil.copy(archive, part)
    part.chmod(0o600)
    with part.open("r+b") as file:
        file.truncate(archive.stat().st_size // 2)
    assert not can_use(PROJECT, part, defaults)


def parsed_for(home: Path, project: Path, parsed: Path | None) -> "tuple[Manifest, int]":
    """Return dbt's manifest of a project at its first tick, and how many files it has parsed."""
    dbt = Dbt(project, home, target="local", before=lambda: None)
    dbt.parsed = parsed
    manifest = dbt.parse()
    report = json.loads((home / "target" / "perf_info.json").read_text())
    return manifest, report["parsed_path_count"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another copy of the project, with a view that has been edited since the set-up."""
    project = tmp_path_factory.mktemp("checkout") / "project"
    copy_project(project)
    with (project / "models" / "fire" / "trigger_set.sql").open("a") as model:
        model.write("-- edited\n")
    return project


def test_a_new_state_directory_parses_what_has_changed_since_the_set_up(
    tmp_path: Path, checkout: Path
) -> None:
    manifest, count = parsed_for(tmp_path, checkout, Path(sys.prefix) / PARSED)
    assert 0 < count < 5
    assert manifest.nodes["model.heartbeat.trigger_set"].raw_code.endswith("-- edited")
    seeds = [node for node in manifest.nodes.values() if node.resource_type == "seed"]
    assert {node.root_path for node in seeds} == {str(checkout)}


@pytest.mark.long
def test_what_it_gets_from_the_set_up_is_what_parsing_everything_comes_to(
    tmp_path: Path, checkout: Path
) -> None:
    kept = tmp_path / PARSED.name
    assert parse_project(PROJECT, kept) == f"parsed, in {kept}"
    some, few = parsed_for(tmp_path / "some", checkout, kept)
    kept.write_bytes(kept.read_bytes()[:-1000])
    everything, all_of_them = parsed_for(tmp_path / "everything", checkout, kept)
    assert few < all_of_them / 40

    def content(manifest: "Manifest") -> dict[str, object]:
        known = manifest.writable_manifest().to_dict()
        del known["metadata"]
        text = json.dumps(known, sort_keys=True, default=str)
        return json.loads(re.sub(r'"created_at": [\d.]+', '"created_at": 0', text))

    assert content(some) == content(everything)


def test_a_project_that_cannot_be_parsed_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: broken\nprofile: heartbeat\nversion: [")
    shutil.copy(PROJECT / "profiles.yml", tmp_path)
    kept = tmp_path / PARSED.name
    kept.touch()
    assert parse_project(tmp_path, kept).startswith("not parsed: dbt parse: ")
    assert not kept.exists()
