"""Trigger files: what counts as a new one."""

import base64
import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from harness.config.sources import FirstSight
from harness.events.event import TableFormat
from harness.platform.storage import LocalStorage, Storages
from harness.sense.sources.trigger_file import TriggerFileProbe
from harness.store.work_lists import Upstream
from tests.support.golden import AT
from tests.support.hostile import PRINTABLE, UNSEEN
from tests.support.watching import Watching

#: What a file system lets a name hold: anything but a slash and a NUL.
FILE_NAMES = [
    text.replace("/", "_").replace("\0", "_").lstrip("._") for text in (*PRINTABLE, *UNSEEN)
]


class Folder(Watching):
    """A trigger folder, which is probed again and again."""

    def __init__(self, root: Path, sensor_id: str = "my_trigger", **more: object) -> None:
        self.root = root
        self.path = root / "my_trigger"
        self.path.mkdir(parents=True, exist_ok=True)
        self.upstream = Upstream(
            upstream_id="u",
            source="trigger_file",
            sensor_id=sensor_id,
            read_type="streaming",
            **more,  # type: ignore[arg-type]
        )
        self.restart()

    def restart(self) -> None:
        self.probe = TriggerFileProbe(Storages(LocalStorage(), LocalStorage()), str(self.root))

    def put(self, name: str, text: str = "x", seconds: int = 100) -> Path:
        file = self.path / name
        file.write_text(text)
        os.utime(file, (seconds, seconds))
        return file

    def reported(self) -> list[tuple[str, str]]:
        result = self.probe_once()
        assert result.failure is None, result.failure
        return [(event.tags["path"], event.operation_type.value) for event in result.events]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "triggers")


@pytest.fixture
def known(folder: Folder) -> Folder:
    folder.put("go")
    folder.probe_once()
    return folder


NEW = [("my_trigger/go", "APPEND")]


def test_first_sight_of_an_empty_folder_is_silent(folder: Folder) -> None:
    assert folder.reported() == []


def test_first_sight_reports_each_file_that_is_there(folder: Folder) -> None:
    folder.put("b", seconds=1)
    folder.put("a", seconds=2)

    assert folder.reported() == [("my_trigger/b", "APPEND"), ("my_trigger/a", "APPEND")]


def test_first_sight_as_baseline_is_silent_and_what_follows_is_reported(tmp_path: Path) -> None:
    folder = Folder(tmp_path, on_first_sight=FirstSight.BASELINE)
    folder.put("old")
    first = folder.reported()
    folder.put("go")

    assert (first, folder.reported()) == ([], NEW)


def test_a_new_file_is_an_append(folder: Folder) -> None:
    folder.probe_once()
    folder.put("go")

    assert folder.reported() == NEW


def test_a_file_is_reported_once(known: Folder) -> None:
    assert known.reported() == []


def test_an_idle_probe_has_the_very_same_cursor(known: Folder) -> None:
    assert known.probe_once().position == known.upstream.position


def test_a_restart_reports_nothing_again(known: Folder) -> None:
    known.restart()

    assert known.reported() == []


def test_a_file_written_again_at_the_same_size_is_an_update(known: Folder) -> None:
    known.put("go", "y", seconds=101)

    assert known.reported() == [("my_trigger/go", "UPDATE")]


def test_a_file_written_again_within_the_same_second_is_an_update(known: Folder) -> None:
    os.utime(known.path / "go", ns=(0, 100_000_000_001))

    assert known.reported() == [("my_trigger/go", "UPDATE")]


def test_an_update_follows_the_files_former_identity(folder: Folder) -> None:
    folder.put("go")
    [first] = folder.probe_once().events
    folder.put("go", "more")
    [second] = folder.probe_once().events

    assert (first.prev_snapshot_id, second.prev_snapshot_id) == (None, first.snapshot_id)


def test_a_deletion_is_no_event(known: Folder) -> None:
    (known.path / "go").unlink()

    assert known.reported() == []


def test_a_file_deleted_and_put_back_is_new(known: Folder) -> None:
    (known.path / "go").unlink()
    known.probe_once()
    known.put("go")

    assert known.reported() == NEW


def test_a_file_put_back_is_another_event_than_before(folder: Folder) -> None:
    folder.put("go")
    [first] = folder.probe_once().events
    (folder.path / "go").unlink()
    folder.probe_once()
    folder.put("go")
    [again] = folder.probe_once().events

    assert first.id_at("u") != again.id_at("u")


def test_the_same_file_probed_twice_has_the_same_event_id(folder: Folder) -> None:
    folder.put("go")
    ids = set()
    for _ in range(2):
        folder.restart()
        [result] = folder.probe.probe([folder.upstream], at=AT)
        ids |= {event.id_at("u") for event in result.events}

    assert len(ids) == 1


def test_several_files_in_one_folder_are_an_event_each(known: Folder) -> None:
    known.put("a", seconds=5)
    known.put("b", seconds=5)

    assert known.reported() == [("my_trigger/a", "APPEND"), ("my_trigger/b", "APPEND")]


def test_a_file_of_the_future_does_not_hide_a_later_one(known: Folder) -> None:
    known.put("future", seconds=4_000_000_000)
    first = known.reported()
    known.put("normal", seconds=200)

    assert (first, known.reported()) == (
        [("my_trigger/future", "APPEND")],
        [("my_trigger/normal", "APPEND")],
    )


@pytest.mark.parametrize("name", ["_SUCCESS", ".go", "go.tmp", "go.crc", "go._COPYING_"])
def test_files_that_are_being_written_are_not_reported(known: Folder, name: str) -> None:
    known.put(name)

    assert known.reported() == []


def test_an_event_contains_what_a_reader_of_files_needs(folder: Folder) -> None:
    folder.put("go", "12345", seconds=7)
    [event] = folder.probe_once().events

    assert (event.table, event.table_format, event.snapshot_ts, event.tags["size"]) == (
        "my_trigger",
        TableFormat.FILE,
        7000,
        "5",
    )


def test_a_missing_folder_is_a_failure_in_one_sentence(folder: Folder) -> None:
    folder.path.rmdir()

    assert folder.probe_once().failure == (
        "The trigger folder my_trigger cannot be sensed: "
        f"the folder my_trigger does not exist under {folder.root}; create it."
    )


def test_a_folder_that_comes_back_is_no_first_sight(known: Folder) -> None:
    known.path.rename(known.root / "away")
    failed = known.probe_once().failure
    (known.root / "away").rename(known.path)

    assert (failed is None, known.reported()) == (False, [])


@pytest.mark.parametrize("name", ["../secret", "/etc", "a/../../b", "", ".."])
def test_a_name_that_leads_out_of_the_root_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").mkdir()

    failure = Folder(tmp_path / "triggers", sensor_id=name).probe_once().failure

    assert failure is not None and "leads out of the root" in failure


@pytest.mark.parametrize("name", [*FILE_NAMES, b"half \xff\xfe".decode(errors="surrogateescape")])
def test_a_file_of_any_name_is_one_event_that_a_table_can_hold(folder: Folder, name: str) -> None:
    folder.put(name)
    [(path, operation)] = folder.reported()
    assert operation == "APPEND"
    assert path.startswith("my_trigger/")
    assert path.encode().decode() == path
    assert folder.reported() == []


def test_a_link_that_leads_out_of_the_root_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "triggers", sensor_id="link")
    (tmp_path / "secret").mkdir()
    (folder.root / "link").symlink_to(tmp_path / "secret")

    failure = folder.probe_once().failure

    assert failure is not None and "leads out of the root" in failure


def test_a_link_on_the_way_that_leads_out_of_the_root_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "triggers", sensor_id="link/daily")
    (tmp_path / "secret" / "daily").mkdir(parents=True)
    (folder.root / "link").symlink_to(tmp_path / "secret")

    failure = folder.probe_once().failure

    assert failure is not None and "leads out of the root" in failure


def test_a_link_that_stays_below_the_root_is_followed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "triggers", sensor_id="link")
    (folder.root / "daily").mkdir()
    (folder.root / "daily" / "go").write_text("x")
    (folder.root / "link").symlink_to(folder.root / "daily")

    assert folder.reported() == [("link/go", "APPEND")]


def test_a_folder_in_a_folder_may_be_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path, sensor_id="my_trigger/daily")
    (folder.path / "daily").mkdir()
    (folder.path / "daily" / "go").write_text("x")

    assert folder.reported() == [("my_trigger/daily/go", "APPEND")]


def test_a_preprocess_query_has_no_rows_to_run_over(tmp_path: Path) -> None:
    folder = Folder(tmp_path, preprocess_query="select * from sensor_new_data")

    failure = folder.probe_once().failure

    assert failure is not None and "preprocess_query must be empty" in failure


def test_the_position_of_many_files_stays_small(folder: Folder) -> None:
    for number in range(2000):
        folder.put(f"a file with quite a long name, number {number}")

    cursor = folder.probe_once().position

    assert cursor is not None and len(cursor) < 2000 * 28 + 100


#: The digests of these names begin alike: those that version 1 of the cursor kept are equal.
ALIKE = ("file_90097.csv", "file_313481.csv")


def position_of_version_1(folder: Folder, *names: str) -> str:
    """Return the cursor of version 1: 6 characters for a name, 12 for an identity."""
    entries = {}
    for name in names:
        found = (folder.path / name).stat()
        identity = f"{folder.path}/{name}\x1f{found.st_size}\x1f{found.st_mtime_ns}"
        entries[digest(name, 6)] = digest(identity, 12)
    packed = "".join(name + entries[name] for name in sorted(entries))
    return json.dumps({"v": 1, "departures": 3, "files": packed}, separators=(",", ":"))


def digest(text: str, size: int) -> str:
    return base64.urlsafe_b64encode(sha256(text.encode()).digest()).decode()[:size]


@pytest.mark.parametrize(("first", "second"), [ALIKE, ALIKE[::-1]])
def test_names_whose_digests_begin_alike_are_two_files(
    folder: Folder, first: str, second: str
) -> None:
    steps = []
    for name in (first, second, "other"):
        folder.put(name)
        steps.append(folder.reported())
    folder.put(first, "more")
    steps.append(folder.reported())
    (folder.path / second).unlink()
    steps.append(folder.reported())
    folder.put(second)
    steps.append(folder.reported())

    assert steps == [
        [(f"my_trigger/{first}", "APPEND")],
        [(f"my_trigger/{second}", "APPEND")],
        [("my_trigger/other", "APPEND")],
        [(f"my_trigger/{first}", "UPDATE")],
        [],
        [(f"my_trigger/{second}", "APPEND")],
    ]


def test_a_position_of_version_1_goes_on_without_an_event(folder: Folder) -> None:
    for name in ("a", "b", "c"):
        folder.put(name)
    written = position_of_version_1(folder, "a", "b", "c")
    folder.upstream = replace(folder.upstream, position=written)

    result = folder.probe_once()

    assert (result.failure, result.events, result.position) == (None, (), written)


def test_after_a_cursor_of_version_1_only_what_changed_is_reported(folder: Folder) -> None:
    for name in ("a", "b", "c"):
        folder.put(name)
    former = digest(f"{folder.path}/a\x1f1\x1f100000000000", 12)
    written = position_of_version_1(folder, "a", "b", "c")
    folder.upstream = replace(folder.upstream, position=written)
    folder.put("a", "more")
    folder.put("d", seconds=200)
    (folder.path / "c").unlink()

    result = folder.probe_once()

    assert [
        (event.tags["path"], event.operation_type.value, event.prev_snapshot_id, event.lineage)
        for event in result.events
    ] == [
        ("my_trigger/a", "UPDATE", former, "4"),
        ("my_trigger/d", "APPEND", None, "4"),
    ]
    assert folder.reported() == []


@pytest.mark.parametrize(("known", "lost"), [ALIKE, ALIKE[::-1]])
def test_a_file_that_version_1_took_for_another_is_reported_once_and_is_no_update(
    folder: Folder, known: str, lost: str
) -> None:
    folder.put(known)
    folder.put(lost, "more")
    folder.upstream = replace(folder.upstream, position=position_of_version_1(folder, known))

    assert (folder.reported(), folder.reported()) == ([(f"my_trigger/{lost}", "APPEND")], [])


@pytest.mark.parametrize(("first", "second"), [ALIKE, ALIKE[::-1]])
def test_of_names_that_version_1_took_for_one_none_is_lost_when_both_are_replaced(
    folder: Folder, first: str, second: str
) -> None:
    folder.put(first)
    folder.put(second)
    folder.upstream = replace(folder.upstream, position=position_of_version_1(folder, first))
    folder.put(first, "more")
    folder.put(second, "more")

    assert {path for path, _ in folder.reported()} == {
        f"my_trigger/{first}",
        f"my_trigger/{second}",
    }
    assert folder.reported() == []


def test_a_position_of_another_version_of_heartbeat_is_a_failure(known: Folder) -> None:
    known.upstream = replace(known.upstream, position="{}")

    failure = known.probe_once().failure

    assert failure is not None and "another version of Heartbeat" in failure
