"""One attempt, through the real litellm, over a real socket: every failure has a name."""

import socket

import pytest

from akm_harbor.memory.answer import endpoint
from akm_harbor.memory.answer.failures import CallError
from tests.memory.answer.model_double import ABSTAINS, Double, Script


def complete(url, timeout_s=10.0):
    return endpoint.complete(
        "openai/m-1", [{"role": "user", "content": "hello"}], {"temperature": 0, "max_tokens": 7}, api_base=url,
        api_key="k", timeout_s=timeout_s,
    )  # fmt: skip


def test_an_answer_comes_with_its_model_and_tokens(double):
    got = complete(double.url)
    assert got["model"] == "m-1"
    assert got["in_tok"] > 0
    assert got["out_tok"] > 0
    assert got["finish_reason"] == "stop"
    assert double.bodies == [{"model": "m-1", "temperature": 0, "max_tokens": 7}]


def test_the_model_as_served_is_told_not_the_one_asked_for():
    with Double(Script(served="m-1-2024-08-06")) as double:
        assert complete(double.url)["model"] == "m-1-2024-08-06"


def test_tokens_that_were_not_counted_are_unknown_not_zero():
    with Double(Script(usage=False)) as double:
        got = complete(double.url)
    assert (got["in_tok"], got["out_tok"]) == (None, None)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("401", "unauthorized"),
        ("404", "not-found"),
        ("400", "bad-request"),
        ("long", "context-too-long"),
        ("429", "rate-limited"),
        ("quota", "quota"),
        ("500", "server-error"),
        ("cut", "cut-stream"),
        ("html", "malformed-response"),
        ("no-choice", "malformed-response"),
        ("stall", "timeout"),
    ],
)
def test_every_failure_has_a_name_and_is_tried_once(fault, kind):
    with Double(Script(faults={"*": [fault]})) as double:
        with pytest.raises(CallError) as caught:
            complete(double.url, timeout_s=1.0 if fault == "stall" else 10.0)
        assert caught.value.kind == kind
        assert "sk-abcdef" not in caught.value.message
        assert sum(double.requests.values()) == 1
        assert ABSTAINS not in caught.value.message


def test_a_server_that_is_not_there_is_a_connection_failure():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(CallError) as caught:
        complete(f"http://127.0.0.1:{port}/v1")
    assert caught.value.kind == "connection"


def test_a_wait_that_the_server_asks_for_is_passed_on():
    with Double(Script(faults={"*": ["429"]})) as double, pytest.raises(CallError) as caught:
        complete(double.url)
    assert caught.value.retry_after == 0.0


def test_prices_and_windows_come_from_the_shipped_table():
    assert endpoint.listed_price("openai/gpt-4o-mini-2024-07-18") == pytest.approx((0.15, 0.6))
    assert endpoint.listed_price("openai/nobody-knows-this") is None
    assert endpoint.listed_window("openai/gpt-4o-mini-2024-07-18") == 128000
    assert endpoint.listed_window("openai/nobody-knows-this") is None
