"""Hiding of secrets in every spelling that clients use."""

import base64
import html
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.platform import masking
from harness.platform.masking import MASK, Masker, mask_environment, masked

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
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        "p%2fa%2bs%20s%22w%c3%b6rd%0a%251",
        quote(quote(SECRET)),
        json.dumps(json.dumps(SECRET)[1:-1])[1:-1],
        repr([repr(SECRET)])[4:-4],
        html.escape(SECRET),
        repr(SECRET.encode())[2:-1],
        repr([repr(SECRET.encode())])[5:-4],
        json.dumps(repr(SECRET.encode()))[3:-2],
    ],
)
def test_a_secret_is_hidden_in_each_spelling(spelling: str) -> None:
    assert hide(f"login with {spelling} refused", SECRET) == f"login with {MASK} refused"


SPELLINGS = {
    "plain": str,
    "repr": lambda text: repr(text)[1:-1],
    "ascii": lambda text: ascii(text)[1:-1],
    "json": lambda text: json.dumps(text)[1:-1],
    "url": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "bytes": lambda text: repr(text.encode())[2:-1],
    "json of bytes": lambda text: json.dumps(repr(text.encode())[2:-1])[1:-1],
}
PRINTABLE = st.characters(categories=["L", "M", "N", "P", "S", "Zs"])


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(
    value=st.text(PRINTABLE | st.sampled_from("\\\"'%&"), min_size=6, max_size=20).filter(
        lambda text: text == text.strip() and MASK not in text
    )
)
def test_no_spelling_of_a_secret_survives(spelling: str, value: str) -> None:
    spelled = SPELLINGS[spelling](value)
    hidden = hide(f"<{spelled}>", value)
    assert MASK in hidden
    assert spelled not in hidden


@pytest.mark.parametrize(
    "secret", ["!Passw0rd", r"ab\\\cd!", r"\\\abcdef", "\\!\\!\\!\\!", "%%%%!!!!"]
)
@pytest.mark.parametrize("unit", ["\\", "ab\\", "%25", "\\x5c", "!", "!\\\\", "\\u005c"])
def test_a_text_made_to_stall_the_search_is_read_in_linear_time(secret: str, unit: str) -> None:
    """Takes hours where a run of backslashes is tried at each of its lengths."""
    text = unit * 200_000
    assert hide(f"{text}<{secret}>", secret).endswith(f"<{MASK}>")


def test_two_secrets_side_by_side_are_both_hidden() -> None:
    output = hide("first-one\\\\!second-one", "first-one\\", "!second-one")
    assert output == MASK * 2


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
    output = hide(f"Authorization: Basic {header}", "dapi0123456789")
    assert MASK in output
    assert b"0123" not in base64.b64decode(output.split()[-1].partition(MASK)[0] + "==")


def test_a_short_secret_is_hidden_only_where_it_stands_as_a_word() -> None:
    assert hide("password=abc for abcdef", "abc") == f"password={MASK} for abcdef"


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    assert hide("is secret-and-more", "secret", "secret-and-more") == f"is {MASK}"


def test_an_empty_secret_changes_nothing() -> None:
    assert hide("as it was", "") == "as it was"


def test_a_secret_that_ends_a_line_is_hidden_without_its_end_as_well() -> None:
    assert hide("Bearer token-of-a-file refused", "token-of-a-file\n") == f"Bearer {MASK} refused"


def test_each_line_of_a_long_secret_is_hidden() -> None:
    key = "-----BEGIN KEY-----\nbGluZSBvbmU\nb25l\n-----END KEY-----"
    output = hide("it says bGluZSBvbmU, one and b25l", key)
    assert output == f"it says {MASK}, one and b25l"


@pytest.mark.parametrize(
    "login",
    [
        "Bearer eyJhbGciOi.eyJzdWIiOi-J9_x~y+z/==",
        "bearer AAAABBBBCCCCDDDD",
        "Basic dXNlcjpwYXNzd29yZA==",
        "dapi0123456789abcdef0123456789abcdef",
        "dapi0123456789abcdef0123456789abcdef-2",
    ],
)
def test_what_resembles_a_login_is_hidden_though_no_caller_named_it(login: str) -> None:
    output = hide(f"sent {login}, refused")
    assert output.endswith(f"{MASK}, refused")
    assert login.rsplit(maxsplit=1)[-1] not in output


@pytest.mark.parametrize("text", ["Bearer of news", "Basic training begins", "dapi is a prefix"])
def test_ordinary_words_are_no_login(text: str) -> None:
    assert hide(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "DATABRICKS_TOKEN",
        "ARM_CLIENT_SECRET",
        "KAFKA_PASSWORD",
        "aws_secret_access_key",
        "X_API_KEY",
    ],
)
def test_variables_whose_names_indicate_a_secret_are_hidden_from_the_start(name: str) -> None:
    mask_environment({name: "hunter2-hunter2"})
    assert masked("it is hunter2-hunter2") == f"it is {MASK}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/srv/project"),
        ("MAX_TOKEN", "5"),
        ("KEY_PASSWORD", "/run/secrets/key"),
        ("LANG", "en_US.UTF-8"),
    ],
)
def test_other_variables_stay_readable(name: str, value: str) -> None:
    mask_environment({name: value})
    assert masked(f"it is {value}") == f"it is {value}"


def test_the_parts_of_an_address_that_resemble_secrets_are_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(masking, "_MASKER", masking.Masker())
    masking.mask_address(
        "https://heartbeat:open%20sesame@hooks.example.com/services/T0ABCDEF1/xYz123456?to=team"
    )
    said = masking.masked(
        "heartbeat: hooks.example.com refuses /services/T0ABCDEF1/xYz123456?to=team (open sesame)"
    )
    assert said == "heartbeat: hooks.example.com refuses /services/***/***?to=team (***)"
