"""Both storages answer alike; the Hadoop one is asked with ``file:`` addresses."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.platform.storage import (
    FileStat,
    HadoopStorage,
    LocalStorage,
    Storage,
    Storages,
    is_remote,
    normalized,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    storage: Storage
    address: Callable[[Path], str]


@pytest.fixture(params=["local", "hadoop"])
def case(request: pytest.FixtureRequest) -> Case:
    if request.param == "local":
        return Case(storage=LocalStorage(), address=str)
    spark = request.getfixturevalue("spark")
    return Case(storage=HadoopStorage(lambda: spark), address=lambda path: f"file:{path}")


def test_a_file_has_its_size_and_time(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"12345")

    expected = FileStat(5, file.stat().st_mtime_ns // 1_000_000)
    assert case.storage.stat(case.address(file)) == expected


def test_nothing_is_where_nothing_is(case: Case, tmp_path: Path) -> None:
    assert case.storage.stat(case.address(tmp_path / "no" / "thing")) is None


def test_a_folder_is_something(case: Case, tmp_path: Path) -> None:
    assert case.storage.stat(case.address(tmp_path)) is not None


def test_a_file_is_read_to_its_end(case: Case, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)) * 300)

    assert case.storage.read(case.address(tmp_path / "f"), limit=10**6) == bytes(range(256)) * 300


def test_no_more_is_read_than_the_limit(case: Case, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"123456789")

    assert case.storage.read(case.address(tmp_path / "f"), limit=4) == b"1234"


def test_a_missing_file_cannot_be_read(case: Case, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        case.storage.read(case.address(tmp_path / "f"), limit=4)


def test_a_listing_has_the_files_and_not_the_folders(case: Case, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "_b 2").write_bytes(b"12")

    found = case.storage.list_files(case.address(tmp_path))

    assert sorted((file.name, file.length) for file in found) == [("_b 2", 2), ("a", 1)]


def test_a_listing_has_the_time_of_each_file(case: Case, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")

    [found] = case.storage.list_files(case.address(tmp_path))

    wanted = (tmp_path / "a").stat().st_mtime_ns // 1_000_000
    assert found.mtime_ns // 1_000_000 == wanted


def test_a_missing_folder_cannot_be_listed(case: Case, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        case.storage.list_files(case.address(tmp_path / "none"))


def test_a_file_cannot_be_listed(case: Case, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")

    with pytest.raises(NotADirectoryError):
        case.storage.list_files(case.address(tmp_path / "f"))


@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("/data/orders", False),
        ("data/orders", False),
        ("file:/data/orders", False),
        ("FILE:///data/orders", False),
        ("s3a://bucket/orders", True),
        ("dbfs:/orders", True),
    ],
)
def test_only_another_scheme_than_file_is_hadoops(path: str, remote: bool) -> None:
    local, hadoop = LocalStorage(), LocalStorage()

    chosen = Storages(local, hadoop).of(path)

    assert (chosen is hadoop, is_remote(path)) == (remote, remote)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/data/orders/", "/data/orders"),
        ("file:/data/my%20orders", "/data/my orders"),
        ("file:///data/orders", "/data/orders"),
        ("s3a://bucket/a%20b/", "s3a://bucket/a%20b"),
        ("/", "/"),
    ],
)
def test_one_folder_has_one_address(written: str, meant: str) -> None:
    assert normalized(written) == meant
