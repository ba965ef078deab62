"""What a process leaves for the next one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness.store.rows import Consumed, RecentEvents
from harness.store.work_lists import ConsumedTicks, Orphan, Upstream
from harness.tick.checkpoint import VERSION, load_state, save_state
from harness.tick.state import TickState
from tests.support.following import intended
from tests.support.memory_store import MemoryStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
UPSTREAM = Upstream(
    upstream_id="kafka:shop: orders:1a2b3c4d",
    source="kafka",
    sensor_id="shop: orders",
    read_type="streaming",
    upstream_key=None,
    preprocess_query="select 'ä' from sensor_new_data",
    job_ids=(2**53 + 1, 7),
    position='{"v":1,"offsets":[1,2]}',
    upstream_value=None,
    latest_event_tick=3,
    latest_event_at=NOON + timedelta(microseconds=1),
    recent_events=(RecentEvents(tick_number=3, event_at=NOON, event_count=2),),
    taken=(ConsumedTicks(job_id=7, from_tick=-1, through_tick=3),),
    failing_since=NOON,
    reason="The Kafka topic cannot be sensed.",
)
RUN = replace(
    intended(),
    job_id=7,
    intent_id="a",
    token="b",
    consumed=(Consumed(upstream_id=UPSTREAM.upstream_id, from_tick=-1, through_tick=3),),
    event_ids=("c", "d"),
    decided_at=NOON,
    recorded_at=NOON,
)
STATE = TickState(
    tick_number=3,
    tick_at=NOON,
    folded_through=1,
    upstreams=(UPSTREAM,),
    runs=(RUN,),
    controls_checksum="e",
    ended_tick_number=3,
    orphans=(
        Orphan(event_id="f", upstream_id=UPSTREAM.upstream_id, snapshot_id="9", tick_number=3),
    ),
    must_decide=True,
)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    save_state(tmp_path / "state.json", STATE, MemoryStore())

    read = load_state(tmp_path / "state.json", MemoryStore())

    assert read is not None
    assert replace(read, fingerprints={}) == STATE


def test_what_has_no_place_in_the_file_is_not_written(tmp_path: Path) -> None:
    broken = replace(STATE, controls_checksum=tmp_path)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no place in the state file"):
        save_state(tmp_path / "state.json", broken, MemoryStore())
    assert not (tmp_path / "state.json").exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '"x"', "7", "null", "{}", "\0\0\0", "[" * 100_000, f'{{"version": {VERSION}}}'],
)
def test_a_damaged_state_is_none_so_that_the_tables_are_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(text)

    assert load_state(tmp_path / "state.json", MemoryStore()) is None


def test_a_state_that_is_cut_off_anywhere_is_none(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    save_state(path, STATE, MemoryStore())
    whole = path.read_text()
    for length in range(0, len(whole), 97):
        path.write_text(whole[:length])
        assert load_state(path, MemoryStore()) is None


def test_a_state_of_another_version_is_none(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    save_state(path, STATE, MemoryStore())
    path.write_text(path.read_text().replace(f'"version": {VERSION}', f'"version": {VERSION + 1}'))

    assert load_state(path, MemoryStore()) is None
