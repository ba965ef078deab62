"""The macro's query as it is rendered: instants as literals, and what is wrong in one sentence."""

import datetime
from collections.abc import Mapping

import pytest

from tests.support.event_questions import DAY, INSTANTS, MARCH, NO_INSTANTS
from tests.support.macro_calls import CompilationError, Macros

MACROS = Macros(ref=lambda model: f"heartbeat.{model}")


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
    with pytest.raises(
        CompilationError, match=f"^start '{said}' is not an instant; write for example"
    ):
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
        ({"start": "2026-03-02", "end": "2026-03-01"}, "The range begins at 2026-03-02T00:00:00Z, after its end at"),
        ({"start": "soon"}, "The start 'soon' is not an instant; write for example"),
        ({"operation": "MERGE"}, "There is no operation 'MERGE'; allowed are APPEND, DELETE, UPDATE"),
        ({"by": "arrival"}, "Events cannot be selected by 'arrival'; allowed are registration and snapshot"),
        ({"partition": []}, r"The partition \[\] is not a list with one value per level"),
        ({"tags": {"rows": 7}}, "The tag 'rows' with the value 7 is not text"),
        ({"table": " "}, "The table has no name"),
    ],
)  # fmt: skip
def test_the_macro_refuses_a_wrong_wish(wanted: Mapping[str, object], said: str) -> None:
    with pytest.raises(CompilationError, match=f"^{said}"):
        rendered("data_change_events_between", **{"start": None, "end": None, **wanted})
