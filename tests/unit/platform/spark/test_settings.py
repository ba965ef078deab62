"""What Spark's settings in the profile come to, without a Spark."""

import shlex
from pathlib import Path

import pytest

from harness.platform.spark.session import JAVA_COMPILER, let_java_compile_all, session_settings

PROJECT = Path(__file__).resolve().parents[4]
OPTIONS = "spark.driver.extraJavaOptions"


def test_a_process_that_ends_soon_has_no_second_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(JAVA_COMPILER, raising=False)
    assert session_settings(PROJECT)[OPTIONS].endswith("-XX:TieredStopAtLevel=1")


def test_a_process_that_stays_has_both_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: dict[str, str] = {}
    let_java_compile_all(reported)
    monkeypatch.setenv(JAVA_COMPILER, reported[JAVA_COMPILER])
    assert session_settings(PROJECT)[OPTIONS].endswith("-XX:TieredStopAtLevel=4")


def test_whoever_names_a_compiler_gets_it() -> None:
    reported = {JAVA_COMPILER: "1"}
    let_java_compile_all(reported)
    assert reported == {JAVA_COMPILER: "1"}


def test_java_says_nothing_of_its_own_where_answers_stand() -> None:
    options = session_settings(PROJECT)[OPTIONS].split()
    # The first takes away what Java logs to standard output by itself.
    assert [each for each in options if each.startswith("-Xlog")] == [
        "-Xlog:disable",
        "-Xlog:all=warning:stderr",
        # An archive of classes that does not fit is left alone without a word.
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


def test_java_has_as_much_room_for_compiled_code_with_one_compiler_as_with_both() -> None:
    assert "-XX:ReservedCodeCacheSize=240m" in session_settings(PROJECT)[OPTIONS].split()
