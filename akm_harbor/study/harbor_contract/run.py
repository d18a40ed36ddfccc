"""Hold an installed Harbor to the contract."""

import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.study.harbor_contract.clauses import CLAUSES, Clause
from akm_harbor.study.harbor_contract.lab import ContractError, Lab
from akm_harbor.study.harbor_contract.resume_clauses import RESUME_CLAUSES

ALL: tuple[Clause, ...] = (*CLAUSES, *RESUME_CLAUSES)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one clause.

    Attributes:
        broken: how Harbor differs; None when the clause holds.
    """

    clause: Clause
    broken: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """A whole contract held against one Harbor."""

    version: str
    verdicts: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Whether every clause holds."""
        return not any(verdict.broken for verdict in self.verdicts)


def hold(
    *,
    python: Path | str = sys.executable,
    only: Collection[str] = (),
    progress: Callable[[str], None] = lambda _name: None,
) -> Held:
    """Run the contract's mini jobs in the sandbox and look at what they left.

    Args:
        python: the interpreter whose Harbor is looked at.
        only: names of clauses; empty for all.
        progress: called with each clause's name before it is looked at.

    Raises:
        UsageError: a clause that does not exist.
        ContractError: that interpreter has no Harbor.
    """
    unknown = sorted(set(only) - {clause.name for clause in ALL})
    if unknown:
        known = ", ".join(clause.name for clause in ALL)
        raise UsageError(f"the contract has no clause {unknown[0]!r}", hint=f"There are: {known}.")
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="akm-contract-") as folder:
        lab = Lab(Path(folder).resolve(), python)
        version = lab.version
        for clause in ALL:
            if not only or clause.name in only:
                progress(clause.name)
                verdicts.append(Verdict(clause, _broken(clause, lab)))
    return Held(version, tuple(verdicts))


def _broken(clause: Clause, lab: Lab) -> str | None:
    try:
        clause.look(lab)
    except (ContractError, AkmHarborError) as error:
        return str(error)
    except (LookupError, TypeError, ValueError, AttributeError, OSError, AssertionError) as error:
        # What a clause looks at is not there or has another shape: that is the finding.
        return f"{type(error).__name__}: {error}"
    return None
