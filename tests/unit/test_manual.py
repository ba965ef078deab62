"""The manual: its links lead somewhere, and its reference agrees with the code."""

import builtins
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from harness import errors
from harness.controls.check import check
from harness.controls.header import COLUMNS
from harness.controls.parse import parse_controls
from harness.store.rows import Ledger

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("[!.]*/README.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@cache
def _text(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> Iterator[str]:
    """Return the anchors of a page's headings, as a repository's viewer makes them."""
    for heading in re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        yield re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def _broken(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", _text(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert list(_broken(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    pattern = r"`((?:benchmarks|bundle|docs|harness|macros|models|seeds|tests)/[\w./<>-]+)`"
    named = re.findall(pattern, _text(page))
    # `<name>` stands for any name.
    missing = [name for name in named if not any(ROOT.glob(re.sub(r"<\w+>", "*", name)))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_error_that_a_page_names_can_be_caught_by_that_name(page: Path) -> None:
    named = re.findall(r"`([A-Z]\w+Error)`", _text(page))
    known = {*vars(errors), *vars(builtins)}
    assert [name for name in named if name not in known] == []


def _csv_examples() -> Iterator[str]:
    for page in PAGES:
        for example in re.findall(r"```csv\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            if example.startswith(",".join(COLUMNS)):
                yield example


@pytest.mark.parametrize("example", list(_csv_examples()))
def test_the_controls_that_the_manual_shows_are_right(example: str) -> None:
    assert check(parse_controls(example.encode(), Path("heartbeat_controls.csv"))) == []


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """The program that writes the generated parts."""
    path = ROOT / "docs" / "reference" / "generate.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "page",
    ["cli.md", "configuration.md", "columns.md", "blockers.md", "../../models/_overview.md"],
)
def test_the_reference_is_what_the_code_states(page: str, reference: ModuleType) -> None:
    assert page in reference.PARTS
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == reference.generated(page), "run `make reference` and commit the result"


def test_every_command_has_its_section(reference: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    commands = reference.command_names()
    assert re.findall(r"^## ([a-z-]+)$", page, re.MULTILINE) == list(commands)


def test_every_blocker_is_in_the_overview(reference: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "blockers.md").read_text(encoding="utf-8")
    overview = page.partition(reference.BEGIN)[0]
    named = re.findall(r"^\| [^|]+ \| `(\w+)` \|", overview, re.MULTILINE)
    assert list(dict.fromkeys(named)) == reference.blocker_names()


def test_the_overview_of_dbt_docs_has_every_blocker_with_a_unit_test_of_its_name(
    reference: ModuleType,
) -> None:
    overview = (ROOT / "models" / "_overview.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\]\(.*\| ([a-z0-9 ]+) \|$", overview, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(reference.blocker_names())
    tests = {
        (model.stem.removeprefix("int_blocker__"), test)
        for model in (ROOT / "models" / "decide" / "blockers").glob("*.yml")
        for test in re.findall(r"^  - name: (\w+)$", model.read_text("utf-8"), re.MULTILINE)
    }
    assert {(name, test.replace(" ", "_")) for name, test in rows} <= tests


def test_the_overview_of_dbt_docs_links_what_there_is_on_the_way_to_the_trigger_set() -> None:
    overview = (ROOT / "models" / "_overview.md").read_text(encoding="utf-8")
    linked = re.findall(r"\(#!/(model|seed)/\1\.heartbeat\.(\w+)\)", overview)
    there = {path.stem for path in (*ROOT.glob("models/**/*.sql"), *ROOT.glob("seeds/*.csv"))}
    assert {name for _, name in linked} <= there
    assert overview.count("](#!/") == len(linked)
    path = [name for _, name in linked]
    on_the_way = ["heartbeat_controls", "queue_upstreams", "int_job_states", "trigger_set"]
    assert sorted(on_the_way, key=path.index) == on_the_way


def test_every_ledger_states_which_step_appends_to_it(reference: ModuleType) -> None:
    ledgers = [each for each in reference._models() if each["name"].startswith("ledger_")]
    assert len(ledgers) == len(Ledger)
    steps = re.compile(
        r"Appended by the harness [^.]*\((controls|record|decide|fire|settle|publish)"
    )
    assert [
        each["name"] for each in ledgers if not steps.search(" ".join(each["description"].split()))
    ] == []
