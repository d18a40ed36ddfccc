"""The token counter names itself, and fetches nothing."""

import socket

import pytest

from akm_harbor.memory import tokens


@pytest.fixture
def fresh():
    tokens.counter.cache_clear()
    yield
    tokens.counter.cache_clear()


def test_the_shipped_vocabulary_counts_offline(fresh, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the counter went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    name, count = tokens.counter()
    assert name == "cl100k_base"
    assert count("hello world") == 2
    assert count("<|endoftext|>") > 1  # text, not a control token
    assert count("") == 0


def test_without_a_vocabulary_the_estimate_says_so(fresh, monkeypatch):
    monkeypatch.setattr(tokens, "_vocabulary_folder", lambda: None)
    name, count = tokens.counter()
    assert name == "chars/4"
    assert count("12345") == 2
