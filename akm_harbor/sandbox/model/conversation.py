"""Who is speaking and what comes next: conversations, attempts, and the choice of a turn."""

import hashlib
import json
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from akm_harbor.sandbox.model.policy import PLACEHOLDER, Cut, Delivered, Policy, Rule, Turn, names_match, regex
from akm_harbor.sandbox.model.wire import ChatRequest, Reply, ToolCall

_MAX_CONVERSATIONS = 4096

type Attempt = tuple[str | None, str | None, int]
"""Task, arm and 1-based number of an attempt."""


@dataclass(slots=True)
class Conversation:
    """One attempt of a task by an arm, as the model sees it.

    Attributes:
        attempt: 1-based; the n-th distinct conversation of this task and arm, counting those taken before.
        base: assistant messages the first request already held (a resumed session).
        replies: the answers given so far; a repeated request gets the same answer again.
        seen_system: every system part delivered so far (an injection may come only once).
        faults: how often each fault of the policy has struck.
        lock: one request of a conversation at a time.
    """

    id: str
    task: str | None
    arm: str | None
    attempt: int
    base: int | None = None
    replies: list[Reply] = field(default_factory=list)
    rule: Rule | None = None
    position: int = 0
    played: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    seen_system: dict[str, None] = field(default_factory=dict)
    last_prompt_tokens: int = 0
    faults: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Conversations:
    """All conversations of a server; safe to use from many threads.

    A conversation is told by its session header where the client sends one (opencode
    does), else by the ids of our own tool calls in its history.
    """

    def __init__(self, policy: Policy, taken: Iterable[Attempt] = ()) -> None:
        """Start with no conversation.

        Args:
            policy: what is played.
            taken: attempts that an earlier server has played to the end; new conversations get the others.
        """
        self.policy = policy
        self._lock = threading.Lock()
        self._by_key: OrderedDict[str, Conversation] = OrderedDict()
        self._attempts: defaultdict[tuple[str | None, str | None], set[int]] = defaultdict(set)
        for task, arm, attempt in taken:
            self._attempts[task, arm].add(attempt)
        self._unanswered: dict[tuple[str | None, str | None], list[str]] = {}

    def open(self, request: ChatRequest, arm: str | None, session: str | None, parent: str | None) -> Conversation:
        """The conversation a request belongs to; a new one counts as the next attempt.

        Args:
            request: the request.
            arm: the arm named in the URL.
            session: the client's session id, if it sends one.
            parent: the session this one was started from (a subagent is no attempt).
        """
        task = None if parent else self.policy.task_of(request.instruction)
        who = (task, arm)
        with self._lock:
            key = f"{arm}/{session}" if session else self._key_without_session(request, who)
            found = self._by_key.get(key) if key else None
            if found is None:
                used = self._attempts[who]
                attempt = next(number for number in count(1) if number not in used)
                used.add(attempt)
                identity = hashlib.sha256(f"{task}/{arm}/{attempt}".encode()).hexdigest()[:10]
                found = Conversation(identity, task, arm, attempt)
                self._by_key[f"{arm}/{session}" if session else identity] = found
                if len(self._by_key) > _MAX_CONVERSATIONS:
                    self._by_key.popitem(last=False)
            return found

    def failed(self, conversation: Conversation) -> None:
        """A fault ate the first answer: a client without session ids will ask again with nothing to tell it by."""
        with self._lock:
            if conversation.id in self._by_key and not conversation.replies:
                self._unanswered.setdefault((conversation.task, conversation.arm), []).append(conversation.id)

    def reply(self, conversation: Conversation, request: ChatRequest, *, malformed: bool = False) -> Reply:
        """The next answer. Call it with the conversation's lock held.

        A malformed call (its arguments cut short) does not use its turn up: like a real
        model, the script makes the call again when it is told that it made no sense.
        """
        if request.kind != "main":
            return Reply(self.policy.title if request.kind == "title" else "A scripted session; nothing to carry over.")
        if conversation.base is None:
            conversation.base = request.answers
        conversation.seen_system.update(dict.fromkeys(request.system))
        number = request.answers - conversation.base
        if number < len(conversation.replies):
            return conversation.replies[number]
        reply = self._next(conversation, request)
        if malformed and reply.calls:
            conversation.position -= 1
            broken = tuple(replace(call, arguments=call.arguments[: len(call.arguments) // 2]) for call in reply.calls)
            reply = replace(reply, calls=broken)
        conversation.replies.append(reply)
        return reply

    def _key_without_session(self, request: ChatRequest, who: tuple[str | None, str | None]) -> str | None:
        if request.call_ids:
            return request.call_ids[-1].removeprefix("call_").partition("_")[0]
        waiting = self._unanswered.get(who)
        return waiting.pop(0) if waiting else None

    def _next(self, conversation: Conversation, request: ChatRequest) -> Reply:
        impossible: set[str] = set()
        while True:
            rule = conversation.rule or self._choose(conversation, request, impossible)
            if rule is None:
                conversation.values = _built_in_values(conversation, request)
                return _speak(self.policy.default, conversation, None, 0)
            if conversation.rule is None:
                conversation.rule, conversation.position = rule, 0
                conversation.values = _built_in_values(conversation, request)
            if conversation.position < len(rule.turns):
                turn, position = rule.turns[conversation.position], conversation.position
                if _possible(turn, request) and _cut(turn, conversation, request):
                    conversation.position += 1
                    return _speak(turn, conversation, rule, position)
            # A rule that could not even begin may still apply once more has been delivered.
            (conversation.played if conversation.position else impossible).add(rule.name)
            conversation.rule = None

    def _choose(self, conversation: Conversation, request: ChatRequest, impossible: set[str]) -> Rule | None:
        for rule in self.policy.rules:
            if (
                rule.name not in conversation.played
                and rule.name not in impossible
                and names_match(rule.task, conversation.task)
                and names_match(rule.arm, conversation.arm)
                and _was_delivered(rule.delivered, conversation, request)
                and drawn(self.policy.seed, rule, conversation)
            ):
                return rule
        return None


def drawn(seed: int, rule: Rule, conversation: Conversation) -> bool:
    """Whether the attempt is one of those in which the rule applies: a fixed draw, no state."""
    name = f"{seed}/{conversation.task}/{conversation.arm}/{rule.name}/{conversation.attempt}"
    draw = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64
    return draw < rule.success


def _was_delivered(wanted: Delivered, conversation: Conversation, request: ChatRequest) -> bool:
    texts = {
        "system": list(conversation.seen_system),
        "tool_result": [result.text for result in request.tool_results],
    }
    texts["text"] = [*texts["system"], *request.user, *texts["tool_result"]]
    return (
        all(any(names_match(glob, tool) for tool in request.tools) for glob in wanted.tools)
        and not any(names_match(wanted.without_tools, tool) for tool in request.tools)
        and all(
            pattern is None or any(regex(pattern).search(text) for text in texts[where])
            for where, pattern in (
                ("system", wanted.system),
                ("tool_result", wanted.tool_result),
                ("text", wanted.text),
            )
        )
    )


def _built_in_values(conversation: Conversation, request: ChatRequest) -> dict[str, str]:
    return {
        "task": conversation.task or "",
        "arm": conversation.arm or "",
        "attempt": str(conversation.attempt),
        "instruction": request.instruction,
    }


def _possible(turn: Turn, request: ChatRequest) -> bool:
    """A model can only call what it is offered."""
    return all(call.tool in request.tools for call in turn.calls)


def _cut(turn: Turn, conversation: Conversation, request: ChatRequest) -> bool:
    """Cut the turn's values out of what was delivered; False when one is not there."""
    for name, cut in turn.cut.items():
        found = [value for text in _texts(cut, conversation, request) for value in _matches(cut, text)]
        value = found[0 if cut.which == "first" else -1] if found else cut.default
        if value is None:
            return False
        conversation.values[name] = value
    return True


def _matches(cut: Cut, text: str) -> Iterator[str]:
    return (match[match.re.groups] or "" for match in regex(cut.pattern).finditer(text))


def _texts(cut: Cut, conversation: Conversation, request: ChatRequest) -> Iterator[str]:
    if cut.source in {"system", "text"}:
        yield from conversation.seen_system
    if cut.source in {"instruction", "text"}:
        yield from request.user
    if cut.source in {"tool_result", "text"}:
        yield from (result.text for result in request.tool_results if cut.tool in {None, result.tool})


def _speak(turn: Turn, conversation: Conversation, rule: Rule | None, position: int) -> Reply:
    number = len(conversation.replies)
    values = conversation.values
    calls = tuple(
        ToolCall(
            f"call_{conversation.id}_{number}_{index}",
            call.tool,
            json.dumps(_filled(call.args, values), ensure_ascii=False),
        )
        for index, call in enumerate(turn.calls)
    )
    return Reply(str(_filled(turn.say, values)), calls, rule.name if rule else None, position)


def _filled(value: object, values: dict[str, str]) -> object:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: values.get(match[1], ""), value)
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    return value
