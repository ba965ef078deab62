"""The report in a real Chromium: it shows everything, reports no error, and executes no text."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.pages import page_in
from tests.support.report_world import NOW, Job, Upstream, World, many, shop
from tests.support.services.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = (
    "</script><img src=x onerror=window.hacked=1>",
    "<!--<script>window.hacked=1</script>",
    "\"'`${window.hacked=1}{{constructor.constructor('window.hacked=1')()}}",
    "{red|styled} %c a\u2028b",
    "__proto__",
    "\u202eevil\u202c.sales",
    "מכירות.הזמנות",
    "x" * 300,
)
VIEWS = ("", "jobs", "upstreams", "graph", "events", "job/504", "upstream/6")
WIDTHS = (390, 768, 1440)


@dataclass
class Opened:
    """A page, and the problems that the browser reported."""

    page: "Page"
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def go(self, view: str) -> None:
        """Show a view, as a click on a link does."""
        self.page.evaluate(_GO, view)
        self.page.wait_for_function("() => document.querySelector('main h1') !== null")

    @property
    def text(self) -> str:
        """The text of the view."""
        return self.page.inner_text("main")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as started:
        yield started


Opening = Callable[..., Opened]


@pytest.fixture
def opening(browser: "Browser") -> Iterator[Opening]:
    with ExitStack() as stack:

        def opened(file: Path, view: str = "", **how: Any) -> Opened:
            how.setdefault("viewport", {"width": 1440, "height": 900})
            context = stack.enter_context(browser.new_context(timezone_id="Asia/Tokyo", **how))
            made = Opened(context.new_page())
            made.page.on("console", lambda message: made.complaints.append(message.text))
            made.page.on("pageerror", lambda error: made.complaints.append(str(error)))
            made.page.on("request", lambda request: made.requests.append(request.url))
            made.page.goto(f"{file.as_uri()}#/{view}")
            return made

        yield opened


def page_file(folder: Path, world: World, days: float = 7) -> Path:
    file = folder / "page.html"
    file.write_text(page_in(folder, world, days=days))
    return file


@pytest.fixture(scope="module")
def of_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_file(tmp_path_factory.mktemp("shop"), shop())


@pytest.fixture(scope="module")
def of_hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    upstreams = [
        Upstream(name, 3600, description=name, unreadable=name if number == 0 else "")
        for number, name in enumerate(HOSTILE)
    ]
    jobs = [
        Job(500 + number, name, [(number, True)], 300, ends_failed=name)
        for number, name in enumerate(HOSTILE)
    ]
    return page_file(tmp_path_factory.mktemp("hostile"), World(upstreams, jobs), days=2)


@pytest.fixture(scope="module")
def of_thousand(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_file(tmp_path_factory.mktemp("thousand"), many(1000), days=0.25)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_complains_or_is_wider_than_the_screen(
    opening: Opening, of_shop: Path, width: int, scheme: str
) -> None:
    opened = opening(of_shop, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for view in VIEWS:
        opened.go(view)
        wide = opened.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, view
        assert opened.page.evaluate(_UNDRAWN) == [], view
        _keep_screenshot(opened, f"{view.replace('/', '-') or 'overview'}-{width}-{scheme}")
    assert opened.complaints == []
    assert opened.requests == [opened.page.url.split("#")[0]]


#: Charts whose canvas has one colour only.
#: The page's own listener comes first, so that the view is there when this one is called.
_GO = """view => new Promise(done => {
    if (location.hash === '#/' + view) return done();
    addEventListener('hashchange', () => done(), {once: true});
    location.hash = '#/' + view;
})"""
_IS_HEADED = "(text) => document.querySelector('h1').innerText.startsWith(text)"
_UNDRAWN = """() => [...document.querySelectorAll('.plot')].filter((plot) => {
    const canvas = plot.querySelector('canvas');
    if (!canvas) return true;
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return pixels.every((each) => each === pixels[0]);
}).map((plot) => plot.getAttribute('aria-label'))"""


#: Which part of the graph's canvas is drawn on: nodes that grow with the zoom would cover it.
_INKED = """() => {
    const canvas = document.querySelector('.graph canvas');
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const pixels = new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return pixels.reduce((total, each) => total + (each !== 0), 0) / pixels.length;
}"""


def _keep_screenshot(opened: Opened, name: str) -> None:
    """Leave pictures for a person in the folder that an environment variable names."""
    folder = os.environ.get("HEARTBEAT_SCREENSHOTS")
    if folder:
        opened.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


#: Texts whose contrast with what is behind them is less than 4.5 (WCAG 2, level AA).
_FAINT = """() => {
    const rgb = (text) => {
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((value) => { const c = value / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const color = rgb(getComputedStyle(each).backgroundColor);
            if (color[3] === 255) return color;
        }
        return [255, 255, 255, 255];
    };
    const faint = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || /^(SCRIPT|STYLE|NOSCRIPT)$/.test(element.tagName)) continue;
        const [a, b] = [luminance(rgb(getComputedStyle(element).color)), luminance(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) faint.add(`${contrast.toFixed(2)} ${element.className} ${walker.currentNode.textContent.slice(0, 30)}`);
    }
    return [...faint];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_background(
    opening: Opening, of_shop: Path, scheme: str
) -> None:
    opened = opening(of_shop, color_scheme=scheme)
    for view in VIEWS:
        opened.go(view)
        assert opened.page.evaluate(_FAINT) == [], view


def test_what_needs_attention_comes_first(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop)
    assert opened.page.inner_text("h1") == "3 things need attention"
    found = opened.page.locator(".problems li").all_inner_texts()
    assert [each.split("\n")[0].strip() for each in found] == ["failed", "unreadable", "late"]
    assert "stock-forecast" in found[0]
    assert "OutOfMemoryError" in found[0]
    assert "1 job waits" in found[1]


def test_a_hostile_name_runs_nothing_and_is_shown_as_it_is(
    opening: Opening, of_hostile: Path
) -> None:
    opened = opening(of_hostile)
    views = [*VIEWS[:5], *(f"job/{500 + number}" for number in range(len(HOSTILE)))]
    views += [f"upstream/{number}" for number in range(len(HOSTILE))]
    for view in views:
        opened.go(view)
        wide = opened.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, view
    opened.page.fill("#find", "img")
    assert opened.page.inner_text("#found li span bdi") == HOSTILE[0]
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []
    assert len(opened.requests) == 1
    opened.go("job/500")
    assert opened.page.inner_text("h1") == HOSTILE[0]


def test_a_hostile_name_is_a_label_in_a_tooltip(opening: Opening, of_hostile: Path) -> None:
    opened = opening(of_hostile, "job/500")
    box = opened.page.locator(".plot").bounding_box()
    assert box is not None
    elements = opened.page.locator("body *").count()
    # The points of the first lane, at the end of the time that is covered.
    for share in range(75, 99):
        opened.page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + 25)
    assert opened.page.locator("body *").count() == elements
    assert opened.page.locator("img").count() == 0
    assert opened.complaints == []


def test_a_past_instant_has_the_reasons_of_its_decision(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop, "job/504")
    answer = opened.page.locator(".answer")
    assert "last run failed" in answer.inner_text()
    opened.page.get_by_role("button", name="Change before").click()
    opened.page.get_by_role("button", name="Change before").click()
    assert "last run failed" not in answer.inner_text()
    instant = opened.page.input_value("input[type=datetime-local]").replace("T", " ")
    assert instant in answer.inner_text()
    opened.page.get_by_role("button", name="Now", exact=True).click()
    assert "last run failed" in answer.inner_text()


def test_an_instant_may_be_typed_in_utc(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop, "job/505")
    opened.page.fill("input[type=datetime-local]", "2026-03-04T12:00")
    opened.page.dispatch_event("input[type=datetime-local]", "change")
    assert "2026-03-04 12:00Z" in opened.page.inner_text(".answer")
    opened.page.click("#zone")
    opened.page.fill("input[type=datetime-local]", "2026-03-04T12:00")
    opened.page.dispatch_event("input[type=datetime-local]", "change")
    assert "2026-03-04 12:00" in opened.page.inner_text(".answer")
    assert "12:00Z" not in opened.page.inner_text(".answer")


def test_an_instant_before_the_first_decision_names_the_command_that_shows_it(
    opening: Opening, of_shop: Path
) -> None:
    opened = opening(of_shop, "job/509")
    opened.page.fill("input[type=range]", "0")
    assert "heartbeat explain 509 --at 2026-02-27T15:42Z" in opened.page.inner_text(".answer")


def test_a_job_does_not_wait_for_an_upstream_whose_name_begins_alike(
    opening: Opening, tmp_path: Path
) -> None:
    upstreams = [Upstream("sales.orders", 600), Upstream("sales.orders_eu", 80_000)]
    job = Job(7, "both", [(0, True), (1, True)], 300)
    opened = opening(page_file(tmp_path, World(upstreams, [job]), days=2), "upstream/0")
    assert "none waits for it" in opened.text
    opened.go("upstream/1")
    assert "1 waits for it" in opened.text


def test_a_job_is_found_and_opened_with_the_keyboard_alone(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop)
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("fraud")
    opened.page.keyboard.press("Enter")
    # Another view comes with the next event of the browser.
    opened.page.wait_for_function(_IS_HEADED, arg="fraud-scores")
    opened.page.keyboard.press("g")
    opened.page.wait_for_function(_IS_HEADED, arg="Graph")


def test_the_theme_is_chosen_and_kept(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop, color_scheme="dark")
    theme = "document.documentElement.dataset.theme"
    assert opened.page.evaluate(theme) == "dark"
    opened.page.click("#theme")
    assert opened.page.evaluate(theme) == "light"
    opened.page.reload()
    assert opened.page.evaluate(theme) == "light"


def test_a_thousand_jobs_are_listed_searched_and_drawn(opening: Opening, of_thousand: Path) -> None:
    opened = opening(of_thousand, "jobs")
    assert opened.page.inner_text("h1") == "Jobs 1,000"
    opened.page.get_by_role("button", name="Show all 1,000").click()
    assert opened.page.locator("tbody tr").count() == 1000
    opened.page.fill(".filter", "0777")
    assert opened.page.locator("tbody tr").count() == 1
    opened.go("graph")
    assert opened.page.evaluate(_UNDRAWN) == []
    opened.page.fill(".filter", "-0777")
    assert opened.page.inner_text(".right [role=status]") == "1 match"
    opened.page.press(".filter", "Enter")
    assert "-0777" in opened.page.inner_text(".side h2")
    assert opened.page.evaluate(_INKED) < 0.2
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        _keep_screenshot(opened, f"thousand-graph-{scheme}")
    assert opened.complaints == []


def test_an_empty_installation_has_a_page_for_each_view(opening: Opening, tmp_path: Path) -> None:
    opened = opening(page_file(tmp_path, World([], []), days=1))
    for view in VIEWS:
        opened.go(view)
    opened.go("")
    assert "seeds/heartbeat_controls.csv" in opened.text
    assert opened.complaints == []


def test_a_print_shows_every_row_in_light_colours(opening: Opening, of_shop: Path) -> None:
    opened = opening(of_shop, "job/501", color_scheme="dark")
    before = opened.page.locator("tbody tr").count()
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert opened.page.locator("tbody tr").count() > before


@pytest.mark.parametrize("width", [820, 1101, 1200])
def test_no_card_of_the_overview_hides_a_part_of_its_table(
    opening: Opening, of_shop: Path, width: int
) -> None:
    opened = opening(of_shop, viewport={"width": width, "height": 900})
    cut = "[...document.querySelectorAll('.card table')].map("
    cut += "(each) => each.scrollWidth - each.closest('.card').clientWidth)"
    assert all(each <= 0 for each in opened.page.evaluate(cut))


def test_models_show_their_batches_and_how_far_they_are_in_their_sources(
    opening: Opening, tmp_path: Path
) -> None:
    tables = tmp_path / "state" / "warehouse" / "sales.db"
    batch = {"s_input_id": 7, "step": 1, "state": "FAILED", "received_at": NOW, "recorded_at": NOW}
    batch |= {"record_count": 1234, "message": HOSTILE[0]}
    days = pa.table({"id": [1, 2, 3], "day": ["2026-03-01", "2026-03-02", "2026-03-03"]})
    write_deltalake(tables / "orders", days, partition_by=["day"])
    write_deltalake(tables / "daily", pa.table({"id": [1]}))
    source_id, table_id = (DeltaTable(tables / each).metadata().id for each in ("orders", "daily"))
    taken = {
        "source": "sales.orders",
        "partition": "2026-03-01",
        "taken_at": NOW - timedelta(days=2),
    }
    taken |= {"source_id": source_id, "partition_column": "day", "stamp": "1/X"}
    taken |= {"look_back_days": 7, "table_id": table_id, "table_version": 0}
    write_deltalake(tables / "bronze_ledger", pa.Table.from_pylist([batch]))
    write_deltalake(tables / "daily_taken", pa.Table.from_pylist([taken]))
    models = "report: {models: [sales.bronze, sales.daily, sales.absent]}"
    file = tmp_path / "page.html"
    file.write_text(page_in(tmp_path, shop(), days=2, configuration=models))
    opened = opening(file)
    cards = opened.page.locator("section", has_text="Refresh models").inner_text()
    assert all(word in cards for word in ("sales.bronze", "failed", "1,234", HOSTILE[0]))
    cards = opened.page.locator("section", has_text="Self-healing models").inner_text()
    assert all(
        word in cards for word in ("sales.daily", "sales.orders", "2d", "2, oldest 2026-03-02")
    )
    assert "none" not in cards
    assert "sales.absent: neither absent_ledger nor absent_taken is there" in opened.text
    assert "sales.daily:" not in opened.text
    assert opened.complaints == []
