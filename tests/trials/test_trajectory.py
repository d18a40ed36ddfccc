import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akm_harbor.trials.trajectory import _read, _straightened, parse_trajectory, text_of
from akm_harbor.trials.values import InvalidJsonError, parse_json


def step(number: int, source: str = "agent", **fields: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "timestamp": "2026-01-01T00:00:01Z", "message": "m", **fields}


def calls(*names: str, content: Any = "out") -> dict[str, Any]:
    return {
        "tool_calls": [
            {"tool_call_id": f"c{i}", "function_name": n, "arguments": {"a": i}} for i, n in enumerate(names)
        ],
        "observation": {"results": [{"source_call_id": f"c{i}", "content": content} for i, _ in enumerate(names)]},
    }


def metrics(prompt: int | None = 10, completion: int = 2, cached: int = 1) -> dict[str, Any]:
    return {"metrics": {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached}}


def atif(*steps: dict[str, Any], version: str = "ATIF-v1.7", **fields: Any) -> bytes:
    return json.dumps(
        {"schema_version": version, "session_id": "s", "agent": {}, "steps": list(steps), **fields}
    ).encode()


@pytest.mark.parametrize("version", [f"ATIF-v1.{n}" for n in range(9)])
def test_every_version(version: str) -> None:
    got = parse_trajectory(atif(step(1, "user"), step(2, **calls("bash"), **metrics()), version=version))
    assert (got.version, got.n_steps) == (version, 1)
    assert (got.step_ids, got.call_ids, got.tools, got.outputs) == ([2], ["c0"], ["bash"], ["out"])
    assert got.arguments == [{"a": 0}]
    assert got.times == ["2026-01-01T00:00:01Z"]
    assert (got.first_prompt_tokens, got.tokens) == (10, (10, 1, 2))


def test_copied_context_is_not_counted_again() -> None:
    copied = step(1, is_copied_context=True, **calls("bash"), **metrics(1000))
    got = parse_trajectory(atif(copied, step(2, **calls("read"), **metrics())))
    assert (got.n_steps, got.tools, got.tokens) == (1, ["read"], (10, 1, 2))


def test_no_metrics_are_unknown_tokens() -> None:
    assert parse_trajectory(atif(step(1))).tokens is None
    assert parse_trajectory(atif(step(1, **metrics(0, 0, 0)))).tokens is None


def test_outputs_find_their_calls_by_id() -> None:
    both = calls("a", "b")
    both["observation"]["results"].reverse()
    both["observation"]["results"][0]["content"] = "of b"
    got = parse_trajectory(atif(step(1, **both)))
    assert (got.tools, got.outputs) == (["a", "b"], ["out", "of b"])


def test_an_observation_without_id_belongs_to_the_only_call() -> None:
    one = calls("a")
    del one["observation"]["results"][0]["source_call_id"]
    assert parse_trajectory(atif(step(1, **one))).outputs == ["out"]


def test_a_call_without_observation_has_no_output() -> None:
    one = calls("a")
    del one["observation"]
    assert parse_trajectory(atif(step(1, **one))).outputs == [None]


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": "x"}, {"type": "image", "source": {}}, {"type": "text", "text": "y"}]
    assert parse_trajectory(atif(step(1, **calls("a", content=parts)))).outputs == ["x\ny"]
    assert (text_of(None), text_of({"text": "x"}), text_of([])) == (None, None, "")


def test_fields_of_other_types_cost_only_themselves() -> None:
    data = atif(
        step(1, tool_calls={"a": 1}),
        step(2, observation="text", tool_calls=calls("bash")["tool_calls"]),
        {"source": "agent", "metrics": 3},
        "not a step",  # type: ignore[arg-type]
        step(3, **calls("read"), **metrics()),
    )
    got = parse_trajectory(data)
    assert (got.n_steps, got.tools) == (4, ["bash", "read"])


def test_empty_and_absent_steps() -> None:
    assert parse_trajectory(atif()).tools == []
    assert parse_trajectory(b'{"steps": null}').n_steps == 0


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'{"steps": [', b"\x00\x00"])
def test_what_is_no_trajectory_is_a_typed_error(data: bytes) -> None:
    with pytest.raises(InvalidJsonError):
        parse_trajectory(data)


def test_lone_surrogates_and_nan() -> None:
    data = (
        b'{"steps": [{"source": "agent", "metrics": {"prompt_tokens": NaN},'
        b' "tool_calls": [{"function_name": "b", "arguments": {"t": "\\ud83d"}}]}]}'
    )
    assert parse_trajectory(data).arguments == [{"t": "\ufffd"}]


ODD = st.sampled_from([None, True, 0, 7, -1.5, 2.0, 2**63, 2**70, "", "agent", "c0", [], [None], {}, {"a": 1}, [{}, 3]])


def often(value: Any, *others: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(value), st.just(value), st.sampled_from(others) if others else ODD, ODD)


CALL = st.fixed_dictionaries(
    {},
    optional={
        "tool_call_id": often("c0", "c1"),
        "function_name": often("bash", "akm_show"),
        "arguments": often({"a": [1, "x"]}, "text", 3),
    },
)
RESULT = st.fixed_dictionaries(
    {}, optional={"source_call_id": often("c0", "c1", None), "content": often("out", [{"text": "x"}, {"text": 3}])}
)
STEP = st.fixed_dictionaries(
    {"source": often("agent", "user")},
    optional={
        "step_id": often(1),
        "timestamp": often("2026-01-01T00:00:01Z"),
        "is_copied_context": ODD,
        "metrics": st.one_of(
            ODD, st.fixed_dictionaries({"prompt_tokens": often(5), "cached_tokens": ODD, "completion_tokens": often(2)})
        ),
        "tool_calls": st.one_of(ODD, st.lists(st.one_of(CALL, CALL, CALL, ODD), max_size=3)),
        "observation": st.one_of(
            ODD,
            st.fixed_dictionaries({"results": st.one_of(ODD, st.lists(st.one_of(RESULT, RESULT, ODD), max_size=3))}),
        ),
    },
)


@given(st.fixed_dictionaries({"schema_version": ODD, "steps": st.one_of(ODD, st.lists(st.one_of(STEP, STEP, ODD)))}))
def test_both_ways_of_reading_give_the_same(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    assert parse_trajectory(data) == _read(_straightened(parse_json(data)))


def test_of_a_doubled_key_the_first_counts() -> None:
    data = b'{"steps": [{"source": "agent", "tool_calls": [{"function_name": "a", "function_name": "b"}]}]}'
    assert parse_trajectory(data).tools == ["a"]
