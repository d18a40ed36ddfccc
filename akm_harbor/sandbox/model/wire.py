"""The OpenAI chat-completions protocol: a request as a value, an answer as JSON or stream events."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Kind = Literal["main", "title", "compaction"]

CHARS_PER_TOKEN = 4
"""The scripted tokenizer: rough, but the same on every arm and machine."""

_TITLE = re.compile(r"title generator|thread title|generate a (?:brief |short )?title", re.IGNORECASE)
_COMPACTION = re.compile(r"summarization agent|summarizing conversations", re.IGNORECASE)
_PIECE = 48


class BadRequestError(Exception):
    """The body is not a chat-completions request."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool call of this conversation gave back."""

    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request to the model.

    Attributes:
        answers: how many assistant messages the conversation already holds.
        prompt_tokens: size of messages and tools in scripted tokens.
        call_ids: ids of the tool calls in the history, oldest first.
    """

    model: str
    stream: bool
    usage_in_stream: bool
    kind: Kind
    system: tuple[str, ...]
    user: tuple[str, ...]
    tool_results: tuple[ToolResult, ...]
    tools: tuple[str, ...]
    answers: int
    prompt_tokens: int
    call_ids: tuple[str, ...]

    @property
    def system_text(self) -> str:
        """All system parts as one text."""
        return "\n".join(self.system)

    @property
    def instruction(self) -> str:
        """What the user asked first; a title request wraps it in messages of its own."""
        return "\n".join(self.user) if self.kind == "title" else next(iter(self.user), "")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model makes; `arguments` is the JSON text as it goes over the wire."""

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, and where in the policy it came from."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    rule: str | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange; `cached` is the part of the prompt seen in the request before."""

    prompt: int
    cached: int
    completion: int

    def payload(self) -> Json:
        """The `usage` object of the protocol."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


def parse_request(body: bytes) -> ChatRequest:
    """Read the body of a chat-completions request.

    Raises:
        BadRequestError: not JSON, or not the shape of such a request.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from None
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise BadRequestError("`messages` must be a list of at least one message")
    raw_tools = data.get("tools") or []
    if not isinstance(raw_tools, list):
        raise BadRequestError("`tools` must be a list")
    tools = tuple(name for name in (_tool_name(tool) for tool in raw_tools) if name)
    system = tuple(_text(m) for m in messages if m.get("role") in {"system", "developer"})
    user = tuple(_text(m) for m in messages if m.get("role") == "user")
    options = data.get("stream_options")
    called = _called(messages)
    return ChatRequest(
        model=str(data.get("model", "")),
        stream=data.get("stream") is True,
        usage_in_stream=isinstance(options, dict) and options.get("include_usage") is True,
        kind=_kind(tools, system, user),
        system=system,
        user=user,
        tool_results=tuple(
            ToolResult(called.get(str(m.get("tool_call_id")), ""), _text(m))
            for m in messages
            if m.get("role") == "tool"
        ),
        tools=tools,
        answers=sum(m.get("role") == "assistant" for m in messages),
        prompt_tokens=_tokens(json.dumps([messages, raw_tools], ensure_ascii=False)),
        call_ids=tuple(called),
    )


def usage_of(request: ChatRequest, reply: Reply, seen_before: int) -> Usage:
    """Count the tokens of an exchange; `seen_before` is the prompt of the conversation's last request."""
    said = reply.text + "".join(call.tool + call.arguments for call in reply.calls)
    return Usage(request.prompt_tokens, min(seen_before, request.prompt_tokens), _tokens(said))


def completion(model: str, reply: Reply, usage: Usage) -> Json:
    """The answer to a request that does not stream."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call_payload(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    return {**_head("chat.completion", model, reply), "choices": [choice], "usage": usage.payload()}


def stream_events(model: str, reply: Reply, usage: Usage, *, with_usage: bool) -> Iterator[bytes]:
    """The answer as server-sent events, ending with `[DONE]`."""
    head = _head("chat.completion.chunk", model, reply)

    def event(delta: Json, finish: str | None = None) -> bytes:
        return _sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield event({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield event({"content": piece})
    for index, call in enumerate(reply.calls):
        start = {**_call_payload(call), "index": index}
        start["function"] = {"name": call.tool, "arguments": ""}
        yield event({"tool_calls": [start]})
        for piece in _pieces(call.arguments):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, _finish(reply))
    if with_usage:
        yield _sse({**head, "choices": [], "usage": usage.payload()})
    yield b"data: [DONE]\n\n"


def error_payload(message: str, kind: str, code: str) -> Json:
    """An error as the protocol shapes it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _kind(tools: tuple[str, ...], system: tuple[str, ...], user: tuple[str, ...]) -> Kind:
    """Title and compaction requests offer no tools and say what they are in the system prompt."""
    if tools:
        return "main"
    prompt = "\n".join(system) or "\n".join(user)
    if _TITLE.search(prompt):
        return "title"
    return "compaction" if _COMPACTION.search(prompt) else "main"


def _tool_name(tool: object) -> str | None:
    function = tool.get("function") if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else None


def _called(messages: list[Json]) -> dict[str, str]:
    """Tool names by call id, from the assistant messages of the history."""
    found: dict[str, str] = {}
    for message in messages:
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            name = _tool_name(call)
            if name and isinstance(call.get("id"), str):
                found[call["id"]] = name
    return found


def _text(message: Json) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _tokens(text: str) -> int:
    return max(1, -(-len(text) // CHARS_PER_TOKEN))


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _call_payload(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}


def _head(kind: str, model: str, reply: Reply) -> Json:
    name = f"chatcmpl-{reply.rule or 'default'}-{reply.turn or 0}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def _sse(payload: Json) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"
