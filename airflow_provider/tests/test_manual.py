"""Whether the manual shows what the examples have, which the tests run."""

import re
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag

PACKAGE = Path(__file__).resolve().parents[1]
MANUAL = PACKAGE.parent / "docs" / "how-to" / "use_airflow.md"
EXAMPLES = PACKAGE / "examples"
SHOWN = re.findall(r"```(?:python|text)\n(.*?)```", MANUAL.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("shown", SHOWN)
def test_what_the_manual_shows_stands_in_an_example(shown: str) -> None:
    assert [each.name for each in EXAMPLES.glob("*.py") if shown in each.read_text()] != []


def test_airflow_finds_every_example_and_nothing_wrong_with_it() -> None:
    bag = DagBag(EXAMPLES)
    assert bag.import_errors == {}
    assert set(bag.dags) == {each.stem for each in EXAMPLES.glob("*.py")}
