"""dbt as the harness runs it, on the project itself."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from harness.controls.accept import SEEDS
from harness.controls.optional_seeds import SCHEDULED_JOBS, SEED_COLUMNS
from harness.errors import DecideError
from harness.platform.dbt import Dbt
from harness.platform.files import write_atomically
from harness.store.state_dir import StateDir
from tests.conftest import PROJECT
from tests.support.parsed_project import give_parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "wrapped"
#: Of the two tables called t, which one counts?
NESTED = """
with t as (select 'outer' as place), inner_query as (
    with t as (select 'inner' as place) select * from t
) select * from inner_query
"""


@pytest.fixture(scope="module")
def dbt(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dbt]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEARTBEAT_SCHEMA", SCHEMA)
        home = tmp_path_factory.mktemp("home")
        give_parsed(home, SCHEMA)
        wrapper = Dbt(PROJECT, home, target="local", before=lambda: None)
        wrapper.accepted = StateDir(folder=wrapper._home).accepted
        wrapper._invoke(["seed", "--select", "status_transitions"], None)
        yield wrapper


def test_views_are_made_with_their_ctes_written_out_and_the_session_reads_as_before(
    spark: "SparkSession", dbt: Dbt
) -> None:
    dbt._invoke(["run", "--select", "run_statuses"], None)
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = spark._jsparkSession.sessionState().sqlParser()
    view = catalog.getTableMetadata(identifier.parseTableIdentifier(f"{SCHEMA}.run_statuses"))
    kept = view.properties().get("view.sqlConfig.spark.sql.legacy.ctePrecedencePolicy")
    assert kept.get() == "LEGACY"
    assert [row.place for row in spark.sql(NESTED).collect()] == ["inner"]


def test_a_view_that_is_made_again_is_altered_and_at_no_time_missing(
    spark: "SparkSession", dbt: Dbt
) -> None:
    def created() -> str:
        rows = spark.sql(f"describe extended {SCHEMA}.run_statuses").collect()
        return next(str(row.data_type) for row in rows if row.col_name == "Created Time")

    dbt._invoke(["run", "--select", "run_statuses"], None)
    first = created()
    # It has seconds.
    time.sleep(1.1)
    dbt._invoke(["run", "--select", "run_statuses"], None)
    assert created() == first


def test_a_failed_build_leaves_the_session_as_it_was(spark: "SparkSession", dbt: Dbt) -> None:
    with pytest.raises(DecideError, match="stg_controls"):
        dbt._invoke(["run", "--select", "stg_controls"], None)
    assert [row.place for row in spark.sql(NESTED).collect()] == ["inner"]


def test_what_selects_nothing_is_a_failure_though_dbt_calls_it_a_success(dbt: Dbt) -> None:
    with pytest.raises(DecideError, match="selected nothing"):
        dbt._invoke(["run", "--select", "no_such_model"], None)


@pytest.mark.parametrize(
    "selector",
    ["decide", "fold", "tail", "triggers", "trigger_terms"],
)
def test_a_tick_runs_no_data_test(dbt: Dbt, selector: str) -> None:
    arguments = ["ls", "--selector", selector, "--resource-type", "test"]
    assert list(dbt._run(dbt._runner(), arguments, None).result or ()) == []


def test_one_view_states_for_all_others_how_far_the_ledgers_are_compacted(dbt: Dbt) -> None:
    runner = dbt._runner()
    assert dbt.manifest is not None
    models = {
        each.name: each.raw_code
        for each in dbt.manifest.nodes.values()
        if str(each.resource_type) == "model"
    }
    assert [name for name, code in models.items() if "compacted_through(" in code] == [
        "int_compaction"
    ]
    arguments = ["ls", "--selector", "tail", "--output", "name"]
    assert list(dbt._run(runner, arguments, None).result or ()) == ["int_compaction"]


def test_the_accepted_seeds_are_loaded_and_their_files_stay_as_they_are(
    spark: "SparkSession", dbt: Dbt
) -> None:
    accepted = StateDir(folder=dbt._home).accepted
    texts = {}
    for seed in SEEDS:
        header, *_ = (PROJECT / seed).read_text().splitlines() or [",".join(SEED_COLUMNS[seed])]
        rows = ["4711,nightly"] if seed == SCHEDULED_JOBS else []
        texts[seed] = "".join(f"{line}\n" for line in (header, *rows))
        write_atomically(accepted / seed, texts[seed])
    for _ in range(2):
        dbt.load_seeds([seed.stem for seed in SEEDS])
        assert {seed: (accepted / seed).read_text() for seed in SEEDS} == texts
    rows = spark.sql(f"select job_id, note from {SCHEMA}.scheduled_jobs").collect()
    assert [tuple(map(str, row)) for row in rows] == [("4711", "nightly")]
