"""Each job of the CSV is an exposure of dbt, whatever its cells hold."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harness.controls.parse import ControlRow
from harness.inspect.exposures import exposures, link_project


def row(job_id: int, **cells: str) -> ControlRow:
    usual = {"sensor_source": "delta_table", "sensor_id": "a.b", "job_state": "UNPAUSED"}
    return ControlRow(line=2, job_id=job_id, **{**usual, **cells})


def read(text: str) -> list[dict]:
    return YAML(typ="safe").load(text)["exposures"]


def test_a_job_is_one_exposure_with_all_its_upstreams() -> None:
    rows = [row(7, trigger_job_name="revenue"), row(7, sensor_id="a.c", dependency_flag="false")]
    (found,) = read(exposures(rows, None))
    assert (found["name"], found["label"]) == ("job_7", "revenue")
    assert "| a.b | delta_table | hard | UNPAUSED |  |" in found["description"]
    assert "| a.c | delta_table | soft | UNPAUSED |  |" in found["description"]
    assert found["depends_on"] == ["ref('trigger_set')"]
    assert "url" not in found


def test_the_link_leads_to_the_job_in_the_workspace() -> None:
    for host in ("example.com", "https://example.com/"):
        (found,) = read(exposures([row(7)], host))
        assert found["url"] == "https://example.com/jobs/7"


def test_a_paused_job_is_shown_as_paused() -> None:
    (found,) = read(exposures([row(7, job_state="paused")], None))
    assert "PAUSED: it starts nothing" in found["description"]


@given(st.text(max_size=50), st.sampled_from(["", "{{ 1 }}", "</script>", "{%", "{#", "`|*"]))
def test_no_cell_is_an_expression_mark_up_or_the_end_of_a_script(text: str, part: str) -> None:
    cell = f"{text}{part}{text}"
    names = {"trigger_job_name": cell, "asset_description": cell, "sensor_id": cell}
    (found,) = read(exposures([row(7, **names)], None))
    *_, line = found["description"].split("\n")
    assert not set("{<`*[") & set(line)
    assert line.count("|") == 6
    assert not any(each in found["label"] for each in ("{{", "{%", "{#", "<", ">", "\n"))


def test_the_documented_project_has_the_models_and_the_seeds_that_operators_edit(
    tmp_path: Path,
) -> None:
    package, project = tmp_path / "package", tmp_path / "project"
    for folder in (package / "models" / "decide", package / "seeds", project / "seeds"):
        folder.mkdir(parents=True)
    (package / "models" / "decide" / "a.sql").write_text("select 1")
    for name in ("controls.csv", "controls.yml"):
        (package / "seeds" / name).write_text("packaged")
    (project / "seeds" / "controls.csv").write_text("own")
    for _ in range(2):
        link_project(package, project, tmp_path / "docs", "exposures: []\n")
    made = tmp_path / "docs"
    assert (made / "models" / "decide" / "a.sql").read_text() == "select 1"
    assert (made / "seeds" / "controls.csv").read_text() == "own"
    assert (made / "seeds" / "controls.yml").read_text() == "packaged"
    assert (made / "models" / "jobs" / "_jobs.yml").read_text() == "exposures: []\n"
    assert not (package / "models" / "jobs").exists()
