"""Start a new task: a small one that passes the linter, to be changed into the real one."""

import re
from pathlib import Path

from akm_harbor.corpus.bundle import find_bundles_dir
from akm_harbor.corpus.sync import sync
from akm_harbor.corpus.task import read_task
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.tables.atomic import filled_whole

TEST_SH = """\
#!/bin/sh
# Reward 1 when {what} so, 0 when not; details beside it.
here=$(cd "$(dirname "$0")" && pwd)
exec python3 -I "$here/akm_verify.py" {action} --in /app{rest}
"""
PYTEST_LINE = (
    "# The verifier is a pytest module that reads YAML.\n"
    'RUN python3 -c "import pytest, yaml" 2>/dev/null || '
    "pip install --no-cache-dir --break-system-packages pytest==8.4.1 pyyaml==6.0.2\n"
)
_TEST_PY = '''\
"""What the task asks of /app/answer.txt."""

import akm_verify


def test_answer():
    assert akm_verify.read_answer("answer.txt").split() == ["ready"]
'''
_INSTRUCTION = "Working directory: `/app`.\n\nWrite the file `/app/answer.txt` with the one word that is asked for.\n"
_TASK_TOML = """\
schema_version = "1.4"

[task]
name = "akm-harbor/{name}"
version = "1.0"
description = "One line about the task"

[metadata]
domain = "{domain}"
family = "{domain}/new"
shape = "create-new"
knowledge = "{knowledge}"
slice = "train"
bundle = "{bundle}"
{gold}difficulty = "easy"
verifier = "{verifier}"
memory_ability = "none"
public_tokens = ["ready"]

[agent]
timeout_sec = 300.0

[verifier]
timeout_sec = 60.0

[environment]
build_timeout_sec = 300.0
"""


def test_script(verifier: str) -> str:
    """The test.sh of a kind of verifier."""
    if verifier == "pytest":
        return TEST_SH.format(what="the tests say", action="pytest", rest="")
    return TEST_SH.format(what="verify.sh says", action="run", rest=' -- sh "$here/verify.sh"')


def dockerfile(verifier: str) -> str:
    """The Dockerfile of a task with a workspace."""
    return f"FROM python:3.12-slim\n{PYTEST_LINE if verifier == 'pytest' else ''}WORKDIR /app\nCOPY workspace/ /app/\n"


def new_task(root: Path, name: str, *, bundle: str, gold_ref: str, verifier: str) -> list[Path]:
    """Write a new task folder.

    Args:
        root: the folder of tasks.
        name: `<domain>--<name>`.
        bundle: the bundle the treatment gets.
        gold_ref: the asset that answers the task, "" if none does.
        verifier: `script` or `pytest`.

    Returns:
        The files written.

    Raises:
        AkmHarborError: the name is taken or not of that form, or the verifier or the bundle is unknown.
    """
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*--[a-z0-9]+(?:-[a-z0-9]+)*", name):
        raise UsageError(f"{name!r} is not of the form <domain>--<name>, in small letters, digits and dashes")
    if verifier not in ("script", "pytest"):
        raise UsageError(f"{verifier!r} is no kind of verifier", hint="Choose script or pytest.")
    folder = root / name
    if folder.exists():
        raise AkmHarborError("exists already", path=folder, hint="Choose another name.")
    bundles = find_bundles_dir(root)
    if bundles is not None and not (bundles / bundle).is_dir():
        there = sorted(path.name for path in bundles.iterdir() if path.is_dir())
        raise UsageError(f"no bundle {bundle!r} in {bundles}", hint=f"There are: {', '.join(there)}.")
    config = _TASK_TOML.format(
        name=name, domain=name.partition("--")[0], bundle=bundle, verifier=verifier,
        knowledge="public" if gold_ref else "none", gold=f'gold_ref = "{gold_ref}"\n' if gold_ref else "",
    )  # fmt: skip
    files = {
        "task.toml": config,
        "instruction.md": _INSTRUCTION,
        "environment/Dockerfile": dockerfile(verifier),
        "environment/workspace/notes.txt": "What the agent starts with.\n",
        "solution/solve.sh": "#!/bin/sh\necho ready >/app/answer.txt\n",
        "tests/test.sh": test_script(verifier),
    }
    if verifier == "pytest":
        files["tests/test_answer.py"] = _TEST_PY
    else:
        files["tests/verify.sh"] = "#!/bin/sh\nexec $CHECK text answer.txt --equals /tests/wanted.txt\n"
        files["tests/wanted.txt"] = "ready\n"
    with filled_whole(folder):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
            if path.endswith(".sh"):
                (folder / path).chmod(0o755)
        return [*(folder / path for path in files), *sync([read_task(folder)])]
