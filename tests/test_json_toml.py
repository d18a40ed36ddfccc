import json
import tomllib

import pytest

from akm_harbor.json_toml import parse_json, parse_toml


def test_documents_are_read():
    assert parse_toml('a = 1\n[b]\nc = "x"') == {"a": 1, "b": {"c": "x"}}
    assert parse_json(b'{"a": [1, null]}') == {"a": [1, None]}
    assert parse_json('{"a": 1}', object_pairs_hook=list) == [("a", 1)]


@pytest.mark.parametrize("text", ["[" * 200_000 + "]" * 200_000, '{"a":' * 200_000, "{", "", "9" * 5000])
def test_what_is_no_json_is_one_kind_of_error(text):
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000 + "]" * 20_000, "a = ", "a.b = 1\na = 2"])
def test_what_is_no_toml_is_one_kind_of_error(text):
    with pytest.raises(tomllib.TOMLDecodeError):
        parse_toml(text)
