"""Rules about what instruction, workspace and bundle say, and must not say."""

import re
from collections.abc import Iterator

from akm_harbor.corpus.lint import Corpus, Finding, rule
from akm_harbor.corpus.mutate import tokens
from akm_harbor.corpus.task import CorpusTask

_AKM_HINT = re.compile(
    r"\b(akm|skills?|stash(?:es)?|knowledge[ -]base|memor(?:y|ies) (?:layer|tool|store|bundle)|asset library"
    r"|search (?:for|the) (?:guidance|notes|assets))\b",
    re.IGNORECASE,
)
_RULE_HINT = re.compile(
    r"\b(conventions?|polic(?:y|ies)|house[ -](?:rules?|style)|guidelines?|standards?|best practices?|complian(?:ce|t)"
    r"|our (?:way|rules?|usual|naming)|minimum allowed|as required by|approved|runbook|playbook|handbook)\b",
    re.IGNORECASE,
)


def _agent_texts(task: CorpusTask) -> Iterator[tuple[str, str]]:
    """What both arms can read: the instruction and the workspace, as (place, text)."""
    yield "instruction.md", task.instruction
    for file in task.workspace_files():
        yield file.relative_to(task.path).as_posix(), file.read_text(encoding="utf-8", errors="replace")


def visible_text(task: CorpusTask) -> str:
    """Instruction and workspace as one text."""
    return "\n".join(text for _, text in _agent_texts(task))


def _holds(text: str, token: str) -> bool:
    """Whether a text holds a token on its own, not as part of a longer word."""
    return re.search(rf"(?<![\w-]){re.escape(token)}(?![\w-])", text) is not None


@rule(
    "instruction-empty",
    "The instruction is all that both arms are told.",
    "Write instruction.md: what to produce, where, and in which form.",
)
def instruction_empty(corpus: Corpus) -> Iterator[Finding]:
    """There is an instruction, and it names a file under the working folder."""
    for task in corpus.tasks:
        if "/app" not in task.instruction:
            yield Finding(
                "instruction-empty", task.path / "instruction.md", "it does not say which file under /app to leave"
            )


@rule(
    "answer-leaks",
    "What only the bundle should tell must not stand where the control arm reads it.",
    "Remove it from instruction and workspace, or from [metadata].withheld.",
)
def answer_leaks(corpus: Corpus) -> Iterator[Finding]:
    """Withheld tokens stand in no text that both arms read."""
    for task in corpus.tasks:
        for place, text in _agent_texts(task):
            for token in task.texts("withheld"):
                if _holds(text, token):
                    yield Finding(
                        "answer-leaks", task.path / place, f"it holds `{token}`, which only the bundle should tell"
                    )


@rule(
    "withheld-not-in-bundle",
    "A token that nobody is told cannot be got right but by luck.",
    "Explain it in the bundle, or list in [metadata.derived] how it follows from what is told.",
)
def withheld_not_in_bundle(corpus: Corpus) -> Iterator[Finding]:
    """Each withheld token is in the bundle, or said to be derived."""
    for task in corpus.tasks:
        text = corpus.bundle_text(task)
        derived = task.metadata.get("derived", {})
        for token in task.texts("withheld"):
            if not _holds(text, token) and token not in derived:
                yield Finding(
                    "withheld-not-in-bundle", task.path / "task.toml", f"`{token}` stands nowhere in the bundle"
                )


@rule(
    "akm-hint",
    "Only the treatment can act on it, so it tests who reads the prompt, not what memory is worth.",
    'Leave it out; if akm is the very subject of the task, say so: [metadata].subject = "akm".',
)
def akm_hint(corpus: Corpus) -> Iterator[Finding]:
    """No text that both arms read points at akm."""
    for task in corpus.tasks:
        if task.text("subject") == "akm":
            continue
        for place, text in _agent_texts(task):
            found = _AKM_HINT.search(text)
            if found:
                yield Finding("akm-hint", task.path / place, f"it says {found.group()!r}")


@rule(
    "rule-hint",
    "A local-convention task asks whether the agent looks without being told that there is a rule.",
    "Ask for the outcome in plain words.",
)
def rule_hint(corpus: Corpus) -> Iterator[Finding]:
    """Nothing in a local task says that a rule exists."""
    for task in corpus.tasks:
        if task.text("knowledge") != "local":
            continue
        for place, text in _agent_texts(task):
            found = _RULE_HINT.search(text)
            if found:
                yield Finding("rule-hint", task.path / place, f"it says {found.group()!r}")


def _plain(line: str) -> str:
    return " ".join(line.replace("\\", " ").replace('"', "").replace("'", "").split())


def _answer_lines(task: CorpusTask) -> set[str]:
    """The lines of the solution that are long enough to be an answer."""
    script = task.path / "solution" / "solve.sh"
    text = script.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ") if script.is_file() else ""
    lines = {_plain(line) for line in text.splitlines() if not line.strip().startswith("#")}
    return {line for line in lines if len(tokens(line)) >= 4}


@rule(
    "bundle-holds-answer",
    "A bundle that holds the finished answer measures copying, not applying.",
    "Explain the rule with another example.",
)
def bundle_holds_answer(corpus: Corpus) -> Iterator[Finding]:
    """No line of the solution stands in the bundle as it is."""
    for task in corpus.tasks:
        answers = _answer_lines(task)
        for asset in corpus.assets(task.text("bundle")) or []:
            lines = {_plain(line) for line in asset.text.replace("\\\n", " ").splitlines()}
            for line in sorted(answers & lines):
                yield Finding("bundle-holds-answer", asset.path, f"it holds a line of {task.name}'s solution: {line}")


@rule(
    "bundle-names-instance",
    "A bundle that names the very things a task is about was written for that task.",
    "Use other names in the bundle's examples.",
)
def bundle_names_instance(corpus: Corpus) -> Iterator[Finding]:
    """Names and values that the instruction quotes in backticks do not stand in a fictional or local bundle."""
    for task in corpus.tasks:
        if task.text("knowledge") not in ("fictional", "local"):
            continue
        text = corpus.bundle_text(task)
        names = {
            name for name in re.findall(r"`([^`\n]+)`", task.instruction) if re.fullmatch(r"[a-z0-9]+-[a-z0-9-]+", name)
        }
        for name in sorted(names - set(task.texts("public_tokens"))):
            if _holds(text, name):
                yield Finding("bundle-names-instance", task.path / "instruction.md", f"the bundle also holds `{name}`")
