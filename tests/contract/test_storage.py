"""Every storage behaves alike: this machine's files, and a server with the protocol of S3."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from harness.errors import ProbeFailedError
from harness.platform.storage import (
    LocalStorage,
    ObjectStorage,
    Storage,
    Storages,
    is_remote,
    normalized,
    reason_of,
)
from harness.sense.sources.delta.probe import DeltaProbe
from harness.store.work_lists import Upstream
from tests.support.golden import AT, FakeHistory, FakeLocator, FakeNewRows
from tests.support.services.s3 import object_store

#: Names that a pattern, an address or a shell would take for something else.
NAMES = ("a.csv", "ü [1]; isDirectory=no.csv", "100%25 {x}.csv", "day=1/b, c.csv", "other/d?#.csv")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A storage, a folder in it, and what writes a file there."""

    storage: Storage
    folder: str
    write: Callable[[str, bytes], None]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store() as address:
        yield address


@pytest.fixture(params=["local", "object store"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    if request.param == "local":

        def write_file(name: str, content: bytes) -> None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)

        return Case(storage=LocalStorage(), folder=str(tmp_path), write=write_file)
    import boto3

    address, folder = request.getfixturevalue("bucket"), uuid4().hex
    client = boto3.client("s3")

    def put(name: str, content: bytes) -> None:
        client.put_object(
            Bucket=address.removeprefix("s3a://"), Key=f"{folder}/{name}", Body=content
        )

    return Case(storage=ObjectStorage(), folder=f"{address}/{folder}", write=put)


def test_a_file_has_its_size_and_time(case: Case) -> None:
    before = int(datetime.now(UTC).timestamp()) * 1000
    case.write("a file", b"12345")

    found = case.storage.stat(f"{case.folder}/a file")

    assert found is not None and found.length == 5
    assert before <= found.mtime_ms <= int(datetime.now(UTC).timestamp() * 1000)
    assert case.storage.stat(f"{case.folder}/a file") == found


def test_nothing_is_where_nothing_is(case: Case) -> None:
    assert case.storage.stat(f"{case.folder}/no/thing") is None


def test_a_folder_is_something(case: Case) -> None:
    case.write("folder/a", b"1")
    assert case.storage.stat(f"{case.folder}/folder") is not None


def test_a_file_is_read_to_its_end(case: Case) -> None:
    case.write("f", bytes(range(256)) * 300)

    assert case.storage.read(f"{case.folder}/f", limit=10**6) == bytes(range(256)) * 300


def test_no_more_is_read_than_the_limit(case: Case) -> None:
    case.write("f", b"123456789")

    assert case.storage.read(f"{case.folder}/f", limit=4) == b"1234"


def test_an_empty_file_has_no_bytes(case: Case) -> None:
    case.write("f", b"")

    assert case.storage.read(f"{case.folder}/f", limit=4) == b""


def test_a_missing_file_cannot_be_read(case: Case) -> None:
    with pytest.raises(FileNotFoundError):
        case.storage.read(f"{case.folder}/f", limit=4)


def test_a_listing_has_the_files_and_not_the_folders(case: Case) -> None:
    for name, content in (("folder/a", b"1"), ("a", b"1"), ("_b 2", b"12")):
        case.write(name, content)

    found = case.storage.list_files(case.folder)

    assert sorted((file.name, file.length) for file in found) == [("_b 2", 2), ("a", 1)]


def test_a_listing_has_the_time_of_each_file(case: Case) -> None:
    case.write("a", b"1")

    [found] = case.storage.list_files(case.folder)

    stat = case.storage.stat(f"{case.folder}/a")
    assert stat is not None and found.mtime_ns // 1_000_000 == stat.mtime_ms


def test_a_name_means_itself_whatever_it_contains(case: Case) -> None:
    for name in NAMES:
        case.write(name, name.encode())

    listing = case.storage.list_all(case.folder)

    assert {file.name for file in listing.files} == {name for name in NAMES if "/" not in name}
    assert set(listing.folders) == {"day=1", "other"}
    for name in NAMES:
        assert case.storage.read(f"{case.folder}/{name}", limit=99) == name.encode()


def test_a_folder_of_more_than_a_page_is_listed_whole(case: Case) -> None:
    names = {f"{number:04d}" for number in range(1100)}
    for name in names:
        case.write(name, b"")

    assert {file.name for file in case.storage.list_files(case.folder)} == names


def test_a_missing_folder_cannot_be_listed(case: Case) -> None:
    with pytest.raises(FileNotFoundError):
        case.storage.list_files(f"{case.folder}/none")


def test_a_file_cannot_be_listed(case: Case) -> None:
    case.write("f", b"1")

    with pytest.raises(NotADirectoryError):
        case.storage.list_files(f"{case.folder}/f")


def test_a_bucket_that_is_not_there_has_no_files(bucket: str) -> None:
    with pytest.raises(FileNotFoundError):
        ObjectStorage().list_files(f"{bucket}-of-another/f")


def test_a_delta_table_in_a_bucket_is_sensed_without_spark(bucket: str) -> None:
    table = f"{bucket}/lake/orders"
    probe = DeltaProbe(Storages(), FakeLocator(), FakeNewRows(), FakeHistory())
    upstream = Upstream(
        upstream_id="u", source="delta_table", sensor_id=table, read_type="streaming"
    )
    found: list[int] = []
    for _ in range(2):
        write_deltalake(table.replace("s3a:", "s3:"), pa.table({"id": [1]}), mode="append")
        for _ in range(2):
            [result] = probe.probe([upstream], at=AT)
            assert result.failure is None, result.failure
            found.append(len(result.events))
            upstream = replace(upstream, position=result.position)
    assert found == [1, 0, 1, 0]


#: What each cloud returns when access is refused: status, content type, body.
_S3 = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
_AZURE = (
    "<Error><Code>AuthorizationPermissionMismatch</Code><Message>This request is not authorized to"
    " perform this operation using this permission.</Message></Error>"
)
_GCS = json.dumps({"error": {"code": 403, "message": "does not have storage.objects.get access"}})
REFUSALS = {
    "s3a://lake/t/f": (403, _S3),
    "abfss://lake@account.dfs.core.windows.net/t/f": (403, _AZURE),
    "gs://lake/t/f": (403, _GCS),
    "s3://lake/t/f": (401, "<Error><Code>InvalidToken</Code></Error>"),
    "s3://lake/t/expired": (400, "<Error><Code>ExpiredToken</Code></Error>"),
}


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """A server that refuses everything as the cloud of a path does, for each cloud's client."""
    answer: list[tuple[int, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body.encode())

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    account = {
        "gcs_base_url": address,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
    }
    (tmp_path / "account.json").write_text(json.dumps({**account, "private_key_id": ""}))
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": "a-secret",
        "AWS_REGION": "eu-central-1",
        "AZURE_STORAGE_ENDPOINT": address,
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_TOKEN": "a-token",
        "GOOGLE_SERVICE_ACCOUNT": str(tmp_path / "account.json"),
        "GOOGLE_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    try:
        yield lambda path: answer.append(REFUSALS[path])
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path", REFUSALS)
def test_a_refusal_is_not_a_store_that_does_not_answer(
    refusing: Callable[[str], None], path: str
) -> None:
    refusing(path)
    for ask in (ObjectStorage().stat, ObjectStorage().list_files):
        with pytest.raises(PermissionError) as refused:
            ask(path)
        assert reason_of(refused.value) == f"access to {path} is denied"


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_machine_that_has_no_key_is_refused_and_finds_no_file_missing(
    refusing: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setitem(REFUSALS, "nothing", (status, ""))
    refusing("nothing")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", os.environ["AWS_ENDPOINT_URL"])

    with pytest.raises(PermissionError):
        ObjectStorage().list_files("s3://lake/t")


def test_a_scheme_that_no_store_has_is_refused_with_those_that_can_be_read() -> None:
    with pytest.raises(ProbeFailedError) as unknown:
        ObjectStorage().list_files("hdfs://host/t")
    assert reason_of(unknown.value) == (
        "hdfs://host is not an object store; s3:, s3a:, abfss: and gs: can be read"
    )


def test_a_workspaces_own_addresses_are_files_where_it_mounts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(os, "stat", lambda path: asked.append(path) or os.lstat("/"))

    for path in ("dbfs:/Volumes/main/s/v/f", "dbfs:/user/hive/t", "/Volumes/main/s/v/f"):
        assert Storages().of(path).stat(path) is not None

    assert asked == ["/Volumes/main/s/v/f", "/dbfs/user/hive/t", "/Volumes/main/s/v/f"]


@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("/data/orders", False),
        ("data/orders", False),
        ("file:/data/orders", False),
        ("FILE:///data/orders", False),
        ("s3a://bucket/orders", True),
        ("abfss://lake@account.dfs.core.windows.net/orders", True),
    ],
)
def test_only_another_scheme_than_file_is_an_object_store(path: str, remote: bool) -> None:
    local, other = LocalStorage(), LocalStorage()

    chosen = Storages(local, other).of(path)

    assert (chosen is other, is_remote(path)) == (remote, remote)


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


def test_an_object_is_written_in_place_of_the_one_before(bucket: str) -> None:
    import boto3

    storage, path = ObjectStorage(), f"{bucket}/{uuid4().hex}/a page.html"

    storage.write(path, b"before", content_type="text/plain")
    storage.write(path, b"after", content_type="text/html; charset=utf-8")

    name, _, key = path.removeprefix("s3a://").partition("/")
    found = boto3.client("s3").get_object(Bucket=name, Key=key)
    assert found["Body"].read() == b"after"
    assert found["ContentType"] == "text/html; charset=utf-8"


def test_a_bucket_that_is_not_there_is_an_error_of_files(bucket: str) -> None:
    with pytest.raises(FileNotFoundError):
        ObjectStorage().write(f"{bucket}-of-others/page.html", b"", content_type="text/html")
