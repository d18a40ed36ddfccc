"""What holds a run back."""

import threading
import time

import pytest

from akm_harbor.memory.answer import limits
from akm_harbor.memory.answer.limits import Cap, Rate


def timed(rate, sizes):
    began = time.monotonic()
    for size in sizes:
        rate.wait(size, threading.Event())
    return time.monotonic() - began


def test_requests_and_tokens_wait_for_the_window(monkeypatch):
    monkeypatch.setattr(limits, "_MINUTE", 0.2)
    assert timed(Rate(None, None), [9] * 50) < 0.1
    assert timed(Rate(2, None), [1] * 5) >= 0.4
    assert timed(Rate(None, 10), [6, 6, 6]) >= 0.4
    assert timed(Rate(None, 10), [25]) < 0.1  # larger than the limit: alone in its window, not for ever


def test_a_stopped_run_does_not_wait(monkeypatch):
    stop = threading.Event()
    stop.set()
    Rate(1, None).wait(1, stop)


def test_money_is_set_aside_before_it_is_spent():
    cap = Cap(1.0, None)
    assert cap.reserve(0.6)
    assert not cap.reserve(0.6)
    cap.settle(0.6, 0.1)
    assert cap.reserve(0.6)
    assert cap.spent == pytest.approx(0.1)
    assert cap.calls == 2


def test_calls_can_be_capped_where_no_price_is_known():
    cap = Cap(None, 2)
    assert [cap.reserve(None) for _ in range(3)] == [True, True, False]
    assert Cap(0.0, None).reserve(None)
    assert not Cap(0.0, None).reserve(0.01)
