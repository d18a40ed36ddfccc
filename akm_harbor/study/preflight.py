"""What must be there before the first trial costs anything."""

import asyncio
import shutil
import subprocess

from akm_harbor.agent.toolchain import find
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.sandbox.cleanup import sweep
from akm_harbor.sandbox.places import places
from akm_harbor.study.check import check_job
from akm_harbor.study.declaration import Study
from akm_harbor.study.doctor import Wanted
from akm_harbor.study.doctor_tools import model_key
from akm_harbor.study.render import Job

_DOCKER_SECONDS = 30


def preflight(study: Study, job: Job) -> list[str]:
    """Check what the study needs, and sweep up what killed runs left.

    Returns:
        What was found, a line each.

    Raises:
        UsageError: the job is no fair comparison.
        AkmHarborError: something is missing; the message says what and what to do.
    """
    mistakes = check_job(job)
    if mistakes:
        raise UsageError("the job cannot be run:\n  " + "\n  ".join(mistakes))
    toolchain = find(None, need_akm=any(arm.agent == "AkmOpenCode" for arm in study.arms))
    lines = [f"toolchain: opencode {toolchain.agent_version}, {toolchain.platform}"]
    if study.environment == "sandbox":
        lines += _sandbox()
    elif study.policy:
        raise UsageError(f"{study.name} is played by a scripted model, which only the sandbox can reach")
    elif study.environment == "docker":
        lines += _docker()
    if not study.policy:
        lines += _model_key(study)
    return lines


def _model_key(study: Study) -> list[str]:
    """The key of the model's provider, unless the study sets that provider up itself."""
    provider = study.model.partition("/")[0]
    if provider in study.opencode_config.get("provider", {}):
        return []
    findings = list(model_key(Wanted(model=study.model)))
    for finding in findings:
        if finding.status == "fail":
            raise AkmHarborError(f"{finding.name}: {finding.detail}", hint=finding.remedy or None)
    return [f"{finding.name}: {finding.detail}" for finding in findings]


def _sandbox() -> list[str]:
    from akm_harbor.sandbox.check import findings

    missing = [finding for finding in asyncio.run(findings(places())) if not finding.ok]
    if missing:
        first = missing[0]
        raise AkmHarborError(f"the sandbox cannot run here: {first.name}: {first.detail}", hint=first.hint or None)
    return [line for line in (sweep_sandbox(),) if line]


def sweep_sandbox() -> str:
    """Remove what killed sandboxes left; a line about it, empty if there was nothing."""
    swept = sweep(places())
    return f"sandbox: swept {len(swept.removed)} folders that killed runs left" if swept.removed else ""


def _docker() -> list[str]:
    hint = "Start Docker, or choose another environment: --environment NAME, as for `harbor run -e`."
    if shutil.which("docker") is None:
        raise AkmHarborError("docker is not installed", hint=hint)
    try:
        done = subprocess.run(
            ["docker", "info", "--format", "{{.ServerVersion}}"],
            capture_output=True,
            text=True,
            timeout=_DOCKER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AkmHarborError("the Docker engine does not answer", hint=hint) from None
    if done.returncode:
        raise AkmHarborError(f"the Docker engine does not answer: {done.stderr.strip()[-200:]}", hint=hint)
    return [f"docker: engine {done.stdout.strip()}"]
