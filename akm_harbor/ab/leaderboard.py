"""Would an arm be accepted by the Terminal-Bench 2 leaderboard, as far as its trials tell."""

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.result import Leaderboard

ATTEMPTS = 5


def leaderboard(arm: Arm) -> Leaderboard:
    """Check multiplier 1, no time or resource override, and at least five attempts a task."""
    attempts = arm.attempts
    broken, unknown = [], []
    multipliers = attempts["timeout_multiplier"].dropna().unique()
    if not len(multipliers):
        unknown.append("timeout multiplier")
    elif set(multipliers) != {1.0}:
        broken.append(f"timeout multiplier {', '.join(f'{m:g}' for m in sorted(multipliers))}, not 1")
    for column, title in (("timeouts_json", "time limits overridden"), ("resources_json", "resources overridden")):
        if any(str(v) not in {"{}", "[]", "null"} for v in attempts[column].dropna()):
            broken.append(title)
    fewest = int(attempts.groupby("task").size().min())
    if fewest < ATTEMPTS:
        broken.append(f"{fewest} attempts on a task, not {ATTEMPTS}")
    keeps = False if broken else None if unknown else True
    return Leaderboard(arm.name, keeps, tuple(broken), tuple(unknown))
