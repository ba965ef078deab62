"""Which partitions a run takes, and what macros of self-healing pipelines refuse and report, without a database."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.macro_calls import CompilationError, Macros

DAY = 86400
NOW = 100 * DAY
MACROS = Macros()
Partition = dict[str, object]


def partition(day: int | None, stamp: str = "1/a") -> Partition:
    return {"value": str(day), "at": None if day is None else day * DAY, "stamp": stamp}


def found(
    there: Sequence[Partition],
    consumed: Mapping[str, str | None],
    look_back_days: int | None = 7,
    max_batches: int | None = None,
) -> dict[str, list[str]]:
    reported = MACROS.call._select_partitions(there, consumed, look_back_days, max_batches, NOW)
    return {
        name: [each["value"] for each in partitions] for name, partitions in dict(reported).items()
    }


def test_the_difference_of_what_is_there_and_what_was_taken_is_pending() -> None:
    there = [partition(day) for day in (90, 91, 92, 93)]
    assert found(there, {"91": "1/a", "93": "1/a"})["chosen"] == ["90", "92"]


def test_the_oldest_come_first_and_no_more_than_the_limit() -> None:
    reported = found([partition(day) for day in (90, 91, 92)], {}, max_batches=2)
    assert (reported["chosen"], reported["pending"]) == (["90", "91"], ["90", "91", "92"])


def test_a_standstill_of_any_length_is_made_up_for() -> None:
    there = [partition(day) for day in range(10, 90)]
    assert found(there, {"10": "1/a"})["chosen"] == [str(day) for day in range(11, 90)]


def test_the_lookback_ends_so_many_days_before_the_newest_that_was_taken() -> None:
    reported = found([partition(80), partition(83), partition(84), partition(90)], {"90": "1/a"})
    assert (reported["too_old"], reported["chosen"]) == (["80"], ["83", "84"])


def test_without_a_lookback_every_age_is_taken() -> None:
    assert found([partition(1), partition(90)], {"90": "1/a"}, None)["chosen"] == ["1"]


def test_a_partition_from_the_future_is_reported_and_holds_nothing_back() -> None:
    reported = found([partition(98), partition(99), partition(5000)], {"98": "1/a"})
    assert (reported["chosen"], reported["ahead"]) == (["99", "5000"], ["5000"])
    assert found([partition(98), partition(99), partition(5000)], {"98": "", "5000": "1/a"})[
        "chosen"
    ] == ["98", "99"]


def test_a_partition_without_a_place_in_time_is_of_no_age() -> None:
    assert found([partition(90), partition(None)], {"90": "1/a"})["chosen"] == ["None"]


def test_a_partition_that_has_changed_is_pending_and_one_that_was_only_compacted_long_ago_is_not() -> (
    None
):
    consumed = {"80": "1/a", "81": "1/a", "89": "1/a", "90": "1/a"}
    reported = found(
        [partition(80, "1/b"), partition(81, "2/b"), partition(89, "1/b"), partition(90)], consumed
    )
    assert (reported["chosen"], reported["too_old"]) == (["89"], ["81"])


@settings(deadline=None, max_examples=30)
@given(
    days=st.lists(st.integers(1, 99), unique=True, min_size=1, max_size=20),
    limit=st.integers(1, 5),
)
def test_runs_of_so_many_partitions_take_each_once_and_oldest_first(
    days: list[int], limit: int
) -> None:
    there, consumed, order = (
        [partition(day) for day in sorted(days)],
        dict[str, str | None](),
        list[str](),
    )
    while chosen := found(there, consumed, 0, limit)["chosen"]:
        order += chosen
        consumed |= dict.fromkeys(chosen, "1/a")
    assert order == [str(day) for day in sorted(days)]


def test_a_variable_overrules_the_limit_of_a_model() -> None:
    macros = Macros(variables={"max_batches_per_run": 3, "look_back_days": "all"})
    assert macros.call._partition_limit("max_batches_per_run", None, 1) == 3
    assert macros.call._partition_limit("look_back_days", 7, 0) is None
    assert MACROS.call._partition_limit("look_back_days", 7, 0) == 7


@pytest.mark.parametrize("said", ["0", "-1", "some", "1.5"])
def test_what_is_no_limit_is_refused(said: str) -> None:
    with pytest.raises(
        CompilationError,
        match=f"max_batches_per_run is '{said}': give a whole number from 1 on, or all",
    ):
        Macros(variables={"max_batches_per_run": said}).call._partition_limit(
            "max_batches_per_run", None, 1
        )


def test_partitions_are_named_by_literals_and_none_is_no_partition() -> None:
    column = {"name": "p", "type": "date"}
    call = MACROS.call._partition_filter
    assert call(column, []) == "(`p` in (null))"
    assert (
        call(column, [{"value": None}, {"value": "2026-03-01"}])
        == "(`p` is null or `p` in (cast('2026-03-01' as date)))"
    )
    assert call({"name": "p", "type": "string"}, [{"value": "it's"}]) == "(`p` in ('it\\'s'))"


def test_what_a_query_has_read_is_what_is_recorded_even_if_it_resembles_the_end_of_a_comment() -> (
    None
):
    queries = list[str]()
    rows = {"describe detail": [{"id": "t"}], "describe history": [{0: 7}], "create table": []}

    def answer(query: str) -> object:
        queries.append(query)
        return SimpleNamespace(rows=next(rows[start] for start in rows if query.startswith(start)))

    chosen = [
        {"value": "*/ 'x' /*", "at": None, "stamp": "1/a"},
        {"value": None, "at": None, "stamp": "2/b"},
    ]
    context = {
        "this": SimpleNamespace(database=None, schema="shop", identifier="silver"),
        "api": SimpleNamespace(
            Relation=SimpleNamespace(create=lambda **parts: f"shop.{parts['identifier']}")
        ),
        "run_query": answer,
        "config": {"file_format": "delta"},
        "is_incremental": lambda: False,
        "run_started_at": SimpleNamespace(timestamp=lambda: NOW),
    }
    macros = Macros(**context)
    source = {
        "column": {"name": "p", "type": "string"},
        "name": "shop.bronze",
        "id": "s",
        "partitions": chosen,
    }
    macros.call._partitions_of = lambda *_: source
    condition = macros.call.pending_partitions("bronze")
    assert condition.split(" */ (", 1)[0].count("*") == 1  # the one that begins the comment
    model = SimpleNamespace(name="silver", compiled_code=f"select 1 where {condition}")
    statement = Macros(**{**context, "model": model}).call.record_partitions()
    assert statement.startswith("insert into shop.silver_taken")
    assert (
        "('shop.bronze', 's', 'p', '*/ \\'x\\' /*', '1/a', 7), ('shop.bronze', 's', 'p', null, '2/b', 7)"
        in statement
    )


def test_a_model_that_has_read_no_partition_records_nothing() -> None:
    model = SimpleNamespace(name="silver", compiled_code="select 1")
    assert Macros(model=model).call.record_partitions() == ""


def test_a_surrogate_key_of_no_column_is_refused() -> None:
    with pytest.raises(CompilationError, match="columns is empty"):
        MACROS.call.generate_surrogate_key([])


@pytest.mark.parametrize("item", ["lower(v) desc", "v sideways", "n desc nulls", ""])
def test_an_order_that_cannot_be_compared_with_known_rows_is_refused(item: str) -> None:
    with pytest.raises(CompilationError, match="deduplicate: with known, order_by names columns"):
        MACROS.call._comes_before("a", "b", ["id", item])
