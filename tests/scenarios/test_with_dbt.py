"""What a reviewer runs on a filled installation: dbt's own tests of every model, and its documentation.

It comes after the stories, so that the data tests judge what they have left in the tables. They read it as
ticks do, through Delta Kernel; a reviewer's dbt has Delta's own reader.
"""

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.platform.dbt import forget_inlined
from harness.platform.spark.engine import THROUGH_KERNEL, session_beside
from harness.tick.install import Installation
from tests.scenarios.conftest import SCHEMA, StoryHome

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest
    from pyspark.sql import SparkSession

Dbt = Callable[..., Any]


@pytest.fixture
def manifest(story_home: StoryHome, monkeypatch: pytest.MonkeyPatch) -> "Manifest":
    """The project as dbt has parsed it; every model of it is built in the installation."""
    monkeypatch.setenv("HEARTBEAT_SCHEMA", SCHEMA)
    context = story_home.process.context
    installation = Installation(context)
    installation.ensure(context.clock.now())
    installation.ensure_triggers(context.clock.now())
    assert context.dbt.manifest is not None
    return context.dbt.manifest


@pytest.fixture
def dbt(story_home: StoryHome, manifest: "Manifest", tmp_path: Path) -> Dbt:
    """Run dbt on the installation of the stories."""
    from dbt.cli.main import dbtRunner

    places = ["--project-dir", story_home.project, "--profiles-dir", story_home.project]
    places += ["--target-path", tmp_path / "target", "--log-path", tmp_path / "logs"]

    def run(*arguments: str) -> Any:
        forget_inlined(manifest)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            result = dbtRunner(manifest=manifest).invoke([*arguments, *map(str, places)])
        assert result.exception is None, f"{output.getvalue()[-3000:]}{result.exception}"
        return result.result

    return run


def without_hooks(results: Sequence[Any]) -> list[Any]:
    """Return the results of tests; dbt reports its hooks beside them."""
    return [each for each in results if str(each.node.resource_type) in {"test", "unit_test"}]


@pytest.fixture
def through_kernel(spark: "SparkSession") -> Iterator[None]:
    """Read the models as ticks do, which takes little more than half the time of Delta's own reader."""
    for setting, value in THROUGH_KERNEL.items():
        spark.conf.set(setting, value)
    yield
    for setting in THROUGH_KERNEL:
        spark.conf.unset(setting)


@pytest.mark.usefixtures("through_kernel")
def test_every_unit_test_and_data_test_of_the_models_passes(dbt: Dbt, manifest: "Manifest") -> None:
    kinds = [str(node.resource_type) for node in manifest.nodes.values()]
    results = without_hooks(dbt("test").results)
    failed = [each for each in results if str(each.status) != "pass"]
    assert [f"{each.node.name}: {each.message}" for each in failed] == []
    assert len(results) == kinds.count("test") + len(manifest.unit_tests)


def test_the_documentation_shows_each_model_with_its_columns(
    dbt: Dbt, manifest: "Manifest", tmp_path: Path
) -> None:
    dbt("docs", "generate")
    catalog = json.loads((tmp_path / "target" / "catalog.json").read_text())
    assert catalog["errors"] is None
    for name, node in manifest.nodes.items():
        is_inlined = node.config.materialized == "ephemeral"
        if str(node.resource_type) in {"model", "seed"} and not is_inlined:
            described = {column.lower() for column in node.columns}
            shown = {column.lower() for column in catalog["nodes"][name]["columns"]}
            assert described <= shown, f"{name} has no column {described - shown}"
            long = [
                each
                for each in catalog["nodes"][name]["columns"].values()
                if len(each["type"]) > 40
            ]
            assert long == [], f"{name} has types that leave no room for a description"


@pytest.mark.parametrize("change", ["another type", "one column more"])
def test_a_view_whose_columns_are_not_those_of_its_contract_fails_its_build(
    dbt: Dbt, manifest: "Manifest", monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    def built() -> str:
        (result,) = (
            each
            for each in dbt("run", "--select", "queue_control_changes").results
            if str(each.node.resource_type) == "model"
        )
        return str(result.message)

    columns = manifest.nodes["model.heartbeat.queue_control_changes"].columns
    with monkeypatch.context() as patch:
        name, column = next(iter(columns.items()))
        if change == "another type":
            patch.setattr(column, "data_type", "binary")
        else:
            patch.setitem(columns, "unknown", replace(column, name="unknown"))
        message = built()
        assert "This model has an enforced contract that failed" in message
        assert (name if change == "another type" else "unknown") in message
    assert "contract" not in built()


def test_an_evaluation_of_the_triggers_reads_the_past_only_where_something_waits_for_it(
    manifest: "Manifest", spark: "SparkSession"
) -> None:
    reader = session_beside(spark, THROUGH_KERNEL)
    statement = f"explain formatted select * from {SCHEMA}.queue_trigger_evaluations"
    plan = reader.sql(statement).collect()[0].plan
    scans = re.findall(r"^\((\d+)\) BatchScan .*\.event_partitions$", plan, re.MULTILINE)
    pruned = re.findall(r"operator id = (\d+) Hosting Expression = (\w+)#\d+ IN dynamic", plan)
    assert len(scans) == 3
    assert {(each, "bucket") for each in scans} <= set(pruned)
    # The changes that a snapshot trigger has not seen lie in few eras.
    assert [column for _, column in pruned].count("era") == 1
