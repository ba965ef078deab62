"""Which macros are public: described, listed in one page, each in a file of its name; dbt docs hides the others."""

import re
from pathlib import Path

from ruamel.yaml import YAML

PROJECT = Path(__file__).parents[3]
FOLDERS = [PROJECT / "macros", PROJECT / "tests" / "dbt" / "generic"]
#: The names under which dbt registers the macros, and the file that each is in.
FILES = {
    {"test": f"test_{name}", "materialization": f"materialization_{name}_default"}.get(
        kind, name
    ): path.stem
    for folder in FOLDERS
    for path in folder.rglob("*.sql")
    for kind, name in re.findall(r"{% (macro|test|materialization) (\w+)", path.read_text("utf-8"))
}
DESCRIBED = {
    macro["name"]: macro
    for folder in FOLDERS
    for path in folder.rglob("*.yml")
    for macro in YAML(typ="safe").load(path)["macros"]
}
PUBLIC = {name for name, macro in DESCRIBED.items() if macro.get("docs") != {"show": False}}


def test_every_macro_is_in_the_yml_and_the_private_ones_are_hidden() -> None:
    assert FILES.keys() == DESCRIBED.keys()
    assert not [name for name in PUBLIC if name.startswith("_")]


def test_every_public_macro_is_described_and_has_a_file_of_its_name() -> None:
    for name in PUBLIC - {"materialization_refresh_default"}:
        assert DESCRIBED[name]["description"]
        assert FILES[name] == name.removeprefix("test_")


def test_one_page_lists_the_public_macros() -> None:
    page = (PROJECT / "docs" / "reference" / "macros.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
    names = [re.sub("^(test|materialization)_|_default$", "", name) for name in PUBLIC]
    assert sorted(listed) == sorted(names)
