"""The doctor's look at tools: Harbor, sandbox, Docker, npm and the pinned packages, the model's key."""

import asyncio
import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator

from akm_harbor.agent.pins import load_pins
from akm_harbor.agent.toolchain import find
from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.check import findings
from akm_harbor.sandbox.places import places
from akm_harbor.study.doctor import Finding, Status, Wanted, ok

HARBOR_RANGE = ((0, 22), (0, 27))
"""First Harbor known to work, and the first that is not; as in pyproject.toml."""

_LEAST_COMPOSE = 2
_LEAST_NODE_NPM = 8
_SECONDS = 60

KEYS: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "togetherai": ("TOGETHER_API_KEY",),
    "fireworks-ai": ("FIREWORKS_API_KEY",),
    "amazon-bedrock": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"),
    "azure": ("AZURE_API_KEY",),
    "github-copilot": ("GITHUB_TOKEN",),
    "huggingface": ("HF_TOKEN",),
}
"""opencode's provider -> variables any of which holds its key."""

_KEYLESS = frozenset({"scripted", "ollama", "lmstudio"})


def _run(*command: str) -> tuple[int, str]:
    """Exit code and output; 127 when it is not there or does not answer."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 127, f"no answer within {_SECONDS} s"
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout.strip()


def _last(text: str) -> str:
    return text.splitlines()[-1][:200] if text else "no output"


def harbor(_wanted: Wanted) -> Iterator[Finding]:
    """Harbor is there, in the range that was tried."""
    first, beyond = (".".join(map(str, version)) for version in HARBOR_RANGE)
    remedy = f"pip install 'harbor>={first},<{beyond}'"
    try:
        version = importlib.metadata.version("harbor")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("harbor", "fail", "not installed beside this package", remedy)
        return
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if HARBOR_RANGE[0] <= numbers < HARBOR_RANGE[1]:
        yield ok("harbor", f"{version} (--harbor tries what we rely on)")
    else:
        yield Finding("harbor", "fail", f"{version} is outside the range {first} to below {beyond}", remedy)


def environments(wanted: Wanted) -> Iterator[Finding]:
    """Where trials can run: the sandbox, Docker, or both; one is enough."""
    sandbox, docker = list(_sandbox(wanted)), list(_docker())
    works = [all(f.status == "ok" for f in found) for found in (sandbox, docker)]
    status: Status = "warn" if any(works) else "fail"
    for finding in (*sandbox, *docker):
        yield finding if finding.status == "ok" else Finding(finding.name, status, finding.detail, finding.remedy)
    if not any(works):
        yield Finding("environment", "fail", "neither the sandbox nor Docker can run a trial here", "Mend one of them.")


def _sandbox(wanted: Wanted) -> Iterator[Finding]:
    names = {"a real sandbox": "overlay", "privilege": "namespaces", "cache": "sandbox cache"}
    try:
        for found in asyncio.run(findings(places(wanted.cache_dir))):
            name = names.get(found.name, found.name)
            yield ok(name, found.detail) if found.ok else Finding(name, "fail", found.detail, found.hint)
    except AkmHarborError as error:
        yield Finding("sandbox", "fail", str(error).partition("\n")[0], error.hint or "Use Docker.")


def _docker() -> Iterator[Finding]:
    if shutil.which("docker") is None:
        yield Finding("docker", "fail", "not installed", "Install Docker with its compose plugin.")
        return
    code, said = _run("docker", "info", "--format", "{{.ServerVersion}}")
    if code or not said:
        yield Finding("docker", "fail", f"the engine does not answer: {_last(said)}", "Start it, e.g. `dockerd`.")
    else:
        yield ok("docker", f"engine {_last(said)}")
    code, said = _run("docker", "compose", "version", "--short")
    major = re.match(r"v?(\d+)\.", _last(said))
    if code or major is None or int(major[1]) < _LEAST_COMPOSE:
        detail = f"`docker compose` is not there or older than 2: {_last(said)}"
        yield Finding("compose", "fail", detail, "Install the compose plugin, e.g. the package docker-compose-plugin.")
    else:
        yield ok("compose", _last(said))


def npm(wanted: Wanted) -> Iterator[Finding]:
    """npm, which builds the toolchain, and with --online the pinned packages."""
    remedy = "Install Node.js 20 or newer with npm; building the toolchain needs it once, here."
    program = shutil.which("npm")
    if program is None:
        yield Finding("npm", "warn", "not installed", remedy)
        return
    code, said = _run(program, "--version")
    major = re.match(r"(\d+)\.", _last(said))
    if code or major is None or int(major[1]) < _LEAST_NODE_NPM:
        yield Finding("npm", "warn", f"does not work or is older than {_LEAST_NODE_NPM}: {_last(said)}", remedy)
        return
    yield ok("npm", _last(said))
    if wanted.online:
        yield from _pins(program)


def _pins(program: str) -> Iterator[Finding]:
    for part, spec in load_pins().items():
        what = f"{spec.package}@{spec.version}"
        code, said = _run(program, "view", what, "version", "--json")
        if code == 0 and spec.version in said:
            yield ok(f"pin {part}", what)
            continue
        why = "is not in the registry" if code == 0 or "E404" in said or "ETARGET" in said else f"npm: {_last(said)}"
        treatment = part in {"akm", "plugin"}
        remedy = (
            f"Build with a local package (akm-harbor toolchain build --{part} file:PATH), or without: --control-only."
            if treatment
            else "Correct agents/pins.toml, or point npm at a registry that has it."
        )
        yield Finding(f"pin {part}", "warn" if treatment else "fail", f"{what}: {why}", remedy)


def toolchain(_wanted: Wanted) -> Iterator[Finding]:
    """The archive that arms run."""
    try:
        found = find(None)
    except AkmHarborError as error:
        yield Finding("toolchain", "warn", error.message, error.hint or "akm-harbor toolchain build")
        return
    detail = f"{found.agent_version}, {found.platform}"
    if found.control_only:
        yield Finding(
            "toolchain", "warn", f"{detail}: without akm, for control arms only", "akm-harbor toolchain build --akm …"
        )
    else:
        yield ok("toolchain", detail)


def model_key(wanted: Wanted) -> Iterator[Finding]:
    """The key of the model's provider, in the environment; it is never shown."""
    if wanted.model is None:
        there = sorted(provider for provider, names in KEYS.items() if any(os.environ.get(n) for n in names))
        yield ok("model key", f"keys set for: {', '.join(there) or 'no provider'} (--model P/M asks for one)")
        return
    provider, slash, _name = wanted.model.partition("/")
    if not slash:
        yield Finding("model key", "fail", f"{wanted.model!r} names no provider", "Write provider/model.")
    elif provider in _KEYLESS:
        yield ok("model key", f"{provider} needs none")
    elif provider not in KEYS:
        detail = f"which variable holds the key of {provider} is not known here"
        yield Finding("model key", "warn", detail, "Look it up in opencode's list of providers and set it.")
    elif held := [name for name in KEYS[provider] if os.environ.get(name)]:
        yield ok("model key", f"{provider}: {held[0]} is set")
    else:
        names = " or ".join(KEYS[provider])
        yield Finding("model key", "fail", f"{provider}: {names} is not set", f"export {KEYS[provider][0]}=…")
