"""What users of dbt expect of any materialization: contracts, hooks, properties, tests, retries and clones."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.refresh.warehouse import batch
from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

COPY = "shop_copy"
COLUMNS = "k int, v string, t timestamp"
FIRST = batch(COLUMNS, (1, "a", 10), (2, "b", 20))
SECOND = batch(COLUMNS, (1, "a2", 30), (3, "c", 30))
THIRD = batch(COLUMNS, (4, "d", 40))
_BY_KEY = {"type": "key", "key": "k", "updated_at": "t"}
_GIVEN = "{{ var('batches')[this.name] }}"
MODELS = {
    "customers": f"{{{{ config(materialized='refresh', meta={{'refresh': {_BY_KEY!r}}}) }}}}\n{_GIVEN}\n",
    "prices": f"{{{{ config(materialized='refresh', meta={{'refresh': {{'type': 'full'}}}}) }}}}\n{_GIVEN}\n",
    "broken": f"{{{{ config(materialized='refresh', meta={{'refresh': {{'type': 'none'}}}}) }}}}\n{_GIVEN}\n",
    "plain": (
        "{{ config(materialized='refresh', tblproperties={'delta.enableDeletionVectors': 'false'}, "
        f"meta={{'refresh': {_BY_KEY!r}}}) }}}}\n{_GIVEN}\n"
    ),
    "late": (
        f"{{{{ config(materialized='refresh', meta={{'refresh': {_BY_KEY!r}}}) }}}}\n"
        f"select * from {SCHEMA}.feed\n"
    ),
    "raw": f"{{{{ config(materialized='table') }}}}\n{FIRST}\n",
    "reading": (
        f"{{{{ config(materialized='refresh', meta={{'refresh': {_BY_KEY!r}}}) }}}}\n"
        "select * from {{ ref('raw') }} where t >= {{ heartbeat.refresh_watermark('2026-02-01') }}\n"
    ),
}
_YML = """
models:
  - name: customers
    description: All customers
    config:
      contract: {enforced: true}
      tags: [daily]
      persist_docs: {relation: true, columns: true}
      tblproperties: {shop.owner: sales}
      grants: {select: [analysts]}
      pre_hook: "create or replace table shop.hooked_before using delta as select 1 as n"
      post_hook: "create or replace table shop.hooked_after using delta as select count(*) as n from {{ this }}"
    columns:
      - {name: k, data_type: int, description: Their number, constraints: [{type: not_null}]}
      - {name: v, data_type: string}
      - {name: t, data_type: timestamp}
  - name: prices
    config: {contract: {enforced: true}, partition_by: k}
    columns: &columns
      - {name: k, data_type: int}
      - {name: v, data_type: string}
      - {name: t, data_type: timestamp}
  - name: broken
    config: {contract: {enforced: true}}
    columns:
      - {name: k, data_type: string}
      - {name: v, data_type: string}
      - {name: t, data_type: timestamp}
unit_tests:
  - name: the_first_run_reads_from_the_beginning
    model: reading
    given: &given
      - input: ref('raw')
        rows:
          - {k: 1, t: "2026-01-31 00:00:00"}
          - {k: 2, t: "2026-02-01 00:00:00"}
          - {k: 3, t: "2026-03-01 00:00:00"}
    expect: {rows: [{k: 2}, {k: 3}]}
  - name: a_later_run_reads_on
    model: reading
    overrides: {macros: {heartbeat.refresh_watermark: "timestamp'2026-02-15'"}}
    given: *given
    expect: {rows: [{k: 3}]}
"""
#: A catalog of plain Spark has no grants: what dbt would run there is recorded instead.
_GRANTS = f"""
{{% macro spark__get_show_grant_sql(relation) %}}
    select 'nobody' as grantee, 'select' as privilege_type where false
{{% endmacro %}}
{{% macro spark__call_dcl_statements(statements) %}}
    {{% do run_query("create table if not exists {SCHEMA}.asked (statement string) using delta") %}}
    {{% for statement in statements %}}
        {{% do run_query('insert into {SCHEMA}.asked values ("' ~ statement | trim ~ '")') %}}
    {{% endfor %}}
{{% endmacro %}}
"""
_OUTPUT = "    copy: {type: spark, method: session, host: local, schema: shop_copy, threads: 1}\n"


class Project:
    """A project that checks its settings at the start of each run, and a second place for its tables."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.shop = Shop(folder, MODELS)
        (folder / "models" / "more.yml").write_text(_YML)
        (folder / "macros").mkdir()
        (folder / "macros" / "grants.sql").write_text(_GRANTS)
        for name, more in (
            ("profiles.yml", _OUTPUT),
            ("dbt_project.yml", 'on-run-start: "{{ heartbeat.refresh_check() }}"\n'),
        ):
            path = folder / name
            path.write_text(path.read_text() + more)
        self.shop.parse()

    def run(self, **batches: str) -> None:
        self.shop._invoke(self.shop.manifest, *self._given(batches))

    def refusal(self, *more: str, **batches: str) -> str:
        return " ".join(self.shop.refusal(*self._given(batches), *more).split())

    def copy(self, *arguments: str) -> str:
        """Invoke dbt where the copies go; return its output, whether it fails or not."""
        _, output = self.shop._attempt(None, [*arguments, "--target", "copy"])
        return " ".join(output.split())

    def given(self, **batches: str) -> list[str]:
        return self._given(batches)

    def rows(self, table: str, columns: str = "*") -> list[tuple[object, ...]]:
        found = self.spark.sql(f"select {columns} from {table}")
        # The batch log has a map, by which Spark does not order.
        return sorted((tuple(row) for row in found.collect()), key=repr)

    def states(self, model: str, schema: str = SCHEMA) -> list[str]:
        return [str(row[1]) for row in self.rows(f"{schema}.{model}_metrics", "s_input_id, state")]

    @staticmethod
    def _given(batches: dict[str, str]) -> list[str]:
        given = json.dumps({"batches": {**dict.fromkeys(MODELS, "select 1 as k"), **batches}})
        return ["run", "--select", *batches, "--vars", given]


@pytest.fixture(scope="module")
def project(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two batches in two models that have contracts."""
    spark.sql("drop schema if exists shop cascade")
    spark.sql(f"drop schema if exists {COPY} cascade")
    made = Project(spark, tmp_path_factory.mktemp("refresh") / "project")
    made.run(customers=FIRST, prices=FIRST, raw="")
    made.run(customers=SECOND, prices=SECOND, plain=FIRST)
    return made


def test_a_contract_holds_for_the_columns_of_the_model_and_its_constraints_for_the_hub(
    project: Project,
) -> None:
    assert project.rows(f"{SCHEMA}.customers", "k, v, s_input_id") == [
        *((1, "a2", 2), (2, "b", 1), (3, "c", 2)),
    ]
    properties = dict(project.spark.sql("show tblproperties shop.customers").collect())
    found = {name: value for name, value in properties.items() if "constraints" in name}
    assert found == {"delta.constraints.k_is_not_null": "`k` is not null"}
    assert project.rows(f"{SCHEMA}.prices", "k, v, s_input_id") == [(1, "a2", 2), (3, "c", 2)]


def test_rows_that_break_a_contract_reach_no_table(project: Project) -> None:
    assert "This model has an enforced contract that failed" in project.refusal(broken=FIRST)
    assert not project.spark.catalog.tableExists(f"{SCHEMA}.broken")
    nameless = batch(COLUMNS, (None, "x", 50))
    assert "have no value in k" in project.refusal(customers=nameless)


def test_hooks_properties_comments_and_tags_are_those_of_the_model(project: Project) -> None:
    assert project.rows(f"{SCHEMA}.hooked_before") == [(1,)]
    assert project.rows(f"{SCHEMA}.hooked_after") == [(3,)]
    properties = dict(project.spark.sql("show tblproperties shop.customers").collect())
    assert properties["shop.owner"] == "sales"
    reported = {
        row[0]: row for row in project.spark.sql("describe extended shop.customers").collect()
    }
    assert reported["k"][2] == "Their number"
    assert reported["Comment"][1] == "All customers"
    _, output = project.shop._attempt(project.shop.manifest, ["ls", "--select", "tag:daily"])
    assert "shop.customers" in output


def test_what_is_granted_on_a_model_is_granted_on_all_of_its_tables(project: Project) -> None:
    assert {row[0] for row in project.rows(f"{SCHEMA}.asked")} == {
        f"grant select on {SCHEMA}.customers{ending} to `analysts`"
        for ending in ("", "_history", "_batches", "_ledger", "_metrics")
    }


def test_a_merge_leaves_files_as_they_are_unless_the_model_specifies_otherwise(
    project: Project,
) -> None:
    project.run(reading="")
    vectors = "delta.enableDeletionVectors"
    for table, is_set in (
        *(("customers", True), ("customers_history", True), ("reading", True)),
        *(("customers_batches", False), ("plain", False), ("plain_history", False)),
    ):
        properties = dict(project.spark.sql(f"show tblproperties {SCHEMA}.{table}").collect())
        assert (properties.get(vectors) == "true") is is_set, table


def test_dbt_retry_finishes_what_a_run_has_left_and_takes_what_it_could_not_read(
    project: Project,
) -> None:
    project.spark.sql(f"create table {SCHEMA}.feed using delta as {FIRST}")
    project.run(late="")
    project.spark.sql(f"delete from {SCHEMA}.late_ledger where state = 'COMPLETE'")
    project.spark.sql(f"drop table {SCHEMA}.late")
    project.spark.sql(f"drop table {SCHEMA}.feed")
    assert "shop" in project.refusal("--write-json", late="")
    project.spark.sql(f"create table {SCHEMA}.feed using delta as {SECOND}")
    project.shop._invoke(project.shop.manifest, "retry")
    assert project.states("late") == ["COMPLETE", "COMPLETE"]
    assert project.rows(f"{SCHEMA}.late", "k, v") == [(1, "a2"), (2, "b"), (3, "c")]


def test_a_unit_test_of_dbt_sees_the_first_run_or_the_watermark_that_it_gives(
    project: Project,
) -> None:
    result, output = project.shop._attempt(
        project.shop.manifest, ["test", "--select", "test_type:unit"]
    )
    statuses = [str(each.status) for each in getattr(result.result, "results", ())]
    # The hook at the start of the run is one of the results.
    assert statuses.count("pass") == 2, output


def test_all_tables_of_a_model_can_be_copied_and_the_copy_goes_on_by_itself(
    project: Project,
) -> None:
    arguments = json.dumps({"model": "customers", "from_schema": SCHEMA})
    operation = ["run-operation", "heartbeat.refresh_clone", "--args", arguments]
    output = project.copy(*operation, "--vars", json.dumps({"batches": {}}))
    assert "copying shop.customers_history to shop_copy.customers_history" in output
    for ending in ("", "_history", "_batches", "_ledger", "_metrics"):
        assert project.rows(f"{COPY}.customers{ending}") == (
            project.rows(f"{SCHEMA}.customers{ending}")
        )
    project.copy(*project.given(customers=THIRD))
    assert project.states("customers", COPY)[-1] == "COMPLETE"
    assert [row[0] for row in project.rows(f"{COPY}.customers", "k")] == [1, 2, 3, 4]
    assert [row[0] for row in project.rows(f"{SCHEMA}.customers", "k")] == [1, 2, 3]
    again = project.copy(*operation, "--vars", json.dumps({"batches": {}}))
    assert "is there already; replace: true puts the copy in its place" in again


def test_a_hub_that_was_cloned_alone_is_not_written_over(project: Project) -> None:
    project.spark.sql(f"create schema if not exists {COPY}")
    project.spark.sql(f"create table {COPY}.prices shallow clone {SCHEMA}.prices")
    output = project.copy(*project.given(prices=THIRD))
    assert "is there without shop_copy.prices_batches, so no refresh has made it" in output
    assert project.rows(f"{COPY}.prices", "k") == [(1,), (3,)]


def test_a_project_checks_the_settings_of_all_its_models_before_any_of_them_runs(
    project: Project, tmp_path: Path
) -> None:
    texts = {
        "fine": "{{ config(materialized='refresh', meta={'refresh': {'type': 'none'}}) }} select 1 as k",
        "odd": "{{ config(materialized='refresh', meta={'refresh': {'type': 'keys'}}) }} select 1 as k",
    }
    shop = Shop(tmp_path / "odd", texts)
    path = tmp_path / "odd" / "dbt_project.yml"
    path.write_text(path.read_text() + 'on-run-start: "{{ heartbeat.refresh_check() }}"\n')
    shop.parse()
    output = " ".join(shop.refusal("run", "--select", "fine").split())
    assert "meta.refresh of odd: type is keys, but must be one of key, full" in output
    assert not project.spark.catalog.tableExists(f"{SCHEMA}.fine")
