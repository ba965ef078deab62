"""Whatever bytes stand in a table's metadata, a probe ends with events or with a reason."""

import copy
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from harness.events.event import ChangeEvent
from harness.platform.storage import FileStat, Listed, Listing, Storages
from harness.sense.pool import storable_result
from harness.sense.probe import Probe, ProbeResult
from harness.sense.sources.delta.probe import DeltaProbe
from harness.sense.sources.iceberg import metadata
from harness.sense.sources.iceberg.avro import AvroError, Budget, BudgetError, read_container
from harness.sense.sources.iceberg.catalog import Catalogs
from harness.sense.sources.iceberg.probe import IcebergProbe
from harness.store.work_lists import Upstream
from tests.support.golden import (
    AT,
    FakeHistory,
    FakeLocator,
    FakeNewRows,
    GoldenTable,
    add,
    info,
    protocol,
    remove,
)
from tests.support.golden import metadata as described
from tests.support.iceberg_tables import (
    ADDED,
    TEXT,
    IcebergFolder,
    avro_file,
    entry,
    manifest_schema,
    record_of,
    varint,
)
from tests.unit.sense.sources.iceberg.test_iceberg import CatalogDatabase, Questions

EXAMPLES = settings(max_examples=60, deadline=None)

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**30), max_value=10**30)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5)
    | st.sampled_from(["1e999", "add", "\ud800", "[" * 2_000])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


class Memory:
    """A storage of these files."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def stat(self, path: str) -> FileStat | None:
        if path in self.files:
            return FileStat(len(self.files[path]), 7)
        return FileStat(0, 7) if any(each.startswith(f"{path}/") for each in self.files) else None

    def read(self, path: str, *, limit: int) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path][:limit]

    def list_files(self, folder: str) -> list[Listed]:
        return self.list_all(folder).files

    def list_all(self, folder: str) -> Listing:
        names = [path for path in self.files if path.rpartition("/")[0] == folder]
        if not names:
            raise FileNotFoundError(folder)
        return Listing([Listed(Path(each).name, len(self.files[each]), 7) for each in names], [])


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def looked(probe: Probe, source: str, table: Path, cursor: str | None = None) -> ProbeResult:
    """Probe as a tick does, and check that a ledger can hold the answer."""
    upstream = Upstream(
        upstream_id="u", source=source, sensor_id=str(table), read_type="batch", position=cursor
    )
    result = storable_result(probe.probe([upstream], at=AT)[0])
    for event in result.events:
        assert_storable(event)
    assert result.failure is None or result.failure.encode()
    return result


def assert_storable(event: ChangeEvent) -> None:
    texts = [
        event.table,
        event.lineage,
        *(event.partition or ()),
        *event.tags,
        *event.tags.values(),
    ]
    texts += [text for text in (event.snapshot_id, event.prev_snapshot_id) if text is not None]
    assert "".join(texts).encode()
    assert event.snapshot_ts is None or -(2**63) <= event.snapshot_ts < 2**63
    for level in event.partition or ():
        json.loads(level)


def changed(document: Any, path: Sequence[int], value: Any) -> Any:
    """Put a value somewhere into a document: each number chooses among what is there."""
    document = copy.deepcopy(document)
    at = document
    for number in path:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = keys[number % len(keys)]
        if not isinstance(at[key], dict | list) or not at[key] or number == path[-1]:
            at[key] = value
            break
        at = at[key]
    return document


PLACES = st.lists(st.integers(0, 50), min_size=1, max_size=5)


def broken(content: bytes) -> st.SearchStrategy[bytes]:
    """Return a file cut off, with some bytes changed, or of any bytes."""
    return (
        st.binary(max_size=200)
        | st.integers(0, len(content)).map(lambda end: content[:end])
        | st.tuples(st.integers(0, len(content) - 1), st.binary(min_size=1, max_size=4)).map(
            lambda at: content[: at[0]] + at[1] + content[at[0] + len(at[1]) :]
        )
    )


# Delta


def delta(files: dict[str, bytes]) -> DeltaProbe:
    storage = Memory(files)
    return DeltaProbe(Storages(storage, storage), FakeLocator(), FakeNewRows(), FakeHistory())


COMMIT: list[dict[str, Any]] = [
    info("WRITE", inCommitTimestamp=5, operationMetrics={"numOutputRows": "1"}),
    protocol("deletionVectors"),
    described(partitions=("day",)),
    {"txn": {"appId": "a", "version": 1}},
    add("a", partitionValues={"day": "2025-04-23"}, stats="{}"),
    add("b", partitionValues={"day": None}, deletionVector={"cardinality": 1}),
    remove("c", partitionValues={"day": "x"}),
]


def lines(actions: Sequence[object]) -> bytes:
    return "\n".join(json.dumps(action) for action in actions).encode()


@pytest.fixture(scope="module")
def delta_table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes], str]:
    path = tmp_path_factory.mktemp("delta")
    table = GoldenTable(path).create(partitions=("day",))
    files = files_of(path)
    cursor = looked(delta(files), "delta_table", path).position
    table.commit(*COMMIT)
    files = files_of(path)
    assert cursor is not None
    assert looked(delta(files), "delta_table", path, cursor).events
    return path, files, cursor


def see_commit(table: tuple[Path, dict[str, bytes], str], content: bytes) -> None:
    path, files, cursor = table
    new = {**files, f"{path}/_delta_log/{1:020d}.json": content}
    looked(delta(new), "delta_table", path, cursor)
    # Alone, it has to define the table.
    looked(delta({f"{path}/_delta_log/{0:020d}.json": content}), "delta_table", path)


@EXAMPLES
@given(st.data())
def test_a_delta_commit_of_any_bytes_is_an_answer(
    delta_table: tuple[Path, dict[str, bytes], str], data: st.DataObject
) -> None:
    see_commit(delta_table, data.draw(broken(lines(COMMIT))))


@EXAMPLES
@given(place=PLACES, value=JSON)
def test_a_delta_commit_with_any_value_anywhere_is_an_answer(
    delta_table: tuple[Path, dict[str, bytes], str], place: list[int], value: Any
) -> None:
    see_commit(delta_table, lines(changed(COMMIT, place, value)))


@EXAMPLES
@given(place=PLACES, value=JSON)
def test_a_delta_schema_of_any_text_is_an_answer(
    delta_table: tuple[Path, dict[str, bytes], str], place: list[int], value: Any
) -> None:
    actions = copy.deepcopy(COMMIT)
    schema = json.loads(actions[2]["metaData"]["schemaString"])
    actions[2]["metaData"]["schemaString"] = json.dumps(changed(schema, place, value))
    see_commit(delta_table, lines(actions))


def parquet_of(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


CHECKPOINT = [
    {"metaData": {**described()["metaData"], "configuration": [("k", "v")]}},
    protocol(),
    {"add": {"path": "a"}},
]


@EXAMPLES
@given(data=st.data(), place=PLACES, value=JSON)
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_delta_checkpoint_of_any_content_is_an_answer(
    kind: str, data: st.DataObject, place: list[int], value: Any
) -> None:
    path = Path("/tables/orders")
    name = f"{3:020d}.checkpoint.{'0' * 8}-0000-0000-0000-{'0' * 12}.{kind}"
    whole = lines(CHECKPOINT) if kind == "json" else CHECKPOINT_FILE
    content = data.draw(broken(whole))
    if kind == "json" and data.draw(st.booleans()):
        content = lines(changed(CHECKPOINT, place, value))
    files = {
        f"{path}/_delta_log/{name}": content,
        f"{path}/_delta_log/{3:020d}.json": lines([info("WRITE"), add("b")]),
        f"{path}/_delta_log/_last_checkpoint": content,
    }
    looked(delta(files), "delta_table", path)


CHECKPOINT_FILE = parquet_of(
    [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}, "add": None},
        {"protocol": None, "add": {"path": "a"}},
    ]
)


# Iceberg


def iceberg(files: dict[str, bytes]) -> IcebergProbe:
    storage = Memory(files)
    return IcebergProbe(Storages(storage, storage), Catalogs({}, CatalogDatabase()), Questions())


class Iceberg:
    """A table whose newest snapshot has partitions, and the cursor before that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        table = IcebergFolder(path)
        table.levels = {"day": (TEXT, "identity"), "hour": (["null", "int"], "hour")}
        table.append()
        before = looked(iceberg(files_of(path)), "iceberg_table", path)
        self.position = before.position
        table.touch(entry(ADDED, None, day="a", hour=1))
        self.files = files_of(path)
        self.newest = str(table.newest)
        [event] = self.see({}).events
        assert event.partition == ('"a"', '"1970-01-01-01"')

    def file(self, start: str) -> str:
        [found] = [each for each in self.files if Path(each).name.startswith(start)]
        return found

    def see(self, more: dict[str, bytes]) -> ProbeResult:
        probe = iceberg({**self.files, **more})
        return looked(probe, "iceberg_table", self.path, self.position)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iceberg:
    return Iceberg(tmp_path_factory.mktemp("iceberg"))


@EXAMPLES
@given(data=st.data(), packs=st.booleans())
def test_iceberg_metadata_of_any_bytes_is_an_answer(
    table: Iceberg, data: st.DataObject, packs: bool
) -> None:
    content = table.files[table.newest]
    table.see({table.newest: data.draw(broken(gzip.compress(content) if packs else content))})


@EXAMPLES
@given(place=PLACES, value=JSON)
def test_iceberg_metadata_with_any_value_anywhere_is_an_answer(
    table: Iceberg, place: list[int], value: Any
) -> None:
    document = json.loads(table.files[table.newest])
    table.see({table.newest: json.dumps(changed(document, place, value)).encode()})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("start", ["snap-", "m3"])
def test_a_manifest_of_any_bytes_leaves_the_event(
    table: Iceberg, start: str, data: st.DataObject
) -> None:
    path = table.file(start)
    result = table.see({path: data.draw(broken(table.files[path]))})
    assert (result.failure, len(result.events)) == (None, 1)


@EXAMPLES
@given(place=PLACES, value=JSON, tail=st.binary(max_size=100))
def test_a_manifest_with_any_schema_leaves_the_event(
    table: Iceberg, place: list[int], value: Any, tail: bytes
) -> None:
    levels = {"day": TEXT, "hour": ["null", "int"]}
    good = avro_file(manifest_schema(levels), [entry(ADDED, None, day="a", hour=1)], "null")
    schema = json.dumps(changed(manifest_schema(levels), place, value)).encode()
    content = file_of(schema, good[good.rindex(bytes(range(16))) - 60 :] + tail)
    result = table.see({table.file("m3"): content})
    assert (result.failure, len(result.events)) == (None, 1)


# Bounds


def file_of(schema: bytes, block: bytes, count: int = 1, codec: bytes = b"null") -> bytes:
    header = {b"avro.schema": schema, b"avro.codec": codec}
    pairs = b"".join(varint(len(text)) + text for pair in header.items() for text in pair)
    sync = bytes(16)
    meta = varint(len(header)) + pairs + varint(0)
    return b"Obj\x01" + meta + sync + varint(count) + varint(len(block)) + block + sync


def read_all(content: bytes) -> list[Any]:
    budget = Budget(content_bytes=1_000_000, values=10_000)
    return list(read_container(content, {"a": None}, budget).records)


def nested(depth: int) -> dict[str, Any]:
    inner: Any = "int"
    for number in range(depth):
        inner = record_of(f"r{number}", a=inner)
    return dict(inner)


def doubled(depth: int) -> dict[str, Any]:
    """A schema of few types that each hold the one before twice."""
    types: Any = record_of("r0", a="null", b="null")
    for number in range(1, depth):
        types = record_of(f"r{number}", a=types, b=f"r{number - 1}")
    return dict(types)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (file_of(b"[" * 100_000, b""), AvroError),
        (file_of(json.dumps(nested(60)).encode(), b""), AvroError),
        (file_of(json.dumps(doubled(11)).encode(), b"", count=10**9), AvroError),
        (
            file_of(
                b'{"type": "record", "name": "r", "fields": [{"name": "a", "type": "r"}]}', b""
            ),
            AvroError,
        ),
        (file_of(json.dumps(record_of("r")).encode(), b"", count=2**40), BudgetError),
        (
            file_of(
                json.dumps(record_of("r", a={"type": "array", "items": "null"})).encode(),
                varint(2**40) + varint(0),
            ),
            BudgetError,
        ),
        (file_of(json.dumps(record_of("r", a="string")).encode(), varint(2**62)), AvroError),
        (file_of(json.dumps(record_of("r", a="long")).encode(), b"\xff" * 40), AvroError),
        (
            file_of(
                json.dumps(record_of("r", a="bytes")).encode(),
                gzip.compress(bytes(50_000_000))[10:-8],
                codec=b"deflate",
            ),
            BudgetError,
        ),
        (
            file_of(json.dumps(record_of("r", a="int")).encode(), varint(1), codec=b"lzma"),
            AvroError,
        ),
    ],
    ids=[
        "text too deep",
        "types too deep",
        "types too many",
        "a type that holds itself",
        "records of nothing",
        "items of nothing",
        "a length past the end",
        "a number without end",
        "a bomb",
        "an unknown codec",
    ],
)
def test_a_container_that_requires_too_much_is_refused(
    content: bytes, error: type[AvroError]
) -> None:
    with pytest.raises(error):
        read_all(content)


def test_a_container_is_read() -> None:
    schema = record_of("r", b={"type": "map", "values": "double"}, a=["null", "float"], c="boolean")
    records = [{"b": {"x": 1.5}, "a": 2.5, "c": True}, {"b": {}, "a": None, "c": False}]
    assert read_all(avro_file(schema, records)) == [{"a": 2.5}, {"a": None}]


def test_metadata_that_unpacks_to_too_much_is_refused(
    table: Iceberg, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "METADATA_LIMIT_BYTES", 1_000_000)
    failure = table.see({table.newest: gzip.compress(bytes(2_000_000))}).failure
    assert failure is not None and "expire snapshots" in failure
