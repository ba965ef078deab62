"""Where an installation lives: its folder, its disk, its lock, its metastore and its version."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.inspect.doctor.findings import Level
from harness.inspect.doctor.state_dir import (
    disk_space,
    lock,
    metastore,
    room_left,
    state_directory,
    version,
)
from harness.platform.mounts import file_system_of, is_network, network_warning
from harness.store.writer.lock import ProcessLock
from harness.tick.install import STATE_VERSION
from tests.support.fake_engines import a_record, write_record
from tests.support.patients import a_patient, levels, only, set_up
from tests.unit.platform.spark.test_metastore import held

GB = 1_000_000_000


def mounts(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "mounts"
    file.write_text("".join(f"{line} rw 0 0\n" for line in ("/dev/sda / ext4", *lines)))
    return file


def test_a_state_directory_on_a_disk_of_this_machine_is_fine(tmp_path: Path) -> None:
    patient = replace(a_patient(tmp_path / "home"), mounts=mounts(tmp_path))
    assert levels(state_directory(patient)) == [Level.OK]


def test_a_state_directory_that_other_users_can_enter_needs_attention(tmp_path: Path) -> None:
    patient = replace(a_patient(tmp_path / "home"), mounts=mounts(tmp_path))
    patient.home.folder.chmod(0o750)
    found = only(state_directory(patient), Level.ATTENTION)
    assert "mode 750" in found.what
    assert found.todo == f"run `chmod 700 {patient.home.folder}`"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.sshfs"])
def test_a_state_directory_on_a_network_drive_is_broken_and_has_to_move(
    tmp_path: Path, kind: str
) -> None:
    drive = mounts(tmp_path, f"server:/x {tmp_path} {kind}")
    patient = replace(a_patient(tmp_path / "home"), mounts=drive)

    found = only(state_directory(patient), Level.BROKEN)

    assert f"network drive ({kind})" in found.what
    assert "HEARTBEAT_HOME" in found.todo


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "overlay", "btrfs", "zfs", "9p", None])
def test_other_disks_are_no_network_drives(kind: str | None) -> None:
    assert not is_network(kind)


def test_the_nearest_mount_counts_and_of_two_at_one_place_the_later(tmp_path: Path) -> None:
    (tmp_path / "in a" / "b").mkdir(parents=True)
    file = mounts(
        tmp_path,
        f"a {tmp_path}/in\\040a nfs4",
        f"b {tmp_path}/in\\040a/b xfs",
        f"c {tmp_path}/in\\040a/b ext3",
        f"d {tmp_path}/in cifs",
    )
    assert file_system_of(tmp_path / "in a", file) == "nfs4"
    assert file_system_of(tmp_path / "in a" / "b", file) == "ext3"
    assert file_system_of(tmp_path, file) == "ext4"


def test_who_ticks_on_a_network_drive_is_warned_in_one_sentence(tmp_path: Path) -> None:
    drive = mounts(tmp_path, f"server:/x {tmp_path} nfs4")
    output = network_warning(tmp_path / "home", drive)
    assert output is not None
    assert output.startswith(f"the state directory {tmp_path}/home is on a network drive (nfs4)")
    assert network_warning(tmp_path / "home", mounts(tmp_path)) is None


def test_without_a_list_of_mounts_the_kind_is_unknown(tmp_path: Path) -> None:
    assert file_system_of(tmp_path, tmp_path / "no such file") is None


def test_a_folder_that_is_not_there_is_reported_with_the_way_out(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    patient.home.folder.rmdir()
    assert "init" in only(state_directory(patient), Level.ATTENTION).todo


def test_a_file_in_the_place_of_a_folder_is_broken(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    (patient.home.folder / "target").write_text("no folder")
    found = only(state_directory(patient), Level.BROKEN)
    assert (found.what, found.where) == (
        "has a file where a folder has to be",
        str(patient.home.folder / "target"),
    )


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Path]:
    """A folder whose file system has become read-only."""
    home = tmp_path / "home"
    home.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(home)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a file system")
    yield home
    subprocess.run(["umount", "--lazy", str(home)], check=True)


def test_a_read_only_state_directory_is_broken(frozen: Path) -> None:
    assert "cannot be written" in only(state_directory(a_patient(frozen)), Level.BROKEN).what


@pytest.mark.parametrize(
    ("free", "files", "level"),
    [
        (70 * GB, 10**6, Level.OK),
        (70 * GB, None, Level.OK),
        (GB // 2, None, Level.ATTENTION),
        (70 * GB, 10_000, Level.ATTENTION),
        (GB // 20, 10**6, Level.BROKEN),
        (70 * GB, 10, Level.BROKEN),
    ],
)
def test_room_is_judged_by_bytes_and_by_files(free: int, files: int | None, level: Level) -> None:
    assert room_left(free, files, Path("/x")).level is level


def test_the_room_of_a_folder_that_is_not_there_is_that_of_the_one_above(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    patient.home.folder.rmdir()
    [found] = disk_space(patient)
    assert "free" in found.what


def test_the_process_that_holds_the_lock_is_reported_and_is_no_trouble(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    with ProcessLock(patient.home.folder, command="tick"):
        [found] = lock(patient)
    assert found.level is Level.OK
    assert "`tick` is at work" in found.what


def test_a_lock_file_of_a_dead_process_is_no_trouble(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    with ProcessLock(patient.home.folder, command="tick"):
        pass
    [found] = lock(patient)
    assert found.what == "is free"


def test_a_metastore_that_another_process_has_open_is_broken_unless_somebody_is_at_work(
    tmp_path: Path,
) -> None:
    patient = a_patient(tmp_path / "home")
    patient.home.metastore.mkdir()
    (patient.home.metastore / "dbex.lck").write_bytes(b"\0\0\0\x01")
    assert levels(metastore(patient)) == [Level.OK]

    with held(patient.home.metastore, "orphan") as pid:
        found = only(metastore(patient), Level.BROKEN)
        with ProcessLock(patient.home.folder, command="tick"):
            beside = levels(metastore(patient))
    assert (found.where, beside) == (f"pid {pid}", [Level.OK])


def test_a_metastore_that_the_engine_has_open_is_fine(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    patient.home.metastore.mkdir()
    (patient.home.metastore / "dbex.lck").write_bytes(b"\0\0\0\x01")
    with held(patient.home.metastore, "orphan") as pid:
        write_record(patient.home.folder, a_record(os.getpid(), pid))
        [found] = metastore(patient)
        write_record(patient.home.folder, a_record(os.getpid(), os.getpid()))
        beside = levels(metastore(patient))
    assert (found.level, found.what) == (Level.OK, "is open in the engine")
    assert beside == [Level.BROKEN]


def test_a_folder_of_this_version_is_fine(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    set_up(patient.home.folder)
    assert levels(version(patient)) == [Level.OK]


def test_a_folder_of_a_newer_version_is_broken(tmp_path: Path) -> None:
    patient = a_patient(tmp_path / "home")
    set_up(patient.home.folder, version=STATE_VERSION + 1)
    assert "newer Heartbeat" in only(version(patient), Level.BROKEN).todo


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"state_version": "x"}'])
def test_a_version_that_cannot_be_read_is_broken_and_may_be_removed(
    tmp_path: Path, text: str
) -> None:
    patient = a_patient(tmp_path / "home")
    (patient.home.folder / "version.json").write_text(text)
    assert only(version(patient), Level.BROKEN).todo.startswith("remove this file")
