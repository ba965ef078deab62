"""Tables of real databases, over their real drivers."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from harness.config.connections import JdbcDatabase
from harness.config.secrets import EnvironmentSecrets, SecretReference
from harness.events.event import ChangeEvent
from harness.sense.database_queries import Kind, Query, QueryRefusedError
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.sense.sources.jdbc.jvm import JvmQueries
from harness.sense.sources.jdbc.new_rows import SparkTableRows
from harness.sense.sources.jdbc.probe import JdbcProbe
from harness.store.work_lists import Upstream
from tests.support.services.databases import Writer
from tests.support.services.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)
#: How py4j begins to tell the JVM that Python has let go of an object.
_LET_GO = "m\nd\n"
DERBY = "jdbc:derby:memory:shop;create=true"
NONE = EnvironmentSecrets({})


class Shop:
    """A schema of its own in a real database, and one who looks at its tables."""

    def __init__(self, spark: "SparkSession", url: str, name: str, seconds: float = 30) -> None:
        self.spark = spark
        self.name = name
        self.database = JdbcDatabase(url=url, timeout_seconds=seconds)
        self.writer = Writer(spark, url)
        self.writer.run(f"create schema {name}")
        self.upstreams: dict[str, Upstream] = {}
        self.restart()

    def restart(self) -> None:
        self.queries = JvmQueries(lambda: self.spark, NONE)
        rows = SparkTableRows(lambda: self.spark, NONE)
        self.probe = JdbcProbe({"shop": self.database}, self.queries, rows)

    def table(self, columns: str, name: str = "orders", **more: str) -> "Shop":
        self.run(f"create table {self.name}.{name} ({columns})")
        self.watch(name, f"{self.name}.{name}", **more)
        return self

    def watch(self, name: str, relation: str, key: str = "changed", **more: str) -> None:
        self.upstreams[name] = Upstream(
            upstream_id=name,
            source="jdbc",
            sensor_id=f"shop: {relation}",
            read_type="batch",
            upstream_key=key,
            **more,  # type: ignore[arg-type]
        )

    def run(self, *statements: str) -> "Shop":
        self.writer.run(*statements)
        return self

    def add(self, *values: str, to: str = "orders") -> "Shop":
        return self.run(*(f"insert into {self.name}.{to} values ({each})" for each in values))

    def results(self) -> dict[str, ProbeResult]:
        results = self.probe.probe(list(self.upstreams.values()), at=AT)
        for result in results:
            if result.failure is None:
                self.upstreams[result.upstream_id] = replace(
                    self.upstreams[result.upstream_id],
                    position=result.position,
                    upstream_value=result.upstream_value,
                )
        return {result.upstream_id: result for result in results}

    def events(self, name: str = "orders") -> list[ChangeEvent]:
        result = self.results()[name]
        assert result.failure is None, result.failure
        return list(result.events)

    def one_by_one(self, text: str, width: int) -> list[tuple[str | None, ...]]:
        """Read an answer value by value."""
        rows = self.writer.connection.createStatement().executeQuery(text)
        found = []
        while rows.next():
            found.append(tuple(rows.getString(place) for place in range(1, width + 1)))
        return found


@contextmanager
def counted_calls(spark: "SparkSession") -> Iterator[list[str]]:
    """Note each call of the JVM; that Python has let go of something, it tells when it likes."""
    client = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    calls: list[str] = []
    send = client.send_command

    def noted(command: str, *arguments: object, **more: object) -> object:
        if not command.startswith(_LET_GO):
            calls.append(command)
        return send(command, *arguments, **more)

    client.send_command = noted
    try:
        yield calls
    finally:
        client.send_command = send


@pytest.fixture(params=["postgres", "derby"])
def shop(request: pytest.FixtureRequest, spark: "SparkSession") -> Iterator[Shop]:
    url = DERBY if request.param == "derby" else request.getfixturevalue("postgres").url
    shop = Shop(spark, url, f"s{time.monotonic_ns()}")
    yield shop
    shop.writer.close()


@pytest.fixture
def pg(postgres: Postgres, spark: "SparkSession") -> Iterator[Shop]:
    shop = Shop(spark, postgres.url, f"s{time.monotonic_ns()}", seconds=4)
    yield shop
    shop.writer.close()


@pytest.mark.parametrize(
    ("type_name", "first", "second", "told"),
    [
        ("timestamp", "{ts '2025-04-23 21:10:00'}", "{ts '2025-04-23 21:10:00.000001'}", "2025-04-23 21:10:00.000001"),
        ("date", "{d '2025-04-22'}", "{d '2025-04-23'}", "2025-04-23"),
        ("integer", "9", "10", "10"),
        ("bigint", "9007199254740993", "9007199254740994", "9007199254740994"),
        ("decimal(21,7)", "20250423211000.0000000", "20250423211000.0000001", "20250423211000.0000001"),
        ("double precision", "9.5", "10.5", "10.5"),
        ("varchar(20)", "'2025-04-22'", "'2025-04-23'", "2025-04-23"),
        ("char(20)", "'20250422'", "'20250423'", "20250423"),
    ],
)  # fmt: skip
def test_keys_of_each_type_are_compared_as_such(
    shop: Shop, type_name: str, first: str, second: str, told: str
) -> None:
    shop.table(f"changed {type_name}").add(first)
    shop.results()
    shop.add(second)
    [event] = shop.events()

    assert (event.snapshot_id, shop.upstreams["orders"].upstream_value) == (told, told)
    assert shop.events() == []


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("timestamp", "{ts '2025-04-23 21:10:00'}"),
        ("date", "{d '2025-04-22'}"),
        ("integer", "9"),
        ("varchar(20)", "'2025-04-22'"),
    ],
)
def test_a_second_row_with_the_same_key_is_news(shop: Shop, type_name: str, value: str) -> None:
    shop.table(f"changed {type_name}").add(value)
    shop.results()
    shop.add(value)

    assert (len(shop.events()), shop.events()) == (1, [])


def test_a_row_that_moves_within_the_overlap_is_news(shop: Shop) -> None:
    shop.table("id integer, changed timestamp").add(
        "1, {ts '2025-04-23 21:10:00'}", "2, {ts '2025-04-23 21:08:00'}"
    )
    shop.results()
    shop.run(f"update {shop.name}.orders set changed = {{ts '2025-04-23 21:09:30'}} where id = 2")

    assert len(shop.events()) == 1


def test_a_row_without_a_key_is_news(shop: Shop) -> None:
    shop.table("changed timestamp").add("{ts '2025-04-23 21:10:00'}")
    shop.results()
    shop.add("null")

    assert (len(shop.events()), shop.events()) == (1, [])


def test_tables_whose_keys_have_many_types_are_looked_at_together(shop: Shop) -> None:
    shop.table("changed timestamp", "a").add("{ts '2025-04-23 21:10:00'}", to="a")
    shop.table("changed integer", "b").add("7", to="b")
    shop.table("changed varchar(9)", "c").add("'x'", to="c")
    shop.table("changed timestamp", "d")
    first = {name: len(result.events) for name, result in shop.results().items()}
    shop.add("8", to="b").add("{ts '2025-04-23 21:10:00'}", to="d")
    second = {name: len(result.events) for name, result in shop.results().items()}

    assert first == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert second == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_a_table_that_is_missing_fails_alone(shop: Shop) -> None:
    shop.table("changed timestamp", "a").table("changed timestamp", "b")
    shop.results()
    shop.run(f"drop table {shop.name}.a").add("{ts '2025-04-23 21:10:00'}", to="b")
    results = shop.results()

    assert "refuses the query" in (results["a"].failure or "") and "\n" not in (
        results["a"].failure or ""
    )
    assert len(results["b"].events) == 1


def test_a_transaction_that_is_open_over_a_look_is_news_when_it_ends(pg: Shop) -> None:
    pg.table("changed timestamp").add("{ts '2025-04-23 21:10:00'}")
    pg.results()
    late = Writer(pg.spark, pg.database.url).begin()
    late.run(f"insert into {pg.name}.orders values ({{ts '2025-04-23 21:10:30'}})")
    pg.add("{ts '2025-04-23 21:11:00'}")
    before = pg.events()
    late.commit()
    late.close()

    assert (len(before), len(pg.events()), pg.events()) == (1, 1, [])


def test_instants_are_compared_as_instants(pg: Shop) -> None:
    pg.table("changed timestamptz").add("timestamptz '2025-10-26 02:30:00+02'")
    pg.results()
    pg.add("timestamptz '2025-10-26 02:10:00+01'")
    [event] = pg.events()

    assert event.snapshot_ts == int(datetime(2025, 10, 26, 1, 10, tzinfo=UTC).timestamp() * 1000)


def test_odd_names_are_quoted(pg: Shop) -> None:
    pg.run(f'create table {pg.name}."Odd ""one"" a.b" ("when?" int)')
    pg.watch("odd", f'{pg.name}."Odd ""one"" a.b"', key="`when?`")
    pg.add("1", to='"Odd ""one"" a.b"')

    assert len(pg.events("odd")) == 1


def test_a_query_is_sensed_and_cannot_write(pg: Shop) -> None:
    pg.table("changed int").add("1")
    pg.watch("query", f"(select changed from {pg.name}.orders where changed > 5)")
    pg.watch(
        "writing",
        f"(with gone as (delete from {pg.name}.orders returning changed) select * from gone)",
    )
    pg.results()
    pg.add("6")
    results = pg.results()

    assert len(results["query"].events) == 1
    assert results["writing"].failure is not None and len(results["orders"].events) == 1


# Preprocess queries


@pytest.mark.parametrize(
    ("type_name", "first", "second"),
    [
        ("timestamp", "{ts '2025-04-23 21:10:00'}", "{ts '2025-04-23 21:20:00'}"),
        ("date", "{d '2025-04-22'}", "{d '2025-04-23'}"),
        ("integer", "9", "10"),
        ("varchar(20)", "'2025-04-22'", "'2025-04-23'"),
    ],
)
def test_a_query_is_asked_of_the_new_rows_only(
    shop: Shop, type_name: str, first: str, second: str
) -> None:
    query = "select * from sensor_new_data where state = 'OLD'"
    shop.table(f"changed {type_name}, state varchar(9)", preprocess_query=query)
    shop.add(f"{first}, 'OLD'")
    sighted = shop.events()
    shop.add(f"{second}, 'NEW'")

    assert (len(sighted), shop.events()) == (1, [])


# Failures


def test_a_restarted_database_is_no_failed_look(pg: Shop, postgres: Postgres) -> None:
    pg.table("changed int").add("1")
    pg.results()
    postgres.stop()
    down = pg.results()["orders"].failure
    postgres.start()
    Writer(pg.spark, pg.database.url).run(f"insert into {pg.name}.orders values (2)").close()
    first = pg.events()
    postgres.stop()
    postgres.start()
    second = pg.results()["orders"]

    assert "cannot be reached" in (down or "")
    assert (len(first), second.failure) == (1, None)
    pg.writer = Writer(pg.spark, pg.database.url)


def test_a_locked_table_fails_within_its_time_and_alone(pg: Shop) -> None:
    pg.table("changed int", "a").table("changed int", "b")
    pg.results()
    locker = Writer(pg.spark, pg.database.url).begin()
    locker.run(f"lock table {pg.name}.a in access exclusive mode")
    pg.add("1", to="b")
    results = ProbePool({"jdbc": pg.probe}, deadline_seconds=8).probe_all(
        list(pg.upstreams.values()), at=AT
    )
    locker.close()

    assert "gave the query up" in (results[0].failure or "")
    assert len(results[1].events) == 1


def test_a_frozen_database_fails_within_its_time_and_is_found_again(
    pg: Shop, postgres: Postgres
) -> None:
    pg.table("changed int").add("1")
    pg.results()
    pg.add("2")
    postgres.freeze()
    try:
        frozen = pg.results()["orders"].failure
    finally:
        postgres.thaw()

    # What hung may take a moment to notice that it need not.
    while (result := pg.results()["orders"]).failure is not None:
        time.sleep(0.05)

    assert "did not answer in time" in (frozen or "")
    assert len(result.events) == 1


def test_a_server_that_never_answers_fails_within_its_time(
    postgres: Postgres, spark: "SparkSession"
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/shop"
        database = JdbcDatabase(url=url, timeout_seconds=1)
        probe = JdbcProbe(
            {"shop": database}, JvmQueries(lambda: spark, NONE), SparkTableRows(lambda: spark, NONE)
        )
        upstream = Upstream(
            upstream_id="u",
            source="jdbc",
            sensor_id="shop: orders",
            read_type="batch",
            upstream_key="changed",
        )
        [result] = ProbePool({"jdbc": probe}, deadline_seconds=5).probe_all([upstream], at=AT)

    assert "database" in (result.failure or "") and "within 5 s" not in (result.failure or "")


def test_a_driver_that_is_not_there_is_named(spark: "SparkSession") -> None:
    for database, reported in (
        (JdbcDatabase(url="jdbc:nosuch:x"), "no JDBC driver takes jdbc:nosuch:x"),
        (JdbcDatabase(url=DERBY, driver="no.such.Driver"), "no JDBC driver no.such.Driver"),
        (JdbcDatabase(url=DERBY, user="u", password=SecretReference.parse("env:NO_SUCH")), "env:NO_SUCH is not set"),
    ):  # fmt: skip
        probe = JdbcProbe(
            {"shop": database}, JvmQueries(lambda: spark, NONE), SparkTableRows(lambda: spark, NONE)
        )
        upstream = Upstream(
            upstream_id="u", source="jdbc", sensor_id="shop: t", read_type="batch", upstream_key="k"
        )
        [result] = probe.probe([upstream], at=AT)
        assert reported in (result.failure or "")


def test_looks_run_no_spark_job_and_keep_one_connection(pg: Shop) -> None:
    def jobs() -> int:
        return len(pg.spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    def connections() -> int:
        rows = pg.writer.connection.createStatement().executeQuery(
            "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        )
        rows.next()
        return int(rows.getInt(1))

    pg.table("changed int").add("1")
    before = jobs(), connections() + 1
    for number in range(2, 5):
        pg.events()
        pg.add(str(number))

    assert (jobs(), connections()) == before


def test_an_answer_is_the_text_that_its_driver_gives(shop: Shop) -> None:
    values = (
        "'a \"quoted\" ä\n\\u0041, b'",
        "cast(null as varchar(9))",
        "''",
        "1.50",
        "{ts '2025-04-23 21:10:00'}",
    )
    columns = "a varchar(40), b varchar(9), c varchar(9), d decimal(9,2), e timestamp"
    shop.table(columns, key="e").add(", ".join(values)).add("null, 'x', null, null, null")
    query = Query(text=f"select a, b, c, d, e from {shop.name}.orders order by d")

    answer = shop.queries.ask(shop.database, query, within=30)

    at_once, one_by_one = answer.rows, shop.one_by_one(query.text, 5)
    assert at_once == one_by_one
    assert at_once[0][:4] == ('a "quoted" ä\n\\u0041, b', None, "", "1.50")
    assert [each.kind for each in answer.columns[3:]] == [Kind.NUMBER, Kind.TIME]


def test_thousands_of_rows_take_few_calls_of_the_jvm(pg: Shop) -> None:
    pg.table("changed integer")
    pg.run(f"insert into {pg.name}.orders select generate_series(1, 5000)")
    query = Query(text=f"select changed, changed, changed from {pg.name}.orders")
    pg.queries.ask(pg.database, query, within=4)

    with counted_calls(pg.spark) as calls:
        answer = pg.queries.ask(pg.database, query, within=4)

    assert len(answer.rows) == 5000
    assert len(calls) < 100


def test_a_query_that_fails_while_its_rows_are_read_is_refused(shop: Shop) -> None:
    shop.table("changed integer").add("1").add("0")
    query = Query(text=f"select 1 / changed from {shop.name}.orders")

    with pytest.raises(QueryRefusedError, match="zero"):
        shop.queries.ask(shop.database, query, within=30)
