"""The idempotency token of an attempt."""

import pytest

from harness.fire.token import LONGEST_TOKEN, token_for


def test_the_same_attempt_has_the_same_token_in_every_process_and_version() -> None:
    expected = "hb-73fb73b3fb1c1eadcc1ccd1cc91e66cf9878de3d26925e6be2f4c233f7282"
    assert token_for("https://one", 9007199254740993, "intent", 1) == expected


@pytest.mark.parametrize(
    "other",
    [
        ("https://two", 1, "intent", 1),
        ("https://one", 2, "intent", 1),
        ("https://one", 1, "other", 1),
        ("https://one", 1, "intent", 2),
    ],
)
def test_whatever_differs_makes_another_token(other: tuple[str, int, str, int]) -> None:
    assert token_for(*other) != token_for("https://one", 1, "intent", 1)


def test_parts_do_not_run_into_each_other() -> None:
    assert token_for("a", 1, "1b", 1) != token_for("a", 11, "b", 1)


def test_a_token_is_no_longer_than_the_api_allows() -> None:
    assert len(token_for("https://" + "w" * 500, 2**62, "i" * 5_000, 10**9)) <= LONGEST_TOKEN


def test_an_attempt_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="attempts count from 1"):
        token_for("https://one", 1, "intent", 0)
