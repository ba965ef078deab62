"""dbt as a person types it, beside an engine and without one; and a session of a person's own.

Everything is one story, because each engine and each session starts a JVM.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

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
}
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


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    project, startup = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("startup")
    for name in ("profiles.yml", "log4j2.properties"):
        shutil.copy(PROJECT / name, project)
    for folder in ("models", "seeds", "macros"):
        (project / folder).mkdir()
    shutil.copy(PROJECT / "macros" / "engine" / "list_relations.sql", project / "macros")
    (project / "dbt_project.yml").write_text(DBT_PROJECT)
    (project / "seeds" / "numbers.csv").write_text("id\n1\n2\n")
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
    text = answer.stdout + answer.stderr
    assert answer.returncode == 0, text
    assert "Failed to set spark" not in text
    return text


def test_plain_dbt_uses_the_engine(shop: Shop, engine: LocalEngine) -> None:
    before = shop.folder.record()
    assert "PASS=1" in succeeded(shop.dbt("seed"))
    assert "PASS=2" in succeeded(shop.dbt("build", "--exclude", "broken"))
    succeeded(shop.dbt("docs", "generate", "--exclude", "broken"))
    catalog = json.loads((shop.project / "target" / "catalog.json").read_text())
    assert list(catalog["nodes"]["model.heartbeat.doubled"]["columns"]) == ["id", "twice"]
    assert shop.folder.record() == before
    rows = engine.session().table("heartbeat.doubled").collect()
    engine.leave()
    assert sorted(row.twice for row in rows) == [2, 4]


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


@pytest.mark.long
def test_after_the_engine_died_plain_dbt_has_a_spark_of_its_own(
    shop: Shop, engine: LocalEngine
) -> None:
    record = shop.folder.record()
    assert record is not None
    with shop.folder.starting():
        end(shop.folder)
    shop.folder.write(record)
    assert not record.is_alive
    text = succeeded(shop.dbt("build", "--exclude", "broken"))
    assert "PASS=2" in text
    assert shop.folder.record() == record, asdict(record)
