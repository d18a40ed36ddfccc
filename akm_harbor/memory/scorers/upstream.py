"""Upstream's own prompts and evaluators, from the user's pinned copy, checked by digest.

Neither is ours to ship. Prompts are read out of upstream's syntax tree, never by running it.
Evaluators run in upstream's own environment, as processes with an environment of their own.
"""

import ast
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.scorers import longmemeval

_DRIVERS = Path(__file__).with_name("drivers")
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Pinned:
    """One file of an upstream repository, as it was when our port was checked against it.

    Attributes:
        project: which upstream.
        path: where it lies in a checkout.
        sha256: digest of the pinned version.
    """

    project: str
    path: str
    sha256: str


LOCOMO_EVALUATION = Pinned(
    "LoCoMo", "task_eval/evaluation.py", "8e3be5d57ff2ff9ec5cd05939592f468c5f3f1fd95d13e431932bdf6bf0fd6fd"
)
LONGMEMEVAL_JUDGE = Pinned(
    "LongMemEval", "src/evaluation/evaluate_qa.py", "ecce9c4c79dc89d99534ac17b383a5cbb5b9f0c69ee98adaf0684742e3d95251"
)
LONGMEMEVAL_RETRIEVAL = Pinned(
    "LongMemEval", "src/retrieval/eval_utils.py", "c98b8d1096877a15aa755c9de44fe33c195298466a2eb6f3c0f9f6bde8c72349"
)
BEAM_PROMPTS = Pinned("BEAM", "src/prompts.py", "2f630cc983ab0c34cfa80b1b4d340f5b51a9b4a3baa5af8aea9503c585eda06a")
BEAM_METRICS = Pinned(
    "BEAM", "src/evaluation/compute_metrics.py", "0715226375e9d24646c49c504194ba61cfb26d39415da5ebe9bdc4c6dcd3726c"
)


class UpstreamError(AkmHarborError):
    """Upstream's copy is not the pinned one, or its program failed."""

    remedy = "Give a clean checkout of the pinned commit, with what its own requirements name installed."


def pinned_source(checkout: Path, pinned: Pinned) -> str:
    """The text of an upstream file.

    Raises:
        UpstreamError: it is not there, or is another version than the one our port was checked against.
    """
    path = checkout / pinned.path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UpstreamError(
            f"cannot be read ({error.strerror})", path=path, hint=f"Name a checkout of {pinned.project}."
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != pinned.sha256:
        raise UpstreamError(
            f"is another version of {pinned.project} (sha256 {found[:12]}..., {pinned.sha256[:12]}... was expected)",
            path=path,
            hint="Check out the pinned commit; numbers made with another prompt go under another name.",
        )
    return data.decode()


@dataclass(frozen=True, slots=True)
class LongMemEvalPrompts:
    """Upstream's five judge prompts, by the index `longmemeval.prompt_index` gives.

    Attributes:
        templates: index -> template with three slots: question, answer, response.
    """

    templates: Mapping[int, str]

    def prompt(self, question_type: str, question: str, answer: str, response: str, *, abstention: bool) -> str:
        """The judge's prompt for one answer.

        Raises:
            NotImplementedError: a type upstream has no prompt for.
        """
        index = longmemeval.prompt_index(question_type, abstention=abstention)
        return self.templates[index].format(question, answer, response)

    def digest(self, question_type: str, *, abstention: bool) -> str:
        """SHA-256 of the prompt with markers in its slots: the name of a judge prompt in results."""
        markers = ("\x01Q\x01", "\x02A\x02", "\x03R\x03")
        filled = self.prompt(question_type, *markers, abstention=abstention)
        return hashlib.sha256(filled.encode()).hexdigest()


def longmemeval_prompts(checkout: Path) -> LongMemEvalPrompts:
    """Read the five judge prompts out of a checkout of LongMemEval.

    Raises:
        UpstreamError: the checkout is not the pinned one.
    """
    function = _function(pinned_source(checkout, LONGMEMEVAL_JUDGE), "get_anscheck_prompt")
    assigned = [
        (node.lineno, node.value.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    order = (
        longmemeval.DEFAULT,
        longmemeval.TEMPORAL,
        longmemeval.KNOWLEDGE_UPDATE,
        longmemeval.PREFERENCE,
        longmemeval.ABSTENTION,
    )
    templates = dict(zip(order, (text for _, text in sorted(assigned)), strict=True))
    for index, text in templates.items():
        if f"{longmemeval.ANSWER_LABELS[index]}: {{}}" not in text:
            raise UpstreamError(f"judge prompt {index} is not where it was expected", path=checkout)
    return LongMemEvalPrompts(templates)


@dataclass(frozen=True, slots=True)
class BeamPrompts:
    """BEAM's judge prompt, and the parts of its event equivalence question.

    Attributes:
        judge: template with the placeholders of `beam.PLACEHOLDERS`.
        equivalence_system: the system message.
        equivalence_user: the user message, with slots `{first_paragraph}` and `{second_paragraph}`.
    """

    judge: str
    equivalence_system: str
    equivalence_user: str

    def equivalence(self, first: str, second: str) -> list[dict[str, str]]:
        """The messages that ask whether two snippets are the same event."""
        user = self.equivalence_user.replace("{first_paragraph}", first).replace("{second_paragraph}", second)
        return [{"role": "system", "content": self.equivalence_system}, {"role": "user", "content": user}]


def beam_prompts(checkout: Path) -> BeamPrompts:
    """Read the judge's prompts out of a checkout of BEAM.

    Raises:
        UpstreamError: the checkout is not the pinned one.
    """
    judge = next(
        (
            node.value.value
            for node in ast.walk(ast.parse(pinned_source(checkout, BEAM_PROMPTS)))
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "unified_llm_judge_base_prompt"
            and isinstance(node.value, ast.Constant)
        ),
        None,
    )
    contents = [
        _text(value)
        for node in ast.walk(_function(pinned_source(checkout, BEAM_METRICS), "llm_equivalence"))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "content"
    ]
    if not isinstance(judge, str) or len(contents) != 2:
        raise UpstreamError("the judge prompts are not where they were expected", path=checkout)
    return BeamPrompts(judge, contents[0], contents[1])


def _function(source: str, name: str) -> ast.FunctionDef:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise UpstreamError(f"function {name} is not where it was expected")


def _text(node: ast.expr) -> str:
    """A string, or an f-string whose plain names become `{name}` slots."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return f"{{{node.value.id}}}"
    raise UpstreamError("a prompt is built in an unexpected way")


def run_driver(python: Path, checkout: Path, pinned: Pinned, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Score rows with upstream's own code, in upstream's own environment.

    Args:
        python: the interpreter of the environment upstream's requirements are installed in.
        checkout: a checkout at the pinned commit.
        pinned: what to run: `LOCOMO_EVALUATION`, `LONGMEMEVAL_RETRIEVAL` or `BEAM_METRICS`.
        rows: what the driver of that project reads.

    Raises:
        UpstreamError: another version, or the program failed.
    """
    pinned_source(checkout, pinned)
    driver = _DRIVERS / f"{pinned.project.lower()}.py"
    result = _run([str(python), str(driver)], checkout, json.dumps(list(rows)))
    try:
        scored = json.loads(result.stdout)
    except ValueError as error:
        raise UpstreamError(
            f"{pinned.project}'s program wrote no JSON: {result.stderr[-400:]}", path=checkout
        ) from error
    if not isinstance(scored, list) or len(scored) != len(rows):
        raise UpstreamError(f"{pinned.project}'s program scored another number of rows", path=checkout)
    return scored


def run_longmemeval_judge(
    python: Path,
    checkout: Path,
    work: Path,
    *,
    hypotheses: Mapping[str, str],
    reference: Path,
    model: str = "gpt-4o",
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 3600,
) -> dict[str, bool]:
    """Judge answers with upstream's evaluate_qa.py, unchanged, and return its verdicts.

    Its exit code says nothing (0 on a usage error and on an unknown model) and it retries a bad
    key for ever, so the output file is what counts and a wall clock stops it.

    Args:
        python: the interpreter of upstream's environment.
        checkout: a checkout at the pinned commit.
        work: a folder for the hypotheses and the result.
        hypotheses: answers by question id.
        reference: a LongMemEval file that holds the questions.
        model: one of `longmemeval.JUDGE_MODELS`.
        environment: OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_ORG_ID.
        timeout_s: wall clock, seconds.

    Raises:
        UsageError: a model upstream does not know.
        UpstreamError: another version, no result, or a result for other questions.
    """
    if model not in longmemeval.JUDGE_MODELS:
        raise UsageError(f"LongMemEval has no judge {model!r}", hint=f"One of {', '.join(longmemeval.JUDGE_MODELS)}.")
    pinned_source(checkout, LONGMEMEVAL_JUDGE)
    work.mkdir(parents=True, exist_ok=True)
    file = work / "hyp.jsonl"
    file.write_text("".join(json.dumps({"question_id": q, "hypothesis": h}) + "\n" for q, h in hypotheses.items()))
    result = work / f"hyp.jsonl.eval-results-{model}"
    result.unlink(missing_ok=True)
    command = [str(python), str(checkout / LONGMEMEVAL_JUDGE.path), model, str(file), str(reference)]
    done = _run(command, checkout, "", environment, timeout_s)
    if not result.is_file():
        raise UpstreamError(f"evaluate_qa.py wrote no result: {done.stderr[-400:]}", path=result)
    rows = [json.loads(line) for line in result.read_text().splitlines()]
    verdicts = {str(row["question_id"]): bool(row["autoeval_label"]["label"]) for row in rows}
    missing = sorted(set(hypotheses) - set(verdicts))
    if missing or len(rows) != len(hypotheses):
        raise UpstreamError(
            f"evaluate_qa.py judged {len(rows)} of {len(hypotheses)} answers; missing {', '.join(missing[:5])}",
            path=result,
            hint="Upstream skips ids that the reference file lacks.",
        )
    return verdicts


def _run(
    command: list[str],
    folder: Path,
    stdin: str,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    allowed = {name: os.environ[name] for name in ("PATH", "HOME", "SYSTEMROOT") if name in os.environ}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            input=stdin,
            capture_output=True,
            text=True,
            env={**allowed, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        raise UpstreamError(f"cannot be started ({error.strerror})", path=command[0]) from error
    except subprocess.TimeoutExpired as error:
        raise UpstreamError(f"did not end within {timeout_s:g} s", path=command[1]) from error
    if done.returncode != 0:
        raise UpstreamError(f"ended with exit code {done.returncode}: {done.stderr[-400:]}", path=command[1])
    return done
