"""The rows of new files, whatever they are made of."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.errors import ProbeFailedError
from harness.platform.storage import LocalStorage, Storages
from harness.sense.preprocess.run import SparkQuestions
from harness.sense.probe import ProbeResult
from harness.sense.sources.file.listing import find, place_of
from harness.sense.sources.file.new_rows import rows_of
from harness.sense.sources.file.probe import FileProbe
from harness.store.work_lists import Upstream
from tests.support.golden import AT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def found(spark: "SparkSession", folder: Path, query: str) -> bool:
    files = find(LocalStorage(), place_of(str(folder)))
    return SparkQuestions(lambda: spark).any_row(rows_of(files), query)


@pytest.mark.parametrize(
    ("name", "text", "condition"),
    [
        ("a.csv", "id,city\n9,x\n10,São Paulo\n", "id = 10 and city = 'São Paulo'"),
        ("a b [1] {x} 100%.csv", "id\n10\n", "id = 10"),
        ("a.tsv", "id\tcity\n10\tx,y\n", "id = 10 and city = 'x,y'"),
        ("a.json", '{"id": 10, "at": {"city": "x"}}\n', "id = 10 and at.city = 'x'"),
        ("a.JSONL", '{"id": 10}\n{"id": 11}\n', "id = 11"),
        ("a.log", "one\ntwo\n", "value = 'two'"),
        ("no_ending", "one\n", "value = 'one'"),
        ("day=2025-04-23/a.csv", "id\n10\n", "id = 10 and day = date'2025-04-23'"),
    ],
)
def test_a_file_is_read_by_the_end_of_its_name(
    spark: "SparkSession", tmp_path: Path, name: str, text: str, condition: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)

    assert found(spark, tmp_path, f"select * from sensor_new_data where {condition}")


def test_parquet_and_compressed_files_are_read(spark: "SparkSession", tmp_path: Path) -> None:
    rows = spark.range(5)
    rows.write.partitionBy().parquet(str(tmp_path / "part=1"), compression="snappy")
    rows.write.csv(str(tmp_path / "part=2"), header=True, compression="gzip")

    assert found(
        spark,
        tmp_path,
        "select 1 from sensor_new_data having count_if(part = 1) = 5 and count_if(part = 2) = 5",
    )


def test_the_largest_value_is_that_of_numbers(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n9\n10\n")
    files = find(LocalStorage(), place_of(str(tmp_path)))

    assert SparkQuestions(lambda: spark).largest(rows_of(files), "id") == "10"


def test_a_file_that_is_gone_when_it_is_read_is_a_failure(
    spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id\n9\n")
    files = find(LocalStorage(), place_of(str(tmp_path)))
    (tmp_path / "a.csv").unlink()

    with pytest.raises(ProbeFailedError, match="its preprocess_query fails"):
        SparkQuestions(lambda: spark).any_row(rows_of(files), "select * from sensor_new_data")


class Watcher:
    """Probes one place again and again."""

    def __init__(self, spark: "SparkSession", sensor_id: str, query: str | None = None) -> None:
        self.probe = FileProbe(Storages(), SparkQuestions(lambda: spark))
        self.upstream = Upstream(
            upstream_id="u",
            source="file",
            sensor_id=sensor_id,
            read_type="batch",
            preprocess_query=query,
        )

    def probe_once(self) -> ProbeResult:
        [result] = self.probe.probe([self.upstream], at=AT)
        assert result.failure is None, result.failure
        self.upstream = replace(self.upstream, position=result.position)
        return result


def test_what_spark_writes_is_reported_by_its_marker(spark: "SparkSession", tmp_path: Path) -> None:
    query = "select 1 from sensor_new_data having count(*) = 7"
    watcher = Watcher(spark, f"{tmp_path}/out*/_SUCCESS", query)
    watcher.probe_once()
    spark.range(7).selectExpr("id", "id % 2 as part").write.partitionBy("part").parquet(
        f"{tmp_path}/out 1"
    )

    assert [event.tags["path"] for event in watcher.probe_once().events] == [
        f"{tmp_path}/out 1/_SUCCESS"
    ]
