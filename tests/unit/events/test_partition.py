"""The partition that a person writes on a command line is the one that a trigger's cell names."""

import pytest

from harness.events.partition import levels_from, parts_of, plain_text


@pytest.mark.parametrize("text", ["7", "1.10", "1e3", "1E5", "-0", "007", "nan", "EU", "a;1e3;b"])
def test_a_level_without_quotes_is_the_same_in_a_command_and_in_a_cell(text: str) -> None:
    assert tuple(map(plain_text, levels_from(text))) == parts_of(text) == tuple(text.split(";"))


def test_a_number_in_a_list_is_a_number() -> None:
    assert levels_from("[1e3, 7]") == ("1E+3", "7")
