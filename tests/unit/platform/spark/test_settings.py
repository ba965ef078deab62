"""What Spark's settings in the profile come to, without a Spark."""

import shlex
from pathlib import Path

import pytest

from harness.platform.spark.session import JAVA_COMPILER, engine_settings, session_settings

PROJECT = Path(__file__).resolve().parents[4]
OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(("is_resident", "compiler"), [(False, "1"), (True, "4")])
def test_only_the_engine_of_a_resident_process_has_both_compilers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_resident: bool, compiler: str
) -> None:
    monkeypatch.setenv(JAVA_COMPILER, "2")
    options = engine_settings(PROJECT, tmp_path, is_resident=is_resident)[OPTIONS]
    assert options.endswith(f"-XX:TieredStopAtLevel={compiler}")


def test_an_engine_has_its_tables_in_its_state_directory(tmp_path: Path) -> None:
    settings = engine_settings(PROJECT, tmp_path)
    assert settings["spark.sql.warehouse.dir"] == f"{tmp_path}/warehouse"
    assert f"{tmp_path}/metastore" in settings["spark.hadoop.javax.jdo.option.ConnectionURL"]


def test_java_prints_nothing_of_its_own_where_answers_stand() -> None:
    options = session_settings(PROJECT)[OPTIONS].split()
    # The first takes away what Java logs to standard output by itself.
    assert [each for each in options if each.startswith("-Xlog")] == [
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        # An archive of classes that does not fit is ignored without a message.
        "-Xlog:cds*=off:stderr",
    ]


@pytest.mark.parametrize("archive", ["", "/a folder/classes.jsa"])
def test_java_starts_from_an_archive_of_classes_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, archive: str
) -> None:
    monkeypatch.setenv("HEARTBEAT_CLASS_ARCHIVE", archive)
    options = shlex.split(session_settings(PROJECT)[OPTIONS])
    wanted = [f"-XX:SharedArchiveFile={archive}"] if archive else []
    assert [each for each in options if "Archive" in each] == wanted


@pytest.mark.parametrize("jar", ["", "/a folder/hadoop-defaults.jar"])
def test_hadoops_defaults_are_searched_for_first_in_the_jar_of_the_set_up(
    monkeypatch: pytest.MonkeyPatch, jar: str
) -> None:
    monkeypatch.setenv("HEARTBEAT_HADOOP_DEFAULTS", jar)
    assert session_settings(PROJECT)["spark.driver.extraClassPath"] == jar


def test_java_has_as_much_room_for_compiled_code_with_one_compiler_as_with_both() -> None:
    assert "-XX:ReservedCodeCacheSize=240m" in session_settings(PROJECT)[OPTIONS].split()


def test_java_does_not_collect_its_heap_because_it_loads_the_classes_of_spark() -> None:
    assert "-XX:MetaspaceSize=400m" in session_settings(PROJECT)[OPTIONS].split()
