"""Logging: what a line looks like, what it can never hold, and what reaches the console."""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.platform import masking
from harness.platform.logs import Rotation, log_as_tick, set_up_logging
from harness.platform.text import escaped
from tests.support.root_logger import logging_restored

HEAD = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logging_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    with logging_restored():
        yield


def lines(home: Path) -> list[str]:
    return (home / "logs" / "heartbeat.log").read_text().splitlines()


def test_a_line_has_instant_tick_level_logger_and_message(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True)
    with log_as_tick("t-42"):
        logging.getLogger("harness.fire.intents").info("started %s", "job 7")
    assert re.fullmatch(HEAD + " t-42 INFO harness.fire.intents started job 7", lines(tmp_path)[0])


def test_a_log_makes_a_state_directory_for_its_owner_alone(tmp_path: Path) -> None:
    set_up_logging(tmp_path / "home", is_writer=True)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_line_outside_of_ticks_has_a_dash(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True)
    with log_as_tick("t-42"):
        pass
    logging.getLogger("harness").info("after it")
    assert re.fullmatch(HEAD + " - INFO harness after it", lines(tmp_path)[0])


def test_text_from_outside_cannot_begin_a_line_of_its_own(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True)
    logging.getLogger("harness").info("table %s", "a\nb\r\x1b[2J\u2028c\x85d\ud800\u202e")
    assert len(lines(tmp_path)) == 1
    assert lines(tmp_path)[0].endswith(r"table a\nb\r\x1b[2J\u2028c\x85d\ud800\u202e")


def test_ordinary_text_of_any_language_is_left_as_it_is() -> None:
    assert escaped("Größe 数据 ✔") == "Größe 数据 ✔"


def test_every_line_of_a_stack_trace_has_the_tick(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True)
    with log_as_tick("t-42"):
        try:
            raise ValueError("first\nsecond")
        except ValueError:
            logging.getLogger("harness").exception("look failed")
    assert len(lines(tmp_path)) > 3
    assert all(re.match(HEAD + " t-42 ERROR harness ", line) for line in lines(tmp_path))


def test_a_secret_is_in_no_message_and_in_no_stack_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())
    console = io.StringIO()
    set_up_logging(tmp_path, is_writer=True, console=console)
    masking.mask("hunter2-hunter2")
    try:
        raise ValueError("login hunter2-hunter2 refused")
    except ValueError as error:
        logging.getLogger("harness").error("look failed: %s", error, exc_info=True)
    written = "\n".join(lines(tmp_path)) + console.getvalue()
    assert "login *** refused" in written
    assert "hunter2" not in written


def test_the_console_shows_our_warnings_on_one_line_and_nothing_else(tmp_path: Path) -> None:
    console = io.StringIO()
    set_up_logging(tmp_path, is_writer=True, console=console)
    logging.getLogger("harness.tick.engine").info("not shown")
    logging.getLogger("harnessed").error("somebody else's")
    for chatty in ("py4j", "databricks.sdk", "urllib3.connectionpool", "dbt.adapters"):
        logging.getLogger(chatty).error("somebody else's")
    logging.getLogger("harness.tick.engine").warning("one\ntwo")
    assert console.getvalue() == "warning: one\\ntwo\n"


def test_the_console_shows_no_stack_trace(tmp_path: Path) -> None:
    console = io.StringIO()
    set_up_logging(tmp_path, is_writer=True, console=console)
    try:
        raise ValueError
    except ValueError:
        logging.getLogger("harness").exception("look failed")
    assert console.getvalue() == "error: look failed\n"


def test_the_console_has_colour_only_on_a_terminal(tmp_path: Path) -> None:
    console = Terminal()
    set_up_logging(tmp_path, is_writer=True, console=console)
    logging.getLogger("harness").warning("x")
    assert console.getvalue() == "\x1b[33mwarning\x1b[0m: x\n"


def test_no_color_is_respected_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = Terminal()
    set_up_logging(tmp_path, is_writer=True, console=console)
    logging.getLogger("harness").warning("x")
    assert console.getvalue() == "warning: x\n"


def test_the_file_is_rotated_and_only_so_many_are_kept(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True, rotation=Rotation(max_bytes=300, keep=2))
    for number in range(50):
        logging.getLogger("harness").info("line %d", number)
    files = sorted(path.name for path in (tmp_path / "logs").iterdir())
    assert files == ["heartbeat.log", "heartbeat.log.1", "heartbeat.log.2"]
    assert all(path.stat().st_size <= 300 for path in (tmp_path / "logs").iterdir())


def test_a_process_without_the_lock_appends_and_never_rotates(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=False, rotation=Rotation(max_bytes=10))
    for number in range(3):
        logging.getLogger("harness").info("line %d", number)
    assert len(lines(tmp_path)) == 3


def test_setting_up_twice_logs_once(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True)
    set_up_logging(tmp_path, is_writer=True)
    logging.getLogger("harness").info("x")
    assert len(lines(tmp_path)) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_a_full_disk_loses_the_line_and_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "heartbeat.log").symlink_to("/dev/full")
    set_up_logging(tmp_path, is_writer=False)
    logging.getLogger("harness").info("x")
    assert capfd.readouterr() == ("", "")


def test_a_log_that_cannot_be_opened_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file, not a folder")
    with pytest.raises(StateError, match=r"heartbeat\.log cannot be written \(file exists\)"):
        set_up_logging(tmp_path, is_writer=True)


def records(home: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in lines(home)]


def test_a_line_of_json_has_instant_tick_level_logger_and_message(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True, is_json=True)
    with log_as_tick("t-42"):
        logging.getLogger("harness.fire.intents").info("started %s", "job 7")
    [record] = records(tmp_path)
    assert re.fullmatch(HEAD, record.pop("at"))
    assert record == {
        "tick": "t-42",
        "level": "INFO",
        "logger": "harness.fire.intents",
        "message": "started job 7",
    }


def test_text_from_outside_stays_in_its_line_of_json(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True, is_json=True)
    text = 'a"\n{"tick": "forged"}\u2028\ud800'
    logging.getLogger("harness").info("table %s", text)
    [record] = records(tmp_path)
    assert (record["message"], record["tick"]) == (f"table {text}", "-")


def test_a_stack_trace_is_in_the_record_of_json_without_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())
    masking.mask("hunter2-hunter2")
    console = io.StringIO()
    set_up_logging(tmp_path, is_writer=True, is_json=True, console=console)
    try:
        raise ValueError("login hunter2-hunter2 refused")
    except ValueError as error:
        logging.getLogger("harness").error("look failed: %s", error, exc_info=True)
    [record] = records(tmp_path)
    assert record["trace"].endswith("ValueError: login *** refused")
    assert "hunter2" not in json.dumps(record) + console.getvalue()


def test_the_console_has_warnings_in_json_too(tmp_path: Path) -> None:
    console = io.StringIO()
    set_up_logging(tmp_path, is_writer=True, is_json=True, console=console)
    logging.getLogger("harness").info("not shown")
    logging.getLogger("harness").warning("one\ntwo")
    assert json.loads(console.getvalue())["message"] == "one\ntwo"


def test_another_format_replaces_the_one_before(tmp_path: Path) -> None:
    set_up_logging(tmp_path, is_writer=True, is_json=True)
    set_up_logging(tmp_path, is_writer=True)
    logging.getLogger("harness").info("once")
    assert len(lines(tmp_path)) == 1
    assert lines(tmp_path)[0].endswith("INFO harness once")
