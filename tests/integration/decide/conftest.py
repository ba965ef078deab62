"""Evaluates the real models for every job of the tests at once: one build, one read."""

import contextlib
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.platform.dbt import forget_inlined
from tests.support.decisions import world
from tests.support.decisions.cases import CASES
from tests.support.decisions.histories import random_jobs
from tests.support.decisions.world import FOLDED, Job, Verdict
from tests.support.parsed_project import give_parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "decisions"
Dbt = Callable[..., Any]


@pytest.fixture(scope="package")
def dbt(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Dbt:
    """Run dbt in this process, in a schema of its own; it returns what came of it."""
    from dbt.cli.main import dbtRunner

    folder = tmp_path_factory.mktemp("dbt")
    places = ["--target", "local", "--no-write-json"]
    places += ["--target-path", str(folder / "target"), "--log-path", str(folder / "logs")]
    give_parsed(folder, SCHEMA)
    parsed: list[Any] = []

    def run(command: str, *arguments: str) -> Any:
        # Only while dbt runs: later tests of the same process have schemas of their own.
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HEARTBEAT_SCHEMA", SCHEMA)
            environment.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                if not parsed:
                    parsed.append(dbtRunner().invoke(["parse", *places]).result)
                forget_inlined(parsed[0])
                result = dbtRunner(manifest=parsed[0]).invoke([command, *places, *arguments])
        assert result.success, f"{output.getvalue()[-3000:]}{result.exception or ''}"
        return result.result

    return run


@pytest.fixture(scope="package")
def verdicts(spark: "SparkSession", dbt: Dbt) -> Mapping[int, Verdict]:
    """What the models decide for each job of the tests, by job id."""
    jobs = [*(case.job for case in CASES), *random_jobs()]
    requests = ["+trigger_set", "+job_blockers", "+int_control_rows", "+event_partitions"]
    # As after the compaction below, which reads no view that has one of these variables.
    variables = f"{{folded_through: {FOLDED}, starts_per_tick: 1000000}}"
    kinds = ["--resource-type", "seed", "--resource-type", "model"]
    dbt("build", *kinds, "--vars", variables, "--select", *requests)
    upstream_ids = _write_controls(spark, jobs)
    world.append(spark, f"{SCHEMA}.retry_policies", world.policy_rows(jobs))
    dbt("run", "--select", "int_dependencies", "stg_retry_policies")
    probes = list(world.probe_rows(jobs, upstream_ids))
    runs = list(world.run_rows(jobs, upstream_ids))

    _append_if(spark, probes, runs, lambda tick: tick <= FOLDED)
    dbt("run", "--selector", "fold")
    _append_if(spark, probes, runs, lambda tick: tick > FOLDED)
    return _read(spark, {value: key for key, value in upstream_ids.items()}, jobs)


def _write_controls(spark: "SparkSession", jobs: Sequence[Job]) -> Mapping[tuple[int, str], str]:
    """Return the upstream id of each job and sensor id, also of lines that are gone."""
    controls = f"{SCHEMA}.heartbeat_controls"
    world.append(spark, controls, world.control_rows(jobs, all_of_them=True))
    staged = spark.table(f"{SCHEMA}.stg_controls").collect()
    spark.sql(f"delete from {controls}")
    world.append(spark, controls, world.control_rows(jobs))
    return {(row.job_id, row.sensor_id): row.upstream_id for row in staged}


def _append_if(
    spark: "SparkSession",
    probes: Iterable[world.Row],
    runs: Iterable[world.Row],
    is_wanted: Callable[[int], bool],
) -> None:
    for ledger, rows in (("ledger_probes", probes), ("ledger_runs", runs)):
        wanted = [row for row in rows if is_wanted(int(str(row["tick_number"])))]
        world.append(spark, f"{SCHEMA}.{ledger}", wanted)


def _read(
    spark: "SparkSession", names: Mapping[str, tuple[int, str]], jobs: Sequence[Job]
) -> Mapping[int, Verdict]:
    starts = {row.job_id: row for row in spark.table(f"{SCHEMA}.trigger_set").collect()}
    blockers: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for row in spark.table(f"{SCHEMA}.job_blockers").collect():
        blockers[row.job_id].append((row.blocker, row.reason))
    statuses: dict[int, dict[str, str | None]] = defaultdict(dict)
    for row in spark.table(f"{SCHEMA}.int_control_rows").collect():
        statuses[int(row.trigger_job_id)][row.sensor_id] = row.status
    return {
        job.job_id: Verdict(
            consumed={
                names[each.upstream_id][1]: (each.from_tick, each.through_tick)
                for each in starts[job.job_id].consumed
            }
            if job.job_id in starts
            else None,
            attempt=starts[job.job_id].attempt if job.job_id in starts else None,
            intent_id=starts[job.job_id].intent_id if job.job_id in starts else None,
            blockers=sorted(blockers[job.job_id]),
            status=statuses[job.job_id],
        )
        for job in jobs
    }


@pytest.fixture(scope="package")
def project() -> Path:
    """The folder of the project."""
    return Path(__file__).resolve().parents[3]
