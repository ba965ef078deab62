"""Hiding of secrets in every spelling that clients use."""

import base64
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.secrets import MASK, Masker

SECRET = 'p/a+s s"wörd\n%1'


def hide(text: str, *values: str) -> str:
    masker = Masker()
    for value in values:
        masker.add(value)
    return masker.hide(text)


@pytest.mark.parametrize(
    "spelling",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        urlencode({"password": SECRET}).partition("=")[2],
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        repr(SECRET)[1:-1],
    ],
)
def test_a_secret_is_hidden_in_each_spelling(spelling: str) -> None:
    assert hide(f"login with {spelling} refused", SECRET) == f"login with {MASK} refused"


@given(
    before=st.binary(max_size=8),
    value=st.text(min_size=6, max_size=40).filter(lambda text: max(text) < "\ud800"),
    after=st.binary(max_size=8),
    encode=st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_a_secret_inside_base64_text_cannot_be_read_back(before, value, after, encode) -> None:
    text = encode(before + value.encode() + after).decode()
    assert MASK in hide(text, value)


def test_a_basic_authorization_header_is_hidden() -> None:
    header = base64.b64encode(b"token:dapi0123456789").decode()
    said = hide(f"Authorization: Basic {header}", "dapi0123456789")
    assert MASK in said
    assert b"0123" not in base64.b64decode(said.split()[-1].partition(MASK)[0] + "==")


def test_a_short_secret_is_hidden_only_where_it_stands_as_a_word() -> None:
    assert hide("password=abc for abcdef", "abc") == f"password={MASK} for abcdef"


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    assert hide("is secret-and-more", "secret", "secret-and-more") == f"is {MASK}"


def test_an_empty_secret_changes_nothing() -> None:
    assert hide("as it was", "") == "as it was"
