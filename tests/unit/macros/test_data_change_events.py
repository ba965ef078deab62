"""The macro's question as it is rendered: instants as literals, and what is wrong in one sentence."""

import datetime
import re
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
import pytz

from tests.support.event_questions import DAY, INSTANTS, MARCH, NO_INSTANTS
from tests.support.macro_calls import CompilationError, Macros

MACROS = Macros(
    modules=SimpleNamespace(datetime=datetime, pytz=pytz, re=re),
    ref=lambda model: f"heartbeat.{model}",
)


def rendered(name: str, *arguments: object, **named: object) -> str:
    """What dbt would make of a macro."""
    return str(getattr(MACROS.call, name)(*arguments, **named)).strip()


@pytest.mark.parametrize(("said", "milliseconds"), INSTANTS)
def test_the_macro_takes_an_instant_as_python_does(
    said: datetime.datetime | str | int, milliseconds: int
) -> None:
    assert rendered("_epoch_milliseconds", said, "start") == str(milliseconds)


@pytest.mark.parametrize("said", NO_INSTANTS)
def test_the_macro_refuses_what_is_no_instant(said: str) -> None:
    with pytest.raises(CompilationError, match=f"^start '{said}' is no instant; write for example"):
        rendered("_epoch_milliseconds", said, "start")


def test_a_range_becomes_literals_of_the_column_that_is_meant() -> None:
    by_registration = rendered("data_change_events_between", "2026-03-01", "2026-03-02")
    assert f"and event_ts >= {MARCH} and event_ts < {MARCH + DAY}" in by_registration
    by_snapshot = rendered("data_change_events_between", MARCH, None, by="snapshot")
    inside, outside = by_snapshot.split(") as events")
    assert f"and snapshot_ts >= {MARCH - DAY}" in inside and "snapshot_ts <" not in inside
    assert f"and snapshot_ts >= {MARCH}" in outside


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"start": "2026-03-02", "end": "2026-03-01"}, "start 2026-03-02 comes after end 2026-03-01"),
        ({"operation": "MERGE"}, "operation 'MERGE' is none of APPEND, DELETE, UPDATE"),
        ({"by": "arrival"}, "by 'arrival' is none of registration and snapshot"),
        ({"partition": []}, "partition is empty; give a list"),
    ],
)  # fmt: skip
def test_the_macro_refuses_a_wrong_wish(wanted: Mapping[str, object], said: str) -> None:
    with pytest.raises(CompilationError, match=f"^{said}"):
        rendered("data_change_events_between", **{"start": None, "end": None, **wanted})
