"""Calls are tried a bounded number of times, within a cap, and journalled."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest

from akm_harbor.memory.answer.caller import Caller, Endpoint
from akm_harbor.memory.answer.calls import Request
from akm_harbor.memory.answer.journal import Journal, read_journal
from akm_harbor.memory.answer.limits import Cap
from tests.memory.answer.model_double import Double, Script


def request(text="hello", repeat=0):
    return Request("reader", "", "openai/m", (("user", text),), (("max_tokens", 10),), repeat, 100)


@pytest.fixture
def call(tmp_path):
    """Makes calls against a script; (replies, double, caller, recorded)."""

    def make(script, requests, cap=None, threads=1, **endpoint):
        with Double(script) as double, Journal(tmp_path / "j") as journal:
            base = Endpoint("openai/m", double.url, "DOUBLE_KEY", price=(1.0, 1.0), first_wait_s=0.01)
            caller = Caller(dataclasses.replace(base, **endpoint), None, cap or Cap(None, None), journal)
            with ThreadPoolExecutor(threads) as pool:
                replies = list(pool.map(caller.call, requests))
        return replies, double, caller, read_journal(tmp_path / "j")

    return make


def test_an_answer_is_priced_and_journalled(call):
    (reply,), _, caller, recorded = call(Script(), [request()])
    assert reply.answered
    assert reply.usd == pytest.approx((reply.in_tok + reply.out_tok) / 1e6)
    assert recorded.replies[reply.key].text == reply.text
    assert caller.spent() == {"usd": pytest.approx(reply.usd), "requests": 1}
    assert reply.started_at <= reply.ended_at


def test_401_stops_at_once_and_nothing_more_is_sent(call):
    replies, double, caller, recorded = call(Script(faults={"*": ["401:always"]}), [request(str(i)) for i in range(9)])
    assert sum(double.requests.values()) == 1
    assert [r.error_class for r in replies] == ["unauthorized"] + ["stopped"] * 8
    assert caller.stopped_by[0] == "unauthorized"
    assert len(recorded.sent) == 1


@pytest.mark.parametrize("fault", ["429", "500", "cut", "html"])
def test_what_may_pass_is_tried_again(call, fault):
    (reply,), double, _, recorded = call(Script(faults={"*": [fault, fault]}), [request()])
    assert reply.answered
    assert reply.attempts == 3
    assert sum(double.requests.values()) == 3
    assert recorded.in_flight == {}


@pytest.mark.parametrize("fault", ["400", "long"])
def test_what_will_not_pass_is_not_tried_again_and_does_not_stop_the_rest(call, fault):
    replies, double, caller, _ = call(Script(faults={"bad": [f"{fault}:always"]}), [request("bad"), request("good")])
    assert [r.answered for r in replies] == [False, True]
    assert sum(double.requests.values()) == 2
    assert caller.stopped_by is None


def test_endless_429_is_given_up_after_three_calls(call):
    script = Script(faults={"*": ["429:always"]})
    replies, double, caller, _ = call(script, [request(str(i)) for i in range(8)], attempts=4)
    assert sum(double.requests.values()) == 12
    assert [r.error_class for r in replies] == ["rate-limited"] * 3 + ["stopped"] * 5
    assert caller.stopped_by[0] == "rate-limited"
    assert "3 calls in a row" in caller.stopped_by[1]


def test_one_call_that_fails_for_good_does_not_stop_the_rest(call):
    script = Script(faults={"bad": ["500:always"]})
    replies, _, caller, _ = call(script, [request("bad"), *(request(str(i)) for i in range(5))], attempts=2)
    assert [r.answered for r in replies] == [False] + [True] * 5
    assert caller.stopped_by is None


def test_the_cap_is_never_passed_and_counts_what_may_have_been_charged(call):
    at_most = Endpoint("m", price=(1.0, 1.0)).at_most(request())
    cap = Cap(at_most * 2.5, None)
    script = Script(faults={"0": ["cut"]})
    replies, double, caller, recorded = call(script, [request(str(i)) for i in range(40)], cap, attempts=1)
    assert replies[0].error_class == "cut-stream"
    assert recorded.charged == pytest.approx(at_most)
    assert caller.spent()["usd"] <= cap.max_usd
    kinds = [r.error_class for r in replies[1:]]
    assert kinds[-1] == "cap-reached"
    assert kinds == sorted(kinds, key=lambda kind: kind is not None)  # first answers, then the cap
    assert sum(double.requests.values()) == 1 + kinds.count(None)


def test_what_an_earlier_run_spent_counts(call, tmp_path):
    call(Script(), [request()])
    replies, *_ = call(Script(), [request("other")], Cap(1e-9, None))
    assert replies[0].error_class == "cap-reached"


def test_another_model_stops_the_run_and_the_answer_is_kept(call):
    replies, double, caller, recorded = call(Script(served="other"), [request(), request("b")])
    assert replies[0].answered
    assert replies[0].error_class == "other-model"
    assert replies[1].error_class == "stopped"
    assert caller.stopped_by[0] == "other-model"
    assert recorded.replies[replies[0].key].model_served == "other"
    assert sum(double.requests.values()) == 1


@pytest.mark.parametrize(
    ("asked", "served", "fits"),
    [
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("openai/gpt-4o", "gpt-4o-mini", False),
        ("openai/gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("openai/gpt-4o-2024-08-06", "gpt-4o", False),
        ("openrouter/meta/llama-3", "meta/llama-3", True),
        ("openai/m", "", False),
    ],
)
def test_a_dated_snapshot_is_the_model_asked_for_and_another_size_is_not(asked, served, fits):
    assert Endpoint(asked).is_served_by(served) is fits


def test_names_that_the_study_accepts_are_the_only_ones():
    endpoint = Endpoint("openai/m", serves=("local.gguf",))
    assert endpoint.is_served_by("local.gguf")
    assert not endpoint.is_served_by("m")


def test_without_a_price_nothing_has_a_cost(call):
    (reply,), *_ = call(Script(), [request()], price=None)
    assert reply.usd is None


def test_tokens_that_are_not_counted_leave_the_price_unknown_and_the_cap_at_the_most(call):
    (reply,), _, caller, _ = call(Script(usage=False), [request()])
    assert reply.usd is None
    assert caller.spent()["usd"] == pytest.approx(Endpoint("m", price=(1.0, 1.0)).at_most(request()))


def test_many_at_once_are_each_sent_once(call):
    requests = [request(str(i)) for i in range(30)]
    replies, double, _, recorded = call(Script(), requests, threads=8)
    assert all(r.answered for r in replies)
    assert max(double.requests.values()) == 1
    assert set(recorded.replies) == {r.key for r in requests}
