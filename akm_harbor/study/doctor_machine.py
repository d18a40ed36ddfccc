"""The doctor's look at the machine itself: Python, disk, clock, what killed runs left, notebooks' kernel."""

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import akm_harbor
from akm_harbor.sandbox.cleanup import abandoned
from akm_harbor.sandbox.places import Places, places
from akm_harbor.study.doctor import Finding, Status, Wanted, ok

_LEAST_PYTHON = (3, 12)
_LITTLE_GB, _TOO_LITTLE_GB = 10, 1
_SKEW_SECONDS = 120
_DAY_SECONDS = 86_400
_TRIAL_PROJECT = re.compile(r"__[a-z0-9]{7}(?:\b|_)", re.IGNORECASE)
"""How the containers of a trial are called: TASK__XXXXXXX, as the trial."""


def python(_wanted: Wanted) -> Iterator[Finding]:
    """The interpreter's version."""
    detail = f"Python {platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < _LEAST_PYTHON:
        least = ".".join(map(str, _LEAST_PYTHON))
        yield Finding("python", "fail", detail, f"Make a virtual environment with Python {least} or newer.")
    else:
        yield ok("python", detail)


def disk(wanted: Wanted) -> Iterator[Finding]:
    """Free space where jobs and the sandbox's layers go."""
    for what, folder in (("jobs", wanted.jobs_dir or Path.cwd()), ("sandbox cache", _places(wanted).cache)):
        if folder.is_symlink() and not folder.exists():
            yield Finding(
                "disk", "fail", f"{folder}, for {what}, is a link that leads nowhere", "Choose another folder."
            )
            continue
        place = Path(os.path.realpath(folder))
        there = next(path for path in (place, *place.parents) if path.exists())
        if not there.is_dir():
            yield Finding("disk", "fail", f"{there}, for {what}, is no folder", "Choose another one.")
            continue
        free = shutil.disk_usage(there).free / 1e9
        detail = f"{free:.1f} GB free for {what}, in {there}"
        if free < _LITTLE_GB:
            status: Status = "fail" if free < _TOO_LITTLE_GB else "warn"
            remedy = "Free some disk (`akm-harbor sandbox clean --images`, `docker system prune`), or use another one."
            yield Finding("disk", status, detail, remedy)
        else:
            yield ok("disk", detail)


def _places(wanted: Wanted) -> Places:
    return places(wanted.cache_dir)


def left_over(wanted: Wanted) -> Iterator[Finding]:
    """Folders, mounts and containers of runs that were killed."""
    where = _places(wanted)
    folders = abandoned(where) if sys.platform == "linux" else []
    if folders:
        detail = f"{len(folders)} folders of sandboxes that are gone, below {where.cache}"
        yield Finding("left-over folders", "warn", detail, "akm-harbor sandbox clean")
    else:
        yield ok("left-over folders", f"none below {where.cache}")
    table = Path("/proc/self/mountinfo")
    lines = table.read_text("utf-8", "replace").splitlines() if table.exists() else []
    mounts = [line.split()[4] for line in lines if str(where.cache) in line]
    if mounts:
        yield Finding("left-over mounts", "warn", ", ".join(mounts[:5]), f"umount {' '.join(mounts[:5])}")
    else:
        yield ok("left-over mounts", "none of the sandbox's")
    yield from _containers()


def _containers() -> Iterator[Finding]:
    if shutil.which("docker") is None:
        return
    form = '{{.Label "com.docker.compose.project"}}\t{{.Names}}\t{{.Status}}'
    try:
        done = subprocess.run(
            ["docker", "ps", "--all", "--format", form], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    if done.returncode:
        return  # the engine does not answer: told elsewhere
    projects = sorted({p for line in done.stdout.splitlines() if _TRIAL_PROJECT.search(p := line.partition("\t")[0])})
    if projects:
        detail = f"containers of {len(projects)} Harbor trials: {', '.join(projects[:5])}"
        down = "; ".join(f"docker compose -p {project} down --volumes" for project in projects[:5])
        yield Finding("left-over containers", "warn", detail, f"If no job is running: {down}")
    else:
        yield ok("left-over containers", "none of Harbor's trials")


def clock(wanted: Wanted) -> Iterator[Finding]:
    """The clock: trials are ordered and joined by time."""
    now = time.time()
    newest = max(path.stat().st_mtime for path in Path(akm_harbor.__file__).parent.glob("*.py"))
    remedy = "Set the clock, e.g. `timedatectl set-ntp true`."
    if newest - now > _DAY_SECONDS:
        days = (newest - now) / _DAY_SECONDS
        yield Finding("clock", "fail", f"{time.ctime(now)}: {days:.0f} days before this package was installed", remedy)
        return
    if not wanted.online:
        yield ok("clock", f"{time.ctime(now)}, not compared with any other (--online does)")
        return
    skew = _skew()
    if skew is None:
        yield Finding("clock", "warn", "no other clock could be asked", "Check the network.")
    elif abs(skew) > _SKEW_SECONDS:
        yield Finding("clock", "fail", f"{skew:+.0f} s off the package registry's", remedy)
    else:
        yield ok("clock", f"{skew:+.0f} s off the package registry's")


def _skew() -> float | None:
    """Seconds by which this clock is ahead of npm's registry, whose answers carry a date."""
    url = _registry()
    if not url.startswith(("http://", "https://")):
        return None
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310  (http and https only, checked above)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            date = answer.headers.get("Date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("Date")
    except OSError:
        return None
    return time.time() - parsedate_to_datetime(date).timestamp() if date else None


def _registry() -> str:
    npm = shutil.which("npm")
    if npm is None:
        return "https://registry.npmjs.org/"
    done = subprocess.run([npm, "config", "get", "registry"], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip()


def kernel(_wanted: Wanted) -> Iterator[Finding]:
    """The kernel that notebooks run on."""
    remedy = "pip install ipykernel && python -m ipykernel install --sys-prefix"
    if importlib.util.find_spec("jupyter_client") is None or importlib.util.find_spec("ipykernel") is None:
        yield Finding("kernel", "fail", "jupyter_client or ipykernel is not installed", remedy)
        return
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Finding("kernel", "fail", "no kernel named python3", remedy)
        return
    program = spec.argv[0] if spec.argv else ""
    where = Path(spec.resource_dir) if spec.resource_dir else None
    own = re.fullmatch(r"python3?(\.\d+)?", program)  # Jupyter puts the running interpreter in its place
    if not (own or shutil.which(program) or os.access(program, os.X_OK)):
        place = f", as {where / 'kernel.json'} says" if where else ""
        yield Finding("kernel", "fail", f"python3 would start {json.dumps(program)}, which is not there{place}", remedy)
    else:
        yield ok("kernel", f"python3: {sys.executable if own else program}")
