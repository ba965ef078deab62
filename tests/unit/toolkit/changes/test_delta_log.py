"""What a Delta table's log contains for a range of versions, and which files it still needs."""

from pathlib import Path

import pytest

from harness.errors import ProbeFailedError
from harness.platform.storage import LocalStorage
from harness.toolkit.changes.delta_log import (
    Commit,
    LogGoneError,
    gone_since,
    has_new_schema,
    missing,
    missing_of_feed,
    read_commits,
    vector_path,
)
from tests.support.golden import Action, GoldenTable, add, metadata, remove

#: As the protocol of Delta shows it.
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "cardinality": 6}
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.fixture
def table(tmp_path: Path) -> GoldenTable:
    return GoldenTable(tmp_path / "table").create(add("one"))


def commits(table: GoldenTable, after: int = 0, until: int | None = None) -> tuple[Commit, ...]:
    end = table.version if until is None else until
    return read_commits(LocalStorage(), str(table.path), after=after, until=end)


def names(table: GoldenTable) -> list[str]:
    return [file.path.rpartition("/")[2] for file in gone_since(commits(table))]


def put(table: GoldenTable, *paths: str) -> None:
    for path in paths:
        file = table.path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("rows")


def feed(path: str) -> Action:
    return {"cdc": {"path": path, "partitionValues": {}, "size": 9, "dataChange": False}}


def test_all_commits_after_a_version_are_read_up_to_the_newest(table: GoldenTable) -> None:
    table.commit(add("two"))
    table.commit(remove("two"))

    assert [commit.version for commit in commits(table, until=1)] == [1, 2]


def test_a_commit_that_was_cleaned_away_is_reported(table: GoldenTable) -> None:
    table.commit(add("two"))
    table.commit(add("three"))
    table.file(1).unlink()

    with pytest.raises(LogGoneError, match="version 1 is not in its log any more"):
        commits(table)


def test_a_version_that_the_log_does_not_reach_is_reported(table: GoldenTable) -> None:
    with pytest.raises(LogGoneError, match="version 1 is not in its log any more"):
        commits(table, until=1)


def test_a_commit_that_cannot_be_read_is_reported(table: GoldenTable) -> None:
    table.file(table.commit(add("two"))).write_text('{"add": {}}')

    with pytest.raises(ProbeFailedError, match="commit 1 of its log is corrupt"):
        commits(table)


def test_what_only_rearranges_changes_no_data(table: GoldenTable) -> None:
    table.commit(remove("one", dataChange=False), add("all", dataChange=False))
    [commit] = commits(table)

    assert not commit.changes_data
    assert commit.only_appends


@pytest.mark.parametrize(
    ("actions", "only_appends"), [([add("two")], True), ([remove("one"), add("two")], False)]
)
def test_a_commit_that_takes_rows_away_does_not_only_append(
    table: GoldenTable, actions: list[Action], only_appends: bool
) -> None:
    table.commit(*actions)
    [commit] = commits(table)

    assert commit.changes_data
    assert commit.only_appends is only_appends


def test_files_that_the_table_had_before_are_reported_when_they_were_removed(
    table: GoldenTable,
) -> None:
    table.commit(add("two"))
    table.commit(remove("two"), remove("one", dataChange=False), add("three", dataChange=False))

    assert names(table) == ["one"]


def test_a_file_that_only_gets_a_deletion_vector_has_lost_the_state_before(
    table: GoldenTable,
) -> None:
    table.commit(remove("one"), add("one", deletionVector=VECTOR))
    table.commit(remove("one", deletionVector=VECTOR), add("four"))

    assert names(table) == ["one"]


def test_a_file_that_is_gone_from_the_disk_is_named(table: GoldenTable) -> None:
    put(table, "one")
    table.commit(remove("one"), remove("two%20words"))

    assert missing(LocalStorage(), gone_since(commits(table))) == "two words"


def test_a_deletion_vector_that_is_gone_from_the_disk_is_named(table: GoldenTable) -> None:
    put(table, "one")
    table.commit(remove("one", deletionVector=VECTOR))
    gone = gone_since(commits(table))

    assert missing(LocalStorage(), gone) == VECTOR_FILE.partition("/")[2]
    put(table, VECTOR_FILE)
    assert missing(LocalStorage(), gone) is None


@pytest.mark.parametrize(
    ("vector", "path"),
    [
        (VECTOR, f"/t/{VECTOR_FILE}"),
        ({**VECTOR, "pathOrInlineDv": VECTOR["pathOrInlineDv"][2:]}, f"/t/{VECTOR_FILE[3:]}"),  # type: ignore[index]
        ({"storageType": "p", "pathOrInlineDv": "file:/elsewhere/v.bin"}, "/elsewhere/v.bin"),
        ({"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000"}, None),
    ],
)
def test_a_deletion_vector_is_found_where_the_log_places_it(
    vector: dict[str, object], path: str | None
) -> None:
    assert vector_path("/t", vector) == path


def test_a_feed_is_read_from_its_own_files_where_a_commit_has_them(table: GoldenTable) -> None:
    table.commit(remove("one"), add("two"), feed("_change_data/rows"))

    assert missing_of_feed(LocalStorage(), commits(table)) == "rows"
    put(table, "_change_data/rows")
    assert missing_of_feed(LocalStorage(), commits(table)) is None


def test_a_feed_is_read_from_the_data_where_a_commit_has_no_files_of_it(
    table: GoldenTable,
) -> None:
    table.commit(add("two"), add("moved", dataChange=False))

    assert missing_of_feed(LocalStorage(), commits(table)) == "two"
    put(table, "two")
    assert missing_of_feed(LocalStorage(), commits(table)) is None


def test_a_file_of_another_table_is_searched_for_where_it_is(
    table: GoldenTable, tmp_path: Path
) -> None:
    table.commit(remove(f"file://{tmp_path}/cloned"))
    (tmp_path / "cloned").write_text("rows")

    assert missing(LocalStorage(), gone_since(commits(table))) is None


def test_only_another_schema_is_a_new_one(table: GoldenTable) -> None:
    table.commit(metadata())
    table.commit(metadata())
    assert not has_new_schema(commits(table))

    table.commit(metadata(fields=[("id", "string")]))
    assert has_new_schema(commits(table))
