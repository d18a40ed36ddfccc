"""A call is named by its content."""

import dataclasses

import pytest

from akm_harbor.memory.answer.calls import Reply, Request, as_messages, as_pairs

REQUEST = Request("reader", "http://a", "m", (("user", "q"),), (("max_tokens", 5), ("temperature", 0.0)))


@pytest.mark.parametrize(
    "changes",
    [
        {"endpoint": "http://b"},
        {"model": "n"},
        {"messages": (("user", "r"),)},
        {"settings": (("max_tokens", 6),)},
        {"repeat": 1},
    ],
)
def test_another_content_is_another_call(changes):
    assert dataclasses.replace(REQUEST, **changes).key != REQUEST.key


def test_who_asks_and_how_long_it_is_guessed_to_be_make_no_other_call():
    assert dataclasses.replace(REQUEST, role="probe", in_tokens=99).key == REQUEST.key


def test_messages_survive_the_round_trip():
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert as_messages(as_pairs(messages)) == messages
    assert REQUEST.max_tokens == 5


def test_a_reply_leaves_out_what_it_does_not_know():
    assert Reply("k", "reader", "failed", "m", attempts=2, error_class="timeout", taken_over=True).to_json() == {
        "key": "k",
        "role": "reader",
        "status": "failed",
        "model_req": "m",
        "attempts": 2,
        "error_class": "timeout",
    }
