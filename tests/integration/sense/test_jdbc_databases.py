"""Tables of real databases, over their real drivers."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.config.connections import JdbcDatabase
from harness.config.secrets import EnvironmentSecrets
from harness.events.event import ChangeEvent
from harness.sense.database_queries import Answer, Kind, Query, QueryRefusedError
from harness.sense.pool import ProbePool
from harness.sense.probe import ProbeResult
from harness.sense.sources.jdbc.databases import SqlQueries
from harness.sense.sources.jdbc.new_rows import SparkTableRows
from harness.sense.sources.jdbc.probe import JdbcProbe
from harness.store.work_lists import Upstream
from tests.support.services.databases import Writer
from tests.support.services.postgres import Postgres

AT = datetime(2025, 4, 23, 21, 40, tzinfo=UTC)
NONE = EnvironmentSecrets({})


class Shop:
    """A schema of its own in a real database, and a probe of its tables."""

    def __init__(
        self,
        request: pytest.FixtureRequest,
        url: str,
        schema: str | None = None,
        seconds: float = 30,
    ) -> None:
        self._request = request
        self.name = schema or f"s{time.monotonic_ns()}"
        self.database = JdbcDatabase(url=url, timeout_seconds=seconds)
        self.writer = Writer(url)
        if schema is None:
            self.writer.run(f"create schema {self.name}")
        self.upstreams: dict[str, Upstream] = {}
        self.restart()

    def restart(self) -> None:
        self.queries = SqlQueries(NONE)
        self.probe = probe_of(self.database, self._request, self.queries)

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

    def ask(self, text: str) -> Answer:
        return self.queries.ask(self.database, Query((text,)), within=30)


def probe_of(
    database: JdbcDatabase, request: pytest.FixtureRequest, queries: SqlQueries | None = None
) -> JdbcProbe:
    """Return a probe for which Spark starts when a query is run on new rows, and only then."""
    queries = queries or SqlQueries(NONE)
    rows = SparkTableRows(lambda: request.getfixturevalue("spark"), queries)
    return JdbcProbe({"shop": database}, queries, rows)


@pytest.fixture(params=["postgres", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        shop = Shop(request, f"jdbc:sqlite:{tmp_path}/shop.db", "main")
    else:
        shop = Shop(request, request.getfixturevalue("postgres").url)
    yield shop
    shop.writer.close()


@pytest.fixture
def pg(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[Shop]:
    shop = Shop(request, postgres.url, seconds=4)
    yield shop
    shop.writer.close()


@pytest.mark.parametrize(
    ("type_name", "first", "second", "expected"),
    [
        ("timestamp", "'2025-04-23 21:10:00'", "'2025-04-23 21:10:00.000001'", "2025-04-23 21:10:00.000001"),
        ("date", "'2025-04-22'", "'2025-04-23'", "2025-04-23"),
        ("integer", "9", "10", "10"),
        ("bigint", "9007199254740993", "9007199254740994", "9007199254740994"),
        ("double precision", "9.5", "10.5", "10.5"),
        ("varchar(20)", "'2025-04-22'", "'2025-04-23'", "2025-04-23"),
        ("char(20)", "'20250422'", "'20250423'", "20250423"),
    ],
)  # fmt: skip
def test_keys_of_each_type_are_compared_as_such(
    shop: Shop, type_name: str, first: str, second: str, expected: str
) -> None:
    shop.table(f"changed {type_name}").add(first)
    shop.results()
    shop.add(second)
    [event] = shop.events()

    assert (event.snapshot_id, shop.upstreams["orders"].upstream_value) == (expected, expected)
    assert shop.events() == []


def test_decimals_are_compared_to_the_last_digit(pg: Shop) -> None:
    # SQLite has none.
    pg.table("changed decimal(21,7)").add("20250423211000.0000000")
    pg.results()
    pg.add("20250423211000.0000001")

    assert [event.snapshot_id for event in pg.events()] == ["20250423211000.0000001"]


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("timestamp", "'2025-04-23 21:10:00'"),
        ("date", "'2025-04-22'"),
        ("integer", "9"),
        ("varchar(20)", "'2025-04-22'"),
    ],
)
def test_a_second_row_with_the_same_key_is_new_data(shop: Shop, type_name: str, value: str) -> None:
    shop.table(f"changed {type_name}").add(value)
    shop.results()
    shop.add(value)

    assert (len(shop.events()), shop.events()) == (1, [])


def test_a_row_that_moves_within_the_overlap_is_new_data(pg: Shop) -> None:
    # In SQLite a time stamp is text, of which no sum is made.
    pg.table("id integer, changed timestamp").add(
        "1, '2025-04-23 21:10:00'", "2, '2025-04-23 21:08:00'"
    )
    pg.results()
    pg.run(f"update {pg.name}.orders set changed = '2025-04-23 21:09:30' where id = 2")

    assert len(pg.events()) == 1


def test_a_row_without_a_key_is_new_data(shop: Shop) -> None:
    shop.table("changed timestamp").add("'2025-04-23 21:10:00'")
    shop.results()
    shop.add("null")

    assert (len(shop.events()), shop.events()) == (1, [])


def test_tables_whose_keys_have_many_types_are_probed_together(shop: Shop) -> None:
    shop.table("changed timestamp", "a").add("'2025-04-23 21:10:00'", to="a")
    shop.table("changed integer", "b").add("7", to="b")
    shop.table("changed varchar(9)", "c").add("'x'", to="c")
    shop.table("changed timestamp", "d")
    first = {name: len(result.events) for name, result in shop.results().items()}
    shop.add("8", to="b").add("'2025-04-23 21:10:00'", to="d")
    second = {name: len(result.events) for name, result in shop.results().items()}

    assert first == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert second == {"a": 0, "b": 1, "c": 0, "d": 1}


def test_a_table_that_is_missing_fails_alone(shop: Shop) -> None:
    shop.table("changed timestamp", "a").table("changed timestamp", "b")
    shop.results()
    shop.run(f"drop table {shop.name}.a").add("'2025-04-23 21:10:00'", to="b")
    results = shop.results()

    assert "refuses the query" in (results["a"].failure or "") and "\n" not in (
        results["a"].failure or ""
    )
    assert len(results["b"].events) == 1


def test_a_transaction_that_is_open_over_a_probe_is_new_data_when_it_ends(pg: Shop) -> None:
    pg.table("changed timestamp").add("'2025-04-23 21:10:00'")
    pg.results()
    late = Writer(pg.database.url).begin()
    late.run(f"insert into {pg.name}.orders values ('2025-04-23 21:10:30')")
    pg.add("'2025-04-23 21:11:00'")
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
        ("timestamp", "'2025-04-23 21:10:00'", "'2025-04-23 21:20:00'"),
        ("date", "'2025-04-22'", "'2025-04-23'"),
        ("integer", "9", "10"),
        ("varchar(20)", "'2025-04-22'", "'2025-04-23'"),
    ],
)
def test_a_query_is_run_on_the_new_rows_only(
    shop: Shop, type_name: str, first: str, second: str
) -> None:
    query = "select * from sensor_new_data where state = 'OLD'"
    shop.table(f"changed {type_name}, state varchar(9)", preprocess_query=query)
    shop.add(f"{first}, 'OLD'")
    sighted = shop.events()
    shop.add(f"{second}, 'NEW'")

    assert (len(sighted), shop.events()) == (1, [])


# Failures


def test_a_restarted_database_is_no_failed_probe(pg: Shop, postgres: Postgres) -> None:
    pg.table("changed int").add("1")
    pg.results()
    postgres.stop()
    down = pg.results()["orders"].failure
    postgres.start()
    Writer(pg.database.url).run(f"insert into {pg.name}.orders values (2)").close()
    first = pg.events()
    postgres.stop()
    postgres.start()
    second = pg.results()["orders"]

    assert "cannot be reached" in (down or "")
    assert (len(first), second.failure) == (1, None)
    pg.writer = Writer(pg.database.url)


def test_a_locked_table_fails_within_its_time_and_alone(pg: Shop) -> None:
    pg.table("changed int", "a").table("changed int", "b")
    pg.results()
    locker = Writer(pg.database.url).begin()
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

    # What hung may need a moment to go on.
    while (result := pg.results()["orders"]).failure is not None:
        time.sleep(0.05)

    assert "did not answer in time" in (frozen or "")
    assert len(result.events) == 1


def test_a_server_that_never_answers_fails_within_its_time(
    request: pytest.FixtureRequest,
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"jdbc:postgresql://127.0.0.1:{silent.getsockname()[1]}/shop"
        probe = probe_of(JdbcDatabase(url=url, timeout_seconds=1), request)
        [result] = ProbePool({"jdbc": probe}, deadline_seconds=5).probe_all([ORDERS], at=AT)

    assert "database" in (result.failure or "") and "within 5 s" not in (result.failure or "")


ORDERS = Upstream(
    upstream_id="u",
    source="jdbc",
    sensor_id="shop: orders",
    read_type="batch",
    upstream_key="changed",
)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"url": "jdbc:nosuch:x"}, "no Python driver is known for jdbc:nosuch; install"),
        ({"url": "nosuch://h/x"}, "there is no SQLAlchemy dialect nosuch; install its package"),
        ({"url": "postgresql+psycopg2://h/x"}, "of postgresql+psycopg2 cannot be loaded, install"),
        ({"url": "jdbc:postgresql://h/x?sslfactory=x"}, "its property sslfactory is one of JDBC"),
        (
            {"url": "postgresql+psycopg://127.0.0.1/x?nosuch=1"},
            'invalid connection option "nosuch"',
        ),
        ({"url": "jdbc:sqlite:/no/such"}, "cannot be reached: unable to open database file"),
        ({"url": "jdbc:postgresql://127.0.0.1:1/x"}, "the database cannot be reached: connection"),
        ({"url": "jdbc:postgresql://h/x", "password": "env:NO_SUCH"}, "env:NO_SUCH is not set"),
    ],
)
def test_a_database_that_cannot_be_connected_to_is_reported_in_one_sentence(
    request: pytest.FixtureRequest, options: dict[str, str], expected: str
) -> None:
    [result] = probe_of(JdbcDatabase.model_validate(options), request).probe([ORDERS], at=AT)

    assert expected in (result.failure or "") and "\n" not in (result.failure or "")


def test_probes_keep_one_connection_and_start_no_spark(
    pg: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connections() -> int:
        text = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
        return int(pg.writer.connection.exec_driver_sql(text).scalar_one())

    def start(name: str) -> None:
        raise AssertionError(f"{name} is started")

    pg.table("changed int").add("1")
    monkeypatch.setattr(pg._request, "getfixturevalue", start)
    before = connections() + 1
    for number in range(2, 5):
        pg.events()
        pg.add(str(number))

    assert connections() == before


def test_an_answer_is_the_text_that_its_database_has(shop: Shop) -> None:
    columns = "a varchar(40), b varchar(9), c varchar(9), d timestamp"
    shop.table(columns, key="d")
    shop.add(
        "'a \"quoted\" ä\n\\u0041, %s b', null, '', '2025-04-23 21:10:00'", "null, 'x', null, null"
    )

    answer = shop.ask(f"select a, b, c, d from {shop.name}.orders where a like '%q%' or b = 'x'")

    first = ('a "quoted" ä\n\\u0041, %s b', None, "", "2025-04-23 21:10:00")
    assert answer.rows == [first, (None, "x", None, None)]
    assert [each.name for each in answer.columns] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("timestamp '2025-04-23 21:10:00'", Kind.TIME, "2025-04-23 21:10:00"),
        ("timestamp '2025-04-23 21:10:00.500'", Kind.TIME, "2025-04-23 21:10:00.5"),
        ("timestamp 'infinity'", Kind.TIME, "infinity"),
        ("timestamp '12025-04-23 21:10:00'", Kind.TIME, "12025-04-23 21:10:00"),
        ("timestamptz '2025-10-26 02:10:00.25+01'", Kind.ZONED, "2025-10-26 01:10:00.25+00"),
        ("date '2025-04-23'", Kind.DATE, "2025-04-23"),
        ("9007199254740993::bigint", Kind.NUMBER, "9007199254740993"),
        ("0::numeric(21,7)", Kind.NUMBER, "0.0000000"),
        ("1e20::numeric", Kind.NUMBER, "100000000000000000000"),
        ("'NaN'::numeric", Kind.NUMBER, "NaN"),
        ("10::float8", Kind.FLOAT, "10"),
        ("1e15::float8", Kind.FLOAT, "1e+15"),
        ("'x'::char(3)", Kind.TEXT, "x  "),
        ("'x'::name", Kind.TEXT, "x"),
        ("true", Kind.NUMBER, "t"),
        ("'{1,2}'::int[]", Kind.OTHER, "{1,2}"),
        ("interval '1 day'", Kind.OTHER, "1 day"),
        ("null::timestamp", Kind.TIME, None),
    ],
)
def test_values_are_the_text_that_the_jdbc_driver_returned(
    pg: Shop, value: str, kind: Kind, text: str | None
) -> None:
    # Recorded with PostgreSQL's JDBC driver 42.7.14, whose texts stand in older cursors.
    answer = pg.ask(f"select {value}")

    assert (answer.columns[0].kind, answer.rows) == (kind, [(text,)])


OLD = (
    '{"v":1,"kind":"%s","type_name":"%s","largest":"%s","start":"%s","rows":1,"nulls":0,'
    '"check":"%s","late":0,"life":0,"marks":[]}'
)


@pytest.mark.parametrize(
    ("type_name", "value", "cursor"),
    [
        ("timestamp", "2025-04-23 21:10:00.5", ("time", "timestamp", "2025-04-23 21:10:00.5", "2025-04-23 21:00:00.500000", "600.5")),
        ("timestamptz", "2025-04-23 21:10:00+02", ("zoned", "timestamptz", "2025-04-23 19:10:00+00", "2025-04-23 19:00:00", "600")),
        ("timestamptz", "2025-04-23 21:10:00+02", ("zoned", "timestamptz", "2025-04-23 15:10:00-04", "2025-04-23 19:00:00", "600")),
        ("date", "2025-04-23", ("date", "date", "2025-04-23", "2025-04-22", "23")),
        ("bigint", "9007199254740993", ("number", "int8", "9007199254740993", "9007199254739993", "9007199254740993")),
        ("numeric(9,2)", "1.50", ("number", "numeric", "1.50", "-998.50", "1.5")),
        ("float8", "10", ("float", "float8", "10.0", "-990.0", "0")),
        ("varchar(9)", "abc", ("text", "varchar", "abc", "abc", "0")),
    ],
)  # fmt: skip
def test_a_cursor_that_was_written_through_jdbc_goes_on_unchanged(
    pg: Shop, type_name: str, value: str, cursor: tuple[str, ...]
) -> None:
    pg.table(f"changed {type_name}").add(f"'{value}'")
    position = OLD % cursor
    pg.upstreams["orders"] = replace(pg.upstreams["orders"], position=position)

    assert (pg.events(), pg.upstreams["orders"].position) == ([], position)


def test_a_key_whose_type_is_changed_is_sensed_on(pg: Shop) -> None:
    pg.table("changed int").add("1")
    for _ in range(8):
        pg.results()
    pg.run(f"alter table {pg.name}.orders alter column changed type bigint").add("2")
    results = [pg.results()["orders"] for _ in range(2)]

    assert [len(result.events) for result in results] in ([1, 0], [0, 1])
    assert results[1].failure is None


def test_new_rows_have_the_types_that_a_query_needs(pg: Shop) -> None:
    query = (
        "select * from sensor_new_data where amount = 1.50 and paid and id + 1 = 8 and day ="
        " date '2025-04-23' and changed = timestamp '2025-04-23 19:10:00Z' and seen is null"
        " and note = '50%' and year(at) = 2025 and tags = '{1,2}'"
    )
    columns = (
        "id int, amount numeric(9,2), paid boolean, day date, changed timestamptz, seen timestamp,"
        " note text, at timestamp, tags int[]"
    )
    pg.table(columns, preprocess_query=query)
    pg.results()
    pg.add(
        "7, 1.5, true, '2025-04-23', '2025-04-23 21:10:00+02', 'infinity', '50%',"
        " '2025-04-23 21:10:00', '{1,2}'"
    )
    first = len(pg.events())
    pg.add("8, 2, false, null, '2025-04-23 21:11:00+02', null, null, null, null")

    assert (first, len(pg.events())) == (1, 0)


def test_more_rows_than_are_read_are_left_with_the_database(pg: Shop) -> None:
    query = Query(("select generate_series(1, 100000000) as n",))

    answer = pg.queries.ask(pg.database, query, within=4, most=3)

    assert answer.rows == [("1",), ("2",), ("3",)]


def test_a_query_that_fails_while_its_rows_are_read_is_refused(shop: Shop) -> None:
    shop.table("changed integer").add("1").add("0")
    division = "json('{' || changed)" if shop.name == "main" else "1 / changed"

    with pytest.raises(QueryRefusedError, match=r"zero|JSON"):
        shop.ask(f"select {division} from {shop.name}.orders")


def test_threads_query_one_after_the_other(pg: Shop) -> None:
    pg.table("changed int").add("1")
    failures: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: failures.append(pg.results()["orders"].failure))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(failures) == 4
