"""What dbt docs receives about the columns of our relations, by plain dbt in its own process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

DBT_PROJECT = """
name: heartbeat
version: "1.0"
profile: heartbeat
flags: {send_anonymous_usage_stats: false}
models: {+file_format: delta}
seeds: {+file_format: delta}
"""
TABLE = """
{{ config(materialized='table') }}
select
    id,
    name,
    array(name) as names,
    map(name, id) as ids_by_name,
    named_struct('inner_id', id, 'inner_names', array(name)) as nested,
    array(named_struct('inner_id', id, 'inner_names', array(name))) as listed,
    array(named_struct('a', 1)) as short,
    cast(1.5 as decimal(10, 2)) as amount,
    cast('2026-01-01' as timestamp) as seen_at
from {{ ref('a_seed') }}
"""
COLUMNS = [
    ("id", "bigint"),
    ("name", "string"),
    ("names", "array<string>"),
    ("ids_by_name", "map<string,bigint>"),
    # Without its fields: a long type leaves no room for the description.
    ("nested", "struct<...>"),
    ("listed", "array<struct<...>>"),
    ("short", "array<struct<a:int>>"),
    ("amount", "decimal(10,2)"),
    ("seen_at", "timestamp"),
]
#: One process, so that Spark starts once. Between the two, somebody else's table loses its files.
RUN_DBT = """
import shutil, sys
from dbt.cli.main import dbtRunner

from pyspark.sql import SparkSession

ran = [dbtRunner().invoke(["--quiet", "build"]).success]
spark = SparkSession.builder.getOrCreate()
spark.sql("create table heartbeat.lost using delta as select 1 as number")
shutil.rmtree(sys.argv[1] + "/warehouse/heartbeat.db/lost")
ran.append(dbtRunner().invoke(["--quiet", "docs", "generate"]).success)
sys.exit(0 if all(ran) else 1)
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str]:
    """The catalog of a small project with our profile and our listing, and what the run printed."""
    project = tmp_path_factory.mktemp("project")
    home = tmp_path_factory.mktemp("home")
    for name in ("profiles.yml", "log4j2.properties"):
        shutil.copy(PROJECT / name, project)
    for folder in ("models", "seeds", "macros"):
        (project / folder).mkdir()
    shutil.copy(PROJECT / "macros" / "engine" / "list_relations.sql", project / "macros")
    (project / "dbt_project.yml").write_text(DBT_PROJECT)
    (project / "seeds" / "a_seed.csv").write_text("id,name\n9007199254740993,x\n")
    (project / "models" / "a_table.sql").write_text(TABLE)
    (project / "models" / "a_view.sql").write_text("select * from {{ ref('a_table') }}")
    ran = subprocess.run(
        [sys.executable, "-c", RUN_DBT, str(home)],
        cwd=project,
        env=os.environ | {"HEARTBEAT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads((project / "target" / "catalog.json").read_text()), ran.stdout + ran.stderr


def columns(catalog: dict, node: str) -> list[tuple[str, str]]:
    """The columns of a node as dbt docs shows them: in the order of their index."""
    by_index = sorted(
        catalog["nodes"][node]["columns"].values(), key=lambda column: column["index"]
    )
    return [(column["name"], column["type"]) for column in by_index]


def test_a_delta_table_has_its_columns_and_types_in_order(generated: tuple[dict, str]) -> None:
    assert columns(generated[0], "model.heartbeat.a_table") == COLUMNS


def test_a_view_has_its_columns_and_types_in_order(generated: tuple[dict, str]) -> None:
    assert columns(generated[0], "model.heartbeat.a_view") == COLUMNS
    assert generated[0]["nodes"]["model.heartbeat.a_view"]["metadata"]["type"] == "view"


def test_a_seed_has_its_columns_and_types_in_order(generated: tuple[dict, str]) -> None:
    assert columns(generated[0], "seed.heartbeat.a_seed") == COLUMNS[:2]


def test_somebody_elses_unreadable_table_hides_none_of_ours(generated: tuple[dict, str]) -> None:
    assert len(generated[0]["nodes"]) == 3


def test_a_person_who_runs_plain_dbt_sees_no_line_of_the_jvm(generated: tuple[dict, str]) -> None:
    output = [line for line in generated[1].splitlines() if "incubator" not in line]
    assert [line for line in output if "Exception" in line or "org.apache" in line] == []
