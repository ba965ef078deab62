"""What the hook refuses, and what it makes of the metadata of the catalog and of the model."""

from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from tests.support.macro_calls import CompilationError, Macros

MACROS = Macros()
WORKSPACE = SimpleNamespace(type="databricks", database="lake", schema="ours")
TABLE: Mapping[str, object] = {
    "name": "sales.orders",
    "format": "DELTA",
    "partition_columns": [{"name": "place", "type": "string"}, {"name": "hour", "type": "int"}],
}
COMMIT: Mapping[str, object] = {"snapshot_id": "7", "snapshot_ts": 5, "operation": "APPEND"}


def of_model(materialized: str, **more: object) -> Macros:
    model = SimpleNamespace(
        name="orders",
        unique_id="model.shop.orders",
        resource_type="model",
        config=SimpleNamespace(materialized=materialized),
    )
    return Macros(model=model, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["view", "materialized_view", "ephemeral"])
def test_a_model_without_data_of_its_own_cannot_register_a_change(kind: str) -> None:
    with pytest.raises(CompilationError, match=f"orders is materialized as {kind}") as refused:
        of_model(kind).call.register_change()
    assert "materialize it as table, incremental or snapshot" in str(refused.value)


def test_an_ephemeral_model_is_refused_while_dbt_parses_for_its_hooks_never_run() -> None:
    parsed = SimpleNamespace(build_config_dict=lambda: SimpleNamespace(materialized="ephemeral"))
    macros = of_model("view", execute=False, config=SimpleNamespace(context_config=parsed))
    with pytest.raises(CompilationError, match="materialized as ephemeral"):
        macros.call.register_change()


def test_while_dbt_parses_nothing_is_registered_and_nothing_is_queried() -> None:
    parsed = SimpleNamespace(build_config_dict=lambda: SimpleNamespace(materialized="view"))
    macros = of_model("view", execute=False, config=SimpleNamespace(context_config=parsed))
    assert macros.call.register_change().strip() == ""


def test_the_hook_belongs_to_a_model_and_not_to_the_end_of_a_run() -> None:
    with pytest.raises(CompilationError, match="post_hook of a model, a seed or a snapshot"):
        Macros(model=SimpleNamespace(resource_type="operation")).call.register_change()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"operation": "REPLACE"},
            "operation is REPLACE, but must be one of APPEND, DELETE, UPDATE",
        ),
        ({"partition": "2026-03-01"}, "must be a list with one value for each partition level"),
        ({"partition": {"day": 1}}, "must be a list with one value for each partition level"),
        ({"tags": "checked"}, "must be a mapping of text to text"),
        (
            {"tags": {"complete": True}},
            "the tag complete is True, which is not text: put it in quotes",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(
    arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(CompilationError, match=said):
        MACROS.call.register_change(**arguments)


def event(commit: Mapping[str, object] = COMMIT, **given: object) -> dict[str, object]:
    tags, partition = given.get("tags"), given.get("partition")
    return dict(MACROS.call._event_of_commit({**COMMIT, **commit}, TABLE, tags, partition))


def test_a_partition_that_the_model_names_is_json_as_the_sensors_write_it() -> None:
    reported = event(partition=['Zürich "\\', 7], tags={"quality": "checked"})
    assert reported["partition"] == ['"Zürich \\"\\\\"', "7"]
    assert event(partition=[None, 7.5])["partition"] == ["null", "7.5"]


def test_a_partition_of_another_number_of_levels_is_refused() -> None:
    with pytest.raises(
        CompilationError, match=r"1 values, but sales.orders has 2 .* \(place, hour\)"
    ):
        event(partition=["Bern"])


def test_what_a_hook_finds_takes_no_tag_of_the_model_away() -> None:
    tags = event(commit={"operation_name": "WRITE"}, tags={"quality": "checked"})["tags"]
    assert tags == {"quality": "checked", "operation": "WRITE", "dbt_model": "model.shop.orders"}


def test_more_partitions_than_fit_into_a_tag_are_cut_and_marked_as_cut() -> None:
    many = [[f'"{number:05}"', "7"] for number in range(1001)]
    tags = event({"partitions": many})["tags"]
    assert isinstance(tags, dict)
    assert tags["partitions_truncated"] == "true"
    assert tags["partitions"].startswith('[["00000",7],["00001",7]')
    assert tags["partitions"].endswith('["00999",7]]')
    long = MACROS.call._partition_tags([['"' + "x" * 40_000 + '"']] * 2, False)
    assert len(long["partitions"]) < 65_536 and long["partitions_truncated"] == "true"


def test_an_event_without_a_snapshot_has_a_name_so_that_it_is_taken_in_once() -> None:
    assert event()["event_id"] is None
    assert event({"snapshot_id": None})["event_id"] == event({"snapshot_id": None})["event_id"]
    assert event({"snapshot_id": None})["event_id"]


@pytest.mark.parametrize(
    ("macros", "folder"),
    [
        (Macros(variables={"heartbeat_inbox": "/Volumes/inbox/"}), "/Volumes/inbox"),
        (Macros(environment={"HEARTBEAT_HOME": "/home/hb"}), "/home/hb/inbox"),
        (Macros(project_name="heartbeat"), ".heartbeat/inbox"),
        (
            Macros(target=WORKSPACE, environment={"HEARTBEAT_CATALOG": "prod-eu"}),
            "`prod-eu`.`heartbeat`.`inbox`",
        ),
        (Macros(target=WORKSPACE, project_name="heartbeat"), "`lake`.`ours`.`inbox`"),
        (Macros(target=WORKSPACE, variables={"heartbeat_inbox": "a.b.inbox"}), "a.b.inbox"),
    ],
    ids=["variable", "environment", "own project", "workspace", "own there", "variable there"],
)
def test_the_inbox_is_where_the_configuration_of_the_run_places_it(
    macros: Macros, folder: str
) -> None:
    assert macros.call._inbox() == folder


@pytest.mark.parametrize("kind", ["spark", "databricks"])
def test_a_run_for_which_no_inbox_is_configured_ends_with_a_sentence(kind: str) -> None:
    home = {"HEARTBEAT_HOME": "/driver"} if kind == "databricks" else {}
    with pytest.raises(CompilationError, match="set the variable heartbeat_inbox to the"):
        Macros(target=SimpleNamespace(type=kind), environment=home).call._inbox()


def test_a_folder_of_the_inbox_is_named_by_run_and_content_and_quoted() -> None:
    statement = Macros(variables={"heartbeat_inbox": "/it's"}).call._write_to_inbox([event()])
    assert "insert overwrite directory '/it\\'s/registered-run-1-" in statement
    other = Macros(variables={"heartbeat_inbox": "/it's"}).call._write_to_inbox([event({"a": 1})])
    assert statement.splitlines()[0] == other.splitlines()[0]


def test_in_a_workspace_events_are_one_insert_with_a_line_for_each_and_an_id_of_its_own() -> None:
    macros = Macros(target=WORKSPACE, environment={"HEARTBEAT_CATALOG": "prod-eu"})
    statement = macros.call._write_to_inbox([event(tags={"a": "it's"}), event()])
    head, values, second = statement.strip().splitlines()
    assert head.startswith("insert into `prod-eu`.`heartbeat`.`inbox` (message_id, kind, content)")
    assert values.startswith("values ('run-1-")
    assert "'events', '{" in values
    assert "it\\'s" in values
    assert second.endswith("}')")
    assert statement != macros.call._write_to_inbox([event()])
