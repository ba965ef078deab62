"""What is in the tree is in its lists, too: pages in the manual, packages in the type check."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Each is a chapter with a table of contents of its own.
CHAPTERS = ("explanation/decisions/",)


def test_every_page_of_the_manual_is_in_its_table_of_contents() -> None:
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    pages = {
        page
        for page in pages
        if page != "index.md" and (not page.startswith(CHAPTERS) or page.endswith("/index.md"))
    }
    listed = re.findall(r"\]\(([\w/-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"))

    assert sorted(listed) == sorted(pages)


def test_the_types_of_every_package_that_is_no_test_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {init.parent.name for init in ROOT.glob("*/__init__.py")}

    assert packages - {"tests", "benchmarks"} <= set(project["tool"]["mypy"]["files"])
