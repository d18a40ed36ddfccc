"""The policy of the scripted model: what is declared in YAML, as frozen values.

A policy names tasks (a regex on the user's instruction), then lists rules. Rules are
tried in order; the first that applies plays its turns. A rule plays at most once in a
conversation: when its turns are used up, or a value it needs cannot be cut out, or a tool
it calls is not offered, the next rule that applies takes over, and at the end the default.
A rule that could not begin may still apply later, when more has been delivered.
That is what makes a broken delivery cost reward: the rule that knows the answer never applies.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Literal

from msgspec import Meta, Struct

Names = str | list[str]
Probability = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=86400)]
Source = Literal["system", "instruction", "tool_result", "text"]
FaultKind = Literal["unauthorized", "rate-limited", "stall", "cut-stream", "malformed-tool-call"]

BUILT_IN_VALUES = frozenset({"task", "arm", "attempt", "instruction"})
PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


class Cut(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"source": "from"}):
    """A value cut out of what the model was given.

    Attributes:
        source: `system`, `instruction`, `tool_result`, or `text` for all three.
        pattern: a regex; its first group is the value, without a group the whole match.
        tool: with `tool_result`, only results of this tool.
        which: take the first or the last match.
        default: the value when nothing matches; without it the rule is given up.
    """

    source: Source
    pattern: str
    tool: str | None = None
    which: Literal["first", "last"] = "first"
    default: str | None = None


class Call(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool call; `{{name}}` in its arguments is replaced by a value."""

    tool: str
    args: dict[str, object] = {}


class Turn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer: text, tool calls, or both. A turn without a call ends the agent's loop."""

    say: str = ""
    call: Call | list[Call] | None = None
    cut: dict[str, Cut] = {}

    @property
    def calls(self) -> list[Call]:
        """The calls as a list, empty when the turn only says something."""
        if self.call is None:
            return []
        return self.call if isinstance(self.call, list) else [self.call]


class Delivered(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must have reached the model for a rule to apply; all that is given must hold.

    Attributes:
        tools: names (globs) that must all be offered.
        without_tools: names (globs) none of which may be offered.
        system, tool_result, text: a regex that must be found there (`text`: anywhere but
            in the model's own words).
    """

    tools: list[str] = []
    without_tools: list[str] = []
    system: str | None = None
    tool_result: str | None = None
    text: str | None = None


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to play, for which task and arm, once what was delivered.

    Attributes:
        success: the chance that the rule applies in an attempt at all, drawn from the
            policy's seed, task, arm, rule name and attempt number: k attempts differ, and
            always in the same way.
    """

    name: str
    task: Names = "*"
    arm: Names = "*"
    delivered: Delivered = Delivered()
    success: Probability = 1.0
    turns: Annotated[list[Turn], Meta(min_length=1)]


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure to inject.

    Attributes:
        request: which requests of the conversation: `main`, `title` or `any`.
        attempts: 1-based attempt numbers; empty is every attempt.
        turn: 0-based turn it strikes in; null is any.
        times: how often in one conversation; null is without end.
        retry_after: seconds in the Retry-After header (rate-limited).
        seconds: how long a stall lasts; the answer follows it.
        chunks: stream events that still go out before the cut (cut-stream).
    """

    kind: FaultKind
    task: Names = "*"
    arm: Names = "*"
    request: Literal["main", "title", "any"] = "main"
    attempts: list[Annotated[int, Meta(ge=1)]] = []
    turn: Annotated[int, Meta(ge=0)] | None = None
    times: Annotated[int, Meta(ge=1)] | None = 1
    retry_after: Seconds = 1.0
    seconds: Seconds = 3600.0
    chunks: Annotated[int, Meta(ge=0)] = 1


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole policy file."""

    version: Literal[1]
    seed: int = 0
    title: str = "Scripted session"
    tasks: dict[str, str]
    rules: list[Rule] = []
    faults: list[Fault] = []
    default: Turn = Turn(say="I have no rule for this request.")

    def task_of(self, instruction: str) -> str | None:
        """The first declared task whose regex is found in the instruction."""
        return next((name for name, pattern in self.tasks.items() if regex(pattern).search(instruction)), None)


@cache
def regex(pattern: str) -> re.Pattern[str]:
    """A policy regex, compiled once; `^` and `$` match at line ends."""
    return re.compile(pattern, re.MULTILINE)


def names_match(wanted: Names, name: str | None) -> bool:
    """Whether a name fits a glob or one of a list of globs; no name fits only `*`."""
    patterns: Iterable[str] = [wanted] if isinstance(wanted, str) else wanted
    return any(pattern == "*" or (name is not None and fnmatchcase(name, pattern)) for pattern in patterns)
