"""Grade answers: find the judge's replies in the book, and ask for those that are missing."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from akm_harbor.memory.answer import failures
from akm_harbor.memory.answer.book import Book, Progress
from akm_harbor.memory.answer.calls import JUDGE, Reply, Request
from akm_harbor.memory.answer.scoring import Ask, Asked, Score, Scorer, Task
from akm_harbor.memory.answer.spec import JudgeModel
from akm_harbor.memory.context import count


@dataclass(frozen=True, slots=True)
class Graded:
    """One grading of one answer.

    Attributes:
        score: what it is worth; None: the judge did not answer.
        replies: the judge's, in the order asked.
        failure: the judge's call that failed.
        settings: of the judge's requests.
    """

    score: Score | None
    replies: tuple[Reply, ...] = ()
    failure: Reply | None = None


class _MissingError(Exception):
    """A judge's reply is not in the book yet."""

    def __init__(self, request: Request) -> None:
        super().__init__(request.key)
        self.request = request


class _FailedError(Exception):
    """A judge's call failed, or another model answered."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.error_class)
        self.reply = reply


@dataclass(frozen=True, slots=True)
class ToGrade:
    """One grading to be done.

    Attributes:
        key: what the caller knows it by.
        task: the question.
        answer: the answer.
        repeat: which grading of it.
        role: `judge`, or `probe` for made-up answers.
    """

    key: Hashable
    task: Task
    answer: str
    repeat: int = 0
    role: str = JUDGE


class Grader:
    """A scorer with its judge."""

    def __init__(self, scorer: Scorer, judge: JudgeModel | None, book: Book) -> None:
        self.scorer = scorer
        self._judge = judge
        self._book = book

    @property
    def settings(self) -> dict[str, Any]:
        """Of a judge's request: what the scorer fixes, and what the study says otherwise."""
        return judge_settings(self._judge, self.scorer.fixed)

    def request(self, asked: Asked, repeat: int, role: str) -> Request:
        """A question to the judge as a call."""
        assert self._judge is not None
        text = "".join(content for _, content in asked.messages)
        settings = judge_settings(self._judge, dict(asked.settings), repeat)
        return Request(
            role,
            self._judge.api_base,
            self._judge.model,
            asked.messages,
            tuple(sorted(settings.items())),
            repeat,
            count(text) + 8,
        )

    def grade(self, one: ToGrade) -> Graded | Request:
        """The grading, or the call that it still needs."""
        replies: list[Reply] = []
        try:
            score = self.scorer.score(one.task, one.answer, self._ask(one, replies))
        except _MissingError as missing:
            return missing.request
        except _FailedError as failed:
            return Graded(None, tuple(replies), failed.reply)
        return Graded(score, tuple(replies))

    def _ask(self, one: ToGrade, replies: list[Reply]) -> Ask:
        def ask(asked: Asked) -> str:
            request = self.request(asked, one.repeat, one.role)
            reply = self._book.find(request.key)
            if reply is None:
                raise _MissingError(request)
            if not reply.answered or not self._book.served_as_asked(reply):
                raise _FailedError(reply)
            replies.append(reply)
            return reply.text or ""

        return ask

    def grade_all(self, todo: Iterable[ToGrade], progress: Progress | None = None) -> dict[Hashable, Graded]:
        """Grade everything, asking the judge in rounds: some scorers ask by what they heard before."""
        graded: dict[Hashable, Graded] = {}
        waiting = list(todo)
        whole = len(waiting)
        while waiting:
            needed: list[Request] = []
            left: list[ToGrade] = []
            for one in waiting:
                found = self.grade(one)
                if isinstance(found, Request):
                    needed.append(found)
                    left.append(one)
                else:
                    graded[one.key] = found
            if needed:
                self._book.make(needed, len(needed), _shifted(progress, whole - len(left), whole))
            waiting = left
        return graded


def _shifted(progress: Progress | None, done: int, whole: int) -> Progress | None:
    if progress is None:
        return None
    tell: Callable[[int, int], None] = progress
    return lambda more, _total: tell(min(done + more, whole), whole)


def judge_settings(judge: JudgeModel | None, fixed: Mapping[str, Any], repeat: int | None = None) -> dict[str, Any]:
    """Settings of a judge's request."""
    if judge is None:
        return {}
    settings = {**fixed, **judge.extra}
    if judge.temperature is None:
        settings.pop("temperature", None)
    else:
        settings["temperature"] = judge.temperature
    if judge.max_tokens is not None:
        settings["max_tokens"] = judge.max_tokens
    if judge.seed is not None:
        settings["seed"] = judge.seed + (repeat or 0)
    return settings


def failure_class(reply: Reply) -> str:
    """Why a judge's call yields no verdict."""
    return reply.error_class or failures.OTHER_MODEL
