"""The page on the controls agrees with the code."""

import re
from pathlib import Path

from harness.controls.findings import WARNINGS, Code
from harness.controls.header import COLUMNS

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "controls.md").read_text(
    encoding="utf-8"
)


def test_every_finding_is_explained_once_in_the_order_of_the_codes() -> None:
    table = PAGE[PAGE.index("| code |") :]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [code.value for code in Code]


def test_the_page_gives_each_finding_its_severity() -> None:
    table = PAGE[PAGE.index("| code |") :]
    reported = dict(re.findall(r"^\| `(\w+)` \| (\w+)", table, re.MULTILINE))
    assert {code.value for code in WARNINGS} == {
        code for code, severity in reported.items() if severity == "warning"
    }


def test_the_ten_columns_are_explained_in_their_order() -> None:
    table = PAGE[: PAGE.index("## Findings")]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(COLUMNS)
