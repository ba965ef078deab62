"""Models that read on as their batch log records, and tests that any project may set on them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from harness.cli.app import main
from harness.errors import ExitCode
from tests.support.macro_calls import CompilationError, Macros
from tests.support.refresh.warehouse import batch
from tests.support.shop_project import SCHEMA, Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long(in_sample=True)

COLUMNS = "k int, t timestamp, n bigint, wall string"
#: Each reads on by its own setting, one of each type and more.
MODELS: dict[str, tuple[dict[str, object], str, str]] = {
    "by_instant": ({"type": "timestamp", "column": "t"}, "t >=", "initial='2026-01-01'"),
    "by_number": ({"type": "sequence", "column": "n"}, "n >=", "initial=0, overlap=5"),
    "by_key": (
        {"type": "key", "key": "k", "updated_at": "t"},
        "t >=",
        "initial='2026-01-01', overlap='10 minutes'",
    ),
    "by_wall": (
        {"type": "timestamp", "column": "wall", "time_zone": "Europe/Berlin"},
        "cast(wall as timestamp_ntz) >=",
        "initial='2026-01-01', time_zone='Europe/Berlin'",
    ),
    "appended": ({"type": "none", "watermark": "t"}, "t >=", "initial='2026-01-01'"),
    "replaced": ({"type": "full", "watermark": "n"}, "n >=", "initial=0"),
    "by_deletion": (
        {"type": "custom", "watermark": "n", "delete_condition": "this.k = input.k"},
        "n >=",
        "initial=0, overlap=5",
    ),
}
_TESTS = """
models:
  - name: by_key
    data_tests:
      - heartbeat.has_one_open_version
      - heartbeat.has_no_overlapping_versions
      - heartbeat.has_counts_that_add_up
  - name: by_number
    data_tests: [heartbeat.has_counts_that_add_up]
  - name: misplaced
    data_tests: [heartbeat.has_one_open_version]
"""


class Reading:
    """A source that gets rows twice, and the models that read it each time."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        texts = {
            name: (
                f"{{{{ config(materialized='refresh', meta={{'refresh': {settings!r}}}) }}}}\n"
                f"select * from {SCHEMA}.source where {asks} {{{{ heartbeat.refresh_watermark({how}) }}}}\n"
            )
            for name, (settings, asks, how) in MODELS.items()
        }
        texts["unreadable"] = (
            "{{ config(materialized='refresh', meta={'refresh': {'type': 'none'}}) }}\n"
            "select {{ heartbeat.refresh_watermark(0) }} as k\n"
        )
        texts["misplaced"] = texts["unreadable"].replace(
            "{{ heartbeat.refresh_watermark(0) }}", "0"
        )
        self.shop = Shop(folder, texts)
        (folder / "models" / "tests.yml").write_text(_TESTS)
        self.shop.parse()
        self._source = f"{SCHEMA}.source"
        spark.sql(f"create schema if not exists {SCHEMA}")
        self._add("overwrite", (1, 10, 10), (2, 20, 20), (3, 30, 30))
        self.run()
        # The second row came to the newest instant after it was read, the third within the overlaps.
        self._add("append", (4, 40, 40), (5, 30, 30), (6, 25, 26), (7, 11, 11))
        self.run()

    def run(self, *models: str) -> None:
        """Run models, or all that can be; what is misplaced is a test, which needs no table."""
        self.shop._invoke(self.shop.manifest, "run", "--select", *(models or MODELS))

    def test(self) -> set[str]:
        """Run the tests; return the names of those that fail."""
        result, _ = self.shop._attempt(self.shop.manifest, ["test", "--exclude", "misplaced"])
        return {
            str(each.node.name)
            for each in getattr(result.result, "results", ())
            if str(each.status) != "pass"
        }

    def keys(self, model: str) -> list[int]:
        """The keys of a target table."""
        rows = self.spark.sql(f"select k from {SCHEMA}.{model} order by k").collect()
        return [row[0] for row in rows]

    def read(self, model: str) -> list[int]:
        """How many rows each batch had."""
        rows = self.spark.sql(
            f"select record_count from {SCHEMA}.{model}_metrics order by s_input_id"
        )
        return [row[0] for row in rows.collect()]

    def _add(self, mode: str, *rows: tuple[int, int, int]) -> None:
        # In January Berlin shows an hour more than UTC.
        cells = [(k, t, n, f"2026-01-01 {1 + t // 60:02d}:{t % 60:02d}:00") for k, t, n in rows]
        found = self.spark.sql(batch(COLUMNS, *cells))
        found.write.format("delta").mode(mode).saveAsTable(self._source)


@pytest.fixture(scope="module")
def reading(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    yield Reading(spark, tmp_path_factory.mktemp("shop"))
    # Other files share the session, and make a schema of this name.
    spark.sql(f"drop schema if exists {SCHEMA} cascade")


@pytest.mark.parametrize(
    ("model", "counts", "keys"),
    [
        ("by_instant", [3, 3], [1, 2, 3, 4, 5]),
        ("by_wall", [3, 3], [1, 2, 3, 4, 5]),
        ("by_number", [3, 4], [1, 2, 3, 4, 5, 6]),
        ("by_key", [3, 5], [1, 2, 3, 4, 5, 6]),
        ("appended", [3, 3], [1, 2, 3, 3, 4, 5]),
        ("replaced", [3, 3], [3, 4, 5]),
        ("by_deletion", [3, 4], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_run_reads_on_from_what_the_ledger_has_and_reads_the_last_instant_again(
    reading: Reading, model: str, counts: list[int], keys: list[int]
) -> None:
    assert reading.read(model) == counts
    assert reading.keys(model) == keys


def test_a_custom_batch_is_one_commit_of_the_hub_and_counts_what_it_deletes_and_adds(
    reading: Reading,
) -> None:
    found = reading.spark.sql(f"describe history {SCHEMA}.by_deletion").collect()
    assert [row.operation for row in found][:-1] == ["MERGE"]
    counts = reading.spark.sql(
        f"select code_counts from {SCHEMA}.by_deletion_metrics order by s_input_id"
    )
    assert [row[0] for row in counts.collect()] == [None, {"D": 1, "N": 4}]


def test_of_two_runs_that_write_to_a_log_at_the_same_step_one_is_refused(
    spark: "SparkSession",
) -> None:
    log = f"{SCHEMA}.contended_ledger"
    spark.sql(f"create schema if not exists {SCHEMA}")
    columns = dict(Macros().call._refresh_batch_log_columns())
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    spark.sql(f"create or replace table {log} ({listed}) using delta")

    def record(step: int) -> bool:
        """Return whether a run that has read the log up to a step gets its event into it."""
        unknown = dict.fromkeys(("batch", "fingerprint", "range_from", "range_to"))
        facts = {"id": 1, "received_at": "2026-03-01 12:00:00", "record_count": 1, **unknown}
        load = {"name": "contended", "settings": {}, "tables": {"ledger": log}, "step": step}
        answer = Macros(run_query=lambda query: _answer(spark, query))
        try:
            answer.call._refresh_record_batches(load, [facts], "CLAIMED")
        except (CompilationError, PySparkException, Py4JJavaError):
            return False
        return True

    with ThreadPoolExecutor(2) as runs:
        at_once = list(runs.map(record, [0, 0]))
    assert sorted(at_once) == [False, True]
    assert not record(0)
    assert record(1)
    steps = spark.sql(f"select step from {log} order by step").collect()
    assert [row.step for row in steps] == [1, 2]


def _answer(spark: "SparkSession", query: str) -> SimpleNamespace:
    rows = spark.sql(query).collect()
    return SimpleNamespace(rows=[dict(enumerate(row)) for row in rows])


def test_each_event_of_a_log_has_the_next_step(reading: Reading) -> None:
    rows = reading.spark.sql(f"select step, state from {SCHEMA}.by_deletion_ledger order by step")
    once = ["CLAIMED", "STAGED", "COMPLETE"]
    assert [tuple(row) for row in rows.collect()][:6] == list(enumerate(once * 2, start=1))


def test_a_new_log_is_serializable_and_has_no_deletion_vectors(reading: Reading) -> None:
    found = reading.spark.sql(f"show tblproperties {SCHEMA}.by_deletion_ledger")
    properties = dict(found.collect())
    assert properties["delta.isolationLevel"] == "Serializable"
    assert properties["delta.enableDeletionVectors"] == "false"


@pytest.mark.long
def test_a_run_over_what_was_read_already_changes_nothing(reading: Reading) -> None:
    # What was appended is appended again, and the rows of the last value replace all.
    models = [model for model in MODELS if model not in ("appended", "replaced")]
    before = {model: reading.keys(model) for model in models}
    reading.run()
    assert {model: reading.keys(model) for model in models} == before
    assert reading.keys("replaced") == [4]


@pytest.mark.long
def test_a_model_without_date_or_number_has_no_watermark(reading: Reading) -> None:
    output = " ".join(reading.shop.refusal("run", "--select", "unreadable").split())
    assert "unreadable: refresh_watermark needs a date or a number in meta.refresh" in output


@pytest.mark.long
def test_the_command_line_does_in_any_project_what_the_operations_do(
    reading: Reading,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["refresh", *arguments, "--project", str(reading.shop.folder)])
        return code, *capsys.readouterr()

    code, output, _ = call("status", "by_number")
    assert code == ExitCode.DONE
    reported = [line.partition(" of ")[0] for line in output.splitlines()]
    assert reported[:2] == ["by_number batch 1", "by_number batch 2"]
    # A run after it has read the last number once more.
    reading.run("by_number")
    before = reading.keys("by_number")
    code, output, _ = call("unload", "by_number", "--batch", "2", "--dry-run")
    assert (code, reading.keys("by_number")) == (ExitCode.DONE, before)
    assert "would unload batch 2" in output
    call("unload", "by_number", "--batch", "2")
    assert reading.keys("by_number") == [1, 2, 3, 4]
    code, output, _ = call("reload", "by_number", "--batch", "2", "--json")
    assert (json.loads(output)["model"], reading.keys("by_number")) == ("by_number", before)
    code, output, error = call("status", "orders")
    assert (code, output) == (ExitCode.FAILED, "")
    assert error.startswith("error: refresh: orders is not a model that is materialized as refresh")
    assert len(error.splitlines()) == 1


@pytest.mark.long
def test_a_test_of_versions_on_a_model_that_has_none_states_what_it_is_for(
    reading: Reading,
) -> None:
    output = " ".join(reading.shop.refusal("test", "--select", "misplaced").split())
    assert (
        "has_one_open_version is a test for refresh models of type key, but misplaced is of type none"
        in output
    )


@pytest.mark.long
def test_the_tests_of_the_package_pass_on_what_it_has_made_and_find_what_somebody_broke(
    reading: Reading,
) -> None:
    assert reading.test() == set()
    history = f"{SCHEMA}.by_key_history"
    reading.spark.sql(
        f"update {history} set s_effective_to = s_effective_from - interval 1 day where k = 1"
    )
    reading.spark.sql(
        f"insert into {SCHEMA}.by_number select * from {SCHEMA}.by_number where k = 1"
    )
    reading.spark.sql(f"update {SCHEMA}.by_number set s_input_id = 99 where k = 2")
    found = {name.split("_by_")[0] for name in reading.test()}
    assert found == {
        "heartbeat_has_one_open_version",
        "heartbeat_has_no_overlapping_versions",
        "heartbeat_has_counts_that_add_up",
    }
