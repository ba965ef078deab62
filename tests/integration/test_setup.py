"""What `setup` does with a real Spark: it fetches the jars, writes one and archives Java's classes."""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import StateError
from harness.platform.spark.setup import (
    ARCHIVE,
    DEFAULTS,
    JARS,
    archive_classes,
    can_use,
    fetch_jars,
)
from tests.conftest import PROJECT

if TYPE_CHECKING:
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
