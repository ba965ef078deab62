"""Whatever bytes a reader gets, it returns typed values or its own error, and soon."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config.yaml import read_yaml
from harness.controls.accept import Desk
from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS, examine_controls
from harness.controls.optional_seeds import SEED_COLUMNS
from harness.controls.triggers.parse import EVENT_TRIGGERS
from harness.errors import ConfigurationError, ControlsError
from harness.record.batch_inbox import receive_batches
from harness.store.inbox import MessageKind, NoMessageError, parse_message
from harness.store.quarantine import quarantined
from tests.support.memory_store import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FEW = settings(max_examples=40, deadline=None)

_WORDS = st.sampled_from(
    [None, True, 0, 7, -1, 2**63, 10**400, 1.5, "7", "", "\0", "\ud800", "2026-03-01T08:00:00Z"]
)
_VALUES = st.recursive(
    _WORDS | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def _objects(*fields: str) -> st.SearchStrategy[bytes]:
    """JSON objects that have most of these fields, and other bytes."""
    known = st.fixed_dictionaries({}, optional=dict.fromkeys(fields, _VALUES))
    return known.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60)


_MESSAGES = _objects("job_id", "run_id", "attempt", "reason", "taken", "sent_at").map(
    lambda content: content.replace(b"{", b'{"kind": "retry", ', 1)
)


@FEW
@given(_MESSAGES)
def test_a_message_is_typed_values_or_an_error_in_words(content: bytes) -> None:
    try:
        message = parse_message(content)
    except NoMessageError as error:
        assert str(error)
        return
    assert message.kind in MessageKind
    assert 1 <= message.job_id < 2**63
    assert message.sent_at.tzinfo is not None
    assert message.run_id is None or 1 <= message.run_id < 2**63


_EVENTS = _objects("snapshot_id", "partition", "tags", "snapshot_ts", "event_id").map(
    lambda content: content.replace(b"{", b'{"table": "a.b", "table_format": "DELTA", ', 1)
)


@FEW
@given(_EVENTS)
def test_a_batch_is_typed_events_or_is_quarantined_with_a_reason(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        inbox = Path(folder)
        (inbox / "registered-1.jsonl").write_bytes(content)
        batches = receive_batches(inbox, at=NOON)
        items = quarantined(inbox)
        assert len(batches) + len(items) == 1
        for event in batches[0].events if batches else ():
            assert json.dumps(event.to_json()).encode()
        assert all(item.reason for item in items)


_CELL = st.sampled_from(
    [
        "",
        "7",
        "x",
        "TRUE",
        "a.b",
        "delta_table",
        '"',
        "\0",
        "é",
        "select 1 from sensor_new_data",
        "(" * 300,
        "{yyyy}",
        "2026-01-01 00:00:00",
        "PARTITION",
        "*",
        "1" * 50,
        "batch",
        "PAUSED",
    ]
) | st.text(max_size=4)


def _csv(columns: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    lines = st.lists(st.lists(_CELL, min_size=1, max_size=len(columns) + 1), max_size=3)

    def text(rows: list[list[str]]) -> bytes:
        stream = io.StringIO()
        csv.writer(stream).writerows([columns, *rows])
        return stream.getvalue().encode("utf-8", errors="surrogatepass")

    return lines.map(text) | st.binary(max_size=40)


@pytest.mark.parametrize("seed", [CONTROLS, *SEED_COLUMNS], ids=str)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_seed_of_any_cells_is_accepted_in_part_and_the_rest_has_a_reason(
    seed: Path, data: st.DataObject
) -> None:
    columns = COLUMNS if seed == CONTROLS else SEED_COLUMNS[seed]
    content = data.draw(_csv(columns))
    with TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "seeds").mkdir()
        healthy = "delta_table,a.b,batch,,,,7,,UNPAUSED,TRUE\n"
        (project / CONTROLS).write_text(",".join(COLUMNS) + "\n" + healthy)
        desk = Desk(project, project / "home", MemoryStore())
        desk.accept(NOON)
        (project / seed).write_bytes(content)
        accepted = desk.accept(NOON)
        assert all(item.reason for item in accepted.quarantined)
        # What is in force has no mistake, and the healthy job stays while anything is wrong.
        in_force = examine_controls(project / "home", None)
        assert in_force.seed_problems == ()
        assert not [each for each in in_force.findings if each.severity == "error"]
        if accepted.quarantined or seed != CONTROLS:
            assert 7 in [row.job_id for row in in_force.controls.rows]
        assert (project / "home" / EVENT_TRIGGERS).is_file()


_YAML = st.text(alphabet="a:- \n[]{}&*!<|>'\"#%@,.0123e\t?", max_size=40).map(str.encode)


@FEW
@given(_YAML | st.binary(max_size=40))
def test_a_configuration_is_a_mapping_or_an_error_in_words(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "heartbeat.yml"
        file.write_bytes(content)
        try:
            document = read_yaml(file, "heartbeat.yml")
        except ConfigurationError as error:
            assert str(error).startswith("heartbeat.yml")
            return
        assert isinstance(document.values, dict)


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
        "a: " + "[" * 400 + "]" * 400,
        "a: x" + "x" * 2**20,
    ],
    ids=["aliases of aliases", "nested", "long"],
)
def test_a_configuration_that_grows_without_end_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "heartbeat.yml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"heartbeat.yml: .* (shorter|remove that)"):
        read_yaml(tmp_path / "heartbeat.yml", "heartbeat.yml")


def test_a_controls_file_that_cannot_be_read_at_first_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ControlsError, match="cannot be read"):
        Desk(tmp_path, tmp_path / "home", MemoryStore()).accept(NOON)
