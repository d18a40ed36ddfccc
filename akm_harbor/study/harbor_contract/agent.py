"""The agent of the contract's mini jobs: it does what the task's instruction names, and nothing else."""

import json
from pathlib import Path
from typing import Any, override

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

_COMMANDS = {
    "write": "touch /app/solved",
    "trajectory": "true",
    "logs": "echo from-agent > /logs/agent/from-agent.txt && echo kept > /logs/artifacts/kept.txt",
    "peek": "ls -A /tests /solution > /logs/agent/peek.txt 2>/dev/null; true",
    "tell": "printenv CONTRACT_API_KEY > /logs/agent/told.txt",
    "sleep": "touch /app/solved; sleep 60",
}


class RetryError(Exception):
    """What the contract's jobs retry."""


class ContractAgent(BaseAgent):  # type: ignore[misc]
    """Acts out one line of the contract.

    Args:
        memory: a folder on the host where the first attempt of a flaky task leaves its mark.
        kwargs: Harbor's own, and an `arm` label.
    """

    def __init__(self, *args: Any, memory: str = "", **kwargs: Any) -> None:
        kwargs.pop("arm", None)
        super().__init__(*args, **kwargs)
        self._memory = Path(memory)

    @staticmethod
    @override
    def name() -> str:
        return "akm-contract"

    @override
    def version(self) -> str:
        return "1"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        if Path(environment.environment_dir).parent.name == "raise":
            raise RuntimeError("as planned")

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        act = instruction.strip().rpartition(" ")[2]
        if act == "flaky":
            mark = self._memory / "tried"
            if not mark.exists():
                mark.touch()
                raise RetryError("the first attempt fails, as planned")
            return
        await environment.exec(_COMMANDS[act], env=self.extra_env)

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        # As our own agents do: Harbor asks for this only while the context is empty.
        context.n_input_tokens, context.n_output_tokens = 11, 7
        (self.logs_dir / "trajectory.json").write_text(json.dumps({"written_by": self.name()}), "utf-8")
