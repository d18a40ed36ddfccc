import json

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akm_harbor.tables.redact import NAME_GATE, REDACTED, TEXT_GATE, is_secret_name, redact_text
from akm_harbor.tables.redacted import redacted
from tests.tables.test_redact import SECRETS


def gate(pattern: str, texts: list[str]) -> list[bool]:
    return [bool(v) for v in pc.match_substring_regex(pa.array(texts, type=pa.string()), pattern).to_pylist()]


def test_every_known_shape_passes_the_gate() -> None:
    assert gate(TEXT_GATE, SECRETS) == [True] * len(SECRETS)


PIECES = st.sampled_from(
    [
        *SECRETS,
        "token=",
        "api_key: ",
        '"secret": "',
        "Bearer ",
        "basic ",
        "://u:p@h",
        "-----BEGIN PRIVATE KEY-----",
        "password =",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=6).map("".join))
def test_no_text_that_would_change_slips_past_the_gate(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    if redact_text(text) != text:
        assert gate(TEXT_GATE, [text]) == [True]


NAMES = [
    *("apiKey", "api_key", "API-KEY", "OPENAI_API_KEY", "token", "GITHUB_TOKEN", "client_secret", "password", "pat"),
    *("Authorization", "x-api-key", "x-pat", "MY_PAT", "AWS_SECRET_ACCESS_KEY", "accessToken", "jwt", "cookie"),
    *("set-cookie", "credentials", "DB_PASSWD", "passphrase", "HTTP_AUTH", "bearer", "private_key"),
]


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_name_slips_past_the_gate(name: str) -> None:
    assert is_secret_name(name)
    assert gate(NAME_GATE, [json.dumps({name: "x"}), json.dumps({name: "x"}, indent=1)]) == [True, True]


@given(st.text(alphabet="abcdefghijkopstuvwxyACDEHIKLNOPRSTUVW_-", min_size=1, max_size=16))
def test_names_that_mean_a_secret_pass_the_gate(name: str) -> None:
    if is_secret_name(name):
        assert gate(NAME_GATE, [json.dumps({name: "x"})]) == [True]


def test_columns_of_a_table() -> None:
    key = SECRETS[0]
    table = pa.table(
        {
            "id": [key, "b", None],
            "text": [f"use {key}", "harmless", None],
            "json": ['{"password":"short","n":1}', '{"path":"a"}', "{cut off, password: "],
            "plain": ['{"password":"short"}', "", None],
            "refs": pa.array([[key, "a"], None, []], type=pa.list_(pa.string())),
            "n": [1, 2, None],
        }
    )
    got = redacted(table, keep={"id"}, cuts={"text": 5}, names={"json"}).to_pydict()
    assert got["id"] == [key, "b", None]
    assert got["text"] == ["use [", "harml", None]
    assert got["json"] == [f'{{"password":"{REDACTED}","n":1}}', '{"path":"a"}', "{cut off, password: "]
    assert got["plain"] == ['{"password":"short"}', "", None]
    assert got["refs"] == [[REDACTED, "a"], None, []]
    assert got["n"] == [1, 2, None]


def test_an_untouched_column_is_the_same_object() -> None:
    table = pa.table({"text": ["a", "b"]})
    assert redacted(table)["text"].chunk(0).buffers()[2].address == table["text"].chunk(0).buffers()[2].address


def test_an_empty_table() -> None:
    assert redacted(pa.table({"text": pa.array([], type=pa.string())})).num_rows == 0
