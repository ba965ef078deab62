"""`import` on the command line: one table or the triggers, a report, and files that are kept."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.cli.app import app
from harness.controls.header import COLUMNS
from harness.controls.imported_sensors import IMPORTED_SENSORS
from harness.controls.load import CONTROLS
from harness.controls.migration.original import STATE_COLUMNS
from harness.errors import ConfigurationError, ControlsError

EXPORT = f"""{",".join((*COLUMNS, *STATE_COLUMNS))}
delta_table,sales.orders,streaming,Orders,,,1,revenue,UNPAUSED,TRUE,COMPLETED,,2026-03-01 06:00:00,,
oracle,sales.returns,streaming,Returns,,,1,revenue,UNPAUSED,TRUE,,,,,
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "seeds").mkdir()
    (tmp_path / "heartbeat.yml").write_text("")
    (tmp_path / "export.csv").write_text(EXPORT)
    monkeypatch.setenv("HEARTBEAT_PROJECT", str(tmp_path))
    monkeypatch.setenv("HEARTBEAT_HOME", str(tmp_path / "home"))
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["import", *arguments])


def test_a_control_table_is_imported_with_a_report(project: Path) -> None:
    result = call(str(project / "export.csv"))
    assert result.exit_code == 0
    assert (project / CONTROLS).read_text().count("sales.orders") == 1
    assert "sales_orders_1,,COMPLETED,2026-03-01T06:00:00+00:00" in (
        (project / IMPORTED_SENSORS).read_text()
    )
    assert "unknown source 'oracle'" in result.stdout
    assert "imported  1 row of 1 job, 1 left out" in result.stdout


def test_the_report_is_json_for_scripts(project: Path) -> None:
    answer = json.loads(call(str(project / "export.csv"), "--json").stdout)
    assert (answer["rows"], answer["imported_sensors"]) == (1, 1)
    assert answer["files"] == [str(IMPORTED_SENSORS), str(CONTROLS)]
    assert [each["is_left_out"] for each in answer["remarks"]] == [True, False]


def test_files_with_rows_are_kept(project: Path) -> None:
    text = f"{','.join(COLUMNS)}\ntrigger_file,mine,streaming,,,,7,mine,UNPAUSED,\n"
    (project / CONTROLS).write_text(text)
    assert isinstance(call(str(project / "export.csv")).exception, ControlsError)
    assert (project / CONTROLS).read_text() == text
    assert call(str(project / "export.csv"), "--force").exit_code == 0
    assert "mine" not in (project / CONTROLS).read_text()


@pytest.mark.parametrize("arguments", [[], ["export.csv", "--triggers"]])
def test_one_source_has_to_be_named(project: Path, arguments: list[str]) -> None:
    assert isinstance(call(*arguments).exception, ConfigurationError)
    assert not (project / CONTROLS).exists()
