"""The page that `docs` writes, as a person sees it: the path to the trigger set, jobs, colours."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.controls.header import COLUMNS
from harness.controls.load import CONTROLS
from harness.controls.parse import parse_controls
from harness.inspect.exposures import exposures, link_project
from harness.platform.dbt import Dbt
from tests.support.services.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROJECT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>document.title='taken'</script> {{ 1/0 }} {% raise %} | **x** `y`"
ROWS = f"""{",".join(COLUMNS)}
delta_table,main.sales.orders,streaming,"{HOSTILE}",,,7,"{HOSTILE}",UNPAUSED,TRUE
delta_table,main.sales.returns,streaming,Returns,,,7,"{HOSTILE}",UNPAUSED,FALSE
trigger_file,month_end,streaming,,,,8,month-end,PAUSED,
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, made without tables and without an engine."""
    home = tmp_path_factory.mktemp("home")
    rows = parse_controls(ROWS.encode(), CONTROLS).rows
    text = exposures(rows, "workspace.example.com/")
    link_project(PROJECT, PROJECT, home / "project", text)
    dbt = Dbt(home / "project", home, target="local", before=lambda: None)
    dbt.profiles = PROJECT
    return dbt.document(with_types=False)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: "Browser", path: Path) -> Iterator["Page"]:
    """A page of the browser; it fails for any error, and for any request to the network."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda each: problems.append(each.url) if "http" in each.url[:4] else None)
    yield page
    page.close()
    assert problems == []


def show(page: "Page", path: Path, place: str, tmp_path: Path) -> str:
    """Go somewhere, take a picture of it, and return its text."""
    page.goto(f"{path.as_uri()}#!/{place}")
    page.wait_for_selector("h1:visible", timeout=10_000)
    page.wait_for_timeout(500)
    assert len(page.screenshot(path=tmp_path / "page.png")) > 20_000
    return page.inner_text("body")


def test_the_first_page_leads_from_the_csv_to_the_trigger_set_and_names_every_blocker(
    page: "Page", path: Path, tmp_path: Path
) -> None:
    text = show(page, path, "overview", tmp_path)
    assert "from a row of the CSV to a started job" in text
    assert re.search(r"heartbeat_controls.*queue_upstreams.*trigger_set", text, re.DOTALL)
    assert "make reference" not in text
    page.get_by_role("link", name="last_run_failed", exact=True).click()
    page.wait_for_selector("text=the next run would most likely fail as well")
    # No column is pushed out of the page.
    show(page, path, "overview", tmp_path)
    is_cut = "e => e.scrollWidth > e.clientWidth + 1"
    assert not page.locator("table").first.evaluate(f"e => ({is_cut})(e.parentElement)")


def test_a_job_shows_its_upstreams_and_leads_to_the_workspace_whatever_its_cells_hold(
    page: "Page", path: Path, tmp_path: Path
) -> None:
    text = show(page, path, "exposure/exposure.heartbeat.job_7", tmp_path)
    assert page.title() != "taken"
    assert "main.sales.returns" in text
    assert "<script>document.title='taken'</script> {{ 1/0 }} {% raise %} | **x** `y`" in text
    link = page.get_by_role("link", name="View this exposure")
    assert link.get_attribute("href") == "https://workspace.example.com/jobs/7"
    assert "PAUSED: it starts nothing" in show(
        page, path, "exposure/exposure.heartbeat.job_8", tmp_path
    )


def test_the_steps_have_their_colours_and_tags(path: Path, page: "Page", tmp_path: Path) -> None:
    show(page, path, "overview", tmp_path)
    nodes = page.evaluate(
        "() => Object.fromEntries(Object.values(angular.element(document.body).injector()"
        ".get('project').project.nodes).map(n => [n.name, [n.docs && n.docs.node_color, n.tags]]))"
    )
    for sql, python in (("int_job_states", "queue_upstreams"), ("job_blockers", "trigger_set")):
        assert nodes[sql][0] != nodes[python][0]
    assert nodes["ledger_runs"][0] == nodes["run_state"][0] != nodes["trigger_set"][0]
    assert nodes["trigger_set"][1] == ["fire"]
    assert nodes["int_blocker__nothing_new"][1] == ["decide", "blocker"]
