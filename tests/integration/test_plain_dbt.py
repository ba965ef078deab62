"""dbt as a person types it, beside an engine and without one; and a session of a person's own.

Everything is one story, because each engine and each session starts a JVM.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.platform.spark import plain_dbt
from harness.platform.spark.engine import EngineFolder, LocalEngine, Wanted, end, engine_folder
from harness.platform.spark.java import JavaHome
from harness.platform.spark.session import engine_settings
from harness.platform.spark.setup import PLAIN_DBT, startup_line

PROJECT = Path(__file__).resolve().parents[2]

DBT_PROJECT = """
name: heartbeat
version: "1.0"
profile: heartbeat
flags: {send_anonymous_usage_stats: false}
models: {+file_format: delta, +materialized: table}
seeds: {+file_format: delta}
"""
MODELS = {
    "doubled": "select id, 2 * id as twice from {{ ref('numbers') }}",
    "broken": "select no_such_column from (select 1 as id)",
    "typed": """
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
        from {{ ref('numbers') }}
    """,
    "viewed": "{{ config(materialized='view') }} select * from {{ ref('typed') }}",
}
#: What the documentation shows of `typed`.
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
#: A process of a person, with a warehouse of its own.
OWN_SESSION = """
import sys
from pyspark.sql import SparkSession

session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
# One compiler: the second one is worth its time in a process that stays.
session = session.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
session = session.config("spark.sql.warehouse.dir", sys.argv[1]).getOrCreate()
session.sql("create table own using parquet as select 42 as answer")
print(session.table("own").collect()[0].answer, session.sparkContext.master)
"""

Answer = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Shop:
    """A small project of dbt, and what each Python finds at its start."""

    project: Path
    startup: Path

    @property
    def home(self) -> Path:
        """The state directory."""
        return self.project / ".heartbeat"

    @property
    def folder(self) -> EngineFolder:
        """What the engine leaves for its users."""
        return engine_folder(self.home)

    def run(self, *command: str | Path) -> Answer:
        """Run a program where a proxy leads nowhere."""
        own = {name: value for name, value in os.environ.items() if name != "HEARTBEAT_HOME"}
        nowhere = "http://127.0.0.1:9"
        search = os.pathsep.join([str(self.startup), str(PROJECT)])
        return subprocess.run(
            [str(word) for word in command],
            cwd=self.project,
            env={**own, "PYTHONPATH": search, "http_proxy": nowhere, "https_proxy": nowhere},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def dbt(self, *arguments: str) -> Answer:
        """Run dbt as a person does."""
        return self.run(Path(sysconfig.get_path("scripts")) / "dbt", *arguments)

    def build(self) -> str:
        """Build all that can be built, and return what dbt prints."""
        return succeeded(self.dbt("build", "--exclude", "broken"))

    def document(self) -> Mapping[str, Any]:
        """Return what the documentation shows of each node."""
        succeeded(self.dbt("docs", "generate", "--exclude", "broken"))
        catalog = json.loads((self.project / "target" / "catalog.json").read_text())
        return catalog["nodes"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    project, startup = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("startup")
    for name in ("profiles.yml", "log4j2.properties"):
        shutil.copy(PROJECT / name, project)
    for folder in ("models", "seeds", "macros"):
        (project / folder).mkdir()
    shutil.copy(PROJECT / "macros" / "engine" / "list_relations.sql", project / "macros")
    (project / "dbt_project.yml").write_text(DBT_PROJECT)
    (project / "seeds" / "numbers.csv").write_text("id,name\n1,x\n2,y\n")
    for name, text in MODELS.items():
        (project / "models" / f"{name}.sql").write_text(text)
    # As `setup` leaves it in the environment.
    shutil.copy(plain_dbt.__file__, startup / f"{PLAIN_DBT}.py")
    java = JavaHome(home=Path("/usr"), version=17, source="PATH")
    (startup / "sitecustomize.py").write_text(startup_line(java))
    return Shop(project, startup)


@pytest.fixture(scope="module")
def engine(shop: Shop) -> Iterator[LocalEngine]:
    wanted = Wanted(
        project=shop.project,
        settings=engine_settings(shop.project, shop.home),
        idle_seconds=600.0,
    )
    engine = LocalEngine(shop.home, wanted)
    # It has the metastore open from now on, which admits no second process.
    engine.session().sql("show databases").collect()
    engine.leave()
    yield engine
    with shop.folder.starting():
        end(shop.folder)


def succeeded(answer: Answer) -> str:
    """Return what a command has printed, in which no line is of the JVM."""
    text = answer.stdout + answer.stderr
    assert answer.returncode == 0, text
    for noise in ("Failed to set spark", "Exception", "org.apache"):
        assert noise not in text
    return text


@pytest.fixture(scope="module")
def built(shop: Shop, engine: LocalEngine) -> str:
    """What plain dbt prints while it builds the project beside the engine."""
    before = shop.folder.record()
    printed = shop.build()
    assert shop.folder.record() == before
    return printed


def test_plain_dbt_uses_the_engine(engine: LocalEngine, built: str) -> None:
    assert "PASS=4" in built
    rows = engine.session().table("heartbeat.doubled").collect()
    engine.leave()
    assert sorted(row.twice for row in rows) == [2, 4]


@pytest.fixture(scope="module")
def documented(shop: Shop, engine: LocalEngine, built: str) -> Mapping[str, Any]:
    """What the documentation shows, while somebody else's table has lost its files."""
    engine.session().sql("create table heartbeat.lost using delta as select 1 as number")
    engine.leave()
    shutil.rmtree(shop.home / "warehouse" / "heartbeat.db" / "lost")
    before = shop.folder.record()
    nodes = shop.document()
    assert shop.folder.record() == before
    return nodes


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        ("model.heartbeat.typed", COLUMNS),
        ("model.heartbeat.viewed", COLUMNS),
        ("seed.heartbeat.numbers", COLUMNS[:2]),
    ],
    ids=["Delta table", "view", "seed"],
)
def test_the_documentation_has_the_columns_and_types_of_a_relation_in_order(
    documented: Mapping[str, Any], node: str, shown: Sequence[tuple[str, str]]
) -> None:
    columns = sorted(documented[node]["columns"].values(), key=lambda each: each["index"])
    assert [(each["name"], each["type"]) for each in columns] == shown


def test_an_unreadable_table_of_somebody_else_hides_no_relation_of_the_project(
    documented: Mapping[str, Any],
) -> None:
    assert len(documented) == 4
    assert documented["model.heartbeat.viewed"]["metadata"]["type"] == "view"


def test_a_model_that_fails_beside_the_engine_prints_no_json(
    shop: Shop, engine: LocalEngine
) -> None:
    answer = shop.dbt("run", "--select", "broken")
    assert answer.returncode == 1
    text = answer.stdout + answer.stderr
    assert "UNRESOLVED_COLUMN" in text
    assert '{"ts"' not in text


@pytest.mark.long
def test_a_persons_own_session_works_beside_the_engine(shop: Shop, engine: LocalEngine) -> None:
    program = shop.project / "own.py"
    program.write_text(OWN_SESSION)
    answer = shop.run(sys.executable, program, shop.project / "own")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["42", "local[1]"]


@pytest.mark.long(in_sample=True)
def test_after_the_engine_died_plain_dbt_has_a_spark_of_its_own(
    shop: Shop, documented: Mapping[str, Any]
) -> None:
    record = shop.folder.record()
    assert record is not None
    with shop.folder.starting():
        end(shop.folder)
    shop.folder.write(record)
    assert not record.is_alive
    assert "PASS=4" in shop.build()
    again = shop.document()
    assert {node: each["columns"] for node, each in again.items()} == {
        node: each["columns"] for node, each in documented.items()
    }
    assert shop.folder.record() == record, asdict(record)
