"""What this machine has and lacks for a study; `akm-harbor doctor` prints it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at.

    Attributes:
        status: `fail` keeps a study from running here, `warn` keeps some kinds of it.
        remedy: what to do; empty when all is well.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the machine is to be good for.

    Attributes:
        model: provider/model whose key is looked for; None looks for none.
        online: ask the package registry for the pinned packages, and for the time.
        cache_dir: the sandbox's cache, where it is not the default.
        jobs_dir: where jobs are to be written, for the disk space.
    """

    model: str | None = None
    online: bool = False
    cache_dir: Path | None = None
    jobs_dir: Path | None = None


def ok(name: str, detail: str) -> Finding:
    """A finding that all is well."""
    return Finding(name, "ok", detail)


def examine(wanted: Wanted, progress: Callable[[str], None] = lambda _name: None) -> Iterator[Finding]:
    """Look at this machine, one thing after the other; what cannot be looked at is a finding too.

    Args:
        wanted: what it is to be good for.
        progress: called with the name of what is looked at next.
    """
    from akm_harbor.study import doctor_machine, doctor_tools

    checks: tuple[tuple[str, Callable[[Wanted], Iterator[Finding]]], ...] = (
        ("python", doctor_machine.python),
        ("harbor", doctor_tools.harbor),
        ("environment", doctor_tools.environments),
        ("npm", doctor_tools.npm),
        ("toolchain", doctor_tools.toolchain),
        ("model key", doctor_tools.model_key),
        ("disk", doctor_machine.disk),
        ("left over", doctor_machine.left_over),
        ("clock", doctor_machine.clock),
        ("kernel", doctor_machine.kernel),
    )
    for name, check in checks:
        progress(name)
        try:
            yield from check(wanted)
        except Exception as error:  # noqa: BLE001  (a doctor must not die of the patient's disease)
            yield Finding(name, "fail", f"could not be looked at: {type(error).__name__}: {error}", "Report this.")
