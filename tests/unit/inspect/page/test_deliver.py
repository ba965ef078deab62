"""The report is kept where the configuration specifies, and never stops a tick."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.context import Context
from harness.errors import StateError
from harness.inspect.page.deliver import Keeper, server_of, write_page
from harness.store.rows import Ledger
from tests.support.fake_clock import FakeClock
from tests.support.ledgers import tick
from tests.support.pages import content_in, context_of
from tests.support.report_world import NOW, Job, Upstream, World, write

KEPT = "report: {path: out/page.html, every_seconds: 60, days: 2}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    world = World([Upstream("sales.orders", 3600)], [Job(7, "daily-revenue", [(0, True)], 300)])
    write(world, tmp_path / "state", days=3)
    return tmp_path


def passes(context: Context, seconds: float) -> None:
    assert isinstance(context.clock, FakeClock)
    context.clock.sleep(seconds)


def something_happens(context: Context, number: int = 10_000) -> None:
    context.store.append(Ledger.TICKS, [tick(number, NOW)])


def test_no_page_is_written_where_none_is_configured(project: Path) -> None:
    before = {*project.rglob("*.html")}
    Keeper(context_of(project)).keep()
    assert {*project.rglob("*.html")} == before


def test_the_page_is_written_at_the_configured_path(project: Path) -> None:
    Keeper(context_of(project, KEPT)).keep()
    content = content_in((project / "out" / "page.html").read_text())
    assert content["now"] == 2 * 86_400


def kept(project: Path) -> tuple[Context, Keeper, Path]:
    context = context_of(project, KEPT)
    keeper = Keeper(context)
    keeper.keep()
    page = project / "out" / "page.html"
    page.unlink()
    return context, keeper, page


def test_the_page_is_not_written_again_too_soon(project: Path) -> None:
    context, keeper, page = kept(project)
    something_happens(context)
    passes(context, 30)
    keeper.keep()
    assert not page.exists()


def test_the_page_is_written_again_after_a_change(project: Path) -> None:
    context, keeper, page = kept(project)
    something_happens(context)
    passes(context, 61)
    keeper.keep()
    assert page.exists()


def test_the_page_is_not_written_again_while_nothing_happens(project: Path) -> None:
    context, keeper, page = kept(project)
    passes(context, 61)
    keeper.keep()
    assert not page.exists()


def test_an_old_page_is_written_again_to_show_that_ticks_go_on(project: Path) -> None:
    context, keeper, page = kept(project)
    passes(context, 301)
    keeper.keep()
    assert page.exists()


def test_a_page_that_took_long_is_written_less_often(project: Path) -> None:
    context = context_of(project, KEPT)
    keeper = Keeper(context)
    slow = context.store.fingerprints

    def slowly(tables: list[str]) -> dict[str, str | None]:
        passes(context, 20)
        return slow(tables)

    context.store.fingerprints = slowly  # type: ignore[method-assign,assignment]
    keeper.keep()
    (project / "out" / "page.html").unlink()
    something_happens(context)
    passes(context, 100)
    keeper.keep()
    assert not (project / "out" / "page.html").exists()


def test_a_page_that_cannot_be_written_is_logged_once_and_stops_nothing(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / "out").write_text("no folder")
    context = context_of(project, KEPT)
    keeper = Keeper(context)
    keeper.keep()
    something_happens(context)
    for _ in range(3):
        passes(context, 31)
        keeper.keep()
    (line,) = [each.getMessage() for each in caplog.records]
    assert "the report is not written" in line
    assert "out" in line


def test_a_ledger_that_cannot_be_read_stops_nothing(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = project / "state" / "warehouse" / "heartbeat.db" / Ledger.PROBES / "_delta_log"
    (log / f"{1:020}.json").write_text("{")
    Keeper(context_of(project, KEPT)).keep()
    assert "the report is not written" in caplog.text


def test_a_folder_is_no_place_for_a_page(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="is a folder: name the file in it"):
        write_page("page", ".", project=tmp_path)


def test_a_scheme_that_is_no_store_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        StateError, match=r"cannot be written to ftp://host/page.html: .*ftp://host"
    ):
        write_page("page", "ftp://host/page.html", project=tmp_path)


@pytest.fixture
def served(project: Path) -> Iterator[int]:
    with server_of(context_of(project), port=0, days=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


def answer_of(port: int, path: str = "/", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_browser_of_this_machine_gets_the_page(served: int) -> None:
    status, page = answer_of(served)
    assert status == 200
    assert content_in(page)["jobs"]


def test_nothing_but_the_page_is_served(served: int) -> None:
    assert answer_of(served, "/../heartbeat.yml")[0] == 404


def test_a_foreign_name_of_this_machine_is_refused(served: int) -> None:
    assert answer_of(served, Host="evil.example:80")[0] == 403


def test_a_port_that_is_taken_is_reported(project: Path, served: int) -> None:
    with pytest.raises(StateError, match=f"Port {served} cannot be used"):
        server_of(context_of(project), port=served, days=None)
