"""The one file of the report: it requests nothing, runs nothing of others, and stays small."""

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from harness.inspect.page import document
from harness.inspect.page.document import embedded
from harness.platform.text import escaped
from tests.support.pages import content_in, page_in
from tests.support.report_world import Job, Upstream, World, many, shop

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "harness" / "inspect" / "page"
VENDOR = PAGE / "vendor"
KNOWN = json.loads((VENDOR / "vendor.json").read_text())
#: Names as a CSV may have them.
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "]]>&lt;b&gt;'\"`${alert(1)}",
    "a\u2028b\u2029c",
    "{run|x} %{y}",
    "__proto__",
    "\u202eevil\u202c.sales",
    "מכירות",
    "x" * 300,
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_in(tmp_path_factory.mktemp("shop"), shop())


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    upstreams = [Upstream(name, 3600, description=name) for name in HOSTILE]
    jobs = [Job(number, name, [(number, True)], 300) for number, name in enumerate(HOSTILE)]
    return page_in(tmp_path_factory.mktemp("hostile"), World(upstreams, jobs), days=1)


def test_the_page_has_every_job_and_upstream(page: str) -> None:
    content = content_in(page)
    assert len(content["jobs"]) == len(shop().jobs)
    assert len(content["upstreams"]) == len(shop().upstreams)
    assert len(content["events"]) == 500


def test_the_page_requests_nothing(page: str) -> None:
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["'](?!#)""", markup)
    assert "@import" not in markup
    assert "url(" not in markup


def test_only_the_scripts_and_the_style_of_the_page_are_allowed(page: str) -> None:
    policy = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert len(policy) == 1
    parts = dict(each.strip().split(" ", 1) for each in policy[0].split(";"))
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert parts["default-src"] == "'none'"
    assert parts["script-src"].split() == [digest(each) for each in scripts]
    assert parts["style-src"].split() == [digest(each) for each in styles]
    assert "unsafe" not in policy[0]


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_data_and_nothing_else(hostile_page: str, name: str) -> None:
    texts = content_in(hostile_page)["texts"]
    assert escaped(name) in texts
    # The only markup is that of the template.
    assert hostile_page.count("<script") == 3
    assert hostile_page.count("</script>") == 3
    assert "<img" not in hostile_page
    assert "\u2028" not in hostile_page


def test_embedded_json_has_no_sign_that_markup_has() -> None:
    content: dict[str, object] = {"</script>": ["<!--", "&amp;", "\u2028", "\u2029", "\\u003c"]}
    text = embedded(content)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == content


def test_the_script_makes_no_markup_and_no_code_of_texts() -> None:
    script = (PAGE / "assets" / "page.js").read_text()
    for name in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert name not in script, name


@pytest.mark.parametrize("name", ["vendor/echarts.min.js", "assets/page.js", "assets/page.css"])
def test_no_part_of_the_page_ends_its_own_element(name: str) -> None:
    text = (PAGE / name).read_text().lower()
    for sign in ("</script", "<script", "<!--", "</style"):
        assert sign not in text, sign


def test_a_thousand_jobs_make_less_than_three_megabytes(tmp_path: Path) -> None:
    page = page_in(tmp_path, many(1000), days=0.5)
    assert len(content_in(page)["jobs"]) == 1000
    assert len(page.encode()) < 3_000_000


def test_a_page_that_is_too_large_has_less_history_and_every_job(
    tmp_path: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", len(page.encode()) - 100_000)
    smaller = page_in(tmp_path, shop())
    assert len(smaller.encode()) <= len(page.encode()) - 100_000
    assert len(content_in(smaller)["jobs"]) == len(shop().jobs)
    assert all(job["runs"] for job in content_in(smaller)["jobs"] if job["state"] != "paused")


@pytest.mark.parametrize("name", sorted(KNOWN["files"]))
def test_a_vendored_file_is_the_one_that_was_bundled(name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == KNOWN["files"][name]


def test_each_vendored_package_has_its_version_and_licence() -> None:
    licences = (VENDOR / "licences.txt").read_text()
    for package in KNOWN["packages"]:
        assert f"=== {package['name']} {package['version']} ===" in licences
        assert package["licence"]
    assert f"echarts={KNOWN['packages'][0]['version']} " in (VENDOR / "renew.sh").read_text()


def test_the_wheel_has_every_file_of_the_page() -> None:
    included = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    files = {
        str(path.relative_to(ROOT))
        for path in PAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {
        "harness/inspect/page/assets/page.js",
        "harness/inspect/page/vendor/echarts.min.js",
    } <= files
    assert files <= included
