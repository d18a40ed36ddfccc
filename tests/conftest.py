"""What the marked tests need, checked once: on CI a missing part is a failure, not a skip."""

import os
import shutil
import subprocess
import sys

import pytest

os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("MPLBACKEND", "Agg")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _lacks_sandbox() -> str | None:
    if not sys.platform.startswith("linux"):
        return "the sandbox needs Linux"
    return None if shutil.which("bwrap") else "bubblewrap is not installed"


def _lacks_browser() -> str | None:
    return None if any(map(shutil.which, BROWSERS)) else "no Chromium is installed"


def _lacks_akm() -> str | None:
    names = ("AKM_HARBOR_AKM_SPEC", "AKM_HARBOR_PLUGIN_SPEC")
    unset = [name for name in names if not os.environ.get(name)]
    return f"{' and '.join(unset)} not set" if unset else None


def _lacks_akm_cli() -> str | None:
    return None if os.environ.get("AKM_HARBOR_AKM_CLI") else "AKM_HARBOR_AKM_CLI not set"


def _lacks_docker() -> str | None:
    if os.environ.get("AKM_HARBOR_DOCKER_TESTS") != "1":
        return "run by hand: AKM_HARBOR_DOCKER_TESTS=1 and a Docker engine"
    found = shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False)
    return None if found and found.returncode == 0 else "no Docker engine answers"


def _lacks_opencode() -> str | None:
    from akm_harbor.agent.toolchain import find
    from akm_harbor.errors import AkmHarborError

    try:
        find(None)
    except AkmHarborError as error:
        return str(error)
    return None


# marker -> (what is missing, must CI have it)
NEEDS = {
    "sandbox": (_lacks_sandbox, True),
    "browser": (_lacks_browser, True),
    "opencode": (_lacks_opencode, True),
    "live_akm": (_lacks_akm, False),
    "live_akm_cli": (_lacks_akm_cli, False),
    "docker": (_lacks_docker, False),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run; on CI let it fail instead."""
    ci = os.environ.get("CI") == "true"
    lacking = {name: check() for name, (check, _) in NEEDS.items()}
    for item in items:
        for name, why in lacking.items():
            if why and item.get_closest_marker(name) and not (ci and NEEDS[name][1]):
                item.add_marker(pytest.mark.skip(reason=why))
