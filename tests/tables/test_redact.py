import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akm_harbor.tables.redact import REDACTED, is_secret_name, redact_text, redact_value

# Shapes only: none of these was ever issued by anybody.
SECRETS = [
    "sk-" + "a1B2" * 8,
    "sk-ant-api03-" + "Zz9_" * 10,
    "sk-proj-" + "k3" * 20,
    "ghp_" + "A1b2" * 9,
    "github_pat_" + "x1Y2" * 10,
    "glpat-" + "q1W2" * 5,
    "xoxb-" + "123456789012-" * 2 + "abc",
    "AKIA" + "ABCDEFGH12345678",
    "AIza" + "Sy0-" * 9,
    "hf_" + "abCD" * 9,
    "npm_" + "a1B2" * 9,
    "pypi-" + "AgEI" * 10,
    "gsk_" + "a1B2" * 10,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123_-x",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("around", ["{}", "export X={} # key", '"k": "{}",', "a\n{}\nb", "({})", "line\\n{}\\n"])
def test_known_shapes_go_and_the_rest_stays(secret: str, around: str) -> None:
    assert redact_text(around.format(secret)) == around.format(REDACTED)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer abcdefgh12345678", "Authorization: Bearer [REDACTED]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [REDACTED]"),
        ("https://user:hunter22@example.org/x", "https://user:[REDACTED]@example.org/x"),
        ('{"apiKey": "abc123def456", "n": 1}', '{"apiKey": "[REDACTED]", "n": 1}'),
        ("OPENAI_API_KEY=abc123def456 run", "OPENAI_API_KEY=[REDACTED] run"),
        ("HF_TOKEN=abcdefghij", "HF_TOKEN=[REDACTED]"),
        ("DB_PASSWORD='s3cr3t-value'", "DB_PASSWORD='[REDACTED]'"),
        ('\\"client_secret\\": \\"abcdefgh\\"', '\\"client_secret\\": \\"[REDACTED]\\"'),
        ("x-api-key: 0123456789abcdef", "x-api-key: [REDACTED]"),
    ],
)
def test_secrets_that_only_their_surroundings_betray(text: str, kept: str) -> None:
    assert redact_text(text) == kept


def test_private_keys_go_whole_even_when_the_end_is_cut() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz\n-----END RSA PRIVATE KEY-----"
    assert redact_text(f"a {key} b") == f"a {REDACTED} b"
    assert redact_text(f"a {key[:50]}") == f"a {REDACTED}"


@pytest.mark.parametrize(
    "text",
    [
        "the task-runner risk-free desk-lamp",
        "max_tokens: 4096, n_input_tokens = 123456",
        "primary key (id), foreign key: order",
        "see https://example.org/a:b@c and mailto:me@example.org",
        "sk-learn is scikit",
        "token: the next one",
        "bearer of bad news",
        "{{ not a template }} </style><script>",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact_text(text) == text


def test_names_that_mean_a_secret() -> None:
    for name in (
        "apiKey",
        "api_key",
        "API-KEY",
        "OPENAI_API_KEY",
        "token",
        "GITHUB_TOKEN",
        "client_secret",
        "password",
        "Authorization",
        "x-api-key",
        "AWS_SECRET_ACCESS_KEY",
        "accessToken",
        "db_password",
        "HF_TOKEN",
    ):
        assert is_secret_name(name), name
    for name in (
        "max_tokens",
        "TOKENIZER",
        "AUTHOR",
        "author",
        "keyword",
        "reward_key",
        "key",
        "MAX_OUTPUT_TOKENS",
        "n_cache_tokens",
        "primary_key",
        "monkey",
        "tokens",
        "secretary",
        "path",
    ):
        assert not is_secret_name(name), name


def test_values_under_secret_names_go_whatever_they_look_like() -> None:
    value = {
        "opencode_config": {"provider": {"x": {"options": {"apiKey": "short", "baseURL": "http://h/v1"}}}},
        "env": [{"GITHUB_TOKEN": "abc"}, {"PATH": "/bin"}],
        "limits": {"max_tokens": 4096, "token": 7, "api_key": None, "password": ""},
        "reference": {"api_key": "${OPENAI_API_KEY}", "token": "{env:TOKEN}", "password": "****"},
    }
    before = json.dumps(value)
    assert redact_value(value) == {
        "opencode_config": {"provider": {"x": {"options": {"apiKey": REDACTED, "baseURL": "http://h/v1"}}}},
        "env": [{"GITHUB_TOKEN": REDACTED}, {"PATH": "/bin"}],
        "limits": {"max_tokens": 4096, "token": 7, "api_key": None, "password": ""},
        "reference": {"api_key": "${OPENAI_API_KEY}", "token": "{env:TOKEN}", "password": "****"},
    }
    assert json.dumps(value) == before


def test_a_secret_across_the_cut_does_not_leave_its_first_half() -> None:
    text = "x" * 489 + " " + SECRETS[1] + " " + "y" * 1000
    assert redact_text(text, 500) == "x" * 489 + " " + REDACTED
    assert "sk-ant" not in redact_text(text, 500)
    assert len(redact_text("z" * 5000, 500)) == 500


def test_hostile_nesting_ends() -> None:
    deep: object = "x"
    for _ in range(500):
        deep = [deep]
    assert REDACTED in json.dumps(redact_value(deep))


@given(st.text(max_size=300), st.sampled_from(SECRETS), st.text(max_size=300))
def test_no_text_around_a_secret_saves_it(before: str, secret: str, after: str) -> None:
    assert secret not in redact_text(f"{before} {secret} {after}")


@given(st.text(max_size=500))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@pytest.mark.parametrize("piece", ["a", "-eyJ", "sk-", "api_key", "token=", "://a:", "bearer ", "secret ", "_"])
def test_hostile_texts_take_no_longer_than_ordinary_ones(piece: str) -> None:
    """A pattern that backtracks would need minutes here; the bound is loose on purpose."""
    text = (piece * 8000)[:8000] + " key token secret"
    started = time.perf_counter()
    redact_text(text)
    assert time.perf_counter() - started < 2


def test_strings_inside_a_value_are_cut() -> None:
    assert redact_value({"content": "x" * 5000}, limit=10) == {"content": "x" * 10}
