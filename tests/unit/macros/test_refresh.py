"""What a refresh model decides without a database: which batches it takes, which settings it refuses, what it runs."""

import datetime
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from tests.support.macro_calls import CompilationError, Macros
from tests.support.refresh.batches import Batch, accepted
from tests.support.refresh.key_types import KeyOptions, KeyRow
from tests.support.refresh.oracle_key import fold_key
from tests.support.refresh.oracle_range import (
    NullInstants,
    RangeRow,
    RangeState,
    fold_range,
    observed_ranges,
    touches,
)
from tests.support.refresh.random_histories import Shape, key_histories, range_history

MACROS = Macros()
SEEDS = range(200)
#: Few instants and many redeliveries: what was corrected is often set back.
SHAPE = Shape(keys=2, instants=4, rows=2, null_key=0, null_instant=0, redelivered=0.4)


def node(**refresh: object) -> dict[str, object]:
    """Return a model as a node of dbt's graph."""
    config = {"materialized": "refresh", "file_format": "delta", "meta": {"refresh": refresh}}
    return {"name": "orders", "original_file_path": "models/orders.sql", "config": config}


def settings(**refresh: object) -> dict[str, object]:
    return dict(MACROS.call._refresh_settings(node(**refresh)))


#: As much of pytz as dbt's macros use.
PYTZ = SimpleNamespace(
    utc=SimpleNamespace(localize=lambda instant: instant.replace(tzinfo=datetime.UTC))
)
STARTED = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
HUB = [("region", "string"), ("day", "int"), ("s_input_id", "bigint")]
TABLES = {
    name: f"shop.orders_{name}" for name in ("hub", "history", "batches", "ledger", "metrics")
}


class Run:
    """What one step of a refresh runs, in order, with what the database answers to it."""

    def __init__(self, there: Sequence[str] = (), /, **answers: Sequence[Sequence[object]]) -> None:
        self.queries: list[str] = []
        known = {name.replace("_", " "): rows for name, rows in answers.items()}
        self.model: dict[str, object] = {"resource_type": "model"}
        self.macros = Macros(
            model=self.model,
            this="orders",
            run_query=lambda query: self._answer(" ".join(query.split()), known),
            load_relation=lambda relation: relation if relation in there else None,
            adapter=SimpleNamespace(quote=lambda name: f"`{name}`", cache_added=lambda _: None),
            modules=SimpleNamespace(re=re, datetime=datetime, pytz=PYTZ),
            run_started_at=STARTED,
        )

    def load(self, **refresh: object) -> dict[str, object]:
        """Return what a refresh has read of a model with two batches."""
        batches = [{"id": 1, "state": "COMPLETE"}, {"id": 2, "state": "STAGED"}]
        return {"settings": settings(**refresh), "tables": TABLES, "shapes": {}, "batches": batches}

    def _answer(self, query: str, known: Mapping[str, Sequence[Sequence[object]]]) -> object:
        self.queries.append(query)
        found = [rows for beginning, rows in known.items() if query.startswith(beginning)]
        return SimpleNamespace(rows=[dict(enumerate(row)) for row in (found[0] if found else [])])


def taken(
    batches: Sequence[Batch[KeyRow]] | Sequence[Batch[RangeRow]], **refresh: object
) -> list[int]:
    """The numbers of the batches that a model takes."""
    load: dict[str, object] = {"settings": settings(**refresh), "is_replay": False}
    live: list[dict[str, object]] = []
    for batch in batches:
        instants = [row.at for row in batch.rows if row.at is not None]
        is_ranged = refresh["type"] in ("timestamp", "sequence") or "updated_at" in refresh
        fact = {
            "id": batch.input_id,
            "state": "STAGED",
            "record_count": len(batch.rows),
            "fingerprint": str(sorted(Counter(batch.rows).items(), key=str)),
            "range_from": str(min(instants)) if instants and is_ranged else None,
            "range_to": str(max(instants)) if instants and is_ranged else None,
        }
        if MACROS.call._refresh_skip_reason({**load, "batches": live}, fact) is None:
            live.append(fact)
    return [int(str(fact["id"])) for fact in live]


def only(batches: Sequence[Batch[KeyRow]], numbers: Sequence[int]) -> list[Batch[KeyRow]]:
    return [batch for batch in batches if batch.input_id in numbers]


def rows_of(state: RangeState) -> list[tuple[object, ...]]:
    return [(row.at, *row.values) for row in state.hub]


@pytest.mark.parametrize("type_", ["timestamp", "sequence"])
def test_a_range_that_was_corrected_and_set_back_is_never_skipped(type_: str) -> None:
    skipped = 0
    for seed in SEEDS:
        batches = range_history(Random(seed), 8, SHAPE)
        numbers = taken(batches, type=type_, column="t")
        assert numbers == [batch.input_id for batch in accepted(batches, touches)]
        left = [batch for batch in batches if batch.input_id in numbers]
        # Ties of one instant keep the order of their rows, which a batch of the same rows may change.
        assert Counter(rows_of(fold_range(left, NullInstants.FAIL))) == Counter(
            rows_of(fold_range(batches, NullInstants.FAIL))
        )
        skipped += len([batch for batch in batches if batch.rows]) - len(numbers)
    assert skipped > len(SEEDS) / 4
    assert any(observed_ranges(range_history(Random(seed), 8, SHAPE)) for seed in SEEDS)


def test_a_row_that_was_corrected_at_its_instant_and_set_back_is_never_skipped() -> None:
    skipped = 0
    options = KeyOptions()
    for seed in SEEDS:
        batches = key_histories(Random(seed), 1, 8, SHAPE)
        numbers = taken(batches, type="key", key="k", updated_at="t")
        hubs = [
            {row.key: (row.values, row.s_update_timestamp) for row in fold_key(each, options).hub}
            for each in (only(batches, numbers), batches)
        ]
        assert hubs[0] == hubs[1]
        skipped += len([batch for batch in batches if batch.rows]) - len(numbers)
    assert skipped > len(SEEDS) / 4


@pytest.mark.parametrize(
    "refresh",
    [
        {"type": "custom", "delete_condition": "this.k = input.k"},
        {"type": "full"},
        {"type": "key", "key": "k"},
    ],
    ids=["custom", "full", "key"],
)
def test_without_dates_only_the_batch_before_is_one_that_was_received_already(
    refresh: dict[str, object],
) -> None:
    batches = range_history(Random(1), 200, SHAPE)
    expected = [batch.input_id for batch in accepted(batches)]
    assert taken(batches, **refresh) == expected
    assert len(expected) < len([batch for batch in batches if batch.rows])


def test_batches_are_appended_though_they_equal_others_unless_the_model_skips_those() -> None:
    batches = range_history(Random(1), 60, SHAPE)
    filled = [batch.input_id for batch in batches if batch.rows]
    assert taken(batches, type="none") == filled
    once = list(
        {str(sorted(Counter(each.rows).items(), key=str)): each for each in batches[::-1]}.values()
    )
    assert taken(batches, type="none", on_duplicate_batch="skip") == sorted(
        each.input_id for each in once if each.rows
    )


CUSTOM: dict[str, object] = {
    "type": "custom",
    "delete_condition": "this.region = input.region",
    "append_filter": "input.day > 0",
}


@pytest.mark.parametrize("is_redo", [False, True], ids=["first", "again"])
def test_a_custom_batch_deletes_and_adds_in_one_statement_and_counts_both(*, is_redo: bool) -> None:
    run = Run(describe=HUB, merge=[(3, 0, 1, 2)])
    batch: dict[str, object] = {"id": 2}
    run.macros.call._refresh_apply_custom(run.load(**CUSTOM), batch, is_redo)
    writing = [query for query in run.queries if not query.startswith(("describe", "select"))]
    assert [query.split()[:3] for query in writing] == [["merge", "into", "shop.orders_hub"]]
    assert (
        "on not input.s_is_added and (this.region = input.region) when matched then delete"
        in writing[0]
    )
    assert "where s_input_id = 2 and (input.day > 0) )" in writing[0]
    assert batch["code_counts"] == {"D": 1, "N": 2}


def test_a_custom_batch_whose_commit_is_in_the_hub_is_not_applied_again() -> None:
    run = Run(describe=HUB, select_1_from=[(1,)])
    run.macros.call._refresh_apply_custom(run.load(**CUSTOM), {"id": 2}, True)
    assert not [query for query in run.queries if query.startswith("merge")]


#: What dbt gives a model by default, beside what a refresh honours.
HONOURED: dict[str, object] = {
    "enabled": True,
    "alias": "people",
    "tags": ["daily"],
    "unique_key": None,
    "incremental_strategy": None,
    "on_schema_change": "ignore",
    "lookback": 1,
    "full_refresh": False,
    "partition_by": "day",
    "tblproperties": {"a": "b"},
    "location_root": "/lake",
    "contract": {"enforced": True},
    "grants": {},
}


def configured(**config: object) -> dict[str, object]:
    """A model of type key with more config beside its settings."""
    given = node(type="key", key="k")
    return {**given, "config": {**config, **cast("dict[str, object]", given["config"])}}


@pytest.mark.parametrize("change", ["ignore", "append_new_columns"])
def test_what_dbt_gives_every_model_and_what_a_refresh_honours_is_accepted(change: str) -> None:
    given = configured(**{**HONOURED, "on_schema_change": change})
    assert dict(MACROS.call._refresh_settings(given))["key"] == ["k"]


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("unique_key", "k", "meta.refresh.key"),
        ("on_schema_change", "sync_all_columns", "meta.refresh.missing_columns"),
        ("on_schema_change", "fail", "meta.refresh.missing_columns"),
        ("incremental_strategy", "merge", "meta.refresh.type"),
        ("incremental_predicates", ["day > 1"], "leave it out"),
        ("merge_update_columns", ["v"], "leave it out"),
        ("merge_exclude_columns", ["v"], "meta.refresh.exclude_from_cdc"),
        ("merge_with_schema_evolution", True, "leave it out"),
        ("not_matched_by_source_action", "delete", "leave it out"),
        ("skip_not_matched_step", True, "leave it out"),
        ("incremental_apply_config_changes", False, "leave it out"),
        ("updated_at", "t", "add it to meta.refresh"),
        ("batch_by", "day", "add it to meta.refresh"),
        ("deletes", {"when": "gone"}, "add it to meta.refresh"),
        ("refresh", {"type": "key"}, "add it to meta.refresh"),
        ("check_cols", "all", "meta.refresh.hash_columns"),
        ("hard_deletes", "invalidate", "meta.refresh.deletes"),
        ("batch_size", "day", "meta.refresh.batch_by"),
    ],
)
def test_an_option_beside_the_settings_is_never_ignored(
    name: str, value: object, instead: str
) -> None:
    given = configured(**{name: value})
    graph = {"nodes": {"model.shop.orders": {**given, "resource_type": "model"}}}
    for check in (
        lambda: MACROS.call._refresh_settings(given),
        Macros(graph=graph).call.refresh_check,
    ):
        with pytest.raises(CompilationError) as refused:
            check()
        output = str(refused.value)
        assert output.startswith(f"models/orders.sql: the config {name} of orders (")
        assert instead in output


def recorded(run: Run, state: str) -> str:
    """Return the statement that writes an event of a batch to the batch log."""
    load = {**run.load(type="none"), "name": "orders", "step": 7}
    facts = {"id": 3, "received_at": STARTED, "batch": None, "fingerprint": "f", "record_count": 1}
    run.macros.call._refresh_record_batches(
        load, [{**facts, "range_from": None, "range_to": None}], state
    )
    assert load["step"] == 8
    return run.queries[-1]


def test_each_event_takes_the_next_step_and_none_that_another_run_has_taken() -> None:
    query = recorded(Run(merge=[(1, 0, 0, 1)]), "STAGED")
    assert query.startswith(
        "merge into shop.orders_ledger as ledger using (select cast(3 as bigint)"
    )
    assert "cast(8 as bigint) as step" in query
    assert "on ledger.step > 7 when not matched then insert (s_input_id, state," in query
    with pytest.raises(CompilationError, match=r"another run has written to shop\.orders_ledger"):
        recorded(Run(merge=[(0, 0, 0, 0)]), "STAGED")


def test_rows_reach_the_archive_after_their_number_is_claimed_and_before_they_are_staged() -> None:
    steps: list[str] = []
    call = Macros().call
    for name in ("create_tables", "archive_batches", "complete_batches"):
        setattr(call, f"_refresh_{name}", lambda *_, name=name: steps.append(name))
    call._refresh_record_batches = lambda _load, _batches, state: steps.append(state)
    load = {"are_tables_ready": True, "is_replay": False, "batches": []}
    call._refresh_apply_batches(load, [{"id": 3}])
    assert steps == ["CLAIMED", "archive_batches", "STAGED", "complete_batches"]


def test_a_batch_that_was_claimed_and_never_staged_is_taken_under_another_number() -> None:
    claimed = {"id": 3, "batch": "monday", "state": "CLAIMED", "fingerprint": "f"}
    call = Macros(run_started_at=STARTED).call
    call._refresh_batch_facts = lambda _: [{"batch": "monday", "fingerprint": "f"}]
    call._refresh_declare_range = lambda *_: None
    load = {"name": "orders", "settings": settings(type="none"), "batches": [claimed]}
    (pending,) = call._refresh_pending_batches(load)
    assert (pending["id"], pending["batch"]) == (4, "monday")


def test_a_batch_is_never_received_before_the_one_before_it_whatever_the_clock() -> None:
    run = Run()
    micros = int(STARTED.timestamp()) * 1_000_000
    behind, ahead = {"received_micros": micros - 5}, {"received_micros": micros + 5}
    assert run.macros.call._refresh_received_at({"batches": [behind, {}]}) == STARTED
    later = STARTED + datetime.timedelta(microseconds=5)
    assert run.macros.call._refresh_received_at({"batches": [ahead, behind]}) == later


def test_a_log_of_an_earlier_version_gets_the_columns_that_it_lacks() -> None:
    columns = dict(MACROS.call._refresh_batch_log_columns())
    old = [(name, kind) for name, kind in columns.items() if name not in ("step", "watermark")]
    run = Run(["ledger"], describe=old)
    run.macros.call._refresh_create_batch_log("ledger")
    assert run.queries[-1] == "alter table ledger add columns (step bigint, watermark string)"
    run = Run(["ledger"], describe=list(columns.items()))
    run.macros.call._refresh_create_batch_log("ledger")
    assert len(run.queries) == 1
    assert "step" not in str(run.macros.call._refresh_batch_log_order(["state", "recorded_at"]))


def test_the_view_of_the_metrics_is_made_again_when_its_text_is_another() -> None:
    first = Run()
    first.macros.call._refresh_create_metrics(first.load(type="none"))
    (made,) = first.queries
    reported = re.findall(r"tblproperties \('heartbeat.text' = '(md5 \w+)'\)", made)
    same = Run([TABLES["metrics"]], show_tblproperties=[("heartbeat.text", reported[0])])
    same.macros.call._refresh_create_metrics(same.load(type="none"))
    assert len(same.queries) == 1
    for answer in ([("heartbeat.text", "md5 of another text")], []):
        other = Run([TABLES["metrics"]], show_tblproperties=answer)
        other.macros.call._refresh_create_metrics(other.load(type="none"))
        assert other.queries[-1] == made


def watermark(
    initial: object,
    logged: Sequence[Mapping[str, object]],
    refresh: Mapping[str, object],
    **how: object,
) -> str:
    """Return what the query of a model gets, given the batches of its batch log."""
    run = Run(["ledger"], select=[(json.dumps(batch),) for batch in logged])
    run.model.update(node(**refresh))
    run.macros.call._refresh_tables = lambda _: SimpleNamespace(ledger="ledger")
    return str(run.macros.call.refresh_watermark(initial, **how))


def batch_at(step: int, state: str = "COMPLETE", **facts: object) -> dict[str, object]:
    reported = {"range_to": None, "is_archived": "true", "watermark": None}
    return {"id": step, "state": state, "step": str(step), **reported, **facts}


@pytest.mark.parametrize(
    "refresh",
    [
        {"type": "none"},
        CUSTOM,
        {"type": "full"},
        {"type": "full", "extracted_at": "day"},
        {"type": "key", "key": "k"},
        {"type": "key", "key": "k", "updated_at": "t"},
        {"type": "timestamp", "column": "t"},
        {"type": "sequence", "column": "n"},
    ],
    ids=lambda refresh: " ".join(map(str, refresh.values()))[:20],
)
def test_a_model_of_any_type_reads_on_by_a_column_of_its_own(refresh: Mapping[str, object]) -> None:
    given = {**refresh, "watermark": "modified_at"}
    logged = [
        batch_at(1, watermark="5 us"),
        batch_at(2, watermark="9 us", range_to="77"),
        batch_at(3),
        batch_at(4, "UNLOADED", watermark="11 us"),
    ]
    found = watermark("2026-01-01", logged, given)
    assert found == "timestamp_micros(9) /* batch log at step 4 */"
    found = watermark("2026-01-01", [], given, overlap="1 day")
    assert found == "timestamp'2026-01-01' /* batch log at step 0 */"
    found = watermark(0, [batch_at(1, watermark="12")], given, overlap=2)
    assert found == "10 /* batch log at step 1 */"
    with pytest.raises(CompilationError, match="a number, but the column modified_at has dates"):
        watermark(0, logged, given)


def test_a_run_is_refused_whose_query_reads_on_from_a_log_that_has_moved_since() -> None:
    run = Run()
    load = {**run.load(type="none"), "name": "orders", "step": 4}
    run.macros.call._refresh_check_read_on(load, "select 1 where t > 10 /* batch log at step 4 */")
    run.macros.call._refresh_check_read_on(load, "select 1")
    with pytest.raises(CompilationError, match="since refresh_watermark read it"):
        run.macros.call._refresh_check_read_on(load, "where t > 10 /* batch log at step 3 */")


def test_rows_of_one_instant_are_ordered_by_the_tie_breaker_and_then_by_every_other_column() -> (
    None
):
    columns = [
        ("k", "int"),
        ("v", "string"),
        ("rank", "int"),
        ("at", "timestamp"),
        ("tags", "array<string>"),
    ]
    named = [{"name": name, "quoted": f"`{name}`", "type": kind} for name, kind in columns]
    given = settings(type="key", key="k", updated_at="at", tie_breaker="rank")
    output = " ".join(str(MACROS.call._refresh_rank({"settings": given, "columns": named})).split())
    assert "order by s_update_timestamp desc, s_deleted_flag desc, `rank` desc, `v` desc," in output
    assert "`at` desc, to_json(`tags`, map(" in output
    assert output.endswith(") desc, s_row_num desc )")


def test_without_an_archive_a_batch_replaces_all_rows_there_that_no_batch_needs() -> None:
    known = [
        {"id": 1, "state": "COMPLETE", "is_vacuumed": True},
        {"id": 2, "state": "UNLOADED", "is_vacuumed": False},
        {"id": 3, "state": "CLAIMED", "is_vacuumed": False},
        {"id": 4, "state": "CLAIMED"},
    ]
    replaced = MACROS.call._refresh_replaced_in_archive
    load = {"settings": settings(type="none", archive_days=0), "batches": known}
    assert replaced(load, known[3:]) == "s_input_id not in (2)"
    assert replaced({**load, "batches": known[:1]}, known[3:]) == "s_input_id not in (0)"
    load["settings"] = settings(type="none")
    assert replaced(load, known[3:]) == "s_input_id in (4, 3)"


@pytest.mark.parametrize(("days", "is_gone"), [(0, True), (30, False), (None, False)])
def test_without_an_archive_a_batch_that_is_complete_is_out_of_it_in_the_same_event(
    days: int | None, *, is_gone: bool
) -> None:
    reported: list[object] = []
    call = Macros().call
    call._refresh_apply_rows = lambda *_: None
    call._refresh_record_batches = lambda _load, batches, _state: reported.append(dict(batches[0]))
    load = {"settings": settings(type="none", archive_days=days), "batches": []}
    call._refresh_complete_batches(load, [{"id": 4}], False)
    assert reported == [{"id": 4, **({"is_vacuumed": True} if is_gone else {})}]
    # Nothing is left to be taken out: no query is run for it.
    assert (
        call._refresh_outdated_batches({"batches": [{"state": "COMPLETE", "is_vacuumed": True}]}, 0)
        == []
    )
