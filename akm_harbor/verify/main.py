"""The command line of the generated `akm_verify.py`.

    run [--in DIR] [--] COMMAND ...      run a shell verifier, then write details, compliance and the reward
    pytest [--in DIR]                    the same with the test_*.py beside this file
    command FILE WORDS [-- OPTION ...]   FILE holds exactly the command that is asked for
    document FILE --equals|--holds OTHER   FILE is a YAML, JSON or TOML document equal to, or holding, OTHER
    text FILE --equals OTHER             FILE holds exactly this text, up to blank space at line ends
    reward 0|1                           write the reward, for verifiers that do without `run`
    tokens FILE                          print the commands of FILE, one JSON list a line
    compliance                           score compliance.json beside this file and print the result

A check exits 0 when the answer is right, 1 when it is wrong and 2 when it cannot tell.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from akm_harbor.verify.answers import WrongAnswerError, read_answer
from akm_harbor.verify.compliance import NOT_APPLICABLE, PASS, UNSCORABLE, score
from akm_harbor.verify.ctrf import run_pytest
from akm_harbor.verify.documents import compare, load_document, parse_document
from akm_harbor.verify.outcome import (
    BROKEN,
    DETAILS_ENV,
    RIGHT,
    WRONG,
    BrokenVerifierError,
    clear_reward,
    logs_dir,
    note,
    read_notes,
    write_json,
    write_reward,
)
from akm_harbor.verify.shell import UnreadableCommandError, match_command, parse_option, split_commands

AGENT_LOGS_ENV = "AKM_VERIFY_AGENT_LOGS"
REWARD_COMPLIANCE_ENV = "AKM_HARBOR_COMPLIANCE_IN_REWARD"


def _commands_of(path: str) -> list[list[str]]:
    try:
        return split_commands(read_answer(path))
    except UnreadableCommandError as error:
        raise WrongAnswerError(f"{path}: {error}") from None


def _check_command(args: argparse.Namespace) -> list[str]:
    commands = _commands_of(args.file)
    if len(commands) != args.of:
        return [f"{args.file} holds {len(commands)} commands, not {args.of}"]
    words = shlex.split(args.words)
    required = [parse_option(text) for text in args.options if not text.startswith("?")]
    allowed = [parse_option(text[1:]) for text in args.options if text.startswith("?")]
    if args.nth is not None:
        return match_command(commands[args.nth - 1], words, required, allowed)
    results = [match_command(command, words, required, allowed) for command in commands]
    return [] if [] in results else min(results, key=len)


def _check_document(args: argparse.Namespace) -> list[str]:
    given = load_document(args.file, args.kind)
    source = Path(args.equals or args.holds)
    wanted = parse_document(source.read_text(encoding="utf-8"), source.suffix.lstrip("."))
    return compare(given, wanted, partly=args.equals is None)


def _check_text(args: argparse.Namespace) -> list[str]:
    given = [line.rstrip() for line in read_answer(args.file).strip().splitlines()]
    wanted = [line.rstrip() for line in Path(args.equals).read_text(encoding="utf-8").strip().splitlines()]
    if given == wanted:
        return []
    place = next((i for i, (a, b) in enumerate(zip(given, wanted)) if a != b), min(len(given), len(wanted)))
    return [f"{args.file} differs from what is asked at line {place + 1}"]


def capture_says(agent_logs: Path) -> dict[str, Any]:
    """The agent's own capture.json, written by the harness after the run; empty without one."""
    try:
        value = json.loads(read_answer(agent_logs / "akm" / "capture.json"))
    except (WrongAnswerError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def score_compliance(here: Path, *, right: bool | None) -> dict[str, Any] | None:
    """Score the task's workflows, if it declares any."""
    plan = here / "compliance.json"
    if not plan.exists():
        return None
    agent_logs = Path(os.environ.get(AGENT_LOGS_ENV, "/logs/agent"))
    expected = capture_says(agent_logs).get("akm_expected")
    return score(
        json.loads(plan.read_text(encoding="utf-8")),
        agent_logs,
        akm_expected=expected if isinstance(expected, bool) else None,
        right=right,
    )


def _compliance_counts() -> bool:
    wish = os.environ.get(REWARD_COMPLIANCE_ENV, "")
    agent_logs = Path(os.environ.get(AGENT_LOGS_ENV, "/logs/agent"))
    return wish.lower() in ("1", "on", "true", "yes") or capture_says(agent_logs).get("compliance_in_reward") is True


def finish(code: int, here: Path, details: Path) -> int:
    """Write details.json, compliance.json and, unless the verifier broke, the reward."""
    right = {RIGHT: True, WRONG: False}.get(code)
    report: dict[str, Any] = {
        "version": 1,
        "exit_code": code,
        "checks": read_notes(details),
        "compliance_counted": False,
    }
    compliance = score_compliance(here, right=right)
    if compliance is not None:
        write_json(logs_dir() / "compliance.json", compliance)
        if right and _compliance_counts():
            report["compliance_counted"] = True
            right = compliance["verdict"] in (PASS, NOT_APPLICABLE, UNSCORABLE)
    write_json(logs_dir() / "details.json", report)
    if right is None:
        print(f"the verifier itself failed (exit code {code}): no reward is written", file=sys.stderr)  # noqa: T201
        return BROKEN
    write_reward(right=right)
    return 0


def _judge(args: argparse.Namespace, here: Path) -> int:
    clear_reward()
    if not Path(args.workdir).is_dir() or Path(args.workdir).is_symlink():
        return finish(note("workspace", [f"{args.workdir} is not a folder any more"]), here, Path(os.devnull))
    os.chdir(args.workdir)
    with tempfile.TemporaryDirectory() as folder:
        details = Path(folder, "details.jsonl")
        os.environ[DETAILS_ENV] = str(details)
        if args.action == "pytest":
            code = run_pytest(here)
        else:
            check = shlex.join([sys.executable, "-I", str(here / Path(__file__).name)])
            command = args.command[1:] if args.command[:1] == ["--"] else args.command
            code = subprocess.run(command, check=False, env={**os.environ, "CHECK": check}).returncode
        return finish(code, here, details)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="akm_verify.py")
    actions = parser.add_subparsers(dest="action", required=True)
    run, tests = actions.add_parser("run"), actions.add_parser("pytest")
    for judge in (run, tests):
        judge.add_argument("--in", dest="workdir", default=".", help="the workspace")
    run.add_argument("command", nargs=argparse.REMAINDER)
    actions.add_parser("compliance")
    actions.add_parser("reward").add_argument("value", choices=("0", "1"))
    actions.add_parser("tokens").add_argument("file")
    command = actions.add_parser("command")
    command.add_argument("file")
    command.add_argument("words", help="program, subcommands and positional values")
    command.add_argument("options", nargs="*", help="after --: options that must be there, or may be (?--name=value)")
    command.add_argument("--of", type=int, default=1, help="how many commands the file holds")
    command.add_argument("--nth", type=int, help="which of them is meant; any, if not given")
    document = actions.add_parser("document")
    document.add_argument("file")
    document.add_argument("--kind", choices=("yaml", "json", "toml"))
    which = document.add_mutually_exclusive_group(required=True)
    which.add_argument("--equals", help="the wanted document")
    which.add_argument("--holds", help="a document whose every key must be there")
    text = actions.add_parser("text")
    text.add_argument("file")
    text.add_argument("--equals", required=True, help="a file with the wanted text")
    return parser


def _act(args: argparse.Namespace, here: Path) -> int:
    if args.action in ("run", "pytest"):
        return _judge(args, here)
    if args.action == "compliance":
        print(json.dumps(score_compliance(here, right=None), indent=1))  # noqa: T201
        return RIGHT
    if args.action == "reward":
        clear_reward()
        write_reward(right=args.value == "1")
        return RIGHT
    if args.action == "tokens":
        for words in _commands_of(args.file):
            print(json.dumps(words))  # noqa: T201
        return RIGHT
    check = {"command": _check_command, "document": _check_document, "text": _check_text}[args.action]
    try:
        complaints = check(args)
    except WrongAnswerError as error:
        complaints = [str(error)]
    return note(f"{args.action} {args.file}", complaints)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one action; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    here = Path(__file__).resolve().parent
    try:
        return _act(args, here)
    except WrongAnswerError as error:
        return note(args.action, [str(error)])
    except (BrokenVerifierError, OSError, ValueError) as error:
        print(f"akm_verify: {error}", file=sys.stderr)  # noqa: T201
        return BROKEN
