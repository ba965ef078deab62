"""What a person is told when dbt cannot even read the project."""

from pathlib import Path

from harness.decide import unparsed

TARGET = Path("/srv/home/target")


def test_a_damaged_target_folder_is_told_with_the_way_out() -> None:
    error = IsADirectoryError(21, "Is a directory", f"{TARGET}/partial_parse.msgpack")
    assert str(unparsed(error, TARGET)) == (
        f"dbt parse: [Errno 21] Is a directory: '{TARGET}/partial_parse.msgpack'; "
        f"remove {TARGET}, which dbt makes anew, and tick again"
    )


def test_a_mistake_in_the_project_is_told_as_dbt_tells_it() -> None:
    assert str(unparsed(ValueError("no such ref"), TARGET)) == "dbt parse: no such ref"
