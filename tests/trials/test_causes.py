import pytest

from akm_harbor.trials.causes import CAUSE_OF_TYPE, CAUSES, cause_of


def test_every_classified_type_has_a_known_cause() -> None:
    assert set(CAUSE_OF_TYPE.values()) == set(CAUSES) - {"unclassified"}


@pytest.mark.parametrize(
    ("kind", "message", "cause"),
    [
        (None, None, None),
        ("", "x", None),
        ("AgentTimeoutError", "docker compose 401", "budget"),
        ("RuntimeError", "Docker compose command failed for environment x", "sandbox"),
        ("RuntimeError", "Command timed out after 300 seconds", "sandbox"),
        ("RuntimeError", "list index out of range", "unclassified"),
        ("NonZeroAgentExitCodeError", 'x\nstdout: {"error":{"name":"APIError","data":{"statusCode":401}}}', "provider"),
        ("NonZeroAgentExitCodeError", "Command failed (exit 137): agent --task 'fix the container'", "sandbox"),
        ("NonZeroAgentExitCodeError", "Command failed (exit 124): timeout 900 agent", "budget"),
        # The message repeats the task's own text: words in it prove nothing.
        (
            "NonZeroAgentExitCodeError",
            "Command failed (exit 1): agent -- 'write a docker rate limit 429 test'",
            "unclassified",
        ),
        ("OSError", "[Errno 28] No space left on device", "sandbox"),
        ("OSError", "[Errno 7] Argument list too long", "unclassified"),
        ("ValueError", "<Token var=<ContextVar name='x'> at 0x7f> was created in a different Context", "cancelled"),
        ("ValueError", "unknown agent kwargs: bundel", "harness"),
        ("NeverSeenError", "docker", "unclassified"),
    ],
)
def test_causes(kind: str | None, message: str | None, cause: str | None) -> None:
    assert cause_of(kind, message) == cause
